//! `run_operator`: has one participant answer the newest message.

use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Wait;
use super::post_message::idempotency_name;
use crate::ServerState;
use crate::caller::Caller;
use crate::conversations::external_id;
use crate::failure::Failure;
use crate::jobs::{Residue, Standing};
use crate::progress::Reporter;
use crate::tool::{Effect, Tool};
use quorate::service::operate::{ReplyMode, Request, operate};

pub(super) struct RunOperator;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// The conversation
    conversation_id: String,
    /// The participant: its id, or its operator id
    operator_id: String,
    /// Whether what it says is appended to the conversation; if not, it is only given back
    #[serde(default)]
    post_reply: bool,
    /// With postReply: the reply is kept once for each key
    idempotency_key: Option<String>,
    /// How long to wait for it, in milliseconds: 20000 unless said, 50000 at most
    #[serde(default)]
    wait_ms: Wait,
}

/// What was said.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Said {
    /// The text.
    text: String,
    /// The message that it is, where it was posted.
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
}

impl Tool for RunOperator {
    const NAME: &'static str = "run_operator";
    const TITLE: &'static str = "Have a participant answer";
    const ABOUT: &'static str = "Has one participant answer the newest message of a conversation, once, whoever else \
        would. The result is {text, messageId}. A job: without a result after `waitMs`, go on with `job_poll`.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = Arguments;
    type Output = Standing;

    async fn call(served: &Arc<ServerState>, given: Arguments, caller: &Caller) -> Result<Standing, Failure> {
        let offered = served.conversations.find(&given.conversation_id)?.clone();
        let participant = offered.participant(&given.operator_id).ok_or_else(|| {
            let known: Vec<&str> = offered.runtime.participants.iter().map(external_id).collect();
            let body = Body::new(format!("there is no participant `{}`", given.operator_id));
            let help = format!("the participants are {}", known.join(", "));
            Failure::new(codes::PARTICIPANT_UNKNOWN, body.help(help))
        })?;
        let participant = participant.id.clone();
        let reply = match (given.post_reply, given.idempotency_key) {
            (true, key) => ReplyMode::Post(key.map(|key| idempotency_name(&key)).transpose()?),
            // It is harmless: nothing is kept that there could be two of.
            (false, _) => ReplyMode::ReturnOnly,
        };
        let work = |reporter: Arc<Reporter>| async move {
            let Some(newest) = offered.conversation.newest_id().await? else {
                return Err(Failure::usage(
                    "the conversation has no message yet",
                    "post one with `post_message`",
                ));
            };
            let ready = offered.reopen().await?;
            let request = Request {
                participant,
                substrate: offered.runtime.substrate.clone(),
                state: offered.runtime.state.clone(),
                newest,
                reply,
            };
            let said = operate(&ready, request, reporter).await;
            ready.seal().await;
            ready.close().await;
            offered.conversation.notify_appended();
            let said = said?;
            let said = Said { text: said.text, message_id: said.turn.map(|turn| turn.to_string()) };
            Ok(serde_json::to_value(said).expect("texts are JSON"))
        };
        served.jobs.start(given.wait_ms.duration(), caller, Residue::Nothing, work).await
    }
}
