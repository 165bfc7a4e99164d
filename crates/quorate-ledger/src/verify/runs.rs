//! The state of each run during the walk: the end of its chain, its expected index row, its signers, and whether it is
//! open.

use std::ops::Range;
use std::sync::Arc;

use quorate_kernel::ports::ledger::Kind;
use quorate_kernel::record::{self, Override, RunIntent, RunOpened};
use quorate_protocol::Json;
use serde_json::Map;
use sha2::{Digest as _, Sha256};

use crate::merkle::Hash;
use crate::record::is_run_id;
use crate::retention::rules::{ErasureTarget, StatedPeriod};
use crate::signing::KeyId;
use crate::signing::run::RunKeyring;
use crate::store::index::{Change, RunRow};

/// A run or another stream.
pub(super) struct StreamState {
    /// The number of its next record.
    pub(super) next: u64,
    /// The leaf of its last one, and its place.
    pub(super) leaf: Option<Hash>,
    pub(super) seq: u64,
    /// The stored tree has that leaf at that place.
    pub(super) matches_tree: bool,
    /// The place of its first record, and whether that was walked over.
    pub(super) opened: Option<u64>,
    pub(super) phase: Phase,
    /// Its row in the index; the columns that never change as one hash. `None` where its first record opens no run.
    pub(super) row: Option<RunRow>,
    pub(super) columns: Hash,
    /// A body that its row is derived from is missing, or its rows before the walk are unknown.
    pub(super) row_unknown: bool,
    pub(super) signed: bool,
    pub(super) keyring: Option<Arc<RunKeyring>>,
    /// The first signature by a key that only the run itself vouches for: key, record, place.
    pub(super) unlisted_signer: Option<(KeyId, u64, u64)>,
    /// The first record whose time is not to be believed: why, its number, its place.
    pub(super) backdated: Option<(String, u64, u64)>,
    /// The retention in its first record; `None` where it is unknown.
    pub(super) period: Option<StatedPeriod>,
    /// When it last ended, in milliseconds since the Unix epoch.
    pub(super) ended_ms: Option<i64>,
    /// Of a stream that never ends: the records without body, with their times, and the last record that settles a turn.
    pub(super) bodiless_times: Vec<(u64, i64)>,
    pub(super) last_settled: u64,
    /// The first record without body of a kind that is never erased: its kind, number and place.
    pub(super) unexpected_bodiless: Option<(String, u64, u64)>,
    /// Skipped numbers that have not appeared since.
    pub(super) missing: Vec<Range<u64>>,
    pub(super) bodiless: Vec<Range<u64>>,
    pub(super) first_bodiless_seq: u64,
}

/// The phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is no run, but a stream that never ends.
    Stream,
    Open,
    /// It has an outcome.
    Decided,
    Ended,
    /// It began before the walk.
    Unknown,
}

impl StreamState {
    /// Before its first record.
    pub(super) fn new() -> Self {
        StreamState {
            next: 0,
            leaf: None,
            seq: 0,
            matches_tree: true,
            opened: None,
            phase: Phase::Stream,
            row: None,
            columns: Hash::default(),
            row_unknown: false,
            signed: false,
            keyring: None,
            unlisted_signer: None,
            backdated: None,
            period: None,
            ended_ms: None,
            bodiless_times: Vec::new(),
            last_settled: 0,
            unexpected_bodiless: None,
            missing: Vec::new(),
            bodiless: Vec::new(),
            first_bodiless_seq: 0,
        }
    }

    /// After record `n`, whose leaf this is and which is before the walk.
    pub(super) fn after(n: u64, leaf: Hash, signed: bool, audit: Option<Arc<RunKeyring>>) -> Self {
        StreamState {
            next: n + 1,
            leaf: Some(leaf),
            phase: Phase::Unknown,
            row_unknown: true,
            signed,
            keyring: audit,
            ..StreamState::new()
        }
    }

    /// Moves on to the record after `n`.
    pub(super) fn advance(&mut self, n: u64, leaf: Hash, place: u64, sound: bool) {
        if n > self.next {
            self.missing.push(self.next..n);
        }
        (self.next, self.leaf, self.seq, self.matches_tree) = (n.saturating_add(1), Some(leaf), place, sound);
    }

    /// Whether a record was passed over and comes only now.
    pub(super) fn take_late(&mut self, n: u64) -> bool {
        let Some(at) = self.missing.iter().position(|range| range.contains(&n)) else { return false };
        let range = self.missing.swap_remove(at);
        self.missing.extend([range.start..n, n + 1..range.end].into_iter().filter(|rest| !rest.is_empty()));
        true
    }

    /// Takes note of a record without body.
    pub(super) fn note_bodiless(&mut self, kind: &str, n: u64, at_ms: i64, place: u64) {
        if !may_be_erased(kind) && self.unexpected_bodiless.is_none() {
            self.unexpected_bodiless = Some((kind.to_owned(), n, place));
        }
        if self.phase == Phase::Stream {
            self.bodiless_times.push((n, at_ms));
        }
        match self.bodiless.last_mut() {
            Some(range) if range.end == n => range.end = n + 1,
            Some(_) => self.bodiless.push(n..n + 1),
            None => {
                self.bodiless.push(n..n + 1);
                self.first_bodiless_seq = place;
            }
        }
    }

