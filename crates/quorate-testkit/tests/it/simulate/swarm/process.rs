//! A process that runs a manifest, restarted until the conversation is idle.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::attempts::MemberConfig;
use quorate_kernel::conversation::{Participant, Turn};
use quorate_kernel::ports::dispatcher::{self, Dispatcher, Input, Question};
use quorate_kernel::ports::executor::{About, Executor, Failure, Invocation, Reply};
use quorate_kernel::ports::substrate;
use quorate_kernel::redact::Redactor;
use quorate_kernel::turn::{Begin, CycleResult, HookFlags, Prompt, Runner, Speaker, Swarm, TurnError};
use quorate_protocol::{Json, Name, answers};
use serde_json::{Map, json};
use tokio::sync::watch;

use super::conversation::{
    Decision, FirstCall, FlakyLedger, FlakyState, FlakySubstrate, Log, RecordingTelemetry,
    SharedConversation, States, UnreliableHooks, position,
};
use super::life::{Failures, Life, LifePlan, wait_for};
use super::{BREAKS, Dispatch, Setup, at_most, pick};
use quorate_testkit::faults::CrashingLedger;
use quorate_testkit::scripted::{JumpingClock, Rng};

/// The longest time to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// More lives than any process needs: nearly all end by one of a few crashes or failures, or at the end.
const MAX_LIVES: usize = 2_000;

/// The state that all processes of a simulation share.
pub(super) struct World {
    pub(super) setup: Arc<Setup>,
    pub(super) talk: Arc<SharedConversation>,
    pub(super) log: Arc<Mutex<Log>>,
    pub(super) clock: Arc<JumpingClock>,
    pub(super) failures: Arc<Failures>,
    /// The participants' states of each manifest.
    pub(super) states: Vec<States>,
    /// Whether all people have spoken, so that processes may end.
    pub(super) finished: watch::Sender<bool>,
    /// What disturbs the first lives, where that is not left to chance.
    pub(super) plans: Mutex<VecDeque<LifePlan>>,
    /// The last of the lives that were planned.
    pub(super) planned: Mutex<Option<Arc<Life>>>,
    pub(super) deaths: AtomicUsize,
    pub(super) interrupts: AtomicUsize,
    /// The number of lives that ended by a failure.
    pub(super) failed: AtomicUsize,
}

/// A process of a manifest.
pub(super) struct Process {
    pub(super) world: Arc<World>,
    pub(super) manifest: usize,
    pub(super) number: usize,
    /// Its ledger, replaced after a power failure.
    pub(super) ledger: Arc<Mutex<Arc<CrashingLedger>>>,
    /// The least number of turns when it last found nothing to do.
    pub(super) idle_at: Arc<AtomicUsize>,
}

enum LifeResult {
    /// The simulation is over, and it has closed.
    Over,
    /// It was idle, and has closed.
    Idle,
    /// It was interrupted, and has closed.
    Interrupted,
    Died,
    /// A failure that it does not survive.
    Failed,
}

impl World {
    /// Registers a new life.
    pub(super) fn begin_life(&self, manifest: usize) -> usize {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.lives.push(manifest);
        log.lives.len() - 1
    }

    /// A manifest with a handle for each port.
    pub(super) fn swarm(
        &self,
        manifest: usize,
        life: &Arc<Life>,
        ledger: &Arc<CrashingLedger>,
    ) -> Arc<Swarm> {
        let (setup, log, number) = (&self.setup, &self.log, life.number);
        let config = &setup.manifests[manifest];
        Arc::new(Swarm {
            runtime: config.id.clone(),
            substrate: Arc::new(FlakySubstrate {
                talk: self.talk.clone(),
                life: life.clone(),
                seen: AtomicUsize::new(0),
            }),
            dispatcher: Arc::new(RecordingDispatcher {
                manifest,
                life: number,
                setup: setup.clone(),
                log: log.clone(),
                calls: AtomicU64::new(0),
                process: life.clone(),
            }),
            state: Arc::new(FlakyState { states: self.states[manifest].clone(), life: life.clone() }),
            lifecycles: vec![Arc::new(UnreliableHooks { life: number, log: log.clone(), seed: setup.seed })],
            flags: HookFlags::default(),
            telemetry: Arc::new(RecordingTelemetry {
                life: number,
                log: log.clone(),
                trigger: Mutex::new(usize::MAX),
            }),
            speakers: config.roster.iter().map(|id| speaker(setup, log, life, id)).collect(),
            policy: config.policy,
            caps: quorate_kernel::budget::Caps::default(),
            redactor: Redactor::default(),
            ledger: Arc::new(FlakyLedger {
                manifest,
                ledger: ledger.clone(),
                life: life.clone(),
                talk: self.talk.clone(),
                log: log.clone(),
            }),
            clock: self.clock.clone(),
        })
    }
}

