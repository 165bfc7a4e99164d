//! A process that runs a manifest, restarted until the conversation is idle.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorate_kernel::ports::substrate;
use quorate_kernel::redact::Redactor;
use quorate_kernel::turn::{Begin, CycleResult, Error, HookFlags, Runner, Swarm};
use tokio::sync::watch;

use super::conversation::{FlakySubstrate, SharedConversation};
use super::life::{Failures, Life, LifePlan, wait_for};
use super::log::{Log, RecordingTelemetry, UnreliableHooks};
use super::participants::{RecordingDispatcher, speaker};
use super::setup::{Setup, at_most};
use super::stores::{FlakyLedger, FlakyState, States};
use crate::clock::JumpingClock;
use crate::faults::CrashingLedger;
use crate::rng::Rng;

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
                Err(Error::Substrate(substrate::Error::Unavailable { .. })) if patient => {
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
