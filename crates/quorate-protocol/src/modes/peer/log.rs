//! The log of an exchange: delivered messages, who has received which, and the outcome's part.

use std::sync::Arc;

use serde_json::json;

use super::super::assembly::Completion;
use super::{Exchange, ModeContext};
use crate::answers::message::Message;
use crate::assembly::Rule;
use crate::rules::aggregate;
use crate::{Json, Name};

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
    pub(super) fn authors(&self, context: &ModeContext, rule: &Rule) -> Vec<Name> {
        let spoke = |index: &usize| self.said.iter().any(|message| message.from == *index);
        let speakers =
            (0..context.setup.members.len()).filter(spoke).map(|index| context.member(index).id.clone());
        speakers.filter(|member| rule.applies_to_member(member)).collect()
    }

    /// The messages of the outcome: of those members that an `aggregate` rule collects, where there is one.
    pub(super) fn write_outcome(&self, context: &ModeContext, ending: &mut Completion) {
        let collects: Vec<&Rule> =
            context.setup.rules.iter().filter(|rule| *rule.kind == *aggregate::KIND).collect();
        let collected = |message: &&DeliveredMessage| {
            let member = &context.member(message.from).id;
            collects.is_empty() || collects.iter().any(|rule| rule.applies_to_member(member))
        };
        let messages: Vec<Json> =
            self.said.iter().filter(collected).map(|message| message_json(context, message)).collect();
        ending.artifact.insert("messages".into(), json!(messages));
    }

    /// Whether another member's message has reached a member after a round.
    pub(super) fn reached_since(
        &self,
        context: &ModeContext,
        conduct: &Exchange,
        index: usize,
        round: u32,
    ) -> bool {
        let mut since = self.said.iter().filter(|message| message.round > round && message.from != index);
        since.any(|message| reaches(context, conduct, index, message))
    }

    /// What a custom rule is shown.
    pub(super) fn host_rule_input(
        &self,
        context: &ModeContext,
        heard: &[Option<Message>],
        round: u32,
    ) -> Json {
        let messages: Vec<Json> = self.said.iter().map(|message| message_json(context, message)).collect();
        let answer = |(index, one): (usize, &Option<Message>)| {
            json!({
                "member": &*context.member(index).id,
                "answered": one.is_some(),
                "objection": one.as_ref().is_some_and(|one| one.objection == Some(true)),
                "pass": one.as_ref().is_some_and(|one| one.pass),
            })
        };
        let answers: Vec<Json> = heard.iter().enumerate().map(answer).collect();
        json!({"mode": "peer", "round": round, "messages": messages, "answers": answers})
    }
}

/// A message as members, rules and outcomes see it.
fn message_json(context: &ModeContext, said: &DeliveredMessage) -> Json {
    let to = said.to.as_ref().map_or_else(
        || json!("*"),
        |recipients| json!(recipients.iter().map(|index| &*context.member(*index).id).collect::<Vec<_>>()),
    );
    json!({"round": said.round, "from": &*context.member(said.from).id, "to": to, "text": &*said.text})
}

/// What each member has heard, each different one written once: where everybody hears everything it is the same text
/// for all, which the prompts then share.
pub(super) struct Transcripts<'a> {
    log: &'a Log,
    conduct: &'a Exchange,
    context: &'a ModeContext,
    written: Vec<Json>,
    last: Option<(Vec<usize>, Arc<str>)>,
}

impl<'a> Transcripts<'a> {
    pub(super) fn new(log: &'a Log, conduct: &'a Exchange, context: &'a ModeContext) -> Self {
        let written = log.said.iter().map(|message| message_json(context, message)).collect();
        Transcripts { log, conduct, context, written, last: None }
    }

    /// What a member has heard or said itself; `None` where that is nothing.
    pub(super) fn for_member(&mut self, index: usize) -> Option<Arc<str>> {
        let messages = self.log.said.iter().enumerate();
        let heard: Vec<usize> =
            messages.filter(|(_, one)| self.hears(index, one)).map(|(at, _)| at).collect();
        if heard.is_empty() {
            return None;
        }
        if let Some((_, text)) = self.last.as_ref().filter(|(same, _)| *same == heard) {
            return Some(text.clone());
        }
        let shown: Vec<&Json> = heard.iter().map(|at| &self.written[*at]).collect();
        let text: Arc<str> = json!(shown).to_string().into();
        self.last = Some((heard, text.clone()));
        Some(text)
    }

    fn hears(&self, index: usize, said: &DeliveredMessage) -> bool {
        said.from == index || reaches(self.context, self.conduct, index, said)
    }
}

/// Whether another member's message reaches a member.
fn reaches(context: &ModeContext, conduct: &Exchange, index: usize, said: &DeliveredMessage) -> bool {
    match &said.to {
        None => conduct.reaches(context.setup.members.len(), said.from, index),
        Some(recipients) => recipients.contains(&index),
    }
}
