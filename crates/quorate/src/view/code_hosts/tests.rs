//! The layouts for code hosts, on sample reviews.

use super::super::review::fixture::{hold, incomplete, one_round, open, revise, ship};
use super::*;
use quorate_kernel::record::{Gap, HiddenText};

fn run(report: &Review) -> Value {
    let document: Value = serde_json::from_str(&sarif(&[report])).unwrap();
    assert_eq!(document["version"], "2.1.0");
    assert_eq!(document["runs"].as_array().map(Vec::len), Some(1));
    document["runs"][0].clone()
}

#[test]
fn every_result_has_a_rule_a_message_and_a_region_that_is_one() {
    for report in [ship(), revise(), hold(), incomplete(), open(), one_round()] {
        let run = run(&report);
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        let results = run["results"].as_array().unwrap();
        assert_eq!(results.len(), report.findings.len());
        for result in results {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(rules[index]["id"], result["ruleId"]);
            assert!(matches!(result["level"].as_str(), Some("error" | "warning" | "note")));
            assert!(!result["message"]["text"].as_str().unwrap().is_empty());
            let location = &result["locations"][0]["physicalLocation"];
            assert_eq!(location["artifactLocation"]["uri"], "drafts/launch.md");
            let Some(region) = location.get("region") else { continue };
            let number = |key: &str| region[key].as_u64().unwrap();
            assert!(number("startLine") >= 1 && number("startColumn") >= 1);
            assert!((number("endLine"), number("endColumn")) >= (number("startLine"), number("startColumn")));
        }
    }
}

#[test]
fn regions_count_characters_and_carry_the_words() {
    let run = run(&hold());
    assert_eq!(
        run["results"][0]["locations"][0]["physicalLocation"]["region"],
        json!({"startLine": 4, "startColumn": 44, "endLine": 4, "endColumn": 55, "snippet": {"text": "日本語も「速い」です。"}})
    );
    assert_eq!(run["results"][0]["level"], "error");
    assert!(run["results"][1]["locations"][0]["physicalLocation"].get("region").is_none());
    assert_eq!(run["results"][1]["properties"]["grounded"], false);
    assert_eq!(run["properties"]["verdict"], "HOLD");
    assert_eq!(run["properties"]["override"]["verdict"], "SHIP");
}

#[test]
fn a_region_counts_the_credentials_within_its_quote() {
    for (before, [start, end]) in [(43, [64, 75]), (44, [44, 75]), (48, [44, 75]), (54, [44, 55])] {
        let mut report = hold();
        let gap = Gap { line: 4, column: before + 1, characters: 20 };
        let hidden = HiddenText { credentials: Some(20), gap: Some(gap), ..HiddenText::default() };
        report.findings[0].column = Some(column_in_draft(Some(&hidden), 4, 44));
        report.hidden = Some(hidden);
        let region = &run(&report)["results"][0]["locations"][0]["physicalLocation"]["region"];
        assert_eq!((&region["startColumn"], &region["endColumn"]), (&json!(start), &json!(end)), "{before}");
    }
}

