//! Who speaks: dispatchers, and executors that answer, mention others, fail, time out, panic or say nothing, as the seed
//! has it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::conversation::{Participant, Turn};
use quorate_kernel::member_config::MemberConfig;
use quorate_kernel::ports::dispatcher::{Dispatcher, Error, Input};
use quorate_kernel::ports::executor::{About, Executor, Failure, Invocation, Reply};
use quorate_kernel::turn::{Prompt, Speaker};
use quorate_protocol::{Json, Name, answers};
use serde_json::{Map, json};

use super::conversation::position;
use super::log::{Decision, FirstCall, Log};
use super::setup::{BREAKS, Dispatch, Setup, at_most, pick};
use crate::rng::Rng;

/// How long an executor has.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What a participant does about a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behavior {
    Answers,
    /// The first attempt fails, the second answers.
    AnswersAgain,
    /// It fails in the first process that asks, and answers the next.
    AnswersAnother,
    Fails,
    Hangs,
    Panics,
    SaysNothing,
}

impl Behavior {
    pub(super) fn of(seed: u64, trigger: usize, participant: &str) -> Behavior {
        match Rng::from_seed_and_name(seed, &format!("act/{trigger}/{participant}")).below(100) {
            0..74 => Behavior::Answers,
            74..82 => Behavior::AnswersAgain,
            82..85 => Behavior::AnswersAnother,
            85..90 => Behavior::Fails,
            90..94 => Behavior::Hangs,
            94..97 => Behavior::Panics,
            _ => Behavior::SaysNothing,
        }
    }

    /// Whether there is an answer in the end; `None` where that depends on who dies.
    pub(super) fn answers(self) -> Option<bool> {
        match self {
            Behavior::Answers | Behavior::AnswersAgain => Some(true),
            Behavior::AnswersAnother => None,
            _ => Some(false),
        }
    }
}

/// Whom a dispatcher names for a window; `None` where it fails. `draw` is chance's.
pub(super) fn dispatch_targets(
    dispatch: Dispatch,
    roster: &[Name],
    window: &[(&str, &str)],
    draw: &mut Rng,
) -> Option<Vec<Name>> {
    let (by, text) = window.last()?;
    if text.contains(BREAKS) {
        return None;
    }
    let takes_part = |by: &str| roster.iter().position(|one| **one == *by);
    Some(match dispatch {
        Dispatch::Mention => roster.iter().filter(|one| text.contains(&format!("@{one}"))).cloned().collect(),
        Dispatch::RoundRobin => {
            let spoken = window.iter().rev().take_while(|(by, _)| takes_part(by).is_some()).count();
            let last = window.iter().rev().find_map(|(by, _)| takes_part(by));
            let next = last.map_or(0, |last| (last + 1) % roster.len());
            if spoken > roster.len() { Vec::new() } else { vec![roster[next].clone()] }
        }
        Dispatch::Random if *by == "user" => {
            (0..at_most(draw, roster.len())).map(|_| pick(draw, roster)).collect()
        }
        Dispatch::Random => Vec::new(),
    })
}

/// A dispatcher that writes down what it sees and says. It names authors, strangers, and everybody twice: the kernel
/// does not take that.
pub(super) struct RecordingDispatcher {
    pub(super) manifest: usize,
    pub(super) life: usize,
    pub(super) setup: Arc<Setup>,
    pub(super) log: Arc<Mutex<Log>>,
    pub(super) calls: AtomicU64,
}

#[async_trait]
impl Dispatcher for RecordingDispatcher {
    fn kind(&self) -> &'static str {
        "simulated"
    }

    async fn select(&self, input: Input<'_>) -> Result<Vec<Name>, Error> {
        let manifest = &self.setup.manifests[self.manifest];
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let mut draw = Rng::from_seed_and_name(self.setup.seed, &format!("fickle/{}/{call}", self.life));
        let window: Vec<(&str, &str)> =
            input.window.iter().map(|turn| (&*turn.participant, &*turn.content)).collect();
        let named = dispatch_targets(manifest.dispatch, &manifest.roster, &window, &mut draw);
        let seen = input.window.iter().map(|turn| position(&turn.id).unwrap_or(usize::MAX));
        let decided = Decision { manifest: self.manifest, window: seen.collect(), named: named.clone() };
        self.log.lock().unwrap_or_else(PoisonError::into_inner).decided.push(decided);
        let Some(named) = named else { return Err(Error("simulated: a dispatcher failed".to_owned())) };
        tokio::time::sleep(Duration::from_millis(draw.below(3))).await;
        let stranger = Name::from("zed");
        Ok([stranger].iter().chain(&named).chain(&named).cloned().collect())
    }
}

