//! A report for code hosts: SARIF 2.1.0, GitHub annotations, and a GitLab Code Quality report.
//!
//! | verdict           | finding of a blocking member | of another |
//! |-------------------|------------------------------|------------|
//! | HOLD              | error                        | warning    |
//! | REVISE            | warning                      | note       |
//! | SHIP              | note                         | note       |
//! | INCOMPLETE, open  | warning                      | note       |
//!
//! The verdict itself is an error on HOLD, a warning on REVISE and if missing, and a note on SHIP. A missing answer is a note
//! on SHIP, and a warning otherwise.
//!
//! In SARIF each finding is a result of the rule `council/<deliberator>`. GitHub shows the first ten annotations of each level
//! of a step, so verdicts come before all findings. A fingerprint identifies a finding across reviews of a changing text by
//! its member, file and quoted words; a code host shows a known finding once, even after its line has moved.

use quorate::service::member_usage::Failure;
use quorate::service::report::{self, Finding, ReviewReport};
use quorate_diagnostics::render::Level;
use quorate_diagnostics::render::machine::github_annotation;
use quorate_diagnostics::render::machine::{Finding as SarifFinding, Region, Rule, sarif_log};
use quorate_diagnostics::text::{LineIndex, Position};
use quorate_kernel::entropy::sha256_hex;
use quorate_protocol::policy::Verdict;
use serde_json::{Value, json};

use super::wording::undecided;
use super::{deliberator_row, wording};

pub(crate) fn sarif(report: &ReviewReport) -> String {
    sarif_of(&[report])
}

/// One document for several reports, with a run for each.
pub(crate) fn sarif_of(reports: &[&ReviewReport]) -> String {
    let mut logs = reports.iter().map(|report| of(report));
    let mut document = logs.next().unwrap_or_else(|| sarif_log(&[], &[]));
    if reports.is_empty() {
        document["runs"] = json!([]);
    }
    if let Some(runs) = document["runs"].as_array_mut() {
        runs.extend(logs.filter_map(|mut log| Some(log["runs"].as_array_mut()?.remove(0))));
    }
    format!("{document:#}\n")
}

fn of(report: &ReviewReport) -> Value {
    let lines = report.text.as_deref().map(LineIndex::new);
    let rules: Vec<Rule> = report.deliberators.iter().map(|deliberator| rule(&deliberator.id)).collect();
    let findings: Vec<SarifFinding> =
        report.findings.iter().map(|raised| finding(report, lines.as_ref(), raised)).collect();
    let mut log = sarif_log(&rules, &findings);
    let run = &mut log["runs"][0];
    run["automationDetails"] = json!({ "id": format!("quorate/review/{}", report.run) });
    run["invocations"] = json!([{
        "executionSuccessful": !matches!(report.verdict, None | Some(Verdict::Incomplete)),
        "exitCode": report.exit_code(),
        "toolExecutionNotifications": notifications(report),
    }]);
    run["properties"] = properties(report);
    if let Some(results) = run["results"].as_array_mut() {
        for (result, finding) in results.iter_mut().zip(&report.findings) {
            result["partialFingerprints"] = json!({"quorate/v1": fingerprint_of_finding(report, finding)});
            result["properties"]["by"] = json!(finding.by);
            result["properties"]["blocks"] = json!(deliberator_row::blocks(report, &finding.by));
            result["properties"]["grounded"] = json!(finding.span.is_some());
            result["properties"]["quote"] = json!(finding.quote);
        }
    }
    log
}

/// One for each missing answer.
fn notifications(report: &ReviewReport) -> Vec<Value> {
    let one = |(member, round, failure): (&str, Option<u8>, &Failure)| {
        json!({
            "descriptor": {"id": id(member)},
            "level": "error",
            "message": {"text": wording::failure(member, round, failure)},
            "properties": {"member": member, "round": round, "failure": failure},
        })
    };
    report.failures().into_iter().map(one).collect()
}

