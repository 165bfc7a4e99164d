//! Edits of a JSON text: values are replaced, added and removed at their places, and the rest stays byte for byte.

use std::cmp::Reverse;
use std::ops::Range;

use quorate_manifest::tree::Node;

use super::style::{SourceValue, Style};

/// Edits that are collected and applied at once. They do not overlap, except that a later edit may cover earlier ones.
pub(super) struct Edits<'t> {
    text: &'t str,
    /// The offsets of the lines.
    lines: Vec<usize>,
    edits: Vec<(Range<usize>, String)>,
}

impl<'t> Edits<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let behind = text.match_indices('\n').map(|(at, newline)| at + newline.len());
        Edits { text, lines: std::iter::once(0).chain(behind).collect(), edits: Vec::new() }
    }

    /// Replaces the text of a span, with all earlier edits inside it.
    pub(super) fn put(&mut self, at: Range<usize>, text: String) {
        self.edits.push((at, text));
    }

    /// Replaces a value by another.
    pub(super) fn replace(&mut self, node: &Node, with: &SourceValue<'_>, style: &Style) {
        let indent = self.indent(node.span.start).to_owned();
        let broken = style.multiline;
        self.put(node.span.clone(), with.render(style, &indent, broken));
    }

    /// Adds items at the end of an object or an array.
    pub(super) fn add(&mut self, holder: &Node, new: &[SourceValue<'_>], style: &Style) {
        if new.is_empty() {
            return;
        }
        let spans = spans(holder);
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
            return self.fill(holder, new, style);
        };
        let before = &self.text[holder.span.start..first.start];
        let broken = before.contains('\n');
        let indent = if broken { self.indent(first.start).to_owned() } else { String::new() };
        let between = if broken { format!(",{}{indent}", style.newline) } else { ", ".to_owned() };
        let text: String =
            new.iter().map(|item| format!("{between}{}", item.render(style, &indent, broken))).collect();
        self.edits.push((last.end..last.end, text));
    }

    /// Adds items to an empty object or array.
    fn fill(&mut self, holder: &Node, new: &[SourceValue<'_>], style: &Style) {
        let open = &self.text[holder.span.start..=holder.span.start];
        let close = &self.text[holder.span.end - 1..holder.span.end];
        let outer = self.indent(holder.span.start).to_owned();
        let text = if style.multiline {
            let (newline, indent) = (style.newline, format!("{outer}{}", style.unit));
            let items: Vec<String> =
                new.iter().map(|item| format!("{indent}{}", item.render(style, &indent, true))).collect();
            format!("{open}{newline}{}{newline}{outer}{close}", items.join(&format!(",{newline}")))
        } else {
            let items: Vec<String> = new.iter().map(|one| one.render(style, "", false)).collect();
            format!("{open}{}{close}", items.join(", "))
        };
        self.put(holder.span.clone(), text);
    }

    /// Removes some, but not all, items of an object or an array; `out` is sorted.
    pub(super) fn remove(&mut self, holder: &Node, out: &[usize]) {
        let spans = spans(holder);
        let mut at = 0;
        while at < spans.len() {
            if out.binary_search(&at).is_err() {
                at += 1;
                continue;
            }
            let start = at;
            while at < spans.len() && out.binary_search(&at).is_ok() {
                at += 1;
            }
            // With the comma before it; at the beginning, with the one after it.
            let range = match (start, spans.get(at)) {
                (0, Some(next)) => spans[0].start..next.start,
                (0, None) => return,
                _ => spans[start - 1].end..spans[at - 1].end,
            };
            self.put(range, String::new());
        }
    }

    /// The indentation of the line at an offset.
    fn indent(&self, at: usize) -> &'t str {
        let line = self.lines[self.lines.partition_point(|begin| *begin <= at) - 1];
        let rest = &self.text[line..];
        let end = rest.find(|c| c != ' ' && c != '\t').unwrap_or(rest.len());
        if rest.starts_with('\u{feff}') { "" } else { &rest[..end] }
    }

    /// The text with all edits made.
    pub(super) fn apply(mut self) -> String {
        // A replacement that ends where an insertion begins comes first.
        let mut text = String::with_capacity(self.text.len());
        let mut at = 0;
        for (range, new) in &self.effective_edits() {
            text.push_str(&self.text[at..range.start]);
            text.push_str(new);
            at = range.end;
        }
        text.push_str(&self.text[at..]);
        text
    }
}

impl Edits<'_> {
    /// The edits that no later one covers, in the order of their places.
    fn effective_edits(&mut self) -> Vec<(Range<usize>, String)> {
        let mut edits: Vec<_> = std::mem::take(&mut self.edits).into_iter().enumerate().collect();
        edits.sort_by_key(|(made, (range, _))| (range.start, Reverse(range.end), Reverse(*made)));
        // The open spans that may cover the next one. They are nested, so there are few.
        let mut open: Vec<(usize, usize)> = Vec::new();
        edits.retain(|(made, (range, _))| {
            open.retain(|(_, end)| *end >= range.start);
            let covered = open.iter().any(|(later, end)| later > made && *end >= range.end);
            open.push((*made, range.end));
            !covered
        });
        let mut edits: Vec<_> = edits.into_iter().map(|(_, edit)| edit).collect();
        edits.sort_by_key(|(range, _)| (range.start, range.end));
        edits
    }
}

/// The spans of the items of an object or an array: members with their keys, or elements.
fn spans(holder: &Node) -> Vec<Range<usize>> {
    let members = holder.entries().iter().map(|entry| entry.key_span.start..entry.value.span.end);
    members.chain(holder.items().iter().map(|item| item.span.clone())).collect()
}
