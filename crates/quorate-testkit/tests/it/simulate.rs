//! The simulator: a council of scripted members, a ledger that crashes, and resumption until there is an outcome. A seed
//! determines everything; a failure prints it. [`assembly`] simulates assemblies.

pub(crate) mod assembly;
pub(crate) mod swarm;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use quorate_kernel::attempts::MemberConfig;
use quorate_kernel::budget::Caps;
use quorate_kernel::driver::{DriverError, Opening, RunConfig};
use quorate_kernel::extensions::Extensions;
use quorate_kernel::history::History;
use quorate_kernel::history::replay;
use quorate_kernel::observer::NoopObserver;
use quorate_kernel::ports::executor::Invocation;
use quorate_kernel::ports::ledger::{Kind, Ledger as _, Record};
use quorate_kernel::record::RunOpened;
use quorate_kernel::redact::Redactor;
use quorate_manifest::council::{CrossRead, OnFailure, Rounds, VerdictPolicy};
use quorate_protocol::modes::council::{ADJUDICATOR, Council, Setup};
use quorate_protocol::{Json, Name, Part, PartKind};
use serde_json::json;

use quorate_testkit::faults::{Crash, CrashingLedger, Timing};
use quorate_testkit::scripted::{Action, Rng, ScriptedExecutor, TickingClock};

/// The course of one simulation, for checkers and statistics.
#[derive(Debug)]
pub(crate) struct Simulation {
    pub(crate) seed: u64,
    /// How often the process crashed.
    pub(crate) crashes: usize,
    /// The calls of each session: invocation and attempt.
    pub(crate) calls: Vec<Vec<(String, u32)>>,
    /// For each session the invocations that had a consultation when it began.
    pub(crate) consulted: Vec<Vec<String>>,
    pub(crate) history: History,
    pub(crate) cap: Option<u32>,
    /// The number of appends with a sync.
    pub(crate) syncs: u32,
}

const TEXT: &str = "We are always the fastest.\nStudies show that everybody agrees.\nWe are always the fastest.\nAnd always the fastest.";

/// Simulates one council from a seed and checks the invariants.
///
/// # Errors
/// The first violated invariant, with the seed to reproduce it.
pub(crate) async fn simulate(seed: u64) -> Result<Simulation, Violation> {
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
            Err(DriverError::Ledger(_)) => ledger = Arc::new(world.restart(&ledger).await),
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
    check_all(&simulated, &world.setup, &ledger).await?;
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
            fail_fast: if rng.percent(10) { OnFailure::End } else { OnFailure::Continue },
            min_deliberators: 3,
            policy: VerdictPolicy::ALL[rng.below(2) as usize].into(),
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
    ) -> Result<(), DriverError> {
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
            ScriptedExecutor::new(move |invocation| action(seed, invocation)).with_call_log(calls.clone()),
        );
        let members = self.setup.deliberators.iter().cloned().chain([Name::from(ADJUDICATOR)]);
        members.map(|member| (member, executor.clone().into_member_config())).collect()
    }
}

/// The artifact of every simulation.
pub(crate) fn inputs() -> Vec<Part> {
    vec![Part::new(PartKind::Artifact, "a.md", TEXT)]
}

#[derive(Debug)]
pub(crate) struct Violation {
    /// Reproduces it.
    pub(crate) seed: u64,
    pub(crate) what: String,
}

impl Violation {
    fn new(seed: u64, what: impl Into<String>) -> Self {
        Violation { seed, what: what.into() }
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let next = self.seed + 1;
        let command = format!(
            "QUORATE_SEEDS={}..{next} cargo test -p quorate-testkit --test it -- simulation::",
            self.seed
        );
        write!(f, "seed {}: {}\nto run it again: {command}", self.seed, self.what)
    }
}

/// Checks a simulation against every invariant.
async fn check_all(simulated: &Simulation, setup: &Setup, ledger: &CrashingLedger) -> Result<(), Violation> {
    let violated = |what: String| Violation::new(simulated.seed, what);
    let records =
        ledger.records(&simulated.history.run).await.map_err(|error| violated(error.to_string()))?;
    let checks = [
        one_consultation_per_invocation(&records),
        no_call_is_paid_twice(simulated),
        no_member_is_asked_before_the_intent_is_recorded(simulated, &records),
        no_more_calls_than_the_cap(simulated),
        replay_is_identical(simulated, setup),
        nothing_ships_without_enough_answers(simulated, setup),
        syncs_are_few(simulated),
    ];
    checks.into_iter().collect::<Result<(), String>>().map_err(violated)
}

fn text<'a>(record: &'a Record, key: &str) -> Option<&'a str> {
    record.data.as_ref()?.get(key)?.as_str()
}

/// X7: every invocation has one consultation.
fn one_consultation_per_invocation(records: &[Record]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for record in records.iter().filter(|record| record.is(Kind::Consultation)) {
        let id = text(record, "invocation").ok_or("a consultation without invocation")?;
        if !seen.insert(id) {
            return Err(format!("{id} has two consultations"));
        }
    }
    Ok(())
}

/// X7: an invocation with a consultation at the start of a session is not repeated in it.
fn no_call_is_paid_twice(simulated: &Simulation) -> Result<(), String> {
    for (calls_made, consulted) in simulated.calls.iter().zip(&simulated.consulted) {
        if let Some((id, _)) = calls_made.iter().find(|(id, _)| consulted.contains(id)) {
            return Err(format!("{id} was answered and is asked again"));
        }
        let mut calls = BTreeSet::new();
        if let Some((id, attempt)) = calls_made.iter().find(|call| !calls.insert(*call)) {
            return Err(format!("attempt {attempt} of {id} is made twice in one session"));
        }
    }
    Ok(())
}

