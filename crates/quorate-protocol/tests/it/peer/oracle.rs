//! The oracle: a talk of equals, round by round and member by member (P1 to P3). It knows nothing of the protocol.

use std::collections::BTreeMap;

/// Words that no message may contain, by letters, or by meaning if meanings are compared.
pub(crate) const LOCKED: &str = "warmth";
pub(crate) const NEAR: &str = "chilly";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum To {
    All,
    /// Indices; one past the roster names no member.
    Some(Vec<usize>),
}

#[derive(Debug, Clone)]
pub(crate) struct Says {
    pub(crate) text: String,
    pub(crate) to: To,
    pub(crate) objection: bool,
    pub(crate) pass: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Topology {
    Unwritten,
    Full,
    Ring,
    Star(usize),
    Peers(BTreeMap<usize, Vec<usize>>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Termination {
    Unwritten,
    NoNewObjections,
    AllPass,
    /// A custom rule, and what it says after each round: to end, or not, or that it failed.
    Host(Vec<Option<bool>>),
}

#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) members: usize,
    pub(crate) topology: Topology,
    pub(crate) until: Termination,
    /// The manifest's `maxRounds`, and what was asked for in its place.
    pub(crate) written: Option<usize>,
    pub(crate) asked: Option<usize>,
    /// By round, then by index; `None` means no answer. Further rounds are silent passes.
    pub(crate) says: Vec<Vec<Option<Says>>>,
    /// Whose messages an `aggregate` rule collects; `None` is everybody's.
    pub(crate) collected: Option<Vec<usize>>,
    /// Whether meaning is compared.
    pub(crate) embeds: bool,
}

/// A message that was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) round: usize,
    pub(crate) from: usize,
    pub(crate) to: To,
    pub(crate) text: String,
}

/// The result of a talk.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) said: Vec<Delivered>,
    pub(crate) rounds: usize,
    pub(crate) ended_by: &'static str,
    /// Messages that were refused: out of reach, or locked.
    pub(crate) out_of_reach: usize,
    pub(crate) locked: usize,
    pub(crate) missing: Vec<usize>,
}

impl Scenario {
    /// A member's behavior in a round.
    pub(crate) fn says(&self, round: usize, index: usize) -> Option<Says> {
        let silent = || Some(Says { text: String::new(), to: To::All, objection: false, pass: true });
        self.says.get(round - 1).map_or_else(silent, |indices| indices[index].clone())
    }

    /// P2: whether one reaches another.
    pub(crate) fn reaches(&self, from: usize, to: usize) -> bool {
        if from == to || from >= self.members || to >= self.members {
            return false;
        }
        match &self.topology {
            Topology::Unwritten | Topology::Full => true,
            Topology::Ring => {
                let next = |index: usize| if index + 1 == self.members { 0 } else { index + 1 };
                next(from) == to || next(to) == from
            }
            Topology::Star(hub) => from == *hub || to == *hub,
            Topology::Peers(peers) => peers.get(&from).is_some_and(|all| all.contains(&to)),
        }
    }

    /// P2: whether a member has heard or said a message.
    pub(crate) fn hears(&self, index: usize, said: &Delivered) -> bool {
        let delivered = match &said.to {
            To::All => self.reaches(said.from, index),
            To::Some(members) => members.contains(&index),
        };
        delivered || said.from == index
    }

    fn is_locked(&self, text: &str) -> bool {
        text.contains(LOCKED) || (self.embeds && text.contains(NEAR))
    }

    /// P1: how many rounds there are at most.
    pub(crate) fn most(&self) -> usize {
        let unwritten = if self.until == Termination::Unwritten { 1 } else { 10 };
        self.asked.or(self.written).unwrap_or(unwritten)
    }

    /// The whole talk. `each_round` is shown what was said before each round.
    pub(crate) fn run(&self, mut each_round: impl FnMut(usize, &[Delivered])) -> Log {
        let mut log = Log {
            said: Vec::new(),
            rounds: 0,
            ended_by: "",
            out_of_reach: 0,
            locked: 0,
            missing: Vec::new(),
        };
        for round in 1.. {
            each_round(round, &log.said);
            log.rounds = round;
            let says: Vec<Option<Says>> = (0..self.members).map(|index| self.says(round, index)).collect();
            for (from, says) in says.iter().enumerate() {
                match says {
                    None => log.missing.push(from),
                    Some(says) if says.text.is_empty() => {}
                    Some(says) => self.deliver(&mut log, round, from, says),
                }
            }
            if let Some(ended_by) = self.ended(round, &says) {
                log.ended_by = ended_by;
                break;
            }
        }
        log.missing.sort_unstable();
        log.missing.dedup();
        log
    }

    fn deliver(&self, log: &mut Log, round: usize, from: usize, says: &Says) {
        let reached = match &says.to {
            To::All => true,
            To::Some(members) => members.iter().all(|to| self.reaches(from, *to)),
        };
        if !reached {
            log.out_of_reach += 1;
        } else if self.is_locked(&says.text) {
            log.locked += 1;
        } else {
            log.said.push(Delivered { round, from, to: says.to.clone(), text: says.text.clone() });
        }
    }

    /// P1: what ends the talk after a round. A member without output has agreed to nothing.
    fn ended(&self, round: usize, says: &[Option<Says>]) -> Option<&'static str> {
        let all = |holds: fn(&Says) -> bool| says.iter().all(|one| one.as_ref().is_some_and(holds));
        if says.iter().all(Option::is_none) {
            return Some("no_answer");
        }
        let by_rule = match &self.until {
            Termination::NoNewObjections if all(|one| !one.objection) => Some("no-new-objections"),
            Termination::AllPass if all(|one| one.pass) => Some("all-pass"),
            _ => None,
        };
        if by_rule.is_some() {
            return by_rule;
        }
        if round >= self.most() {
            return Some("max-rounds");
        }
        match &self.until {
            Termination::Host(ends) if ends.get(round - 1).copied().flatten() == Some(true) => {
                Some("termination-rule")
            }
            _ => None,
        }
    }
}
