//! The messages that were read, in the order of their delivery: a message that is edited or moved later is recognized
//! and not taken for a new one. The history is bounded, and lasts as long as the process.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quorate_protocol::Name;

/// How many messages are remembered.
const MAX_REMEMBERED: usize = 4096;

/// How many unlisted messages are remembered; a participant that posts and never reads does not learn of their listing.
const MAX_UNLISTED: usize = 64;

#[derive(Debug, Default)]
pub(super) struct ReadHistory(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The order of delivery, oldest first, without gaps.
    order: Vec<Name>,
    /// Messages that this process posted, each with its participant.
    posted: VecDeque<(Name, Name)>,
    /// Posted messages that the server has acknowledged and not listed yet.
    unlisted: Vec<Unlisted>,
    /// The last message that was read.
    frontier: Option<Name>,
}

/// A message that the server has acknowledged and not listed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unlisted {
    pub(super) id: Name,
    /// The last message that was read when it was posted.
    pub(super) after: Option<Name>,
}

impl Inner {
    fn position(&self, id: &Name) -> Option<usize> {
        // Most lookups are for the newest.
        self.order.iter().rposition(|known| known == id)
    }
}

impl ReadHistory {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a message that this process posted for a participant.
    pub(super) fn record_posted(&self, id: &Name, participant: &Name) {
        let mut inner = self.inner();
        if inner.posted.len() >= MAX_REMEMBERED {
            inner.posted.pop_front();
        }
        inner.posted.push_back((id.clone(), participant.clone()));
    }

    /// Records that the server acknowledged a message that it has not listed.
    pub(super) fn record_acknowledged(&self, id: &Name) {
        let mut inner = self.inner();
        // A concurrent reader may have listed it before the acknowledgement.
        if inner.position(id).is_none() {
            let after = inner.frontier.clone();
            if inner.unlisted.len() >= MAX_UNLISTED {
                inner.unlisted.remove(0);
            }
            inner.unlisted.push(Unlisted { id: id.clone(), after });
        }
    }

    /// Records that the server lists these messages.
    pub(super) fn mark_listed<'n>(&self, ids: impl Iterator<Item = &'n str>) {
        let mut inner = self.inner();
        for id in ids {
            if inner.unlisted.is_empty() {
                return;
            }
            inner.unlisted.retain(|unlisted| &*unlisted.id != id);
        }
    }

    /// The posted messages newer than `since` that the server has not listed.
    pub(super) fn unlisted(&self, since: Option<&Name>) -> Vec<Unlisted> {
        let inner = self.inner();
        if inner.unlisted.is_empty() {
            return Vec::new();
        }
        let place = |id: &Name| inner.posted.iter().position(|(posted, _)| posted == id);
        let start = since.and_then(place);
        let newer =
            |unlisted: &&Unlisted| start.is_none_or(|start| place(&unlisted.id).is_some_and(|at| at > start));
        inner.unlisted.iter().filter(newer).cloned().collect()
    }

    /// Those of `those` that are still not listed.
    pub(super) fn still_unlisted(&self, mut messages: Vec<Unlisted>) -> Vec<Unlisted> {
        let inner = self.inner();
        messages.retain(|message| inner.unlisted.contains(message));
        messages
    }

    /// Stops waiting for their listing.
    pub(super) fn give_up(&self, messages: &[Unlisted]) {
        self.inner().unlisted.retain(|unlisted| !messages.contains(unlisted));
    }

    /// The participant that this process posted a message for.
    pub(super) fn posted_for(&self, id: &str) -> Option<Name> {
        self.inner()
            .posted
            .iter()
            .find(|(posted, _)| &**posted == id)
            .map(|(_, participant)| participant.clone())
    }

    /// Whether a message was delivered no later than `since`.
    pub(super) fn precedes(&self, id: &Name, since: &Name) -> bool {
        let inner = self.inner();
        id == since || inner.position(since).zip(inner.position(id)).is_some_and(|(since, id)| id <= since)
    }

    /// Whether a message was delivered.
    pub(super) fn contains(&self, id: &Name) -> bool {
        self.inner().position(id).is_some()
    }

    /// Whether every message delivered before `since` is missing from a page, so that `since` probably is, too.
    pub(super) fn is_out_of_sight(&self, since: &Name, seen: impl Fn(&Name) -> bool) -> bool {
        let inner = self.inner();
        let before = inner.position(since).map_or(&[][..], |place| &inner.order[..place]);
        !before.is_empty() && !before.iter().any(seen)
    }

    /// Records the delivery of the messages newer than `since`.
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

    /// Forgets the order, since the conversation was replaced.
    pub(super) fn clear_order(&self) {
        let mut inner = self.inner();
        inner.order.clear();
        inner.frontier = None;
    }

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
