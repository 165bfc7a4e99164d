//! Defines a tool: its name, the types of its arguments and result, and its function. The types determine the schemas and
//! the parsing of arguments. Schemas have a form that every client supports: no refs, no Rust number formats, and optional
//! values without null.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{self, CallToolResult, ErrorData, JsonObject, ToolAnnotations};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::ServerState;
use super::card::CardUse;
use super::conversations::Caller;
use super::failure::Failure;

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

/// A tool. Its fields are the arguments.
pub(super) trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    /// Shown to users.
    const TITLE: &'static str;
    /// The description for a model.
    const ABOUT: &'static str;
    const EFFECT: Effect;
    /// Whether a call may take longer than clients wait; it is then a task for those that know tasks.
    const IS_LONG: bool = false;
    const CARD: CardUse = CardUse::None;
    /// Serializes to an object.
    type Output: Serialize + JsonSchema;

    fn call(
        self,
        server: &Arc<ServerState>,
        caller: &Caller,
    ) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}

/// The result of a call; an error of the protocol if the call does not fit the tool.
pub(super) type CallResult = Result<CallToolResult, ErrorData>;

pub(super) type CallFuture<'a> = Pin<Box<dyn Future<Output = CallResult> + Send + 'a>>;

pub(super) type Call = for<'a> fn(&'a Arc<ServerState>, JsonObject, &'a Caller) -> CallFuture<'a>;

/// A tool without its types.
pub(super) struct ToolEntry {
    pub(super) name: &'static str,
    pub(super) effect: Effect,
    pub(super) card: CardUse,
    /// Its entry in `tools/list` for clients without cards.
    pub(super) about: model::Tool,
    pub(super) is_long: bool,
    pub(super) call: Call,
}

impl ToolEntry {
    pub(super) fn of<T: Tool>() -> ToolEntry {
        let annotations = ToolAnnotations::with_title(T::TITLE)
            .read_only(T::EFFECT == Effect::Reads)
            .destructive(T::EFFECT == Effect::Replaces);
        let about = model::Tool::new(T::NAME, T::ABOUT, Arc::new(schema_of::<T>(Direction::Input)))
            .with_title(T::TITLE)
            .with_raw_output_schema(Arc::new(schema_of::<T::Output>(Direction::Output)))
            .with_annotations(annotations);
        let (card, is_long) = (T::CARD, T::IS_LONG);
        ToolEntry { name: T::NAME, effect: T::EFFECT, card, about, is_long, call: call_tool::<T> }
    }

    /// Whether a client is offered it: one without cards does not see the tools of the card.
    pub(super) fn is_offered(&self, has_cards: bool) -> bool {
        has_cards || self.card != CardUse::Calls
    }
}

fn call_tool<'a, T: Tool>(
    server: &'a Arc<ServerState>,
    arguments: JsonObject,
    caller: &'a Caller,
) -> CallFuture<'a> {
    Box::pin(async move {
        let quorate = &server.quorate;
        let result = match read::<T>(arguments) {
            Ok(tool) => tool.call(server, caller).await,
            Err(failure) => Err(failure),
        };
        match result.map(|output| serde_json::to_value(&output).expect("what tools give are plain objects")) {
            Ok(output) => Ok(CallToolResult::structured(quorate.redact_json(output))),
            Err(failure) if failure.malformed => Err(failure.error(quorate)),
            Err(failure) => Ok(failure.result(quorate)),
        }
    })
}

/// Parses arguments; an error names the one that cannot be parsed.
fn read<T: Tool>(arguments: JsonObject) -> Result<T, Failure> {
    let tool = T::NAME;
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

/// Whether a schema is for input or output.
#[derive(Clone, Copy)]
pub(super) enum Direction {
    Input,
    Output,
}

/// The schema of a type, without refs.
pub(super) fn schema_of<T: JsonSchema>(side: Direction) -> Map<String, Value> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    if matches!(side, Direction::Output) {
        settings = settings.for_serialize();
    }
    let settings = settings.with_transform(RecursiveTransform(simplify));
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let mut object = schema.as_object_mut().map(std::mem::take).unwrap_or_default();
    if matches!(side, Direction::Input) {
        // Clients see the same title on every tool.
        object.insert("title".to_owned(), Value::from("Arguments"));
    }
    debug_assert_eq!(object.get("type").and_then(Value::as_str), Some("object"), "{object:?}");
    object
}

/// Removes null and number formats. `true` becomes `{}`, which is equivalent.
fn simplify(schema: &mut Schema) {
    let schema = schema.ensure_object();
    let numeric = |format: &str| {
        format.starts_with("int") || format.starts_with("uint") || matches!(format, "double" | "float")
    };
    schema.retain(|key, value| match key.as_str() {
        "format" => !value.as_str().is_some_and(numeric),
        "default" => !value.is_null(),
        _ => true,
    });
    for (key, null) in [("type", Value::from("null")), ("enum", Value::Null)] {
        if let Some(Value::Array(all)) = schema.get_mut(key) {
            all.retain(|value| *value != null);
        }
    }
    if let Some(Value::Array(types)) = schema.get_mut("type")
        && let [only] = types.as_mut_slice()
    {
        let only = only.take();
        schema.insert("type".to_owned(), only);
    }
    let Some(Value::Array(any)) = schema.get_mut("anyOf") else { return };
    any.retain(|schema| schema.get("type") != Some(&Value::from("null")));
    if let [Value::Object(only)] = any.as_mut_slice() {
        let only = std::mem::take(only);
        schema.remove("anyOf");
        for (key, value) in only {
            schema.entry(key).or_insert(value);
        }
    }
}