/// X7: a call is made only after its intent is durable, so that the intent is found after any crash.
fn no_member_is_asked_before_the_intent_is_recorded(
    simulated: &Simulation,
    records: &[Record],
) -> Result<(), String> {
    let intents = records.iter().filter(|record| record.is(Kind::RunIntent));
    let intended: BTreeSet<&str> = intents
        .filter_map(|record| record.data.as_ref()?.get("invocations")?.as_array())
        .flatten()
        .filter_map(Json::as_str)
        .collect();
    match simulated.calls.iter().flatten().find(|(id, _)| !intended.contains(&**id)) {
        Some((id, _)) => Err(format!("{id} was asked without a record")),
        None => Ok(()),
    }
}

/// X8: all sessions together make no more calls than the limit.
fn no_more_calls_than_the_cap(simulated: &Simulation) -> Result<(), String> {
    let total = simulated.calls.iter().map(Vec::len).sum::<usize>();
    match simulated.cap {
        Some(cap) if total > cap as usize => {
            Err(format!("{total} calls were made under a cap of {cap}: {:?}", simulated.calls))
        }
        _ => Ok(()),
    }
}

/// X11: the recorded events give the recorded outcome.
fn replay_is_identical(simulated: &Simulation, setup: &Setup) -> Result<(), String> {
    let replayed = replay(&simulated.history, inputs(), &mut Council::new(setup.clone()));
    match replayed.differences.first() {
        Some(difference) => Err(format!("a replay differs: {difference:?}")),
        None if !replayed.finished => Err("a replay does not finish".to_owned()),
        None => Ok(()),
    }
}

/// X5, C4: SHIP requires enough valid answers, an adjudication, and fewer than three blocks.
fn nothing_ships_without_enough_answers(simulated: &Simulation, setup: &Setup) -> Result<(), String> {
    let outcome = simulated.history.outcome_data().ok_or("the outcome is missing")?;
    if outcome.get("verdict").and_then(Json::as_str) != Some("SHIP") {
        return Ok(());
    }
    let mut valid: BTreeMap<&str, usize> = BTreeMap::new();
    let mut blocks = 0;
    let blocks_ship = |answer: &Json| answer["would_block"] == Json::Bool(true);
    for ended in simulated.history.consultations() {
        let Some(answer) = &ended.answer else { continue };
        let step = &*ended.step;
        *valid.entry(step).or_default() += 1;
        let last = if valid.contains_key("r2") { "r2" } else { "r1" };
        blocks += usize::from(step == last && blocks_ship(answer));
    }
    let enough = valid
        .iter()
        .filter(|(step, _)| step.starts_with('r'))
        .all(|(_, count)| *count >= setup.min_deliberators);
    let second = simulated.history.consultations().filter(|ended| &*ended.step == "r2");
    let second_blocks = second.filter(|ended| ended.answer.as_ref().is_some_and(blocks_ship));
    match enough && valid.contains_key("adjudicate") && second_blocks.count() < 3 {
        true => Ok(()),
        false => Err(format!("SHIP on {valid:?} with {blocks} blocks")),
    }
}

/// At most one sync for each step that issues commands, whatever the number of members that ended before it, one for each
/// call that follows from another, and one for each resumption.
fn syncs_are_few(simulated: &Simulation) -> Result<(), String> {
    let repeated = simulated.calls.iter().flatten().filter(|(_, attempt)| *attempt > 1).count();
    let steps = 4 + 2 * simulated.crashes + repeated;
    match usize::try_from(simulated.syncs).unwrap_or(usize::MAX) {
        syncs if syncs > steps => Err(format!("{syncs} syncs for {steps} steps")),
        _ => Ok(()),
    }
}

/// An integer from 1 to `most`, also written with a decimal point, which JSON Schema treats as the same number, and some
/// readers before the record do not (X10).
fn number(rng: &mut Rng, most: u32) -> Json {
    let number = u32::try_from(rng.below(u64::from(most))).unwrap_or(0) + 1;
    if rng.percent(40) { json!(f64::from(number)) } else { json!(number) }
}

/// The action of a member.
fn action(seed: u64, invocation: &Invocation) -> Action {
    let mut rng = Rng::from_seed_and_name(seed, &format!("{}#{}", invocation.id, invocation.attempt));
    let delay = rng.below(400);
    match rng.below(100) {
        0..=69 => Action::Say(scripted_answer(&mut rng, invocation), delay),
        70..=76 => Action::Say("I would rather talk about something else.".to_owned(), delay),
        77..=81 => Action::Say(r#"{"would_block": "true", "irreducible": "false"}"#.to_owned(), delay),
        82..=84 => Action::Say(String::new(), delay),
        85..=92 => Action::Fail(delay),
        _ => Action::Hang,
    }
}

fn scripted_answer(rng: &mut Rng, invocation: &Invocation) -> String {
    if &*invocation.step == "adjudicate" {
        let verdict = ["SHIP", "REVISE", "HOLD", "ship"][usize::try_from(rng.below(4)).unwrap_or(0)];
        return json!({"verdict": verdict, "reasoning": "weighed", "revision_brief": "less certainty"})
            .to_string();
    }
    let block = rng.percent(40);
    let quote = if rng.percent(70) { "always the fastest" } else { "words that nobody wrote" };
    let answer = json!({
        "would_block": block,
        "irreducible": block && rng.percent(50),
        "score": number(rng, 5),
        "findings": [{"quote": quote, "issue": "says too much", "fix": "say less", "line": number(rng, 5)}],
    });
    if rng.percent(30) { format!("Here it is:\n```json\n{answer}\n```") } else { answer.to_string() }
}
