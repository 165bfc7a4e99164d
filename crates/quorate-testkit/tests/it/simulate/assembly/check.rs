//! The checkers of assemblies: one for each invariant.

use std::collections::{BTreeMap, BTreeSet};

use quorate_kernel::history::replay;
use quorate_kernel::ports::ledger::{Kind, Record};
use quorate_manifest::assembly::Mode;
use quorate_manifest::timestamp;
use quorate_protocol::assembly::{SENTINEL, Setup};
use quorate_protocol::locks::Locks;
use quorate_protocol::modes::assembly::Assembly;
use quorate_protocol::overlay::{Eviction, EvictionReason, Overlay, OverlaySet};
use quorate_protocol::{AbsenceReason, ConsultationResult, Event, Json};
use serde_json::json;

use super::super::{Simulation, Violation};
use super::extensions::{NEAR, RULE};
use super::{LOCKED, World, pick};
use crate::simulate;
use quorate_testkit::scripted::Rng;

/// Checks a simulation against every invariant.
pub(super) fn check_all(simulated: &Simulation, world: &World, records: &[Record]) -> Result<(), Violation> {
    let checks = [
        simulate::one_consultation_per_invocation(records),
        simulate::no_call_is_paid_twice(simulated),
        simulate::no_member_is_asked_before_the_intent_is_recorded(simulated, records),
        simulate::no_more_calls_than_the_cap(simulated),
        one_outcome_and_it_is_last(records),
        every_asked_member_has_ended(records),
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
        locked_messages_are_not_delivered(simulated, world),
    ];
    let first = checks.into_iter().collect::<Result<(), String>>();
    first.map_err(|what| Violation::new(simulated.seed, what))
}

/// The number of candidates dropped by a lock.
pub(super) fn dropped_candidates(simulated: &Simulation) -> usize {
    facts(simulated, Kind::LockCheck).filter(|data| data["result"] == "hit").count()
}

fn facts(simulated: &Simulation, kind: Kind) -> impl Iterator<Item = &serde_json::Map<String, Json>> {
    simulated.history.facts.iter().filter(move |(kind_of, _)| kind_of == kind.as_str()).map(|(_, data)| data)
}

fn outcome(simulated: &Simulation) -> &serde_json::Map<String, Json> {
    simulated.history.outcome_data().expect("one_outcome_and_it_is_last has found it")
}

/// D1: a run has one outcome, and everything that it rests on is recorded before.
fn one_outcome_and_it_is_last(records: &[Record]) -> Result<(), String> {
    let places: Vec<usize> =
        records.iter().enumerate().filter(|(_, record)| record.is(Kind::Outcome)).map(|(at, _)| at).collect();
    let [at] = places[..] else { return Err(format!("there are {} outcomes", places.len())) };
    // Invocations that the decision cancelled end after it.
    let after = |record: &Record| {
        let status = record.data.as_ref().and_then(|data| data.get("status")).and_then(Json::as_str);
        record.is(Kind::RunIntent) || status.is_some_and(|status| matches!(status, "cancelled" | "late"))
    };
    match records[at + 1..].iter().find(|record| !after(record)) {
        Some(record) => Err(format!("{} is recorded after the outcome", record.kind)),
        None => Ok(()),
    }
}

/// D1, V7: every member that was asked has a consultation in the end, also a cancelled one.
fn every_asked_member_has_ended(records: &[Record]) -> Result<(), String> {
    let data =
        |kind| records.iter().filter(move |record| record.is(kind)).filter_map(|record| record.data.as_ref());
    let ended: BTreeSet<&str> =
        data(Kind::Consultation).filter_map(|data| data.get("invocation")?.as_str()).collect();
    let invocations = data(Kind::RunIntent).filter_map(|data| data.get("invocations")?.as_array()).flatten();
    match invocations.filter_map(Json::as_str).find(|id| !ended.contains(id)) {
        Some(id) => Err(format!("{id} was asked and has no consultation")),
        None => Ok(()),
    }
}

/// X7: the results of extensions are recorded, and no extension is called again.
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

