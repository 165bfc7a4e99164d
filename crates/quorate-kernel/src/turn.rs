//! The turn cycle (AIP-48): the second driver. It reads what is new, has it dispatched, asks the speakers, and appends
//! what they say. Its truth is the substrate; the ledger, the states and the cursor are made good from it (SEMANTICS
//! K2, K3, K5).

mod cycle;
mod dispatch;
mod hooks;
mod post;
mod recorder;
mod recover;
mod speak;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use quorate_protocol::{Json, Name, Part};
use serde_json::Map;
use tokio::time::Instant;

use crate::budget::Calls;
use crate::call::Table;
use crate::clock::{Clock, rfc3339};
use crate::conversation::{LONGEST_TURN, NewTurn, Participant, Stamp, Turn};
use crate::entropy;
use crate::observe::Nobody;
use crate::ports::dispatcher::Dispatcher;
use crate::ports::ledger::{self, Ledger};
use crate::ports::lifecycle::{DEADLINE, Lifecycle};
use crate::ports::state::State;
use crate::ports::substrate::{self, Substrate};
use crate::ports::telemetry::{Event, Telemetry, What};
use crate::prompt::Layout;
use crate::redact::Redactor;
use crate::seat::Seat;

use hooks::Hooks;
use recorder::Records;

/// How many turns are read at once.
const PAGE: usize = 128;
/// How many times as long as a hook the ledger may take at the end: it is behind the conversation by design.
const RECORDING: u32 = 5;

/// One manifest, with an adapter in each port.
pub struct Swarm {
    /// The manifest's id.
    pub runtime: Name,
    /// Where the conversation lives.
    pub substrate: Arc<dyn Substrate>,
    /// Who speaks next.
    pub dispatcher: Arc<dyn Dispatcher>,
    /// What participants remember.
    pub state: Arc<dyn State>,
    /// Who wants to know.
    pub lifecycles: Vec<Arc<dyn Lifecycle>>,
    /// Which hooks are called.
    pub flags: Flags,
    /// Where events go.
    pub telemetry: Arc<dyn Telemetry>,
    /// Who takes part, in the manifest's order.
    pub speakers: Vec<Speaker>,
    /// What holds whatever the dispatcher is.
    pub policy: Policy,
    /// The calls that this process may make; `None` is no cap.
    pub max_calls: Option<u32>,
    /// What must not be recorded or passed on.
    pub redactor: Redactor,
    /// Where it is recorded.
    pub ledger: Arc<dyn Ledger>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

/// One who takes part, and how it is asked.
#[derive(Clone)]
pub struct Speaker {
    /// As the manifest has it.
    pub participant: Participant,
    /// Who answers.
    pub seat: Seat,
    /// Its role, with the overlays that hold.
    pub prompts: Arc<dyn Prompts>,
}

/// What a participant is told to be, from turn to turn.
#[async_trait]
pub trait Prompts: Send + Sync {
    /// The text as it is now.
    ///
    /// # Errors
    /// Why it cannot be had, for a person; the participant's turn fails then.
    async fn prompt(&self) -> Result<Prompt, String>;
}

/// What a participant is told to be.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prompt {
    /// The text.
    pub text: Arc<str>,
    /// SHA-256 of what was woven into it.
    pub woven: Vec<String>,
    /// What is recorded with the consultation besides.
    pub marks: Map<String, Json>,
}

/// A text that stays the same.
#[async_trait]
impl Prompts for Prompt {
    async fn prompt(&self) -> Result<Prompt, String> {
        Ok(self.clone())
    }
}

/// Which hooks are called (K9: all unless said).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags {
    /// `onTurnEnd`.
    pub on_turn_end: bool,
    /// `onMention`.
    pub on_mention: bool,
    /// `onIdle`.
    pub on_idle: bool,
}

impl Default for Flags {
    fn default() -> Self {
        Flags { on_turn_end: true, on_mention: true, on_idle: true }
    }
}

/// What holds whatever the dispatcher is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Whether the author of a trigger may answer it.
    pub reentry: bool,
    /// How many turns of participants there may be in a row without a person's.
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
    /// After the turns that are there.
    Now,
}

/// What came of a cycle.
#[derive(Debug, Clone, PartialEq)]
pub enum Cycled {
    /// Somebody was asked.
    Asked {
        /// The trigger.
        trigger: Name,
        /// What was appended.
        appended: Vec<Turn>,
        /// Who has not spoken, and why.
        failed: Vec<(Name, String)>,
    },
    /// Nobody answers this turn.
    Idle {
        /// The turn.
        trigger: Name,
        /// Why, if not because the dispatcher named nobody.
        why: Option<String>,
    },
    /// The dispatcher could not say who answers this turn; nobody does.
    Undecided {
        /// The turn.
        trigger: Name,
        /// Why.
        why: String,
    },
    /// The calls of this run do not suffice for everybody who is to answer this turn: nobody was asked, and it is still
    /// to be answered.
    Spent {
        /// The turn.
        trigger: Name,
    },
    /// There is no new turn.
    Nothing,
}

