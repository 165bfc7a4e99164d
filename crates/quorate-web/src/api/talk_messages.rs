//! `POST /api/v1/talks/{talk}/messages`: says something in a conversation, and has open turns answered.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use quorate::service::jobs::progress::Reporter;
use quorate::service::jobs::{Patient, Residue};
use quorate::service::runtime::OpenRuntime;
use quorate::service::runtime::conversation::{AuthorRule, DEFAULT_SPEAKER, post};
use quorate::service::runtime::events::FanOut;
use quorate::service::runtime::summary::ShownTurn;
use quorate::service::talks::answer::answer;
use quorate_kernel::conversation::Turn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::started::Limits;
use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;
use crate::talks::OpenTalk;

/// What is said. Who answers is configured in the manifest and in quorate.toml.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
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
    type Body = Body;

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
async fn said(server: &Arc<Server>, talk: &Arc<OpenTalk>, body: Body) -> Result<Posted, Failure> {
    let turn = append(talk, &body).await?;
    Ok(Posted { turn: turn.map(|turn| server.shown_turn(&turn)), job: None })
}

async fn append(talk: &OpenTalk, body: &Body) -> Result<Option<Turn>, Failure> {
    let Some(text) = &body.text else { return Ok(None) };
    let by = body.by.as_deref().unwrap_or(DEFAULT_SPEAKER);
    let turn = post(&talk.runtime, text, by, AuthorRule::PeopleOnly).await?;
    talk.conversation.notify_appended();
    Ok(Some(turn))
}

/// Starts a job that appends the turn and answers what is open. The job fails before it appends anything where no
/// participant could be asked.
async fn answered(server: &Arc<Server>, talk: &Arc<OpenTalk>, body: Body) -> Result<Posted, Failure> {
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
    body: &Body,
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