fn properties(report: &ReviewReport) -> Value {
    json!({
        "run": report.run,
        "verdict": report.verdict.map(Verdict::as_str),
        "because": report.because,
        "policy": report.policy,
        "partial": !report.missing.is_empty(),
        "artifactType": report.artifact_type,
        "tier": report.tier,
        "executor": report.executor,
        "modelAsked": report.model_asked,
        "notes": report.all_notes(),
        "override": report.overridden.as_ref().map(|decision| json!({"verdict": decision.verdict, "reason": decision.reason, "by": decision.by})),
    })
}

fn rule(deliberator: &str) -> Rule {
    Rule {
        id: id(deliberator),
        summary: format!("What the council's deliberator `{deliberator}` finds."),
        help: String::new(),
    }
}

/// The rule id of a deliberator.
pub(super) fn id(deliberator: &str) -> String {
    format!("council/{deliberator}")
}

fn finding(report: &ReviewReport, lines: Option<&LineIndex<'_>>, raised: &report::Finding) -> SarifFinding {
    SarifFinding {
        rule: id(&raised.by),
        level: level_of_member(report, &raised.by),
        message: raised.issue.clone(),
        file: Some(report.hosted_path().to_owned()),
        region: region(report, lines, raised),
        fix: raised.fix.clone(),
    }
}

/// The place of the quote. Without the text its end is unknown, and the region is its start.
fn region(report: &ReviewReport, lines: Option<&LineIndex<'_>>, raised: &report::Finding) -> Option<Region> {
    let start = start(raised)?;
    let exact = report.text.as_deref().zip(lines).zip(raised.span).and_then(
        |((text, lines), (start_byte, end_byte))| {
            let snippet = text.get(start_byte..end_byte)?;
            let end = lines.position(end_byte);
            let end = match snippet.contains('\n') {
                true => end,
                false => Position { line: start.line, column: start.column + snippet.chars().count() },
            };
            Some(Region { start, end, snippet: Some(snippet.to_owned()) })
        },
    );
    Some(exact.unwrap_or(Region { start, end: start, snippet: None }))
}

/// The start of a finding's quote.
pub(super) fn start(raised: &report::Finding) -> Option<Position> {
    let number = |number: u64| usize::try_from(number.max(1)).ok();
    Some(Position { line: number(raised.line?)?, column: number(raised.column?)? })
}

/// The level of a deliberator's findings.
pub(super) fn level_of_member(report: &ReviewReport, member: &str) -> Level {
    let blocks = deliberator_row::blocks(report, member);
    match (report.verdict, blocks) {
        (Some(Verdict::Hold), true) => Level::Error,
        (Some(Verdict::Ship), _) => Level::Note,
        (Some(Verdict::Hold), false) | (_, true) => Level::Warning,
        (_, false) => Level::Note,
    }
}

/// The level of a missing answer.
pub(super) fn level_of_failure(report: &ReviewReport) -> Level {
    if report.verdict == Some(Verdict::Ship) { Level::Note } else { Level::Warning }
}

pub(super) fn level_of_verdict(verdict: Option<Verdict>) -> Level {
    match verdict {
        Some(Verdict::Hold) => Level::Error,
        Some(Verdict::Ship) => Level::Note,
        Some(Verdict::Revise | Verdict::Incomplete) | None => Level::Warning,
    }
}

/// Where a member raises several about the same words, their order tells them apart.
pub(super) fn fingerprint_of_finding(report: &ReviewReport, finding: &Finding) -> String {
    let about = |finding: &Finding| match finding.quote.trim() {
        "" => finding.issue.clone(),
        quote => quote.to_owned(),
    };
    let is_alike = |other: &&Finding| other.by == finding.by && about(other) == about(finding);
    let before = report.findings.iter().take_while(|other| !std::ptr::eq(*other, finding)).filter(is_alike);
    fingerprint_hash(&json!([finding.by, report.hosted_path(), about(finding), before.count()]))
}

