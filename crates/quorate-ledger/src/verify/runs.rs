//! The state of each run during the walk: the tail of its chain, its expected index row, its signers, and whether it is
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
use crate::retention::{ErasureTarget, StatedPeriod};
use crate::signing::KeyId;
use crate::signing::run::RunKeyring;
use crate::store::index::{Change, RunRow};

/// A run or another stream.
pub(super) struct StreamState {
    /// The number of its next record.
    pub(super) next: u64,
    /// The leaf of its last record, and its position.
    pub(super) leaf: Option<Hash>,
    pub(super) seq: u64,
    /// Whether the stored tree has that leaf at that position.
    pub(super) matches_tree: bool,
    /// The position of its first record, and whether the walk has included it.
    pub(super) opened: Option<u64>,
    pub(super) phase: Phase,
    /// Its expected row in the index, with one hash of the columns that never change. `None` if its first record does
    /// not open a run.
    pub(super) row: Option<RunRow>,
    pub(super) columns: Hash,
    /// Whether a body that its row is derived from is missing, or the row before the walk is unknown.
    pub(super) row_unknown: bool,
    pub(super) signed: bool,
    pub(super) keyring: Option<Arc<RunKeyring>>,
    /// The first signature by a key that only the run itself vouches for: key, record, position.
    pub(super) unlisted_signer: Option<(KeyId, u64, u64)>,
    /// The first record without a credible time: reason, number and position.
    pub(super) backdated: Option<(String, u64, u64)>,
    /// The retention in its first record; `None` if unknown.
    pub(super) period: Option<StatedPeriod>,
    /// The time of its last end, in milliseconds since the Unix epoch.
    pub(super) ended_ms: Option<i64>,
    /// For a stream that never ends: the records without bodies, with their times, and the last record that settles a
    /// turn.
    pub(super) bodiless_times: Vec<(u64, i64)>,
    pub(super) last_settled: u64,
    /// The first record without a body although its kind is never erased: its kind, number and position.
    pub(super) unexpected_bodiless: Option<(String, u64, u64)>,
    /// Skipped numbers that have not appeared since.
    pub(super) missing: Vec<Range<u64>>,
    pub(super) bodiless: Vec<Range<u64>>,
    pub(super) first_bodiless_seq: u64,
}

/// The phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// A stream other than a run, which never ends.
    Stream,
    Open,
    /// It has an outcome.
    Decided,
    Ended,
    /// It started before the walk.
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

    /// After record `n` with this leaf, which precedes the walk.
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

    /// Whether a skipped record appears late.
    pub(super) fn take_late(&mut self, n: u64) -> bool {
        let Some(at) = self.missing.iter().position(|range| range.contains(&n)) else { return false };
        let range = self.missing.swap_remove(at);
        self.missing.extend([range.start..n, n + 1..range.end].into_iter().filter(|rest| !rest.is_empty()));
        true
    }

    /// Records that record `n` has no body.
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

    /// Applies a record to its run's row and state. Returns an error if it may not follow.
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

    /// The facts that decide whether an erasure of its answers was allowed. `held` and `imported` come from the
    /// ledger's stream.
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
                    Err(format!("a run must begin with {}, not with {kind}", Kind::RunOpened.as_str()))
                }
                _ => Ok(()),
            };
        }
        if is(Kind::RunOpened) {
            return Err("only the first record of a run may open it".to_owned());
        }
        match self.phase {
            Phase::Stream | Phase::Unknown => return Ok(()),
            // A person may override at any time. A run that had ended ends again when the override is logged.
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
            // A run that is resumed between its outcome and its end keeps the outcome, unless it is superseded.
            Phase::Decided | Phase::Ended if resumes && data.is_some() && !supersedes => Phase::Decided,
            _ if resumes => Phase::Open,
            same => same,
        };
        if before == Phase::Open && self.phase == Phase::Ended {
            return Err("a run cannot end without an outcome".to_owned());
        }
        Ok(())
    }
}

/// Whether bodies of records of this kind are erased after the retention.
fn may_be_erased(kind: &str) -> bool {
    crate::retention::ANSWER_KINDS.iter().chain([&Kind::Rule]).any(|answer| answer.as_str() == kind)
}

