//! The turn cycle (AIP-48): the second driver. It reads what is new, has it dispatched, asks the speakers, and appends
//! their answers. Its source of truth is the substrate; the ledger, the states and the cursor are restored from it
//! (K2, K3, K5).

mod commit;
mod cycle;
pub mod evidence;
mod hooks;
mod phase;
mod recover;
mod speak;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use quorate_protocol::{Json, Name};
use serde_json::Map;

use crate::attempts::{FailedAttempts, MemberConfig};
use crate::budget::{Amount, Budget, Caps};
use crate::call::CallContext;
use crate::clock::{Clock, rfc3339};
use crate::conversation::{MAX_TURN_BYTES, Origin, Participant, Stamp, Turn};
use crate::entropy;
use crate::observer::NoopObserver;
use crate::ports::dispatcher::Dispatcher;
use crate::ports::ledger::{self, Ledger};
use crate::ports::state::State;
use crate::ports::substrate::{self, IdProof, Substrate};
use crate::ports::telemetry::{DEADLINE, Lifecycle};
use crate::ports::telemetry::{Event, EventKind, Telemetry};
use crate::prompt::Layout;
use crate::record::{self, Status};
use crate::redact::Redactor;

use commit::RecordQueue;
use cycle::Chains;
pub use cycle::{Forecast, forecast};
use evidence::{Alteration, Evidence};
use hooks::Hooks;
use phase::Phase;

/// How many turns are read at once.
const READ_PAGE_TURNS: usize = 128;
/// How many times as long as a hook the ledger may take at the end: it is behind the conversation by design.
const LEDGER_TIMEOUT_FACTOR: u32 = 5;

/// One manifest, with an adapter in each port.
pub struct Swarm {
    pub runtime: Name,
    /// Where the conversation lives.
    pub substrate: Arc<dyn Substrate>,
    pub dispatcher: Arc<dyn Dispatcher>,
    pub state: Arc<dyn State>,
    /// The hooks.
    pub lifecycles: Vec<Arc<dyn Lifecycle>>,
    /// Which hooks are called.
    pub flags: HookFlags,
    pub telemetry: Arc<dyn Telemetry>,
    /// Who takes part, in the manifest's order.
    pub speakers: Vec<Speaker>,
    /// Limits that apply with every dispatcher.
    pub policy: Policy,
    /// The caps on what this process asks.
    pub caps: Caps,
    /// Removes secrets before anything is recorded or shown.
    pub redactor: Redactor,
    /// Where records are appended.
    pub ledger: Arc<dyn Ledger>,
    /// The source of recorded timestamps.
    pub clock: Arc<dyn Clock>,
}

/// A participant, and how it is called.
#[derive(Clone)]
pub struct Speaker {
    /// Its entry in the manifest.
    pub participant: Participant,
    pub member: MemberConfig,
    /// Its role, with the overlays that hold.
    pub prompts: Arc<dyn PromptSource>,
}

/// Supplies a participant's role prompt for each turn.
#[async_trait]
pub trait PromptSource: Send + Sync {
    /// The current text.
    ///
    /// # Errors
    /// The reason why the text is unavailable, as a message for users; the participant's turn fails.
    async fn prompt(&self) -> Result<Prompt, String>;
}

/// A participant's role prompt, and what it was composed of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prompt {
    pub text: Arc<str>,
    /// SHA-256 of what was woven into it.
    pub woven_sha256: Vec<String>,
    /// Further data for the consultation's record.
    pub extra_fields: Map<String, Json>,
}

/// A text that stays the same.
#[async_trait]
impl PromptSource for Prompt {
    async fn prompt(&self) -> Result<Prompt, String> {
        Ok(self.clone())
    }
}

/// Which hooks are called (K9: all unless said).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookFlags {
    /// `onTurnEnd`.
    pub on_turn_end: bool,
    /// `onMention`.
    pub on_mention: bool,
    /// `onIdle`.
    pub on_idle: bool,
}

impl Default for HookFlags {
    fn default() -> Self {
        HookFlags { on_turn_end: true, on_mention: true, on_idle: true }
    }
}

/// Limits that apply with every dispatcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Whether the author of a trigger may answer it.
    pub reentry: bool,
    /// The longest chain of triggers, in participants' turns since a person's, whose end is answered (K12).
    pub max_agent_turns: usize,
    /// How many turns a window has.
    pub window: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { reentry: false, max_agent_turns: 20, window: 30 }
    }
}

