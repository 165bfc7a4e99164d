//! Notes of reports that are not of their verdict.

use quorate_kernel::history::History;
use quorate_kernel::redact::REDACTED;

/// The note about a run whose answers were erased.
pub fn erased_note(history: &History) -> Option<String> {
    let records = history.erased.records;
    (records > 0).then(|| {
        format!("Answers of this run were erased; the ledger has the hashes of {records} records, and what it came to.")
    })
}

/// The note about what of a text, as it is recorded, was withheld from the members.
pub(super) fn withheld_note(text: &str) -> Option<String> {
    /// More would fill the screen.
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