/// Whether a run's row is derived from the body of such a record.
pub(super) fn affects_row(kind: &str) -> bool {
    [Kind::RunOpened, Kind::RunIntent, Kind::Outcome, Kind::Override, Kind::RunEnded]
        .iter()
        .any(|counted| counted.as_str() == kind)
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
mod tests {
    use quorate_kernel::attempts::object;
    use quorate_kernel::ports::ledger::Kind;
    use serde_json::json;

    use super::{Phase, StreamState};
    use crate::merkle::EMPTY;

    const RUN: &str = "raaaaaaaaaaaa";
    const STREAM: &str = "playbooks";

    /// Applies records to a run, one word each, `-` for a record without a body. Returns the phase, and whether the
    /// last record may follow.
    fn phase_after(run: &str, words: &str) -> (Phase, bool) {
        let (state, last) = state_after(run, words);
        (state.phase, last)
    }

    fn state_after(run: &str, words: &str) -> (StreamState, bool) {
        let mut state = StreamState::new();
        let mut may_follow = true;
        for (word, n) in words.split_whitespace().zip(0..) {
            let intent = |resumes: bool, supersedes: &[&str]| {
                (Kind::RunIntent, json!({"invocations": [], "resumes": resumes, "supersedes": supersedes}))
            };
            let (name, has_body) = word.strip_suffix('-').map_or((word, true), |name| (name, false));
            let (kind, data) = match name {
                "opened" => (Kind::RunOpened, json!({"protocol": "council/1"})),
                "intent" => intent(false, &[]),
                "resumes" => intent(true, &[]),
                "supersedes" => intent(true, &["r1/skeptic"]),
                "answer" => (Kind::Consultation, json!({})),
                "rule" => (Kind::Rule, json!({})),
                "outcome" => (Kind::Outcome, json!({"verdict": "SHIP"})),
                "ended" => (Kind::RunEnded, json!({"logged": true})),
                "override" => (Kind::Override, json!({"verdict": "HOLD", "logged": true})),
                "unlogged" => (Kind::Override, json!({"verdict": "HOLD", "logged": false})),
                "keyring" => (Kind::Keyring, json!({"vouched": []})),
                "turn" => (Kind::Turn, json!({})),
                other => unreachable!("{other}"),
            };
            let data = has_body.then(|| object(data));
            if data.is_none() {
                state.note_bodiless(kind.as_str(), n, 1000 + 7, 100 + n);
            }
            may_follow = state.apply(run, n, kind.as_str(), 1000, data.as_ref()).is_ok();
        }
        (state, may_follow)
    }

    #[test]
    fn a_run_is_what_its_records_allow() {
        use Phase::{Decided, Ended, Open};
        let cases = [
            ("opened", Open, true),
            ("opened-", Open, true),
            ("rule", Open, false),
            ("opened opened", Open, false),
            ("opened answer", Open, true),
            ("opened intent", Open, true),
            ("opened resumes", Open, true),
            ("opened override", Open, true),
            ("opened keyring", Open, true),
            ("opened outcome", Decided, true),
            ("opened ended", Ended, false),
            ("opened outcome answer", Decided, true),
            ("opened outcome intent", Decided, true),
            ("opened outcome intent-", Open, true),
            ("opened outcome resumes", Decided, true),
            ("opened outcome supersedes", Open, true),
            ("opened outcome override", Decided, true),
            ("opened outcome ended", Ended, true),
            // After its end a run accepts only overrides and resumptions.
            ("opened outcome ended answer", Ended, false),
            ("opened outcome ended intent", Ended, false),
            ("opened outcome ended outcome", Ended, false),
            ("opened outcome ended ended", Ended, false),
            ("opened outcome ended override", Ended, true),
            ("opened outcome ended override-", Ended, true),
            ("opened outcome ended keyring", Ended, true),
            ("opened outcome ended unlogged", Decided, true),
            ("opened outcome ended unlogged ended", Ended, true),
            ("opened outcome ended resumes", Decided, true),
            ("opened outcome ended resumes ended", Ended, true),
            ("opened outcome ended intent-", Open, true),
            ("opened outcome ended supersedes", Open, true),
            ("opened outcome ended supersedes ended", Ended, false),
            ("opened outcome ended supersedes outcome ended", Ended, true),
        ];
        for (words, phase, may_follow) in cases {
            assert_eq!(phase_after(RUN, words), (phase, may_follow), "{words}");
        }
        assert_eq!(phase_after("another", "opened"), (Open, true), "it is a run by its first record");
        assert_eq!(phase_after(STREAM, "turn answer ended override"), (Phase::Stream, true));
        let before_the_walk = StreamState::after(3, EMPTY, true, None);
        assert_eq!((before_the_walk.phase, before_the_walk.next), (Phase::Unknown, 4));
    }

    #[test]
    fn a_row_is_unknown_without_the_bodies_that_it_follows_from() {
        for word in ["opened", "intent", "outcome", "override", "ended"] {
            assert!(state_after(RUN, &format!("opened {word}-")).0.row_unknown, "{word}");
        }
        for words in ["opened answer- rule-", "opened outcome ended"] {
            assert!(!state_after(RUN, words).0.row_unknown, "{words}");
        }
    }

    #[test]
    fn records_without_bodies_are_noted_in_stretches() {
        let (state, _) = state_after(RUN, "opened answer- rule- answer answer- answer- rule answer-");
        assert_eq!((state.bodiless, state.first_bodiless_seq), (vec![1..3, 4..6, 7..8], 101));
        assert_eq!((state.bodiless_times, state.unexpected_bodiless), (vec![], None), "it is a run");
        let (state, _) = state_after(STREAM, "turn answer- answer- turn answer-");
        assert_eq!(state.bodiless_times, [(1, 1007), (2, 1007), (4, 1007)]);
        assert_eq!(state.last_settled, 3);
        let (state, _) = state_after(RUN, "opened answer- outcome- ended-");
        assert_eq!(state.unexpected_bodiless, Some(("outcome".to_owned(), 2, 102)), "the first of them");
    }

    #[test]
    fn a_skipped_record_comes_late_once() {
        let mut state = StreamState::new();
        for n in [0, 1, 6, 7, 9] {
            state.advance(n, EMPTY, 50 + n, true);
        }
        assert_eq!((state.next, state.seq), (10, 59));
        let late = [4, 4, 2, 3, 3, 5, 5, 8, 8, 0, 1, 6, 7, 9, 10].map(|n| state.take_late(n));
        let wanted = [
            true, false, true, true, false, true, false, true, false, false, false, false, false, false,
            false,
        ];
        assert_eq!(late, wanted);
        assert!(state.missing.is_empty(), "{:?}", state.missing);
    }
}
