//! Swarms from seeds: kernels on one conversation, of successive or concurrent processes, of one manifest or two; people
//! who post in between; delays and failures in every port, before and after a call takes effect; crashes, power failures
//! and interruptions at any step. Every checker runs on the result.

mod check;
mod conversation;
mod life;
mod process;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorate_kernel::clock::{Clock as _, rfc3339};
use quorate_kernel::conversation::NewTurn;
use quorate_kernel::ports::ledger::{Ledger as _, Record};
use quorate_kernel::ports::substrate::Keeps;
use quorate_kernel::turn::{Begin, CycleResult, Policy, Runner};
use quorate_protocol::Name;
use serde_json::Map;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Violation;
use conversation::{Log, SharedConversation};
use life::{Failures, Life, LifePlan};
use process::{Process, World};
use quorate_testkit::faults::CrashingLedger;
use quorate_testkit::scripted::{JumpingClock, Rng};

/// How often the conversation is checked, and after how many checks it must be idle.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
const MAX_POLLS: usize = 1_000;

/// The result of one simulation, for statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Summary {
    pub(crate) turns: usize,
    /// The number of turns that answer another.
    pub(crate) answers: usize,
    /// The number of calls without an answer.
    pub(crate) failed: usize,
    pub(crate) deaths: usize,
    pub(crate) interrupts: usize,
    /// The number of triggers skipped since participants had spoken too often in a row.
    pub(crate) guarded: usize,
    /// Whether the substrate keeps only turns.
    pub(crate) bare: bool,
    /// The number of concurrent processes.
    pub(crate) processes: usize,
    pub(crate) manifests: usize,
}

/// Simulates one conversation from a seed and checks the invariants.
///
/// # Errors
/// The first violated invariant, with the seed to reproduce it.
pub(crate) async fn simulate(seed: u64) -> Result<Summary, Violation> {
    let simulated = simulated(Setup::new(seed), Vec::new()).await;
    simulated.map(|(summary, _)| summary).map_err(|what| Violation::new(seed, what))
}

/// Simulates a conversation, its first lives by `plans`; also returns the steps of the last planned life.
async fn simulated(setup: Setup, plans: Vec<LifePlan>) -> Result<(Summary, Vec<&'static str>), String> {
    let setup = Arc::new(setup);
    let failures = Failures { percent: setup.failure_percent, left: AtomicUsize::new(setup.failures) };
    let world = Arc::new(World {
        talk: Arc::new(SharedConversation::new(setup.keeps)),
        log: Arc::default(),
        clock: Arc::new(JumpingClock::new(setup.seed)),
        failures: Arc::new(failures),
        states: process::states(&setup),
        finished: watch::Sender::new(false),
        plans: Mutex::new(plans.into()),
        planned: Mutex::default(),
        deaths: AtomicUsize::new(0),
        interrupts: AtomicUsize::new(0),
        failed: AtomicUsize::new(0),
        setup: setup.clone(),
    });
    setup.before.iter().for_each(|saying| say(&world, saying));
    let ledgers: Vec<Vec<Arc<Mutex<Arc<CrashingLedger>>>>> =
        (0..setup.manifests.len()).map(|manifest| process::ledgers(&setup, manifest)).collect();
    let mut processes = JoinSet::new();
    let mut idle_at = Vec::new();
    for (manifest, ledgers) in ledgers.iter().enumerate() {
        for (number, ledger) in ledgers.iter().enumerate() {
            let idle: Arc<AtomicUsize> = Arc::default();
            idle_at.push(idle.clone());
            let (world, ledger) = (world.clone(), ledger.clone());
            processes.spawn(Process { world, manifest, number, ledger, idle_at: idle }.run());
        }
    }
    let mut people = JoinSet::new();
    for writer in 0..setup.people.len() {
        let world = world.clone();
        people.spawn(async move {
            for saying in &world.setup.people[writer] {
                tokio::time::sleep(Duration::from_millis(saying.after_ms)).await;
                say(&world, saying);
            }
        });
    }
    while people.join_next().await.is_some() {}
    wait_until_idle(&world, &idle_at, &mut processes).await?;
    world.finished.send_replace(true);
    while let Some(ended) = processes.join_next().await {
        ended.map_err(|_| "a process panicked".to_owned())??;
    }
    catch_up(&world, &ledgers, &idle_at).await?;
    let mut records = Vec::new();
    for (manifest, ledgers) in ledgers.iter().enumerate() {
        records.push(check_nothing_left(&world, manifest, ledgers).await?);
    }
    let summary = check::check_all(&world, &records).map_err(|what| describe(&world, what))?;
    let summary = Summary {
        deaths: world.deaths.load(Ordering::Relaxed),
        interrupts: world.interrupts.load(Ordering::Relaxed),
        bare: setup.keeps == Keeps::Turns,
        processes: idle_at.len(),
        manifests: setup.manifests.len(),
        ..summary
    };
    let planned = world.planned.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((summary, planned.as_ref().map(|life| life.steps()).unwrap_or_default()))
}

