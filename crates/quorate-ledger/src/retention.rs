//! Retention of members' answers (D4, D5): the policy in a run's first record, the records that hold a person's or member's
//! words, and the texts that a record names.
//!
//! Only bodies are erased. A record's head stays, with the body's hash: chain, tree, signatures and proofs do not
//! change. Planning and verification share the rules, so that verification accepts every erasure that this program
//! makes.

mod plan;

use std::collections::BTreeSet;
use std::ops::Range;

use quorate_kernel::clock::{as_rfc3339, parse_rfc3339};
use quorate_kernel::ports::ledger::{Durability, Entry, Kind, LedgerError};
use quorate_kernel::record::{self, Erased, Held, RecordRange, RunOpened};
use quorate_protocol::{Json, Name};
use serde::Serialize;
use serde_json::Map;

use crate::record::Head;
use crate::signing::SecretKey;
use crate::store::connection::Transaction;
use crate::store::engine::{Column, sql};
use crate::store::{STREAM, Store};

pub use plan::{ErasurePlan, PlannedErasure, RetentionSettings};
pub(crate) use plan::{erasure_target, runs_on_hold};

/// Milliseconds per day.
const DAY_MS: i64 = 24 * 3_600_000;

/// How long the bodies of a run are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Period {
    #[default]
    Forever,
    /// A number of days after its end (D4).
    Days(u32),
    /// Until it ends (D5).
    UntilEnd,
}

impl Period {
    /// The period in a run's first record. `unsaid` applies if the record has none: a number of days, or `None` for
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

    /// Whether the period is over for bodies of a run that ended at `ended_ms`. Times are milliseconds since the Unix
    /// epoch.
    pub fn has_expired(self, ended_ms: i64, now_ms: i64) -> bool {
        match self {
            Period::Forever => false,
            Period::Days(days) => is_old_enough(days, ended_ms, now_ms),
            Period::UntilEnd => true,
        }
    }

    /// The reason in the record of an erasure: `retention` or `consultations_off`.
    pub fn reason(self) -> &'static str {
        match self {
            Period::Forever | Period::Days(_) => "retention",
            Period::UntilEnd => "consultations_off",
        }
    }

    /// The number of days, if the period has one.
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

/// Whether records of this kind contain a person's or member's own words: an answer, a gathered text, words that
/// touched a locked trait, a custom rule's results. A run's outcome is not included.
fn has_answers(kind: &str, data: &str) -> bool {
    let read = || serde_json::from_str::<Map<String, Json>>(data).unwrap_or_default();
    ANSWER_KINDS.iter().any(|answer_kind| answer_kind.as_str() == kind)
        || (kind == Kind::Rule.as_str() && read().contains_key("output"))
}

/// The SHA-256 hashes in a text, in lower-case hexadecimal.
pub(crate) fn hashes_in(text: &str) -> impl Iterator<Item = &str> {
    const DIGITS: usize = 64;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let runs = text.split(move |one: char| !u8::try_from(one).is_ok_and(is_digit));
    let long = runs.filter(|run| run.len() >= DIGITS);
    // Digits directly before or after could belong to a longer number.
    long.flat_map(|run| (0..=run.len() - DIGITS).map(move |at| &run[at..at + DIGITS]))
}

/// Merges consecutive numbers into inclusive ranges.
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

/// A run under a legal hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LegalHold {
    /// The run.
    pub run: Name,
    /// The start of the hold, in milliseconds since the Unix epoch.
    #[serde(rename = "since", serialize_with = "as_rfc3339")]
    pub since_ms: i64,
    /// The reason, if one was given.
    pub reason: Option<String>,
    /// The user who put the run on hold.
    pub by: String,
}

impl Store {
    /// Whether the run is on hold, so that nothing of it may be erased.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn is_on_hold(&self, run: &Name) -> Result<bool, LedgerError> {
        let statement = sql("SELECT run FROM held WHERE run = $1").bind(&**run);
        Ok(!self.rows(statement, &[Column::Text]).await?.is_empty())
    }

    /// The runs on hold, oldest hold first.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn holds(&self) -> Result<Vec<LegalHold>, LedgerError> {
        let held = self.rows(sql("SELECT run FROM held"), &[Column::Text]).await?;
        let statement = sql("SELECT head, data FROM record WHERE run = $1 AND kind = $2 ORDER BY n DESC");
        let statement = statement.bind(STREAM).bind(Kind::Held.as_str());
        let rows = self.rows(statement, &[Column::Text, Column::Text]).await?;
        let records: Vec<(i64, Held)> = rows
            .iter()
            .filter_map(|row| {
                let head: Head = serde_json::from_str(row.text(0)).ok()?;
                Some((parse_rfc3339(&head.at)?, serde_json::from_str(row.opt_text(1)?).ok()?))
            })
            .collect();
        let mut holds: Vec<LegalHold> = held
            .iter()
            .map(|row| {
                let run: Name = row.text(0).into();
                let last = records.iter().find(|(_, held)| *held.run == *run);
                LegalHold {
                    since_ms: last.map_or(0, |(at_ms, _)| *at_ms),
                    reason: last.and_then(|(_, held)| held.reason.clone()),
                    by: last.map(|(_, held)| held.by.clone()).unwrap_or_default(),
                    run,
                }
            })
            .collect();
        holds.sort_by(|a, b| (a.since_ms, &a.run).cmp(&(b.since_ms, &b.run)));
        Ok(holds)
    }

    /// Appends a record to the ledger's own stream: [`Kind::Held`] or [`Kind::Released`]. The ledger's key signs it.
    /// The record is durable when this returns.
    ///
    /// # Errors
    /// If the store does not append it.
    #[crate::boxed]
    pub async fn append_ledger_record(&self, entry: Entry, key: &SecretKey) -> Result<(), LedgerError> {
        let append = async |transaction: &mut Transaction<'_>| {
            transaction.append_ledger_records(vec![entry], key).await
        };
        self.write(Durability::Synced, append).await?;
        self.mark_appended();
        Ok(())
    }
}