/// What a cycle that did not come to its end has left.
#[derive(Debug, Clone, PartialEq)]
pub struct Left {
    /// The turn that was being answered.
    pub trigger: Name,
    /// What was said by then, and is appended.
    pub appended: Vec<Turn>,
    /// Who was asked and had not answered: whoever takes up the conversation asks them again.
    pub unheard: Vec<Name>,
}

/// Why the loop cannot go on. What was recorded stays; the same can be tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The substrate refused or failed.
    #[error(transparent)]
    Substrate(#[from] substrate::Error),
    /// The ledger refused or failed.
    #[error(transparent)]
    Ledger(#[from] ledger::Error),
    /// It cannot be said where this runtime left off.
    #[error("{0}")]
    Lost(String),
}

/// A swarm at work: one process's loop over one conversation.
pub struct Runner {
    swarm: Arc<Swarm>,
    roster: Vec<Participant>,
    /// What the substrate said of itself at the start.
    about: substrate::About,
    table: Arc<Table>,
    records: Records,
    hooks: Hooks,
    /// The last turn that is settled.
    cursor: Option<Name>,
    /// The last turn that was read.
    read_to: Option<Name>,
    /// Read and not settled, oldest first.
    pending: VecDeque<Turn>,
    /// The last turns that are settled, at most one less than a window.
    behind: VecDeque<Settled>,
    /// How many of the last settled turns are participants' without a person's between.
    in_a_row: usize,
    /// What is known of the first pending turn from before this process started.
    resumed: Option<Answering>,
    /// The trigger that is being answered.
    underway: Option<Underway>,
    /// The last trigger that was answered, where something of it is still to be done.
    open: Option<Open>,
    /// Said and not yet appended, and whether that was tried.
    unposted: VecDeque<(NewTurn, bool)>,
    /// Appended with a state that is not yet stored.
    unwritten: BTreeMap<Name, Map<String, Json>>,
    /// How many turns were settled without an answer since the last record.
    passed_over: usize,
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
    /// See [`Error`].
    pub async fn open(swarm: Arc<Swarm>, begin: Begin) -> Result<Runner, Error> {
        let about = swarm.substrate.about();
        let stream = Runner::stream(&swarm.runtime, &about.place);
        let last = recover::last(&*swarm.ledger, &stream).await?;
        let table = Arc::new(Table {
            run: stream.clone(),
            layout: Layout { nonce: entropy::nonce(&entropy::bytes()) },
            calls: Calls::new(swarm.max_calls, 0),
            redactor: swarm.redactor.clone(),
            observer: Arc::new(Nobody),
            clock: swarm.clock.clone(),
        });
        let records = Records::start(swarm.ledger.clone(), stream, last.next);
        let hooks = Hooks::new(swarm.lifecycles.clone(), swarm.telemetry.clone(), swarm.clock.clone());
        let mut runner = Runner {
            roster: swarm.speakers.iter().map(|one| one.participant.clone()).collect(),
            about,
            table,
            records,
            hooks,
            cursor: last.cursor,
            read_to: None,
            pending: VecDeque::new(),
            behind: VecDeque::new(),
            in_a_row: 0,
            resumed: None,
            underway: None,
            open: None,
            unposted: VecDeque::new(),
            unwritten: BTreeMap::new(),
            passed_over: 0,
            cycles: 0,
            swarm,
        };
        runner.recover(begin, &last.recorded).await?;
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
    pub async fn changed(&self) -> Result<(), Error> {
        Ok(self.swarm.substrate.changed().await?)
    }

    /// Waits for the hooks that are under way, each as long as it may take.
    pub async fn settle_hooks(&mut self) {
        self.hooks.settle(DEADLINE).await;
    }

    /// Appends and writes what is still to be, and waits for hooks, at most for `limit` each, and for the ledger at most
    /// for five times as long. Gives what a cycle that was interrupted has left.
    ///
    /// # Errors
    /// When a record could not be written.
    pub async fn close(mut self, limit: Duration) -> Result<Option<Left>, Error> {
        // What was said and paid for is not lost for being interrupted.
        let all_heard = |open: &Open| (open.trigger.id.clone(), Vec::new());
        let left = self.break_off().or_else(|| self.open.as_ref().map(all_heard));
        let finished = tokio::time::timeout(limit, self.finish()).await;
        let left = left.map(|(trigger, unheard)| {
            let appended = match (finished, &self.open) {
                (Ok(Ok(Some(Cycled::Asked { appended, .. }))), _) => appended,
                (_, Some(open)) => open.appended.clone(),
                _ => Vec::new(),
            };
            Left { trigger, appended, unheard }
        });
        self.hooks.settle(limit).await;
        let recorded = tokio::time::timeout(limit * RECORDING, self.record_rest()).await;
        recorded.unwrap_or_else(|_| {
            let what = "the ledger did not take the last records in time; the next run records what the conversation has";
            Err(ledger::Error::Unavailable { what: what.into(), source: None }.into())
        })?;
        Ok(left)
    }

    /// Records what is still to be recorded.
    async fn record_rest(mut self) -> Result<(), Error> {
        if self.open.is_some() {
            self.record_open(false).await?;
        } else if let Some(cursor) =
            self.cursor.clone().filter(|_| self.passed_over > 0 && self.is_remembered())
        {
            let entry = self.passed(&cursor, None);
            self.records.put(vec![entry]).await?;
        }
        Ok(self.records.close().await?)
    }

    fn emit(&self, what: What) {
        let at = rfc3339(self.swarm.clock.now_ms());
        self.swarm.telemetry.emit(&Event { cycle: self.cycles, at, what });
    }

    /// Whether a turn is a participant's: of this manifest, or of another runtime's, whose stamp says what it answers.
    fn is_agents(&self, turn: &Turn) -> bool {
        let answers = turn.stamp.as_ref().is_some_and(|stamp| !stamp.trigger.is_empty());
        answers || self.roster.iter().any(|one| one.id == turn.participant)
    }

    /// What a prompt shows of a turn: a JSON object `{id, participant, at, content}`, without secrets.
    fn shown(&self, turn: &Turn) -> String {
        #[derive(serde::Serialize)]
        struct Shown<'a> {
            id: &'a str,
            participant: &'a str,
            at: &'a str,
            content: &'a str,
        }
        let clean = (!self.swarm.redactor.is_empty()).then(|| self.swarm.redactor.redact(&turn.content).0);
        let content = &*cut(clean.as_deref().unwrap_or(&turn.content));
        let shown = Shown { id: &turn.id, participant: &turn.participant, at: &turn.timestamp, content };
        serde_json::to_string(&shown).unwrap_or_default()
    }

    /// The turn is settled: whatever comes next is newer.
    fn settle(&mut self, turn: Turn) {
        self.in_a_row = if self.is_agents(&turn) { self.in_a_row + 1 } else { 0 };
        self.cursor = Some(turn.id.clone());
        self.behind.push_back(Settled { line: self.shown(&turn), turn });
        while self.behind.len() >= self.swarm.policy.window.max(1) {
            self.behind.pop_front();
        }
    }
}

/// As much of what was said as a turn may have: whoever writes into the conversation by other means may have said more.
fn cut(content: &str) -> Cow<'_, str> {
    match content.len() <= LONGEST_TURN {
        true => content.into(),
        false => {
            let kept = &content[..content.floor_char_boundary(LONGEST_TURN)];
            format!("{kept}\n[the rest is left out: the turn has {} bytes]", content.len()).into()
        }
    }
}