impl Process {
    /// Runs until the simulation is over.
    ///
    /// # Errors
    /// When it does not end.
    pub(super) async fn run(self) -> Result<(), String> {
        let Process { world, manifest, number, .. } = &self;
        let config = &world.setup.manifests[*manifest];
        let mut rng = Rng::from_seed_and_name(world.setup.seed, &format!("process/{}/{number}", config.id));
        let mut deaths = config.deaths;
        let mut failed = String::new();
        for _ in 0..MAX_LIVES {
            let planned = world.plans.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let is_planned = planned.is_some();
            let plan = planned.unwrap_or_else(|| next_plan(&mut rng, &mut deaths));
            let loses_power = plan.loses_power && config.is_single_process();
            let life = Life::new(
                world.begin_life(*manifest),
                plan,
                Rng::new(rng.next_u64()),
                world.failures.clone(),
                world.setup.slowest_ms,
            );
            if is_planned {
                *world.planned.lock().unwrap_or_else(PoisonError::into_inner) = Some(life.clone());
            }
            let lived = tokio::select! {
                biased;
                () = life.died() => LifeResult::Died,
                result = self.run_life(&life, config.comes_and_goes, config.patient, &mut failed) => result,
            };
            match lived {
                LifeResult::Over => return Ok(()),
                LifeResult::Died => {
                    world.deaths.fetch_add(1, Ordering::Relaxed);
                    if loses_power {
                        self.lose_power(&mut rng).await;
                    }
                }
                LifeResult::Interrupted => {
                    world.interrupts.fetch_add(1, Ordering::Relaxed);
                }
                LifeResult::Failed => {
                    world.failed.fetch_add(1, Ordering::Relaxed);
                }
                LifeResult::Idle => tokio::time::sleep(Duration::from_millis(rng.below(16_000))).await,
            }
            tokio::time::sleep(Duration::from_millis(rng.below(4_000))).await;
        }
        Err(format!("a process of `{}` has lived {MAX_LIVES} times; what failed last: {failed}", config.id))
    }

    async fn lose_power(&self, rng: &mut Rng) {
        let before = self.ledger();
        let after = before.after_power_loss(at_most(rng, 3), None).await;
        *self.ledger.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(after);
    }

    fn ledger(&self) -> Arc<CrashingLedger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn run_life(
        &self,
        life: &Arc<Life>,
        comes_and_goes: bool,
        patient: bool,
        last_error: &mut String,
    ) -> LifeResult {
        let swarm = self.world.swarm(self.manifest, life, &self.ledger());
        let mut runner = match Runner::open(swarm, Begin::First).await {
            Ok(runner) => runner,
            Err(error) => {
                *last_error = error.to_string();
                return LifeResult::Failed;
            }
        };
        let driven = tokio::select! {
            biased;
            () = life.interrupted() => LifeResult::Interrupted,
            driven = self.drive(life, &mut runner, comes_and_goes, patient, last_error) => driven,
        };
        match (runner.close(CLOSE_TIMEOUT).await, driven) {
            (Ok(_), driven) => driven,
            (Err(_), LifeResult::Interrupted) => LifeResult::Interrupted,
            (Err(error), _) => {
                *last_error = error.to_string();
                LifeResult::Failed
            }
        }
    }

    async fn drive(
        &self,
        life: &Life,
        runner: &mut Runner,
        comes_and_goes: bool,
        patient: bool,
        last_error: &mut String,
    ) -> LifeResult {
        loop {
            let (is_over, length) = (*self.world.finished.borrow(), self.world.talk.len());
            let cycled = tokio::select! {
                biased;
                () = life.cycle_dropped() => {
                    self.world.log.lock().unwrap_or_else(PoisonError::into_inner).dropped.insert(life.number);
                    continue;
                }
                cycled = runner.cycle() => cycled,
            };
            let cycled = match cycled {
                Ok(CycleResult::NoNewTurn) => {
                    self.idle_at.store(length, Ordering::Relaxed);
                    if is_over {
                        return LifeResult::Over;
                    }
                    if comes_and_goes {
                        return LifeResult::Idle;
                    }
                    tokio::select! {
                        changed = runner.changed() => changed,
                        () = wait_for(&self.world.finished) => Ok(()),
                    }
                }
                cycled => cycled.map(|_| ()),
            };
            match cycled {
                Ok(()) => {}
                Err(TurnError::Substrate(substrate::SubstrateError::Unavailable { .. })) if patient => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Err(error) => {
                    *last_error = error.to_string();
                    return LifeResult::Failed;
                }
            }
        }
    }
}

