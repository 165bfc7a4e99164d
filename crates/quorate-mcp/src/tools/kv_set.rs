//! `kv_set`: replaces an entry of the state store.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ServerState;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};

pub(super) struct KvSet;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The entry: a participant's id, or any other text
    key: String,
    /// The new value, which replaces the whole entry
    value: Map<String, Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Done {}

impl Tool for KvSet {
    const NAME: &'static str = "kv_set";
    const TITLE: &'static str = "Write state";
    const ABOUT: &'static str = "Replaces an entry of the state store of the first manifest.";
    const EFFECT: Effect = Effect::Replaces;
    type Arguments = Arguments;
    type Output = Done;

    async fn call(server: &Arc<ServerState>, arguments: Arguments, _: &Caller) -> Result<Done, Failure> {
        server.conversations.first()?.runtime.state.write(&arguments.key, &arguments.value).await?;
        Ok(Done {})
    }
}
