//! Assemblies from seeds: a mode, members, rules, locks, budgets, failures, kills between any two steps and clocks that
//! leap; then every checker that what came of it has to pass.

mod check;
mod host;
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

use super::{Simulated, Violation, consulted};
use crate::chance::Chance;
use crate::faults::{Death, Moment, Mortal};
use world::World;

/// What one simulation came to, for whoever counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Came {
    /// The mode.
    pub mode: &'static str,
    /// The outcome's verdict, and its code where it has one.
    pub to: String,
    /// How often the process died.
    pub deaths: usize,
    /// How many candidates a lock has dropped.
    pub locked: usize,
    /// Whether one member was infected and the run compared with honest ones.
    pub infected: bool,
}

/// Simulates one assembly from a seed and checks what must always hold.
///
/// # Errors
/// The first thing that did not hold, with the seed to try again.
pub async fn simulate(seed: u64) -> Result<Came, Violation> {
    let world = World::new(seed);
    let (simulated, ledger) = hold(&world, Deaths::of(seed)).await?;
    let records = ledger.records(&simulated.history.run).await;
    let records = records.map_err(|error| Violation::new(seed, error.to_string()))?;
    check::all(&simulated, &world, &records)?;
    overlays::check(seed, &simulated).map_err(|what| Violation::new(seed, what))?;
    let infected = infected::check(seed).await?;
    let outcome = outcome(&simulated.history);
    let text = |key: &str| outcome.get(key).and_then(Json::as_str);
    let code = text("code").map_or_else(String::new, |code| format!(" ({code})"));
    Ok(Came {
        mode: world.mode_word(),
        to: format!("{}{code}", text("verdict").unwrap_or("none")),
        deaths: simulated.deaths,
        locked: check::hits(&simulated),
        infected,
    })
}

/// The outcome's body; empty where there is none.
fn outcome(history: &History) -> serde_json::Map<String, Json> {
    history.outcome().cloned().unwrap_or_default()
}

/// Holds an assembly, over as many lives of the process as it takes.
async fn hold(world: &World, mut deaths: Deaths) -> Result<(Simulated, Arc<Mortal>), Violation> {
    let seed = world.seed;
    let mut ledger = Arc::new(Mortal::new(deaths.next()));
    let (mut asked, mut known) = (Vec::new(), Vec::new());
    loop {
        let session: Arc<Mutex<Vec<(String, u32)>>> = Arc::default();
        let history = history(world, &ledger).await?;
        known.push(history.iter().flat_map(consulted).collect());
        let ended = world.session(&ledger, history, &session, asked.len()).await;
        asked.push(session.lock().unwrap_or_else(PoisonError::into_inner).clone());
        match ended {
            Ok(()) => break,
            Err(Error::Ledger(_)) => ledger = Arc::new(deaths.resurrect(&ledger).await),
            Err(error) => return Err(Violation::new(seed, format!("the driver stopped: {error}"))),
        }
    }
    let history =
        history(world, &ledger).await?.ok_or_else(|| Violation::new(seed, "the run is not there"))?;
    let deaths = asked.len() - 1;
    let simulated = Simulated { seed, deaths, asked, known, history, cap: world.cap, syncs: ledger.syncs() };
    Ok((simulated, ledger))
}

async fn history(world: &World, ledger: &Mortal) -> Result<Option<History>, Violation> {
    let violated = |why: String| Violation::new(world.seed, why);
    let records = ledger.records(&world.run).await.map_err(|error| violated(error.to_string()))?;
    if records.is_empty() {
        return Ok(None);
    }
    History::from_records(&world.run, records).map(Some).map_err(|error| violated(error.to_string()))
}

/// When the processes die.
struct Deaths {
    chance: Option<Chance>,
    lives: u64,
}

impl Deaths {
    fn of(seed: u64) -> Self {
        Deaths { chance: Some(Chance::of(seed, "deaths")), lives: 0 }
    }

    fn never() -> Self {
        Deaths { chance: None, lives: 0 }
    }

    /// When the next process dies, if it does.
    fn next(&mut self) -> Option<Death> {
        let chance = self.chance.as_mut()?;
        self.lives += 1;
        let dies = chance.percent(70) && self.lives < 12;
        let moment = if chance.percent(50) { Moment::Before } else { Moment::After };
        let at = usize::try_from(chance.below(14)).unwrap_or(0);
        dies.then_some(Death { at, moment })
    }

    async fn resurrect(&mut self, dead: &Mortal) -> Mortal {
        let death = self.next();
        let (kill, lucky) = match &mut self.chance {
            Some(chance) => (chance.percent(50), usize::try_from(chance.below(4)).unwrap_or(0)),
            None => (true, 0),
        };
        if kill { dead.after_kill(death).await } else { dead.after_power_loss(lucky, death).await }
    }
}
