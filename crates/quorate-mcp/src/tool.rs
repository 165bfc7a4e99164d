//! Defines a tool: its name, the types of its arguments and result, and its function. The types determine the schemas and
//! the parsing of arguments.

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

/// The effect of a call on stored data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It reads.
    Reads,
    /// It adds data and keeps what exists.
    Adds,
    /// It replaces existing data.
    Replaces,
}

/// A tool. One file each in `tools/`.
pub(super) trait Tool: 'static {
    const NAME: &'static str;
    /// Shown to users.
    const TITLE: &'static str;
    /// The description for a model.
    const ABOUT: &'static str;
    const EFFECT: Effect;
    type Arguments: DeserializeOwned + JsonSchema + Send;
    /// Serializes to an object.
    type Output: Serialize + JsonSchema;

    fn call(
        server: &Arc<ServerState>,
        arguments: Self::Arguments,
        caller: &Caller,
    ) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}

/// The result of a call; an error of the protocol if the call does not fit the tool.
type CallResult = Result<CallToolResult, ErrorData>;

type CallFuture<'a> = Pin<Box<dyn Future<Output = CallResult> + Send + 'a>>;

/// A tool without its types.
pub(super) struct ToolEntry {
    pub(super) name: &'static str,
    pub(super) effect: Effect,
    /// Its entry in `tools/list`.
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
        server: &Arc<ServerState>,
        arguments: JsonObject,
        caller: &Caller,
    ) -> CallResult {
        (self.call)(server, arguments, caller).await
    }
}

fn call_tool<'a, T: Tool>(
    server: &'a Arc<ServerState>,
    arguments: JsonObject,
    caller: &'a Caller,
) -> CallFuture<'a> {
    Box::pin(async move {
        let redacted = &server.environment.redactor;
        let result = match read(T::NAME, arguments) {
            Ok(arguments) => T::call(server, arguments, caller).await,
            Err(failure) => Err(failure),
        };
        match result.map(|output| serde_json::to_value(&output).expect("what tools give are plain objects")) {
            Ok(output) => Ok(CallToolResult::structured(redacted.redact_json(output))),
            Err(failure) if failure.malformed => Err(failure.error(redacted)),
            Err(failure) => Ok(failure.result(redacted)),
        }
    })
}

/// Parses arguments; an error names the one that cannot be parsed.
fn read<T: DeserializeOwned>(tool: &str, arguments: JsonObject) -> Result<T, Failure> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        let cause = error.into_inner();
        let message = match path.as_str() {
            "." => format!("`{tool}`: {cause}"),
            path => format!("`{tool}`: the argument `{path}`: {cause}"),
        };
        Failure::malformed(message, format!("`tools/list` shows the schema of what `{tool}` takes"))
    })
}
