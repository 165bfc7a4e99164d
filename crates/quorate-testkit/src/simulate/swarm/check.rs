//! The checkers: one for each thing that must hold of a conversation, whatever happened to those who had it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use quorate_kernel::conversation::turn_key;
use quorate_kernel::ports::ledger::{Kind, Record};
use quorate_kernel::ports::substrate::Keeps;
use quorate_protocol::{Json, Name};

use super::Summary;
use super::conversation::position;
use super::expected::{Answer, FinishedConversation, answers};
use super::process::World;
use super::setup::Dispatch;

/// The records of a manifest's ledgers.
pub(super) type LedgerRecords = Vec<Vec<Record>>;

/// Holds what came of a simulation against everything that must hold.
pub(super) fn check_all(world: &World, records: &[LedgerRecords]) -> Result<Summary, String> {
    let log = world.log.lock().unwrap_or_else(PoisonError::into_inner);
    let turns = world.talk.turns();
    let answers = answers(&turns, world.talk.stamps(), &log)?;
    let count = |count: &std::sync::atomic::AtomicUsize| count.load(Ordering::Relaxed);
    let losses = count(&world.deaths) + count(&world.failed) + count(&world.talk.unacknowledged);
    let ended = FinishedConversation { setup: &world.setup, log: &log, turns, answers, losses };
    every_trigger_is_taken_up_in_order(&ended)?;
    every_mention_is_answered_once(&ended)?;
    chance_is_asked_once(&ended)?;
    nobody_answers_itself(&ended)?;
    the_guard_holds(&ended)?;
    answers_are_in_order(&ended)?;
    answers_say_what_they_answer(&ended)?;
    windows_end_with_the_trigger(&ended)?;
    nobody_is_asked_twice_by_one_process(&ended)?;
    the_cursor_is_behind_what_is_open(&ended)?;
    states_are_the_last_update(&ended, world)?;
    states_are_never_stale(&ended)?;
    the_ledger_knows_every_turn(&ended, records)?;
    hooks_hear_of_every_turn(&ended, world)?;
    Ok(summary(&ended))
}

fn summary(ended: &FinishedConversation<'_>) -> Summary {
    let asked: BTreeSet<_> = ended.log.asked.iter().map(|one| (one.trigger, &one.participant)).collect();
    let answered: BTreeSet<_> = ended.answers.iter().map(|one| (one.trigger, &one.by)).collect();
    let guarded = ended
        .manifests()
        .map(|(_, manifest)| (0..ended.turns.len()).filter(|at| ended.is_guarded(manifest, *at)).count());
    Summary {
        turns: ended.turns.len(),
        answers: ended.answers.len(),
        failed: asked.difference(&answered).count(),
        guarded: guarded.sum(),
        ..Summary::default()
    }
}

/// K2, K3: each life takes the turns up one after the other, without a gap, behind what was taken up before; in the end
/// all of them were.
fn every_trigger_is_taken_up_in_order(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let mut reached = vec![0; ended.setup.manifests.len()];
    let mut last: BTreeMap<usize, usize> = BTreeMap::new();
    for taken in &ended.log.taken {
        let manifest = ended.log.lives[taken.life];
        let at = taken.trigger;
        match last.insert(taken.life, at) {
            Some(before) if at != before + 1 => {
                return Err(format!("life {} takes up t{at} after t{before}", taken.life));
            }
            None if at > reached[manifest] => {
                return Err(format!(
                    "life {} begins with t{at}; t{} was never taken up",
                    taken.life, reached[manifest]
                ));
            }
            _ => {}
        }
        reached[manifest] = reached[manifest].max(at + 1);
    }
    match reached.iter().position(|reached| *reached != ended.turns.len()) {
        Some(manifest) => Err(format!(
            "manifest {manifest} is idle, and of {} turns it has taken up {}",
            ended.turns.len(),
            reached[manifest]
        )),
        None => Ok(()),
    }
}