/// Where to begin where no cursor is kept and nothing was ever answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Begin {
    /// With the first turn.
    #[default]
    First,
    /// After the existing turns.
    Now,
}

/// Why a participant has not spoken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnFailure {
    pub status: Status,
    /// As a message for users.
    pub why: String,
    pub attempts: FailedAttempts,
}

impl TurnFailure {
    /// The failure of a participant whose executor was not called, or has answered.
    fn failed(why: String) -> Self {
        TurnFailure { status: Status::Failed, why, attempts: FailedAttempts::default() }
    }
}

/// The result of a cycle.
#[derive(Debug, Clone, PartialEq)]
pub enum CycleResult {
    Asked {
        trigger: Name,
        appended: Vec<Turn>,
        /// Who has not spoken, and why.
        failed: Vec<(Name, TurnFailure)>,
    },
    /// No participant answers this turn.
    Idle {
        trigger: Name,
        /// Whether a person wrote it and the dispatcher selects no participant.
        is_unaddressed: bool,
        /// The reason, unless the dispatcher selected no participant.
        why: Option<String>,
    },
    /// The chain of triggers that ends with this turn is too long: the participants that it is for are not asked.
    Guarded { trigger: Name, why: String },
    /// The dispatcher failed for this turn; no participant answers it.
    Undecided { trigger: Name, why: String },
    /// The call budget does not cover all selected participants: no participant was asked, and the turn stays
    /// pending.
    BudgetExhausted { trigger: Name },
    /// No new turn.
    NoNewTurn,
}

/// The state of an interrupted cycle.
#[derive(Debug, Clone, PartialEq)]
pub struct UnfinishedCycle {
    /// The turn that was being answered.
    pub trigger: Name,
    /// The answers received before the interruption, which are appended.
    pub appended: Vec<Turn>,
    /// The participants that had not answered: the next process asks them again.
    pub unanswered: Vec<Name>,
}