/// The protocol name of a review, before its version.
const REVIEW_PREFIX: &str = "council/";

/// The retention of answers in a run's first record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatedPeriod {
    Explicit(Period),
    /// The record has none, so the workspace that recorded the run decides.
    WorkspaceDefault,
}

impl StatedPeriod {
    /// Reads a run's first record.
    pub(crate) fn from_opened(opened: &RunOpened) -> StatedPeriod {
        match Period::from_opened(opened, None) {
            Period::Forever if !is_assembly(opened) => StatedPeriod::WorkspaceDefault,
            keep => StatedPeriod::Explicit(keep),
        }
    }
}

/// Whether the run is an assembly, which keeps its answers for ever by default: its protocol is not a review.
fn is_assembly(opened: &RunOpened) -> bool {
    !opened.protocol.is_empty() && !opened.protocol.starts_with(REVIEW_PREFIX)
}

/// The content of an erasure's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Erasure {
    pub(crate) run: String,
    pub(crate) records: Vec<Range<u64>>,
    /// The texts, by SHA-256.
    pub(crate) texts: Vec<String>,
    /// The period in days; `None` if bodies are erased when the run ends.
    pub(crate) days: Option<u32>,
}

impl Erasure {
    /// Reads the body of a `ledger.erased` record.
    ///
    /// # Errors
    /// The reason why an erasure is not allowed, if its record does not name a run's record.
    pub(crate) fn from_data(data: &Map<String, Json>) -> Result<Erasure, String> {
        let Erased { run, records, bodies, reason, days } =
            record::read(data).map_err(|error| error.to_string())?;
        let run = run.ok_or("it names no run")?;
        match (reason.as_deref(), days) {
            (Some("retention"), Some(_)) | (Some("consultations_off"), None) => {}
            _ => return Err("it names no retention".to_owned()),
        }
        let records = records.and_then(|all| all.into_iter().map(RecordRange::range).collect::<Option<_>>());
        Ok(Erasure {
            run,
            records: records.ok_or("it does not name the records")?,
            texts: bodies.ok_or("it does not name the texts")?,
            days,
        })
    }
}

/// The state of a run, or of a conversation's stream, at its erasure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErasureTarget {
    /// `None` if its first record cannot be read.
    pub(crate) period: Option<StatedPeriod>,
    pub(crate) is_stream: bool,
    /// It has an outcome.
    pub(crate) is_decided: bool,
    /// The time of its end, in milliseconds since the Unix epoch; `None` for an open run.
    pub(crate) ended_ms: Option<i64>,
    pub(crate) held: bool,
    pub(crate) imported: bool,
}

/// Checks that answers of a run may be erased at a time.
///
/// # Errors
/// The reason why not.
pub(crate) fn check_allowed(erasure: &Erasure, subject: &ErasureTarget, at_ms: i64) -> Result<(), String> {
    let run = &erasure.run;
    if subject.held {
        return Err(format!("{run} is on hold"));
    }
    if subject.is_stream {
        // Each record has its own period.
        return match erasure.days {
            Some(_) if !subject.imported => Ok(()),
            _ => Err(format!("{run} is not a run, so its answers are erased by age only")),
        };
    }
    match subject.period {
        None => Err(format!("the first record of {run} has no retention")),
        Some(StatedPeriod::Explicit(Period::Forever)) => Err(format!("{run} keeps its answers for ever")),
        Some(StatedPeriod::WorkspaceDefault) if subject.imported => {
            Err(format!("{run} is imported and kept for ever"))
        }
        Some(StatedPeriod::Explicit(Period::UntilEnd)) => match (erasure.days, subject.is_decided) {
            (None, true) => Ok(()),
            (None, false) => Err(format!("{run} has no outcome")),
            (Some(_), _) => Err(format!("{run} keeps its answers until it ends, not for a number of days")),
        },
        Some(StatedPeriod::Explicit(Period::Days(days))) if erasure.days != Some(days) => {
            Err(format!("{run} keeps its answers for {days} days"))
        }
        Some(StatedPeriod::Explicit(Period::Days(_)) | StatedPeriod::WorkspaceDefault) => {
            match (erasure.days, subject.ended_ms) {
                (None, _) => Err(format!("{run} keeps its answers beyond its end")),
                (Some(_), None) => Err(format!("{run} has not ended")),
                (Some(days), Some(ended_ms)) => is_old_enough(days, ended_ms, at_ms)
                    .then_some(())
                    .ok_or_else(|| format!("{run} ended less than {days} days before")),
            }
        }
    }
}

