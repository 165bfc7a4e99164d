//! Divergences: where and how the ledger differs from what was recorded.

use std::collections::BTreeMap;
use std::fmt;

use quorate_protocol::Name;
use schemars::JsonSchema;
use serde::Serialize;

/// The most divergences in a report. All are counted.
const MAX_KEPT: usize = 100;

/// The type of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DivergenceKind {
    /// It exists but differs.
    Changed,
    /// It is gone.
    Removed,
    /// It is at another place.
    Reordered,
    /// Everything from here on is gone.
    Cut,
    /// It was not recorded.
    Inserted,
}

/// The word in reports.
impl fmt::Display for DivergenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The part of the ledger that differs, in order: a divergence of a later part may be a consequence of one in an
/// earlier part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LedgerPart {
    Record,
    /// The signature of a record.
    Signature,
    Checkpoint,
    /// The records, compared with a checkpoint that a witness keeps.
    Witness,
    /// The records, compared with the saved copy of the last checkpoint that the ledger's own key signed.
    #[serde(rename = "kept checkpoint")]
    LocalCheckpoint,
    /// The stored hashes of the tree.
    Tree,
    /// A text that records name by its hash.
    Body,
    /// The text that a run's members were shown in addition to its artifact. No record was altered.
    Input,
    /// A table derived from the records.
    Index,
    /// `council_log.jsonl`.
    Log,
    /// The index of `council_log.jsonl`.
    #[serde(rename = "log index")]
    LogIndex,
    /// A conversation outside of the ledger whose turns the ledger has recorded.
    Conversation,
}

/// The word in reports.
impl fmt::Display for LedgerPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A difference between the ledger and what was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Divergence {
    #[schemars(with = "String")]
    pub kind: DivergenceKind,
    #[schemars(with = "String")]
    pub part: LedgerPart,
    /// The run or stream, if known.
    pub run: Option<Name>,
    /// The record's number in it, if the divergence is about one record.
    pub n: Option<u64>,
    /// The record, as `run/n`.
    pub record: Option<String>,
    /// The record's position in the ledger, from 1.
    #[serde(rename = "place")]
    pub seq: Option<u64>,
    /// The last possible position, if it is not known exactly.
    #[serde(rename = "until")]
    pub last_seq: Option<u64>,
    /// The problem, in words.
    pub what: String,
}

impl Divergence {
    /// A divergence of a part, without a location.
    pub fn new(kind: DivergenceKind, part: LedgerPart, what: impl Into<String>) -> Self {
        let what = what.into();
        Divergence { kind, part, run: None, n: None, record: None, seq: None, last_seq: None, what }
    }

    pub(super) fn changed(part: LedgerPart, what: impl Into<String>) -> Self {
        Divergence::new(DivergenceKind::Changed, part, what)
    }

    pub(super) fn removed(part: LedgerPart, what: impl Into<String>) -> Self {
        Divergence::new(DivergenceKind::Removed, part, what)
    }

    pub(super) fn reordered(part: LedgerPart, what: impl Into<String>) -> Self {
        Divergence::new(DivergenceKind::Reordered, part, what)
    }

    pub(super) fn cut(part: LedgerPart, what: impl Into<String>) -> Self {
        Divergence::new(DivergenceKind::Cut, part, what)
    }

    pub(super) fn inserted(part: LedgerPart, what: impl Into<String>) -> Self {
        Divergence::new(DivergenceKind::Inserted, part, what)
    }

    /// Sets the record and its position.
    pub(super) fn at(self, run: &str, n: u64, seq: u64) -> Self {
        self.at_record(run, n).at_seq(seq)
    }

    pub(super) fn at_record(mut self, run: &str, n: u64) -> Self {
        (self.run, self.n, self.record) = (Some(run.into()), Some(n), Some(format!("{run}/{n}")));
        self
    }

    /// Sets the run or stream.
    #[must_use]
    pub fn of_run(mut self, run: &str) -> Self {
        self.run = Some(run.into());
        self
    }

    /// Sets the position.
    pub(super) fn at_seq(mut self, place: u64) -> Self {
        self.seq = Some(place);
        self
    }

    /// Sets the last possible position.
    pub(super) fn up_to_seq(mut self, until: u64) -> Self {
        self.last_seq = self.seq.filter(|place| *place < until).map(|_| until);
        self
    }
}

