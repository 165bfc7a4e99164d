//! The simulator: a council of scripted members, a ledger that dies, and resumption until there is an outcome. A seed
//! decides everything; a failure prints it. Assemblies have theirs in [`assembly`].

pub mod assembly;
mod check;
mod script;
pub mod swarm;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use quorate_kernel::budget::Caps;
use quorate_kernel::driver::{Error, Opening, RunConfig};
use quorate_kernel::extensions::Extensions;
use quorate_kernel::history::History;
use quorate_kernel::member_config::MemberConfig;
use quorate_kernel::observer::NoopObserver;
use quorate_kernel::ports::ledger::Ledger as _;
use quorate_kernel::redact::Redactor;
use quorate_protocol::modes::council::{ADJUDICATOR, Council, CrossRead, FailFast, Rounds, Setup};
use quorate_protocol::policy::Policy;
use quorate_protocol::{Name, Part, PartKind};
use serde_json::json;

use crate::clock::TickingClock;
use crate::faults::{Crash, CrashingLedger, Timing};
use crate::rng::Rng;
use crate::scripted::ScriptedExecutor;

pub use check::Violation;

/// What one simulation did, for the checkers and for whoever counts.
#[derive(Debug)]
pub struct Simulation {
    pub seed: u64,
    /// How often the process died.
    pub crashes: usize,
    /// The calls of each session: invocation and attempt.
    pub calls: Vec<Vec<(String, u32)>>,
    /// For each session what had a consultation when it began.
    pub consulted: Vec<Vec<String>>,
    /// The history at the end.
    pub history: History,
    /// The cap on calls.
    pub cap: Option<u32>,
    /// How many appends asked for a sync.
    pub syncs: u32,
}

const TEXT: &str = "We are always the fastest.\nStudies show that everybody agrees.\nWe are always the fastest.\nAnd always the fastest.";

/// Simulates one council from a seed and checks what must always hold.
///
/// # Errors
/// The first thing that did not hold, with the seed to try again.
pub async fn simulate(seed: u64) -> Result<Simulation, Violation> {
    let mut world = World::new(seed);
    let mut ledger = Arc::new(CrashingLedger::new(world.next_crash()));
    let (mut asked, mut known) = (Vec::new(), Vec::new());
    loop {
        let session: Arc<Mutex<Vec<(String, u32)>>> = Arc::default();
        let history = world.history(&ledger).await?;
        known.push(history.iter().flat_map(consulted).collect());
        let ended = world.session(&ledger, history, session.clone()).await;
        asked.push(session.lock().unwrap_or_else(PoisonError::into_inner).clone());
        match ended {
            Ok(()) => break,
            Err(Error::Ledger(_)) => ledger = Arc::new(world.restart(&ledger).await),
            Err(error) => return Err(Violation::new(seed, format!("the driver stopped: {error}"))),
        }
    }
    let history =
        world.history(&ledger).await?.ok_or_else(|| Violation::new(seed, "the run is not there"))?;
    let crashes = asked.len() - 1;
    let simulated = Simulation {
        seed,
        crashes,
        calls: asked,
        consulted: known,
        history,
        cap: world.cap,
        syncs: ledger.syncs(),
    };
    check::check_all(&simulated, &world.setup, &ledger).await?;
    Ok(simulated)
}

fn consulted(history: &History) -> Vec<String> {
    history.consultations().filter_map(|data| data.get("invocation")?.as_str().map(str::to_owned)).collect()
}

struct World {
    seed: u64,
    chance: Rng,
    setup: Setup,
    cap: Option<u32>,
    run: Name,
    processes: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Rng::new(seed);
        let setup = Setup {
            deliberators: ["skeptic", "voice", "evidence", "strategy"].map(Name::from).to_vec(),
            rounds: if chance.percent(80) { Rounds::Two } else { Rounds::One },
            cross_read: [CrossRead::Verdicts, CrossRead::Findings, CrossRead::None][chance.below(3) as usize],
            fail_fast: if chance.percent(10) { FailFast::Yes } else { FailFast::No },
            min_deliberators: 3,
            policy: Policy::ALL[chance.below(2) as usize],
        };
        let cap = chance.percent(20).then(|| u32::try_from(chance.below(14)).unwrap_or(0) + 1);
        World { seed, chance, setup, cap, run: "rsimulated".into(), processes: 0 }
    }

    /// When the next process dies; the more have died already the less likely.
    fn next_crash(&mut self) -> Option<Crash> {
        self.processes += 1;
        let dies = self.chance.percent(70) && self.processes < 12;
        let moment = if self.chance.percent(50) { Timing::Before } else { Timing::After };
        let at = usize::try_from(self.chance.below(16)).unwrap_or(0);
        dies.then_some(Crash { at, moment })
    }

    async fn restart(&mut self, dead: &CrashingLedger) -> CrashingLedger {
        let death = self.next_crash();
        let lucky = usize::try_from(self.chance.below(4)).unwrap_or(0);
        match self.chance.percent(50) {
            true => dead.after_kill(death).await,
            false => dead.after_power_loss(lucky, death).await,
        }
    }

    async fn history(&self, ledger: &CrashingLedger) -> Result<Option<History>, Violation> {
        let violated = |why: String| Violation::new(self.seed, why);
        let records = ledger.records(&self.run).await.map_err(|error| violated(error.to_string()))?;
        if records.is_empty() {
            return Ok(None);
        }
        History::from_records(&self.run, records).map(Some).map_err(|error| violated(error.to_string()))
    }

    /// One process's work: opens the run, or goes on with it.
    async fn session(
        &self,
        ledger: &Arc<CrashingLedger>,
        history: Option<History>,
        asked: Arc<Mutex<Vec<(String, u32)>>>,
    ) -> Result<(), Error> {
        let convening = RunConfig {
            run: self.run.clone(),
            seed: [7; 32],
            protocol: Box::new(Council::new(self.setup.clone())),
            members: self.seats(&asked),
            caps: Caps { calls: self.cap, wall: None },
            redactor: Redactor::default(),
            extensions: Extensions::default(),
            ledger: ledger.clone(),
            clock: Arc::new(TickingClock::default()),
            observer: Arc::new(NoopObserver),
        };
        let input = Part::new(PartKind::Artifact, "a.md", TEXT);
        match history {
            None => {
                let data = quorate_kernel::consultation::object(
                    json!({"setup": self.setup, "inputs": [], "priors": []}),
                );
                convening
                    .open(Opening { data, inputs: vec![input], priors: Vec::new(), overlays: Vec::new() })
                    .await
                    .map(|_| ())
            }
            Some(history) => convening.resume(&history, vec![input], Vec::new()).await.map(|_| ()),
        }
    }

    fn seats(&self, asked: &Arc<Mutex<Vec<(String, u32)>>>) -> BTreeMap<Name, MemberConfig> {
        let seed = self.seed;
        let executor = Arc::new(
            ScriptedExecutor::new(move |invocation| script::action(seed, invocation))
                .with_call_log(asked.clone()),
        );
        let members = self.setup.deliberators.iter().cloned().chain([Name::from(ADJUDICATOR)]);
        members.map(|member| (member, executor.clone().into_member_config())).collect()
    }
}

/// The artifact of every simulation.
pub(crate) fn inputs() -> Vec<Part> {
    vec![Part::new(PartKind::Artifact, "a.md", TEXT)]
}
