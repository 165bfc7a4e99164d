//! The length of the chain of triggers that leads from a person's turn to a turn (K11, K12): 0 for a person's turn, and for
//! an answer one more than for the turn that it answers.
//!
//! An answer's stamp has the length. A participant's turn without one, for example from another program, counts as an answer
//! to the turn before it, so that two programs whose participants call each other still reach the guard.

use std::collections::HashMap;

use quorate_protocol::Name;

use super::is_agent_turn;
use crate::conversation::{Participant, Turn};
use crate::ports::ledger::Record;
use crate::record;

/// The lengths of chains, in the order of the conversation.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// The length at the turn that was settled last.
    last: usize,
    /// The lengths of answers that the substrate keeps without stamps, until they are settled.
    unstamped: HashMap<Name, usize>,
}

impl Chains {
    /// The length at the turn after the settled ones.
    pub(super) fn length(&self, roster: &[Participant], turn: &Turn) -> usize {
        if !is_agent_turn(roster, turn) {
            return 0;
        }
        let stamped = turn.stamp.as_ref().map(|stamp| stamp.chain).filter(|chain| *chain > 0);
        stamped.or_else(|| self.unstamped.get(&turn.id).copied()).unwrap_or(self.last + 1)
    }

    pub(super) fn settle(&mut self, roster: &[Participant], turn: &Turn) {
        self.last = self.length(roster, turn);
        self.unstamped.remove(&turn.id);
    }

    /// Keeps the length at an answer without a stamp.
    pub(super) fn keep(&mut self, answer: Name, length: usize) {
        self.unstamped.insert(answer, length);
    }

    /// Reads the lengths from the records of answers. A chain that began before the first record is shorter here.
    pub(super) fn of_records(roster: &[Participant], records: &[Record]) -> Chains {
        let mut chains = Chains::default();
        for record in records {
            let Ok(Some(record::Turn { trigger: Some(trigger), by, appended: Some(appended), .. })) =
                record.read()
            else {
                continue;
            };
            let is_persons = by.is_some_and(|by| !roster.iter().any(|one| one.id == by));
            let before = if is_persons { 0 } else { chains.unstamped.get(&trigger).copied().unwrap_or(0) };
            for answer in appended {
                chains.keep(answer.turn, before + 1);
            }
        }
        chains
    }
}
