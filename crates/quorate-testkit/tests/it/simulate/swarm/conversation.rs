//! The conversation that all processes of a simulation share, and a process's handle on it: slow, and failing before or
//! after a call takes effect.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use quorate_kernel::conversation::{Capability, NewTurn, Stamp, Turn};
use quorate_kernel::ports::ledger::{self, Append, Kind, Ledger, Record};
use quorate_kernel::ports::state::{State, StateError};
use quorate_kernel::ports::substrate::{About, Appended, Keeps, Lifetime, Page, Substrate, SubstrateError};
use quorate_kernel::ports::telemetry::{Event, EventKind, Telemetry};
use quorate_kernel::ports::telemetry::{HookError, Lifecycle};
use quorate_protocol::{Json, Name};
use serde_json::Map;
use tokio::sync::watch;

use super::life::{Life, StepFailed};
use quorate_testkit::faults::CrashingLedger;
use quorate_testkit::scripted::Rng;

pub(super) const PLACE: &str = "simulated";

pub(super) struct SharedConversation {
    pub(super) keeps: Keeps,
    /// The number of appends whose caller did not learn of their success.
    pub(super) unacknowledged: AtomicUsize,
    kept: Mutex<StoredTurns>,
    length: watch::Sender<usize>,
}

#[derive(Default)]
struct StoredTurns {
    turns: Vec<Turn>,
    keys: HashMap<Name, usize>,
    /// The stamp of each turn, even if the substrate does not keep it, for the checkers.
    stamps: Vec<Option<Stamp>>,
}

impl SharedConversation {
    pub(super) fn new(keeps: Keeps) -> SharedConversation {
        SharedConversation {
            keeps,
            unacknowledged: AtomicUsize::new(0),
            kept: Mutex::default(),
            length: watch::Sender::new(0),
        }
    }

    pub(super) fn turns(&self) -> Vec<Turn> {
        self.stored().turns.clone()
    }

    /// The stamps of the turns, in the same order.
    pub(super) fn stamps(&self) -> Vec<Option<Stamp>> {
        self.stored().stamps.clone()
    }

    pub(super) fn len(&self) -> usize {
        self.stored().turns.len()
    }

    pub(super) fn append(&self, turn: NewTurn) -> Appended {
        let mut stored = self.stored();
        let keeps_stamps = self.keeps == Keeps::Stamps;
        let existing =
            turn.stamp.as_ref().and_then(|stamp| stored.keys.get(&stamp.key)).filter(|_| keeps_stamps);
        if let Some(at) = existing {
            return Appended { turn: stored.turns[*at].clone(), fresh: false };
        }
        let at = stored.turns.len();
        if let Some(stamp) = &turn.stamp {
            stored.keys.insert(stamp.key.clone(), at);
        }
        stored.stamps.push(turn.stamp.clone());
        let turn = Turn {
            id: format!("t{at}").into(),
            participant: turn.participant,
            timestamp: turn.timestamp.into(),
            content: turn.content,
            meta: if keeps_stamps { turn.meta } else { Map::new() },
            stamp: turn.stamp.filter(|_| keeps_stamps),
        };
        stored.turns.push(turn.clone());
        self.length.send_replace(at + 1);
        Appended { turn, fresh: true }
    }

