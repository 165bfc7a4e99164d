//! What has to come of a conversation, worked out from its turns alone: who had to be selected for each of them, and who
//! had to answer.

use std::collections::BTreeSet;

use quorate_kernel::conversation::{Stamp, Turn};
use quorate_protocol::Name;

use super::conversation::position;
use super::log::Log;
use super::participants::{Behavior, dispatch_targets};
use super::setup::{Dispatch, Manifest, Setup};
use crate::rng::Rng;

/// An answer, as its text has it.
pub(super) struct Answer {
    pub(super) at: usize,
    pub(super) trigger: usize,
    pub(super) by: Name,
    /// The life of the process that asked for it, and its manifest.
    pub(super) life: usize,
    pub(super) manifest: usize,
    /// What its state counts from then on.
    pub(super) count: Option<u64>,
    /// What it came with.
    pub(super) stamp: Option<Stamp>,
}

/// A conversation that is over.
pub(super) struct FinishedConversation<'a> {
    pub(super) setup: &'a Setup,
    pub(super) log: &'a Log,
    pub(super) turns: Vec<Turn>,
    pub(super) answers: Vec<Answer>,
    /// How often a process may not have learnt that a turn was appended, or recorded that it was.
    pub(super) losses: usize,
}

/// Reads the answers of a conversation.
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
    answered.map(|one| read(one).ok_or("an answer is not what its author said".to_owned())).collect()
}

impl FinishedConversation<'_> {
    pub(super) fn manifests(&self) -> impl Iterator<Item = (usize, &Manifest)> {
        self.setup.manifests.iter().enumerate()
    }

    /// How many turns of participants in a row end with this one, as a manifest sees it.
    pub(super) fn agent_turns_in_a_row(&self, manifest: &Manifest, at: usize) -> usize {
        let is_agents = |turn: &&Turn| turn.stamp.is_some() || manifest.roster.contains(&turn.participant);
        self.turns[..=at].iter().rev().take_while(is_agents).count()
    }

    /// Whether the guard keeps a manifest from answering a turn.
    pub(super) fn is_guarded(&self, manifest: &Manifest, at: usize) -> bool {
        self.agent_turns_in_a_row(manifest, at) >= manifest.policy.max_agent_turns
    }

    /// Where the window that ends with a turn begins.
    pub(super) fn window(&self, manifest: &Manifest, at: usize) -> usize {
        (at + 1).saturating_sub(manifest.policy.window.max(1))
    }

    /// Of whom a dispatcher names, who is to answer.
    pub(super) fn admitted(&self, manifest: &Manifest, at: usize, named: &[Name]) -> Vec<Name> {
        let mut admitted: Vec<Name> = Vec::new();
        for one in named {
            let may = manifest.policy.reentry || *one != self.turns[at].participant;
            if may && manifest.roster.contains(one) && !admitted.contains(one) {
                admitted.push(one.clone());
            }
        }
        admitted
    }

    /// Whom a manifest has to select for a turn, in order; none for one whose dispatcher follows chance.
    pub(super) fn selected(&self, manifest: &Manifest, at: usize) -> Vec<Name> {
        if manifest.dispatch == Dispatch::Random || self.is_guarded(manifest, at) {
            return Vec::new();
        }
        let window: Vec<(&str, &str)> = self.turns[self.window(manifest, at)..=at]
            .iter()
            .map(|turn| (&*turn.participant, &*turn.content))
            .collect();
        let named = dispatch_targets(manifest.dispatch, &manifest.roster, &window, &mut Rng::new(0));
        self.admitted(manifest, at, &named.unwrap_or_default())
    }

    /// Whether somebody who is selected answers in the end; `None` where it may.
    pub(super) fn answers(&self, at: usize, participant: &Name) -> Option<bool> {
        if self.log.forgotten.contains(&(at, participant.clone())) {
            return None;
        }
        Behavior::of(self.setup.seed, at, participant).answers()
    }

    /// Who has to answer a turn, and who may, by all manifests whose dispatchers do not follow chance.
    pub(super) fn expected(&self, at: usize) -> (BTreeSet<Name>, BTreeSet<Name>) {
        let (mut must, mut may) = (BTreeSet::new(), BTreeSet::new());
        for (_, manifest) in self.manifests() {
            for one in self.selected(manifest, at) {
                match self.answers(at, &one) {
                    Some(true) => must.insert(one),
                    Some(false) => false,
                    None => may.insert(one),
                };
            }
        }
        may.retain(|one| !must.contains(one));
        (must, may)
    }
}
