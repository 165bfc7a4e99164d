//! Compares a conversation with what the ledger recorded of it, so that a turn that was changed, removed, inserted or moved
//! after it was settled is found (D15).
//!
//! Each record of a settled turn lists the turns that were settled since the record before, in order, with a hash of each.
//! A substrate whose turns authors may edit ([`IdProof::Unsupported`]) lists the participants' turns alone, and only their
//! contents are compared.

use std::collections::{BTreeMap, BTreeSet};

use quorate_protocol::Name;
use serde_json::json;

use crate::canonical;
use crate::conversation::{Turn, turn_key};
use crate::entropy::sha256_hex;
use crate::ports::ledger::Record;
use crate::ports::substrate::IdProof;
use crate::record;

/// A turn that is not what the ledger has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alteration {
    pub turn: Name,
    /// The difference, as a sentence with the turn as its subject.
    pub what: String,
}

impl Alteration {
    fn new(turn: &Name, predicate: &str) -> Self {
        Alteration { turn: turn.clone(), what: format!("turn {turn} {predicate}") }
    }

    pub(super) fn unknown(turn: &Name, author: &Name) -> Self {
        Alteration::new(turn, &format!("is in the name of {author}, and the ledger has no such answer"))
    }

    pub(super) fn missing(turn: &Name) -> Self {
        Alteration::new(turn, "is in the ledger and not in the conversation any more")
    }
}

/// Which part of a conversation is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All turns.
    Whole,
    /// Some turns up to the last settled one.
    Window,
}

/// What the ledger recorded of a conversation.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// The settled turns without a gap, up to the last one.
    settled: Vec<record::SettledTurn>,
    /// The number of the first of them in the conversation, counted from 1.
    first: Option<u64>,
    /// The number of the last settled turn.
    last: Option<u64>,
    /// The hash of each settled turn, also of those before a gap.
    hashes: BTreeMap<Name, String>,
    /// Answers and the turns that they answer.
    answers: Vec<(Name, record::AppendedTurn)>,
    /// The participants of all answers.
    authors: BTreeMap<Name, Name>,
    /// The last turn at the time when a person accepted an altered conversation, and its number.
    accepted: Option<(Name, u64)>,
}