pub(super) fn fingerprint_of_verdict(report: &ReviewReport) -> String {
    fingerprint_hash(&json!(["council", report.hosted_path()]))
}

pub(super) fn fingerprint_of_failure(report: &ReviewReport, member: &str, round: Option<u8>) -> String {
    fingerprint_hash(&json!(["council", report.hosted_path(), member, round]))
}

fn fingerprint_hash(parts: &serde_json::Value) -> String {
    sha256_hex(parts.to_string().as_bytes())
}

/// All annotations, one line each. `level.rs` has the levels.
pub(crate) fn github(report: &ReviewReport) -> String {
    github_of(&[report])
}

/// The annotations of several reports.
pub(crate) fn github_of(reports: &[&ReviewReport]) -> String {
    let verdicts = reports.iter().map(|report| {
        github_annotation(
            level_of_verdict(report.verdict),
            annotated_file(report),
            None,
            &verdict_title(report),
            &verdict_message(report),
        )
    });
    let findings = reports
        .iter()
        .flat_map(|report| report.findings.iter().map(|finding| annotation_of_finding(report, finding)));
    verdicts.chain(findings).map(|line| line + "\n").collect()
}

fn annotation_of_finding(report: &ReviewReport, finding: &Finding) -> String {
    let title = id(&finding.by);
    let level = level_of_member(report, &finding.by);
    github_annotation(level, annotated_file(report), start(finding), &title, &annotation_message(finding))
}

/// The file of annotations; empty for standard input, which is not in the repository.
fn annotated_file(report: &ReviewReport) -> &str {
    match &*report.artifact {
        "-" => "",
        _ => report.hosted_path(),
    }
}

fn annotation_message(finding: &Finding) -> String {
    let quote = match finding.span {
        Some(_) => String::new(),
        None => format!("\nQuoted, but not in the text: \"{}\"", finding.quote),
    };
    let fix = finding.fix.as_ref().map_or_else(String::new, |fix| format!("\nFix: {fix}"));
    format!("{}{quote}{fix}", finding.issue)
}

fn verdict_title(report: &ReviewReport) -> String {
    let over_blocks =
        report.ship_over_blocks().map_or_else(String::new, |over_blocks| format!(" {over_blocks}"));
    let basis = report.basis().map_or_else(String::new, |basis| format!(" ({basis})"));
    format!("council: {}{over_blocks}{basis}", report.verdict_word())
}

fn verdict_message(report: &ReviewReport) -> String {
    let because = match report.verdict {
        Some(_) => report.because.clone(),
        None => undecided(&report.run, report.imported, report.queued),
    };
    let person = report.overridden.as_ref().map_or_else(String::new, |person| {
        format!("\nA person ({}) decided {}: {}", person.by, person.verdict, person.reason)
    });
    let brief = report.revision_brief.as_ref().map_or_else(String::new, |brief| format!("\n{brief}"));
    // Where no rule applies to the text, the verdict's reason is that of every member.
    let failures: String = report
        .failures()
        .into_iter()
        .filter(|_| report.unjudged.is_none())
        .map(|(member, round, failure)| format!("\n{}", wording::failure(member, round, failure)))
        .collect();
    let notes: String = report.all_notes().iter().map(|note| format!("\n{note}")).collect();
    format!("{because}{person}{brief}{failures}{notes}\nRun {}", report.run)
}

/// One list for several reports.
pub(crate) fn gitlab_of(reports: &[&ReviewReport]) -> String {
    let entries: Vec<Value> = reports.iter().flat_map(|report| gitlab_entries(report)).collect();
    format!("{:#}\n", Value::Array(entries))
}

