//! Notes of reports that do not concern the verdict.

use quorate_kernel::history::History;
use quorate_kernel::redact::REDACTED;
use quorate_protocol::Json;
use quorate_protocol::answers::deliberator::NOT_JUDGED;

use super::Deliberator;

/// The maximum number of parts that one member lists.
const MAX_PARTS: usize = 20;

/// The note about a run whose answers were erased.
pub fn erased_note(history: &History) -> Option<String> {
    let records = history.erased.records;
    (records > 0).then(|| {
        format!("Answers of this run were erased; the ledger keeps the hashes of {records} records, and the outcome.")
    })
}

/// The notes about the parts of a text that members say they did not judge.
pub(super) fn not_judged_notes(deliberators: &[Deliberator]) -> Vec<String> {
    let mut parts: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut answered = 0;
    for deliberator in deliberators {
        let Some(answer) = deliberator.round2.answer.as_ref().or(deliberator.round1.answer.as_ref()) else {
            continue;
        };
        answered += 1;
        let listed = answer.get(NOT_JUDGED).and_then(Json::as_array).into_iter().flatten();
        for part in listed.filter_map(Json::as_str).take(MAX_PARTS) {
            match parts.iter_mut().find(|(known, _)| *known == part) {
                Some((_, by)) => by.push(&deliberator.id),
                None => parts.push((part, vec![&deliberator.id])),
            }
        }
    }
    let note = |(part, by): (&str, Vec<&str>)| match by.len() == answered {
        true => format!("Not judged: {part}."),
        false => format!("Not judged by {}: {part}.", by.join(", ")),
    };
    parts.into_iter().map(note).collect()
}

/// The note on the parts of the recorded text that were withheld from the members.
pub(super) fn withheld_note(text: &str) -> Option<String> {
    /// A longer list would fill the screen.
    const LISTED: usize = 10;
    let lines: Vec<String> = (1..)
        .zip(text.lines())
        .filter(|(_, line)| line.contains(REDACTED))
        .map(|(number, _)| number.to_string())
        .collect();
    let more = lines.len().saturating_sub(LISTED);
    let listed = lines[..lines.len() - more].join(", ");
    let noun = if lines.len() == 1 { "line" } else { "lines" };
    let and_more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!lines.is_empty()).then(|| {
        format!("Not judged: what looks like a secret in {noun} {listed}{and_more}; members do not see it.")
    })
}
