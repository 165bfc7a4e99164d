//! Schemas that differ from a schema in one keyword.

use serde_json::{Value, json};

/// A place in a schema and the schema with one keyword changed there.
pub(crate) fn mutants(schema: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    below(schema, schema, "", &mut found);
    found
}

fn below(root: &Value, part: &Value, at: &str, found: &mut Vec<(String, Value)>) {
    let Some(keywords) = part.as_object() else { return };
    for (keyword, value) in keywords {
        let here = format!("{at}/{keyword}");
        let mut put = |what: &str, other: Option<Value>| {
            let mut mutant = root.clone();
            let above = mutant.pointer_mut(at).and_then(Value::as_object_mut).expect("a part of the schema");
            match other {
                Some(other) => drop(above.insert(keyword.clone(), other)),
                None => drop(above.remove(keyword)),
            }
            found.push((format!("{here} {what}"), mutant));
        };
        let without = |at: usize| {
            let mut rest = value.as_array().cloned().unwrap_or_default();
            rest.remove(at);
            json!(rest)
        };
        match keyword.as_str() {
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minimum" | "maximum" | "minProperties" | "exclusiveMinimum" => {
                let bound = value.as_i64().expect("a bound");
                put("one more", Some(json!(bound + 1)));
                if bound > 0 || keyword.ends_with("inimum") {
                    put("one less", Some(json!(bound - 1)));
                }
            }
            "pattern" => {
                let text = value.as_str().expect("a pattern");
                put("gone", None);
                put("from anywhere", Some(json!(text.trim_start_matches('^'))));
                put("to anywhere", Some(json!(text.trim_end_matches('$'))));
            }
            "enum" | "required" => {
                let many = value.as_array().expect("a list");
                for (at, one) in many.iter().enumerate() {
                    put(&format!("without {one}"), Some(without(at)));
                }
            }
            "const" | "type" | "uniqueItems" | "$ref" | "then" | "items" => put("gone", None),
            "additionalProperties" => put("other", Some(json!(*value == json!(false)))),
            "oneOf" | "anyOf" | "allOf" => {
                let many = value.as_array().expect("a list");
                for (at, one) in many.iter().enumerate() {
                    if many.len() > 1 {
                        put(&format!("without {one}"), Some(without(at)));
                    }
                }
            }
            _ => {}
        }
        match (keyword.as_str(), value) {
            ("properties" | "$defs", Value::Object(parts)) => {
                for (key, one) in parts {
                    below(root, one, &format!("{here}/{key}"), found);
                }
            }
            ("oneOf" | "anyOf" | "allOf", Value::Array(parts)) => {
                for (at, one) in parts.iter().enumerate() {
                    below(root, one, &format!("{here}/{at}"), found);
                }
            }
            ("items" | "additionalProperties" | "if" | "then" | "not", _) => below(root, value, &here, found),
            _ => {}
        }
    }
}
