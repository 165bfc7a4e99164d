//! A member's vote as text for a terminal.

use quorate_protocol::Json;

use super::super::super::paint::{Paint, one_line};
use super::super::super::wording::truncate;

/// The longest shown rationale, in characters.
pub(super) const RATIONALE: usize = 240;

pub(super) fn paint_vote(vote: &str) -> String {
    match vote {
        "yes" => Paint::Good.on("yes"),
        "no" => Paint::Bad.on("no"),
        "missing" | "cancelled" => Paint::Absent.on(vote),
        vote => one_line(vote),
    }
}

/// The vote in a member's answer, before the count and before its rationale is checked against the locks.
pub(super) fn vote_of(answer: &serde_json::Map<String, Json>) -> Option<String> {
    let vote = answer.get("vote")?.as_str()?;
    let rationale = answer.get("rationale").and_then(Json::as_str).unwrap_or_default();
    Some(format!("{}: {}", paint_vote(vote), truncate(&one_line(rationale), RATIONALE)))
}