    fn stored(&self) -> MutexGuard<'_, StoredTurns> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The index of a turn: ids count from 0.
pub(super) fn position(id: &str) -> Option<usize> {
    id.strip_prefix('t')?.parse().ok()
}

pub(super) struct FlakySubstrate {
    pub(super) talk: Arc<SharedConversation>,
    pub(super) life: Arc<Life>,
    /// The number of turns at the last read.
    pub(super) seen: AtomicUsize,
}

impl FlakySubstrate {
    async fn step(&self, what: &'static str) -> Result<(), SubstrateError> {
        let unavailable = |StepFailed| SubstrateError::Unavailable {
            what: format!("simulated: {what} failed"),
            source: None,
        };
        self.life.step(what).await.map_err(unavailable)
    }
}

#[async_trait]
impl Substrate for FlakySubstrate {
    fn about(&self) -> About {
        About {
            kind: "simulated",
            capabilities: [Capability::MultiWriter, Capability::Ordered].into(),
            keeps: self.talk.keeps,
            lifetime: Lifetime::Persistent,
            place: PLACE.to_owned(),
            conversation: None,
        }
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, SubstrateError> {
        self.step("an append").await?;
        let appended = self.talk.append(turn);
        let mut unacknowledged = UnacknowledgedAppend { talk: &self.talk, learnt: !appended.fresh };
        self.step("an append that was done").await?;
        unacknowledged.learnt = true;
        Ok(appended)
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, SubstrateError> {
        self.step("a read").await?;
        let page = {
            let stored = self.talk.stored();
            let cursor = since.map(|since| position(since).filter(|at| *at < stored.turns.len()));
            let start = cursor.flatten().map_or(0, |at| at + 1);
            let end = start.saturating_add(limit).min(stored.turns.len());
            Page { turns: stored.turns[start..end].to_vec(), known: cursor != Some(None) }
        };
        let last = page.turns.last().map(|turn| &turn.id).or(since.filter(|_| page.known));
        let seen = last.and_then(|id| position(id)).map_or(0, |at| at + 1);
        self.step("a read that was done").await?;
        self.seen.store(seen, Ordering::Relaxed);
        Ok(page)
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, SubstrateError> {
        self.step("a look back").await?;
        let stored = self.talk.stored();
        let Some(at) = position(at).filter(|at| *at < stored.turns.len()) else { return Ok(Vec::new()) };
        Ok(stored.turns[(at + 1).saturating_sub(count)..=at].to_vec())
    }

    async fn changed(&self) -> Result<(), SubstrateError> {
        self.step("a wait").await?;
        let seen = self.seen.load(Ordering::Relaxed);
        let _ = self.talk.length.subscribe().wait_for(|length| *length > seen).await;
        self.step("a wait that was over").await
    }
}

/// Counts an append whose caller was dropped, or got an error, before it learned of the success.
struct UnacknowledgedAppend<'t> {
    talk: &'t SharedConversation,
    learnt: bool,
}

impl Drop for UnacknowledgedAppend<'_> {
    fn drop(&mut self) {
        if !self.learnt {
            self.talk.unacknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The message of the error when a state cannot be read.
pub(super) const STATE_READ_ERROR: &str = "simulated: a state could not be read";

#[derive(Default)]
pub(super) struct Log {
    /// Triggers that were taken up, in order.
    pub(super) taken: Vec<TriggerTaken>,
    /// Inputs and results of dispatchers.
    pub(super) decided: Vec<Decision>,
    /// The first call of each participant for each trigger, in order.
    pub(super) asked: Vec<FirstCall>,
    pub(super) cursors: Vec<Cursor>,
    /// Participants that could not be asked since their state could not be read: trigger and participant.
    pub(super) forgotten: BTreeSet<(usize, Name)>,
    /// Turns that hooks received, with the life.
    pub(super) ended: Vec<(usize, usize)>,
    /// Lives in which a cycle was dropped, so that its trigger is taken up again.
    pub(super) dropped: BTreeSet<usize>,
    /// The manifest of each life.
    pub(super) lives: Vec<usize>,
}

pub(super) struct TriggerTaken {
    pub(super) life: usize,
    pub(super) trigger: usize,
}

/// Input and result of a dispatcher.
pub(super) struct Decision {
    pub(super) manifest: usize,
    pub(super) life: usize,
    /// The number of triggers that a process had begun to answer before.
    pub(super) taken: usize,
    /// The indices of the window's turns.
    pub(super) window: Vec<usize>,
    /// The selection; `None` if it failed.
    pub(super) named: Option<Vec<Name>>,
}

pub(super) struct FirstCall {
    pub(super) life: usize,
    pub(super) trigger: usize,
    pub(super) participant: Name,
}

/// A recorded cursor, with the number of turns at that time.
pub(super) struct Cursor {
    pub(super) manifest: usize,
    pub(super) at: usize,
    pub(super) length: usize,
}

/// Logs the events of a process.
pub(super) struct RecordingTelemetry {
    pub(super) life: usize,
    pub(super) log: Arc<Mutex<Log>>,
    /// The trigger of the current cycle.
    pub(super) trigger: Mutex<usize>,
}

impl Telemetry for RecordingTelemetry {
    fn emit(&self, event: &Event) {
        let mut trigger = self.trigger.lock().unwrap_or_else(PoisonError::into_inner);
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        match &event.kind {
            EventKind::CycleStarted { trigger: id, .. } => {
                *trigger = position(id).unwrap_or(usize::MAX);
                log.taken.push(TriggerTaken { life: self.life, trigger: *trigger });
            }
            EventKind::ParticipantFailed { participant, error, .. } if error.contains(STATE_READ_ERROR) => {
                log.forgotten.insert((*trigger, participant.clone()));
            }
            _ => {}
        }
    }
}

/// A hook that logs the event, and then fails, panics or hangs.
pub(super) struct UnreliableHooks {
    pub(super) life: usize,
    pub(super) log: Arc<Mutex<Log>>,
    pub(super) seed: u64,
}

#[async_trait]
impl Lifecycle for UnreliableHooks {
    fn kind(&self) -> &'static str {
        "simulated"
    }

    async fn on_turn_end(&self, turn: &Turn) -> Result<(), HookError> {
        let at = position(&turn.id).unwrap_or(usize::MAX);
        self.log.lock().unwrap_or_else(PoisonError::into_inner).ended.push((self.life, at));
        match Rng::from_seed_and_name(self.seed, &turn.id).below(8) {
            0 => Err("simulated: a hook failed".to_owned()),
            // Without printing the panic's message.
            1 => std::panic::resume_unwind(Box::new("simulated")),
            2 => std::future::pending().await,
            _ => Ok(()),
        }
    }
}

/// The participants' states, for all processes.
pub(super) type States = Arc<Mutex<BTreeMap<String, Map<String, Json>>>>;

/// One process's handle on the states.
pub(super) struct FlakyState {
    pub(super) states: States,
    pub(super) life: Arc<Life>,
}

#[async_trait]
impl State for FlakyState {
    fn kind(&self) -> &'static str {
        "simulated"
    }

    async fn read(&self, participant: &str) -> Result<Map<String, Json>, StateError> {
        let failed = |_| StateError { what: STATE_READ_ERROR.to_owned(), source: None };
        self.life.step("a state is read").await.map_err(failed)?;
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(states.get(participant).cloned().unwrap_or_default())
    }

    async fn write(&self, participant: &str, state: &Map<String, Json>) -> Result<(), StateError> {
        let failed =
            |_| StateError { what: "simulated: a state could not be written".to_owned(), source: None };
        self.life.step("a state is written").await.map_err(failed)?;
        {
            let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
            states.insert(participant.to_owned(), state.clone());
        }
        self.life.step("a state was written").await.map_err(failed)
    }
}

/// One process's handle on a ledger.
pub(super) struct FlakyLedger {
    pub(super) manifest: usize,
    pub(super) ledger: Arc<CrashingLedger>,
    pub(super) life: Arc<Life>,
    pub(super) talk: Arc<SharedConversation>,
    pub(super) log: Arc<Mutex<Log>>,
}

impl FlakyLedger {
    async fn step(&self, what: &'static str) -> Result<(), ledger::LedgerError> {
        let failed = |_| ledger::LedgerError::Unavailable {
            what: format!("simulated: {what}, and that failed"),
            source: None,
        };
        self.life.step(what).await.map_err(failed)
    }
}

#[async_trait]
impl Ledger for FlakyLedger {
    async fn append(&self, append: Append) -> Result<u64, ledger::LedgerError> {
        self.step("records are written").await?;
        let turns = append.entries.iter().filter(|entry| entry.kind == Kind::Turn);
        let cursors = turns.filter_map(|entry| position(entry.data.get("cursor")?.as_str()?));
        let cursors: Vec<usize> = cursors.collect();
        let next = self.ledger.append(append).await?;
        {
            let (manifest, length) = (self.manifest, self.talk.len());
            let recorded = cursors.into_iter().map(|at| Cursor { manifest, at, length });
            self.log.lock().unwrap_or_else(PoisonError::into_inner).cursors.extend(recorded);
        }
        self.step("records were written").await?;
        Ok(next)
    }

    async fn records(&self, run: &Name) -> Result<Vec<Record>, ledger::LedgerError> {
        self.step("records are read").await?;
        self.ledger.records(run).await
    }

    async fn tail(&self, run: &Name, count: u32) -> Result<Vec<Record>, ledger::LedgerError> {
        self.step("the tail is read").await?;
        self.ledger.tail(run, count).await
    }

    async fn body(&self, sha256: &str) -> Result<Option<Arc<str>>, ledger::LedgerError> {
        self.ledger.body(sha256).await
    }
}
