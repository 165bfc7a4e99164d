//! The conduct of a peer exchange: who reaches whom, for how many rounds, and what ends it. The first `aggregate` rule sets
//! it (P1, P2).
//! Also the log of delivered messages, and the objections: who objected, who withdrew, and which were answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;

use super::super::assembly::Completion;
use super::Run;
use crate::answers::advice::{Message, Recipients};
use crate::assembly::{AssemblyRequest, Member, Rule, Setup};
use crate::rules::aggregate;
use crate::rules::custom::{RoundAnswer, RuleRequest, SentMessage};
use crate::{Json, Name};

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
            AssemblyRequest::Peer { rounds } => *rounds,
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
        run: &Run,
        from: usize,
        to: &Recipients,
    ) -> Result<(), Vec<String>> {
        let Recipients::Members(ids) = to else { return Ok(()) };
        let members = run.setup.members.len();
        let out = |id: &&String| {
            run.member_indices.get(id.as_str()).is_none_or(|to| !self.reaches(members, from, *to))
        };
        let out: Vec<String> = ids.iter().filter(out).cloned().collect();
        if out.is_empty() { Ok(()) } else { Err(out) }
    }

    /// A member's task: the participants, who reaches whom, the round, and its undelivered messages.
    pub(super) fn task_text(&self, run: &Run, index: usize, round: u32, refused: Option<&str>) -> Arc<str> {
        let members = run.setup.members.len();
        let whom = match self.topology {
            Topology::FullyConnected => "everybody reaches everybody.".to_owned(),
            _ => {
                let shape = match &self.topology {
                    Topology::Ring => "each reaches both neighbours in this order".to_owned(),
                    Topology::Star(hub) => {
                        let hub = &run.member(*hub).id;
                        format!("`{hub}` reaches everybody, and the others reach `{hub}` alone")
                    }
                    _ => "each reaches those whom the manifest names".to_owned(),
                };
                let reached = (0..members).filter(|to| self.reaches(members, index, *to));
                let ids: Vec<String> = reached.map(|to| format!("`{}`", run.member(to).id)).collect();
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

/// A message that was delivered.
pub(super) struct DeliveredMessage {
    pub(super) round: u32,
    pub(super) from: usize,
    /// `None` is everybody in reach.
    pub(super) to: Option<Vec<usize>>,
    pub(super) text: Arc<str>,
}

/// What was said, in the order of rounds, then of the roster.
#[derive(Default)]
pub(super) struct Log {
    said: Vec<DeliveredMessage>,
}

impl Log {
    /// Messages of a round come in any order, where some had to be compared by meaning.
    pub(super) fn add(&mut self, said: DeliveredMessage) {
        let at = self.said.partition_point(|message| (message.round, message.from) < (said.round, said.from));
        self.said.insert(at, said);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// Who has said something, of those that a rule looks at.
    pub(super) fn authors(&self, run: &Run, rule: &Rule) -> Vec<Name> {
        let spoke = |index: &usize| self.said.iter().any(|message| message.from == *index);
        let speakers = (0..run.setup.members.len()).filter(spoke).map(|index| run.member(index).id.clone());
        speakers.filter(|member| rule.applies_to_member(member)).collect()
    }

    /// The messages of the outcome: of those members that an `aggregate` rule collects, where there is one.
    pub(super) fn write_outcome(&self, run: &Run, ending: &mut Completion) {
        let collects: Vec<&Rule> =
            run.setup.rules.iter().filter(|rule| *rule.kind == *aggregate::KIND).collect();
        let collected = |message: &&DeliveredMessage| {
            let member = &run.member(message.from).id;
            collects.is_empty() || collects.iter().any(|rule| rule.applies_to_member(member))
        };
        let messages: Vec<SentMessage> =
            self.said.iter().filter(collected).map(|message| sent_message(run, message)).collect();
        ending.artifact.insert("messages".into(), json!(messages));
    }

    /// Whether another member's message has reached a member after a round.
    pub(super) fn reached_since(&self, run: &Run, conduct: &Exchange, index: usize, round: u32) -> bool {
        let mut since = self.said.iter().filter(|message| message.round > round && message.from != index);
        since.any(|message| reaches(run, conduct, index, message))
    }

    /// The input of a custom rule.
    pub(super) fn host_rule_input(
        &self,
        run: &Run,
        rule: Option<&Rule>,
        heard: &[Option<Message>],
        round: u32,
    ) -> RuleRequest {
        let answer = |(index, message): (usize, &Option<Message>)| RoundAnswer {
            member: run.member(index).id.clone(),
            answered: message.is_some(),
            objection: message.as_ref().is_some_and(|message| message.objection == Some(true)),
            pass: message.as_ref().is_some_and(|message| message.pass),
        };
        RuleRequest::Peer {
            rule: rule.cloned(),
            round,
            messages: self.said.iter().map(|message| sent_message(run, message)).collect(),
            answers: heard.iter().enumerate().map(answer).collect(),
        }
    }
}

/// A message as members, rules and outcomes see it.
fn sent_message(run: &Run, said: &DeliveredMessage) -> SentMessage {
    let member = |index: usize| run.member(index).id.clone();
    SentMessage {
        round: said.round,
        from: member(said.from),
        to: said.to.as_ref().map(|recipients| recipients.iter().map(|index| member(*index)).collect()),
        text: said.text.clone(),
    }
}

impl Log {
    /// The transcript of each member, messages to it and its own; `None` where it is empty. Equal ones in a row share their
    /// text, so that prompts share it if all members hear everything.
    pub(super) fn transcripts(&self, run: &Run, conduct: &Exchange) -> Vec<Option<Arc<str>>> {
        let written: Vec<Json> = self.said.iter().map(|message| json!(sent_message(run, message))).collect();
        let mut last: (Vec<usize>, Option<Arc<str>>) = (Vec::new(), None);
        let of_member = |index: usize| {
            let hears = |said: &DeliveredMessage| said.from == index || reaches(run, conduct, index, said);
            let heard: Vec<usize> = (0..self.said.len()).filter(|at| hears(&self.said[*at])).collect();
            if heard != last.0 {
                let shown: Vec<&Json> = heard.iter().map(|at| &written[*at]).collect();
                let text = (!shown.is_empty()).then(|| json!(shown).to_string().into());
                last = (heard, text);
            }
            last.1.clone()
        };
        (0..run.setup.members.len()).map(of_member).collect()
    }
}

/// Whether another member's message reaches a member.
fn reaches(run: &Run, conduct: &Exchange, index: usize, said: &DeliveredMessage) -> bool {
    match &said.to {
        None => conduct.reaches(run.setup.members.len(), said.from, index),
        Some(recipients) => recipients.contains(&index),
    }
}

/// The last objection of each member.
#[derive(Default)]
pub(super) struct Objections(BTreeMap<usize, Objection>);

struct Objection {
    round: u32,
    withdrawn: bool,
}

impl Objections {
    /// Records a member's objection in a round. Only a plain `false` withdraws it: an absent field or answer leaves it
    /// standing (X5).
    pub(super) fn update(&mut self, index: usize, round: u32, says: Option<bool>) {
        match says {
            Some(true) => drop(self.0.insert(index, Objection { round, withdrawn: false })),
            Some(false) => {
                if let Some(objection) = self.0.get_mut(&index) {
                    objection.withdrawn = true;
                }
            }
            None => {}
        }
    }

    /// In the outcome: all of them, and whose still stand.
    pub(super) fn write_outcome(&self, run: &Run, log: &Log, conduct: &Exchange, ending: &mut Completion) {
        let id = |index: usize| &*run.member(index).id;
        let standing = self.0.iter().filter(|(_, one)| !one.withdrawn).map(|(index, _)| id(*index));
        let all = self.0.iter().map(|(index, one)| {
            json!({
                "member": id(*index), "round": one.round, "takenBack": one.withdrawn,
                "answered": log.reached_since(run, conduct, *index, one.round),
            })
        });
        ending.extra.insert("objecting".into(), standing.collect::<Json>());
        ending.extra.insert("objections".into(), all.collect::<Json>());
    }
}
