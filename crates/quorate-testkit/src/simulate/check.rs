//! The checkers of councils: one for each invariant.

use std::collections::{BTreeMap, BTreeSet};

use quorate_kernel::ports::ledger::{Kind, Ledger as _, Record};
use quorate_kernel::replay::replay;
use quorate_protocol::Json;
use quorate_protocol::modes::council::{Council, Setup};

use super::Simulation;
use crate::faults::CrashingLedger;

#[derive(Debug)]
pub struct Violation {
    /// Reproduces it.
    pub seed: u64,
    pub what: String,
}

impl Violation {
    pub(super) fn new(seed: u64, what: impl Into<String>) -> Self {
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
pub(super) async fn check_all(
    simulated: &Simulation,
    setup: &Setup,
    ledger: &CrashingLedger,
) -> Result<(), Violation> {
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
pub(super) fn one_consultation_per_invocation(records: &[Record]) -> Result<(), String> {
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
pub(super) fn no_call_is_paid_twice(simulated: &Simulation) -> Result<(), String> {
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
pub(super) fn no_member_is_asked_before_the_intent_is_recorded(
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
pub(super) fn no_more_calls_than_the_cap(simulated: &Simulation) -> Result<(), String> {
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
    let replayed = replay(&simulated.history, super::inputs(), &mut Council::new(setup.clone()));
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
