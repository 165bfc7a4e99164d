//! Operate: one participant answers the newest turn of a conversation once, regardless of the dispatcher.
//!
//! It runs the turn cycle over an excerpt of the conversation: a window of which only the newest turn is answered.
//! Prompts, deadlines, budgets, redaction and records are therefore those of every other turn. The answer is posted
//! under a key that a runtime of the same manifest recognizes, with the stamp of a detached runtime, which finds its
//! position by its own turns.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::conversation::{NewTurn, Stamp, Turn};
use quorate_kernel::entropy;
use quorate_kernel::ports::dispatcher::{self, Dispatcher, Input};
use quorate_kernel::ports::state::{State, StateError};
use quorate_kernel::ports::substrate::{About, Appended, Keeps, Page, Substrate, SubstrateError};
use quorate_kernel::ports::telemetry::Telemetry;
use quorate_kernel::turn::{Begin, CycleResult, HookFlags, Policy, Runner, Swarm};
use quorate_protocol::{Json, Name};
use serde_json::Map;

use super::error::Error;
use super::runtime::drive::SHUTDOWN_TIMEOUT;
use super::runtime::{OpenRuntime, Runtime};

/// The prefix of a detached runtime's name in stamps. No manifest id has a colon.
pub(crate) const DETACHED_RUNTIME_PREFIX: &str = "mcp:";

/// What to do with the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyMode {
    /// Returns it only; the participant does not remember it.
    ReturnOnly,
    /// Appends it, once per key; without a key, once per answered turn.
    Post(Option<Name>),
}

/// A participant's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The text, without secrets.
    pub text: String,
    /// The id of the appended turn; `None` if the answer is only returned.
    pub turn: Option<Name>,
}

/// Lets a participant answer the turn `newest` of a conversation whose ports other callers share.
///
/// # Errors
/// If the participant gives no answer, or substrate or ledger fail.
pub(crate) async fn operate(
    ready: &OpenRuntime,
    shared: &Runtime,
    participant: Name,
    newest: Name,
    reply: ReplyMode,
    telemetry: Arc<dyn Telemetry>,
) -> Result<Response, Error> {
    ready.ensure_writable()?;
    let (substrate, state) = (shared.substrate.clone(), shared.state.clone());
    let swarm = ready.swarm(None, telemetry)?;
    let mut window = substrate.window(&newest, swarm.policy.window.max(1)).await?;
    ready.check_window(&*substrate, &mut window).await?;
    let excerpt = Arc::new(WindowSubstrate {
        place: format!("{}#{}", substrate.about().place, entropy::run_id()),
        // No turn counts as this runtime's: only the newest one is answered.
        window: window.into_iter().map(without_runtime).collect(),
        reply: reply.clone(),
        said: Mutex::new(None),
        substrate,
    });
    let only = FixedSpeaker { participant: participant.clone(), answers: newest.clone() };
    let state: Arc<dyn State> = match reply {
        ReplyMode::Post(_) => state,
        ReplyMode::ReturnOnly => Arc::new(ReadOnlyState(state)),
    };
    let none = HookFlags { on_turn_end: false, on_mention: false, on_idle: false };
    let policy = Policy { reentry: true, max_agent_turns: usize::MAX, ..swarm.policy };
    let swarm = Swarm {
        substrate: excerpt.clone(),
        dispatcher: Arc::new(only),
        lifecycles: Vec::new(),
        flags: none,
        policy,
        state,
        ..swarm
    };
    let not_answered = |why: &str| {
        let body = Body::new(format!("`{participant}` did not answer: {why}"));
        let help = "run `quorate doctor` to check whether its executor can be called";
        Error::configuration(codes::OPERATOR_FAILED, body.help(help))
    };
    let mut runner = Runner::open(Arc::new(swarm), Begin::First).await?;
    let mut ask = async || -> Result<_, Error> {
        loop {
            match runner.cycle().await? {
                CycleResult::Asked { failed, .. } => break Ok(failed),
                CycleResult::Idle { .. } | CycleResult::Guarded { .. } | CycleResult::Undecided { .. } => {}
                CycleResult::BudgetExhausted { .. } => {
                    break Err(not_answered("the call limit of this run is reached"));
                }
                CycleResult::NoNewTurn => break Ok(Vec::new()),
            }
        }
    };
    let failed = match ready.runtime.wall {
        None => ask().await?,
        Some(wall) => {
            let spent = |_| not_answered("the time limit of this run is reached (`[budget] wall`)");
            tokio::time::timeout(wall, ask()).await.map_err(spent)??
        }
    };
    runner.close(SHUTDOWN_TIMEOUT).await?;
    if let Some((_, failure)) = failed.first() {
        return Err(not_answered(&failure.why));
    }
    match excerpt.take_response() {
        Some(said) => Ok(said),
        // Its executor appends its answers itself, or there was nothing to answer.
        None => match excerpt.find_posted(&participant, &newest).await? {
            Some(turn) => Ok(Response { text: turn.content.to_string(), turn: Some(turn.id) }),
            None => Err(not_answered("its answer is not in the conversation")),
        },
    }
}

