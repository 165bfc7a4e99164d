//! Divergences: where and how the ledger differs from what was recorded.

use std::collections::BTreeMap;
use std::fmt;

use quorate_protocol::Name;

/// How many divergences are kept. All are counted.
const MAX_KEPT: usize = 100;

/// How something differs from what was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
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

impl Kind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Changed => "changed",
            Kind::Removed => "removed",
            Kind::Reordered => "reordered",
            Kind::Cut => "cut",
            Kind::Inserted => "inserted",
        }
    }
}

/// The part of the ledger that differs. Later ones may be consequences of earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Record,
    /// The signature of a record.
    Signature,
    Checkpoint,
    /// The records against a checkpoint that a witness keeps.
    Witness,
    /// The records against the last checkpoint that the ledger's own key signed, as it is kept.
    LocalCheckpoint,
    /// The stored hashes of the tree.
    Tree,
    /// A text that records name by its hash.
    Body,
    /// The text that a run's members were shown, beside its artifact. No record was altered.
    Input,
    /// A table that follows from the records.
    Index,
    /// `council_log.jsonl`.
    Log,
    /// What is counted of `council_log.jsonl`.
    LogIndex,
    /// A conversation outside of the ledger, whose turns it has recorded.
    Conversation,
}

impl Part {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Record => "record",
            Part::Signature => "signature",
            Part::Checkpoint => "checkpoint",
            Part::Witness => "witness",
            Part::LocalCheckpoint => "kept checkpoint",
            Part::Tree => "tree",
            Part::Body => "body",
            Part::Input => "input",
            Part::Index => "index",
            Part::Log => "log",
            Part::LogIndex => "log index",
            Part::Conversation => "conversation",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    pub kind: Kind,
    pub part: Part,
    /// The run or stream, where one is known.
    pub run: Option<Name>,
    /// The record's number in it, where it is about one.
    pub n: Option<u64>,
    /// The record's place in the ledger, from 1.
    pub seq: Option<u64>,
    /// The last place that it may be about, where it cannot be narrowed down to one.
    pub last_seq: Option<u64>,
    /// What is wrong, in words.
    pub what: String,
}

impl Divergence {
    /// Of a part of the ledger, without details.
    pub(super) fn new(kind: Kind, part: Part, what: impl Into<String>) -> Self {
        Divergence { kind, part, run: None, n: None, seq: None, last_seq: None, what: what.into() }
    }

    /// What it is about, as records are named: `run` or `run/n`.
    pub fn record(&self) -> Option<String> {
        let run = self.run.as_deref()?;
        Some(self.n.map_or_else(|| run.to_owned(), |n| format!("{run}/{n}")))
    }

    pub(super) fn at_record(mut self, run: &str, n: u64) -> Self {
        (self.run, self.n) = (Some(run.into()), Some(n));
        self
    }

    /// About this run or stream.
    pub(super) fn of_run(mut self, run: &str) -> Self {
        self.run = Some(run.into());
        self
    }

    /// At this place of the ledger.
    pub(super) fn at_seq(mut self, place: u64) -> Self {
        self.seq = Some(place);
        self
    }

    /// At one of the places up to this one.
    pub(super) fn up_to_seq(mut self, until: u64) -> Self {
        self.last_seq = self.seq.filter(|place| *place < until).map(|_| until);
        self
    }
}

/// `changed: record r1/3 at place 7: its data is not what its head names`.
impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.part.as_str())?;
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

/// Divergences in the order of their places.
#[derive(Debug, Default)]
pub(super) struct Findings {
    divergences: BTreeMap<(u64, Part, u64), Divergence>,
    count: u64,
}

impl Findings {
    /// Takes one. What is said of a record at a place is said once.
    pub(super) fn add(&mut self, divergence: Divergence) {
        let seq = divergence.seq.unwrap_or(u64::MAX);
        if divergence.part == Part::Record && seq != u64::MAX && self.has_record_at(seq) {
            return;
        }
        self.divergences.insert((seq, divergence.part, self.count), divergence);
        self.count += 1;
        if self.divergences.len() > MAX_KEPT {
            self.divergences.pop_last();
        }
    }

    /// Whether something is said of the record at a place.
    pub(super) fn has_record_at(&self, place: u64) -> bool {
        self.divergences.range((place, Part::Record, 0)..=(place, Part::Record, u64::MAX)).next().is_some()
    }

    /// The kept ones, and the total number.
    pub(super) fn into_parts(self) -> (Vec<Divergence>, u64) {
        (self.divergences.into_values().collect(), self.count)
    }
}

#[cfg(test)]
mod tests;
