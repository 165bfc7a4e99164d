//! Routes below `/api/v1/talks` on conversations: the list, a conversation with its turns and participants, a stream of its
//! events, and the route that appends a turn and lets participants answer.
//!
//! A stream resumes after the turn that a client names in `Last-Event-ID`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{self, Stream};
use quorate::jobs::Reporter;
use quorate::jobs::{Patient, Residue};
use quorate::service::runtime::OpenRuntime;
use quorate::service::runtime::conversation::{AuthorRule, DEFAULT_SPEAKER, post};
use quorate::service::runtime::drive::ShownTurn;
use quorate::service::runtime::events::FanOut;
use quorate::service::talks::Activity;
use quorate::service::talks::answer;
use quorate::service::talks::{self, Talk};
use quorate_kernel::conversation::Turn;
use quorate_protocol::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::actions::Limits;
use super::runs::KEEP_ALIVE;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;
use crate::talks::{OpenTalk, TalkNow};
use crate::{Server, openapi};

/// The conversations of the workspace.
#[derive(Debug, Serialize, JsonSchema)]
struct Talks {
    talks: Vec<Talk>,
}

/// The conversations, by the paths of their manifests.
pub(crate) async fn list(server: &Arc<Server>) -> Result<Vec<Talk>, Failure> {
    let within = server.clone();
    let listed = async move { talks::list(&within.environment, &within.root, &within.registries) };
    Ok(server.run_computation(Box::pin(listed)).await?)
}

pub(crate) struct GetTalks;

impl Endpoint for GetTalks {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/talks";
    const ABOUT: &'static str = "Lists the conversations of the workspace: one for each runtime manifest";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<Talks>("The conversations")
    }

    async fn call(server: Arc<Server>, _: Call<Self>) -> Result<Response, Failure> {
        Ok(Json(Talks { talks: list(&server).await? }).into_response())
    }
}

/// The most turns of one answer.
const MAX_LIMIT: u32 = 500;

/// The turns of an answer, unless the request says otherwise.
const DEFAULT_LIMIT: u32 = 50;

/// Which turns are given.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TalkQuery {
    /// Only turns before the one with this id: the nearest ones
    pub(crate) before: Option<String>,
    /// The most turns: default 50
    #[schemars(range(min = 1, max = 500))]
    pub(crate) limit: Option<u32>,
}

/// A conversation and its turns.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Conversation {
    #[serde(flatten)]
    pub(crate) now: TalkNow,
    /// Oldest first
    pub(crate) turns: Vec<ShownTurn>,
    /// Whether there are older ones
    pub(crate) more: bool,
}

/// How a conversation stands, with its turns.
pub(crate) async fn load_talk(
    server: &Arc<Server>,
    id: &str,
    query: &TalkQuery,
) -> Result<Conversation, Failure> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Failure::usage(format!("`limit` is {limit}"), format!("it is 1 to {MAX_LIMIT}")));
    }
    let talk = server.talks.open(server, id).await?;
    let now = talk.now(server).await?;
    let page = match query.before.as_deref().filter(|before| !before.is_empty()) {
        Some(before) => talk.conversation.before(&before.into(), limit as usize).await,
        None => talk.conversation.newest(limit as usize).await,
    };
    let page = page.map_err(quorate::service::error::ServiceError::from)?;
    let turns = page.turns.iter().map(|turn| server.shown_turn(turn)).collect();
    Ok(Conversation { now, turns, more: page.more })
}

pub(crate) struct GetTalk;

impl Endpoint for GetTalk {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/talks/{talk}";
    const ABOUT: &'static str =
        "A conversation: its newest turns, what participants remember, and who is next and why";
    type Query = TalkQuery;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<Conversation>("The conversation")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        Ok(Json(load_talk(&server, call.part("talk"), &call.query).await?).into_response())
    }
}

/// How many turns are read at once.
const PAGE: usize = 50;

/// How often the status of turns is read from the ledger, so that clients also see failures of other processes.
const INTERVAL: Duration = Duration::from_millis(500);

/// Where the stream begins.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TalkEventsQuery {
    /// Only turns after the one with this id; by default the newest 50, then new ones. `Last-Event-ID` comes first
    after: Option<String>,
}

pub(crate) struct GetTalkEvents;

impl Endpoint for GetTalkEvents {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/talks/{talk}/events";
    const ABOUT: &'static str = "The turns of a conversation as server-sent events: `turn` for each, and `state` whenever that changes";
    type Query = TalkEventsQuery;
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
    last: Option<TalkNow>,
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

/// What is said. Who answers is configured in the manifest and in quorate.toml.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageBody {
    /// The content; without it open turns are answered
    text: Option<String>,
    /// The author: default user; no participant's name
    #[serde(rename = "as")]
    by: Option<String>,
    /// Whether open turns are answered: default true
    answer: Option<bool>,
    #[serde(default)]
    budget: Limits,
}