/// K2, K3: who is selected and answers in the end has answered exactly once, who is not has not. Where the substrate
/// keeps no stamps, none is lost, and each loss of a process may have cost one answer too many.
fn every_mention_is_answered_once(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let by_chance = |answer: &&Answer| ended.setup.manifests[answer.manifest].dispatch == Dispatch::Random;
    let mut counts: BTreeMap<(usize, Name), usize> = BTreeMap::new();
    for answer in ended.answers.iter().filter(|one| !by_chance(one)) {
        *counts.entry((answer.trigger, answer.by.clone())).or_default() += 1;
    }
    let most = match ended.setup.keeps {
        Keeps::Stamps => 1,
        Keeps::Turns => 1 + ended.losses,
    };
    for at in 0..ended.turns.len() {
        let (must, may) = ended.expected(at);
        for one in must.iter().chain(&may) {
            let count = counts.remove(&(at, one.clone())).unwrap_or(0);
            let least = usize::from(must.contains(one));
            if count < least || count > most {
                return Err(format!("{one} has to answer t{at} and has answered it {count} times"));
            }
        }
    }
    match counts.into_iter().next() {
        Some(((at, by), _)) => Err(format!("{by} has answered t{at} and was not to")),
        None => Ok(()),
    }
}

/// Where chance decides, what it decided once holds: those who have answered are those of one decision.
fn chance_is_asked_once(ended: &FinishedConversation<'_>) -> Result<(), String> {
    for (number, manifest) in ended.manifests().filter(|(_, one)| one.dispatch == Dispatch::Random) {
        let mut decisions: BTreeMap<usize, Vec<Vec<Name>>> = BTreeMap::new();
        for one in ended.log.decided.iter().filter(|one| one.manifest == number) {
            let Some(at) = one.window.last().copied() else { continue };
            let named = one.named.clone().unwrap_or_default();
            decisions.entry(at).or_default().push(ended.admitted(manifest, at, &named));
        }
        for at in 0..ended.turns.len() {
            let answers = ended.answers.iter().filter(|one| one.manifest == number && one.trigger == at);
            let answered: Vec<&Name> = answers.map(|one| &one.by).collect();
            let fits = |selected: &Vec<Name>| {
                let must = selected.iter().filter(|one| ended.answers(at, one) == Some(true));
                must.into_iter().all(|one| answered.contains(&one))
                    && answered.iter().all(|one| selected.contains(one))
            };
            let several = ended.setup.keeps == Keeps::Turns && ended.losses > 0;
            let distinct: BTreeSet<&&Name> = answered.iter().collect();
            let decided = decisions.remove(&at).unwrap_or_default();
            if several || decided.iter().any(fits) && distinct.len() == answered.len() {
                continue;
            }
            if !answered.is_empty() || !ended.is_guarded(manifest, at) {
                return Err(format!("t{at} was answered by {answered:?}, and selected were {decided:?}"));
            }
        }
    }
    Ok(())
}

/// K6: nobody answers itself unless the policy says so.
fn nobody_answers_itself(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let itself = |one: &&Answer| {
        let may = ended.setup.manifests[one.manifest].policy.reentry;
        !may && ended.turns[one.trigger].participant == one.by
    };
    match ended.answers.iter().find(itself) {
        Some(one) => Err(format!("{} has answered itself in t{}", one.by, one.at)),
        None => Ok(()),
    }
}

/// Nobody answers a turn after too many turns of participants in a row.
fn the_guard_holds(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let loops = |one: &&Answer| ended.is_guarded(&ended.setup.manifests[one.manifest], one.trigger);
    match ended.answers.iter().find(loops) {
        Some(one) => Err(format!("t{} answers t{}, which the guard passes over", one.at, one.trigger)),
        None => Ok(()),
    }
}

