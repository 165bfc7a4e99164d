//! The checkers of assemblies: one for each thing that must hold whatever happens.

use std::collections::{BTreeMap, BTreeSet};

use quorate_kernel::ports::ledger::{Kind, Record};
use quorate_kernel::replay::replay;
use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::{SENTINEL, Setup};
use quorate_protocol::locks::Locks;
use quorate_protocol::modes::assembly::Assembly;
use quorate_protocol::{AbsenceReason, ConsultationResult, Event, Json};
use serde_json::json;

use super::super::Simulation;
use super::super::check::{self, Violation};
use super::extensions::{self, NEAR};
use super::world::{LOCKED, World};

/// Holds a simulation against everything that must hold.
pub(super) fn check_all(simulated: &Simulation, world: &World, records: &[Record]) -> Result<(), Violation> {
    let checks = [
        check::one_consultation_per_invocation(records),
        check::nobody_is_paid_twice(simulated),
        check::nobody_is_asked_before_it_is_recorded(simulated, records),
        check::no_more_calls_than_the_cap(simulated),
        one_outcome_and_it_is_last(records),
        whoever_was_asked_has_ended(records),
        the_host_does_nothing_twice(simulated),
        replay_is_identical(simulated, world),
        nothing_locked_is_persisted(simulated, world),
        what_was_hit_is_recorded(simulated),
        no_vote_is_lost_or_counted_twice(simulated, world),
        a_pass_rests_on_a_yes(simulated, world),
        who_lacks_output_is_named(simulated, world),
        a_missing_sentinel_escalates(simulated, world),
        a_spent_budget_is_said(simulated, world),
        a_spent_budget_hides_no_severity(simulated, world),
        locked_messages_reach_nobody(simulated, world),
    ];
    let first = checks.into_iter().collect::<Result<(), String>>();
    first.map_err(|what| Violation::new(simulated.seed, what))
}

/// How many candidates were dropped by a lock.
pub(super) fn dropped_candidates(simulated: &Simulation) -> usize {
    facts(simulated, Kind::LockCheck).filter(|data| data["result"] == "hit").count()
}

fn facts(simulated: &Simulation, kind: Kind) -> impl Iterator<Item = &serde_json::Map<String, Json>> {
    simulated.history.facts.iter().filter(move |(one, _)| one == kind.as_str()).map(|(_, data)| data)
}

fn outcome(simulated: &Simulation) -> &serde_json::Map<String, Json> {
    simulated.history.outcome().expect("one_outcome_and_it_is_last has found it")
}

/// D1: a run comes to one thing, and everything that it rests on is recorded before.
fn one_outcome_and_it_is_last(records: &[Record]) -> Result<(), String> {
    let places: Vec<usize> =
        records.iter().enumerate().filter(|(_, one)| one.is(Kind::Outcome)).map(|(at, _)| at).collect();
    let [at] = places[..] else { return Err(format!("there are {} outcomes", places.len())) };
    // What was cancelled by the decision ends after it.
    let after = |one: &Record| {
        let status = one.data.as_ref().and_then(|data| data.get("status")).and_then(Json::as_str);
        one.is(Kind::RunIntent) || status.is_some_and(|status| matches!(status, "cancelled" | "late"))
    };
    match records[at + 1..].iter().find(|one| !after(one)) {
        Some(record) => Err(format!("{} is recorded after the outcome", record.kind)),
        None => Ok(()),
    }
}

/// D1, V7: whoever was asked has a consultation in the end, also one that was taken back.
fn whoever_was_asked_has_ended(records: &[Record]) -> Result<(), String> {
    let data = |kind| records.iter().filter(move |one| one.is(kind)).filter_map(|one| one.data.as_ref());
    let ended: BTreeSet<&str> =
        data(Kind::Consultation).filter_map(|data| data.get("invocation")?.as_str()).collect();
    let asked = data(Kind::RunIntent).filter_map(|data| data.get("invocations")?.as_array()).flatten();
    match asked.filter_map(Json::as_str).find(|id| !ended.contains(id)) {
        Some(id) => Err(format!("{id} was asked and has no consultation")),
        None => Ok(()),
    }
}

