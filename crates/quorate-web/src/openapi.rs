//! The OpenAPI 3.1 document, from the table of routes and the types that they parse and give.

use quorate::service::runs;
use quorate::service::schemas::Output;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::api::records::ShownRecord;
use crate::endpoint::Route;

/// Where schemas are in the document.
const COMPONENTS: &str = "#/components/schemas/";

/// Any JSON object.
pub(crate) fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object"})
}

/// A point in time, as `service/since.rs` reads it; empty for none, as forms send it.
pub(crate) fn since(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "anyOf": [{"pattern": "^(|all|[0-9]{1,9}[mhdw])$"}, {"format": "date"}, {"format": "date-time"}],
    })
}

/// A verdict, an outcome or a state by which runs are listed; empty for all, as forms send it.
pub(crate) fn verdict(_: &mut SchemaGenerator) -> Schema {
    words(&runs::VERDICTS)
}

/// A mode by which runs are listed; empty for all.
pub(crate) fn mode(_: &mut SchemaGenerator) -> Schema {
    words(&runs::MODES)
}

fn words(words: &[&str]) -> Schema {
    let words: Vec<&str> = words.iter().copied().chain([""]).collect();
    json_schema!({"type": "string", "enum": words})
}

/// An event of a stream whose data is JSON.
pub(crate) fn event(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "required": ["event", "data"],
        "properties": {
            "event": {"type": "string"},
            "id": {"type": "string"},
            "data": {"type": "string", "contentMediaType": "application/json"},
        },
    })
}

/// An event of a stream of records.
pub(crate) fn record_event(schemas: &mut SchemaGenerator) -> Schema {
    let record = schemas.subschema_for::<ShownRecord>();
    json_schema!({
        "type": "object",
        "required": ["event", "data"],
        "properties": {
            "event": {"enum": ["record", "end"]},
            "id": {"description": "The record's number", "type": "string"},
            "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": record},
        },
    })
}

/// The report of a run, as `quorate show --format json` prints it.
pub(crate) fn report_schema(_: &mut SchemaGenerator) -> Schema {
    let of = |output: Output| json!({"$ref": format!("{COMPONENTS}{}", name(output))});
    json_schema!({"oneOf": [of(Output::Review), of(Output::Convene)]})
}

/// The description of these routes.
pub(crate) fn document(routes: &[Route]) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut schemas = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.word()] = route.describe(&mut schemas);
    }
    let mut components = schemas.take_definitions(true);
    for output in [Output::Review, Output::Convene] {
        add_published(&mut components, output);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Quorate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The runs of a workspace. `quorate serve` prints the address and the bearer token.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    })
}

/// The name of a published schema in the document.
fn name(output: Output) -> &'static str {
    match output {
        Output::Review => "ReviewReport",
        Output::Convene => "ConveneReport",
        Output::Reviews => "ReviewReports",
        Output::Estimate => "Estimate",
        Output::Plan => "Plan",
        Output::Compare => "Comparison",
        Output::Audit => "AuditReport",
        Output::Runs => "Runs",
        Output::Verify => "Verification",
    }
}

/// Adds a schema that `quorate schema` publishes, and its definitions under names of their own.
fn add_published(components: &mut Map<String, Value>, output: Output) {
    let mut schema = output.json();
    let name = name(output);
    let mut definitions = Map::new();
    if let Some(schema) = schema.as_object_mut() {
        schema.retain(|key, _| !matches!(key.as_str(), "$id" | "$schema"));
        if let Some(Value::Object(inner)) = schema.remove("$defs") {
            definitions = inner;
        }
    }
    let prefix = format!("{COMPONENTS}{name}.");
    move_refs(&mut schema, &prefix);
    components.insert(name.to_owned(), schema);
    for (key, mut definition) in definitions {
        move_refs(&mut definition, &prefix);
        components.insert(format!("{name}.{key}"), definition);
    }
}

/// Points references to `$defs` at the components.
fn move_refs(schema: &mut Value, prefix: &str) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::String(target)) = object.get_mut("$ref")
                && let Some(key) = target.strip_prefix("#/$defs/")
            {
                *target = format!("{prefix}{key}");
            }
            object.values_mut().for_each(|value| move_refs(value, prefix));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_refs(item, prefix)),
        _ => {}
    }
}