pub(super) fn speaker(setup: &Arc<Setup>, log: &Arc<Mutex<Log>>, life: usize, id: &Name) -> Speaker {
    let player = ScriptedParticipant { me: id.clone(), life, setup: setup.clone(), log: log.clone() };
    let seat = MemberConfig {
        executor: Arc::new(player),
        executor_name: "simulated".into(),
        timeout: TIMEOUT,
        retries: 1,
        role: "role".into(),
        persona: None,
        context: Vec::new(),
        weight: None,
        extra_fields: Map::new(),
        conversation: None,
    };
    let participant = Participant { id: id.clone(), display_name: id.to_string(), ..Participant::default() };
    let prompts = Arc::new(Prompt { text: "You take part.".into(), ..Prompt::default() });
    Speaker { participant, member: seat, prompts }
}

struct ScriptedParticipant {
    me: Name,
    life: usize,
    setup: Arc<Setup>,
    log: Arc<Mutex<Log>>,
}

impl ScriptedParticipant {
    /// What it says: the trigger, itself, its life, what its state counts, and perhaps mentions.
    fn answer(&self, trigger: &Turn, state: &serde_json::Map<String, Json>) -> String {
        let mut chance =
            Rng::from_seed_and_name(self.setup.seed, &format!("says/{}/{}", trigger.id, self.me));
        let names: Vec<Name> = self.setup.names().cloned().collect();
        let mut text = format!("re:{} by:{} life:{}", trigger.id, self.me, self.life);
        for _ in 0..[0, 0, 0, 1, 1, 2][at_most(&mut chance, 5)] {
            text.push_str(&format!(" @{}", pick(&mut chance, &names)));
        }
        if !chance.percent(60) {
            return json!({"content": text}).to_string();
        }
        let count = state.get("n").and_then(Json::as_u64).unwrap_or(0) + 1;
        text.push_str(&format!(" n:{count}"));
        json!({"content": text, "stateUpdate": {"n": count}}).to_string()
    }

    /// Whether no other process has asked before.
    fn is_first(&self, trigger: usize) -> bool {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut asked = log.asked.iter().filter(|one| one.trigger == trigger && one.participant == self.me);
        asked.all(|one| one.life == self.life)
    }
}

#[async_trait]
impl Executor for ScriptedParticipant {
    fn about(&self) -> About {
        About { kind: "simulated", asks_a_model: false, model: None }
    }

    fn turn_schema(&self) -> answers::Schema {
        answers::Schema::Turn
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let speaking = invocation.conversation.clone();
        let told = speaking.as_ref().and_then(|one| Some((one.trigger()?, &one.state)));
        let Some((trigger, state)) = told else { return Err(Failure::failed("nothing to answer")) };
        let at = position(&trigger.id).unwrap_or(usize::MAX);
        if invocation.attempt == 1 {
            let asked = FirstCall { life: self.life, trigger: at, participant: self.me.clone() };
            self.log.lock().unwrap_or_else(PoisonError::into_inner).asked.push(asked);
        }
        let mut chance = Rng::from_seed_and_name(self.setup.seed, &format!("takes/{at}/{}", self.me));
        let longest = if chance.percent(20) { 3_000 } else { 200 };
        tokio::time::sleep(Duration::from_millis(chance.below(longest))).await;
        match Behavior::of(self.setup.seed, at, &self.me) {
            Behavior::AnswersAgain if invocation.attempt == 1 => Err(Failure::failed("not now")),
            Behavior::AnswersAnother if self.is_first(at) => Err(Failure::failed("not you")),
            Behavior::Answers | Behavior::AnswersAgain | Behavior::AnswersAnother => {
                Ok(Reply { text: self.answer(trigger, state), ..Reply::default() })
            }
            Behavior::Fails => Err(Failure::failed("never")),
            Behavior::Hangs => {
                tokio::time::sleep_until(invocation.deadline).await;
                Err(Failure::TimedOut)
            }
            // Without the message that a panic prints.
            Behavior::Panics => std::panic::resume_unwind(Box::new("simulated")),
            Behavior::SaysNothing => {
                Ok(Reply { text: json!({"content": " "}).to_string(), ..Reply::default() })
            }
        }
    }
}