/// What disturbs the next life; a few end early.
fn next_plan(rng: &mut Rng, remaining: &mut usize) -> LifePlan {
    if *remaining == 0 {
        return LifePlan::default();
    }
    *remaining -= 1;
    let limit = [8, 40, 200][at_most(rng, 2)];
    let step = Some(at_most(rng, limit));
    match rng.percent(70) {
        true => LifePlan { crash: step, loses_power: rng.percent(40), ..LifePlan::default() },
        false => LifePlan { interrupt: step, ..LifePlan::default() },
    }
}

/// The ledgers of a manifest's processes.
pub(super) fn ledgers(setup: &Setup, manifest: usize) -> Vec<Arc<Mutex<Arc<CrashingLedger>>>> {
    let config = &setup.manifests[manifest];
    let new = || Arc::new(Mutex::new(Arc::new(CrashingLedger::new(None))));
    let shared = new();
    (0..config.processes).map(|_| if config.one_ledger { shared.clone() } else { new() }).collect()
}

pub(super) fn states(setup: &Setup) -> Vec<States> {
    setup.manifests.iter().map(|_| Arc::new(Mutex::new(BTreeMap::new()))).collect()
}

/// The timeout of an executor: longer than two attempts and a pause take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A participant's behaviour for a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behavior {
    Answers,
    /// The first attempt fails, the second answers.
    AnswersAgain,
    /// It fails in the first process that asks, and answers in the next.
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

    /// Whether there is an answer in the end; `None` if that depends on which process dies.
    pub(super) fn answers(self) -> Option<bool> {
        match self {
            Behavior::Answers | Behavior::AnswersAgain => Some(true),
            Behavior::AnswersAnother => None,
            _ => Some(false),
        }
    }
}

/// The selection of a dispatcher for a window; `None` if it fails. `draw` is for random dispatchers.
pub(super) fn dispatch_targets(
    dispatch: Dispatch,
    roster: &[Name],
    window: &[(&str, &str)],
    draw: &mut Rng,
) -> Option<Vec<Name>> {
    let (author, text) = window.last()?;
    if text.contains(BREAKS) {
        return None;
    }
    let index_of = |author: &str| roster.iter().position(|name| **name == *author);
    Some(match dispatch {
        Dispatch::Mention => {
            roster.iter().filter(|name| text.contains(&format!("@{name}"))).cloned().collect()
        }
        Dispatch::RoundRobin => {
            let in_a_row = window.iter().rev().take_while(|(author, _)| index_of(author).is_some()).count();
            let last = window.iter().rev().find_map(|(author, _)| index_of(author));
            let next = last.map_or(0, |last| (last + 1) % roster.len());
            if in_a_row > roster.len() { Vec::new() } else { vec![roster[next].clone()] }
        }
        Dispatch::Random if *author == "user" => {
            (0..at_most(draw, roster.len())).map(|_| pick(draw, roster)).collect()
        }
        Dispatch::Random => Vec::new(),
    })
}

/// A dispatcher that logs its input and result. It also names authors and unknown ids, and each name twice, which the
/// kernel must filter.
pub(super) struct RecordingDispatcher {
    pub(super) manifest: usize,
    pub(super) life: usize,
    pub(super) setup: Arc<Setup>,
    pub(super) log: Arc<Mutex<Log>>,
    pub(super) calls: AtomicU64,
    pub(super) process: Arc<Life>,
}

#[async_trait]
impl Dispatcher for RecordingDispatcher {
    fn kind(&self) -> &'static str {
        "simulated"
    }

    async fn select(&self, input: Input<'_>) -> Result<Vec<Name>, dispatcher::DispatchError> {
        self.process.pause("a decision").await;
        let manifest = &self.setup.manifests[self.manifest];
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let mut draw = Rng::from_seed_and_name(self.setup.seed, &format!("fickle/{}/{call}", self.life));
        let window: Vec<(&str, &str)> =
            input.window.iter().map(|turn| (&*turn.participant, &*turn.content)).collect();
        let targets = dispatch_targets(manifest.dispatch, &manifest.roster, &window, &mut draw);
        let seen = input.window.iter().map(|turn| position(&turn.id).unwrap_or(usize::MAX));
        let seen = seen.collect();
        {
            let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            let (manifest, life, taken) = (self.manifest, self.life, log.taken.len());
            log.decided.push(Decision { manifest, life, taken, window: seen, named: targets.clone() });
        }
        if manifest.asks {
            let question = Question {
                role: String::new(),
                task: "Who is next?".to_owned(),
                parts: Vec::new(),
                answer_schema: answers::Schema::Selection,
            };
            // The answer does not matter: the test checks that a paid call is not repeated.
            let _ = input.ask.ask(&member_config(Advisor(self.process.clone())), question).await;
        }
        self.process.pause("a decision that was made").await;
        let Some(targets) = targets else {
            return Err(dispatcher::DispatchError("simulated: a dispatcher failed".to_owned()));
        };
        tokio::time::sleep(Duration::from_millis(draw.below(3))).await;
        let unknown = Name::from("zed");
        Ok([unknown].iter().chain(&targets).chain(&targets).cloned().collect())
    }
}

