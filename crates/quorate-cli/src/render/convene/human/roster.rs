//! Members as text for a terminal: their assessments, missing answers, and members that were not asked.

use quorate_manifest::assembly::Mode;

use super::super::super::layout::{hanging, prose, table};
use super::super::super::paint::{Paint, one_line};
use super::super::super::wording::{amount, status, truncate};
use super::super::bars;
use super::super::phrases::{assessment, last_status, names};
use super::heading;
use super::vote::vote_of;
use quorate::service::convene::report::{Member, Report};

/// The longest shown concern in a table, in characters.
const CONCERN: usize = 240;
const SHOWN: usize = 60;
/// The most unasked members named.
const NAMED: usize = 40;

/// All members that were asked, with their assessments.
pub(super) fn assessments(report: &Report, width: usize) -> String {
    let asked: Vec<&Member> =
        report.members.iter().filter(|member| !member.consultations.is_empty()).collect();
    let selected = gravest(&asked);
    let row = |member: &&Member| {
        let (bar, concern) = match assessment(member) {
            Some(assessment) => {
                let evidence = match assessment.evidence {
                    0 => String::new(),
                    some => format!(" ({})", amount(some as u64, "quote")),
                };
                (bars::severity(assessment.severity), truncate(&assessment.concern, CONCERN) + &evidence)
            }
            None => (Paint::Absent.on(&status(&one_line(&member.status))), String::new()),
        };
        vec![Paint::Strong.on(&one_line(&member.id)), one_line(&member.role), phase(member), bar, concern]
    };
    let rows: Vec<Vec<String>> = selected.iter().map(row).collect();
    let mut out = String::new();
    if !rows.is_empty() {
        out =
            heading("Members") + &table(&["member", "role", "phase", "severity", "concern"], rows, 2, width);
    }
    out.push_str(&more(report, asked.len() - selected.len(), width));
    out.push_str(&unasked(report, width));
    out
}

/// The answers so far, of an undecided run.
pub(super) fn answers(report: &Report, width: usize) -> String {
    let asked: Vec<&Member> =
        report.members.iter().filter(|member| !member.consultations.is_empty()).collect();
    if asked.is_empty() {
        return String::new();
    }
    let row = |member: &&Member| {
        let text = member.answer().and_then(vote_of).unwrap_or_else(|| last_status(member));
        vec![Paint::Strong.on(&one_line(&member.id)), text]
    };
    let rows = asked.iter().take(SHOWN).map(row).collect();
    let remainder = more(report, asked.len().saturating_sub(SHOWN), width);
    heading("Answers so far") + &table(&["member", "answer"], rows, 2, width) + &remainder
}

/// Selects the members with the highest severity, and those without an answer, in roster order.
fn gravest<'r>(asked: &[&'r Member]) -> Vec<&'r Member> {
    let mut places: Vec<usize> = (0..asked.len()).collect();
    places.sort_by_key(|at| {
        std::cmp::Reverse(assessment(asked[*at]).map_or(u64::MAX, |assessment| assessment.severity))
    });
    places.truncate(SHOWN);
    places.sort_unstable();
    places.into_iter().map(|at| asked[at]).collect()
}

/// How many more there are than shown.
pub(super) fn more(report: &Report, number: usize, width: usize) -> String {
    if number == 0 {
        return String::new();
    }
    let run = one_line(&report.run);
    let text = format!(
        "… and {}: `quorate show {run} --format json` lists all.",
        amount(number as u64, "more member")
    );
    prose(&text, 2, width)
}

/// The members that were not asked, with reasons.
pub(super) fn unasked(report: &Report, width: usize) -> String {
    let members: Vec<&Member> =
        report.members.iter().filter(|member| member.consultations.is_empty()).collect();
    if members.is_empty() {
        return String::new();
    }
    let reasons: Vec<String> = members.iter().map(|member| because(report.mode, member)).collect();
    let reasons = names(&reasons.iter().map(String::as_str).collect::<Vec<_>>(), NAMED);
    format!("\n{}", hanging(&Paint::Faint.on("not asked:"), &reasons, 2, width))
}

fn because(mode: Mode, member: &Member) -> String {
    match (mode, &member.phase, &member.classes) {
        (Mode::Advisory, Some(phase), _) => format!("{} (phase {phase})", member.id),
        (Mode::Advisory, None, _) => format!("{} (in no phase)", member.id),
        (Mode::Voting, _, Some(classes)) if classes.is_empty() => format!("{} (votes on nothing)", member.id),
        (Mode::Voting, _, Some(classes)) => format!("{} (votes on {})", member.id, classes.join("/")),
        _ => member.id.clone(),
    }
}

fn phase(member: &Member) -> String {
    member.phase.as_deref().map_or_else(|| "–".to_owned(), one_line)
}
