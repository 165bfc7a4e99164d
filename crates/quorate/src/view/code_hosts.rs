//! Reviews for code hosts: SARIF 2.1.0, GitHub annotations, and a GitLab Code Quality report.
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

use quorate_diagnostics::render::Level;
use quorate_diagnostics::render::machine::{
    Finding as SarifFinding, Region, Rule, github_annotation, sarif_log,
};
use quorate_diagnostics::text::{LineIndex, Position};
use quorate_kernel::entropy::sha256_hex;
use quorate_protocol::policy::Verdict;
use serde_json::{Value, json};

use super::review::blocks;
use super::wording::{self, undecided};
use crate::service::hidden_text::column_in_draft;
use crate::service::member_usage::Failure;
use crate::service::report::{Finding, Review};

/// A SARIF document with a run for each review.
pub fn sarif(reports: &[&Review]) -> String {
    let mut logs = reports.iter().map(|report| sarif_run(report));
    let mut document = logs.next().unwrap_or_else(|| sarif_log(&[], &[]));
    if reports.is_empty() {
        document["runs"] = json!([]);
    }
    if let Some(runs) = document["runs"].as_array_mut() {
        runs.extend(logs.filter_map(|mut log| Some(log["runs"].as_array_mut()?.remove(0))));
    }
    format!("{document:#}\n")
}

/// The document of one review.
fn sarif_run(report: &Review) -> Value {
    let lines = report.text.as_deref().map(LineIndex::new);
    let rules: Vec<Rule> = report.deliberators.iter().map(|deliberator| rule(&deliberator.id)).collect();
    let findings: Vec<SarifFinding> =
        report.findings.iter().map(|raised| finding(report, lines.as_ref(), raised)).collect();
    let mut log = sarif_log(&rules, &findings);
    let run = &mut log["runs"][0];
    run["automationDetails"] = json!({ "id": format!("quorate/review/{}", report.run) });
    run["invocations"] = json!([{
        "executionSuccessful": !matches!(report.verdict, None | Some(Verdict::Incomplete)),
        "exitCode": report.exit,
        "toolExecutionNotifications": notifications(report),
    }]);
    run["properties"] = properties(report);
    if let Some(results) = run["results"].as_array_mut() {
        for (result, finding) in results.iter_mut().zip(&report.findings) {
            result["partialFingerprints"] = json!({"quorate/v1": fingerprint_of_finding(report, finding)});
            result["properties"]["by"] = json!(finding.by);
            result["properties"]["blocks"] = json!(blocks(report, &finding.by));
            result["properties"]["grounded"] = json!(finding.span.is_some());
            result["properties"]["quote"] = json!(finding.quote);
        }
    }
    log
}

