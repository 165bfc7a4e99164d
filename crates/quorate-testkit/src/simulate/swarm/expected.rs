//! The expected result of a conversation, derived from its turns alone: the participants that had to be selected for each
//! turn, and those that had to answer.

use std::collections::BTreeSet;

use quorate_kernel::conversation::{Stamp, Turn};
use quorate_kernel::ports::substrate::Keeps;
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
