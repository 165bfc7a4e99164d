//! How peers talk: who is in whose reach, for how long, and what ends it. The first `aggregate` rule says so (P1, P2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Case;
use crate::Json;
use crate::answers::message::To;
use crate::assembly::{Request, Rule, Setup};
use crate::rules::aggregate;

/// How many rounds there are at most where only a termination rule is given.
const UNTIL_TERMINATED: u32 = 10;

/// How peers talk.
pub(super) struct Conduct {
    pub(super) rounds: u32,
    pub(super) ends: Ends,
    topology: Topology,
}

/// What ends the talk before its last round.
pub(super) enum Ends {
    AfterRounds,
    NoNewObjections,
    AllPass,
    /// A rule of the host's own, by its kind.
    ByRule(String),
}

enum Topology {
    FullyConnected,
    Ring,
    /// The hub's seat.
    Star(usize),
    /// Whom each seat reaches.
    Listed(BTreeMap<usize, BTreeSet<usize>>),
}

impl Conduct {
    pub(super) fn of(setup: &Setup) -> Self {
        let rule = setup.rules.iter().find(|rule| *rule.kind == *aggregate::KIND);
        let asked = match &setup.request {
            Request::Peer { rounds } => *rounds,
            _ => None,
        };
        let ends = match rule.and_then(|rule| rule.text("terminationRule")) {
            None => Ends::AfterRounds,
            Some(aggregate::NO_NEW_OBJECTIONS) => Ends::NoNewObjections,
            Some(aggregate::ALL_PASS) => Ends::AllPass,
            Some(kind) => Ends::ByRule(kind.to_owned()),
        };
        let written = rule.and_then(|rule| rule.whole("maxRounds")).and_then(|most| u32::try_from(most).ok());
        let unwritten = if matches!(ends, Ends::AfterRounds) { 1 } else { UNTIL_TERMINATED };
        Conduct {
            rounds: asked.or(written).unwrap_or(unwritten),
            ends,
            topology: rule.map_or(Topology::FullyConnected, |rule| topology(setup, rule)),
        }
    }

    pub(super) fn topology_word(&self) -> &'static str {
        match self.topology {
            Topology::FullyConnected => "fully-connected",
            Topology::Ring => "ring",
            Topology::Star(_) => "star",
            Topology::Listed(_) => "peers",
        }
    }

    /// Whether everybody reaches everybody.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.topology, Topology::FullyConnected)
    }

    /// Whether what one says reaches another; nobody reaches itself.
    pub(super) fn reaches(&self, members: usize, from: usize, to: usize) -> bool {
        from != to
            && match &self.topology {
                Topology::FullyConnected => true,
                Topology::Ring => (from + 1) % members == to || (to + 1) % members == from,
                Topology::Star(hub) => from == *hub || to == *hub,
                Topology::Listed(listed) => listed.get(&from).is_some_and(|reach| reach.contains(&to)),
            }
    }

    /// Whether a message can go where it is addressed.
    ///
    /// # Errors
    /// The ids that are out of reach, or nobody's.
    pub(super) fn recipients(&self, case: &Case, from: usize, to: &To) -> Result<(), Vec<String>> {
        let To::Members(ids) = to else { return Ok(()) };
        let members = case.setup.members.len();
        let out =
            |id: &&String| case.seats.get(id.as_str()).is_none_or(|to| !self.reaches(members, from, *to));
        let out: Vec<String> = ids.iter().filter(out).cloned().collect();
        if out.is_empty() { Ok(()) } else { Err(out) }
    }

    /// What a member is told: the round, and whom it reaches.
    pub(super) fn task(&self, case: &Case, seat: usize, round: u32, task: &str) -> Arc<str> {
        let members = case.setup.members.len();
        let whom = match self.topology {
            Topology::FullyConnected => "You reach everybody.".to_owned(),
            _ => {
                let reached = (0..members).filter(|to| self.reaches(members, seat, *to));
                let ids: Vec<String> = reached.map(|to| format!("`{}`", case.member(to).id)).collect();
                match ids.is_empty() {
                    true => "You reach nobody; what you say stands in the log.".to_owned(),
                    false => format!("You reach {}.", ids.join(", ")),
                }
            }
        };
        format!("{task} This is round {round} of at most {}. {whom}", self.rounds).into()
    }
}

/// P2.
fn topology(setup: &Setup, rule: &Rule) -> Topology {
    let seat = |id: &str| setup.members.iter().position(|member| *member.id == *id);
    if let Some(listed) = rule.params.get("peers").and_then(Json::as_object) {
        let reach = |ids: &Json| -> BTreeSet<usize> {
            ids.as_array().into_iter().flatten().filter_map(|id| seat(id.as_str()?)).collect()
        };
        let listed = listed.iter().filter_map(|(from, ids)| Some((seat(from)?, reach(ids))));
        return Topology::Listed(listed.collect());
    }
    match (rule.text("topology"), rule.text("hub").and_then(seat)) {
        (Some("ring"), _) => Topology::Ring,
        (Some("star"), hub) => Topology::Star(hub.unwrap_or(0)),
        _ => Topology::FullyConnected,
    }
}
