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
use axum::response::sse::Event;
use axum::response::{IntoResponse as _, Response};
use futures::stream::{self, Stream};
use quorate::conversation::{
    Activity, Conversation, RunRequest, SayRequest, ShownTurn, SwarmEvent, Talk, TalkState,
};
use quorate::jobs::{Patient, Reporter, Residue};
use quorate::ports::telemetry::Telemetry as _;
use quorate::{Name, Turn};
use quorate_diagnostics::codes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::actions::Limits;
use super::runs::event_response;
use crate::endpoint::{Answer, Call, Method, Nothing, Route};
use crate::failure::Failure;
use crate::talks::OpenTalk;
use crate::{Server, openapi};

/// The routes.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::Get,
            "/api/v1/talks",
            "Lists the conversations of the workspace: one for each runtime manifest",
            Answer::json::<Talks>("The conversations"),
            get_talks,
        ),
        Route::new(
            Method::Get,
            "/api/v1/talks/{talk}",
            "A conversation: its newest turns, what participants remember, and who is next and why",
            Answer::json::<ShownTalk>("The conversation"),
            get_talk,
        ),
        Route::new(
            Method::Get,
            "/api/v1/talks/{talk}/events",
            "The turns of a conversation as server-sent events: `turn` for each, and `state` whenever that changes",
            Answer {
                content_type: "text/event-stream",
                schema: openapi::event,
                ..Answer::json::<()>(
                    "A stream of events: the data of `turn` is a turn, that of `state` how the conversation stands; \
                     `reset` says that the conversation was replaced",
                )
            },
            get_talk_events,
        ),
        Route::new(
            Method::Post,
            "/api/v1/talks/{talk}/messages",
            "Says something in a conversation and has open turns answered: a job, whose result is what `quorate run` prints",
            Answer::accepted::<Posted>("The turn, and the job that answers it"),
            post_talk_messages,
        ),
    ]
}

/// The conversations of the workspace.
#[derive(Debug, Serialize, JsonSchema)]
struct Talks {
    talks: Vec<Talk>,
}

/// The conversations, by the paths of their manifests.
pub(crate) async fn list(server: &Arc<Server>) -> Result<Vec<Talk>, Failure> {
    let within = server.clone();
    let listed = async move { within.quorate.talks() };
    Ok(server.jobs.compute(listed).await?)
}

async fn get_talks(server: Arc<Server>, _: Call) -> Result<Response, Failure> {
    Ok(Json(Talks { talks: list(&server).await? }).into_response())
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
#[schemars(rename = "Conversation")]
pub(crate) struct ShownTalk {
    #[serde(flatten)]
    pub(crate) now: TalkState,
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
) -> Result<ShownTalk, Failure> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Failure::usage(format!("`limit` is {limit}"), format!("it is 1 to {MAX_LIMIT}")));
    }
    let talk = server.talks.open(server, id).await?;
    let now = talk.now().await?;
    let turns = talk.conversation.turns();
    let page = match query.before.as_deref().filter(|before| !before.is_empty()) {
        Some(before) => turns.before(&before.into(), limit as usize).await?,
        None => turns.newest(limit as usize).await?,
    };
    let turns = page.turns.iter().map(|turn| talk.conversation.shown(turn)).collect();
    Ok(ShownTalk { now, turns, more: page.more })
}

