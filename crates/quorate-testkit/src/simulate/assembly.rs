//! Assemblies from seeds: a mode, members, rules, locks, budgets, failures, kills between any two steps and clocks that
//! jump; every checker runs on the result.

mod check;
mod extensions;
mod infected;
mod overlays;
mod rules;
mod script;
mod world;

use std::sync::{Arc, Mutex, PoisonError};

use quorate_kernel::driver::Error;
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::Ledger as _;
use quorate_protocol::Json;

use super::{Simulation, Violation, consulted};
use crate::faults::{Crash, CrashingLedger, Timing};
use crate::rng::Rng;
use world::World;

/// The locked traits, if there are any.
pub(super) const LOCKED: [&str; 2] = ["warmth", "voice register"];

/// The class of every proposal.
pub(super) const CLASS: &str = "budget";

/// The result of one simulation, for statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub mode: &'static str,
    /// The outcome's verdict, and its code if it has one.
    pub verdict: String,
    /// How often the process died.
    pub deaths: usize,
    /// The number of candidates that a lock has dropped.
    pub locked: usize,
    /// Whether one member was infected and the run compared with one of honest members.
    pub infected: bool,
}

/// Simulates one assembly from a seed and checks the invariants.
///
/// # Errors
/// The first violated invariant, with the seed to reproduce it.
pub async fn simulate(seed: u64) -> Result<Summary, Violation> {
    let world = World::new(seed);
    let (simulated, ledger) = run_to_end(&world, CrashPlan::from_seed(seed)).await?;
    let records = ledger.records(&simulated.history.run).await;
    let records = records.map_err(|error| Violation::new(seed, error.to_string()))?;
    check::check_all(&simulated, &world, &records)?;
    overlays::check(seed, &simulated).map_err(|what| Violation::new(seed, what))?;
    let infected = infected::check(seed).await?;
    let outcome = outcome(&simulated.history);
    let text = |key: &str| outcome.get(key).and_then(Json::as_str);
    let code = text("code").map_or_else(String::new, |code| format!(" ({code})"));
    Ok(Summary {
        mode: world.mode_word(),
        verdict: format!("{}{code}", text("verdict").unwrap_or("none")),
        deaths: simulated.crashes,
        locked: check::dropped_candidates(&simulated),
        infected,
    })
}

/// The outcome's body; empty without an outcome.
fn outcome(history: &History) -> serde_json::Map<String, Json> {
    history.outcome_data().cloned().unwrap_or_default()
}

/// Runs an assembly to its end, with a new process after each crash.
async fn run_to_end(
    world: &World,
    mut deaths: CrashPlan,
) -> Result<(Simulation, Arc<CrashingLedger>), Violation> {
    let seed = world.seed;
    let mut ledger = Arc::new(CrashingLedger::new(deaths.next()));
    let (mut calls, mut consulted_by_session) = (Vec::new(), Vec::new());
    loop {
        let session: Arc<Mutex<Vec<(String, u32)>>> = Arc::default();
        let history = history(world, &ledger).await?;
        consulted_by_session.push(history.iter().flat_map(consulted).collect());
        let ended = world.session(&ledger, history, &session, calls.len()).await;
        calls.push(session.lock().unwrap_or_else(PoisonError::into_inner).clone());
        match ended {
            Ok(()) => break,
            Err(Error::Ledger(_)) => ledger = Arc::new(deaths.restart(&ledger).await),
            Err(error) => return Err(Violation::new(seed, format!("the driver stopped: {error}"))),
        }
    }
    let history =
        history(world, &ledger).await?.ok_or_else(|| Violation::new(seed, "the run is not there"))?;
    let deaths = calls.len() - 1;
    let simulated = Simulation {
        seed,
        crashes: deaths,
        calls,
        consulted: consulted_by_session,
        history,
        cap: world.cap,
        syncs: ledger.syncs(),
    };
    Ok((simulated, ledger))
}

async fn history(world: &World, ledger: &CrashingLedger) -> Result<Option<History>, Violation> {
    let violated = |reason: String| Violation::new(world.seed, reason);
    let records = ledger.records(&world.run).await.map_err(|error| violated(error.to_string()))?;
    if records.is_empty() {
        return Ok(None);
    }
    History::from_records(&world.run, records).map(Some).map_err(|error| violated(error.to_string()))
}

struct CrashPlan {
    rng: Option<Rng>,
    lives: u64,
}

impl CrashPlan {
    fn from_seed(seed: u64) -> Self {
        CrashPlan { rng: Some(Rng::from_seed_and_name(seed, "deaths")), lives: 0 }
    }

    fn never() -> Self {
        CrashPlan { rng: None, lives: 0 }
    }

    /// The next crash, if there is one.
    fn next(&mut self) -> Option<Crash> {
        let rng = self.rng.as_mut()?;
        self.lives += 1;
        let dies = rng.percent(70) && self.lives < 12;
        let moment = if rng.percent(50) { Timing::Before } else { Timing::After };
        let at = usize::try_from(rng.below(14)).unwrap_or(0);
        dies.then_some(Crash { at, moment })
    }

    async fn restart(&mut self, dead: &CrashingLedger) -> CrashingLedger {
        let crash = self.next();
        let (kill, surviving_appends) = match &mut self.rng {
            Some(rng) => (rng.percent(50), usize::try_from(rng.below(4)).unwrap_or(0)),
            None => (true, 0),
        };
        if kill {
            dead.after_kill(crash).await
        } else {
            dead.after_power_loss(surviving_appends, crash).await
        }
    }
}

/// An index below `end`.
pub(super) fn pick(rng: &mut Rng, end: usize) -> usize {
    usize::try_from(rng.below(end as u64)).unwrap_or(0)
}
