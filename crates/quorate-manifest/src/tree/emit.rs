//! Writes a tree as YAML that parses as the same tree.

use std::fmt::Write as _;

use quorate_diagnostics::invisible::find_invisible;

use super::{Entry, Kind, Node, yaml};

/// The indentation of a key's block, relative to the key.
pub(crate) const INDENT: usize = 2;

/// A list of words with a longer line is written with one item per line.
const MAX_WIDTH: usize = 100;

/// The tree as YAML in block style, with short lists of words on one line and without null keys.
pub fn emit(node: &Node) -> String {
    let style = Style { is_plain };
    if !is_block(node) {
        return style.line(node) + "\n";
    }
    let mut out = String::new();
    style.block(node, 0, &mut out);
    out
}

/// Whether a value is a non-empty list or mapping.
pub(crate) fn is_block(node: &Node) -> bool {
    !node.items().is_empty() || present(node).next().is_some()
}

fn present(node: &Node) -> impl Iterator<Item = &Entry> {
    node.entries().iter().filter(|entry| entry.value.kind != Kind::Null)
}

/// How values are written.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    /// Whether a text needs no quotes.
    pub(crate) is_plain: fn(&str) -> bool,
}

impl Style {
    /// Writes a list or a mapping in block style at a column; each line ends in a line break.
    pub(crate) fn block(self, node: &Node, column: usize, out: &mut String) {
        for entry in present(node) {
            pad(column, out);
            out.push_str(&self.key(&entry.key));
            out.push(':');
            self.beside(&entry.value, column, out);
        }
        for item in node.items() {
            pad(column, out);
            out.push('-');
            if is_block(item) {
                let start = out.len();
                self.block(item, column + INDENT, out);
                // The first key is on the dash's line.
                out.replace_range(start..start + column + 1, "");
            } else {
                self.beside(item, column, out);
            }
        }
    }

    /// Writes the value after a key's colon or a dash, to the end of its last line.
    pub(crate) fn beside(self, node: &Node, column: usize, out: &mut String) {
        if let Some(text) = node.as_str().filter(|text| fits_literal(text)) {
            return literal(text, column + INDENT, out);
        }
        let is_word = |item: &Node| !matches!(item.kind, Kind::Map(_) | Kind::Seq(_));
        let words = !node.items().is_empty() && node.items().iter().all(is_word);
        let line = if words || !is_block(node) { self.line(node) } else { String::new() };
        if is_block(node) && (!words || line.len() + column > MAX_WIDTH) {
            out.push('\n');
            return self.block(node, column + INDENT, out);
        }
        out.extend([" ", &*line, "\n"]);
    }

    /// A value on one line, after a key.
    pub(crate) fn line(self, node: &Node) -> String {
        match node.as_str() {
            Some(text) if (self.is_plain)(text) => text.to_owned(),
            _ => self.flow(node),
        }
    }

    /// A value in flow style.
    pub(crate) fn flow(self, node: &Node) -> String {
        match &node.kind {
            Kind::Null => "null".to_owned(),
            Kind::Bool(value) => value.to_string(),
            Kind::Int(value) => value.to_string(),
            Kind::Float(float) => float.text.to_string(),
            Kind::Str(text) => self.key(text),
            Kind::Seq(items) => {
                format!("[{}]", items.iter().map(|item| self.flow(item)).collect::<Vec<_>>().join(", "))
            }
            Kind::Map(_) => {
                let entry = |entry: &Entry| format!("{}: {}", self.key(&entry.key), self.flow(&entry.value));
                format!("{{{}}}", present(node).map(entry).collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// A key, or a text in flow style.
    pub(crate) fn key(self, text: &str) -> String {
        let is_plain = !text.contains([',', '[', ']', '{', '}', '"']) && (self.is_plain)(text);
        if is_plain { text.to_owned() } else { quoted(text) }
    }
}

/// Whether a text can be a literal block: several lines, no carriage returns or other control characters, no blanks at line
/// starts that would count as indentation.
fn fits_literal(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
        && text.chars().all(|c| c == '\n' || (!c.is_control() && !is_unsafe_char(c)))
        && find_invisible(text).next().is_none()
        && text.ends_with('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\n', '\t'])
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

fn pad(column: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', column));
}

/// Whether every YAML parser reads a plain text as this text.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_'))
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && text.chars().all(|c| c.is_alphanumeric() || " -_./:()@+='';%#".contains(c))
        && !matches!(text, "..." | "---")
        && find_invisible(text).next().is_none()
        && matches!(yaml::plain_kind(text), Some(Kind::Str(_)))
}

/// Whether YAML forbids an unescaped character, or editors would change it.
pub(crate) fn is_unsafe_char(c: char) -> bool {
    matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}')
}

/// A text in double quotes. JSON's escapes are valid YAML; characters that YAML forbids and invisible characters are also escaped.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    let mut invisible = find_invisible(text).peekable();
    for (at, c) in text.char_indices() {
        let is_invisible = invisible.next_if(|(found, _)| *found == at).is_some();
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_invisible || c.is_control() || is_unsafe_char(c) => {
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