/// X7: what the host did is recorded, and not done again.
fn the_host_does_nothing_twice(simulated: &Simulation) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for fed in &simulated.history.fed {
        let key = match &fed.stamped.event {
            Event::Opened { .. } => "opened".to_owned(),
            Event::Consulted { id, .. } => format!("consulted {id}"),
            Event::Gathered { id, .. } => format!("gathered {id}"),
            Event::Matched { candidate, .. } => format!("matched {candidate}"),
            Event::RuleApplied { ticket, .. } => format!("ruled {ticket}"),
        };
        if !seen.insert(key.clone()) {
            return Err(format!("{key} is recorded twice"));
        }
    }
    Ok(())
}

/// X11: the recorded events give the recorded outcome, in a protocol that was never asked anything and is set up from
/// the record alone.
fn replay_is_identical(simulated: &Simulation, world: &World) -> Result<(), String> {
    let setup: Setup = serde_json::from_value(simulated.history.opened["setup"].clone())
        .map_err(|error| format!("the setup cannot be read again: {error}"))?;
    if setup != world.setup {
        return Err(format!("the setup is read again as {setup:?}"));
    }
    let mut protocol = Assembly::new(setup).map_err(|error| error.to_string())?;
    let replayed = replay(&simulated.history, world.inputs(), &mut protocol);
    match replayed.differences.first() {
        Some(difference) => Err(format!("a replay differs: {difference:?}")),
        None if !replayed.finished => Err("a replay does not finish".to_owned()),
        None => Ok(()),
    }
}

/// L1: no text that an outcome persists is one that a lock hits.
fn nothing_locked_is_persisted(simulated: &Simulation, world: &World) -> Result<(), String> {
    if world.setup.locked_traits.is_empty() {
        return Ok(());
    }
    let locks = Locks::compile(&world.setup.locked_traits, world.setup.match_mode)
        .map_err(|error| error.to_string())?;
    let locked = |text: &&String| {
        let folded: String = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
        LOCKED.iter().any(|one| folded.contains(one))
            || !locks.check(text).is_empty()
            || (world.setup.embeds && text.contains(NEAR))
    };
    match persisted(outcome(simulated)).iter().find(locked) {
        Some(text) => Err(format!("the outcome has `{text}`, which is locked")),
        None => Ok(()),
    }
}

/// Everything in an outcome that members or rules have said.
fn persisted(outcome: &serde_json::Map<String, Json>) -> Vec<String> {
    let mut texts = Vec::new();
    for key in ["fragments", "messages", "synthesis", "rollup"] {
        strings(outcome.get(key).unwrap_or(&Json::Null), &mut texts);
    }
    strings(&outcome.get("decision").map_or(Json::Null, |one| one["text"].clone()), &mut texts);
    let nodes = outcome.get("nodes").and_then(Json::as_array).into_iter().flatten();
    nodes.for_each(|node| strings(&node["output"], &mut texts));
    texts
}

fn strings(value: &Json, texts: &mut Vec<String>) {
    match value {
        Json::String(text) => texts.push(text.clone()),
        Json::Array(items) => items.iter().for_each(|item| strings(item, texts)),
        Json::Object(fields) => fields.iter().for_each(|(key, value)| {
            texts.push(key.clone());
            strings(value, texts);
        }),
        _ => {}
    }
}

/// L1, D7: who is dropped has its lock check and its violation, and the outcome counts them.
fn what_was_hit_is_recorded(simulated: &Simulation) -> Result<(), String> {
    let named = |data: &serde_json::Map<String, Json>| data.get("candidate").cloned().unwrap_or_default();
    let violated: Vec<Json> = facts(simulated, Kind::Violation).map(named).collect();
    for check in facts(simulated, Kind::LockCheck) {
        let dropped = check["result"] != "pass";
        if dropped != violated.contains(&named(check)) {
            return Err(format!("the lock check {check:?} and the violations {violated:?} differ"));
        }
    }
    let told = outcome(simulated).get("violations").and_then(Json::as_u64);
    match told == Some(violated.len() as u64) {
        // A run whose budget is spent ends while checks may be out.
        true => Ok(()),
        false => Err(format!("{} violations are recorded, and {told:?} told", violated.len())),
    }
}

