//! What each deliberator asks for in its own words, beside the findings that point at places: its brief, what it lists as
//! wrong, its notes.

use quorate_protocol::Json;
use quorate_protocol::answers::deliberator::issues;

use super::paint::one_line;
use super::wording::truncate;
use quorate::service::report::{Answer, Deliberator, Report};

/// How much of one text is shown.
const MAX_CHARS: usize = 600;

/// Who says it, and what, in roster order. Where answers are counted by rule they repeat the findings, and nothing is said.
pub(super) fn member_requests(report: &Report) -> Vec<(String, String)> {
    if report.is_by_rule() {
        return Vec::new();
    }
    report.deliberators.iter().flat_map(|one| requests_of(report, one)).collect()
}

fn requests_of(report: &Report, one: &Deliberator) -> Vec<(String, String)> {
    // What it said last counts; what it said first stands where it has not said it again.
    let answers = [&one.round2, &one.round1];
    let text = |key: &str| answers.into_iter().find_map(|answer| text_field(answer, key));
    let brief = text("revision_brief").filter(|brief| {
        report.revision_brief.as_deref().is_none_or(|whole| !one_line(whole).contains(&**brief))
    });
    let listed = answers.into_iter().map(listed_issues).find(|all| !all.is_empty()).unwrap_or_default();
    let who = one_line(&one.id);
    let mut all = Vec::new();
    all.extend(brief.map(|brief| (who.clone(), brief)));
    all.extend(listed.into_iter().map(|issue| (format!("{who}, issue"), issue)));
    all.extend(text("notes").map(|notes| (format!("{who}, notes"), notes)));
    all.into_iter().map(|(who, what)| (who, truncate(&what, MAX_CHARS))).collect()
}

fn text_field(answer: &Answer, key: &str) -> Option<String> {
    answer.field(key).and_then(Json::as_str).map(one_line).filter(|text| !text.is_empty())
}

fn listed_issues(answer: &Answer) -> Vec<String> {
    let answer = answer.answer.clone().map(Json::Object);
    answer.iter().flat_map(issues).map(|issue| one_line(&issue)).collect()
}
