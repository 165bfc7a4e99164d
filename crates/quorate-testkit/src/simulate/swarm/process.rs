//! A process that runs a manifest: over as many lives as it takes, until the conversation is at rest.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorate_kernel::ports::substrate;
use quorate_kernel::redact::Redactor;
use quorate_kernel::turn::{Begin, CycleResult, Error, HookFlags, Runner, Swarm};
use tokio::sync::watch;

use super::conversation::{FlakySubstrate, SharedConversation};
use super::life::{Failures, Life, LifeEnd, wait_for};
use super::log::{Log, RecordingTelemetry, UnreliableHooks};
use super::participants::{RecordingDispatcher, speaker};
use super::setup::{Setup, at_most};
use super::stores::{FlakyLedger, FlakyState, States};
use crate::clock::JumpingClock;
use crate::faults::CrashingLedger;
use crate::rng::Rng;

/// How long a process has to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// More lives than any process has: every one but a few ends by one of a few deaths or failures, or when all is said.
const MAX_LIVES: usize = 2_000;

/// Everything that all processes of a simulation share.
pub(super) struct World {
    pub(super) setup: Arc<Setup>,
    pub(super) talk: Arc<SharedConversation>,
    pub(super) log: Arc<Mutex<Log>>,
    pub(super) clock: Arc<JumpingClock>,
    pub(super) failures: Arc<Failures>,
    /// What the participants of each manifest remember.
    pub(super) states: Vec<States>,
    /// Whether everything is said, so that processes may end.
    pub(super) finished: watch::Sender<bool>,
    pub(super) deaths: AtomicUsize,
    pub(super) interrupts: AtomicUsize,
    /// How many lives ended since something failed.
    pub(super) failed: AtomicUsize,
}

/// A process of a manifest.
pub(super) struct Process {
    pub(super) world: Arc<World>,
    pub(super) manifest: usize,
    pub(super) number: usize,
    /// The ledger that it records in; another one after a loss of power.
    pub(super) ledger: Arc<Mutex<Arc<CrashingLedger>>>,
    /// How many turns there were at least when it last found nothing to do.
    pub(super) rested: Arc<AtomicUsize>,
}

/// How a life went.
enum LifeResult {
    /// Everything is said, and it has closed.
    Over,
    /// It has closed, for now.
    Idle,
    /// It was interrupted, and has closed.
    Interrupted,
    Died,
    /// Something failed that it does not go on after.
    Failed,
}

impl World {
    /// Notes that a life begins.
    pub(super) fn begin_life(&self, manifest: usize) -> usize {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.lives.push(manifest);
        log.lives.len() - 1
    }

