//! What was read already, in the order in which it was given: a message that somebody edits or moves afterwards is
//! thereby known, and not taken for a new one. Only so much is remembered, and only while the program runs.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quorate_protocol::Name;

use super::order::Direction;

/// How many messages are remembered.
const MAX_REMEMBERED: usize = 4096;

/// How many messages are waited for that were not listed yet: who posts and never reads learns nothing of them.
const MAX_UNLISTED: usize = 64;

/// What was read already.
#[derive(Debug, Default)]
pub(super) struct ReadHistory(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The order in which messages were given, oldest first, without gaps.
    order: Vec<Name>,
    /// Messages that we posted, and for whom.
    posted: VecDeque<(Name, Name)>,
    /// Those of them that the server has acknowledged and not listed yet.
    unlisted: Vec<Unlisted>,
    /// Up to where the last read came.
    frontier: Option<Name>,
    direction: Direction,
}

/// A message that the server has acknowledged and not listed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unlisted {
    pub(super) id: Name,
    /// Up to where the last read came when it was posted.
    pub(super) after: Option<Name>,
}

impl Inner {
    fn position(&self, id: &Name) -> Option<usize> {
        // Most questions are about the newest.
        self.order.iter().rposition(|known| known == id)
    }
}

impl ReadHistory {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// In which direction the server gives its messages, as far as it was seen.
    pub(super) fn direction(&self) -> Direction {
        self.inner().direction
    }

    /// The server gives its messages in this direction.
    pub(super) fn set_direction(&self, direction: Direction) {
        self.inner().direction = direction;
    }

    /// We posted a message for somebody.
    pub(super) fn record_posted(&self, id: &Name, participant: &Name) {
        let mut inner = self.inner();
        if inner.posted.len() >= MAX_REMEMBERED {
            inner.posted.pop_front();
        }
        inner.posted.push_back((id.clone(), participant.clone()));
    }

    /// The server says that it has a message of ours; it was not seen among what it lists.
    pub(super) fn record_acknowledged(&self, id: &Name) {
        let mut inner = self.inner();
        // A reader beside us may have been faster than the acknowledgement.
        if inner.position(id).is_none() {
            let after = inner.frontier.clone();
            if inner.unlisted.len() >= MAX_UNLISTED {
                inner.unlisted.remove(0);
            }
            inner.unlisted.push(Unlisted { id: id.clone(), after });
        }
    }