/// K2: an answer comes after its trigger; what one process appends is in the order of the triggers, and of the
/// selection for each.
fn answers_are_in_order(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let mut last: BTreeMap<usize, &Answer> = BTreeMap::new();
    for one in &ended.answers {
        if one.trigger >= one.at {
            return Err(format!("t{} answers t{}, which is not before it", one.at, one.trigger));
        }
        let Some(before) = last.insert(one.life, one) else { continue };
        let manifest = &ended.setup.manifests[one.manifest];
        let selected = ended.selected(manifest, one.trigger);
        let rank = |by: &Name| selected.iter().position(|one| one == by);
        // Without stamps the substrate takes what was appended, without anybody learning that, once more.
        let again = ended.setup.keeps == Keeps::Turns && ended.losses > 0 && before.by == one.by;
        let by_chance = manifest.dispatch == Dispatch::Random;
        let selected_after = by_chance || again || rank(&before.by) < rank(&one.by);
        if before.trigger > one.trigger || before.trigger == one.trigger && !selected_after {
            return Err(format!(
                "life {} has appended t{} ({} to t{}) and then t{} ({} to t{})",
                one.life, before.at, before.by, before.trigger, one.at, one.by, one.trigger
            ));
        }
    }
    Ok(())
}

/// K5: the stamp of an answer says what it answers, by whom, and in which runtime.
fn answers_say_what_they_answer(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let fits = |one: &&Answer| {
        let trigger = format!("t{}", one.trigger);
        one.stamp.as_ref().is_some_and(|stamp| {
            let count = stamp.state.as_ref().and_then(|state| state.get("n")?.as_u64());
            *stamp.trigger == *trigger
                && stamp.key == turn_key(&trigger, &one.by)
                && stamp.runtime == ended.setup.manifests[one.manifest].id
                && count == one.count
        })
    };
    match ended.answers.iter().find(|one| !fits(one)) {
        Some(one) => Err(format!("the stamp of t{} does not fit it: {:?}", one.at, one.stamp)),
        None => Ok(()),
    }
}

/// K2: a dispatcher sees the last turns up to the trigger, in the conversation's order.
fn windows_end_with_the_trigger(ended: &FinishedConversation<'_>) -> Result<(), String> {
    for one in &ended.log.decided {
        let Some(at) = one.window.last().copied() else { return Err("an empty window".to_owned()) };
        let from = ended.window(&ended.setup.manifests[one.manifest], at);
        if !one.window.iter().copied().eq(from..=at) {
            return Err(format!("the window of t{at} is {:?}, and should begin with t{from}", one.window));
        }
    }
    Ok(())
}

/// What one process has asked, it does not ask again.
fn nobody_is_asked_twice_by_one_process(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    match ended.log.asked.iter().find(|one| !seen.insert((one.life, one.trigger, &one.participant))) {
        Some(one) => Err(format!("life {} asks {} twice for t{}", one.life, one.participant, one.trigger)),
        None => Ok(()),
    }
}

/// K3: when a cursor is recorded, everything up to it is answered by everybody who answers.
fn the_cursor_is_behind_what_is_open(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let mut first: BTreeMap<(usize, &Name), usize> = BTreeMap::new();
    for one in ended.answers.iter().rev() {
        first.insert((one.trigger, &one.by), one.at);
    }
    for (number, manifest) in ended.manifests() {
        // For each turn the last of the answers to it and to those before it.
        let mut last: Vec<Option<usize>> = Vec::with_capacity(ended.turns.len());
        for at in 0..ended.turns.len() {
            let selected = ended.selected(manifest, at).into_iter();
            let answer = selected
                .filter(|one| ended.answers(at, one) == Some(true))
                .filter_map(|one| first.get(&(at, &one)).copied())
                .max();
            last.push(last.last().copied().flatten().max(answer));
        }
        for cursor in ended.log.cursors.iter().filter(|one| one.manifest == number) {
            if last[cursor.at].is_some_and(|answer| answer >= cursor.length) {
                return Err(format!("t{} was recorded as settled before all was said up to it", cursor.at));
            }
        }
    }
    Ok(())
}

/// K5: what a participant remembers is the last update that stands in the conversation.
fn states_are_the_last_update(ended: &FinishedConversation<'_>, world: &World) -> Result<(), String> {
    for (number, manifest) in ended.manifests().filter(|(_, one)| one.is_single_process()) {
        // Without stamps nothing tells a new process what its predecessor did not get to store.
        let interrupted = world.interrupts.load(Ordering::Relaxed) > 0;
        if ended.setup.keeps == Keeps::Turns && (ended.losses > 0 || interrupted) {
            continue;
        }
        let states = world.states[number].lock().unwrap_or_else(PoisonError::into_inner);
        for id in &manifest.roster {
            let own = ended.answers.iter().rev().filter(|one| one.manifest == number && one.by == *id);
            let last = own.filter_map(|one| one.count).next();
            let stored = states.get(&**id).and_then(|state| state.get("n")?.as_u64());
            if stored != last {
                return Err(format!("{id} remembers {stored:?}; its last update is {last:?}"));
            }
        }
    }
    Ok(())
}

