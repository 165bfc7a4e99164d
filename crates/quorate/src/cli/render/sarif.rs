//! A report as SARIF 2.1.0: each finding is a result of the rule `council/<deliberator>`, and the verdict stands in the
//! run's properties. Levels are those of [`super::level`].

use quorate_diagnostics::render::sarif::{Finding, Region, Rule, log};
use quorate_diagnostics::text::{LineIndex, Position};
use quorate_protocol::policy::Verdict;
use serde_json::{Value, json};

use super::level;
use super::seat;
use crate::service::report::{self, Report};

/// The whole document.
pub fn sarif(report: &Report) -> String {
    let lines = report.text.as_deref().map(LineIndex::new);
    let rules: Vec<Rule> = report.deliberators.iter().map(|one| rule(&one.id)).collect();
    let findings: Vec<Finding> = report.findings.iter().map(|one| finding(report, lines.as_ref(), one)).collect();
    let mut log = log(&rules, &findings);
    let run = &mut log["runs"][0];
    run["automationDetails"] = json!({ "id": format!("quorate/review/{}", report.run) });
    run["invocations"] = json!([{
        "executionSuccessful": !matches!(report.verdict, None | Some(Verdict::Incomplete)),
        "exitCode": report.exit(),
    }]);
    run["properties"] = properties(report);
    if let Some(results) = run["results"].as_array_mut() {
        for (result, finding) in results.iter_mut().zip(&report.findings) {
            result["properties"]["by"] = json!(finding.by);
            result["properties"]["blocks"] = json!(seat::blocks(report, &finding.by));
            result["properties"]["grounded"] = json!(finding.span.is_some());
            result["properties"]["quote"] = json!(finding.quote);
        }
    }
    format!("{log:#}\n")
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
        "override": report.overridden.as_ref().map(|one| json!({"verdict": one.verdict, "reason": one.reason, "by": one.by})),
    })
}

fn rule(deliberator: &str) -> Rule {
    Rule { id: id(deliberator), summary: format!("What the council's deliberator `{deliberator}` finds."), help: String::new() }
}

/// The rule of a deliberator.
pub(super) fn id(deliberator: &str) -> String {
    format!("council/{deliberator}")
}

fn finding(report: &Report, lines: Option<&LineIndex<'_>>, one: &report::Finding) -> Finding {
    Finding {
        rule: id(&one.by),
        level: level::of_member(report, &one.by),
        message: one.issue.clone(),
        file: Some(report.artifact.clone()),
        region: region(report, lines, one),
        fix: one.fix.clone(),
    }
}

/// Where the words stand. Without the text their end is not known, and the region is the place where they begin.
fn region(report: &Report, lines: Option<&LineIndex<'_>>, one: &report::Finding) -> Option<Region> {
    let start = start(one)?;
    let whole = report.text.as_deref().zip(lines).zip(one.span).and_then(|((text, lines), (from, to))| {
        let snippet = text.get(from..to)?;
        let end = lines.position(to);
        let end = match snippet.contains('\n') {
            true => end,
            false => Position { line: start.line, column: start.column + snippet.chars().count() },
        };
        Some(Region { start, end, snippet: Some(snippet.to_owned()) })
    });
    Some(whole.unwrap_or(Region { start, end: start, snippet: None }))
}

/// Where a finding's words begin.
pub(super) fn start(one: &report::Finding) -> Option<Position> {
    let number = |number: u64| usize::try_from(number.max(1)).ok();
    Some(Position { line: number(one.line?)?, column: number(one.column?)? })
}