fn gitlab_entries(report: &ReviewReport) -> Vec<Value> {
    let mut entries: Vec<Value> =
        report.findings.iter().map(|finding| gitlab_entry(report, finding)).collect();
    if report.verdict != Some(Verdict::Ship) {
        let because = match report.verdict {
            Some(_) => report.because.clone(),
            None => undecided(&report.run, report.imported, report.queued),
        };
        entries.push(json!({
            "description": format!("{}: {because} (run {})", report.verdict_word(), report.run),
            "check_name": "council",
            "fingerprint": fingerprint_of_verdict(report),
            "severity": gitlab_severity(level_of_verdict(report.verdict)),
            "location": {"path": report.hosted_path(), "lines": {"begin": 1}},
        }));
    }
    entries.extend(report.failures().into_iter().map(|(member, round, failure)| {
        json!({
            "description": wording::failure(member, round, failure),
            "check_name": id(member),
            "fingerprint": fingerprint_of_failure(report, member, round),
            "severity": gitlab_severity(level_of_failure(report)),
            "location": {"path": report.hosted_path(), "lines": {"begin": 1}},
            "failure": failure,
        })
    }));
    entries
}

fn gitlab_entry(report: &ReviewReport, finding: &Finding) -> Value {
    let fix = finding.fix.as_ref().map_or_else(String::new, |fix| format!(" Fix: {fix}"));
    json!({
        "description": format!("{}{fix}", finding.issue),
        "check_name": id(&finding.by),
        "fingerprint": fingerprint_of_finding(report, finding),
        "severity": gitlab_severity(level_of_member(report, &finding.by)),
        "location": {"path": report.hosted_path(), "lines": {"begin": finding.line.unwrap_or(1).max(1)}},
    })
}

fn gitlab_severity(level: Level) -> &'static str {
    match level {
        Level::Error => "critical",
        Level::Warning => "major",
        Level::Note => "info",
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{hold, incomplete, one_round, open, revise, ship};
    use super::*;

    fn run(report: &ReviewReport) -> Value {
        let document: Value = serde_json::from_str(&sarif(report)).unwrap();
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
                assert!(
                    (number("endLine"), number("endColumn")) >= (number("startLine"), number("startColumn"))
                );
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
    fn levels_follow_verdict_and_block() {
        let levels = |report: &ReviewReport| -> Vec<String> {
            let run = run(report);
            run["results"]
                .as_array()
                .unwrap()
                .iter()
                .map(|result| result["level"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(levels(&revise()), ["warning", "warning", "note", "warning", "note"]);
        let shipped = ReviewReport { verdict: Some(Verdict::Ship), ..revise() };
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
}

#[cfg(test)]
mod fingerprint_tests {
    use super::super::fixture::revise;
    use super::*;

    #[test]
    fn a_line_that_moves_changes_nothing_and_other_words_do() {
        let report = revise();
        let first = fingerprint_of_finding(&report, &report.findings[0]);
        let mut moved = report.clone();
        moved.findings[0].line = Some(99);
        moved.findings[0].issue = "The same in other words.".to_owned();
        assert_eq!(fingerprint_of_finding(&moved, &moved.findings[0]), first);
        moved.findings[0].quote = "other words of the text".to_owned();
        assert_ne!(fingerprint_of_finding(&moved, &moved.findings[0]), first);
        let mut twice = report.clone();
        twice.findings.insert(1, twice.findings[0].clone());
        assert_ne!(fingerprint_of_finding(&twice, &twice.findings[1]), first);
        assert_eq!(fingerprint_of_finding(&twice, &twice.findings[0]), first);
    }
}

#[cfg(test)]
mod gitlab_tests {
    use super::super::fixture::{hold, incomplete, open, revise, ship};
    use super::*;

    #[test]
    fn every_entry_is_what_gitlab_requires() {
        for report in [ship(), revise(), hold(), incomplete(), open()] {
            let list: Vec<Value> = serde_json::from_str(&gitlab_of(&[&report])).unwrap();
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
        assert_eq!(gitlab_of(&[]), "[]\n");
    }
}