    /// A manifest with a handle in each port.
    pub(super) fn swarm(
        &self,
        manifest: usize,
        life: &Arc<Life>,
        ledger: &Arc<CrashingLedger>,
    ) -> Arc<Swarm> {
        let (setup, log, number) = (&self.setup, &self.log, life.number);
        let of = &setup.manifests[manifest];
        Arc::new(Swarm {
            runtime: of.id.clone(),
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
            }),
            state: Arc::new(FlakyState { states: self.states[manifest].clone(), life: life.clone() }),
            lifecycles: vec![Arc::new(UnreliableHooks { life: number, log: log.clone(), seed: setup.seed })],
            flags: HookFlags::default(),
            telemetry: Arc::new(RecordingTelemetry {
                life: number,
                log: log.clone(),
                trigger: Mutex::new(usize::MAX),
            }),
            speakers: of.roster.iter().map(|id| speaker(setup, log, number, id)).collect(),
            policy: of.policy,
            max_calls: None,
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
    /// Runs until everything is said.
    ///
    /// # Errors
    /// When it does not come to an end.
    pub(super) async fn run(self) -> Result<(), String> {
        let Process { world, manifest, number, .. } = &self;
        let of = &world.setup.manifests[*manifest];
        let mut chance = Rng::from_seed_and_name(world.setup.seed, &format!("process/{}/{number}", of.id));
        let mut deaths = of.deaths;
        let mut failed = String::new();
        for _ in 0..MAX_LIVES {
            let end = next_life_end(&mut chance, &mut deaths);
            let life = Life::new(
                world.begin_life(*manifest),
                end,
                Rng::new(chance.next_u64()),
                world.failures.clone(),
                world.setup.slowest_ms,
            );
            let lived = tokio::select! {
                biased;
                () = life.died() => LifeResult::Died,
                lived = self.run_life(&life, of.comes_and_goes, of.patient, &mut failed) => lived,
            };
            match lived {
                LifeResult::Over => return Ok(()),
                LifeResult::Died => {
                    world.deaths.fetch_add(1, Ordering::Relaxed);
                    if of.is_single_process() && chance.percent(40) {
                        self.lose_power(&mut chance).await;
                    }
                }
                LifeResult::Interrupted => {
                    world.interrupts.fetch_add(1, Ordering::Relaxed);
                }
                LifeResult::Failed => {
                    world.failed.fetch_add(1, Ordering::Relaxed);
                }
                LifeResult::Idle => tokio::time::sleep(Duration::from_millis(chance.below(16_000))).await,
            }
            tokio::time::sleep(Duration::from_millis(chance.below(4_000))).await;
        }
        Err(format!("a process of `{}` has lived {MAX_LIVES} times; what failed last: {failed}", of.id))
    }

    async fn lose_power(&self, chance: &mut Rng) {
        let before = self.ledger();
        let after = before.after_power_loss(at_most(chance, 3), None).await;
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
        why: &mut String,
    ) -> LifeResult {
        let swarm = self.world.swarm(self.manifest, life, &self.ledger());
        let mut runner = match Runner::open(swarm, Begin::First).await {
            Ok(runner) => runner,
            Err(error) => {
                *why = error.to_string();
                return LifeResult::Failed;
            }
        };
        let driven = tokio::select! {
            biased;
            () = life.interrupted() => LifeResult::Interrupted,
            driven = self.drive(&mut runner, comes_and_goes, patient, why) => driven,
        };
        match (runner.close(CLOSE_TIMEOUT).await, driven) {
            (Ok(_), driven) => driven,
            (Err(_), LifeResult::Interrupted) => LifeResult::Interrupted,
            (Err(error), _) => {
                *why = error.to_string();
                LifeResult::Failed
            }
        }
    }

    async fn drive(
        &self,
        runner: &mut Runner,
        comes_and_goes: bool,
        patient: bool,
        why: &mut String,
    ) -> LifeResult {
        loop {
            let (over, length) = (*self.world.finished.borrow(), self.world.talk.len());
            let cycled = match runner.cycle().await {
                Ok(CycleResult::NoNewTurn) => {
                    self.rested.store(length, Ordering::Relaxed);
                    if over {
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
                Err(Error::Substrate(substrate::Error::Unavailable { .. })) if patient => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Err(error) => {
                    *why = error.to_string();
                    return LifeResult::Failed;
                }
            }
        }
    }
}

/// How the next life ends; a few do before their time.
fn next_life_end(chance: &mut Rng, left: &mut usize) -> LifeEnd {
    if *left == 0 {
        return LifeEnd::Never;
    }
    *left -= 1;
    let most = [8, 40, 200][at_most(chance, 2)];
    let step = at_most(chance, most);
    if chance.percent(70) { LifeEnd::Crash(step) } else { LifeEnd::Interrupt(step) }
}

/// Ledgers for the processes of a manifest.
pub(super) fn ledgers(setup: &Setup, manifest: usize) -> Vec<Arc<Mutex<Arc<CrashingLedger>>>> {
    let of = &setup.manifests[manifest];
    let new = || Arc::new(Mutex::new(Arc::new(CrashingLedger::new(None))));
    let shared = new();
    (0..of.processes).map(|_| if of.one_ledger { shared.clone() } else { new() }).collect()
}

/// States for each manifest.
pub(super) fn states(setup: &Setup) -> Vec<States> {
    setup.manifests.iter().map(|_| Arc::new(Mutex::new(BTreeMap::new()))).collect()
}
