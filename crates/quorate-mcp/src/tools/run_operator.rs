//! `run_operator`: asks one participant to answer the newest message.

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
use crate::tool::{Effect, Tool};
use quorate::service::jobs::progress::Reporter;
use quorate::service::jobs::{JobStatus, Residue};
use quorate::service::operate::{ReplyMode, Request, operate};

pub(super) struct RunOperator;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// The conversation
    conversation_id: String,
    /// The participant: its id, or its operator id
    operator_id: String,
    /// Whether to append the reply to the conversation; if not, it is only returned
    #[serde(default)]
    post_reply: bool,
    /// With postReply: the reply is stored once for each key
    idempotency_key: Option<String>,
    /// How long to wait, in milliseconds: default 20000, at most 50000
    #[serde(default)]
    wait_ms: Wait,
}

/// The reply.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Said {
    /// The text.
    text: String,
    /// The id of the posted message.
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
    type Output = JobStatus;

    async fn call(
        server: &Arc<ServerState>,
        arguments: Arguments,
        caller: &Caller,
    ) -> Result<JobStatus, Failure> {
        let entry = server.conversations.find(&arguments.conversation_id)?.clone();
        let participant = entry.participant(&arguments.operator_id).ok_or_else(|| {
            let known: Vec<&str> = entry.runtime.participants.iter().map(external_id).collect();
            let body = Body::new(format!("unknown participant `{}`", arguments.operator_id));
            let help = format!("the participants are {}", known.join(", "));
            Failure::new(codes::PARTICIPANT_UNKNOWN, body.help(help))
        })?;
        let participant = participant.id.clone();
        let reply = match (arguments.post_reply, arguments.idempotency_key) {
            (true, key) => ReplyMode::Post(key.map(|key| idempotency_name(&key)).transpose()?),
            // Without a posted reply there is nothing that could exist twice.
            (false, _) => ReplyMode::ReturnOnly,
        };
        let work = |reporter: Arc<Reporter<Failure>>| async move {
            let Some(newest) = entry.conversation.newest_id().await? else {
                return Err(Failure::usage(
                    "the conversation has no message yet",
                    "post one with `post_message`",
                ));
            };
            let runtime = entry.reopen().await?;
            let request = Request {
                participant,
                substrate: entry.runtime.substrate.clone(),
                state: entry.runtime.state.clone(),
                newest,
                reply,
            };
            let reply = operate(&runtime, request, reporter).await;
            runtime.seal().await;
            runtime.close().await;
            entry.conversation.notify_appended();
            let reply = reply?;
            let reply = Said { text: reply.text, message_id: reply.turn.map(|turn| turn.to_string()) };
            Ok(serde_json::to_value(reply).expect("texts are JSON"))
        };
        server.jobs.start(arguments.wait_ms.duration(), caller, Residue::Nothing, work).await
    }
}
