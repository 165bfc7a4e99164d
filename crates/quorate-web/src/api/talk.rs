//! `GET /api/v1/talks/{talk}`: how a conversation stands, with its newest turns.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::service::runtime::summary::ShownTurn;
use quorate::service::talks::state::TalkState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

/// The most turns of one answer.
const MAX_LIMIT: u32 = 500;

/// The turns of an answer, unless the request says otherwise.
const DEFAULT_LIMIT: u32 = 50;

/// Which turns are given.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    /// Only turns before the one with this id: the nearest ones
    pub(crate) before: Option<String>,
    /// The most turns: default 50
    #[schemars(range(min = 1, max = 500))]
    pub(crate) limit: Option<u32>,
}

/// A conversation as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Now {
    #[serde(flatten)]
    pub(crate) state: TalkState,
    /// Whether a job of this server answers open turns
    #[serde(rename = "answering")]
    pub(crate) is_answering: bool,
}

/// A conversation and its turns.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Conversation {
    #[serde(flatten)]
    pub(crate) now: Now,
    /// Oldest first
    pub(crate) turns: Vec<ShownTurn>,
    /// Whether there are older ones
    pub(crate) more: bool,
}

/// How a conversation stands, with its turns.
pub(crate) async fn load(server: &Arc<Server>, id: &str, query: &Query) -> Result<Conversation, Failure> {
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
    type Query = Query;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<Conversation>("The conversation")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        Ok(Json(load(&server, call.part("talk"), &call.query).await?).into_response())
    }
}
