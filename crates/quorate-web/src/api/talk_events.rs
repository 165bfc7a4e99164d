//! `GET /api/v1/talks/{talk}/events`: the turns of a conversation as server-sent events, and how it stands.
//!
//! The id of an event is the turn's. A client that lost the connection sends the last one it saw as `Last-Event-ID`, as
//! browsers do, and goes on after it, also with another server of the same conversation.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{self, Stream};
use quorate::service::jobs::Patient;
use quorate::service::talks::activity::Activity;
use quorate_kernel::conversation::Turn;
use quorate_protocol::Name;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::watch;

use super::events::KEEP_ALIVE;
use super::talk::Now;
use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;
use crate::openapi;
use crate::talks::OpenTalk;

/// How many turns are read at once.
const PAGE: usize = 50;

/// How often the status of turns is read from the ledger, so that clients also see failures of other processes.
const INTERVAL: Duration = Duration::from_millis(500);

/// Where the stream begins.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    /// Only turns after the one with this id; by default the newest 50, then new ones. `Last-Event-ID` comes first
    after: Option<String>,
}

pub(crate) struct GetTalkEvents;

impl Endpoint for GetTalkEvents {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/talks/{talk}/events";
    const ABOUT: &'static str = "The turns of a conversation as server-sent events: `turn` for each, and `state` whenever that changes";
    type Query = Query;
    type Body = Nothing;

    fn answer() -> Answer {
        let about = "A stream of events: the data of `turn` is a turn, that of `state` how the conversation stands; \
                     `reset` says that the conversation was replaced";
        Answer { content_type: "text/event-stream", schema: openapi::event, ..Answer::json::<()>(about) }
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let talk = server.talks.open(&server, call.part("talk")).await?;
        // A conversation that cannot be read fails the request and not the stream.
        talk.now(&server).await?;
        let after = last_seen(&call.headers)?.or(call.query.after).filter(|after| !after.is_empty());
        let watcher = Watcher {
            activity: talk.activity(),
            at: after.map(Name::from),
            last: None,
            waiting: VecDeque::new(),
            server,
            talk,
        };
        Ok(Sse::new(watcher.events()).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
    }
}

/// The last turn that the client has seen.
fn last_seen(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let Some(last) = headers.get("last-event-id") else { return Ok(None) };
    // Browsers send it as UTF-8.
    String::from_utf8(last.as_bytes().to_vec())
        .map(Some)
        .map_err(|_| Failure::usage("`Last-Event-ID` is not a turn's id", "send the id of the last event"))
}

/// A client that watches a conversation.
struct Watcher {
    server: Arc<Server>,
    talk: Arc<OpenTalk>,
    activity: watch::Receiver<Activity>,
    /// The last turn that was sent.
    at: Option<Name>,
    last: Option<Now>,
    waiting: VecDeque<Event>,
}

impl Watcher {
    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, |mut watcher| async move {
            loop {
                if let Some(event) = watcher.waiting.pop_front() {
                    return Some((Ok(event), watcher));
                }
                // Clients connect again, and go on after the last turn.
                watcher.collect().await.ok()?;
            }
        })
    }

    /// Waits for what is new, for a while.
    async fn collect(&mut self) -> Result<(), Failure> {
        let wait = if self.last.is_none() { Duration::ZERO } else { INTERVAL };
        let turns = self.talk.conversation.wait_for_turns(self.at.as_ref(), PAGE, wait, &Patient);
        let page = tokio::select! {
            page = turns => Some(page.map_err(quorate::service::error::ServiceError::from)?),
            _ = self.activity.changed() => None,
        };
        if let Some(page) = page {
            if !page.known {
                self.waiting.push_back(Event::default().event("reset").data("{}"));
            }
            if let Some(last) = page.turns.last() {
                self.at = Some(last.id.clone());
            }
            for turn in &page.turns {
                let event = self.event(turn);
                self.waiting.push_back(event);
            }
        }
        let now = self.talk.now(&self.server).await?;
        if self.last.as_ref() != Some(&now) {
            let event = Event::default().event("state").json_data(&now).expect("it is JSON");
            self.waiting.push_back(event);
            self.last = Some(now);
        }
        Ok(())
    }

    fn event(&self, turn: &Turn) -> Event {
        let event = Event::default().event("turn");
        // An id is one line; substrates promise ids without white space.
        let event = match turn.id.contains(char::is_control) {
            true => event,
            false => event.id(&*turn.id),
        };
        event.json_data(self.server.shown_turn(turn)).expect("a turn is JSON")
    }
}
