//! What a member is shown, as passages of somebody: the turns of a conversation, or a text as a whole.

use quorate_protocol::gather::conversation;
use quorate_protocol::{Part, PartKind};

use super::text::Text;

/// How many turns are read, the last.
const TURNS: usize = 60;
/// A conversation in which one side is called so is one with an agent.
const AGENTS: &[&str] = &["assistant", "agent", "ai", "bot", "model"];
const USERS: &[&str] = &["user", "human", "customer", "client", "member"];
const OTHERS: &[&str] = &["system", "tool", "developer", "function"];

/// Who says a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    /// The agent of a conversation.
    Agent,
    /// Whoever speaks with the agent.
    User,
    /// Whoever wrote a text that is no conversation.
    Author,
}

#[derive(Debug)]
pub(super) struct Passage<'t> {
    pub(super) speaker: Speaker,
    /// How many points of gravity it has lost by its age: 0 for the last turns.
    pub(super) aged: u8,
    pub(super) text: Text<'t>,
}

#[derive(Debug)]
pub(super) struct Subject<'t> {
    /// In order.
    pub(super) passages: Vec<Passage<'t>>,
    /// What it is called: "the proposal".
    pub(super) name: &'static str,
}

/// A turn as it was read, before its words are looked at.
pub(super) struct Turn {
    speaker: Speaker,
    text: String,
}

/// The turns of what a member is shown; `None` where it is shown nothing to judge.
pub(super) fn turns(parts: &[Part]) -> Option<(Vec<Turn>, &'static str)> {
    let subjects = [
        (PartKind::Conversation, "the conversation"),
        (PartKind::Proposal, "the proposal"),
        (PartKind::Topic, "the topic"),
        (PartKind::Request, "the request"),
        (PartKind::Artifact, "the text"),
        (PartKind::Gathered, "what was gathered"),
    ];
    let mut turns = Vec::new();
    let mut name = None;
    for (kind, called) in subjects {
        for part in parts.iter().filter(|part| part.kind == kind) {
            name = name.or(Some(called));
            match kind {
                PartKind::Conversation => turns.extend(talk(part)),
                _ => turns.push(Turn { speaker: Speaker::Author, text: part.text.to_string() }),
            }
        }
    }
    // A node that is shown its children alone judges what they say.
    let only_children =
        || parts.iter().any(|part| part.kind == PartKind::ChildrenOutputs).then_some("the request");
    name.or_else(only_children).map(|name| (turns, name))
}

/// A conversation, or one text of the user's where it has no turns.
fn talk(part: &Part) -> Vec<Turn> {
    // What was cut from a file of JSON lines is text.
    let read = [&*part.name, "cut.jsonl", "cut.md"].iter().find_map(|name| {
        let read = conversation::parse(name, &part.text).ok()?;
        (!read.messages.is_empty()).then_some(read.messages)
    });
    let Some(messages) = read else {
        return vec![Turn { speaker: Speaker::User, text: part.text.to_string() }];
    };
    let role = |message: &conversation::Message| message.role.to_lowercase();
    let any = |list: &[&str]| messages.iter().any(|message| list.contains(&role(message).as_str()));
    let (agents, users) = (any(AGENTS), any(USERS));
    let first = messages.first().map(role).unwrap_or_default();
    let mut turns: Vec<Turn> = Vec::new();
    for message in messages {
        let role = message.role.to_lowercase();
        let speaker = match role.as_str() {
            role if OTHERS.contains(&role) => continue,
            role if AGENTS.contains(&role) => Speaker::Agent,
            role if USERS.contains(&role) => Speaker::User,
            // A line such as "Note: …" within a turn looks like a speaker.
            _ if agents && users => turns.last().map_or(Speaker::User, |turn| turn.speaker),
            _ if agents => Speaker::User,
            _ if users => Speaker::Agent,
            role if role == first => Speaker::User,
            _ => Speaker::Agent,
        };
        turns.push(Turn { speaker, text: message.content });
    }
    turns.drain(..turns.len().saturating_sub(TURNS));
    turns
}

impl<'t> Subject<'t> {
    pub(super) fn read(turns: &'t [Turn], name: &'static str) -> Self {
        let passage = |(at, turn): (usize, &'t Turn)| {
            let after = turns.len() - 1 - at;
            let aged = match (turn.speaker, after) {
                (Speaker::Author, _) | (_, 0..=1) => 0,
                (_, 2..=3) => 1,
                (_, 4..=7) => 2,
                _ => 3,
            };
            Passage { speaker: turn.speaker, aged, text: Text::read(&turn.text) }
        };
        Subject { passages: turns.iter().enumerate().map(passage).collect(), name }
    }

    /// Who says a passage, as a sentence has it.
    pub(super) fn who(&self, passage: usize) -> &'static str {
        match self.passages.get(passage).map(|passage| passage.speaker) {
            Some(Speaker::Agent) => "the agent",
            Some(Speaker::User) => "the user",
            _ => self.name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speakers(name: &str, text: &str) -> Vec<Speaker> {
        let parts = [Part::new(PartKind::Conversation, name, text)];
        turns(&parts).expect("something").0.iter().map(|turn| turn.speaker).collect()
    }

    #[test]
    fn who_speaks_is_known_by_role_else_by_order() {
        use Speaker::{Agent, User};
        assert_eq!(
            speakers("a.md", "user: hi\nassistant: yes\nNote: that\nuser: ok"),
            [User, Agent, Agent, User]
        );
        assert_eq!(speakers("a.md", "user: hi\nSimone: yes"), [User, Agent]);
        assert_eq!(speakers("a.md", "Bea: hi\nSimone: yes\nBea: so"), [User, Agent, User]);
        assert_eq!(
            speakers(
                "a.jsonl",
                "{\"role\":\"system\",\"content\":\"x\"}\n{\"role\":\"user\",\"content\":\"y\"}"
            ),
            [User]
        );
        // As a strategy cuts it: text under the name of JSON lines.
        assert_eq!(speakers("a.jsonl", "user: hi\nassistant: yes"), [User, Agent]);
        assert_eq!(speakers("a.md", "no speaker"), [User]);
        assert!(turns(&[]).is_none());
    }
}