/// A violation, with the world in which it occurred.
fn describe(world: &World, mut text: String) -> String {
    let Setup { keeps, manifests, failure_percent: fails, .. } = &*world.setup;
    text.push_str(&format!("\nthe substrate keeps {keeps:?}, {fails} of 100 steps fail"));
    text.extend(manifests.iter().map(|manifest| format!("\n{manifest:?}")));
    for turn in world.talk.turns() {
        text.push_str(&format!("\n{} {}: {}", turn.id, turn.participant, turn.content));
    }
    text
}

fn say(world: &World, saying: &Message) {
    world.talk.append(NewTurn {
        participant: saying.by.clone(),
        content: saying.text.as_str().into(),
        timestamp: rfc3339(world.clock.now_ms()),
        meta: Map::new(),
        stamp: None,
    });
}

/// Waits until no turn is appended any more, and every process has found nothing to do since.
async fn wait_until_idle(
    world: &World,
    idle_at: &[Arc<AtomicUsize>],
    processes: &mut JoinSet<Result<(), String>>,
) -> Result<(), String> {
    for _ in 0..MAX_POLLS {
        tokio::time::sleep(POLL_INTERVAL).await;
        if let Some(ended) = processes.try_join_next() {
            ended.map_err(|_| "a process panicked".to_owned())??;
            return Err("a process ended before all was said".to_owned());
        }
        let length = world.talk.len();
        if idle_at.iter().all(|length_seen| length_seen.load(Ordering::Relaxed) == length) {
            return Ok(());
        }
    }
    Err(format!("the conversation does not come to rest; it has {} turns", world.talk.len()))
}

/// Runs the processes that ended before they had seen the whole conversation.
async fn catch_up(
    world: &Arc<World>,
    ledgers: &[Vec<Arc<Mutex<Arc<CrashingLedger>>>>],
    idle_at: &[Arc<AtomicUsize>],
) -> Result<(), String> {
    let ledgers = ledgers.iter().enumerate();
    let processes: Vec<_> = ledgers
        .flat_map(|(manifest, all)| all.iter().map(move |ledger| (manifest, ledger)))
        .zip(idle_at)
        .collect();
    for _ in 0..MAX_POLLS {
        let is_behind = |idle_at: &AtomicUsize| idle_at.load(Ordering::Relaxed) < world.talk.len();
        let Some(((manifest, ledger), idle_at)) = processes.iter().find(|(_, idle_at)| is_behind(idle_at))
        else {
            return Ok(());
        };
        let life = Life::undisturbed(world.begin_life(*manifest));
        let mut runner = open_runner(world, *manifest, ledger, &life).await?;
        loop {
            let length = world.talk.len();
            if runner.cycle().await.map_err(|error| error.to_string())? == CycleResult::NoNewTurn {
                idle_at.store(length, Ordering::Relaxed);
                break;
            }
        }
        runner.close(Duration::from_secs(2)).await.map_err(|error| error.to_string())?;
    }
    Err("the processes do not come to rest".to_owned())
}

async fn open_runner(
    world: &World,
    manifest: usize,
    ledger: &Mutex<Arc<CrashingLedger>>,
    life: &Arc<Life>,
) -> Result<Runner, String> {
    let ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let swarm = world.swarm(manifest, life, &ledger);
    Runner::open(swarm, Begin::First).await.map_err(|error| error.to_string())
}

