//! The schemas of what tools take and give, in the words that every client knows: no refs, no formats of Rust's numbers,
//! and what may be left out is not said to be null as well.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// Which way a value goes.
#[derive(Clone, Copy)]
pub(super) enum Direction {
    Input,
    Output,
}

/// The schema of a type, all in one piece.
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

/// Says it without null and without formats of numbers. `true` becomes `{}`, which is the same.
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
            all.retain(|one| *one != null);
        }
    }
    if let Some(Value::Array(types)) = schema.get_mut("type")
        && let [only] = types.as_mut_slice()
    {
        let only = only.take();
        schema.insert("type".to_owned(), only);
    }
    let Some(Value::Array(any)) = schema.get_mut("anyOf") else { return };
    any.retain(|one| one.get("type") != Some(&Value::from("null")));
    if let [Value::Object(only)] = any.as_mut_slice() {
        let only = std::mem::take(only);
        schema.remove("anyOf");
        for (key, value) in only {
            schema.entry(key).or_insert(value);
        }
    }
}