impl Evidence {
    pub fn from_records<'r>(records: impl IntoIterator<Item = &'r Record>) -> Self {
        let mut evidence = Evidence::default();
        let turns = records.into_iter().filter_map(|record| record.read::<record::Turn>().ok().flatten());
        turns.for_each(|turn| evidence.add(turn));
        evidence
    }

    fn add(&mut self, turn: record::Turn) {
        if turn.differs.is_some() {
            self.clear();
            self.accepted = turn.cursor.clone().zip(turn.position);
            self.last = turn.position;
        }
        let trigger = turn.trigger.unwrap_or_default();
        self.expect(&trigger, turn.appended.into_iter().flatten());
        let Some(settled) = turn.settled.filter(|_| turn.cursor.is_some()) else { return };
        self.hashes.extend(settled.iter().map(|turn| (turn.turn.clone(), turn.sha256.clone())));
        let before = turn.position.and_then(|last| last.checked_sub(settled.len() as u64));
        if before.is_none() || before != self.last || self.settled.is_empty() {
            self.settled.clear();
            self.first = before.map(|before| before + 1);
        }
        self.settled.extend(settled);
        self.last = turn.position;
    }

    /// Adds answers to a turn.
    pub fn expect(&mut self, trigger: &Name, answers: impl IntoIterator<Item = record::AppendedTurn>) {
        for answer in answers {
            self.authors.insert(answer.turn.clone(), answer.participant.clone());
            if self.answers.iter().all(|(_, known)| known.turn != answer.turn) {
                self.answers.push((trigger.clone(), answer));
            }
        }
    }

    /// Forgets everything but the authors of answers: the conversation was taken up anew.
    pub(super) fn clear(&mut self) {
        *self = Evidence { authors: std::mem::take(&mut self.authors), ..Evidence::default() };
    }

    /// A turn is settled, and its hash is recorded: its answer need not be remembered.
    pub(super) fn settle(&mut self, turn: &Name) {
        self.answers.retain(|(_, answer)| answer.turn != *turn);
    }

    /// The answers that no record names as settled.
    pub(super) fn unsettled_answers(&self) -> impl Iterator<Item = &Name> {
        let answers = self.answers.iter().map(|(_, answer)| &answer.turn);
        answers.filter(|turn| !self.hashes.contains_key(*turn))
    }

    /// Whether the ledger would know a turn with this number, if a participant had given it.
    pub(super) fn lacks(&self, number: u64, turn: &Name) -> bool {
        self.first.is_some_and(|first| first <= number)
            && !self.hashes.contains_key(turn)
            && !self.authors.contains_key(turn)
    }

    /// How many settled turns are known without a gap.
    pub fn len(&self) -> usize {
        self.settled.len()
    }

    /// Whether no settled turn is known.
    pub fn is_empty(&self) -> bool {
        self.settled.is_empty()
    }

    /// The number of the last settled turn in the conversation.
    pub(super) fn position(&self) -> Option<u64> {
        self.last
    }

    /// Names the participants of answers. A server that keeps no metadata names the operator that posted them, and several
    /// participants may share one (K17).
    pub fn name_authors(&self, turns: &mut [Turn]) {
        for turn in turns.iter_mut().filter(|turn| turn.stamp.is_none()) {
            if let Some(author) = self.authors.get(&turn.id).filter(|author| !author.is_empty()) {
                turn.participant = author.clone();
            }
        }
    }

    /// Removes the turns that existed when a person accepted an altered conversation: no participant sees them again.
    pub fn remove_accepted(&self, turns: &mut Vec<Turn>) {
        if let Some((last, _)) = &self.accepted
            && let Some(at) = turns.iter().rposition(|turn| turn.id == *last)
        {
            turns.drain(..=at);
        }
    }

    /// What is wrong with turns by themselves, each compared with its id, its hash and its answer in the ledger.
    pub fn compare_each(
        &self,
        runtime: &str,
        turns: &[Turn],
        proof: impl Fn(&Turn) -> IdProof,
    ) -> Vec<Alteration> {
        let altered = |turn: &Turn| {
            let proof = proof(turn);
            let predicate = if proof == IdProof::Broken {
                "does not have the author, time and content that its id stands for"
            } else if self.hashes.get(&turn.id).is_some_and(|known| *known != turn_hash(turn, proof)) {
                "is not the turn that the ledger recorded under this id"
            } else if proof != IdProof::Unsupported && self.is_foreign_answer(runtime, turn) {
                "stands in the place of another answer that the ledger recorded"
            } else {
                return None;
            };
            Some(Alteration::new(&turn.id, predicate))
        };
        turns.iter().filter_map(altered).collect()
    }

    /// Whether the ledger has another answer of this participant to the same turn.
    fn is_foreign_answer(&self, runtime: &str, turn: &Turn) -> bool {
        if self.authors.get(&turn.id).is_some_and(|author| *author != turn.participant) {
            return true;
        }
        let Some(stamp) = turn.stamp.as_ref().filter(|stamp| &*stamp.runtime == runtime) else {
            return false;
        };
        let mut recorded = self.answers.iter().filter(|(trigger, answer)| {
            *trigger == stamp.trigger && turn_key(trigger, &answer.participant) == stamp.key
        });
        let key_fits = stamp.key == turn_key(&stamp.trigger, &turn.participant);
        !key_fits || recorded.clone().next().is_some() && recorded.all(|(_, answer)| answer.turn != turn.id)
    }

    /// What is wrong with turns, also with their order and number.
    pub fn compare(
        &self,
        runtime: &str,
        turns: &[Turn],
        proof: impl Fn(&Turn) -> IdProof,
        scope: Scope,
    ) -> Vec<Alteration> {
        let accepted =
            self.accepted.as_ref().filter(|_| scope == Scope::Whole).map_or(0, |(_, number)| *number);
        let turns = &turns[usize::try_from(accepted).map_or(turns.len(), |skip| skip.min(turns.len()))..];
        let mut found = self.compare_each(runtime, turns, &proof);
        if turns.iter().all(|turn| proof(turn) == IdProof::Unsupported) && !turns.is_empty() {
            return found;
        }
        let is_there: BTreeSet<&Name> = turns.iter().map(|turn| &turn.id).collect();
        let newest = self.settled.iter().rev().find(|settled| is_there.contains(&settled.turn));
        let end = newest.and_then(|newest| turns.iter().rposition(|turn| turn.id == newest.turn));
        let settled = &turns[..end.map_or(0, |at| at + 1)];
        let (expected, settled) = match (scope, self.first) {
            (Scope::Whole, Some(first)) => {
                let skip = usize::try_from(first - 1 - accepted.min(first - 1)).unwrap_or(usize::MAX);
                (&self.settled[..], &settled[skip.min(settled.len())..])
            }
            // Turns that are older than the evidence are not compared; there are only so many of them.
            _ => {
                let older =
                    self.first.map_or(usize::MAX, |first| usize::try_from(first - 1).unwrap_or(usize::MAX));
                let known = self.settled.len();
                let is_too_long = settled.len() > known.saturating_add(older);
                let count = if is_too_long { settled.len() } else { known.min(settled.len()) };
                (&self.settled[known.saturating_sub(count)..], &settled[settled.len() - count..])
            }
        };
        let known: BTreeSet<&Name> = self.settled.iter().map(|settled| &settled.turn).collect();
        let inserted = settled.iter().filter(|turn| !known.contains(&turn.id));
        found.extend(inserted.map(|turn| {
            Alteration::new(&turn.id, "stands before settled turns, and the ledger does not have it there")
        }));
        let kept = expected.iter().map(|settled| &settled.turn).filter(|id| is_there.contains(id));
        let shown = settled.iter().map(|turn| &turn.id).filter(|id| known.contains(id));
        let moved = kept.zip(shown).find(|(recorded, shown)| recorded != shown);
        let missing = expected.iter().map(|settled| &settled.turn);
        let answers = self.answers.iter().map(|(_, answer)| &answer.turn);
        let answers = answers.filter(|id| scope == Scope::Whole && !known.contains(id));
        let missing: Vec<&Name> = missing.chain(answers).filter(|id| !is_there.contains(id)).collect();
        // An inserted turn pushes others out of a window; they are neither moved nor missing.
        if found.is_empty() || scope == Scope::Whole {
            let is_order = moved.filter(|_| found.is_empty() && missing.is_empty());
            found.extend(
                is_order
                    .map(|(_, shown)| Alteration::new(shown, "is not in the place in which it was settled")),
            );
            found.extend(missing.into_iter().map(Alteration::missing));
        }
        found
    }
}