async fn get_talk(server: Arc<Server>, call: Call<TalkQuery>) -> Result<Response, Failure> {
    Ok(Json(load_talk(&server, call.part("talk"), &call.query).await?).into_response())
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

async fn get_talk_events(server: Arc<Server>, call: Call<TalkEventsQuery>) -> Result<Response, Failure> {
    let talk = server.talks.open(&server, call.part("talk")).await?;
    // A conversation that cannot be read fails the request and not the stream.
    talk.now().await?;
    let after = last_seen(&call.headers)?.or(call.query.after).filter(|after| !after.is_empty());
    let watcher = Watcher {
        activity: talk.conversation.activity(),
        at: after.map(Name::from),
        last: None,
        waiting: VecDeque::new(),
        talk,
    };
    Ok(event_response(watcher.events()))
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
    talk: Arc<OpenTalk>,
    activity: watch::Receiver<Activity>,
    /// The last turn that was sent.
    at: Option<Name>,
    last: Option<TalkState>,
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
        let turns = self.talk.conversation.turns().wait_for_turns(self.at.as_ref(), PAGE, wait, &Patient);
        let page = tokio::select! {
            page = turns => Some(page?),
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
        let now = self.talk.now().await?;
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
        event.json_data(self.talk.conversation.shown(turn)).expect("a turn is JSON")
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

async fn post_talk_messages(
    server: Arc<Server>,
    call: Call<Nothing, MessageBody>,
) -> Result<Response, Failure> {
    let talk = server.talks.open(&server, call.part("talk")).await?;
    let body = call.body.clone();
    let posted = async {
        let posted = match (body.answer.unwrap_or(true), body.say()) {
            (true, say) => answered(&server, &talk.conversation, &body, say).await?,
            // The process that runs the conversation answers.
            (false, Some(say)) => {
                let turn = talk.conversation.say(&say).await?;
                Posted { turn: Some(talk.conversation.shown(&turn)), job: None }
            }
            (false, None) => {
                return Err(Failure::usage(
                    "there is nothing to say and nothing to answer",
                    "send `text`, or leave `answer` out",
                ));
            }
        };
        Ok((StatusCode::ACCEPTED, json!(posted)))
    };
    let route = format!("post /api/v1/talks/{}/messages", talk.conversation.talk().id);
    let (status, posted) = server.answered.once(&route, &call.headers, &call.bytes, posted).await?;
    Ok((status, Json(posted)).into_response())
}

impl MessageBody {
    fn say(&self) -> Option<SayRequest> {
        let text = self.text.clone()?;
        Some(SayRequest { text, by: self.by.clone(), is_shared: true, ..SayRequest::default() })
    }
}

/// Starts a job that appends the turn and answers what is open. The job fails before it appends anything where no
/// participant could be asked.
async fn answered(
    server: &Arc<Server>,
    conversation: &Conversation,
    body: &MessageBody,
    say: Option<SayRequest>,
) -> Result<Posted, Failure> {
    let (sender, appended) = oneshot::channel();
    let (opened, budget) = (conversation.clone(), body.budget.clone());
    let work = |reporter: Arc<Reporter<Failure>>| async move {
        let opened = opened.reopened()?;
        let caps = Some(budget.caps_within(opened.caps())?.or(opened.caps()));
        answer(&opened, RunRequest { say, caps, is_shared: true, ..RunRequest::default() }, &reporter, sender)
            .await
    };
    let job = server.jobs.start(Duration::ZERO, &Patient, Residue::Nothing, work).await?.job;
    match appended.await {
        Ok(turn) => Ok(Posted { turn: turn.map(|turn| conversation.shown(&turn)), job: Some(job) }),
        // It failed before that.
        Err(_) => match server.jobs.poll(&job, Duration::from_secs(1), &Patient).await {
            Err(failure) => Err(failure),
            Ok(_) => Ok(Posted { turn: None, job: Some(job) }),
        },
    }
}

/// Answers open turns until none is left. If another process runs the conversation, that process answers.
async fn answer(
    conversation: &Conversation,
    request: RunRequest,
    reporter: &Reporter<Failure>,
    appended: oneshot::Sender<Option<Turn>>,
) -> Result<Value, Failure> {
    let mut appended = Some(appended);
    let mut run = conversation.run(request);
    while let Some(event) = run.next().await {
        let turn = match event {
            SwarmEvent::Said(turn) => Some(turn),
            // There was nothing to say.
            SwarmEvent::Admitted => None,
            SwarmEvent::Step(event) => {
                reporter.emit(&event);
                continue;
            }
            _ => continue,
        };
        if let Some(appended) = appended.take() {
            let _ = appended.send(turn);
        }
    }
    match run.finish().await {
        Ok(run) => Ok(json!(run.value)),
        // Turns that are appended meanwhile are answered by the process that runs the conversation, or by the next job.
        Err(error) if error.code() == codes::RUNTIME_BUSY.as_str() => {
            Ok(json!({"runtime": conversation.id(), "elsewhere": true}))
        }
        Err(error) => Err(error.into()),
    }
}