/// One for each missing answer.
fn notifications(report: &Review) -> Vec<Value> {
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

fn properties(report: &Review) -> Value {
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
        "notes": report.notes,
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
fn id(deliberator: &str) -> String {
    format!("council/{deliberator}")
}

fn finding(report: &Review, lines: Option<&LineIndex<'_>>, raised: &Finding) -> SarifFinding {
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
fn region(report: &Review, lines: Option<&LineIndex<'_>>, raised: &Finding) -> Option<Region> {
    let start = start(raised)?;
    let exact = report.text.as_deref().zip(lines).zip(raised.span).and_then(
        |((text, lines), (start_byte, end_byte))| {
            let snippet = text.get(start_byte..end_byte)?;
            let Position { line, column } = lines.position(end_byte);
            // The end is behind the quote's last character, and content credentials may follow that.
            let last = column_in_draft(report.hidden.as_ref(), line as u64, column as u64 - 1);
            let end = Position { line, column: usize::try_from(last).ok()? + 1 };
            Some(Region { start, end, snippet: Some(snippet.to_owned()) })
        },
    );
    Some(exact.unwrap_or(Region { start, end: start, snippet: None }))
}

/// The start of a finding's quote.
fn start(raised: &Finding) -> Option<Position> {
    let number = |number: u64| usize::try_from(number.max(1)).ok();
    Some(Position { line: number(raised.line?)?, column: number(raised.column?)? })
}

/// The level of a deliberator's findings.
pub fn level_of_member(report: &Review, member: &str) -> Level {
    match (report.verdict, blocks(report, member)) {
        (Some(Verdict::Hold), true) => Level::Error,
        (Some(Verdict::Ship), _) => Level::Note,
        (Some(Verdict::Hold), false) | (_, true) => Level::Warning,
        (_, false) => Level::Note,
    }
}

/// The level of a missing answer.
fn level_of_failure(report: &Review) -> Level {
    if report.verdict == Some(Verdict::Ship) { Level::Note } else { Level::Warning }
}

fn level_of_verdict(verdict: Option<Verdict>) -> Level {
    match verdict {
        Some(Verdict::Hold) => Level::Error,
        Some(Verdict::Ship) => Level::Note,
        Some(Verdict::Revise | Verdict::Incomplete) | None => Level::Warning,
    }
}

/// Where a member raises several about the same words, their order tells them apart.
fn fingerprint_of_finding(report: &Review, finding: &Finding) -> String {
    let about = |finding: &Finding| match finding.quote.trim() {
        "" => finding.issue.clone(),
        quote => quote.to_owned(),
    };
    let is_alike = |other: &&Finding| other.by == finding.by && about(other) == about(finding);
    let before = report.findings.iter().take_while(|other| !std::ptr::eq(*other, finding)).filter(is_alike);
    fingerprint_hash(&json!([finding.by, report.hosted_path(), about(finding), before.count()]))
}

fn fingerprint_of_verdict(report: &Review) -> String {
    fingerprint_hash(&json!(["council", report.hosted_path()]))
}

fn fingerprint_of_failure(report: &Review, member: &str, round: Option<u8>) -> String {
    fingerprint_hash(&json!(["council", report.hosted_path(), member, round]))
}

fn fingerprint_hash(parts: &Value) -> String {
    sha256_hex(parts.to_string().as_bytes())
}

/// GitHub's annotations of reviews, one line each.
pub fn github(reports: &[&Review]) -> String {
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

fn annotation_of_finding(report: &Review, finding: &Finding) -> String {
    let title = id(&finding.by);
    let level = level_of_member(report, &finding.by);
    github_annotation(level, annotated_file(report), start(finding), &title, &annotation_message(finding))
}

/// The file of annotations; empty for standard input, which is not in the repository.
fn annotated_file(report: &Review) -> &str {
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

fn verdict_title(report: &Review) -> String {
    let over_blocks =
        report.ship_over_blocks().map_or_else(String::new, |over_blocks| format!(" {over_blocks}"));
    let basis = report.basis().map_or_else(String::new, |basis| format!(" ({basis})"));
    format!("council: {}{over_blocks}{basis}", report.verdict_word())
}

fn verdict_message(report: &Review) -> String {
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
    let notes: String = report.notes.iter().map(|note| format!("\n{note}")).collect();
    format!("{because}{person}{brief}{failures}{notes}\nRun {}", report.run)
}

/// A GitLab Code Quality report of reviews.
pub fn gitlab(reports: &[&Review]) -> String {
    let entries: Vec<Value> = reports.iter().flat_map(|report| gitlab_entries(report)).collect();
    format!("{:#}\n", Value::Array(entries))
}

fn gitlab_entries(report: &Review) -> Vec<Value> {
    let mut entries: Vec<Value> =
        report.findings.iter().map(|finding| gitlab_entry(report, finding)).collect();
    // If no model was asked, that is the first note. It alone adds no entry to a SHIP.
    if report.verdict != Some(Verdict::Ship) || report.notes.len() > usize::from(!report.model_asked) {
        let because = match report.verdict {
            Some(_) => report.because.clone(),
            None => undecided(&report.run, report.imported, report.queued),
        };
        let notes: String = report.notes.iter().map(|note| format!(" {note}")).collect();
        entries.push(json!({
            "description": format!("{}: {because}{notes} (run {})", report.verdict_word(), report.run),
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

fn gitlab_entry(report: &Review, finding: &Finding) -> Value {
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
mod tests;