pub(super) fn speaker(setup: &Arc<Setup>, log: &Arc<Mutex<Log>>, life: &Arc<Life>, id: &Name) -> Speaker {
    let player = ScriptedParticipant {
        me: id.clone(),
        life: life.number,
        setup: setup.clone(),
        log: log.clone(),
        process: life.clone(),
    };
    let participant = Participant { id: id.clone(), display_name: id.to_string(), ..Participant::default() };
    let prompts = Arc::new(Prompt { text: "You take part.".into(), ..Prompt::default() });
    Speaker { participant, member: member_config(player), prompts }
}

fn member_config(executor: impl Executor + 'static) -> MemberConfig {
    MemberConfig {
        executor: Arc::new(executor),
        executor_name: "simulated".into(),
        timeout: TIMEOUT,
        retries: 1,
        stand_ins: Arc::default(),
        samples: 1,
        role: "role".into(),
        persona: None,
        context: Vec::new(),
        weight: None,
        extra_fields: Map::new(),
        conversation: None,
        shared: None,
    }
}

/// The executor that a dispatcher asks; its first attempt fails now and then.
struct Advisor(Arc<Life>);

#[async_trait]
impl Executor for Advisor {
    fn about(&self) -> About {
        About { kind: "simulated", asks_a_model: false, model: None }
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        self.0.pause("an advisor's call").await;
        match invocation.attempt == 1 && invocation.id.ends_with(['1', '4', '7']) {
            true => Err(Failure::failed("not now")),
            false => Ok(Reply { text: json!({"next": []}).to_string(), ..Reply::default() }),
        }
    }
}

struct ScriptedParticipant {
    me: Name,
    life: usize,
    setup: Arc<Setup>,
    log: Arc<Mutex<Log>>,
    process: Arc<Life>,
}

impl ScriptedParticipant {
    /// The text of an answer: the trigger, the author, the life, the count of its state, and perhaps mentions.
    fn answer(&self, trigger: &Turn, state: &serde_json::Map<String, Json>) -> String {
        let mut rng = Rng::from_seed_and_name(self.setup.seed, &format!("says/{}/{}", trigger.id, self.me));
        let names: Vec<Name> = self.setup.names().cloned().collect();
        let mut text = format!("re:{} by:{} life:{}", trigger.id, self.me, self.life);
        for _ in 0..[0, 0, 0, 1, 1, 2][at_most(&mut rng, 5)] {
            text.push_str(&format!(" @{}", pick(&mut rng, &names)));
        }
        if !rng.percent(60) {
            return json!({"content": text}).to_string();
        }
        let count = state.get("n").and_then(Json::as_u64).unwrap_or(0) + 1;
        text.push_str(&format!(" n:{count}"));
        json!({"content": text, "stateUpdate": {"n": count}}).to_string()
    }

    /// Whether no other process has asked before.
    fn is_first(&self, trigger: usize) -> bool {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut calls =
            log.asked.iter().filter(|call| call.trigger == trigger && call.participant == self.me);
        calls.all(|call| call.life == self.life)
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
        let conversation = invocation.conversation.clone();
        let input = conversation.as_ref().and_then(|context| Some((context.trigger()?, &context.state)));
        let Some((trigger, state)) = input else { return Err(Failure::failed("nothing to answer")) };
        let at = position(&trigger.id).unwrap_or(usize::MAX);
        if invocation.attempt == 1 {
            let call = FirstCall { life: self.life, trigger: at, participant: self.me.clone() };
            self.log.lock().unwrap_or_else(PoisonError::into_inner).asked.push(call);
        }
        self.process.pause("a call").await;
        let mut rng = Rng::from_seed_and_name(self.setup.seed, &format!("takes/{at}/{}", self.me));
        let longest = if rng.percent(20) { 3_000 } else { 200 };
        tokio::time::sleep(Duration::from_millis(rng.below(longest))).await;
        self.process.pause("an answer").await;
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
            // Without printing the panic's message.
            Behavior::Panics => std::panic::resume_unwind(Box::new("simulated")),
            Behavior::SaysNothing => {
                Ok(Reply { text: json!({"content": " "}).to_string(), ..Reply::default() })
            }
        }
    }
}