/// Asserts that a last process of each ledger finds nothing to do; returns its records.
async fn check_nothing_left(
    world: &Arc<World>,
    manifest: usize,
    ledgers: &[Arc<Mutex<Arc<CrashingLedger>>>],
) -> Result<Vec<Vec<Record>>, String> {
    let mut all = Vec::new();
    for ledger in ledgers {
        let (length, asked) = (world.talk.len(), asked(&world.log));
        let life = Life::undisturbed(world.begin_life(manifest));
        let mut runner = open_runner(world, manifest, ledger, &life).await?;
        let cycled = runner.cycle().await.map_err(|error| error.to_string())?;
        // If a state could not be stored at the end, the record of a skipped turn is missing, and it is skipped again.
        let may_pass_over =
            world.setup.may_fail && matches!(cycled, CycleResult::Idle { .. } | CycleResult::Guarded { .. });
        if world.setup.manifests[manifest].is_single_process()
            && cycled != CycleResult::NoNewTurn
            && !may_pass_over
        {
            return Err(format!("all was said and settled, and a new process finds something: {cycled:?}"));
        }
        if world.talk.len() != length || asked != self::asked(&world.log) {
            return Err("all turns are settled, and a new process asks a participant".to_owned());
        }
        let stream = Runner::stream(&world.setup.manifests[manifest].id, conversation::PLACE);
        runner.close(Duration::from_secs(2)).await.map_err(|error| error.to_string())?;
        let ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.push(ledger.records(&stream).await.map_err(|error| error.to_string())?);
    }
    Ok(all)
}

fn asked(log: &Mutex<Log>) -> usize {
    log.lock().unwrap_or_else(PoisonError::into_inner).asked.len()
}

/// How many steps an outage lasts: longer than the runner tries again.
const OUTAGE: usize = 12;
/// How many steps after the first disturbance the second one may come.
const SECOND_WITHIN: usize = 8;

/// The step after which a successor has something to restore.
const AFTER_APPEND: &str = "an append that was done";
/// How many such crashes are simulated, and how many steps of the process that comes next are disturbed.
const CRASHES: usize = 2;
const FIRST_STEPS: usize = 14;

/// The plan of a life that is disturbed at a step.
type Disturbance = fn(usize) -> LifePlan;

/// The disturbances of a life, each from the index of a step.
const DISTURBANCES: [(&str, Disturbance); 8] = [
    ("crash", |at| LifePlan { crash: Some(at), ..LifePlan::default() }),
    ("power failure", |at| LifePlan { crash: Some(at), loses_power: true, ..LifePlan::default() }),
    ("interruption", |at| LifePlan { interrupt: Some(at), ..LifePlan::default() }),
    ("dropped cycle", |at| LifePlan { drop: Some(at), ..LifePlan::default() }),
    ("failure", |at| LifePlan { failing: at..at + 1, ..LifePlan::default() }),
    ("outage", |at| LifePlan { failing: at..at + OUTAGE, ..LifePlan::default() }),
    ("interruption and crash", |at| LifePlan {
        interrupt: Some(at),
        crash: Some(second(at)),
        ..LifePlan::default()
    }),
    ("failure and interruption", |at| LifePlan {
        failing: at..at + 1,
        interrupt: Some(second(at)),
        ..LifePlan::default()
    }),
];

/// The step of a second disturbance; over all first steps, every distance comes up at every kind of step.
fn second(at: usize) -> usize {
    at + 1 + at % SECOND_WITHIN
}

/// What the simulations of [`simulate_boundaries`] have covered.
#[derive(Debug)]
pub(crate) struct Boundaries {
    pub(crate) simulations: usize,
    /// Each disturbance, with the step at which it came.
    pub(crate) disturbed: BTreeSet<(&'static str, &'static str)>,
    /// Each disturbance comes at every step of a kind, or at every second one.
    stride: usize,
}

/// Simulates one short conversation from a seed once for each step of its first process and each disturbance, and checks
/// the invariants each time. Then the same for the first steps of a process whose predecessor crashed after an append.
///
/// # Errors
/// The first violated invariant, with the seed, the disturbance and the step.
pub(crate) async fn simulate_boundaries(seed: u64) -> Result<Boundaries, Violation> {
    disturb_every(1, seed).await
}

/// As [`simulate_boundaries`], with each disturbance at every second step of each kind.
///
/// # Errors
/// As [`simulate_boundaries`].
pub(crate) async fn simulate_half_of_boundaries(seed: u64) -> Result<Boundaries, Violation> {
    disturb_every(2, seed).await
}

