//! Makes the candidate patches of an edit.
//!
//! An entry in block style is the lines from its key to the end of its value. Comments below it that are indented deeper
//! belong to it; comments in its own column, and empty lines, belong to the next entry.

use std::ops::Range;

use serde_json::Value;

use super::{EditError, FileText, Patch};
use crate::format::orders::PLAYBOOK;
use crate::tree::emit::{self, INDENT, Style, is_block, is_unsafe_char};
use crate::tree::{Entry, Float, Kind, Node, yaml};

/// A JSON value as a tree, without null keys, which count as absent (M3).
pub(super) fn node(value: &Value) -> Result<Node, EditError> {
    let kind = match value {
        Value::Null => Kind::Null,
        Value::Bool(value) => Kind::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Kind::Int(whole),
            (None, Some(value)) if number.is_f64() => {
                Kind::Float(Float { value, text: number.to_string().into() })
            }
            _ => return Err(EditError::new(format!("{number} is too large a number"))),
        },
        Value::String(text) => Kind::Str(text.clone()),
        Value::Array(items) => Kind::Seq(items.iter().map(node).collect::<Result<_, _>>()?),
        Value::Object(map) => {
            let present = map.iter().filter(|(_, value)| !value.is_null());
            let entry = |(key, value): (&String, &Value)| {
                Ok(Entry { key: key.clone(), key_span: 0..0, value: node(value)? })
            };
            Kind::Map(present.map(entry).collect::<Result<_, EditError>>()?)
        }
    };
    Ok(Node::new(kind, 0..0))
}

/// A text with the quotes of the text that it replaces. A plain date stays plain.
fn in_style_of(old: &str, text: &str) -> String {
    let can_be_single_quoted = text.chars().all(|c| !c.is_control() && !is_unsafe_char(c));
    match old.chars().next() {
        Some('"') => emit::quoted(text),
        Some('\'') if can_be_single_quoted => format!("'{}'", text.replace('\'', "''")),
        Some('0'..='9') if is_time(old) && is_time(text) && reads_back(text) => text.to_owned(),
        _ => STYLE.line(&Node::new(Kind::Str(text.to_owned()), 0..0)),
    }
}

/// Plain text only if parsers of YAML 1.1 and 1.2 both read it as this text.
pub(super) const STYLE: Style = Style { is_plain };

fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '_'))
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.contains(|c: char| c.is_control() || is_unsafe_char(c))
        && !is_yaml11_special(text)
        && reads_back(text)
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

/// Candidate patches to set a present key: in place of a text on one line, then as a new entry.
pub(super) fn set(whole: &FileText, at: usize, value: &Node) -> Vec<Patch> {
    let lines = BlockLines::new(whole);
    let entry = &whole.root.entries()[at];
    let span = entry.value.span.clone();
    let mut candidates = Vec::new();
    if !span.is_empty() && !matches!(value.kind, Kind::Seq(_) | Kind::Map(_)) {
        let new = match &value.kind {
            Kind::Str(new) => in_style_of(&whole.text[span.clone()], new),
            _ => STYLE.line(value),
        };
        candidates.push(vec![(span, new)]);
    }
    let whole_entry = lines.line_start(entry.key_span.start)..lines.end_with_comments(at, lines.column);
    candidates.push(vec![(whole_entry, lines.entry(&entry.key, value))]);
    candidates
}

/// Candidate patches to add a key: below its predecessor in schema order, or at the top.
pub(super) fn insert(whole: &FileText, key: &str, value: &Node) -> Vec<Patch> {
    let lines = BlockLines::new(whole);
    let entries = whole.root.entries();
    let new = lines.entry(key, value);
    let rank = |key: &str| PLAYBOOK.rank(key);
    let before = (0..entries.len()).filter(|at| rank(&entries[*at].key) < rank(key));
    let unknown = rank(key) > rank("metadata");
    let anchor =
        if unknown { entries.len().checked_sub(1) } else { before.max_by_key(|at| rank(&entries[*at].key)) };
    let places = match (anchor, entries.first()) {
        (Some(at), _) => vec![lines.end_with_comments(at, lines.column), lines.entry_end(at), whole.yaml.end],
        (None, Some(first)) => vec![whole.yaml.start, lines.line_start(first.key_span.start), whole.yaml.end],
        (None, None) => vec![whole.yaml.end, whole.yaml.start],
    };
    places.into_iter().map(|place| vec![(place..place, new.clone())]).collect()
}

/// Candidate patches to remove a key. The second also removes the empty lines after it, which would become part of a
/// preceding block scalar that keeps its final line breaks.
pub(super) fn remove(whole: &FileText, at: usize) -> Vec<Patch> {
    let lines = BlockLines::new(whole);
    let start = lines.line_start(whole.root.entries()[at].key_span.start);
    let end = lines.end_with_comments(at, lines.column);
    let rest = &whole.text[end..lines.entry_limit(at)];
    let blank: usize =
        rest.split_inclusive('\n').take_while(|line| line.trim().is_empty()).map(str::len).sum();
    vec![vec![(start..end, String::new())], vec![(start..end + blank, String::new())]]
}

/// Candidate patches to append an item to a non-empty list, without rewriting the list.
pub(super) fn push(whole: &FileText, at: usize, item: &Node) -> Vec<Patch> {
    let lines = BlockLines::new(whole);
    let list = &whole.root.entries()[at].value;
    if whole.text[list.span.start..].starts_with('[') {
        return push_in_flow(list, item);
    }
    let Some(start) = lines.value_start(at).filter(|start| whole.text[*start..].starts_with('-')) else {
        return Vec::new();
    };
    let column = lines.column_of(start);
    let mut new = String::new();
    STYLE.block(&Node::new(Kind::Seq(vec![item.clone()]), 0..0), column, &mut new);
    let places = [lines.end_with_comments(at, column), lines.entry_end(at)];
    places.into_iter().map(|place| vec![(place..place, new.clone())]).collect()
}