/// K5: whoever is asked remembers everything that it said before: what each counts goes up one by one.
fn states_are_never_stale(ended: &FinishedConversation<'_>) -> Result<(), String> {
    for (number, manifest) in ended.manifests().filter(|(_, one)| one.is_single_process()) {
        if ended.setup.keeps == Keeps::Turns {
            continue;
        }
        for id in &manifest.roster {
            let own = ended.answers.iter().filter(|one| one.manifest == number && one.by == *id);
            let counts: Vec<u64> = own.filter_map(|one| one.count).collect();
            if !counts.iter().copied().eq(1..=counts.len() as u64) {
                return Err(format!("{id} was asked with a stale state: it counts {counts:?}"));
            }
        }
    }
    Ok(())
}

/// K5: the ledger names every turn of its runtime, and none that is not there.
fn the_ledger_knows_every_turn(
    ended: &FinishedConversation<'_>,
    records: &[LedgerRecords],
) -> Result<(), String> {
    for ((number, manifest), books) in ended.manifests().zip(records) {
        for book in books {
            let turns = book.iter().filter(|record| record.is(Kind::Turn));
            let appended = turns.filter_map(|record| record.data.as_ref()?.get("appended")?.as_array());
            let named = appended.flatten().filter_map(|one| one.get("turn").and_then(Json::as_str));
            let named: BTreeSet<Option<usize>> = named.map(position).collect();
            let own = ended.answers.iter().filter(|one| one.manifest == number);
            let own: BTreeSet<Option<usize>> = own.map(|one| Some(one.at)).collect();
            if let Some(stranger) = named.difference(&own).next() {
                return Err(format!(
                    "the ledger of `{}` names t{stranger:?}, which is not its own",
                    manifest.id
                ));
            }
            let told = ended.setup.keeps == Keeps::Stamps || ended.losses == 0;
            if let Some(unknown) =
                own.difference(&named).next().filter(|_| told && manifest.is_single_process())
            {
                return Err(format!("the ledger of `{}` does not know t{unknown:?}", manifest.id));
            }
        }
    }
    Ok(())
}

/// K2: hooks hear of each turn once, unless somebody died, was interrupted, or gave up who was to tell them.
fn hooks_hear_of_every_turn(ended: &FinishedConversation<'_>, world: &World) -> Result<(), String> {
    // Without stamps nobody knows of a turn whose append seemed to have failed.
    let unknown = ended.setup.keeps == Keeps::Turns && ended.losses > 0;
    // Nor does a process that gives up after such an append, and ends, though whoever comes next finds the turn.
    let unsure = world.talk.unacknowledged.load(Ordering::Relaxed) > 0;
    let gave_up = world.failed.load(Ordering::Relaxed) > 0 && unsure;
    let ended_early = world.deaths.load(Ordering::Relaxed) + world.interrupts.load(Ordering::Relaxed) > 0;
    let disturbed = ended_early || unknown || gave_up;
    for (number, _) in ended.manifests().filter(|(_, one)| one.is_single_process()) {
        let heard = ended.log.ended.iter().filter(|(life, _)| ended.log.lives[*life] == number);
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for (_, at) in heard {
            *counts.entry(*at).or_default() += 1;
        }
        let own = ended.answers.iter().filter(|one| one.manifest == number);
        for one in own {
            let count = counts.remove(&one.at).unwrap_or(0);
            if count > 1 || count == 0 && !disturbed {
                return Err(format!("hooks heard of t{} {count} times", one.at));
            }
        }
        if let Some((at, _)) = counts.into_iter().next() {
            return Err(format!("hooks heard of t{at}, which is not the runtime's"));
        }
    }
    Ok(())
}
