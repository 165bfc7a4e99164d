//! Swarms from seeds: kernels on one conversation, of successive or concurrent processes, of one manifest or two; people
//! who post in between; delays and failures in every port, before and after a call takes effect; crashes, power failures
//! and interruptions at any step. Every checker runs on the result.

mod boundaries;
mod check;
mod conversation;
mod expected;
mod life;
mod log;
mod participants;
mod process;
mod setup;
mod stores;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorate_kernel::clock::{Clock as _, rfc3339};
use quorate_kernel::conversation::NewTurn;
use quorate_kernel::ports::ledger::{Ledger as _, Record};
use quorate_kernel::ports::substrate::Keeps;
use quorate_kernel::turn::{Begin, CycleResult, Runner};
use serde_json::Map;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Violation;
use crate::clock::JumpingClock;
use crate::faults::CrashingLedger;
pub use boundaries::{Boundaries, simulate_boundaries};
use conversation::SharedConversation;
use life::{Failures, Life, LifePlan};
use log::Log;
use process::{Process, World};
use setup::{Message, Setup};

/// How often the conversation is checked, and after how many checks it must be idle.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
const MAX_POLLS: usize = 1_000;

/// The result of one simulation, for statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    pub turns: usize,
    /// The number of turns that answer another.
    pub answers: usize,
    /// The number of calls without an answer.
    pub failed: usize,
    pub deaths: usize,
    pub interrupts: usize,
    /// The number of triggers skipped since participants had spoken too often in a row.
    pub guarded: usize,
    /// Whether the substrate keeps only turns.
    pub bare: bool,
    /// The number of concurrent processes.
    pub processes: usize,
    pub manifests: usize,
}

/// Simulates one conversation from a seed and checks the invariants.
///
/// # Errors
/// The first violated invariant, with the seed to reproduce it.
pub async fn simulate(seed: u64) -> Result<Summary, Violation> {
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
