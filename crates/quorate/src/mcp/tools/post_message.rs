//! `post_message`: appends to a conversation.

use std::sync::Arc;

use quorate_kernel::clock::rfc3339;
use quorate_kernel::conversation::{NewTurn, Stamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::mcp::Served;
use crate::mcp::caller::Caller;
use crate::mcp::failure::Failure;
use crate::mcp::tool::{Effect, Tool};
use crate::service::runtime::talk;

/// The key of a message's metadata that holds a runtime's stamp.
pub(super) const STAMP: &str = "quorate";

/// The runtime of a message that was posted with a key and by no runtime. No manifest's id has a colon.
const NO_RUNTIME: &str = "mcp:post_message";

pub(super) struct PostMessage;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// The conversation
    conversation_id: String,
    /// What is said
    content: String,
    /// Who says it: a participant's id or operator id, or any other name without white space; user unless said
    as_operator_id: Option<String>,
    /// A message is kept once for each key: the second one gets the first back
    idempotency_key: Option<String>,
    /// What is kept with it
    metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Posted {
    /// The message's id.
    id: String,
    /// When it was kept, as RFC 3339.
    timestamp: String,
    /// Whether a message with this key was there already.
    duplicate: bool,
}

impl Tool for PostMessage {
    const NAME: &'static str = "post_message";
    const TITLE: &'static str = "Post a message";
    const ABOUT: &'static str = "Appends a message to a conversation. Nobody is asked to answer by it: a runtime that \
        runs over the conversation does that, or `run_operator`.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = Arguments;
    type Output = Posted;

    async fn call(served: &Arc<Served>, given: Arguments, _caller: &Caller) -> Result<Posted, Failure> {
        let offered = served.conversations.find(&given.conversation_id)?;
        let by = match given.as_operator_id.as_deref() {
            Some(id) => offered.participant(id).map_or(id, |participant| &participant.id),
            None => talk::ANYBODY,
        };
        let (meta, stamp) = stamped(given.metadata.unwrap_or_default(), given.idempotency_key)?;
        talk::sayable(&given.content, by)?;
        let turn = NewTurn {
            participant: by.into(),
            content: given.content.into(),
            timestamp: rfc3339(served.environment.clock.now_ms()),
            meta,
            stamp,
        };
        let appended = offered.runtime.substrate.append(turn).await?;
        offered.conversation.appended();
        Ok(Posted {
            id: appended.turn.id.to_string(),
            timestamp: appended.turn.timestamp.to_string(),
            duplicate: !appended.fresh,
        })
    }
}

/// What a message carries besides its words: its author's metadata, and its key. A runtime elsewhere gives its whole
/// stamp, so that it can tell from the conversation alone what it has answered.
fn stamped(
    mut meta: Map<String, Value>,
    key: Option<String>,
) -> Result<(Map<String, Value>, Option<Stamp>), Failure> {
    let Some(key) = key else {
        // Without its key a stamp ties nothing.
        meta.remove(STAMP);
        return Ok((meta, None));
    };
    if key.is_empty() || key.contains(char::is_whitespace) {
        return Err(Failure::usage("`idempotencyKey` is empty or has white space", "use a UUID"));
    }
    let given: Option<Stamp> = meta.remove(STAMP).and_then(|stamp| serde_json::from_value(stamp).ok());
    let stamp = given.filter(|stamp| *stamp.key == key).unwrap_or_else(|| Stamp {
        key: key.into(),
        runtime: NO_RUNTIME.into(),
        trigger: "".into(),
        selected: Vec::new(),
        state: None,
    });
    Ok((meta, Some(stamp)))
}