async fn disturb_every(stride: usize, seed: u64) -> Result<Boundaries, Violation> {
    let mut covered = Boundaries { simulations: 0, disturbed: BTreeSet::new(), stride };
    let steps = covered.sweep(seed, &[], usize::MAX).await?;
    let appends = steps.iter().enumerate().filter(|(_, step)| **step == AFTER_APPEND);
    for (at, _) in appends.take(CRASHES) {
        let crash = LifePlan { crash: Some(at), ..LifePlan::default() };
        covered.sweep(seed, &[crash], FIRST_STEPS).await?;
    }
    Ok(covered)
}

impl Boundaries {
    /// Disturbs the life after those of `before` at each of its steps, up to `most`. Returns its steps.
    async fn sweep(
        &mut self,
        seed: u64,
        before: &[LifePlan],
        most: usize,
    ) -> Result<Vec<&'static str>, Violation> {
        let simulate = async |plan| {
            let plans = before.iter().cloned().chain([plan]).collect();
            simulated(Setup::brief(seed), plans).await.map(|(_, steps)| steps)
        };
        let undisturbed = simulate(LifePlan::default()).await;
        let steps = undisturbed.map_err(|what| Violation::new(seed, what))?;
        self.simulations += 1;
        for (disturbance, plan) in DISTURBANCES {
            let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
            for (at, step) in steps.iter().enumerate().take(most) {
                // The first step of each kind is always disturbed.
                let earlier = seen.entry(step).or_default();
                *earlier += 1;
                if !(*earlier - 1).is_multiple_of(self.stride) {
                    continue;
                }
                let violated = |what| {
                    let life = before.len();
                    Violation::new(seed, format!("{disturbance} at step {at} of life {life}, {step}: {what}"))
                };
                let disturbed = simulate(plan(at)).await.map_err(violated)?;
                self.simulations += 1;
                self.disturbed.extend(disturbed.get(at).map(|step| (disturbance, *step)));
            }
        }
        Ok(steps)
    }
}

/// The names of participants. None is a prefix of another.
const NAMES: [&str; 8] = ["ana", "bo", "cy", "dee", "eli", "fay", "gus", "hal"];

/// A mention of no participant.
const UNKNOWN_MENTION: &str = "@zed";
/// A trigger with this text makes a dispatcher fail.
const BREAKS: &str = "!breaks";

/// The setup of a simulation.
struct Setup {
    seed: u64,
    keeps: Keeps,
    /// The manifests that run over the conversation.
    manifests: Vec<Manifest>,
    /// Messages before the first process starts.
    before: Vec<Message>,
    /// Messages of people, each after a pause.
    people: Vec<Vec<Message>>,
    /// The percentage of steps that fail.
    failure_percent: u64,
    /// Whether steps fail at all, at random or by plan.
    may_fail: bool,
    failures: usize,
    /// The longest step, in milliseconds.
    slowest_ms: u64,
}

#[derive(Debug)]
struct Manifest {
    id: Name,
    roster: Vec<Name>,
    policy: Policy,
    dispatch: Dispatch,
    /// Whether the dispatcher asks an executor for each decision.
    asks: bool,
    /// The number of concurrent processes.
    processes: usize,
    /// Whether they share one ledger.
    one_ledger: bool,
    /// Whether a process ends when idle, and is started again; else it waits.
    comes_and_goes: bool,
    /// Whether a process continues after a failure of the substrate; else it ends, and is started again.
    patient: bool,
    /// The number of crashes and interruptions.
    deaths: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dispatch {
    Mention,
    /// All participants in turn, one round after a person's turn.
    RoundRobin,
    /// A random participant after a person's turn, another one at each call.
    Random,
}

struct Message {
    /// The pause before it, in milliseconds.
    after_ms: u64,
    by: Name,
    text: String,
}

impl Setup {
    fn new(seed: u64) -> Setup {
        let mut rng = Rng::from_seed_and_name(seed, "swarm");
        let rng = &mut rng;
        let keeps = if rng.percent(20) { Keeps::Turns } else { Keeps::Stamps };
        let two = keeps == Keeps::Stamps && rng.percent(35);
        let shared = two && rng.percent(30);
        let size = |rng: &mut Rng| 1 + at_most(rng, 3);
        let (first, second) = (size(rng), size(rng));
        let start = if shared { first - 1 } else { first };
        let mut manifests = vec![manifest(rng, "one", &NAMES[..first], keeps)];
        if two {
            manifests.push(manifest(rng, "two", &NAMES[start..start + second], keeps));
        }
        if shared {
            // A participant of both manifests could be asked by either, so both must select alike.
            let (policy, dispatch) = (manifests[0].policy, Dispatch::Mention);
            for manifest_entry in &mut manifests {
                (manifest_entry.policy, manifest_entry.dispatch) = (policy, dispatch);
            }
        }
        let names: Vec<Name> =
            manifests.iter().flat_map(|manifest_entry| manifest_entry.roster.clone()).collect();
        let many = rng.percent(3);
        let before = if many { 100 + at_most(rng, 160) } else { at_most(rng, 4) };
        let before = (0..before).map(|at| saying(rng, &names, &format!("b{at}"), if many { 4 } else { 50 }));
        let before = before.collect();
        let people = (0..1 + at_most(rng, 2)).map(|writer| {
            let says = 1 + at_most(rng, 5);
            (0..says).map(|at| saying(rng, &names, &format!("h{writer}.{at}"), 85)).collect()
        });
        let people = people.collect();
        let failure_percent = [0, 2, 8, 20][at_most(rng, 3)];
        Setup {
            seed,
            keeps,
            manifests,
            before,
            people,
            failure_percent,
            may_fail: failure_percent > 0,
            failures: 5 + at_most(rng, 60),
            slowest_ms: [0, 20, 400][at_most(rng, 2)],
        }
    }

