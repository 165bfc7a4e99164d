//! Edits of a root mapping in block style.
//!
//! An entry is the lines from its key to the end of its value. Comments below it that are indented deeper belong to it;
//! comments in its own column, and empty lines, belong to the next entry.

use std::ops::Range;

use super::file::FileText;
use super::{Patch, flow, precedes, write};
use crate::tree::{Kind, Node};

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
        return flow::push(list, item);
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
                return flow::push(self.node, &items[0]).into_iter().next();
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