    /// Applies a record to its run's row and state; returns an error if it may not follow.
    pub(super) fn apply(
        &mut self,
        run: &str,
        n: u64,
        kind: &str,
        at_ms: i64,
        data: Option<&Map<String, Json>>,
    ) -> Result<(), String> {
        let is = |one: Kind| kind == one.as_str();
        let fits = self.phase_after(run, n, kind, data);
        let mut opened: Option<RunOpened> = None;
        if is(Kind::RunEnded) {
            self.ended_ms = Some(at_ms);
        } else if is(Kind::Turn) {
            self.last_settled = n;
        } else if is(Kind::RunOpened) {
            opened = data.and_then(|data| record::read(data).ok());
            self.period = opened.as_ref().map(StatedPeriod::from_opened);
        }
        match data {
            Some(data) => {
                let change = match opened {
                    Some(opened) => Some(Change::from_opened(opened, at_ms)),
                    None => Change::from_record(kind, at_ms, data),
                };
                if let Some(change) = change {
                    self.row = change.fold(self.row.take());
                    if is(Kind::RunOpened)
                        && let Some(row) = &mut self.row
                    {
                        self.columns = hash_columns(&row.columns);
                        row.columns = Default::default();
                    }
                }
            }
            None if affects_row(kind) => self.row_unknown = true,
            None => {}
        }
        fits
    }

    /// What decides whether an erasure of its answers was allowed. `held` and `imported` come from the ledger's stream.
    pub(super) fn erasure_target(&self, held: bool, imported: bool) -> ErasureTarget {
        ErasureTarget {
            period: self.period,
            is_stream: self.phase == Phase::Stream,
            is_decided: matches!(self.phase, Phase::Decided | Phase::Ended),
            ended_ms: self.ended_ms.filter(|_| self.phase == Phase::Ended),
            held,
            imported,
        }
    }

    fn phase_after(
        &mut self,
        run: &str,
        n: u64,
        kind: &str,
        data: Option<&Map<String, Json>>,
    ) -> Result<(), String> {
        let is = |one: Kind| kind == one.as_str();
        if n == 0 {
            self.phase = if is(Kind::RunOpened) || is_run_id(run) { Phase::Open } else { Phase::Stream };
            return match self.phase {
                Phase::Open if !is(Kind::RunOpened) => {
                    Err(format!("a run begins with {}, and this is {kind}", Kind::RunOpened.as_str()))
                }
                _ => Ok(()),
            };
        }
        if is(Kind::RunOpened) {
            return Err("a run is opened once, and by its first record".to_owned());
        }
        match self.phase {
            Phase::Stream | Phase::Unknown => return Ok(()),
            // A person decides otherwise at any time; a run that had ended ends again when that is logged.
            Phase::Ended if is(Kind::Override) => {
                let decision = data.and_then(|data| record::read::<Override>(data).ok());
                if decision.is_some_and(|decision| decision.is_unlogged()) {
                    self.phase = Phase::Decided;
                }
                return Ok(());
            }
            _ if is(Kind::Override) || is(Kind::Keyring) => return Ok(()),
            Phase::Open | Phase::Decided | Phase::Ended => {}
        }
        let intent = data.filter(|_| is(Kind::RunIntent)).and_then(|data| record::read(data).ok());
        let supersedes = intent.as_ref().is_some_and(|intent: &RunIntent| !intent.supersedes.is_empty());
        let resumes = is(Kind::RunIntent)
            && (data.is_none() || supersedes || intent.is_some_and(|intent| intent.resumes));
        let before = self.phase;
        self.phase = match before {
            Phase::Ended if !resumes => {
                return Err(format!("a record of kind {kind} follows the end of its run"));
            }
            _ if is(Kind::RunEnded) => Phase::Ended,
            _ if is(Kind::Outcome) => Phase::Decided,
            // One that is taken up again between its outcome and its end keeps the outcome, unless it is superseded.
            Phase::Decided | Phase::Ended if resumes && data.is_some() && !supersedes => Phase::Decided,
            _ if resumes => Phase::Open,
            same => same,
        };
        if before == Phase::Open && self.phase == Phase::Ended {
            return Err("a run ends after its outcome, and this one has none".to_owned());
        }
        Ok(())
    }
}

/// Whether bodies of such records are erased once they are not to be kept any more.
fn may_be_erased(kind: &str) -> bool {
    crate::retention::ANSWER_KINDS.iter().chain([&Kind::Rule]).any(|one| one.as_str() == kind)
}

/// Whether the row of a run follows from the body of such a record.
pub(super) fn affects_row(kind: &str) -> bool {
    [Kind::RunOpened, Kind::RunIntent, Kind::Outcome, Kind::Override, Kind::RunEnded]
        .iter()
        .any(|one| one.as_str() == kind)
}

/// The columns of a run's row that never change.
pub(super) fn hash_columns(texts: &[String; 7]) -> Hash {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests;
