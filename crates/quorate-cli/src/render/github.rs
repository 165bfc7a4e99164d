//! A report as GitHub workflow commands: an annotation with the verdict, then one for each finding. GitHub shows the first ten
//! of each level of a step, so that verdicts come before all findings.

use quorate_diagnostics::render::github::annotation;

use super::wording::{self, undecided};
use super::{level, sarif};
use quorate::service::report::{Finding, Report};

/// All annotations, one line each. `level.rs` has the levels.
pub(crate) fn github(report: &Report) -> String {
    github_of(&[report])
}

/// The annotations of several reports.
pub(crate) fn github_of(reports: &[&Report]) -> String {
    let verdicts = reports.iter().map(|report| {
        annotation(level::of_verdict(report.verdict), file(report), None, &title(report), &verdict(report))
    });
    let findings =
        reports.iter().flat_map(|report| report.findings.iter().map(|finding| of_finding(report, finding)));
    verdicts.chain(findings).map(|line| line + "\n").collect()
}

fn of_finding(report: &Report, finding: &Finding) -> String {
    let title = sarif::id(&finding.by);
    let level = level::of_member(report, &finding.by);
    annotation(level, file(report), sarif::start(finding), &title, &message(finding))
}

/// The file of annotations; empty for standard input, which is not in the repository.
fn file(report: &Report) -> &str {
    match &*report.artifact {
        "-" => "",
        _ => report.hosted_path(),
    }
}

fn message(finding: &Finding) -> String {
    let quote = match finding.span {
        Some(_) => String::new(),
        None => format!("\nQuoted, but not in the text: \"{}\"", finding.quote),
    };
    let fix = finding.fix.as_ref().map_or_else(String::new, |fix| format!("\nFix: {fix}"));
    format!("{}{quote}{fix}", finding.issue)
}

fn title(report: &Report) -> String {
    let over_blocks =
        report.ship_over_blocks().map_or_else(String::new, |over_blocks| format!(" {over_blocks}"));
    let basis = report.basis().map_or_else(String::new, |basis| format!(" ({basis})"));
    format!("council: {}{over_blocks}{basis}", report.verdict_word())
}

fn verdict(report: &Report) -> String {
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