/// The answers that were fed, by invocation; `None` is no output.
fn fed(simulated: &Simulation) -> BTreeMap<String, Result<Json, AbsenceReason>> {
    let consulted = simulated.history.fed.iter().filter_map(|fed| match &fed.stamped.event {
        Event::Consulted { id, result: ConsultationResult::Answered(answer) } => {
            Some((id.to_string(), Ok(answer.clone())))
        }
        Event::Consulted { id, result: ConsultationResult::Absent(why) } => Some((id.to_string(), Err(*why))),
        _ => None,
    });
    consulted.collect()
}

/// V1, V3: every voter stands in the decision once, with the vote that its consultation has, and the sums are theirs.
fn no_vote_is_lost_or_counted_twice(simulated: &Simulation, world: &World) -> Result<(), String> {
    let Some(decision) = outcome(simulated).get("decision") else { return Ok(()) };
    let fed = fed(simulated);
    let class = match &world.setup.request {
        quorate_protocol::assembly::Request::Voting { class } => class.as_deref(),
        _ => None,
    };
    let mut voters = Vec::new();
    for member in world.setup.members.iter().filter(|one| one.votes_on(class)) {
        let answer = fed.get(&format!("ask/{}", member.id)).and_then(|one| one.as_ref().ok());
        let vote = answer.map_or("missing", |answer| answer["vote"].as_str().unwrap_or("unreadable"));
        voters.push((member.id.to_string(), vote.to_owned()));
    }
    let told: Vec<(String, String)> = decision["votes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| (text(one, "member"), text(one, "vote").replace("cancelled", "missing")))
        .collect();
    if voters != told {
        return Err(format!("the votes {voters:?} were told as {told:?}"));
    }
    Ok(())
}

fn text(value: &Json, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// X5, V8: nothing passes without a yes, unless a rule of the host's own says so.
fn a_pass_rests_on_a_yes(simulated: &Simulation, world: &World) -> Result<(), String> {
    let outcome = outcome(simulated);
    let own = world.setup.rules.iter().any(|rule| *rule.kind == *extensions::RULE);
    if outcome["verdict"] != "pass" || own || outcome.get("decision").is_none() {
        return Ok(());
    }
    let votes = outcome["decision"]["votes"].as_array().into_iter().flatten();
    match votes.filter(|one| one["vote"] == "yes").count() {
        0 => Err("it passes without a yes".to_owned()),
        _ => Ok(()),
    }
}

/// X12: whoever was to be asked and gave no output is named, and nobody else.
fn who_lacks_output_is_named(simulated: &Simulation, world: &World) -> Result<(), String> {
    let outcome = outcome(simulated);
    let (mut lacking, mut answered) = (BTreeSet::new(), BTreeSet::new());
    for one in &simulated.history.fed {
        match &one.stamped.event {
            Event::Consulted { id, result: ConsultationResult::Answered(_) } => {
                answered.insert(member_of(id));
            }
            Event::Consulted { id, result: ConsultationResult::Absent(why) }
                if *why != AbsenceReason::Cancelled =>
            {
                lacking.insert(member_of(id));
            }
            Event::Gathered { id, result: Err(_) } => {
                lacking.insert(member_of(id));
            }
            _ => {}
        }
    }
    let told: BTreeSet<String> = outcome["missing"].as_array().into_iter().flatten().map(string).collect();
    let partial = outcome["partial"] == json!(true);
    let exhausted = outcome.get("code") == Some(&json!("budget_exhausted"));
    // Nobody has waited for whom the host found nothing for after a vote was decided. Where the budget was spent, whoever
    // would still have been asked is named, too, and never somebody whose last question was answered.
    // A peer that has answered may lack output in a later round.
    let has_rounds = world.setup.mode == Mode::Peer;
    let named = match exhausted {
        true => {
            told.is_superset(&lacking)
                && (has_rounds || told.iter().all(|one| lacking.contains(one) || !answered.contains(one)))
        }
        false => told.is_subset(&lacking) && (told == lacking || world.setup.early_decision),
    };
    if partial == told.is_empty() || !named {
        return Err(format!("{lacking:?} lack output, and {told:?} are named (partial: {partial})"));
    }
    if partial && outcome.get("risk").is_some_and(|risk| risk["level"] == "ok") {
        return Err("ok is reported of a partial run".to_owned());
    }
    Ok(())
}

fn string(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn member_of(id: &str) -> String {
    id.rsplit('/').next().unwrap_or_default().to_owned()
}

/// X12: a sentinel that gave nothing gets somebody, however the run ended.
fn a_missing_sentinel_escalates(simulated: &Simulation, world: &World) -> Result<(), String> {
    if world.setup.mode != Mode::Advisory {
        return Ok(());
    }
    let outcome = outcome(simulated);
    let sentinels = world.setup.members.iter().filter(|one| one.phase.as_deref() == Some(SENTINEL));
    let named: Vec<String> = outcome["missing"].as_array().into_iter().flatten().map(string).collect();
    let lacks = sentinels.map(|one| one.id.to_string()).any(|id| named.contains(&id));
    match lacks && outcome.get("shouldEscalate") != Some(&json!(true)) {
        true => Err(format!("a sentinel is missing and nobody is got: {named:?}")),
        false => Ok(()),
    }
}

/// X8: a run that ran out of its budget says so, and decides nothing.
fn a_spent_budget_is_said(simulated: &Simulation, world: &World) -> Result<(), String> {
    let outcome = outcome(simulated);
    let spent = simulated.history.fed.iter().any(|one| one.stamped.event.is_over_budget());
    let said = outcome.get("code") == Some(&json!("budget_exhausted"));
    // What was taken back before there was no call or no time left for it has changed nothing any more (seed 480951).
    let may_differ = world.setup.early_decision && !said;
    match (spent == said || may_differ) && (!said || outcome["stand"] == "incomplete") {
        true => Ok(()),
        false => Err(format!("the budget is spent: {spent}; the outcome says so: {said}")),
    }
}

/// X8, A6: the risk of a run whose budget is spent is that of the gravest answer, whenever it came.
fn a_spent_budget_hides_no_severity(simulated: &Simulation, world: &World) -> Result<(), String> {
    let outcome = outcome(simulated);
    let assesses = matches!(world.setup.mode, Mode::Advisory | Mode::Hierarchy);
    if !assesses || outcome.get("code") != Some(&json!("budget_exhausted")) {
        return Ok(());
    }
    let answers = fed(simulated).into_values().filter_map(Result::ok);
    let gravest = answers.filter_map(|answer| answer.get("severity")?.as_u64()).max();
    let said = outcome["risk"]["severity"].as_u64();
    // A rule of the host's own may say more than the nodes below it do.
    match said == gravest || (world.setup.mode == Mode::Hierarchy && said > gravest) {
        true => Ok(()),
        false => Err(format!("the gravest answer has severity {gravest:?}, and the outcome says {said:?}")),
    }
}

/// P2: the log has exactly what was said, reached somebody and was not locked, each once.
fn locked_messages_reach_nobody(simulated: &Simulation, world: &World) -> Result<(), String> {
    if world.setup.mode != Mode::Peer
        || outcome(simulated)["stand"] != "done"
        || !world.setup.overlays.enabled
    {
        return Ok(());
    }
    let dropped: Vec<String> = facts(simulated, Kind::Violation)
        .filter_map(|data| data["candidate"].as_str())
        .map(str::to_owned)
        .collect();
    let collects = world.setup.rules.iter().filter(|rule| *rule.kind == *"aggregate").collect::<Vec<_>>();
    let collected =
        |member: &str| collects.is_empty() || collects.iter().any(|rule| rule.applies_to_member(member));
    let mut said = BTreeSet::new();
    for (id, answer) in fed(simulated) {
        let Ok(answer) = answer else { continue };
        let (round, member) = id.split_once('/').unwrap_or_default();
        let round = round.trim_start_matches("round");
        let spoken = answer["message"].as_str().is_some_and(|text| !text.trim().is_empty());
        if spoken && collected(member) && !dropped.contains(&format!("message/{round}/{member}")) {
            said.insert(format!("{round}/{member}"));
        }
    }
    let log = outcome(simulated)["messages"].as_array().into_iter().flatten();
    let log: Vec<String> = log.map(|one| format!("{}/{}", one["round"], text(one, "from"))).collect();
    match log.iter().cloned().collect::<BTreeSet<_>>() == said && log.len() == said.len() {
        true => Ok(()),
        false => Err(format!("{said:?} were said, and the log has {log:?}")),
    }
}
