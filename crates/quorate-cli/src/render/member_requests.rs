//! Each deliberator's own requests besides findings with a place: its brief, its listed issues, its notes.

use quorate_protocol::Json;
use quorate_protocol::answers::deliberator::issues;

use super::paint::one_line;
use super::wording::truncate;
use quorate::service::report::{Answer, Deliberator, Report};

/// The longest shown text, in characters.
const MAX_CHARS: usize = 600;

/// Member and request, in roster order. Rubric answers repeat their findings, so they have none.
pub(super) fn member_requests(report: &Report) -> Vec<(String, String)> {
    if report.is_by_rule() {
        return Vec::new();
    }
    report.deliberators.iter().flat_map(|deliberator| requests_of(report, deliberator)).collect()
}

fn requests_of(report: &Report, deliberator: &Deliberator) -> Vec<(String, String)> {
    // A text of the first answer is shown only if the second answer has none.
    let answers = [&deliberator.round2, &deliberator.round1];
    let text = |key: &str| answers.into_iter().find_map(|answer| text_field(answer, key));
    let brief = text("revision_brief").filter(|brief| {
        report.revision_brief.as_deref().is_none_or(|report_brief| !one_line(report_brief).contains(&**brief))
    });
    let listed = answers.into_iter().map(listed_issues).find(|all| !all.is_empty()).unwrap_or_default();
    let member = one_line(&deliberator.id);
    let mut all = Vec::new();
    all.extend(brief.map(|brief| (member.clone(), brief)));
    all.extend(listed.into_iter().map(|issue| (format!("{member}, issue"), issue)));
    all.extend(text("notes").map(|notes| (format!("{member}, notes"), notes)));
    all.into_iter().map(|(member, text)| (member, truncate(&text, MAX_CHARS))).collect()
}

fn text_field(answer: &Answer, key: &str) -> Option<String> {
    answer.field(key).and_then(Json::as_str).map(one_line).filter(|text| !text.is_empty())
}

fn listed_issues(answer: &Answer) -> Vec<String> {
    let answer = answer.answer.clone().map(Json::Object);
    answer.iter().flat_map(issues).map(|issue| one_line(&issue)).collect()
}