/// A turn's stamp that is this runtime's.
fn ours<'t>(runtime: &str, turn: &'t Turn) -> Option<&'t Stamp> {
    turn.stamp.as_ref().filter(|stamp| &*stamp.runtime == runtime)
}

/// A turn that is settled, and what prompts show of it.
struct Settled {
    turn: Turn,
    line: String,
}

/// A trigger that some have answered.
struct Answering {
    trigger: Name,
    /// Who was selected.
    selected: Vec<Name>,
    answered: BTreeSet<Name>,
    /// The last of the answers.
    last: Name,
}

/// Everything that the speakers of one cycle share.
struct Scene {
    /// The window, redacted.
    window: Vec<Turn>,
    /// It, as prompts show it.
    turns: Part,
    conversation: Option<String>,
}

/// A trigger that is being answered.
struct Underway {
    trigger: Turn,
    selected: Vec<Name>,
    asked: Vec<Name>,
    started: Instant,
    /// Who has come to an end so far.
    spoken: Mutex<Vec<Spoken>>,
}

/// A trigger that is answered, until its answers are appended, remembered and recorded.
struct Open {
    trigger: Turn,
    /// Whether everybody was heard.
    whole: bool,
    selected: Vec<Name>,
    failed: Vec<(Name, String)>,
    /// What is to be recorded of those who were asked.
    entries: Vec<ledger::Entry>,
    appended: Vec<Turn>,
    /// Whether it is in the ledger's queue.
    recorded: bool,
    started: Instant,
}

/// What one speaker came to.
struct Spoken {
    participant: Name,
    result: Result<Said, (&'static str, String)>,
    entries: Vec<ledger::Entry>,
    took: Duration,
}

/// What was said.
struct Said {
    content: String,
    meta: Map<String, Json>,
    state: Option<Map<String, Json>>,
    posted: Option<Name>,
}