/// Why the loop cannot continue. Recorded turns stay; the operation can be retried.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// The substrate refused or failed.
    #[error(transparent)]
    Substrate(#[from] substrate::SubstrateError),
    /// The ledger refused or failed.
    #[error(transparent)]
    Ledger(#[from] ledger::LedgerError),
    /// The position where this runtime left off is unknown.
    #[error("{0}")]
    PositionUnknown(String),
    /// The conversation is not what it was (D15).
    #[error("{}", .0.what)]
    Altered(Alteration),
}

impl Swarm {
    fn emit(&self, cycle: u64, what: EventKind) {
        let at = rfc3339(self.clock.now_ms());
        self.telemetry.emit(&Event { cycle, at, kind: what });
    }
}

/// A running swarm: the loop of one process over one conversation.
pub struct Runner {
    swarm: Arc<Swarm>,
    roster: Vec<Participant>,
    /// The substrate's description at the start.
    about: substrate::About,
    call_context: Arc<CallContext>,
    records: RecordQueue,
    hooks: Hooks,
    /// The last turn that is settled.
    cursor: Option<Name>,
    /// The last turn that was read.
    last_read: Option<Name>,
    /// Read and not settled, oldest first.
    pending: VecDeque<Turn>,
    /// The last turns that are settled, at most one less than a window.
    settled: VecDeque<SettledTurn>,
    /// The window of the trigger before, where no participant was asked.
    last_window: Vec<Turn>,
    chains: Chains,
    /// What is known of the first pending turn from before this process started.
    resumed: Option<PartialAnswer>,
    /// The phase of answering a trigger.
    phase: Phase,
    /// Appended with a state that is not yet stored.
    unsaved_states: BTreeMap<Name, Map<String, Json>>,
    /// How many turns were settled without an answer since the last record.
    unrecorded_idle_turns: usize,
    /// What the ledger recorded of the conversation.
    evidence: Evidence,
    /// The turns that were settled since the last record of one.
    unrecorded_settled: Vec<record::SettledTurn>,
    /// The number of the cursor's turn in the conversation, where it is known.
    position: Option<u64>,
    /// How to begin, until the conversation could be read.
    start: Option<recover::Start>,
    /// Why the conversation could not be read at the start.
    failed_start: Option<TurnError>,
    cycles: u64,
}

impl Runner {
    /// The stream of a runtime over a conversation, in the ledger (K3).
    pub fn stream(runtime: &str, place: &str) -> Name {
        let place = entropy::sha256_hex(place.as_bytes());
        format!("turns/{runtime}/{}", &place[..12]).into()
    }

    /// Takes up the conversation where this runtime left off.
    ///
    /// # Errors
    /// See [`TurnError`].
    #[crate::boxed]
    pub async fn open(swarm: Arc<Swarm>, begin: Begin) -> Result<Runner, TurnError> {
        let about = swarm.substrate.about();
        let stream = Runner::stream(&swarm.runtime, &about.place);
        let reach = swarm.policy.window.saturating_add(1);
        let last = recover::read_position(&*swarm.ledger, &stream, reach).await?;
        let call_context = Arc::new(CallContext {
            run: stream.clone(),
            layout: Layout { nonce: entropy::nonce(&entropy::bytes()) },
            budget: Arc::new(Budget::new(swarm.caps, 0, Amount::default())),
            records_reservations: false,
            redactor: swarm.redactor.clone(),
            observer: Arc::new(NoopObserver),
            clock: swarm.clock.clone(),
        });
        let records = RecordQueue::start(swarm.ledger.clone(), stream, last.next);
        let hooks = Hooks::new(swarm.lifecycles.clone(), swarm.telemetry.clone(), swarm.clock.clone());
        let mut runner = Runner {
            roster: swarm.speakers.iter().map(|one| one.participant.clone()).collect(),
            about,
            call_context,
            records,
            hooks,
            cursor: last.cursor,
            last_read: None,
            pending: VecDeque::new(),
            settled: VecDeque::new(),
            last_window: Vec::new(),
            chains: Chains::default(),
            resumed: None,
            phase: Phase::Idle,
            unsaved_states: BTreeMap::new(),
            unrecorded_idle_turns: 0,
            position: last.evidence.position(),
            evidence: last.evidence,
            unrecorded_settled: Vec::new(),
            start: Some(recover::Start { begin, recorded: last.recorded }),
            failed_start: None,
            cycles: 0,
            swarm,
        };
        match runner.start().await {
            // The first cycle reports it, and the next ones try again: a failed read ends no runner (K17).
            Err(error @ TurnError::Substrate(substrate::SubstrateError::Unavailable { .. })) => {
                runner.failed_start = Some(error);
            }
            started => started?,
        }
        Ok(runner)
    }

    /// The last turn that is settled.
    pub fn cursor(&self) -> Option<&Name> {
        self.cursor.as_ref()
    }

    /// Returns when there may be something new.
    ///
    /// # Errors
    /// When the substrate cannot tell.
    #[crate::boxed]
    pub async fn changed(&self) -> Result<(), TurnError> {
        Ok(self.swarm.substrate.changed().await?)
    }

    /// Waits for the hooks that are under way, each as long as it may take.
    #[crate::boxed]
    pub async fn settle_hooks(&mut self) {
        self.hooks.settle(DEADLINE).await;
    }

    /// Appends and writes pending answers and records, and waits for hooks, at most for `limit` each, and for the ledger at most
    /// for five times as long. Gives what a cycle that was interrupted has left.
    ///
    /// # Errors
    /// When a record could not be written.
    #[crate::boxed]
    pub async fn close(mut self, limit: Duration) -> Result<Option<UnfinishedCycle>, TurnError> {
        // An interrupt must not lose answers that were paid for.
        let left = self.interrupt().or_else(|| match &self.phase {
            Phase::Committing(commit) => Some((commit.trigger.id.clone(), Vec::new())),
            Phase::Idle | Phase::Asking(_) => None,
        });
        let finished = tokio::time::timeout(limit, self.finish()).await;
        let left = left.map(|(trigger, unanswered)| {
            let appended = match (finished, &self.phase) {
                (Ok(Ok(Some(CycleResult::Asked { appended, .. }))), _) => appended,
                (_, Phase::Committing(commit)) => commit.appended.clone(),
                _ => Vec::new(),
            };
            UnfinishedCycle { trigger, appended, unanswered }
        });
        self.hooks.settle(limit).await;
        let recorded = tokio::time::timeout(limit * LEDGER_TIMEOUT_FACTOR, self.record_remaining()).await;
        recorded.unwrap_or_else(|_| {
            let what = "the ledger did not take the last records in time; the next run records what the conversation has";
            Err(ledger::LedgerError::Unavailable { what: what.into(), source: None }.into())
        })?;
        Ok(left)
    }

    /// Records what is still to be recorded.
    async fn record_remaining(mut self) -> Result<(), TurnError> {
        if matches!(self.phase, Phase::Committing(_)) {
            self.record_commit(false).await?;
        } else if let Some(cursor) =
            self.cursor.clone().filter(|_| self.unrecorded_idle_turns > 0 && self.needs_no_state_recovery())
        {
            let entry = self.unanswered_entry(&cursor, None);
            self.records.put(vec![entry]).await?;
        }
        Ok(self.records.close().await?)
    }

    fn emit(&self, what: EventKind) {
        self.swarm.emit(self.cycles, what);
    }

    /// What a prompt shows of a turn: a JSON object `{id, participant, at, content}`, without secrets, and with `written_by`
    /// if another than its author wrote it.
    fn prompt_line(&self, turn: &Turn) -> String {
        #[derive(serde::Serialize)]
        struct Shown<'a> {
            id: &'a str,
            participant: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            written_by: Option<String>,
            at: &'a str,
            content: &'a str,
        }
        let clean = (!self.swarm.redactor.is_empty()).then(|| self.swarm.redactor.redact(&turn.content).0);
        let content = &*truncate(clean.as_deref().unwrap_or(&turn.content));
        let (id, participant, at) = (&*turn.id, &*turn.participant, &*turn.timestamp);
        let shown =
            Shown { id, participant, written_by: turn.origin().map(ToString::to_string), at, content };
        serde_json::to_string(&shown).unwrap_or_default()
    }

    /// Settles a turn for the first time; the next record lists it.
    fn settle_new(&mut self, turn: Turn) {
        let proof = self.swarm.substrate.id_proof(&turn);
        self.position = self.position.filter(|_| proof != IdProof::Unsupported).map(|before| before + 1);
        if proof != IdProof::Unsupported || is_agent_turn(&self.roster, &turn) {
            self.unrecorded_settled.push(evidence::settled_turn(&turn, proof));
        }
        self.evidence.settle(&turn.id);
        self.settle(turn);
    }

    /// Marks the turn as settled: the next one is newer.
    fn settle(&mut self, turn: Turn) {
        self.chains.settle(&self.roster, &turn);
        self.cursor = Some(turn.id.clone());
        self.settled.push_back(SettledTurn { line: OnceLock::new(), turn });
        while self.settled.len() >= self.swarm.policy.window.max(1) {
            self.settled.pop_front();
        }
    }
}

