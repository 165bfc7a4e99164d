//! The OpenAPI 3.1 document, from the table of routes and the types that they parse and give.

use quorate::runs;
use schemars::generate::{Contract, SchemaSettings};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::endpoint::{Route, Schemas};

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

/// The report of a run, as `quorate show --format json` prints it.
pub(crate) fn report_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"oneOf": PUBLISHED.map(|(_, name)| json!({"$ref": format!("{COMPONENTS}{name}")}))})
}

/// The description of these routes.
pub(crate) fn document(routes: &[Route]) -> Value {
    let generator = |contract: Contract| {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        settings.contract = contract;
        settings.into_generator()
    };
    // A field that an answer may omit is not required there, though a request with the same type must have it.
    let mut schemas =
        Schemas { taken: generator(Contract::Deserialize), given: generator(Contract::Serialize) };
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.word()] = route.describe(&mut schemas);
    }
    let mut components = schemas.taken.take_definitions(true);
    for (name, schema) in schemas.given.take_definitions(true) {
        let other = components.insert(name.clone(), schema.clone());
        debug_assert!(other.is_none_or(|other| other == schema), "{name} is taken and given in two forms");
    }
    for (schema, name) in PUBLISHED {
        add_published(&mut components, schema, name);
    }
    let mut document = json!({
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
    });
    remove_null_defaults(&mut document);
    document
}

/// Takes away the defaults that are null: an optional member is left out, and null does not fit its type.
fn remove_null_defaults(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|key, value| key != "default" || !value.is_null());
            object.values_mut().for_each(remove_null_defaults);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_null_defaults),
        _ => {}
    }
}

/// The published schemas of reports, and the name of each in the document.
const PUBLISHED: [(&str, &str); 2] = [("review", "ReviewReport"), ("convene", "ConveneReport")];

/// Adds a schema that `quorate schema` publishes, and its definitions under names of their own.
fn add_published(components: &mut Map<String, Value>, schema: &str, name: &str) {
    let mut schema = quorate::schemas::find(schema).unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes;

    /// Calls `see` with each object of a document and where it is.
    fn walk(value: &Value, at: &str, see: &mut impl FnMut(&str, &Map<String, Value>)) {
        match value {
            Value::Object(object) => {
                see(at, object);
                object.iter().for_each(|(key, value)| walk(value, &format!("{at}/{key}"), see));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(key, value)| walk(value, &format!("{at}/{key}"), see));
            }
            _ => {}
        }
    }

    #[test]
    fn nothing_is_null_by_default_and_every_reference_leads_somewhere() {
        let document = document(&routes::api(false));
        let (mut nulls, mut lost) = (Vec::new(), Vec::new());
        walk(&document, "", &mut |at, object| {
            if object.get("default").is_some_and(Value::is_null) {
                nulls.push(at.to_owned());
            }
            let target =
                object.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
            lost.extend(target.filter(|target| document.pointer(target).is_none()).map(str::to_owned));
        });
        assert_eq!((nulls, lost), (Vec::<String>::new(), Vec::<String>::new()));
    }

    #[test]
    fn what_a_turn_leaves_out_is_not_required_of_it() {
        let document = document(&routes::api(false));
        let turn = &document["components"]["schemas"]["ShownTurn"];
        assert_eq!(turn["properties"]["meta"]["type"], "object", "{turn}");
        let required = turn["required"].as_array().unwrap();
        assert!(required.contains(&json!("content")) && !required.contains(&json!("meta")), "{turn}");
    }
}
