//! Values as YAML: in one line, or one entry below the other. Text is plain only where readers of YAML 1.1 and of 1.2
//! both take it for that text.

use std::fmt::Write as _;

use serde_json::Value;

use super::Error;
use crate::tree::{Entry, Float, Kind, Node, yaml};

/// How much deeper what belongs to a key stands.
pub(super) const INDENT: usize = 2;

/// How long a list of words may get on one line.
const MAX_WIDTH: usize = 100;

/// A JSON value as a tree. Keys without a value count as absent (M3) and are left out.
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

/// Whether a value takes lines of its own: a list or a mapping that holds something.
pub(super) fn is_block(node: &Node) -> bool {
    match &node.kind {
        Kind::Map(entries) => !entries.is_empty(),
        Kind::Seq(items) => !items.is_empty(),
        _ => false,
    }
}

/// A list or a mapping one below the other, from this column on; each line ends.
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
                    // The first key stands beside the dash.
                    out.replace_range(start..start + column + 1, "");
                } else {
                    beside(item, column, out);
                }
            }
        }
        _ => {}
    }
}

/// What follows a key's colon or a dash in this column, to the end of its last line.
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

/// A value in one line that may stand in braces and brackets.
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

/// A value in one line, where a text stands beside a key.
pub(super) fn line(node: &Node) -> String {
    match &node.kind {
        Kind::Str(text) => scalar(text),
        _ => flow(node),
    }
}

/// A text beside a key.
pub(super) fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

/// A text in place of another, in the quotes that the other has. A date that its author left plain stays plain.
pub(super) fn in_style_of(old: &str, text: &str) -> String {
    let apostrophes = text.chars().all(|c| !c.is_control() && !is_unsafe_char(c));
    match old.chars().next() {
        Some('"') => quoted(text),
        Some('\'') if apostrophes => format!("'{}'", text.replace('\'', "''")),
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

/// Whether a text of several lines can stand as a literal: it ends in one line break, and no blank at its beginning would
/// be taken for indentation.
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

/// Whether a plain text is this text to our own reader.
fn reads_back(text: &str) -> bool {
    yaml::parse(text).0.is_some_and(|node| node.as_str() == Some(text))
}

/// What a reader of YAML 1.1 takes for a boolean, a number or a date.
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

/// What no text may hold as it is, or what an editor would change.
fn is_unsafe_char(c: char) -> bool {
    matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}')
}

/// JSON's escapes are YAML's; what YAML does not let stand in a text is escaped besides.
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