/// X11: the recorded events give the recorded outcome, in a protocol that is set up from the record alone and calls no
/// member.
fn replay_is_identical(simulated: &Simulation, world: &World) -> Result<(), String> {
    let setup: Setup = serde_json::from_value(simulated.history.opened.setup.clone())
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

/// L1: a lock hits no text that an outcome persists.
fn nothing_locked_is_persisted(simulated: &Simulation, world: &World) -> Result<(), String> {
    if world.setup.locked_traits.is_empty() {
        return Ok(());
    }
    let locks = Locks::compile(&world.setup.locked_traits, world.setup.match_mode)
        .map_err(|error| error.to_string())?;
    let locked = |text: &&String| {
        let lowercase: String = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
        LOCKED.iter().any(|locked| lowercase.contains(locked))
            || !locks.check(text).is_empty()
            || (world.setup.embeds && text.contains(NEAR))
    };
    match persisted(outcome(simulated)).iter().find(locked) {
        Some(text) => Err(format!("the outcome has `{text}`, which is locked")),
        None => Ok(()),
    }
}

/// Every text of members or rules in an outcome.
fn persisted(outcome: &serde_json::Map<String, Json>) -> Vec<String> {
    let mut texts = Vec::new();
    for key in ["fragments", "messages", "synthesis", "rollup"] {
        strings(outcome.get(key).unwrap_or(&Json::Null), &mut texts);
    }
    strings(&outcome.get("decision").map_or(Json::Null, |decision| decision["text"].clone()), &mut texts);
    // V6: a placeholder names the trait that it withholds.
    let said = outcome.get("decision").and_then(|decision| decision["contribution"].as_array());
    for contribution in said.into_iter().flatten() {
        let mut own = Vec::new();
        strings(&contribution["rationale"], &mut own);
        strings(&contribution["evidence"], &mut own);
        texts.extend(own.into_iter().filter(|text| !text.starts_with("withheld: touches `")));
    }
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

/// L1, D7: each dropped candidate has its lock check and its violation, and the outcome counts them.
fn what_was_hit_is_recorded(simulated: &Simulation) -> Result<(), String> {
    let candidate_of =
        |data: &serde_json::Map<String, Json>| data.get("candidate").cloned().unwrap_or_default();
    let violated: Vec<Json> = facts(simulated, Kind::Violation).map(candidate_of).collect();
    for check in facts(simulated, Kind::LockCheck) {
        let dropped = check["result"] != "pass";
        if dropped != violated.contains(&candidate_of(check)) {
            return Err(format!("the lock check {check:?} and the violations {violated:?} differ"));
        }
    }
    let counted = outcome(simulated).get("violations").and_then(Json::as_u64);
    match counted == Some(violated.len() as u64) {
        // A run that ends for its budget may have pending checks.
        true => Ok(()),
        false => Err(format!("{} violations are recorded, and {counted:?} counted", violated.len())),
    }
}

/// The recorded answers, by invocation; `None` means no output.
fn fed(simulated: &Simulation) -> BTreeMap<String, Result<Json, AbsenceReason>> {
    let consulted = simulated.history.fed.iter().filter_map(|fed| match &fed.stamped.event {
        Event::Consulted { id, result: ConsultationResult::Answered(answer) } => {
            Some((id.to_string(), Ok(answer.clone())))
        }
        Event::Consulted { id, result: ConsultationResult::Absent(reason) } => {
            Some((id.to_string(), Err(*reason)))
        }
        _ => None,
    });
    consulted.collect()
}

/// V1, V3: the decision lists every voter once, with the vote of its consultation, and the sums match.
fn no_vote_is_lost_or_counted_twice(simulated: &Simulation, world: &World) -> Result<(), String> {
    let Some(decision) = outcome(simulated).get("decision") else { return Ok(()) };
    let fed = fed(simulated);
    let class = match &world.setup.request {
        quorate_protocol::assembly::AssemblyRequest::Voting { class } => class.as_deref(),
        _ => None,
    };
    let mut voters = Vec::new();
    for member in world.setup.members.iter().filter(|member| member.votes_on(class)) {
        let answer = fed.get(&format!("ask/{}", member.id)).and_then(|answer| answer.as_ref().ok());
        let vote = answer.map_or("missing", |answer| answer["vote"].as_str().unwrap_or("unreadable"));
        voters.push((member.id.to_string(), vote.to_owned()));
    }
    let listed: Vec<(String, String)> = decision["votes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|vote| (text(vote, "member"), text(vote, "vote").replace("cancelled", "missing")))
        .collect();
    if voters != listed {
        return Err(format!("the votes {voters:?} were reported as {listed:?}"));
    }
    Ok(())
}

fn text(value: &Json, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// X5, V8: no proposal passes without a yes, unless an extension's rule decides so.
fn a_pass_rests_on_a_yes(simulated: &Simulation, world: &World) -> Result<(), String> {
    let outcome = outcome(simulated);
    let extension_decides = world.setup.rules.iter().any(|rule| *rule.kind == *RULE);
    if outcome["verdict"] != "pass" || extension_decides || outcome.get("decision").is_none() {
        return Ok(());
    }
    let votes = outcome["decision"]["votes"].as_array().into_iter().flatten();
    match votes.filter(|vote| vote["vote"] == "yes").count() {
        0 => Err("it passes without a yes".to_owned()),
        _ => Ok(()),
    }
}

/// X12: exactly those members are named as missing that had to be asked and gave no output.
fn who_lacks_output_is_named(simulated: &Simulation, world: &World) -> Result<(), String> {
    let outcome = outcome(simulated);
    let (mut without_output, mut answered) = (BTreeSet::new(), BTreeSet::new());
    for fed in &simulated.history.fed {
        match &fed.stamped.event {
            Event::Consulted { id, result: ConsultationResult::Answered(_) } => {
                answered.insert(member_of(id));
            }
            Event::Consulted { id, result: ConsultationResult::Absent(reason) }
                if *reason != AbsenceReason::Cancelled =>
            {
                without_output.insert(member_of(id));
            }
            Event::Gathered { id, result: Err(_) } => {
                without_output.insert(member_of(id));
            }
            _ => {}
        }
    }
    let named: BTreeSet<String> = outcome["missing"].as_array().into_iter().flatten().map(string).collect();
    let partial = outcome["partial"] == json!(true);
    let exhausted = outcome.get("code") == Some(&json!("budget_exhausted"));
    // After a vote was decided, the run does not wait for missing results of a gather strategy. If the budget was spent, the
    // outcome also names members that were not asked, but none whose last question was answered.
    // A peer that has answered may lack output in a later round.
    let has_rounds = world.setup.mode == Mode::Peer;
    let is_consistent = match exhausted {
        true => {
            named.is_superset(&without_output)
                && (has_rounds
                    || named
                        .iter()
                        .all(|member| without_output.contains(member) || !answered.contains(member)))
        }
        false => named.is_subset(&without_output) && (named == without_output || world.setup.early_decision),
    };
    if partial == named.is_empty() || !is_consistent {
        return Err(format!("{without_output:?} lack output, and {named:?} are named (partial: {partial})"));
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

/// X12: a sentinel without output involves a person, however the run ended.
fn a_missing_sentinel_escalates(simulated: &Simulation, world: &World) -> Result<(), String> {
    if world.setup.mode != Mode::Advisory {
        return Ok(());
    }
    let outcome = outcome(simulated);
    let sentinels = world.setup.members.iter().filter(|member| member.phase.as_deref() == Some(SENTINEL));
    let missing: Vec<String> = outcome["missing"].as_array().into_iter().flatten().map(string).collect();
    let lacks = sentinels.map(|member| member.id.to_string()).any(|id| missing.contains(&id));
    match lacks && outcome.get("shouldEscalate") != Some(&json!(true)) {
        true => Err(format!("a sentinel is missing and the run does not escalate: {missing:?}")),
        false => Ok(()),
    }
}

/// X8: the outcome of a run that spent its budget reports that, and decides nothing.
fn a_spent_budget_is_said(simulated: &Simulation, world: &World) -> Result<(), String> {
    let outcome = outcome(simulated);
    let spent = simulated.history.fed.iter().any(|fed| fed.stamped.event.is_over_budget());
    let reported = outcome.get("code") == Some(&json!("budget_exhausted"));
    // A call that was cancelled before the budget refused it changes nothing (seed 480951).
    let may_differ = world.setup.early_decision && !reported;
    match (spent == reported || may_differ) && (!reported || outcome["stand"] == "incomplete") {
        true => Ok(()),
        false => Err(format!("the budget is spent: {spent}; the outcome reports it: {reported}")),
    }
}

/// X8, A6: the risk of a run that spent its budget is that of the gravest answer, whenever it came.
fn a_spent_budget_hides_no_severity(simulated: &Simulation, world: &World) -> Result<(), String> {
    let outcome = outcome(simulated);
    let assesses = matches!(world.setup.mode, Mode::Advisory | Mode::Hierarchy);
    if !assesses || outcome.get("code") != Some(&json!("budget_exhausted")) {
        return Ok(());
    }
    let answers = fed(simulated).into_values().filter_map(Result::ok);
    let gravest = answers.filter_map(|answer| answer.get("severity")?.as_u64()).max();
    let reported = outcome["risk"]["severity"].as_u64();
    // An extension's rule may report a higher severity than the nodes below it.
    match reported == gravest || (world.setup.mode == Mode::Hierarchy && reported > gravest) {
        true => Ok(()),
        false => {
            Err(format!("the gravest answer has severity {gravest:?}, and the outcome says {reported:?}"))
        }
    }
}

/// P2: the log holds exactly the messages that were sent, reached a member and were not locked, each once.
fn locked_messages_are_not_delivered(simulated: &Simulation, world: &World) -> Result<(), String> {
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
    let mut sent = BTreeSet::new();
    for (id, answer) in fed(simulated) {
        let Ok(answer) = answer else { continue };
        let (round, member) = id.split_once('/').unwrap_or_default();
        let round = round.trim_start_matches("round");
        let has_message = answer["message"].as_str().is_some_and(|text| !text.trim().is_empty());
        if has_message && collected(member) && !dropped.contains(&format!("message/{round}/{member}")) {
            sent.insert(format!("{round}/{member}"));
        }
    }
    let log = outcome(simulated)["messages"].as_array().into_iter().flatten();
    let log: Vec<String> =
        log.map(|message| format!("{}/{}", message["round"], text(message, "from"))).collect();
    match log.iter().cloned().collect::<BTreeSet<_>>() == sent && log.len() == sent.len() {
        true => Ok(()),
        false => Err(format!("{sent:?} were said, and the log has {log:?}")),
    }
}

const DAY_MS: i64 = 86_400_000;
const CAP: usize = 3;

/// Writes the run's advice, for two operators, at twelve times.
pub(super) fn check(seed: u64, simulated: &Simulation) -> Result<(), String> {
    let outcome = super::outcome(&simulated.history);
    let Some(fragments) = outcome.get("fragments").and_then(Json::as_array) else { return Ok(()) };
    let mut rng = Rng::from_seed_and_name(seed, "overlays");
    let fed_ms = simulated.history.fed.last().map_or(simulated.history.opened_ms, |fed| fed.stamped.at_ms);
    let mut now_ms = fed_ms;
    let mut overlays = OverlaySet::default();
    for write in 0..12 {
        let mut coming = Vec::new();
        for (at, fragment) in fragments.iter().enumerate() {
            let lives_ms = lifetime_ms(fragment, fed_ms)?;
            for operator in ["one", "two"] {
                coming.push(overlay(fragment, write, at, operator, now_ms, lives_ms));
            }
        }
        let evicted = overlays.evictions(&coming, CAP, now_ms);
        check_evictions(&overlays, &coming, &evicted, now_ms)?;
        coming.into_iter().for_each(|overlay| overlays.add(overlay));
        evicted.iter().for_each(|eviction| overlays.evict(&eviction.overlay));
        check_active(&overlays, now_ms)?;
        let leap = i64::try_from(rng.below(20)).unwrap_or(0) * DAY_MS / 4;
        now_ms += if rng.percent(25) { -leap } else { leap };
        // Between two writes, expired overlays are not active either.
        if overlays.active(now_ms).iter().any(|overlay| overlay.expires_ms <= now_ms) {
            return Err("an overlay is active past its time".to_owned());
        }
        if pick(&mut rng, 4) == 0 {
            let swept = overlays.evictions(&[], CAP, now_ms);
            swept.iter().for_each(|eviction| overlays.evict(&eviction.overlay));
            check_active(&overlays, now_ms)?;
        }
    }
    Ok(())
}

/// A5: a fragment is valid for one to thirty days.
fn lifetime_ms(fragment: &Json, fed_ms: i64) -> Result<i64, String> {
    let expires = fragment["expires"].as_str().unwrap_or_default();
    let expires_ms = timestamp::parse(expires).ok_or_else(|| format!("`{expires}` is not a time"))?;
    let lives_ms = expires_ms - fed_ms;
    match (DAY_MS..=30 * DAY_MS).contains(&lives_ms) {
        true => Ok(lives_ms),
        false => Err(format!("a fragment holds for {lives_ms} ms")),
    }
}

fn overlay(fragment: &Json, write: usize, at: usize, operator: &str, now_ms: i64, lives_ms: i64) -> Overlay {
    let text = |key: &str| fragment[key].as_str().unwrap_or_default().to_owned();
    let small = |key: &str| fragment[key].as_u64().and_then(|number| u8::try_from(number).ok()).unwrap_or(0);
    Overlay {
        overlay: format!("o{write:02}{at:02}{operator}"),
        assembly: "simulated".to_owned(),
        operator: operator.to_owned(),
        run: format!("r{write}"),
        member: text("member"),
        rule: text("rule"),
        // Advice that a later run repeats has the same text.
        text: format!("{} ({})", text("text"), write % 5),
        severity: small("severity"),
        priority: small("priority"),
        added_ms: now_ms,
        expires_ms: now_ms + lives_ms,
    }
}

/// A5: after a write no operator has more texts than the cap, and no expired overlay is left.
fn check_active(overlays: &OverlaySet, now_ms: i64) -> Result<(), String> {
    let mut texts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for overlay in overlays.all() {
        texts.entry(&overlay.operator).or_default().insert(&overlay.text);
        if !overlay.is_active(now_ms) {
            return Err(format!("{} is over and was not swept", overlay.overlay));
        }
    }
    match texts.values().any(|texts| texts.len() > CAP) {
        true => Err(format!("over the cap: {texts:?}")),
        false => Ok(()),
    }
}

/// A5: an overlay that is evicted for the cap was repeated since, with at least its priority and expiry; or its text is
/// evicted as a whole, and is older than all that stay, or as old with less priority. No overlay is evicted twice.
fn check_evictions(
    overlays: &OverlaySet,
    coming: &[Overlay],
    evicted: &[Eviction],
    now_ms: i64,
) -> Result<(), String> {
    let by_id: BTreeMap<&str, &Overlay> =
        overlays.all().iter().chain(coming).map(|overlay| (overlay.overlay.as_str(), overlay)).collect();
    let mut staying = by_id.clone();
    for eviction in evicted {
        if staying.remove(eviction.overlay.as_str()).is_none() {
            return Err(format!("{} goes twice, or is not there", eviction.overlay));
        }
    }
    for eviction in evicted {
        let evicted_overlay = by_id[eviction.overlay.as_str()];
        let wrong = match eviction.why {
            EvictionReason::Expired => evicted_overlay.is_active(now_ms),
            EvictionReason::Cap => {
                !said_again(&by_id, evicted_overlay) && !is_oldest(&by_id, &staying, evicted_overlay, now_ms)
            }
            EvictionReason::Person => true,
        };
        if wrong {
            return Err(format!("{eviction:?} has no reason to go"));
        }
    }
    Ok(())
}

fn is_same(first: &Overlay, second: &Overlay) -> bool {
    (&first.operator, &first.text) == (&second.operator, &second.text)
}

fn said_again(by_id: &BTreeMap<&str, &Overlay>, evicted: &Overlay) -> bool {
    by_id.values().any(|repeated| {
        is_same(repeated, evicted)
            && repeated.overlay != evicted.overlay
            && repeated.priority >= evicted.priority
            && repeated.expires_ms >= evicted.expires_ms
    })
}

fn is_oldest(
    by_id: &BTreeMap<&str, &Overlay>,
    staying: &BTreeMap<&str, &Overlay>,
    evicted: &Overlay,
    now_ms: i64,
) -> bool {
    let last = |overlay: &Overlay| {
        let all = by_id.values().filter(|same| is_same(same, overlay) && same.is_active(now_ms));
        all.map(|same| (same.added_ms, same.priority)).max()
    };
    let mut stay = staying.values().filter(|kept| kept.operator == evicted.operator);
    stay.all(|kept| !is_same(kept, evicted) && last(kept) >= last(evicted))
}
