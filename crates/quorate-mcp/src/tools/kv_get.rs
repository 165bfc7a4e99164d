//! `kv_get`: reads an entry of the state store.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ServerState;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};

pub(super) struct KvGet;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The entry: a participant's id, or any other text
    key: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Entry {
    /// The entry; {} if there is none.
    value: Map<String, Value>,
}

impl Tool for KvGet {
    const NAME: &'static str = "kv_get";
    const TITLE: &'static str = "Read state";
    const ABOUT: &'static str =
        "An entry of the state store of the first manifest: what a participant remembers.";
    const EFFECT: Effect = Effect::Reads;
    type Arguments = Arguments;
    type Output = Entry;

    async fn call(server: &Arc<ServerState>, arguments: Arguments, _: &Caller) -> Result<Entry, Failure> {
        let state = &server.conversations.first()?.runtime.state;
        Ok(Entry { value: state.read(&arguments.key).await? })
    }
}