/// Whether a turn is a participant's: of this manifest, of another runtime's, whose stamp says what it answers, or one that a
/// participant's process wrote in a person's name.
fn is_agent_turn(roster: &[Participant], turn: &Turn) -> bool {
    let answers = turn.stamp.as_ref().is_some_and(|stamp| !stamp.trigger.is_empty());
    let is_process = matches!(turn.origin(), Some(Origin::Process(_)));
    answers || is_process || roster.iter().any(|one| one.id == turn.participant)
}

/// The content, cut to the maximum length of a turn: other writers to the conversation may exceed it.
fn truncate(content: &str) -> Cow<'_, str> {
    match content.len() <= MAX_TURN_BYTES {
        true => content.into(),
        false => {
            let kept = &content[..content.floor_char_boundary(MAX_TURN_BYTES)];
            format!("{kept}\n[the rest is left out: the turn has {} bytes]", content.len()).into()
        }
    }
}

/// A turn's stamp that is this runtime's.
fn own_stamp<'t>(runtime: &str, turn: &'t Turn) -> Option<&'t Stamp> {
    turn.stamp.as_ref().filter(|stamp| &*stamp.runtime == runtime)
}

/// A turn that is settled, and what prompts show of it.
struct SettledTurn {
    turn: Turn,
    /// Made when a participant is asked: most turns of a long conversation are never shown.
    line: OnceLock<String>,
}

/// A trigger that some have answered.
#[derive(Debug)]
struct PartialAnswer {
    trigger: Name,
    selected: Vec<Name>,
    answered: BTreeSet<Name>,
    /// The last of the answers.
    last: Name,
}
