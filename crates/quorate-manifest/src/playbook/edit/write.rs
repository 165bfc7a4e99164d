//! Writes values as YAML, in flow or block style. Text is plain only if parsers of YAML 1.1 and 1.2 both read it as this text.

use std::fmt::Write as _;

use serde_json::Value;

use super::Error;
use crate::tree::{Entry, Float, Kind, Node, yaml};

/// The indentation of a key's block, relative to the key.
pub(super) const INDENT: usize = 2;

/// A list of words with a longer line is written in block style.
const MAX_WIDTH: usize = 100;

/// A JSON value as a tree, without null keys, which count as absent (M3).
pub(super) fn node(value: &Value) -> Result<Node, Error> {
    let kind = match value {
        Value::Null => Kind::Null,
        Value::Bool(value) => Kind::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Kind::Int(whole),
            (None, Some(value)) if number.is_f64() => {
                Kind::Float(Float { value, text: number.to_string().into() })
            }
            _ => return Err(Error::new(format!("{number} is too large a number"))),
        },
        Value::String(text) => Kind::Str(text.clone()),
        Value::Array(items) => Kind::Seq(items.iter().map(node).collect::<Result<_, _>>()?),
        Value::Object(map) => {
            let present = map.iter().filter(|(_, value)| !value.is_null());
            let entry = |(key, value): (&String, &Value)| {
                Ok(Entry { key: key.clone(), key_span: 0..0, value: node(value)? })
            };
            Kind::Map(present.map(entry).collect::<Result<_, Error>>()?)
        }
    };
    Ok(Node::new(kind, 0..0))
}

/// Whether a value is a non-empty list or mapping.
pub(super) fn is_block(node: &Node) -> bool {
    match &node.kind {
        Kind::Map(entries) => !entries.is_empty(),
        Kind::Seq(items) => !items.is_empty(),
        _ => false,
    }
}

/// Writes a list or a mapping in block style at a column; each line ends in a line break.
pub(super) fn block(node: &Node, column: usize, out: &mut String) {
    match &node.kind {
        Kind::Map(entries) => {
            for entry in entries {
                pad(column, out);
                out.push_str(&key(&entry.key));
                out.push(':');
                beside(&entry.value, column, out);
            }
        }
        Kind::Seq(items) => {
            for item in items {
                pad(column, out);
                out.push('-');
                if is_block(item) {
                    let start = out.len();
                    block(item, column + INDENT, out);
                    // The first key is on the dash's line.
                    out.replace_range(start..start + column + 1, "");
                } else {
                    beside(item, column, out);
                }
            }
        }
        _ => {}
    }
}

/// Writes the value after a key's colon or a dash, to the end of its last line.
pub(super) fn beside(node: &Node, column: usize, out: &mut String) {
    match &node.kind {
        Kind::Str(text) if fits_literal(text) => return literal(text, column + INDENT, out),
        _ if is_block(node) && !is_short(node, column) => {
            out.push('\n');
            return block(node, column + INDENT, out);
        }
        _ => {}
    }
    out.push(' ');
    out.push_str(&match &node.kind {
        Kind::Str(text) => scalar(text),
        _ => flow(node),
    });
    out.push('\n');
}

/// A value in flow style.
pub(super) fn flow(node: &Node) -> String {
    match &node.kind {
        Kind::Null => "null".to_owned(),
        Kind::Bool(value) => value.to_string(),
        Kind::Int(value) => value.to_string(),
        Kind::Float(float) => float.text.to_string(),
        Kind::Str(text) => {
            if is_plain_in_flow(text) {
                text.clone()
            } else {
                quoted(text)
            }
        }
        Kind::Seq(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Kind::Map(entries) => {
            let entry = |entry: &Entry| format!("{}: {}", key(&entry.key), flow(&entry.value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

/// A value on one line, after a key.
pub(super) fn line(node: &Node) -> String {
    match &node.kind {
        Kind::Str(text) => scalar(text),
        _ => flow(node),
    }
}

/// A text after a key.
pub(super) fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

/// A text with the quotes of the text that it replaces. A plain date stays plain.
pub(super) fn in_style_of(old: &str, text: &str) -> String {
    let can_be_single_quoted = text.chars().all(|c| !c.is_control() && !is_unsafe_char(c));
    match old.chars().next() {
        Some('"') => quoted(text),
        Some('\'') if can_be_single_quoted => format!("'{}'", text.replace('\'', "''")),
        Some('0'..='9') if is_time(old) && is_time(text) && reads_back(text) => text.to_owned(),
        _ => scalar(text),
    }
}

pub(super) fn key(text: &str) -> String {
    if is_plain_in_flow(text) { text.to_owned() } else { quoted(text) }
}

fn is_short(node: &Node, column: usize) -> bool {
    let Kind::Seq(items) = &node.kind else { return false };
    let words = items.iter().all(|item| !matches!(item.kind, Kind::Map(_) | Kind::Seq(_)));
    words && flow(node).len() + column <= MAX_WIDTH
}

/// Whether a text of several lines can be a literal block: it ends in one line break, and does not start with a blank that
/// would count as indentation.
fn fits_literal(text: &str) -> bool {
    let lines = text.trim_end_matches('\n');
    lines.contains('\n')
        && text.len() == lines.len() + 1
        && !text.starts_with([' ', '\n'])
        && text.chars().all(|c| c == '\n' || (!c.is_control() && !is_unsafe_char(c)))
}

fn literal(text: &str, column: usize, out: &mut String) {
    out.push_str(" |\n");
    for line in text.lines() {
        if !line.is_empty() {
            pad(column, out);
            out.push_str(line);
        }
        out.push('\n');
    }
}

fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '_'))
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.contains(|c: char| c.is_control() || is_unsafe_char(c))
        && !is_yaml11_special(text)
        && reads_back(text)
}

fn is_plain_in_flow(text: &str) -> bool {
    !text.contains([',', '[', ']', '{', '}', '"']) && is_plain(text)
}

/// Whether Quorate's parser reads a plain text as this text.
fn reads_back(text: &str) -> bool {
    yaml::parse(text).0.is_some_and(|node| node.as_str() == Some(text))
}

/// Whether a YAML 1.1 parser reads a text as a boolean, a number or a date.
fn is_yaml11_special(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let word = matches!(lower.as_str(), "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null");
    let digits =
        |c: char| c.is_ascii_hexdigit() || matches!(c, '_' | '.' | ':' | '+' | '-' | 'x' | 'o' | ',');
    word || is_time(text) || (text.starts_with(|c: char| c.is_ascii_digit()) && lower.chars().all(digits))
}

fn is_time(text: &str) -> bool {
    let marks =
        |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | ':' | '.' | 't' | 'T' | 'z' | 'Z' | ' ');
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(marks)
        && !text.contains(": ")
        && !text.ends_with([' ', ':'])
}

/// Whether YAML forbids an unescaped character, or editors would change it.
fn is_unsafe_char(c: char) -> bool {
    matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}')
}

/// A text in double quotes. JSON's escapes are valid YAML; characters that YAML forbids are escaped, too.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || is_unsafe_char(c) => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn pad(column: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', column));
}