fn without_runtime(turn: Turn) -> Turn {
    let stamp = turn.stamp.map(|stamp| Stamp { runtime: Name::default(), ..stamp });
    Turn { stamp, ..turn }
}

/// Selects one participant, for one turn.
struct FixedSpeaker {
    participant: Name,
    answers: Name,
}

#[async_trait]
impl Dispatcher for FixedSpeaker {
    fn kind(&self) -> &'static str {
        "operate"
    }

    async fn select(&self, input: Input<'_>) -> Result<Vec<Name>, dispatcher::DispatchError> {
        let is_newest = input.trigger().is_some_and(|turn| turn.id == self.answers);
        Ok(if is_newest { vec![self.participant.clone()] } else { Vec::new() })
    }
}

/// The window of a conversation, and the target of the answer.
struct WindowSubstrate {
    substrate: Arc<dyn Substrate>,
    place: String,
    window: Vec<Turn>,
    reply: ReplyMode,
    said: Mutex<Option<Response>>,
}

impl WindowSubstrate {
    fn take_response(&self) -> Option<Response> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The participant's first turn after `after`.
    async fn find_posted(&self, participant: &Name, after: &Name) -> Result<Option<Turn>, SubstrateError> {
        const PAGE: usize = 128;
        let page = self.substrate.read(Some(after), PAGE).await?;
        // If `after` is missing, the page starts at the beginning.
        Ok(page.turns.into_iter().find(|turn| page.known && turn.participant == *participant))
    }
}

#[async_trait]
impl Substrate for WindowSubstrate {
    fn about(&self) -> About {
        About { keeps: Keeps::Stamps, place: self.place.clone(), ..self.substrate.about() }
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, SubstrateError> {
        let (appended, id) = match &self.reply {
            ReplyMode::ReturnOnly => {
                let turn = Turn {
                    id: "given".into(),
                    participant: turn.participant,
                    timestamp: turn.timestamp.into(),
                    content: turn.content,
                    meta: turn.meta,
                    stamp: turn.stamp,
                };
                (Appended { turn, fresh: true }, None)
            }
            ReplyMode::Post(key) => {
                let stamp = turn.stamp.map(|stamp| Stamp {
                    key: key.clone().unwrap_or(stamp.key),
                    runtime: format!("{DETACHED_RUNTIME_PREFIX}{}", stamp.runtime).into(),
                    state: None,
                    ..stamp
                });
                let appended = self.substrate.append(NewTurn { stamp, ..turn }).await?;
                let id = appended.turn.id.clone();
                (appended, Some(id))
            }
        };
        let response = Response { text: appended.turn.content.to_string(), turn: id };
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(response);
        Ok(appended)
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, SubstrateError> {
        let at = since.map(|since| self.window.iter().position(|turn| turn.id == *since));
        let from = match at {
            None | Some(None) => 0,
            Some(Some(at)) => at + 1,
        };
        let turns = self.window.iter().skip(from).take(limit).cloned().collect();
        Ok(Page { turns, known: at != Some(None) })
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, SubstrateError> {
        self.substrate.window(at, count).await
    }

    async fn changed(&self) -> Result<(), SubstrateError> {
        // An excerpt has no further turns.
        std::future::pending().await
    }
}

/// A store that ignores writes.
struct ReadOnlyState(Arc<dyn State>);

#[async_trait]
impl State for ReadOnlyState {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    async fn read(&self, participant: &str) -> Result<Map<String, Json>, StateError> {
        self.0.read(participant).await
    }

    async fn write(&self, _participant: &str, _state: &Map<String, Json>) -> Result<(), StateError> {
        Ok(())
    }
}
