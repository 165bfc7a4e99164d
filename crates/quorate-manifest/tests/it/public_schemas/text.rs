//! JSON documents as YAML texts, in two ways: as Quorate's emitter writes them, and as JSON, which is YAML's flow style.

use std::fmt::Write as _;

use quorate_manifest::tree::{Entry, Float, Kind, Node, emit, yaml};
use serde_json::Value;

/// The notation of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// In the form of Quorate's emitter, which omits keys without a value.
    Emitted,
    /// JSON.
    Json,
}

/// A document as a text, and the tree that Quorate parses from it: the document without keys that have no value, which is
/// `bare`.
pub(crate) fn read(document: &Value, bare: &Value, style: Style) -> (String, Node) {
    let text = match style {
        Style::Emitted => emit(&tree(document)),
        Style::Json => {
            let mut text = String::new();
            flow(document, &mut text);
            text
        }
    };
    let (root, problems) = yaml::parse(&text);
    assert!(problems.is_empty(), "a text that is not read: {problems:?}\n{text}");
    let root = root.expect("a tree, since parsing found no problems");
    assert_eq!(root.to_json(), *bare, "a text that is read as something else:\n{text}");
    (text, root)
}

/// The document without the keys that have no value (M3).
pub(crate) fn without_nulls(document: &Value) -> Value {
    match document {
        Value::Object(entries) => {
            let present = entries.iter().filter(|(_, value)| !value.is_null());
            Value::Object(present.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

fn tree(value: &Value) -> Node {
    let kind = match value {
        Value::Null => Kind::Null,
        Value::Bool(value) => Kind::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Kind::Int(whole),
            (None, value) => {
                Kind::Float(Float { value: value.unwrap_or_default(), text: number.to_string().into() })
            }
        },
        Value::String(text) => Kind::Str(text.clone()),
        Value::Array(items) => Kind::Seq(items.iter().map(tree).collect()),
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| Entry {
                key: key.clone(),
                key_span: 0..0,
                value: tree(value),
            };
            Kind::Map(entries.iter().map(entry).collect())
        }
    };
    Node::new(kind, 0..0)
}

fn flow(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => quoted(text, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                flow(item, out);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            out.push('{');
            for (at, (key, value)) in entries.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                quoted(key, out);
                out.push_str(": ");
                flow(value, out);
            }
            out.push('}');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

/// YAML allows fewer characters in a text than JSON does.
fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{FEFF}') => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
