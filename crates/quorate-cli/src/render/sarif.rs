//! A report as SARIF 2.1.0: each finding is a result of the rule `council/<deliberator>`, and the verdict is in the run's
//! properties. `level.rs` has the levels.

use quorate_diagnostics::render::sarif::{Finding, Region, Rule, log};
use quorate_diagnostics::text::{LineIndex, Position};
use quorate_protocol::policy::Verdict;
use serde_json::{Value, json};

use super::deliberator_row;
use super::{fingerprint, level, wording};
use quorate::service::failure::Failure;
use quorate::service::report::{self, Report};

pub(crate) fn sarif(report: &Report) -> String {
    sarif_of(&[report])
}

/// One document for several reports, with a run for each.
pub(crate) fn sarif_of(reports: &[&Report]) -> String {
    let mut logs = reports.iter().map(|report| of(report));
    let mut document = logs.next().unwrap_or_else(|| log(&[], &[]));
    if reports.is_empty() {
        document["runs"] = json!([]);
    }
    if let Some(runs) = document["runs"].as_array_mut() {
        runs.extend(logs.filter_map(|mut log| Some(log["runs"].as_array_mut()?.remove(0))));
    }
    format!("{document:#}\n")
}

fn of(report: &Report) -> Value {
    let lines = report.text.as_deref().map(LineIndex::new);
    let rules: Vec<Rule> = report.deliberators.iter().map(|deliberator| rule(&deliberator.id)).collect();
    let findings: Vec<Finding> =
        report.findings.iter().map(|raised| finding(report, lines.as_ref(), raised)).collect();
    let mut log = log(&rules, &findings);
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
            result["partialFingerprints"] = json!({"quorate/v1": fingerprint::of_finding(report, finding)});
            result["properties"]["by"] = json!(finding.by);
            result["properties"]["blocks"] = json!(deliberator_row::blocks(report, &finding.by));
            result["properties"]["grounded"] = json!(finding.span.is_some());
            result["properties"]["quote"] = json!(finding.quote);
        }
    }
    log
}

/// One for each missing answer.
fn notifications(report: &Report) -> Vec<Value> {
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

fn properties(report: &Report) -> Value {
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

fn finding(report: &Report, lines: Option<&LineIndex<'_>>, raised: &report::Finding) -> Finding {
    Finding {
        rule: id(&raised.by),
        level: level::of_member(report, &raised.by),
        message: raised.issue.clone(),
        file: Some(report.hosted_path().to_owned()),
        region: region(report, lines, raised),
        fix: raised.fix.clone(),
    }
}

/// The place of the quote. Without the text its end is unknown, and the region is its start.
fn region(report: &Report, lines: Option<&LineIndex<'_>>, raised: &report::Finding) -> Option<Region> {
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

#[cfg(test)]
mod tests {
    use super::super::fixture::{hold, incomplete, one_round, open, revise, ship};
    use super::*;

    fn run(report: &Report) -> Value {
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
        let levels = |report: &Report| -> Vec<String> {
            let run = run(report);
            run["results"]
                .as_array()
                .unwrap()
                .iter()
                .map(|result| result["level"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(levels(&revise()), ["warning", "warning", "note", "warning", "note"]);
        let shipped = Report { verdict: Some(Verdict::Ship), ..revise() };
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
