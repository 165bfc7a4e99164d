//! Writes values as YAML, in flow or block style, and makes the candidate patches of an edit. Text is plain only if parsers of
//! YAML 1.1 and 1.2 both read it as this text.
//!
//! An entry in block style is the lines from its key to the end of its value. Comments below it that are indented deeper
//! belong to it; comments in its own column, and empty lines, belong to the next entry.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::Value;

use super::{EditError, FileText, Patch, precedes, write};
use crate::tree::{Entry, Float, Kind, Node, yaml};

/// The indentation of a key's block, relative to the key.
pub(super) const INDENT: usize = 2;

/// A list of words with a longer line is written in block style.
const MAX_WIDTH: usize = 100;

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
        _ => flow_style(node),
    });
    out.push('\n');
}

/// A value in flow style.
pub(super) fn flow_style(node: &Node) -> String {
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
        Kind::Seq(items) => format!("[{}]", items.iter().map(flow_style).collect::<Vec<_>>().join(", ")),
        Kind::Map(entries) => {
            let entry = |entry: &Entry| format!("{}: {}", key(&entry.key), flow_style(&entry.value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

/// A value on one line, after a key.
pub(super) fn line(node: &Node) -> String {
    match &node.kind {
        Kind::Str(text) => scalar(text),
        _ => flow_style(node),
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
    words && flow_style(node).len() + column <= MAX_WIDTH
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

/// A text in double quotes. JSON's escapes are valid YAML; characters that YAML forbids are also escaped.
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

/// Candidate patches to set a present key: the smallest change first, then a new entry.
pub(super) fn set(whole: &FileText, at: usize, value: &Node) -> Vec<Patch> {
    let lines = BlockLines::new(whole);
    let entry = &whole.root.entries()[at];
    let mut candidates: Vec<Patch> =
        lines.value(at).and_then(|old| old.replace_with(&lines, at, value)).into_iter().collect();
    let mut new = write::key(&entry.key) + ":";
    write::beside(value, lines.column, &mut new);
    let whole_entry = lines.line_start(entry.key_span.start)..lines.end_with_comments(at, lines.column);
    candidates.push(vec![(whole_entry, indented(&lines, &new))]);
    candidates
}

/// Candidate patches to add a key: below its predecessor in schema order, or at the top.
pub(super) fn insert(whole: &FileText, key: &str, value: &Node) -> Vec<Patch> {
    let lines = BlockLines::new(whole);
    let entries = whole.root.entries();
    let mut new = write::key(key) + ":";
    if matches!(value.kind, Kind::Seq(_)) && value.items().iter().any(write::is_block) {
        new.push('\n');
        write::block(value, lines.list_column(), &mut new);
    } else {
        write::beside(value, lines.column, &mut new);
    }
    let new = indented(&lines, &new);

    let before = (0..entries.len()).filter(|at| precedes(&entries[*at].key, key));
    let closest =
        before.reduce(|best, at| if precedes(&entries[at].key, &entries[best].key) { best } else { at });
    let unknown = precedes("metadata", key);
    let anchor = if unknown { entries.len().checked_sub(1) } else { closest };
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
    let Some(old) = lines.value(at) else { return Vec::new() };
    if !whole.text[old.start..].starts_with('-') {
        return Vec::new();
    }
    let column = lines.column_of(old.start);
    let mut new = String::new();
    write::block(&Node::new(Kind::Seq(vec![item.clone()]), 0..0), column, &mut new);
    let places = [lines.end_with_comments(at, column), lines.entry_end(at)];
    places.into_iter().map(|place| vec![(place..place, new.clone())]).collect()
}

/// A new entry, indented like the root's keys.
fn indented(lines: &BlockLines<'_>, text: &str) -> String {
    if lines.column == 0 {
        return text.to_owned();
    }
    let pad = " ".repeat(lines.column);
    // The value is indented already; only the line of the key is not.
    format!("{pad}{text}")
}

/// The lines of a text whose root is a block.
struct BlockLines<'t> {
    file: &'t FileText,
    text: &'t str,
    /// The column of the root's keys.
    column: usize,
}

/// The present value of an entry.
struct CurrentValue<'t> {
    colon: usize,
    /// The offset of its first character: of a block scalar the header, of a block list the dash.
    start: usize,
    node: &'t Node,
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
        let dashes = (0..entries.len()).filter_map(|at| self.value(at)).map(|old| old.start);
        let mut dashes = dashes.filter(|start| self.text[*start..].starts_with("- "));
        dashes.next().map_or(self.column + write::INDENT, |start| self.column_of(start))
    }

    fn value(&self, at: usize) -> Option<CurrentValue<'t>> {
        let entry = &self.file.root.entries()[at];
        let colon = self.skip_trivia(entry.key_span.end);
        self.text[colon..].starts_with(':').then_some(())?;
        let start = self.skip_trivia(colon + 1);
        Some(CurrentValue { colon: colon + 1, start, node: &entry.value })
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

impl CurrentValue<'_> {
    /// A patch that replaces only the value; `None` if the whole entry has to be replaced.
    fn replace_with(&self, lines: &BlockLines<'_>, at: usize, new: &Node) -> Option<Patch> {
        let text = lines.text;
        let span = self.node.span.clone();
        let first = text[self.start..].chars().next()?;
        let is_missing = self.node.kind == Kind::Null && span.is_empty();
        if is_missing {
            return Some(self.beside(lines, self.colon..self.colon, new));
        }
        let is_literal = matches!(self.node.kind, Kind::Str(_)) && matches!(first, '|' | '>');
        let is_collection = matches!(self.node.kind, Kind::Seq(_) | Kind::Map(_));
        let is_block = is_collection && !matches!(first, '[' | '{');
        if is_literal {
            let header = text[self.start..].split([' ', '\t', '\r', '\n']).next()?.len();
            let mut patch = self.beside(lines, self.colon..self.start + header, new);
            patch.push((lines.next_line(self.start)..lines.entry_end(at), String::new()));
            return Some(merge_adjacent(patch));
        }
        if is_block {
            // The comments inside the value go with it.
            let old = lines.line_start(self.start)..lines.end_with_comments(at, lines.column);
            if !write::is_block(new) {
                let value = format!(" {}", write::line(new));
                return Some(vec![(self.colon..self.colon, value), (old, String::new())]);
            }
            let column = lines.column_of(self.start);
            let mapping = matches!(new.kind, Kind::Map(_)) && column == lines.column;
            let mut block = String::new();
            write::block(new, if mapping { column + write::INDENT } else { column }, &mut block);
            return Some(vec![(old, block)]);
        }
        let inside = if is_collection { span.end } else { span.start };
        let has_comments = text[self.colon..inside].contains('#');
        let has_items = write::is_block(self.node);
        if write::is_block(new) && !has_items && !has_comments {
            return Some(self.beside(lines, self.colon..span.end, new));
        }
        let value = match &new.kind {
            Kind::Str(new) if !is_collection => write::in_style_of(&text[span.clone()], new),
            Kind::Seq(items) if self.node.items().is_empty() && items.len() == 1 && is_collection => {
                return push_in_flow(self.node, &items[0]).into_iter().next();
            }
            _ => write::line(new),
        };
        Some(vec![(span, value)])
    }

    /// A patch that replaces a part of the key's line by the value, or puts a value of several lines below it.
    fn beside(&self, lines: &BlockLines<'_>, old: Range<usize>, new: &Node) -> Patch {
        if !write::is_block(new) {
            return vec![(old, format!(" {}", write::line(new)))];
        }
        let mut block = String::new();
        let column =
            if matches!(new.kind, Kind::Seq(_)) { lines.list_column() } else { lines.column + write::INDENT };
        write::block(new, column, &mut block);
        let below = lines.next_line(old.end);
        vec![(old, String::new()), (below..below, block)]
    }
}

/// Merges replacements of adjacent parts.
fn merge_adjacent(patch: Patch) -> Patch {
    let mut out: Patch = Vec::new();
    for (part, new) in patch {
        match out.last_mut() {
            Some((last, text)) if last.end == part.start => {
                last.end = part.end;
                text.push_str(&new);
            }
            _ => out.push((part, new)),
        }
    }
    out
}

/// Candidate patches to set a present key of a flow mapping.
pub(super) fn set_in_flow(text: &str, root: &Node, at: usize, value: &Node) -> Vec<Patch> {
    let entry = &root.entries()[at];
    let end = flow_entry_end(text, entry);
    let new = if entry.value.span.is_empty() {
        vec![(entry.key_span.end..end, format!(": {}", write::flow_style(value)))]
    } else {
        vec![(entry.value.span.clone(), write::flow_style(value))]
    };
    vec![new]
}

/// Candidate patches to add a key to a flow mapping.
pub(super) fn insert_in_flow(text: &str, root: &Node, key: &str, value: &Node) -> Vec<Patch> {
    let new = format!("{}: {}", write::key(key), write::flow_style(value));
    vec![match root.entries().last() {
        Some(last) => {
            let end = flow_entry_end(text, last);
            vec![(end..end, format!(", {new}"))]
        }
        None => vec![(root.span.start + 1..root.span.start + 1, new)],
    }]
}

/// Candidate patches to remove a key of a flow mapping, with one adjacent comma.
pub(super) fn remove_in_flow(text: &str, root: &Node, at: usize) -> Vec<Patch> {
    let entries = root.entries();
    let (from, to) = (entries[at].key_span.start, flow_entry_end(text, &entries[at]));
    let before = at.checked_sub(1).map(|at| flow_entry_end(text, &entries[at]));
    let after = entries.get(at + 1).map_or(root.span.end, |next| next.key_span.start);
    let comma = |from: usize, to: usize| find_comma(text, from, to);
    if let Some(comma) = comma(to, after) {
        return vec![vec![(from..to, String::new()), (comma..comma + 1, String::new())]];
    }
    let before = before.and_then(|end| comma(end, from)).map(|comma| (comma..comma + 1, String::new()));
    vec![before.into_iter().chain([(from..to, String::new())]).collect()]
}

/// Candidate patches to append an item to a flow list.
pub(super) fn push_in_flow(list: &Node, item: &Node) -> Vec<Patch> {
    let new = write::flow_style(item);
    match list.items().last() {
        Some(last) => vec![vec![(last.span.end..last.span.end, format!(", {new}"))]],
        None => vec![vec![(list.span.start + 1..list.span.start + 1, new)]],
    }
}

/// The end of an entry of a flow mapping. The span of a missing value is not usable for this.
fn flow_entry_end(text: &str, entry: &Entry) -> usize {
    if entry.value.kind != Kind::Null || !entry.value.span.is_empty() {
        return entry.value.span.end;
    }
    let rest = &text[entry.key_span.end..];
    let colon = rest.len() - rest.trim_start().len();
    if rest[colon..].starts_with(':') { entry.key_span.end + colon + 1 } else { entry.key_span.end }
}

/// The comma between two offsets that have only blanks and comments between them.
fn find_comma(text: &str, from: usize, to: usize) -> Option<usize> {
    let mut at = from;
    for line in text.get(from..to)?.split_inclusive('\n') {
        let bare = line.split('#').next().unwrap_or_default();
        if let Some(comma) = bare.find(',') {
            return Some(at + comma);
        }
        at += line.len();
    }
    None
}
