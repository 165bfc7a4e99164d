//! The checkers of conversations: one for each invariant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use quorate_kernel::conversation::{Stamp, Turn, turn_key};
use quorate_kernel::ports::ledger::{Kind, Record};
use quorate_kernel::ports::substrate::Keeps;
use quorate_protocol::{Json, Name};

use super::conversation::{Decision, Log, position};
use super::process::World;
use super::process::{Behavior, dispatch_targets};
use super::{Dispatch, Manifest, Setup, Summary};
use quorate_testkit::scripted::Rng;

/// The records of a manifest's ledgers.
pub(super) type LedgerRecords = Vec<Vec<Record>>;

/// Checks the result of a simulation against every invariant.
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
    no_participant_answers_itself(&ended)?;
    the_guard_holds(&ended)?;
    answers_are_in_order(&ended)?;
    answers_say_what_they_answer(&ended)?;
    windows_end_with_the_trigger(&ended)?;
    decisions_that_cost_are_kept(&ended)?;
    no_member_is_asked_twice_by_one_process(&ended)?;
    the_cursor_is_behind_what_is_open(&ended)?;
    states_are_the_last_update(&ended, world)?;
    states_are_never_stale(&ended)?;
    the_ledger_knows_every_turn(&ended, records)?;
    hooks_hear_of_every_turn(&ended, world)?;
    Ok(summary(&ended))
}

fn summary(ended: &FinishedConversation<'_>) -> Summary {
    let asked: BTreeSet<_> = ended.log.asked.iter().map(|call| (call.trigger, &call.participant)).collect();
    let answered: BTreeSet<_> = ended.answers.iter().map(|call| (call.trigger, &call.by)).collect();
    let guarded = ended.manifests().map(|(_, manifest)| {
        (0..ended.turns.len()).filter(|at| ended.is_guarded(manifest, *at) == Some(true)).count()
    });
    Summary {
        turns: ended.turns.len(),
        answers: ended.answers.len(),
        failed: asked.difference(&answered).count(),
        guarded: guarded.sum(),
        ..Summary::default()
    }
}

