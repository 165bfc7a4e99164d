//! What each deliberator asks for in its own words, beside the findings that point at places: its brief, what it lists as
//! wrong, its notes.

use quorate_protocol::Json;
use quorate_protocol::answers::deliberator::issues;

use super::paint::line;
use super::wording::cut;
use crate::service::report::{Answer, Deliberator, Report};

/// How much of one text is shown.
const SHOWN: usize = 600;

/// Who says it, and what, in roster order. Where answers are counted by rule they repeat the findings, and nothing is said.
pub(super) fn asks(report: &Report) -> Vec<(String, String)> {
    if report.is_by_rule() {
        return Vec::new();
    }
    report.deliberators.iter().flat_map(|one| of(report, one)).collect()
}

fn of(report: &Report, one: &Deliberator) -> Vec<(String, String)> {
    // What it said last counts; what it said first stands where it has not said it again.
    let answers = [&one.round2, &one.round1];
    let text = |key: &str| answers.into_iter().find_map(|answer| said(answer, key));
    let brief = text("revision_brief")
        .filter(|brief| report.revision_brief.as_deref().is_none_or(|whole| !line(whole).contains(&**brief)));
    let listed = answers.into_iter().map(listed).find(|all| !all.is_empty()).unwrap_or_default();
    let who = line(&one.id);
    let mut all = Vec::new();
    all.extend(brief.map(|brief| (who.clone(), brief)));
    all.extend(listed.into_iter().map(|issue| (format!("{who}, issue"), issue)));
    all.extend(text("notes").map(|notes| (format!("{who}, notes"), notes)));
    all.into_iter().map(|(who, what)| (who, cut(&what, SHOWN))).collect()
}

fn said(answer: &Answer, key: &str) -> Option<String> {
    answer.field(key).and_then(Json::as_str).map(line).filter(|text| !text.is_empty())
}

fn listed(answer: &Answer) -> Vec<String> {
    let answer = answer.answer.clone().map(Json::Object);
    answer.iter().flat_map(issues).map(|issue| line(&issue)).collect()
}
