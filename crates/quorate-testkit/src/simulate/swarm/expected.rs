//! The expected result of a conversation, derived from its turns alone: the participants that had to be selected for each
//! turn, and those that had to answer.

use std::collections::BTreeSet;

use quorate_kernel::conversation::{Stamp, Turn};
use quorate_protocol::Name;

use super::conversation::position;
use super::log::Log;
use super::participants::{Behavior, dispatch_targets};
use super::setup::{Dispatch, Manifest, Setup};
use crate::rng::Rng;

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

    /// The number of consecutive turns of participants that end with this one, as a manifest sees it.
    pub(super) fn agent_turns_in_a_row(&self, manifest: &Manifest, at: usize) -> usize {
        let is_agents = |turn: &&Turn| turn.stamp.is_some() || manifest.roster.contains(&turn.participant);
        self.turns[..=at].iter().rev().take_while(is_agents).count()
    }

    /// Whether the guard stops a manifest from answering a turn.
    pub(super) fn is_guarded(&self, manifest: &Manifest, at: usize) -> bool {
        self.agent_turns_in_a_row(manifest, at) >= manifest.policy.max_agent_turns
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
        if manifest.dispatch == Dispatch::Random || self.is_guarded(manifest, at) {
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
                match self.answers(at, &name) {
                    Some(true) => must.insert(name),
                    Some(false) => false,
                    None => may.insert(name),
                };
            }
        }
        may.retain(|name| !must.contains(name));
        (must, may)
    }
}