/// Whether a run's text may be erased together with another run's answers. No other run may need it.
pub(crate) fn may_free_text(erasure: &Erasure, other: &ErasureTarget, at_ms: i64) -> bool {
    match other.period {
        _ if other.held => false,
        // An unknown run is checked elsewhere.
        None => true,
        Some(StatedPeriod::Explicit(Period::Forever)) => false,
        Some(StatedPeriod::Explicit(Period::UntilEnd)) => other.is_decided,
        Some(StatedPeriod::Explicit(Period::Days(days))) => {
            other.ended_ms.is_some_and(|ended_ms| is_old_enough(days, ended_ms, at_ms))
        }
        Some(StatedPeriod::WorkspaceDefault) if other.imported => false,
        // If the workspace's period applies, the erasure's record states that period.
        Some(StatedPeriod::WorkspaceDefault) => match (other.ended_ms, erasure.days) {
            (Some(_), None) => true,
            (Some(ended_ms), Some(_)) => ended_ms <= at_ms,
            (None, _) => false,
        },
    }
}

/// Whether this number of days has passed. Times are milliseconds since the Unix epoch.
pub(crate) fn is_old_enough(days: u32, since_ms: i64, now_ms: i64) -> bool {
    now_ms.saturating_sub(since_ms) >= i64::from(days) * DAY_MS
}

#[cfg(test)]
mod tests {
    use quorate_kernel::record;
    use serde_json::json;

    use super::*;

    fn object(value: Json) -> Map<String, Json> {
        quorate_kernel::attempts::object(value)
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

#[cfg(test)]
mod rules_tests {
    use serde_json::json;

    use super::*;

    fn erasure(data: Json) -> Result<Erasure, String> {
        Erasure::from_data(&quorate_kernel::attempts::object(data))
    }

    fn by(days: Option<u32>) -> Erasure {
        Erasure { run: "r".into(), records: std::iter::once(2..3).collect(), texts: Vec::new(), days }
    }

    #[test]
    fn an_erasure_names_run_records_texts_and_retention() {
        // D11
        let whole =
            json!({"run": "r", "records": [[2, 3], 7], "bodies": ["ab"], "reason": "retention", "days": 9});
        let read = erasure(whole.clone()).expect("whole");
        assert_eq!((read.records, read.days), (vec![2..4, 7..8], Some(9)));
        for (key, value) in [
            ("run", json!(null)),
            ("records", json!("all")),
            ("records", json!([[1, 2, 3]])),
            ("bodies", json!([1])),
            ("reason", json!("because")),
            ("reason", json!("consultations_off")),
            ("days", json!(null)),
            ("days", json!(-1)),
        ] {
            let mut other = whole.clone();
            other[key] = value;
            assert!(erasure(other.clone()).is_err(), "{other}");
        }
    }

    #[test]
    fn answers_go_when_hold_retention_and_time_allow_it() {
        // D4, D5, D11
        let run = ErasureTarget {
            period: Some(StatedPeriod::Explicit(Period::Days(2))),
            is_stream: false,
            is_decided: true,
            ended_ms: Some(0),
            held: false,
            imported: false,
        };
        let later = 2 * DAY_MS;
        let keeps = |keeps| ErasureTarget { period: Some(keeps), ..run };
        for (subject, days, at_ms, allowed) in [
            (run, Some(2), later, true),
            (run, Some(2), later - 1, false),
            (run, Some(1), later, false),
            (run, None, later, false),
            (ErasureTarget { held: true, ..run }, Some(2), later, false),
            (ErasureTarget { ended_ms: None, ..run }, Some(2), later, false),
            (ErasureTarget { period: None, ..run }, Some(2), later, false),
            (keeps(StatedPeriod::Explicit(Period::Forever)), Some(2), later, false),
            (keeps(StatedPeriod::Explicit(Period::UntilEnd)), None, 0, true),
            (keeps(StatedPeriod::Explicit(Period::UntilEnd)), Some(2), later, false),
            (
                ErasureTarget { is_decided: false, ..keeps(StatedPeriod::Explicit(Period::UntilEnd)) },
                None,
                0,
                false,
            ),
            (keeps(StatedPeriod::WorkspaceDefault), Some(1), later, true),
            (
                ErasureTarget { imported: true, ..keeps(StatedPeriod::WorkspaceDefault) },
                Some(1),
                later,
                false,
            ),
            (ErasureTarget { is_stream: true, period: None, ended_ms: None, ..run }, Some(1), 0, true),
            (ErasureTarget { is_stream: true, period: None, ended_ms: None, ..run }, None, 0, false),
        ] {
            assert_eq!(
                check_allowed(&by(days), &subject, at_ms).is_ok(),
                allowed,
                "{subject:?} {days:?} {at_ms}"
            );
        }
    }
}