/// What was said, and who answers it.
#[derive(Debug, Serialize, JsonSchema)]
struct Posted {
    /// The turn that was appended; null without a text
    turn: Option<ShownTurn>,
    /// The job that answers; null if nothing is to be answered
    job: Option<String>,
}

pub(crate) struct PostTalkMessages;

impl Endpoint for PostTalkMessages {
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/api/v1/talks/{talk}/messages";
    const ABOUT: &'static str = "Says something in a conversation and has open turns answered: a job, whose result is what `quorate run` prints";
    type Query = Nothing;
    type Body = MessageBody;

    fn answer() -> Answer {
        Answer::accepted::<Posted>("The turn, and the job that answers it")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let talk = server.talks.open(&server, call.part("talk")).await?;
        let body = call.body.clone();
        let within = server.clone();
        let posted = async {
            let posted = match (body.answer.unwrap_or(true), &body.text) {
                (true, _) => answered(&within, &talk, body).await?,
                (false, Some(_)) => said(&within, &talk, body).await?,
                (false, None) => {
                    return Err(Failure::usage(
                        "there is nothing to say and nothing to answer",
                        "send `text`, or leave `answer` out",
                    ));
                }
            };
            Ok((StatusCode::ACCEPTED, json!(posted)))
        };
        let route = format!("post /api/v1/talks/{}/messages", talk.talk.id);
        let (status, posted) = server.answered.once(&route, &call.headers, &call.bytes, posted).await?;
        Ok((status, Json(posted)).into_response())
    }
}

/// Appends a turn, which the process that runs the conversation answers.
async fn said(server: &Arc<Server>, talk: &Arc<OpenTalk>, body: MessageBody) -> Result<Posted, Failure> {
    let turn = append(talk, &body).await?;
    Ok(Posted { turn: turn.map(|turn| server.shown_turn(&turn)), job: None })
}

async fn append(talk: &OpenTalk, body: &MessageBody) -> Result<Option<Turn>, Failure> {
    let Some(text) = &body.text else { return Ok(None) };
    let by = body.by.as_deref().unwrap_or(DEFAULT_SPEAKER);
    let turn = post(&talk.runtime, text, by, AuthorRule::PeopleOnly).await?;
    talk.conversation.notify_appended();
    Ok(Some(turn))
}

/// Starts a job that appends the turn and answers what is open. The job fails before it appends anything where no
/// participant could be asked.
async fn answered(server: &Arc<Server>, talk: &Arc<OpenTalk>, body: MessageBody) -> Result<Posted, Failure> {
    let (sender, appended) = oneshot::channel();
    let (within, talk) = (server.clone(), talk.clone());
    let work = |reporter: Arc<Reporter<Failure>>| async move {
        let ready = talk.reopen(&within, &body.budget).await?;
        let result = run(&ready, &talk, &body, reporter, sender).await;
        ready.seal().await;
        ready.close().await;
        talk.conversation.notify_appended();
        result
    };
    let job = server.jobs.start(Duration::ZERO, &Patient, Residue::Nothing, work).await?.job;
    match appended.await {
        Ok(turn) => Ok(Posted { turn: turn.map(|turn| server.shown_turn(&turn)), job: Some(job) }),
        // It failed before that.
        Err(_) => match server.jobs.poll(&job, Duration::from_secs(1), &Patient).await {
            Err(failure) => Err(failure),
            Ok(_) => Ok(Posted { turn: None, job: Some(job) }),
        },
    }
}

async fn run(
    ready: &OpenRuntime,
    talk: &Arc<OpenTalk>,
    body: &MessageBody,
    reporter: Arc<Reporter<Failure>>,
    appended: oneshot::Sender<Option<Turn>>,
) -> Result<Value, Failure> {
    ready.ensure_writable()?;
    // Refuses what is not trusted or not installed before anything is said.
    ready.swarm(talk.tracker())?;
    let turn = append(talk, body).await?;
    let _ = appended.send(turn);
    // Turns that others append meanwhile are answered by the job that holds the conversation, or by the next one.
    let _running = talk.begin().await;
    let telemetry = Arc::new(FanOut(vec![talk.tracker(), reporter]));
    let within = talk.clone();
    Ok(answer(ready, telemetry, move || within.conversation.notify_appended()).await?)
}