/// The hash of a turn: of all that a substrate keeps of it, or of its content alone where authors may edit their turns.
pub(super) fn turn_hash(turn: &Turn, proof: IdProof) -> String {
    if proof == IdProof::Unsupported {
        return sha256_hex(turn.content.as_bytes());
    }
    let stamp = turn.stamp.as_ref().and_then(|stamp| serde_json::to_value(stamp).ok());
    // Half a character at the end of a turn that was cut off is read in one way or the other.
    let content = turn.content.trim_end_matches('\u{fffd}');
    let all = json!([&*turn.participant, &*turn.timestamp, content, turn.meta, stamp]);
    sha256_hex(canonical::text(&canonical::normalize(all)).unwrap_or_default().as_bytes())
}

/// The record of a settled turn.
pub(super) fn settled_turn(turn: &Turn, proof: IdProof) -> record::SettledTurn {
    record::SettledTurn { turn: turn.id.clone(), sha256: turn_hash(turn, proof) }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn turn(id: &str) -> Turn {
        Turn {
            id: id.into(),
            participant: "ada".into(),
            timestamp: "2026-05-18T18:23:11.504Z".into(),
            content: format!("this is {id}").into(),
            meta: Map::new(),
            stamp: None,
        }
    }

    fn turns(ids: &str) -> Vec<Turn> {
        ids.chars().map(|id| turn(&id.to_string())).collect()
    }

    /// Records of settled turns, one for each word, from a number on.
    fn recorded(words: &str, first: u64) -> Evidence {
        let (mut evidence, mut position) = (Evidence::default(), first - 1);
        for word in words.split(' ') {
            let settled: Vec<_> =
                turns(word).iter().map(|turn| settled_turn(turn, IdProof::Absent)).collect();
            position += settled.len() as u64;
            evidence.add(record::Turn {
                cursor: settled.last().map(|settled| settled.turn.clone()),
                settled: Some(settled),
                position: Some(position),
                ..record::Turn::default()
            });
        }
        evidence
    }

    fn compare(evidence: &Evidence, turns: &[Turn], scope: Scope) -> Vec<String> {
        let found = evidence.compare("talk", turns, |_| IdProof::Absent, scope);
        found.into_iter().map(|altered| altered.turn.to_string()).collect()
    }

    #[test]
    fn a_whole_conversation_is_what_was_settled() {
        // A settled turn that was changed, removed, inserted or moved is found (D15).
        let evidence = recorded("ab c de", 1);
        for (ids, found) in [
            ("abcde", &[] as &[&str]),
            ("abcdefg", &[]),
            ("abxcde", &["x"]),
            ("xabcde", &["x"]),
            ("abcdxe", &["x"]),
            ("abcdex", &[]),
            ("abde", &["c"]),
            ("bcde", &["a"]),
            ("abcd", &["e"]),
            ("acbde", &["c"]),
            ("", &["a", "b", "c", "d", "e"]),
        ] {
            assert_eq!(compare(&evidence, &turns(ids), Scope::Whole), found, "{ids}");
        }
        let mut changed = turns("abcde");
        changed[1].meta.insert("sure".to_owned(), true.into());
        assert_eq!(compare(&evidence, &changed, Scope::Whole), ["b"]);
    }

    #[test]
    fn a_window_is_compared_as_far_as_the_evidence_reaches() {
        // A window shows what it contains: turns before it are not missing (D15).
        for first in [1, 7] {
            let evidence = recorded("ab c de", first);
            for (ids, found) in
                [("abcde", &[] as &[&str]), ("cde", &[]), ("cdxe", &["x"]), ("bce", &["d"]), ("dce", &["d"])]
            {
                assert_eq!(compare(&evidence, &turns(ids), Scope::Window), found, "{first}: {ids}");
            }
            let older = compare(&evidence, &turns("yzabcde"), Scope::Window);
            assert_eq!(older, if first == 1 { &["y", "z"][..] } else { &[] }, "{first}");
        }
    }

    #[test]
    fn records_with_a_gap_before_them_stand_alone() {
        let mut evidence = recorded("ab", 1);
        for (ids, position) in [("e", 5), ("f", 6)] {
            evidence.add(record::Turn {
                cursor: Some(ids.into()),
                settled: Some(turns(ids).iter().map(|turn| settled_turn(turn, IdProof::Absent)).collect()),
                position: Some(position),
                ..record::Turn::default()
            });
        }
        assert_eq!(compare(&evidence, &turns("abcdef"), Scope::Whole), [""; 0]);
        assert_eq!(compare(&evidence, &turns("abcdxef"), Scope::Whole), ["x"]);
    }
}
