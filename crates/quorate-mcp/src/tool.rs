//! What a tool is: a name, what it takes and gives as types, and what it does. Schemas, and the reading of arguments,
//! follow from the types.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{self, CallToolResult, ErrorData, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ServerState;
use super::caller::Caller;
use super::failure::Failure;
use super::schema::{self, Direction};

/// What a call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It looks.
    Reads,
    /// It adds, and what was there stays.
    Adds,
    /// It puts something in the place of what was there.
    Replaces,
}

/// A tool. One file each in `tools/`.
pub(super) trait Tool: 'static {
    /// Its name.
    const NAME: &'static str;
    /// What people see.
    const TITLE: &'static str;
    /// What a model is told of it.
    const ABOUT: &'static str;
    /// What a call does to the world.
    const EFFECT: Effect;
    /// What it takes.
    type Arguments: DeserializeOwned + JsonSchema + Send;
    /// What it gives; an object.
    type Output: Serialize + JsonSchema;

    /// Does it.
    fn call(
        served: &Arc<ServerState>,
        arguments: Self::Arguments,
        caller: &Caller,
    ) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}

/// What comes of a call: an error where it does not fit the tool.
type CallResult = Result<CallToolResult, ErrorData>;

type CallFuture<'a> = Pin<Box<dyn Future<Output = CallResult> + Send + 'a>>;

/// A tool, whatever it takes and gives.
pub(super) struct ToolEntry {
    pub(super) name: &'static str,
    pub(super) effect: Effect,
    /// As clients see it.
    pub(super) about: model::Tool,
    call: for<'a> fn(&'a Arc<ServerState>, JsonObject, &'a Caller) -> CallFuture<'a>,
}

impl ToolEntry {
    pub(super) fn of<T: Tool>() -> ToolEntry {
        let annotations = ToolAnnotations::with_title(T::TITLE)
            .read_only(T::EFFECT == Effect::Reads)
            .destructive(T::EFFECT == Effect::Replaces);
        let about = model::Tool::new(
            T::NAME,
            T::ABOUT,
            Arc::new(schema::schema_of::<T::Arguments>(Direction::Input)),
        )
        .with_title(T::TITLE)
        .with_raw_output_schema(Arc::new(schema::schema_of::<T::Output>(Direction::Output)))
        .with_annotations(annotations);
        ToolEntry { name: T::NAME, effect: T::EFFECT, about, call: call_tool::<T> }
    }

    pub(super) async fn call(
        &self,
        served: &Arc<ServerState>,
        arguments: JsonObject,
        caller: &Caller,
    ) -> CallResult {
        (self.call)(served, arguments, caller).await
    }
}

fn call_tool<'a, T: Tool>(
    served: &'a Arc<ServerState>,
    arguments: JsonObject,
    caller: &'a Caller,
) -> CallFuture<'a> {
    Box::pin(async move {
        let redacted = &served.environment.redactor;
        let given = match read(T::NAME, arguments) {
            Ok(arguments) => T::call(served, arguments, caller).await,
            Err(failure) => Err(failure),
        };
        match given.map(|given| serde_json::to_value(&given).expect("what tools give are plain objects")) {
            Ok(given) => Ok(CallToolResult::structured(redacted.redact_json(given))),
            Err(failure) if failure.malformed => Err(failure.error(redacted)),
            Err(failure) => Ok(failure.result(redacted)),
        }
    })
}

/// Reads arguments; the one that cannot be read is named.
fn read<T: DeserializeOwned>(tool: &str, arguments: JsonObject) -> Result<T, Failure> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        let why = error.into_inner();
        let message = match path.as_str() {
            "." => format!("`{tool}`: {why}"),
            path => format!("`{tool}`: the argument `{path}`: {why}"),
        };
        Failure::malformed(message, format!("`tools/list` shows the schema of what `{tool}` takes"))
    })
}