/// K2, K3: each process takes up the turns in order, without a gap, starting behind those taken up before; in the end all
/// were taken up.
fn every_trigger_is_taken_up_in_order(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let mut reached = vec![0; ended.setup.manifests.len()];
    let mut last: BTreeMap<usize, usize> = BTreeMap::new();
    for taken in &ended.log.taken {
        let manifest = ended.log.lives[taken.life];
        let at = taken.trigger;
        match last.insert(taken.life, at) {
            Some(before)
                if at != before + 1 && !(at == before && ended.log.dropped.contains(&taken.life)) =>
            {
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

/// K2, K3: every selected participant that answers in the end has answered exactly once, and no other has. Without stamps
/// none is lost, but each loss of a process may have caused one duplicate.
fn every_mention_is_answered_once(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let by_chance = |answer: &&Answer| ended.setup.manifests[answer.manifest].dispatch == Dispatch::Random;
    let mut counts: BTreeMap<(usize, Name), usize> = BTreeMap::new();
    for answer in ended.answers.iter().filter(|answer| !by_chance(answer)) {
        *counts.entry((answer.trigger, answer.by.clone())).or_default() += 1;
    }
    let most = match ended.setup.keeps {
        Keeps::Stamps => 1,
        Keeps::Turns => 1 + ended.losses,
    };
    for at in 0..ended.turns.len() {
        let (must, may) = ended.expected(at);
        for participant in must.iter().chain(&may) {
            let count = counts.remove(&(at, participant.clone())).unwrap_or(0);
            let least = usize::from(must.contains(participant));
            if count < least || count > most {
                return Err(format!("{participant} has to answer t{at} and has answered it {count} times"));
            }
        }
    }
    match counts.into_iter().next() {
        Some(((at, by), _)) => Err(format!("{by} has answered t{at} and was not to")),
        None => Ok(()),
    }
}

/// A random selection is made once: the participants that have answered are those of one selection.
fn chance_is_asked_once(ended: &FinishedConversation<'_>) -> Result<(), String> {
    for (number, manifest) in ended.manifests().filter(|(_, manifest)| manifest.dispatch == Dispatch::Random)
    {
        let mut decisions: BTreeMap<usize, Vec<Vec<Name>>> = BTreeMap::new();
        for decision in ended.log.decided.iter().filter(|decision| decision.manifest == number) {
            let Some(at) = decision.window.last().copied() else { continue };
            let named = decision.named.clone().unwrap_or_default();
            decisions.entry(at).or_default().push(ended.admitted(manifest, at, &named));
        }
        for at in 0..ended.turns.len() {
            let answers =
                ended.answers.iter().filter(|answer| answer.manifest == number && answer.trigger == at);
            let answered: Vec<&Name> = answers.map(|answer| &answer.by).collect();
            let fits = |selected: &Vec<Name>| {
                let must = selected.iter().filter(|participant| ended.answers(at, participant) == Some(true));
                must.into_iter().all(|participant| answered.contains(&participant))
                    && answered.iter().all(|participant| selected.contains(participant))
            };
            let several = ended.setup.keeps == Keeps::Turns && ended.losses > 0;
            let distinct: BTreeSet<&&Name> = answered.iter().collect();
            let decided = decisions.remove(&at).unwrap_or_default();
            if several || decided.iter().any(fits) && distinct.len() == answered.len() {
                continue;
            }
            if !answered.is_empty() || ended.is_guarded(manifest, at) == Some(false) {
                return Err(format!("t{at} was answered by {answered:?}, and selected were {decided:?}"));
            }
        }
    }
    Ok(())
}

/// K6: no participant answers itself unless the policy allows it.
fn no_participant_answers_itself(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let itself = |answer: &&Answer| {
        let may = ended.setup.manifests[answer.manifest].policy.reentry;
        !may && ended.turns[answer.trigger].participant == answer.by
    };
    match ended.answers.iter().find(itself) {
        Some(answer) => Err(format!("{} has answered itself in t{}", answer.by, answer.at)),
        None => Ok(()),
    }
}

/// K12: no turn is answered at the end of a chain that is too long.
fn the_guard_holds(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let loops = |answer: &&Answer| {
        ended.is_guarded(&ended.setup.manifests[answer.manifest], answer.trigger) == Some(true)
    };
    match ended.answers.iter().find(loops) {
        Some(answer) => {
            Err(format!("t{} answers t{}, which the guard passes over", answer.at, answer.trigger))
        }
        None => Ok(()),
    }
}

/// K2: an answer comes after its trigger; a process appends in the order of the triggers, and of the selection for each.
fn answers_are_in_order(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let mut last: BTreeMap<usize, &Answer> = BTreeMap::new();
    for answer in &ended.answers {
        if answer.trigger >= answer.at {
            return Err(format!("t{} answers t{}, which is not before it", answer.at, answer.trigger));
        }
        let Some(before) = last.insert(answer.life, answer) else { continue };
        let manifest = &ended.setup.manifests[answer.manifest];
        let selected = ended.selected(manifest, answer.trigger);
        let rank = |by: &Name| selected.iter().position(|answer| answer == by);
        // Without stamps the substrate stores an unacknowledged append again.
        let again = ended.setup.keeps == Keeps::Turns && ended.losses > 0 && before.by == answer.by;
        let by_chance = manifest.dispatch == Dispatch::Random;
        // Those who had not answered when a cycle was dropped are asked again, after those who had.
        let dropped = ended.log.dropped.contains(&answer.life) && before.by != answer.by;
        let selected_after = by_chance || again || dropped || rank(&before.by) < rank(&answer.by);
        if before.trigger > answer.trigger || before.trigger == answer.trigger && !selected_after {
            return Err(format!(
                "life {} has appended t{} ({} to t{}) and then t{} ({} to t{})",
                answer.life, before.at, before.by, before.trigger, answer.at, answer.by, answer.trigger
            ));
        }
    }
    Ok(())
}

/// K5: the stamp of an answer names its trigger, author and runtime.
fn answers_say_what_they_answer(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let fits = |answer: &&Answer| {
        let trigger = format!("t{}", answer.trigger);
        answer.stamp.as_ref().is_some_and(|stamp| {
            let count = stamp.state.as_ref().and_then(|state| state.get("n")?.as_u64());
            *stamp.trigger == *trigger
                && stamp.key == turn_key(&trigger, &answer.by)
                && stamp.runtime == ended.setup.manifests[answer.manifest].id
                && count == answer.count
        })
    };
    match ended.answers.iter().find(|answer| !fits(answer)) {
        Some(answer) => Err(format!("the stamp of t{} does not fit it: {:?}", answer.at, answer.stamp)),
        None => Ok(()),
    }
}

/// K2: a dispatcher sees the last turns up to the trigger, in the conversation's order.
fn windows_end_with_the_trigger(ended: &FinishedConversation<'_>) -> Result<(), String> {
    for decision in &ended.log.decided {
        let Some(at) = decision.window.last().copied() else { return Err("an empty window".to_owned()) };
        let start = ended.window(&ended.setup.manifests[decision.manifest], at);
        if !decision.window.iter().copied().eq(start..=at) {
            return Err(format!(
                "the window of t{at} is {:?}, and should begin with t{start}",
                decision.window
            ));
        }
    }
    Ok(())
}

/// K3: once a process continues to the next trigger, a decision that no participant answers is not paid for again.
fn decisions_that_cost_are_kept(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let decisions = &ended.log.decided;
    for (number, manifest) in ended.manifests() {
        // Where states could not be stored, the next process reads again from where they can be found.
        if !manifest.asks || !manifest.is_single_process() || ended.setup.may_fail {
            continue;
        }
        for decision in decisions.iter().filter(|decision| decision.manifest == number) {
            let (Some(at), named) = (decision.window.last().copied(), decision.named.clone()) else {
                continue;
            };
            let later = ended.log.taken.iter().enumerate().skip(decision.taken);
            let next =
                later.into_iter().find(|(_, taken)| taken.life == decision.life && taken.trigger == at + 1);
            // A decision about a guarded turn asks no executor.
            let unanswered = ended.admitted(manifest, at, &named.unwrap_or_default()).is_empty()
                && ended.is_guarded(manifest, at) == Some(false);
            let Some((next, _)) = next.filter(|_| unanswered) else { continue };
            let is_repeated = |again: &&Decision| {
                again.manifest == number && again.window.last() == Some(&at) && again.taken > next
            };
            if let Some(again) = decisions.iter().find(is_repeated) {
                return Err(format!(
                    "life {} has decided that no participant answers t{at}, and life {} decides again",
                    decision.life, again.life
                ));
            }
        }
    }
    Ok(())
}

/// A process does not repeat a call.
fn no_member_is_asked_twice_by_one_process(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let asked = ended.log.asked.iter().filter(|call| !ended.log.dropped.contains(&call.life));
    match asked.into_iter().find(|call| !seen.insert((call.life, call.trigger, &call.participant))) {
        Some(call) => {
            Err(format!("life {} asks {} twice for t{}", call.life, call.participant, call.trigger))
        }
        None => Ok(()),
    }
}

/// K3: when a cursor is recorded, every turn up to it has all of its answers.
fn the_cursor_is_behind_what_is_open(ended: &FinishedConversation<'_>) -> Result<(), String> {
    let mut first: BTreeMap<(usize, &Name), usize> = BTreeMap::new();
    for answer in ended.answers.iter().rev() {
        first.insert((answer.trigger, &answer.by), answer.at);
    }
    for (number, manifest) in ended.manifests() {
        // For each turn the last of the answers to it and to earlier ones.
        let mut last: Vec<Option<usize>> = Vec::with_capacity(ended.turns.len());
        for at in 0..ended.turns.len() {
            let selected = ended.selected(manifest, at).into_iter();
            let answer = selected
                .filter(|participant| ended.answers(at, participant) == Some(true))
                .filter_map(|participant| first.get(&(at, &participant)).copied())
                .max();
            last.push(last.last().copied().flatten().max(answer));
        }
        for cursor in ended.log.cursors.iter().filter(|recorded| recorded.manifest == number) {
            if last[cursor.at].is_some_and(|answer| answer >= cursor.length) {
                return Err(format!("t{} was recorded as settled before all was said up to it", cursor.at));
            }
        }
    }
    Ok(())
}

/// K5: a participant's state is the last update in the conversation.
fn states_are_the_last_update(ended: &FinishedConversation<'_>, world: &World) -> Result<(), String> {
    for (number, manifest) in ended.manifests().filter(|(_, manifest)| manifest.is_single_process()) {
        // Without stamps a new process cannot know what its predecessor did not store.
        let interrupted = world.interrupts.load(Ordering::Relaxed) > 0;
        if ended.setup.keeps == Keeps::Turns && (ended.losses > 0 || interrupted) {
            continue;
        }
        let states = world.states[number].lock().unwrap_or_else(PoisonError::into_inner);
        for id in &manifest.roster {
            let own_answers =
                ended.answers.iter().rev().filter(|answer| answer.manifest == number && answer.by == *id);
            let last = own_answers.filter_map(|answer| answer.count).next();
            let stored = states.get(&**id).and_then(|state| state.get("n")?.as_u64());
            if stored != last {
                return Err(format!("{id} remembers {stored:?}; its last update is {last:?}"));
            }
        }
    }
    Ok(())
}

/// K5: a participant is asked with its latest state: the count in its states goes up one by one.
fn states_are_never_stale(ended: &FinishedConversation<'_>) -> Result<(), String> {
    for (number, manifest) in ended.manifests().filter(|(_, manifest)| manifest.is_single_process()) {
        if ended.setup.keeps == Keeps::Turns {
            continue;
        }
        for id in &manifest.roster {
            let own_answers =
                ended.answers.iter().filter(|answer| answer.manifest == number && answer.by == *id);
            let counts: Vec<u64> = own_answers.filter_map(|answer| answer.count).collect();
            if !counts.iter().copied().eq(1..=counts.len() as u64) {
                return Err(format!("{id} was asked with a stale state: it counts {counts:?}"));
            }
        }
    }
    Ok(())
}

/// K5: the ledger names exactly the turns of its runtime.
fn the_ledger_knows_every_turn(
    ended: &FinishedConversation<'_>,
    records: &[LedgerRecords],
) -> Result<(), String> {
    for ((number, manifest), ledgers) in ended.manifests().zip(records) {
        for ledger in ledgers {
            let turns = ledger.iter().filter(|record| record.is(Kind::Turn));
            let appended = turns.filter_map(|record| record.data.as_ref()?.get("appended")?.as_array());
            let recorded = appended
                .flatten()
                .filter_map(|appended_turn| appended_turn.get("turn").and_then(Json::as_str));
            let recorded: BTreeSet<Option<usize>> = recorded.map(position).collect();
            let own_turns = ended.answers.iter().filter(|answer| answer.manifest == number);
            let own_turns: BTreeSet<Option<usize>> = own_turns.map(|answer| Some(answer.at)).collect();
            if let Some(foreign) = recorded.difference(&own_turns).next() {
                return Err(format!(
                    "the ledger of `{}` names t{foreign:?}, which is not its own",
                    manifest.id
                ));
            }
            let must_know = ended.setup.keeps == Keeps::Stamps || ended.losses == 0;
            if let Some(unknown) =
                own_turns.difference(&recorded).next().filter(|_| must_know && manifest.is_single_process())
            {
                return Err(format!("the ledger of `{}` does not know t{unknown:?}", manifest.id));
            }
        }
    }
    Ok(())
}

/// K2: hooks receive each turn once, unless a process died, was interrupted, or gave up before it called them.
fn hooks_hear_of_every_turn(ended: &FinishedConversation<'_>, world: &World) -> Result<(), String> {
    // Without stamps no process knows of a turn whose append seemed to fail.
    let unknown = ended.setup.keeps == Keeps::Turns && ended.losses > 0;
    // Nor does a process that gives up after such an append, though its successor finds the turn.
    let unsure = world.talk.unacknowledged.load(Ordering::Relaxed) > 0;
    let gave_up = world.failed.load(Ordering::Relaxed) > 0 && unsure;
    let ended_early = world.deaths.load(Ordering::Relaxed) + world.interrupts.load(Ordering::Relaxed) > 0;
    let disturbed = ended_early || unknown || gave_up;
    for (number, _) in ended.manifests().filter(|(_, manifest)| manifest.is_single_process()) {
        let received = ended.log.ended.iter().filter(|(life, _)| ended.log.lives[*life] == number);
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for (_, at) in received {
            *counts.entry(*at).or_default() += 1;
        }
        let own_answers = ended.answers.iter().filter(|answer| answer.manifest == number);
        for answer in own_answers {
            let count = counts.remove(&answer.at).unwrap_or(0);
            if count > 1 || count == 0 && !disturbed {
                return Err(format!("hooks heard of t{} {count} times", answer.at));
            }
        }
        if let Some((at, _)) = counts.into_iter().next() {
            return Err(format!("hooks heard of t{at}, which is not the runtime's"));
        }
    }
    Ok(())
}

/// An answer, according to its text.
pub(super) struct Answer {
    pub(super) at: usize,
    pub(super) trigger: usize,
    pub(super) by: Name,
    /// The process that asked for it, and its manifest.
    pub(super) life: usize,
    pub(super) manifest: usize,
    /// The count in its state from then on.
    pub(super) count: Option<u64>,
    pub(super) stamp: Option<Stamp>,
}

pub(super) struct FinishedConversation<'a> {
    pub(super) setup: &'a Setup,
    pub(super) log: &'a Log,
    pub(super) turns: Vec<Turn>,
    pub(super) answers: Vec<Answer>,
    /// How often a process may not have learned, or recorded, that a turn was appended.
    pub(super) losses: usize,
}

/// Parses the answers of a conversation.
pub(super) fn answers(turns: &[Turn], stamps: Vec<Option<Stamp>>, log: &Log) -> Result<Vec<Answer>, String> {
    let read = |(at, (turn, stamp)): (usize, (&Turn, Option<Stamp>))| {
        let word = |key: &str| turn.content.split(' ').find_map(|word| word.strip_prefix(key));
        let trigger = position(word("re:")?)?;
        let by = Name::from(word("by:")?);
        let life = word("life:")?.parse().ok()?;
        let count = word("n:").and_then(|n| n.parse().ok());
        let manifest = *log.lives.get(life)?;
        (by == turn.participant).then_some(Answer { at, trigger, by, life, manifest, count, stamp })
    };
    let answered = turns.iter().zip(stamps).enumerate();
    let answered = answered.filter(|(_, (turn, stamp))| stamp.is_some() || turn.content.starts_with("re:"));
    answered.map(|turn| read(turn).ok_or("an answer is not what its author said".to_owned())).collect()
}

impl FinishedConversation<'_> {
    pub(super) fn manifests(&self) -> impl Iterator<Item = (usize, &Manifest)> {
        self.setup.manifests.iter().enumerate()
    }

    fn answer(&self, at: usize) -> Option<&Answer> {
        self.answers.iter().find(|answer| answer.at == at)
    }

    fn is_agent_turn(&self, manifest: &Manifest, at: usize) -> bool {
        self.answer(at).is_some() || manifest.roster.contains(&self.turns[at].participant)
    }

    /// The length of the chain that ends with a turn, as a manifest sees it. A turn in a participant's name that answers
    /// nothing counts as an answer to the turn before it.
    fn chain(&self, manifest: &Manifest, at: usize) -> usize {
        match self.answer(at) {
            Some(answer) => 1 + self.chain(&self.setup.manifests[answer.manifest], answer.trigger),
            None if self.is_agent_turn(manifest, at) => {
                1 + at.checked_sub(1).map_or(0, |at| self.chain(manifest, at))
            }
            None => 0,
        }
    }

    /// Whether the guard stops a manifest from answering a turn; `None` where a process may not have learned what an answer
    /// without a stamp answers.
    pub(super) fn is_guarded(&self, manifest: &Manifest, at: usize) -> Option<bool> {
        let (chain, most) = (self.chain(manifest, at), manifest.policy.max_agent_turns);
        let longest = || (0..=at).filter(|at| self.is_agent_turn(manifest, *at)).count();
        let unknown = self.setup.keeps == Keeps::Turns && self.losses > 0 && chain > 0 && longest() >= most;
        (!unknown).then_some(chain >= most)
    }

    /// The first turn of the window that ends with a turn.
    pub(super) fn window(&self, manifest: &Manifest, at: usize) -> usize {
        (at + 1).saturating_sub(manifest.policy.window.max(1))
    }

    /// Those of a dispatcher's selection that are to answer.
    pub(super) fn admitted(&self, manifest: &Manifest, at: usize, selected: &[Name]) -> Vec<Name> {
        let mut admitted: Vec<Name> = Vec::new();
        for name in selected {
            let may = manifest.policy.reentry || *name != self.turns[at].participant;
            if may && manifest.roster.contains(name) && !admitted.contains(name) {
                admitted.push(name.clone());
            }
        }
        admitted
    }

    /// The participants that a manifest must select for a turn, in order; none for a random dispatcher.
    pub(super) fn selected(&self, manifest: &Manifest, at: usize) -> Vec<Name> {
        if manifest.dispatch == Dispatch::Random || self.is_guarded(manifest, at) == Some(true) {
            return Vec::new();
        }
        let window: Vec<(&str, &str)> = self.turns[self.window(manifest, at)..=at]
            .iter()
            .map(|turn| (&*turn.participant, &*turn.content))
            .collect();
        let targets = dispatch_targets(manifest.dispatch, &manifest.roster, &window, &mut Rng::new(0));
        self.admitted(manifest, at, &targets.unwrap_or_default())
    }

    /// Whether a selected participant answers in the end; `None` if it may.
    pub(super) fn answers(&self, at: usize, participant: &Name) -> Option<bool> {
        if self.log.forgotten.contains(&(at, participant.clone())) {
            return None;
        }
        Behavior::of(self.setup.seed, at, participant).answers()
    }

    /// The participants that must answer a turn, and those that may, by all manifests without random dispatchers.
    pub(super) fn expected(&self, at: usize) -> (BTreeSet<Name>, BTreeSet<Name>) {
        let (mut must, mut may) = (BTreeSet::new(), BTreeSet::new());
        for (_, manifest) in self.manifests() {
            for name in self.selected(manifest, at) {
                match (self.is_guarded(manifest, at), self.answers(at, &name)) {
                    (_, Some(false)) => false,
                    (Some(_), Some(true)) => must.insert(name),
                    (None, _) | (_, None) => may.insert(name),
                };
            }
        }
        may.retain(|name| !must.contains(name));
        (must, may)
    }
}
