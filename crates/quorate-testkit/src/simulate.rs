//! The simulator: a council of scripted members, a ledger that crashes, and resumption until there is an outcome. A seed
//! determines everything; a failure prints it. [`assembly`] simulates assemblies.

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
use quorate_kernel::record::RunOpened;
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

/// The course of one simulation, for checkers and statistics.
#[derive(Debug)]
pub struct Simulation {
    pub seed: u64,
    /// How often the process crashed.
    pub crashes: usize,
    /// The calls of each session: invocation and attempt.
    pub calls: Vec<Vec<(String, u32)>>,
    /// For each session the invocations that had a consultation when it began.
    pub consulted: Vec<Vec<String>>,
    pub history: History,
    pub cap: Option<u32>,
    /// The number of appends with a sync.
    pub syncs: u32,
}

const TEXT: &str = "We are always the fastest.\nStudies show that everybody agrees.\nWe are always the fastest.\nAnd always the fastest.";

/// Simulates one council from a seed and checks the invariants.
///
/// # Errors
/// The first violated invariant, with the seed to reproduce it.
pub async fn simulate(seed: u64) -> Result<Simulation, Violation> {
    let mut world = World::new(seed);
    let mut ledger = Arc::new(CrashingLedger::new(world.next_crash()));
    let (mut calls, mut consulted_by_session) = (Vec::new(), Vec::new());
    loop {
        let session: Arc<Mutex<Vec<(String, u32)>>> = Arc::default();
        let history = world.history(&ledger).await?;
        consulted_by_session.push(history.iter().flat_map(consulted).collect());
        let ended = world.session(&ledger, history, session.clone()).await;
        calls.push(session.lock().unwrap_or_else(PoisonError::into_inner).clone());
        match ended {
            Ok(()) => break,
            Err(Error::Ledger(_)) => ledger = Arc::new(world.restart(&ledger).await),
            Err(error) => return Err(Violation::new(seed, format!("the driver stopped: {error}"))),
        }
    }
    let history =
        world.history(&ledger).await?.ok_or_else(|| Violation::new(seed, "the run is not there"))?;
    let crashes = calls.len() - 1;
    let simulated = Simulation {
        seed,
        crashes,
        calls,
        consulted: consulted_by_session,
        history,
        cap: world.cap,
        syncs: ledger.syncs(),
    };
    check::check_all(&simulated, &world.setup, &ledger).await?;
    Ok(simulated)
}

fn consulted(history: &History) -> Vec<String> {
    history.consultations().map(|ended| ended.invocation.to_string()).collect()
}

struct World {
    seed: u64,
    rng: Rng,
    setup: Setup,
    cap: Option<u32>,
    run: Name,
    processes: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let setup = Setup {
            deliberators: ["skeptic", "voice", "evidence", "strategy"].map(Name::from).to_vec(),
            rounds: if rng.percent(80) { Rounds::Two } else { Rounds::One },
            cross_read: [CrossRead::Verdicts, CrossRead::Findings, CrossRead::None][rng.below(3) as usize],
            fail_fast: if rng.percent(10) { FailFast::Yes } else { FailFast::No },
            min_deliberators: 3,
            policy: Policy::ALL[rng.below(2) as usize],
        };
        let cap = rng.percent(20).then(|| u32::try_from(rng.below(14)).unwrap_or(0) + 1);
        World { seed, rng, setup, cap, run: "rsimulated".into(), processes: 0 }
    }

    /// The next crash; each one makes a further one less likely.
    fn next_crash(&mut self) -> Option<Crash> {
        self.processes += 1;
        let dies = self.rng.percent(70) && self.processes < 12;
        let moment = if self.rng.percent(50) { Timing::Before } else { Timing::After };
        let at = usize::try_from(self.rng.below(16)).unwrap_or(0);
        dies.then_some(Crash { at, moment })
    }

    async fn restart(&mut self, dead: &CrashingLedger) -> CrashingLedger {
        let crash = self.next_crash();
        let surviving_appends = usize::try_from(self.rng.below(4)).unwrap_or(0);
        match self.rng.percent(50) {
            true => dead.after_kill(crash).await,
            false => dead.after_power_loss(surviving_appends, crash).await,
        }
    }

    async fn history(&self, ledger: &CrashingLedger) -> Result<Option<History>, Violation> {
        let violated = |reason: String| Violation::new(self.seed, reason);
        let records = ledger.records(&self.run).await.map_err(|error| violated(error.to_string()))?;
        if records.is_empty() {
            return Ok(None);
        }
        History::from_records(&self.run, records).map(Some).map_err(|error| violated(error.to_string()))
    }

    /// One process's work: opens the run, or resumes it.
    async fn session(
        &self,
        ledger: &Arc<CrashingLedger>,
        history: Option<History>,
        calls: Arc<Mutex<Vec<(String, u32)>>>,
    ) -> Result<(), Error> {
        let config = RunConfig {
            run: self.run.clone(),
            seed: [7; 32],
            protocol: Box::new(Council::new(self.setup.clone())),
            members: self.member_configs(&calls),
            caps: Caps { calls: self.cap, ..Caps::default() },
            wall: None,
            redactor: Redactor::default(),
            extensions: Extensions::default(),
            ledger: ledger.clone(),
            clock: Arc::new(TickingClock::default()),
            observer: Arc::new(NoopObserver),
        };
        let input = Part::new(PartKind::Artifact, "a.md", TEXT);
        match history {
            None => {
                let opened = RunOpened { setup: json!(self.setup), ..RunOpened::default() };
                config.open(Opening { opened, inputs: vec![input] }).await.map(|_| ())
            }
            Some(history) => config.resume(&history, vec![input], Vec::new()).await.map(|_| ()),
        }
    }

    fn member_configs(&self, calls: &Arc<Mutex<Vec<(String, u32)>>>) -> BTreeMap<Name, MemberConfig> {
        let seed = self.seed;
        let executor = Arc::new(
            ScriptedExecutor::new(move |invocation| script::action(seed, invocation))
                .with_call_log(calls.clone()),
        );
        let members = self.setup.deliberators.iter().cloned().chain([Name::from(ADJUDICATOR)]);
        members.map(|member| (member, executor.clone().into_member_config())).collect()
    }
}

/// The artifact of every simulation.
pub(crate) fn inputs() -> Vec<Part> {
    vec![Part::new(PartKind::Artifact, "a.md", TEXT)]
}
