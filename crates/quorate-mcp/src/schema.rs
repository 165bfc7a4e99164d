//! The schemas of tools' arguments and results, in a form that every client supports: no refs, no Rust number formats, and
//! optional values without null.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

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
    let object = schema.as_object_mut().map(std::mem::take).unwrap_or_default();
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
