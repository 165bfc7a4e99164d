//! When answers may be erased (D4, D5, D11). Erasure and verification share these rules, so that one accepts what the other
//! does.

use std::ops::Range;

use quorate_kernel::record::RunOpened;
use quorate_kernel::record::{self, Erased, RecordRange};
use quorate_protocol::Json;
use serde_json::Map;

use super::{DAY_MS, Period};

/// The protocol name of a review, before its version.
const REVIEW_PREFIX: &str = "council/";

/// What a run's first record says of how long its answers are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatedPeriod {
    Explicit(Period),
    /// It says nothing, so the workspace that recorded it decides.
    WorkspaceDefault,
}

impl StatedPeriod {
    /// Of a run's first record.
    pub(crate) fn from_opened(opened: &RunOpened) -> StatedPeriod {
        match Period::from_opened(opened, None) {
            Period::Forever if !is_assembly(opened) => StatedPeriod::WorkspaceDefault,
            keep => StatedPeriod::Explicit(keep),
        }
    }
}

/// Whether a run is an assembly's, which keeps its answers forever where it does not say otherwise: any protocol but
/// a review's.
fn is_assembly(opened: &RunOpened) -> bool {
    !opened.protocol.is_empty() && !opened.protocol.starts_with(REVIEW_PREFIX)
}

/// What an erasure's record names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Erasure {
    pub(crate) run: String,
    pub(crate) records: Vec<Range<u64>>,
    /// The texts, by SHA-256.
    pub(crate) texts: Vec<String>,
    /// After this number of days; `None` if nothing was to be kept beyond the run's end.
    pub(crate) days: Option<u32>,
}

impl Erasure {
    /// Of the body of a `ledger.erased` record.
    ///
    /// # Errors
    /// What it does not name.
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

/// What is known of the run that something is erased of, or of a conversation's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErasureTarget {
    /// `None` where its first record cannot be read.
    pub(crate) period: Option<StatedPeriod>,
    pub(crate) is_stream: bool,
    /// It has an outcome.
    pub(crate) is_decided: bool,
    /// Its end, in milliseconds since the Unix epoch; `None` for an open run.
    pub(crate) ended_ms: Option<i64>,
    pub(crate) held: bool,
    pub(crate) imported: bool,
}

/// Whether answers of a run may be erased at a time.
///
/// # Errors
/// Why not, in words.
pub(crate) fn check_allowed(erasure: &Erasure, subject: &ErasureTarget, at_ms: i64) -> Result<(), String> {
    let run = &erasure.run;
    if subject.held {
        return Err(format!("{run} is on hold"));
    }
    if subject.is_stream {
        // Each of its records ages by itself.
        return match erasure.days {
            Some(_) if !subject.imported => Ok(()),
            _ => Err(format!("{run} is no run, and its answers are erased by their age alone")),
        };
    }
    match subject.period {
        None => Err(format!("the first record of {run} does not say how long answers are kept")),
        Some(StatedPeriod::Explicit(Period::Forever)) => Err(format!("{run} keeps its answers for ever")),
        Some(StatedPeriod::WorkspaceDefault) if subject.imported => {
            Err(format!("{run} is imported and kept for ever"))
        }
        Some(StatedPeriod::Explicit(Period::UntilEnd)) => match (erasure.days, subject.is_decided) {
            (None, true) => Ok(()),
            (None, false) => Err(format!("{run} has no outcome")),
            (Some(_), _) => Err(format!("{run} keeps its answers until it ends, and for no number of days")),
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

/// Whether a run's text may be erased with another run's answers: no other run may need it.
pub(crate) fn may_free_text(erasure: &Erasure, other: &ErasureTarget, at_ms: i64) -> bool {
    match other.period {
        _ if other.held => false,
        // What is not known is found elsewhere.
        None => true,
        Some(StatedPeriod::Explicit(Period::Forever)) => false,
        Some(StatedPeriod::Explicit(Period::UntilEnd)) => other.is_decided,
        Some(StatedPeriod::Explicit(Period::Days(days))) => {
            other.ended_ms.is_some_and(|ended_ms| is_old_enough(days, ended_ms, at_ms))
        }
        Some(StatedPeriod::WorkspaceDefault) if other.imported => false,
        // For how many days the workspace keeps it, the erasure says where it is by the workspace's word as well.
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
    use serde_json::json;

    use super::*;

    fn erasure(data: Json) -> Result<Erasure, String> {
        Erasure::from_data(&quorate_kernel::consultation::object(data))
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