/// `changed: record r1/3 at place 7: its data is not what its head names`.
impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.part)?;
        match (&self.run, self.n) {
            (Some(run), Some(n)) => write!(f, " {run}/{n}")?,
            (Some(run), None) => write!(f, " of {run}")?,
            _ => {}
        }
        match (self.seq, self.last_seq) {
            (Some(place), Some(until)) => write!(f, " at places {place} to {until}")?,
            (Some(place), None) => write!(f, " at place {place}")?,
            _ => {}
        }
        write!(f, ": {}", self.what)
    }
}

/// Divergences in the order of their positions.
#[derive(Debug, Default)]
pub(super) struct Findings {
    divergences: BTreeMap<(u64, LedgerPart, u64), Divergence>,
    count: u64,
}

impl Findings {
    /// Adds a divergence, unless there is an equal one about the same record.
    pub(super) fn add(&mut self, divergence: Divergence) {
        let seq = divergence.seq.unwrap_or(u64::MAX);
        if divergence.part == LedgerPart::Record && seq != u64::MAX && self.has_record_at(seq) {
            return;
        }
        self.divergences.insert((seq, divergence.part, self.count), divergence);
        self.count += 1;
        if self.divergences.len() > MAX_KEPT {
            self.divergences.pop_last();
        }
    }

    /// Counts a divergence without naming it.
    pub(super) fn count_unnamed(&mut self) {
        self.count += 1;
    }

    /// Whether there is a divergence about the record at this position.
    pub(super) fn has_record_at(&self, place: u64) -> bool {
        self.divergences
            .range((place, LedgerPart::Record, 0)..=(place, LedgerPart::Record, u64::MAX))
            .next()
            .is_some()
    }

    /// The kept divergences, and the total number.
    pub(super) fn into_parts(self) -> (Vec<Divergence>, u64) {
        (self.divergences.into_values().collect(), self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::{Divergence, DivergenceKind, Findings, LedgerPart, MAX_KEPT};

    fn at(part: LedgerPart, seq: u64) -> Divergence {
        Divergence::new(DivergenceKind::Changed, part, "it differs").at_seq(seq)
    }

    #[test]
    fn a_record_is_reported_once_and_everything_else_each_time() {
        let mut findings = Findings::default();
        for divergence in [
            at(LedgerPart::Record, 3),
            at(LedgerPart::Record, 3),
            at(LedgerPart::Signature, 3),
            at(LedgerPart::Signature, 3),
        ] {
            findings.add(divergence);
        }
        assert_eq!(findings.count, 3);
        assert!(findings.has_record_at(3) && !findings.has_record_at(2) && !findings.has_record_at(4));
        // Records with unknown positions are different ones.
        for _ in 0..2 {
            findings.add(Divergence::new(DivergenceKind::Removed, LedgerPart::Record, "it is not there"));
        }
        let (kept, count) = findings.into_parts();
        assert_eq!((kept.len(), count), (5, 5));
    }

    #[test]
    fn the_first_ones_by_place_are_kept_and_all_are_counted() {
        let mut findings = Findings::default();
        for seq in (1..=MAX_KEPT as u64 + 7).rev() {
            findings.add(at(LedgerPart::Signature, seq));
        }
        let (kept, count) = findings.into_parts();
        assert_eq!(count, MAX_KEPT as u64 + 7);
        let seqs: Vec<u64> = kept.iter().filter_map(|kept| kept.seq).collect();
        assert_eq!(seqs, (1..=MAX_KEPT as u64).collect::<Vec<_>>());
    }

    #[test]
    fn a_divergence_names_what_it_is_about() {
        let named = |divergence: Divergence| (divergence.record.clone(), divergence.to_string());
        let whole = Divergence::new(DivergenceKind::Cut, LedgerPart::Log, "it is gone");
        assert_eq!(named(whole.clone()), (None, "cut: log: it is gone".to_owned()));
        assert_eq!(named(whole.clone().of_run("r1")), (None, "cut: log of r1: it is gone".to_owned()));
        let record = whole.at_record("r1", 3).at_seq(7);
        assert_eq!(
            named(record.clone().up_to_seq(9)),
            (Some("r1/3".to_owned()), "cut: log r1/3 at places 7 to 9: it is gone".to_owned())
        );
        for until in [6, 7] {
            assert_eq!(record.clone().up_to_seq(until).last_seq, None, "one position is not a range");
        }
    }
}