    /// The server lists these messages.
    pub(super) fn mark_listed<'n>(&self, ids: impl Iterator<Item = &'n str>) {
        let mut inner = self.inner();
        for id in ids {
            if inner.unlisted.is_empty() {
                return;
            }
            inner.unlisted.retain(|one| &*one.id != id);
        }
    }

    /// What is not listed yet and is newer than `since`, as far as we posted it.
    pub(super) fn unlisted(&self, since: Option<&Name>) -> Vec<Unlisted> {
        let inner = self.inner();
        if inner.unlisted.is_empty() {
            return Vec::new();
        }
        let place = |id: &Name| inner.posted.iter().position(|(posted, _)| posted == id);
        let from = since.and_then(place);
        let newer = |one: &&Unlisted| from.is_none_or(|from| place(&one.id).is_some_and(|at| at > from));
        inner.unlisted.iter().filter(newer).cloned().collect()
    }

    /// Those of these that are not listed still.
    pub(super) fn still_unlisted(&self, mut those: Vec<Unlisted>) -> Vec<Unlisted> {
        let inner = self.inner();
        those.retain(|one| inner.unlisted.contains(one));
        those
    }

    /// They are waited for no longer.
    pub(super) fn give_up(&self, those: &[Unlisted]) {
        self.inner().unlisted.retain(|one| !those.contains(one));
    }

    /// For whom we posted a message, if we did.
    pub(super) fn posted_for(&self, id: &str) -> Option<Name> {
        self.inner().posted.iter().find(|(posted, _)| &**posted == id).map(|(_, by)| by.clone())
    }

    /// Whether a message was given already, no later than `since`.
    pub(super) fn precedes(&self, id: &Name, since: &Name) -> bool {
        let inner = self.inner();
        id == since || inner.position(since).zip(inner.position(id)).is_some_and(|(since, id)| id <= since)
    }

    /// Whether a message was given already.
    pub(super) fn contains(&self, id: &Name) -> bool {
        self.inner().position(id).is_some()
    }

    /// Whether everything that was given before `since` is out of sight, so that `since` is probably as well.
    pub(super) fn is_out_of_sight(&self, since: &Name, seen: impl Fn(&Name) -> bool) -> bool {
        let inner = self.inner();
        let before = inner.position(since).map_or(&[][..], |place| &inner.order[..place]);
        !before.is_empty() && !before.iter().any(seen)
    }

    /// These messages were given as those newer than `since`.
    pub(super) fn record_delivered(&self, since: Option<&Name>, ids: &[Name]) {
        let mut inner = self.inner();
        let mut at = match since {
            None => 0,
            Some(since) => match inner.position(since) {
                Some(place) => place + 1,
                None => {
                    inner.order = vec![since.clone()];
                    1
                }
            },
        };
        for id in ids {
            match inner.position(id) {
                Some(place) => at = at.max(place + 1),
                None => {
                    inner.order.insert(at, id.clone());
                    at += 1;
                }
            }
        }
        let excess = inner.order.len().saturating_sub(MAX_REMEMBERED);
        inner.order.drain(..excess);
        inner.frontier = ids.last().or(since).cloned();
    }

    /// The conversation is another one now.
    pub(super) fn clear_order(&self) {
        let mut inner = self.inner();
        inner.order.clear();
        inner.frontier = None;
    }

    /// Up to where the last read came.
    pub(super) fn frontier(&self) -> Option<Name> {
        self.inner().frontier.clone()
    }
}

#[cfg(test)]
mod tests {
    use quorate_protocol::Name;

    use super::ReadHistory;

    fn names(ids: &[&str]) -> Vec<Name> {
        ids.iter().map(|id| Name::from(*id)).collect()
    }

    fn precedes(memory: &ReadHistory, id: &str, since: &str) -> bool {
        memory.precedes(&id.into(), &since.into())
    }

    #[test]
    fn what_was_given_before_is_known_by_its_place() {
        let memory = ReadHistory::default();
        memory.record_delivered(None, &names(&["a", "b", "c"]));
        memory.record_delivered(Some(&"c".into()), &names(&["d"]));
        assert!(precedes(&memory, "a", "d") && precedes(&memory, "d", "d"));
        assert!(!precedes(&memory, "d", "a") && !precedes(&memory, "e", "d"));
        assert_eq!(memory.frontier().as_deref(), Some("d"));
    }

    #[test]
    fn reading_again_from_the_start_moves_nothing() {
        let memory = ReadHistory::default();
        memory.record_delivered(None, &names(&["a", "b", "c", "d"]));
        memory.record_delivered(None, &names(&["a", "b"]));
        assert!(!precedes(&memory, "c", "b") && precedes(&memory, "a", "b"));
        memory.record_delivered(Some(&"elsewhere".into()), &names(&["x"]));
        assert!(!memory.contains(&"a".into()) && precedes(&memory, "elsewhere", "x"));
    }

    #[test]
    fn a_window_that_slid_on_is_noticed() {
        let memory = ReadHistory::default();
        memory.record_delivered(None, &names(&["a", "b", "c"]));
        assert!(memory.is_out_of_sight(&"c".into(), |id| &**id == "z"));
        assert!(!memory.is_out_of_sight(&"c".into(), |id| &**id == "a"));
        assert!(!memory.is_out_of_sight(&"a".into(), |_| false));
    }
}
