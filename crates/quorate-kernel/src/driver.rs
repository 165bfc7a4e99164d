//! The driver runs a protocol against the world (X7). It feeds events, appends what follows, syncs before commands and when
//! a model's answer is recorded, and performs the commands.

mod run_loop;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::{Command, Fact, Json, Name, Part, Protocol, TimedEvent};
use serde_json::Map;
use tracing::Instrument as _;

use crate::budget::Caps;
use crate::canonical;
use crate::clock::Clock;
use crate::consultation::object;
use crate::entropy;
use crate::extensions::{Extensions, HostCall};
use crate::history::{self, History};
use crate::member_config::MemberConfig;
use crate::observer::Observer;
use crate::ports::ledger::{self, Body, Entry, Ledger};
use crate::record::{RunIntent, RunOpened};
use crate::redact::Redactor;
use run_loop::{EarlierSessions, RunLoop, Step};

/// What one run needs: protocol, members, limits and ports.
pub struct RunConfig {
    pub run: Name,
    /// The seed from which the prompts' nonce is derived.
    pub seed: [u8; 32],
    /// The state machine that decides who is asked next.
    pub protocol: Box<dyn Protocol>,
    /// Member configs by member id.
    pub members: BTreeMap<Name, MemberConfig>,
    /// Limits on calls, tokens and money.
    pub caps: Caps,
    /// How long the run may be worked on; `None` is no limit.
    pub wall: Option<Duration>,
    /// Removes secrets before anything is recorded.
    pub redactor: Redactor,
    /// Rules, gather strategies and the embedder of the embedding program.
    pub extensions: Extensions,
    /// Where records are appended.
    pub ledger: Arc<dyn Ledger>,
    /// The source of recorded timestamps.
    pub clock: Arc<dyn Clock>,
    pub observer: Arc<dyn Observer>,
}

/// How a run starts.
#[derive(Debug, Clone)]
pub struct Opening {
    pub opened: RunOpened,
    /// What is deliberated on, redacted.
    pub inputs: Vec<Part>,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// The body of the outcome.
    pub outcome: Map<String, Json>,
    /// The number of the run's next record.
    pub next: u64,
}

/// Why a run stopped without an outcome. What was recorded stays, and the run can be resumed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ledger refused or failed.
    #[error(transparent)]
    Ledger(#[from] ledger::Error),
    /// The facts derived from the recorded events differ from the recorded facts.
    #[error("replay mismatch: {kind} record of run {run}")]
    ReplayMismatch {
        run: Name,
        /// The kind of record.
        kind: String,
    },
    /// The run stalled: no pending invocations and no outcome.
    #[error("run {0} stalled: no pending invocations and no outcome")]
    Stalled(Name),
    /// The protocol asked a member without a config.
    #[error("no executor configured for member `{member}` of run {run}")]
    NoExecutor { run: Name, member: Name },
}

impl RunConfig {
    /// Opens the run and drives it to its end.
    ///
    /// # Errors
    /// See [`Error`].
    #[crate::boxed]
    pub async fn open(self, opening: Opening) -> Result<RunResult, Error> {
        let span = self.span();
        self.open_in_span(opening).instrument(span).await
    }

    async fn open_in_span(mut self, opening: Opening) -> Result<RunResult, Error> {
        tracing::info!("opened");
        let at_ms = self.clock.now_ms();
        let bodies = opening.inputs.iter().map(body).collect();
        let event = history::opened_event(self.run.clone(), &opening.opened, opening.inputs);
        let commands = self.protocol.advance(&TimedEvent { at_ms, event });
        let entry = Entry::of(&opening.opened, at_ms);
        let mut session = RunLoop::new(self, 0, EarlierSessions::default());
        let step = Step { entries: vec![entry], bodies, commands, ..Step::default() };
        session.append_and_perform(at_ms, step).await?;
        session.run().await
    }

    /// Resumes a run: feeds the recorded events and asks only for the missing ones. `superseded` is what
    /// [`History::reopen`] took back.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::ReplayMismatch`] when the recorded facts do not follow from the recorded events.
    #[crate::boxed]
    pub async fn resume(
        self,
        history: &History,
        inputs: Vec<Part>,
        superseded: Vec<Name>,
    ) -> Result<RunResult, Error> {
        let span = self.span();
        self.resume_in_span(history, inputs, superseded).instrument(span).await
    }

    fn span(&self) -> tracing::Span {
        tracing::info_span!("run", run = %self.run, protocol = self.protocol.version())
    }

    async fn resume_in_span(
        mut self,
        history: &History,
        inputs: Vec<Part>,
        superseded: Vec<Name>,
    ) -> Result<RunResult, Error> {
        tracing::info!(calls = history.calls, "resumed");
        let at_ms = self.clock.now_ms();
        let mut waiting: BTreeMap<Name, Command> = BTreeMap::new();
        let mut facts: VecDeque<Fact> = VecDeque::new();
        let mut finished = false;
        for stamped in history.events(inputs) {
            if let Some(key) = history::answered_key(&stamped.event) {
                waiting.remove(&key);
            }
            for command in self.protocol.advance(&stamped) {
                match command {
                    Command::Cancel(id) => drop(waiting.remove(&id)),
                    Command::Record(fact) => facts.push_back(fact),
                    Command::Finish => finished = true,
                    command => drop(waiting.insert(command_key(&command), command)),
                }
            }
        }
        self.check_recorded_facts(history, &mut facts)?;
        let mut commands: Vec<Command> = waiting.into_values().collect();
        commands.extend(facts.into_iter().map(Command::Record));
        commands.extend(finished.then_some(Command::Finish));
        let intent = RunIntent { resumes: true, supersedes: superseded, ..RunIntent::default() };
        let before = EarlierSessions { calls: history.calls, charged: history.charged, wall: history.wall };
        let mut session = RunLoop::new(self, history.next, before);
        session.outcome = history.outcome_data().cloned();
        session.append_and_perform(at_ms, Step { commands, intent, ..Step::default() }).await?;
        session.run().await
    }

    /// Removes the facts that are recorded already and compares them with the record.
    fn check_recorded_facts(&self, history: &History, facts: &mut VecDeque<Fact>) -> Result<(), Error> {
        for (kind, data) in &history.facts {
            let same = facts.pop_front().filter(|fact| {
                fact.kind.as_str() == kind
                    && canonical::object(&object(fact.data.clone())) == canonical::object(data)
            });
            if same.is_none() {
                return Err(Error::ReplayMismatch { run: self.run.clone(), kind: kind.clone() });
            }
        }
        Ok(())
    }
}

fn command_key(command: &Command) -> Name {
    match command {
        Command::Invoke(invoke) => invoke.id.clone(),
        command => {
            HostCall::from_command(command.clone()).map_or_else(|| "".into(), |host_call| host_call.key())
        }
    }
}

fn body(part: &Part) -> Body {
    Body { sha256: entropy::sha256_hex(part.text.as_bytes()), text: part.text.clone() }
}