/// The lines of a text whose root is a block.
struct BlockLines<'t> {
    file: &'t FileText,
    text: &'t str,
    /// The column of the root's keys.
    column: usize,
}

impl<'t> BlockLines<'t> {
    fn new(whole: &'t FileText) -> BlockLines<'t> {
        let mut lines = BlockLines { file: whole, text: &whole.text, column: 0 };
        lines.column = whole.root.entries().first().map_or(0, |first| {
            let start = lines.line_start(first.key_span.start);
            let line = &lines.text[start..];
            line.len() - line.trim_start_matches(' ').len()
        });
        lines
    }

    /// The lines of an entry.
    fn entry(&self, key: &str, value: &Node) -> String {
        let mut new = " ".repeat(self.column) + &STYLE.key(key) + ":";
        if value.items().iter().any(is_block) {
            new.push('\n');
            STYLE.block(value, self.list_column(), &mut new);
        } else {
            STYLE.beside(value, self.column, &mut new);
        }
        new
    }

    /// The start of the line of an offset.
    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |at| at + 1)
    }

    /// The offset after the line break of an offset's line.
    fn next_line(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |found| at + found + 1)
    }

    fn column_of(&self, at: usize) -> usize {
        self.text[self.line_start(at)..at].chars().count()
    }

    /// The start of the next entry, or the end of the YAML.
    fn entry_limit(&self, at: usize) -> usize {
        let next = self.file.root.entries().get(at + 1);
        next.map_or(self.file.yaml.end, |next| self.line_start(next.key_span.start))
    }

    /// The column of items in a new list: as in the first present list.
    fn list_column(&self) -> usize {
        let entries = self.file.root.entries();
        let starts = (0..entries.len()).filter_map(|at| self.value_start(at));
        let mut dashes = starts.filter(|start| self.text[*start..].starts_with("- "));
        dashes.next().map_or(self.column + INDENT, |start| self.column_of(start))
    }

    /// The offset of a value's first character: of a block scalar the header, of a block list the dash.
    fn value_start(&self, at: usize) -> Option<usize> {
        let colon = self.skip_trivia(self.file.root.entries()[at].key_span.end);
        self.text[colon..].starts_with(':').then(|| self.skip_trivia(colon + 1))
    }

    /// The next offset that is not a blank, line break or comment.
    fn skip_trivia(&self, mut at: usize) -> usize {
        loop {
            at = self.text.len() - self.text[at..].trim_start().len();
            if !self.text[at..].starts_with('#') {
                return at;
            }
            at = self.next_line(at);
        }
    }

    /// The end of an entry's last line.
    fn entry_end(&self, at: usize) -> usize {
        let entry = &self.file.root.entries()[at];
        let bound = self.entry_limit(at);
        let end = self.block_scalar_end(&entry.value);
        // YAML also ends lines at a lone carriage return, so two keys may be on one line here.
        end.unwrap_or_else(|| self.last_line(entry.key_span.end, bound)).min(bound)
    }

    /// The end of the last comment below an entry that is indented deeper than `column`, or the end of the entry.
    fn end_with_comments(&self, at: usize, column: usize) -> usize {
        let mut end = self.entry_end(at);
        let mut next = end;
        for line in self.text[end..self.entry_limit(at)].split_inclusive('\n') {
            next += line.len();
            let bare = line.trim_start_matches(' ');
            if bare.starts_with('#') && line.len() - bare.len() > column {
                end = next;
            } else if !bare.trim().is_empty() {
                break;
            }
        }
        end
    }

    /// The end of the last line that is neither empty, a comment nor the end of a document.
    fn last_line(&self, start: usize, bound: usize) -> usize {
        let mut at = self.line_start(start);
        let mut end = self.next_line(start);
        for line in self.text[at..bound].split_inclusive('\n') {
            at += line.len();
            let bare = line.trim();
            if !bare.is_empty() && !bare.starts_with('#') && line.trim_end() != "..." {
                end = end.max(at);
            }
        }
        end
    }

    /// The end of the block scalar that a value ends with, in which comments and empty lines are text.
    fn block_scalar_end(&self, node: &Node) -> Option<usize> {
        let last = match &node.kind {
            Kind::Seq(items) => return self.block_scalar_end(items.last()?),
            Kind::Map(entries) => return self.block_scalar_end(&entries.last()?.value),
            Kind::Str(last) => last,
            _ => return None,
        };
        let span: Range<usize> = node.span.start..self.text[..node.span.end].trim_end_matches(' ').len();
        let text = self.text.get(span.clone())?;
        // Only block scalars end in a line break.
        text.ends_with('\n').then_some(())?;
        if last.ends_with("\n\n") {
            return Some(span.end);
        }
        let bare = text.trim_end_matches([' ', '\r', '\n']);
        Some(self.next_line(span.start + bare.len()))
    }
}

/// Candidate patches to append an item to a flow list.
fn push_in_flow(list: &Node, item: &Node) -> Vec<Patch> {
    let new = STYLE.flow(item);
    match list.items().last() {
        Some(last) => vec![vec![(last.span.end..last.span.end, format!(", {new}"))]],
        None => vec![vec![(list.span.start + 1..list.span.start + 1, new)]],
    }
}
