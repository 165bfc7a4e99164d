//! Asking a server for messages, and making turns of what it gives.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::substrate::Error;
use quorate_protocol::{Json, Name};
use serde_json::json;

use super::LARGEST_FETCH;
use super::marks::Marks;
use super::memory::Memory;
use super::message::Message;
use super::order::{self, Told};
use super::people::People;
use crate::mcp::{Arguments, Connection, Offer, Repeat, Trouble, Until};

/// The tool that gives messages.
pub(super) const GET: &str = "get_messages";
/// The tool that takes one.
pub(super) const POST: &str = "post_message";

/// What is asked for beside the conversation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ask<'a> {
    /// At most so many messages.
    pub(super) limit: usize,
    /// Those strictly newer than this one.
    pub(super) after: Option<&'a str>,
    /// Those strictly older than this one.
    pub(super) before: Option<&'a str>,
    /// How long the server is to wait until there is one.
    pub(super) wait: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Given {
    /// The messages, each once, oldest first as far as the server's direction goes.
    pub(super) said: Vec<Said>,
    /// How many messages there were, repeated ones included.
    pub(super) raw: usize,
    /// Whether there are more, where the server says so.
    pub(super) has_more: Option<bool>,
    /// Whether the server knew the message that was named in `after`.
    pub(super) known: bool,
    /// What the messages' times say of their order.
    pub(super) told: Told,
}

/// A turn, and what else its message says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Said {
    pub(super) turn: Turn,
    /// Milliseconds since the Unix epoch.
    pub(super) at_ms: i64,
    /// Which attempt of ours to post it, if it was one.
    pub(super) post: Option<String>,
}

/// A conversation, and the server that has it.
pub(super) struct Room {
    connection: Arc<Connection>,
    conversation: String,
    /// Who posts as whom.
    pub(super) people: People,
}

impl Room {
    pub(super) fn new(connection: Arc<Connection>, conversation: &str, people: People) -> Self {
        Room { connection, conversation: conversation.to_owned(), people }
    }

    pub(super) fn conversation(&self) -> &str {
        &self.conversation
    }

    /// The conversation's name for good.
    pub(super) fn place(&self) -> String {
        format!("{}#{}", self.connection.place(), self.conversation)
    }

    /// What the server offers, as far as it was ever connected.
    pub(super) fn offered(&self) -> Option<Arc<Offer>> {
        self.connection.offered()
    }

    /// How long a call may take.
    pub(super) fn timeout(&self) -> Duration {
        self.connection.timeout()
    }

    /// What the server offers.
    pub(super) async fn offer(&self) -> Result<Arc<Offer>, Error> {
        self.connection.offer(Until::Timeout).await.map_err(|trouble| self.unread(trouble))
    }

    /// The most messages that can be asked for at once: all, of a server that takes no limit.
    pub(super) fn reach(&self, offer: &Offer) -> usize {
        if !offer.takes(GET, "limit") {
            return usize::MAX;
        }
        let maximum = offer.maximum(GET, "limit").and_then(|most| usize::try_from(most).ok());
        maximum.map_or(LARGEST_FETCH, |most| most.clamp(1, LARGEST_FETCH))
    }

    pub(super) async fn get(&self, memory: &Memory, ask: Ask<'_>) -> Result<Given, Error> {
        let offer = self.offer().await?;
        let mut arguments = self.arguments();
        arguments.insert("limit".into(), json!(ask.limit.clamp(1, self.reach(&offer))));
        arguments.extend(ask.after.map(|after| ("after".to_owned(), json!(after))));
        arguments.extend(ask.before.map(|before| ("before".to_owned(), json!(before))));
        let wait = ask.wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        arguments.extend(wait.map(|wait| ("waitMs".to_owned(), json!(wait))));
        let arguments = offer.fitted(GET, arguments, &["limit"]);
        let until = ask.wait.map_or(Until::Timeout, Until::TimeoutAnd);
        let value = self.connection.call(GET, arguments, Repeat::Harmless, until).await;
        self.given(memory, &value.map_err(|trouble| self.unread(trouble))?)
    }

    /// Posts, with arguments that the tool takes.
    pub(super) async fn call_post(&self, arguments: Arguments, repeat: Repeat) -> Result<Json, Trouble> {
        self.connection.call(POST, arguments, repeat, Until::Timeout).await
    }

    /// The arguments that every call has.
    pub(super) fn arguments(&self) -> Arguments {
        Arguments::from_iter([("conversationId".to_owned(), json!(self.conversation))])
    }

    fn given(&self, memory: &Memory, value: &Json) -> Result<Given, Error> {
        let listed = value.as_array().or_else(|| value.get("messages")?.as_array());
        let listed = listed.ok_or_else(|| self.nonsense("has no list `messages`"))?;
        let mut messages = Vec::with_capacity(listed.len());
        for (index, value) in listed.iter().enumerate() {
            let message = Message::read(value)
                .map_err(|why| self.nonsense(&format!("cannot be used: message {} {why}", index + 1)))?;
            messages.push(message);
        }
        let told = order::settle(&mut messages, memory.direction());
        if let Told::Direction(direction) = told {
            memory.learn(direction);
        }
        memory.listed(messages.iter().map(|message| message.id.as_str()));
        let mut there = HashSet::new();
        let said = messages.into_iter().filter(|message| there.insert(message.id.clone()));
        Ok(Given {
            said: said.map(|message| self.said(memory, message)).collect(),
            raw: listed.len(),
            has_more: value.get("hasMore").and_then(Json::as_bool),
            known: value.get("known").and_then(Json::as_bool).unwrap_or(true),
            told,
        })
    }

    fn said(&self, memory: &Memory, mut message: Message) -> Said {
        let marks = Marks::taken(&mut message.metadata);
        let author = self.people.author(&message.authors, marks.as_ref().map(|marks| &marks.participant));
        let marks = marks.filter(|_| author.marks_hold);
        let participant = memory.posted_for(&message.id).unwrap_or(author.name);
        let (post, meta, stamp) = match marks {
            Some(marks) => (Some(marks.post), marks.meta, marks.stamp),
            None => (None, message.metadata, None),
        };
        let turn = Turn {
            id: Name::from(message.id),
            participant,
            timestamp: message.timestamp.into(),
            content: message.content.into(),
            meta,
            stamp,
        };
        Said { turn, at_ms: message.at_ms, post }
    }

    fn nonsense(&self, why: &str) -> Error {
        self.unread(Trouble::Nonsense {
            server: self.connection.id().to_owned(),
            tool: GET.to_owned(),
            why: why.to_owned(),
        })
    }

    fn unread(&self, trouble: Trouble) -> Error {
        Error::unavailable(format!("the conversation `{}` cannot be read", self.conversation), trouble)
    }
}