    /// A short conversation of one process, undisturbed except by plan.
    fn brief(seed: u64) -> Setup {
        let mut setup = Setup::new(seed);
        setup.manifests.truncate(1);
        for manifest in &mut setup.manifests {
            (manifest.processes, manifest.deaths, manifest.asks) = (1, 0, seed.is_multiple_of(2));
        }
        setup.keeps = if seed.is_multiple_of(3) { Keeps::Turns } else { Keeps::Stamps };
        setup.before.truncate(3);
        setup.people.truncate(1);
        setup.people.iter_mut().for_each(|messages| messages.truncate(3));
        (setup.failure_percent, setup.may_fail) = (0, true);
        setup
    }

    /// The participants of all manifests.
    fn names(&self) -> impl Iterator<Item = &Name> {
        self.manifests.iter().flat_map(|manifest| &manifest.roster)
    }
}

impl Manifest {
    /// Whether at most one process runs it at any time.
    fn is_single_process(&self) -> bool {
        self.processes == 1
    }
}

fn manifest(rng: &mut Rng, id: &str, roster: &[&str], keeps: Keeps) -> Manifest {
    let dispatch = match rng.below(100) {
        0..70 => Dispatch::Mention,
        70..88 => Dispatch::RoundRobin,
        _ => Dispatch::Random,
    };
    let may_be_two = keeps == Keeps::Stamps && dispatch != Dispatch::Random;
    Manifest {
        id: id.into(),
        roster: roster.iter().map(|name| Name::from(*name)).collect(),
        policy: Policy {
            reentry: rng.percent(25),
            max_agent_turns: [1, 2, 3, 5, 8, 20][at_most(rng, 5)],
            window: [0, 1, 2, 5, 30][at_most(rng, 4)],
        },
        dispatch,
        asks: rng.percent(25),
        processes: 1 + usize::from(may_be_two && rng.percent(25)),
        one_ledger: rng.percent(50),
        comes_and_goes: rng.percent(40),
        patient: rng.percent(60),
        deaths: [0, 0, 2, 8][at_most(rng, 3)],
    }
}

/// A message that mentions a participant in `mentions` percent of cases.
fn saying(rng: &mut Rng, names: &[Name], text: &str, mentions: u64) -> Message {
    let mut text = text.to_owned();
    if rng.percent(mentions) {
        for _ in 0..=at_most(rng, 2) {
            text.push_str(&format!(" @{}", pick(rng, names)));
        }
    }
    if rng.percent(5) {
        text.push_str(&format!(" {UNKNOWN_MENTION}"));
    }
    if rng.percent(4) {
        text.push_str(&format!(" {BREAKS}"));
    }
    // `--as` takes any id.
    let author = if rng.percent(8) { pick(rng, names) } else { "user".into() };
    Message { after_ms: rng.below(6_000), by: author, text }
}

fn pick(rng: &mut Rng, names: &[Name]) -> Name {
    names[at_most(rng, names.len() - 1)].clone()
}

/// A number from 0 to `most`.
fn at_most(rng: &mut Rng, most: usize) -> usize {
    usize::try_from(rng.below(most as u64 + 1)).unwrap_or(0)
}
