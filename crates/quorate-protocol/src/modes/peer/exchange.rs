//! The conduct of a peer exchange: who reaches whom, for how many rounds, and what ends it. The first `aggregate` rule sets
//! it (P1, P2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ModeContext;
use crate::Json;
use crate::answers::message::Recipients;
use crate::assembly::{Member, Request, Rule, Setup};
use crate::rules::aggregate;

/// How many rounds there are at most where only a termination rule is given.
const DEFAULT_MAX_ROUNDS: u32 = 10;

/// How many members are named to each of them.
const MAX_NAMED_MEMBERS: usize = 100;

const TASK: &str = "You talk with equals about the topic; there is no chair, and nobody sums up. Say what you think, to \
                    all or to some of them by id; say whether you still object to something, and pass when you have \
                    nothing to add.";

pub(super) struct Exchange {
    pub(super) rounds: u32,
    pub(super) termination: Termination,
    topology: Topology,
    /// Who takes part, in words, which all of them share.
    roster: String,
}

/// What ends the talk before its last round.
pub(super) enum Termination {
    AfterRounds,
    NoNewObjections,
    AllPass,
    /// A custom rule, by its kind.
    ByRule(String),
}

enum Topology {
    FullyConnected,
    Ring,
    Star(usize),
    /// Whom each member reaches.
    Listed(BTreeMap<usize, BTreeSet<usize>>),
}

impl Exchange {
    pub(super) fn from_setup(setup: &Setup) -> Self {
        let rule = setup.rules.iter().find(|rule| *rule.kind == *aggregate::KIND);
        let asked = match &setup.request {
            Request::Peer { rounds } => *rounds,
            _ => None,
        };
        let termination = match rule.and_then(|rule| rule.text_param("terminationRule")) {
            None => Termination::AfterRounds,
            Some(aggregate::NO_NEW_OBJECTIONS) => Termination::NoNewObjections,
            Some(aggregate::ALL_PASS) => Termination::AllPass,
            Some(kind) => Termination::ByRule(kind.to_owned()),
        };
        let written =
            rule.and_then(|rule| rule.integer_param("maxRounds")).and_then(|most| u32::try_from(most).ok());
        let unwritten = if matches!(termination, Termination::AfterRounds) { 1 } else { DEFAULT_MAX_ROUNDS };
        Exchange {
            rounds: asked.or(written).unwrap_or(unwritten),
            termination,
            roster: roster_text(setup),
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

    /// Whether one member's messages reach another; no member reaches itself.
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
    /// The ids that are out of reach or unknown.
    pub(super) fn check_recipients(
        &self,
        context: &ModeContext,
        from: usize,
        to: &Recipients,
    ) -> Result<(), Vec<String>> {
        let Recipients::Members(ids) = to else { return Ok(()) };
        let members = context.setup.members.len();
        let out = |id: &&String| {
            context.member_indices.get(id.as_str()).is_none_or(|to| !self.reaches(members, from, *to))
        };
        let out: Vec<String> = ids.iter().filter(out).cloned().collect();
        if out.is_empty() { Ok(()) } else { Err(out) }
    }

    /// A member's task: the participants, who reaches whom, the round, and its undelivered messages.
    pub(super) fn task_text(
        &self,
        context: &ModeContext,
        index: usize,
        round: u32,
        refused: Option<&str>,
    ) -> Arc<str> {
        let members = context.setup.members.len();
        let whom = match self.topology {
            Topology::FullyConnected => "everybody reaches everybody.".to_owned(),
            _ => {
                let shape = match &self.topology {
                    Topology::Ring => "each reaches both neighbours in this order".to_owned(),
                    Topology::Star(hub) => {
                        let hub = &context.member(*hub).id;
                        format!("`{hub}` reaches everybody, and the others reach `{hub}` alone")
                    }
                    _ => "each reaches those whom the manifest names".to_owned(),
                };
                let reached = (0..members).filter(|to| self.reaches(members, index, *to));
                let ids: Vec<String> = reached.map(|to| format!("`{}`", context.member(to).id)).collect();
                match ids.is_empty() {
                    true => format!("{shape}. You reach nobody; what you say stands in the log."),
                    false => format!("{shape}. You reach {}.", ids.join(", ")),
                }
            }
        };
        let refusal = refused.map_or_else(String::new, |why| {
            format!(" Your message of round {} was not delivered: {why}.", round.saturating_sub(1))
        });
        let (rounds, roster) = (self.rounds, &self.roster);
        format!(
            "{TASK} {roster} In this talk ({}) {whom} This is round {round} of at most {rounds}.{refusal}",
            self.topology_word()
        )
        .into()
    }
}

/// The ids and roles of all members, in roster order.
fn roster_text(setup: &Setup) -> String {
    let one = |member: &Member| format!("`{}` ({})", member.id, member.role);
    let named: Vec<String> = setup.members.iter().take(MAX_NAMED_MEMBERS).map(one).collect();
    let more = match setup.members.len().saturating_sub(MAX_NAMED_MEMBERS) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("Those who take part are {}{more}.", named.join(", "))
}

/// P2.
fn topology(setup: &Setup, rule: &Rule) -> Topology {
    let index_of = |id: &str| setup.members.iter().position(|member| *member.id == *id);
    if let Some(listed) = rule.params.get("peers").and_then(Json::as_object) {
        let reach = |ids: &Json| -> BTreeSet<usize> {
            ids.as_array().into_iter().flatten().filter_map(|id| index_of(id.as_str()?)).collect()
        };
        let listed = listed.iter().filter_map(|(from, ids)| Some((index_of(from)?, reach(ids))));
        return Topology::Listed(listed.collect());
    }
    match (rule.text_param("topology"), rule.text_param("hub").and_then(index_of)) {
        (Some("ring"), _) => Topology::Ring,
        (Some("star"), hub) => Topology::Star(hub.unwrap_or(0)),
        _ => Topology::FullyConnected,
    }
}