#[test]
fn levels_follow_verdict_and_block() {
    let levels = |report: &Review| -> Vec<String> {
        let run = run(report);
        run["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|result| result["level"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(levels(&revise()), ["warning", "warning", "note", "warning", "note"]);
    let shipped = Review { verdict: Some(Verdict::Ship), exit: 0, ..revise() };
    assert!(levels(&shipped).iter().all(|level| level == "note"));
    let invocation = &run(&incomplete())["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    let notifications = invocation["toolExecutionNotifications"].as_array().unwrap();
    assert_eq!(notifications.len(), incomplete().failures().len());
    assert_eq!(notifications[0]["properties"]["failure"]["kind"], "timed_out");
    assert_eq!(
        notifications[0]["message"]["text"],
        "voice_identity (round 2): timed out: no answer within 90 s"
    );
    assert_eq!(notifications[0]["level"], "error");
}

#[test]
fn a_line_that_moves_changes_nothing_and_other_words_do() {
    let report = revise();
    let fingerprint = |report: &Review, at: usize| {
        run(report)["results"][at]["partialFingerprints"]["quorate/v1"].as_str().unwrap().to_owned()
    };
    let first = fingerprint(&report, 0);
    let mut moved = report.clone();
    moved.findings[0].line = Some(99);
    moved.findings[0].issue = "The same in other words.".to_owned();
    assert_eq!(fingerprint(&moved, 0), first);
    moved.findings[0].quote = "other words of the text".to_owned();
    assert_ne!(fingerprint(&moved, 0), first);
    let mut twice = report.clone();
    twice.findings.insert(1, twice.findings[0].clone());
    assert_ne!(fingerprint(&twice, 1), first);
    assert_eq!(fingerprint(&twice, 0), first);
}

#[test]
fn every_entry_is_what_gitlab_requires() {
    for report in [ship(), revise(), hold(), incomplete(), open()] {
        let list: Vec<Value> = serde_json::from_str(&gitlab(&[&report])).unwrap();
        let is_ship = report.verdict == Some(Verdict::Ship);
        let failures = report.failures();
        assert_eq!(list.len(), report.findings.len() + usize::from(!is_ship) + failures.len());
        for (member, _, failure) in failures {
            let names = |entry: &&Value| {
                let description = entry["description"].as_str().unwrap();
                description.contains(member)
                    && description.contains(failure.message.split('\n').next().unwrap())
            };
            assert!(list.iter().any(|entry| names(&entry)), "{member}: {list:#?}");
        }
        let mut fingerprints: Vec<&str> = Vec::new();
        for entry in &list {
            assert!(entry["location"]["lines"]["begin"].as_u64().unwrap() >= 1);
            assert_eq!(entry["location"]["path"], "drafts/launch.md");
            assert!(!entry["description"].as_str().unwrap().is_empty());
            assert!(matches!(entry["severity"].as_str(), Some("critical" | "major" | "info")));
            fingerprints.push(entry["fingerprint"].as_str().unwrap());
        }
        fingerprints.sort_unstable();
        fingerprints.dedup();
        assert_eq!(fingerprints.len(), list.len());
    }
    assert_eq!(gitlab(&[]), "[]\n");
}

#[test]
fn gitlab_has_the_notes_of_every_verdict() {
    let model =
        "No model was asked: the answers come from the `rubric` executor, which does not judge content.";
    let unread = "Not judged: lines 5-8 (a code block that does not end).";
    let hidden = "The draft has 250 invisible characters that no script needs, most of them from line 7 on; members see them.";
    for (model_asked, notes, is_shown) in [
        (true, vec![], false),
        (false, vec![model], false),
        (true, vec![unread], true),
        (true, vec![hidden], true),
        (false, vec![model, hidden], true),
        (false, vec![model, unread, hidden], true),
    ] {
        let notes: Vec<String> = notes.into_iter().map(str::to_owned).collect();
        for (verdict, severity) in
            [(Verdict::Ship, "info"), (Verdict::Revise, "major"), (Verdict::Hold, "critical")]
        {
            let report = Review { verdict: Some(verdict), model_asked, notes: notes.clone(), ..ship() };
            let list: Vec<Value> = serde_json::from_str(&gitlab(&[&report])).unwrap();
            let is_expected = is_shown || verdict != Verdict::Ship;
            assert_eq!(list.len(), usize::from(is_expected), "{verdict:?} {notes:?}");
            for entry in list {
                let description = entry["description"].as_str().unwrap();
                assert!(notes.iter().all(|note| description.contains(note.as_str())), "{description}");
                assert_eq!((&entry["severity"], &entry["check_name"]), (&json!(severity), &json!("council")));
            }
        }
    }
}

#[test]
fn github_has_an_annotation_for_each_finding_and_the_verdict() {
    insta::assert_snapshot!(github(&[&hold()]), @r#"
    ::error file=drafts/launch.md,title=council%3A HOLD::3 of 4 block, 3 of them irreducibly; the adjudicator asks for HOLD; policy seed/2 makes that HOLD.%0AA person (ana) decided SHIP: The embargo ends today.%0AUngrounded: voice_identity blocks without a quote from the text.%0ARun r7k2m9q4xa1bc
    ::error file=drafts/launch.md,line=4,col=44,title=council/evidence::Nobody measured it.%0AFix: Measure it.
    ::error file=drafts/launch.md,title=council/voice_identity::A superlative.%0AQuoted, but not in the text: "we are the%0Abest <in> the world"
    "#);
    let mut report = revise();
    report.artifact = "-".to_owned();
    report.findings.truncate(1);
    report.findings[0].issue = "50%\n::error::no".to_owned();
    insta::assert_snapshot!(github(&[&report]), @"
    ::warning title=council%3A REVISE (rubric%3A 1 finding; content not judged)::2 of 4 block, 0 of them irreducibly; the adjudicator asks for REVISE; policy seed/2 makes that REVISE.%0AName the base of the 90%25. Drop the promise.%0ANo model was asked: the answers come from the `rubric` executor, which does not judge content.%0ARun r7k2m9q4xa1bc
    ::warning title=council/evidence::50%25%0A::error::no%0AFix: Say 90%25 of what, and link the report.
    ");
}
