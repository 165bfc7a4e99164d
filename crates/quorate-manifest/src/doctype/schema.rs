//! The JSON Schemas (2020-12) of the doctypes, generated from the Rust types of the manifests.

use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use super::Doctype;
use crate::json_schema::CompiledSchema;
use crate::{assembly, config, council, operator, pattern, persona, playbook, runtime};

/// The schema of a doctype; `None` for roles, which have only a body.
pub fn schema(doctype: Doctype) -> Option<Value> {
    let mut schema = match doctype {
        Doctype::Assembly => generate::<assembly::Assembly>(),
        Doctype::Persona => generate::<persona::Persona>(),
        Doctype::Playbook => generate::<playbook::Playbook>(),
        Doctype::Runtime => generate::<runtime::Runtime>(),
        Doctype::Operator => generate::<operator::Operator>(),
        Doctype::Council => generate::<council::schema::Council>(),
        Doctype::Config => generate::<config::schema::Configuration>(),
        Doctype::Role => return None,
    };
    clean_up(&mut schema);
    Some(schema)
}

/// The schema of a doctype, compiled once for validation.
pub fn compiled_schema(doctype: Doctype) -> Option<&'static CompiledSchema> {
    static SCHEMAS: [OnceLock<Option<CompiledSchema>>; Doctype::ALL.len()] = [const { OnceLock::new() }; 8];
    let at = Doctype::ALL.iter().position(|candidate| *candidate == doctype)?;
    let compile = || {
        let schema = schema(doctype)?;
        Some(CompiledSchema::parse(&schema).expect("generated schemas use only supported keywords"))
    };
    SCHEMAS[at].get_or_init(compile).as_ref()
}

fn generate<T: JsonSchema>() -> Value {
    SchemaGenerator::new(SchemaSettings::draft2020_12()).into_root_schema_for::<T>().to_value()
}

/// Adds `patternErrorMessage` to each pattern, and removes Rust-specific formats and null defaults.
fn clean_up(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(text) = object.get("pattern").and_then(Value::as_str).and_then(pattern_description) {
                object.insert("patternErrorMessage".to_owned(), Value::from(text));
            }
            let is_rust_format = |format: &Value| matches!(format.as_str(), Some("uint8" | "uint32"));
            if object.get("format").is_some_and(is_rust_format) {
                object.remove("format");
            }
            null_default(object);
            object.values_mut().for_each(clean_up);
        }
        Value::Array(items) => items.iter_mut().for_each(clean_up),
        _ => {}
    }
}

fn null_default(object: &mut Map<String, Value>) {
    if object.get("default") == Some(&Value::Null) {
        object.remove("default");
    }
}

fn pattern_description(text: &str) -> Option<&'static str> {
    pattern::ALL.iter().find(|pattern| pattern.text == text).map(|pattern| pattern.says)
}
