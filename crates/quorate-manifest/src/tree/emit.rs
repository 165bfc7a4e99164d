//! Writes a tree as YAML that parses as the same tree.

use std::fmt::Write as _;

use quorate_diagnostics::invisible::find_invisible;

use super::{Kind, Node, yaml};

/// A list of words with a longer line is written with one item per line.
const MAX_WIDTH: usize = 100;

/// The tree as YAML in block style, with short lists of words on one line and without null keys.
pub fn emit(node: &Node) -> String {
    let mut out = String::new();
    match &node.kind {
        Kind::Map(_) | Kind::Seq(_) if !is_empty(node) => block(node, 0, &mut out),
        _ => {
            inline(node, &mut out);
            out.push('\n');
        }
    }
    out
}

fn is_empty(node: &Node) -> bool {
    match &node.kind {
        Kind::Map(entries) => entries.iter().all(|entry| entry.value.kind == Kind::Null),
        Kind::Seq(items) => items.is_empty(),
        _ => false,
    }
}

fn block(node: &Node, indent: usize, out: &mut String) {
    match &node.kind {
        Kind::Map(entries) => {
            for entry in entries.iter().filter(|entry| entry.value.kind != Kind::Null) {
                pad(indent, out);
                out.push_str(&scalar(&entry.key));
                out.push(':');
                value(&entry.value, indent, out);
            }
        }
        Kind::Seq(items) => {
            for item in items {
                pad(indent, out);
                out.push('-');
                match &item.kind {
                    Kind::Map(_) | Kind::Seq(_) if !is_empty(item) => {
                        let start = out.len();
                        block(item, indent + 2, out);
                        // The first key is on the dash's line.
                        out.replace_range(start..start + indent + 1, "");
                    }
                    _ => value(item, indent, out),
                }
            }
        }
        _ => {}
    }
}

/// Writes the value after a key or a dash.
fn value(node: &Node, indent: usize, out: &mut String) {
    let mut line = String::new();
    match &node.kind {
        Kind::Map(_) if !is_empty(node) => {
            out.push('\n');
            return block(node, indent + 2, out);
        }
        Kind::Seq(items) if !is_empty(node) => {
            let words = items.iter().all(|item| !matches!(item.kind, Kind::Map(_) | Kind::Seq(_)));
            inline(node, &mut line);
            if !words || line.len() + indent > MAX_WIDTH {
                out.push('\n');
                return block(node, indent + 2, out);
            }
        }
        Kind::Str(text) if text.trim_end_matches('\n').contains('\n') && fits_literal(text) => {
            return literal(text, indent, out);
        }
        _ => inline(node, &mut line),
    }
    out.push(' ');
    out.push_str(&line);
    out.push('\n');
}

/// Whether a text can be a literal block: no carriage returns or other control characters, no blanks at line starts that
/// would count as indentation.
fn fits_literal(text: &str) -> bool {
    let plain = text.chars().all(|c| {
        c == '\n' || (!c.is_control() && !matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{FEFF}'))
    });
    plain
        && find_invisible(text).next().is_none()
        && text.ends_with('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\n', '\t'])
}

fn literal(text: &str, indent: usize, out: &mut String) {
    out.push_str(" |\n");
    for line in text.lines() {
        if !line.is_empty() {
            pad(indent + 2, out);
            out.push_str(line);
        }
        out.push('\n');
    }
}

fn inline(node: &Node, out: &mut String) {
    match &node.kind {
        Kind::Null => out.push_str("null"),
        Kind::Bool(value) => {
            let _ = write!(out, "{value}");
        }
        Kind::Int(value) => {
            let _ = write!(out, "{value}");
        }
        Kind::Float(float) => out.push_str(&float.text),
        Kind::Str(text) => out.push_str(&scalar(text)),
        Kind::Seq(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                inline(item, out);
            }
            out.push(']');
        }
        // Only empty collections get here.
        Kind::Map(_) => out.push_str("{}"),
    }
}

fn pad(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// A text as a plain scalar if every YAML parser reads it as this text, else in double quotes.
fn scalar(text: &str) -> String {
    let plain = !text.is_empty()
        && text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_'))
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && text.chars().all(|c| {
            c.is_alphanumeric()
                || matches!(
                    c,
                    ' ' | '-' | '_' | '.' | '/' | ':' | '(' | ')' | '@' | '+' | '=' | '\'' | ';' | '%' | '#'
                )
        })
        && !matches!(text, "..." | "---")
        && find_invisible(text).next().is_none()
        && matches!(yaml::plain_kind(text), Some(Kind::Str(_)));
    if plain { text.to_owned() } else { quoted(text) }
}

/// A text in double quotes. JSON's escapes are valid YAML; characters that YAML forbids and invisible characters are also escaped.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    let mut invisible = find_invisible(text).peekable();
    for (at, c) in text.char_indices() {
        let is_invisible = invisible.next_if(|(found, _)| *found == at).is_some();
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_invisible
                || c.is_control()
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}') =>
            {
                let _ = match u32::from(c) {
                    wide @ 0x1_0000.. => write!(out, "\\U{wide:08X}"),
                    narrow => write!(out, "\\u{narrow:04X}"),
                };
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests;
