//! The state of each run during the walk: the tail of its chain, its expected index row, its signers, and whether it is
//! open.

use std::sync::Arc;

use quorate_kernel::canonical;
use quorate_kernel::ports::ledger::Kind;
use quorate_kernel::record::{self, Override, RunEnded, RunIntent, RunOpened};
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
#[derive(Default)]
pub(super) struct StreamState {
    /// The number of its next record.
    pub(super) next: u64,
    /// The leaf of its last record, and its position.
    pub(super) leaf: Option<Hash>,
    pub(super) seq: u64,
    /// The position of its first record, and whether the walk has included it.
    pub(super) opened: Option<u64>,
    pub(super) phase: Phase,
    /// Its expected row in the index. `None` if its first record does not open a run.
    pub(super) row: Option<RunRow>,
    /// The hash of its first record's content, which its end restates.
    opened_hash: Option<Hash>,
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
    /// For a stream that never ends: the last record that settles a turn.
    pub(super) last_settled: u64,
    /// The first record without a body although its kind is never erased: its kind, number and position.
    pub(super) unexpected_bodiless: Option<(String, u64, u64)>,
    /// The records without bodies.
    pub(super) bodiless: Vec<Bodiless>,
}

/// A record without a body: its number, time and position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bodiless {
    pub(super) n: u64,
    pub(super) at_ms: i64,
    pub(super) seq: u64,
}

/// The phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// A stream other than a run, which never ends.
    #[default]
    Stream,
    Open,
    /// It has an outcome.
    Decided,
    Ended,
    /// It started before the walk.
    Unknown,
}

impl StreamState {
    /// After record `n` with this leaf, which precedes the walk.
    pub(super) fn after(n: u64, leaf: Hash, signed: bool, audit: Option<Arc<RunKeyring>>) -> Self {
        StreamState {
            next: n + 1,
            leaf: Some(leaf),
            phase: Phase::Unknown,
            row_unknown: true,
            signed,
            keyring: audit,
            ..StreamState::default()
        }
    }

    /// Moves on to the record after `n`. Records in between are missing, and so is their effect on the row.
    pub(super) fn advance(&mut self, n: u64, leaf: Hash, place: u64) {
        self.row_unknown |= n > self.next;
        (self.next, self.leaf, self.seq) = (n.saturating_add(1), Some(leaf), place);
    }

    /// Records that record `n` has no body.
    pub(super) fn note_bodiless(&mut self, kind: &str, n: u64, at_ms: i64, seq: u64) {
        if !may_be_erased(kind) && self.unexpected_bodiless.is_none() {
            self.unexpected_bodiless = Some((kind.to_owned(), n, seq));
        }
        self.bodiless.push(Bodiless { n, at_ms, seq });
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
        if is(Kind::RunEnded) {
            self.ended_ms = Some(at_ms);
        } else if is(Kind::Turn) {
            self.last_settled = n;
        }
        let Some(data) = data else {
            self.row_unknown |= affects_row(kind);
            return fits;
        };
        let mut change = None;
        if is(Kind::RunOpened) {
            if let Ok(opened) = record::read::<RunOpened>(data) {
                self.period = Some(StatedPeriod::from_opened(&opened));
                change = Some(Change::from_opened(opened, at_ms));
            }
        } else {
            change = Change::from_record(kind, at_ms, data);
        }
        if let Some(change) = change {
            self.row = change.fold(self.row.take());
        }
        fits
    }

    /// Keeps what the run's end restates.
    pub(super) fn note_opened(&mut self, opened: &RunOpened) {
        self.opened_hash = Some(hash_opened(opened));
    }

    /// Compares what a run's end restates with the run's first record.
    pub(super) fn check_restated(&self, data: &Map<String, Json>) -> Result<(), String> {
        let ended: RunEnded = record::read(data).unwrap_or_default();
        let restated = ended.opened.and_then(|opened| record::read::<RunOpened>(&opened).ok());
        match restated.as_ref().map(hash_opened).zip(self.opened_hash) {
            Some((restated, opened)) if restated != opened => {
                Err("what it restates of the run's first record differs from that record".to_owned())
            }
            _ => Ok(()),
        }
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

/// The hash of what a run's end restates of its first record.
fn hash_opened(opened: &RunOpened) -> Hash {
    Sha256::digest(canonical::object(&opened.without_directories())).into()
}

#[cfg(test)]
mod tests {
    use quorate_kernel::attempts::object;
    use quorate_kernel::ports::ledger::Kind;
    use quorate_kernel::record;
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
        let mut state = StreamState::default();
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
    fn records_without_bodies_are_noted() {
        let (state, _) = state_after(STREAM, "turn answer- answer- turn answer-");
        let noted: Vec<_> =
            state.bodiless.iter().map(|bodiless| (bodiless.n, bodiless.at_ms, bodiless.seq)).collect();
        assert_eq!(noted, [(1, 1007, 101), (2, 1007, 102), (4, 1007, 104)]);
        assert_eq!((state.last_settled, state.unexpected_bodiless), (3, None));
        let (state, _) = state_after(RUN, "opened answer- outcome- ended-");
        assert_eq!(state.unexpected_bodiless, Some(("outcome".to_owned(), 2, 102)), "the first of them");
    }

    #[test]
    fn the_end_of_a_run_restates_its_first_record() {
        let opened = json!({
            "protocol": "council/1", "subject": "/drafts/draft.md", "log_path": "C:\\work\\log.jsonl",
            "setup": {"note": "/a"}, "salt": "00",
        });
        let restated = |subject: &str| json!({"protocol": "council/1", "subject": subject, "log_path": "log.jsonl", "setup": {"note": "/a"}});
        let end = |opened: &serde_json::Value, ended: serde_json::Value| {
            let mut state = StreamState::default();
            state.note_opened(&record::read(&object(opened.clone())).expect("a first record"));
            state.check_restated(&object(ended))
        };
        assert_eq!(end(&opened, json!({"logged": true})), Ok(()), "older versions restate nothing");
        assert_eq!(end(&opened, json!({"logged": true, "opened": restated("draft.md")})), Ok(()));
        let differs = end(&opened, json!({"logged": true, "opened": restated("other.md")}));
        assert!(differs.is_err_and(|what| what.contains("restates")));
    }
}
