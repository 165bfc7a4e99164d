//! Retention of members' answers (D4, D5): the policy in a run's first record, the records that hold a person's or member's
//! words, and the texts that a record names.
//!
//! Only bodies are erased. A record's head stays, with the body's hash: chain, tree, signatures and proofs do not change.

mod holds;
mod plan;
pub(crate) mod rules;
mod scan;

use std::collections::BTreeSet;

use quorate_kernel::ports::ledger::Kind;
use quorate_kernel::record::RunOpened;
use quorate_protocol::Json;
use serde_json::Map;

pub use holds::LegalHold;
pub use plan::{Plan, PlannedErasure, Settings};
pub(crate) use plan::{erasure_target, runs_on_hold};

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 3_600_000;

/// How long the bodies of a run are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    Forever,
    /// So many days from its end on (D4).
    Days(u32),
    /// Until it ends (D5).
    UntilEnd,
}

impl Period {
    /// What a run's first record says. `unsaid` is for how many days bodies are kept where it says nothing; `None` is for
    /// ever.
    pub fn from_opened(opened: &RunOpened, unsaid: Option<u32>) -> Period {
        let audit = opened.audit.as_ref();
        let days = audit.and_then(|audit| audit.retention_days).or(unsaid);
        match (audit.is_some_and(|audit| audit.keep_consultations == Some(false)), days) {
            (true, _) => Period::UntilEnd,
            (false, Some(days)) => Period::Days(days),
            (false, None) => Period::Forever,
        }
    }

    /// Whether bodies of what ended then are not to be kept any more. Times are milliseconds since the Unix epoch.
    pub fn has_expired(self, ended_ms: i64, now_ms: i64) -> bool {
        match self {
            Period::Forever => false,
            Period::Days(days) => rules::is_old_enough(days, ended_ms, now_ms),
            Period::UntilEnd => true,
        }
    }

    /// Why bodies are erased, as the record of it says: `retention` or `consultations_off`.
    pub fn reason(self) -> &'static str {
        match self {
            Period::Forever | Period::Days(_) => "retention",
            Period::UntilEnd => "consultations_off",
        }
    }

    /// The days, where they are counted.
    pub fn days(self) -> Option<u32> {
        match self {
            Period::Days(days) => Some(days),
            Period::Forever | Period::UntilEnd => None,
        }
    }
}

/// The kinds of record that hold a member's or person's words.
pub(crate) const ANSWER_KINDS: [Kind; 4] =
    [Kind::Attempt, Kind::Consultation, Kind::Gathered, Kind::Violation];

/// Whether a record of this kind holds a person's or a member's own words: an answer, a text that was gathered, words
/// that touched a locked trait, a custom rule's results. The outcome of a run is not among them.
fn has_answers(kind: &str, data: &Map<String, Json>) -> bool {
    ANSWER_KINDS.iter().any(|answer_kind| answer_kind.as_str() == kind)
        || (kind == Kind::Rule.as_str() && data.contains_key("output"))
}

/// The SHA-256 hashes in a text, in lower-case hexadecimal.
pub(crate) fn hashes_in(text: &str) -> impl Iterator<Item = &str> {
    const DIGITS: usize = 64;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let runs = text.split(move |one: char| !u8::try_from(one).is_ok_and(is_digit));
    let long = runs.filter(|run| run.len() >= DIGITS);
    // Digits that stand right before or after a hash could belong to it.
    long.flat_map(|run| (0..=run.len() - DIGITS).map(move |at| &run[at..at + DIGITS]))
}

/// Numbers in a row as ranges, both ends included.
fn to_ranges(numbers: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match all.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => all.push((*number, *number)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use quorate_kernel::record;
    use serde_json::json;

    use super::*;

    fn object(value: Json) -> Map<String, Json> {
        quorate_kernel::consultation::object(value)
    }

    #[test]
    fn a_posture_counts_before_what_is_said_for_all() {
        // D4, D5
        let opened = |audit| record::read(&object(json!({"audit": audit}))).expect("it is read");
        let keep = |audit: Json| Period::from_opened(&opened(audit), Some(90));
        assert_eq!(keep(json!({"retention_days": 30, "keep_consultations": true})), Period::Days(30));
        assert_eq!(keep(json!({"retention_days": 30, "keep_consultations": false})), Period::UntilEnd);
        assert_eq!(keep(json!({"retention_days": null, "keep_consultations": true})), Period::Days(90));
        assert_eq!(Period::from_opened(&RunOpened::default(), None), Period::Forever);
    }

    #[test]
    fn days_are_counted_from_the_end() {
        // D4
        let end = 1_000;
        assert!(!Period::Days(2).has_expired(end, end + 2 * DAY_MS - 1));
        assert!(Period::Days(2).has_expired(end, end + 2 * DAY_MS));
        assert!(Period::UntilEnd.has_expired(end, end));
        assert!(!Period::Forever.has_expired(end, i64::MAX));
        assert!(!Period::Days(u32::MAX).has_expired(0, 4_102_444_800_000), "no number of days overflows");
    }

    #[test]
    fn a_hash_is_found_wherever_it_stands() {
        let hash = "59b593671225a5c887b2de88dbf7b3fee2af6a93aa59d509b2fd354990b0d52f";
        for text in
            [format!("\"{hash}\""), format!("sha256:{hash}."), format!("ab{hash}0"), format!("ß{hash}é")]
        {
            assert!(hashes_in(&text).any(|found| found == hash), "{text}");
        }
        assert_eq!(hashes_in(&hash[1..]).count(), 0);
    }

    #[test]
    fn numbers_in_a_row_are_one_range() {
        assert_eq!(to_ranges(&BTreeSet::from([2, 3, 4, 7, 9, 10])), [(2, 4), (7, 7), (9, 10)]);
    }
}
