//! Canonical key order and spacing of manifests. Comments move with their entries, and the content does not change: if the
//! result does not parse as the same tree with the same comments, the text is returned unchanged.
//!
//! `cst.rs` splits a text along its tree; this file orders the parts, writes them and compares the result with the text.
//! Texts of values are moved and indented, never rewritten. The style has two blanks for each level, one blank after colons
//! and dashes, no trailing blanks, and never two empty lines in a row.

mod cst;
pub mod orders;

use std::borrow::Cow;

use granit_parser::{Event, Parser};

use crate::frontmatter;
use crate::tree::{Node, Problem, yaml};
use cst::{Block, Comment, INDENT, Item, Root, Text, TrailingComment, Value};

pub use orders::Order;

/// The schema comment of editors, which has an effect only at the top of a file.
const MODELINE: &str = "# yaml-language-server:";

/// Formats YAML.
///
/// # Errors
/// The text is not valid YAML.
pub fn format(text: &str, order: &Order) -> Result<String, Vec<Problem>> {
    let plain = text.trim_start_matches(BOM);
    let formatted =
        format_yaml(plain, order).map_err(|problems| shift_problems(problems, text.len() - plain.len()))?;
    Ok(formatted.unwrap_or_else(|| text.to_owned()))
}

/// Formats the YAML frontmatter of Markdown. Only the final line breaks of the Markdown change.
///
/// # Errors
/// The text has no frontmatter, or it is not valid YAML.
pub fn frontmatter(text: &str, order: &Order) -> Result<String, Vec<Problem>> {
    let plain = text.trim_start_matches(BOM);
    let dropped = text.len() - plain.len();
    let parts = frontmatter::split(plain).map_err(|problem| shift_problems(vec![problem], dropped))?;
    let formatted = format_yaml(&plain[parts.yaml.clone()], order)
        .map_err(|problems| shift_problems(problems, dropped + parts.yaml.start))?;
    let Some(formatted) = formatted else { return Ok(text.to_owned()) };

    let mut out = String::with_capacity(text.len());
    let above = plain[..parts.yaml.start].lines().map(str::trim_end);
    for line in above.filter(|line| !line.is_empty()) {
        out.push_str(line);
        out.push('\n');
    }
    out.push_str(&formatted);
    out.push_str("---\n");
    out.push_str(&one_line_break(&plain[parts.body]));
    Ok(out)
}

const BOM: char = '\u{feff}';

/// The formatted text; `None` if the text has to stay unchanged.
fn format_yaml(text: &str, order: &Order) -> Result<Option<String>, Vec<Problem>> {
    let (root, problems) = yaml::parse(text);
    if root.is_none() || !problems.is_empty() {
        return Err(problems);
    }
    let text = text.replace("\r\n", "\n");
    // YAML treats a lone carriage return as a line break, but editors differ.
    if text.contains('\r') {
        return Ok(None);
    }
    let (Some(root), _) = yaml::parse(&text) else { return Ok(None) };
    let formatted = cst::document(&text, &root).map(|mut document| {
        arrange_block(&mut document.block, order, "");
        write(&document)
    });
    Ok(formatted.filter(|formatted| is_equivalent(&text, &root, formatted)))
}

/// The body with exactly one final line break, the first of the present ones.
fn one_line_break(body: &str) -> Cow<'_, str> {
    let text = body.trim_end_matches(['\r', '\n']);
    let breaks = &body[text.len()..];
    match breaks.find('\n') {
        _ if text.is_empty() => "".into(),
        Some(at) => body[..text.len() + at + 1].into(),
        None => format!("{text}\n").into(),
    }
}

/// Problems of a part of a text, with spans in the whole text.
fn shift_problems(mut problems: Vec<Problem>, by: usize) -> Vec<Problem> {
    problems.iter_mut().for_each(|problem| problem.shift(by));
    problems
}

/// Whether both parse as the same tree, up to the order of keys, and have the same comments.
fn is_equivalent(before: &str, root: &Node, after: &str) -> bool {
    let (Some(formatted), problems) = yaml::parse(after) else { return false };
    let comments = comments_of(before);
    problems.is_empty() && root.is_same(&formatted) && comments.is_some() && comments == comments_of(after)
}

/// The comments, sorted; `None` if they cannot be determined.
fn comments_of(text: &str) -> Option<Vec<String>> {
    let options = granit_parser::options! { emit_comments: true, max_buffered_comment_events: text.len() };
    let mut comments = Vec::new();
    for event in Parser::new_from_str_with_options(text, options) {
        if let (Event::Comment(comment, _), _) = event.ok()? {
            comments.push(comment.trim_end().to_owned());
        }
    }
    comments.sort_unstable();
    Some(comments)
}

/// Orders the block at a path.
fn arrange_block(block: &mut Block<'_>, order: &Order, path: &str) {
    for piece in &mut block.items {
        if let Value::Block(inner) = &mut piece.value {
            arrange_block(inner, order, &orders::below(path, piece.key.map(|key| key.name)));
        }
        if piece.key.is_none() {
            hoist(piece);
        }
    }
    if let Some(keys) = order.keys(path) {
        sort(&mut block.items, &keys);
    }
}

fn sort(pieces: &mut [Item<'_>], keys: &[&str]) {
    let rank = |piece: &Item<'_>| {
        let name = piece.key.map(|key| key.name);
        keys.iter().position(|key| Some(*key) == name).unwrap_or(keys.len())
    };
    let Some(first) = (0..pieces.len()).min_by_key(|at| rank(&pieces[*at])) else { return };
    // The first entry has no empty line above it: the old first entry gets the flag of the new one.
    let gap = std::mem::replace(pieces[first].first_gap(), false);
    *pieces[0].first_gap() = gap && first > 0;
    pieces.sort_by_key(rank);
}

/// The first key of an item is on the dash's line, so comments above that key move above the dash.
fn hoist(piece: &mut Item<'_>) {
    let Value::Block(block) = &mut piece.value else { return };
    let Some(first) = block.items.first_mut().filter(|_| piece.trailing.is_none()) else { return };
    let mut remarks = std::mem::take(&mut block.head);
    let below_head = remarks.len();
    remarks.append(&mut first.lead);
    if remarks.is_empty() {
        return;
    }
    remarks[0].gap = piece.gap;
    let mut gap = std::mem::replace(&mut first.gap, false);
    if below_head > 0 {
        *remarks.get_mut(below_head).map_or(&mut gap, |remark| &mut remark.gap) = block.head_gap;
    }
    piece.gap = gap;
    piece.lead.append(&mut remarks);
}

/// The text of a document.
fn write(document: &Root<'_>) -> String {
    let mut out = Writer { text: String::new(), no_gap_next: true };
    if let Some((above, beside)) = &document.fence {
        out.comments(above, 0);
        out.text.push_str("---");
        out.end(beside.as_ref());
        out.no_gap_next = true;
    }
    out.block(&document.block, 0, false);
    if let Some((beside, below)) = &document.end {
        out.text.push_str("...");
        out.end(beside.as_ref());
        out.comments(below, 0);
    }
    out.text
}

struct Writer {
    text: String,
    /// Whether an empty line is not allowed next: at the start of a block, or if it would become part of a value.
    no_gap_next: bool,
}

impl Writer {
    /// Writes a block, on the line of a dash or on new lines.
    fn block(&mut self, block: &Block<'_>, indent: usize, on_line: bool) {
        self.comments(&block.head, indent);
        if block.head_gap && !block.head.is_empty() {
            self.gap(true);
        }
        for (at, piece) in block.items.iter().enumerate() {
            self.item(piece, indent, on_line && at == 0);
        }
        self.comments(&block.tail, indent);
    }

    fn item(&mut self, piece: &Item<'_>, indent: usize, on_line: bool) {
        if !on_line {
            self.comments(&piece.lead, indent);
            self.gap(piece.gap);
            self.pad(indent);
        }
        match piece.key {
            Some(key) => {
                self.text.push_str(key.text);
                self.text.push(':');
            }
            None => self.text.push('-'),
        }
        match &piece.value {
            Value::Block(block) if piece.key.is_none() && piece.trailing.is_none() => {
                self.text.push(' ');
                self.block(block, indent + INDENT, true);
            }
            Value::Block(block) => {
                self.end(piece.trailing.as_ref());
                self.no_gap_next = true;
                self.block(block, indent + INDENT, false);
            }
            Value::Text(text) => {
                match &text.above {
                    Some(above) => {
                        self.end(piece.trailing.as_ref());
                        self.no_gap_next = true;
                        self.comments(above, indent + INDENT);
                        self.pad(indent + text.lines.first().map_or(INDENT, |line| line.indent));
                    }
                    None => self.text.push(' '),
                }
                self.value(text, indent);
            }
            Value::Nothing => self.end(piece.trailing.as_ref()),
        }
        self.comments(&piece.below, indent + INDENT);
    }

    fn value(&mut self, text: &Text<'_>, indent: usize) {
        for (at, line) in text.lines.iter().enumerate() {
            if at > 0 {
                self.text.push('\n');
                if !line.text.is_empty() {
                    self.pad(indent + line.indent);
                }
            }
            self.text.push_str(line.text);
        }
        self.end(text.trailing.as_ref());
        self.no_gap_next = text.keeps_blank_lines;
    }

    fn comments(&mut self, remarks: &[Comment<'_>], indent: usize) {
        for remark in remarks {
            self.gap(remark.gap);
            self.pad(indent);
            self.text.push_str(remark.text);
            self.end(None);
        }
    }

    /// Ends a line, with the comment beside it.
    fn end(&mut self, aside: Option<&TrailingComment<'_>>) {
        self.no_gap_next = false;
        let Some(aside) = aside else { return self.text.push('\n') };
        self.text.push_str(aside.space);
        let begin = self.text.rfind('\n').map_or(0, |at| at + 1);
        let column = self.text[begin..].chars().count();
        self.text.push_str(aside.text);
        self.text.push('\n');
        for line in &aside.below {
            self.pad(column);
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    fn gap(&mut self, wanted: bool) {
        if wanted && !self.no_gap_next {
            self.text.push('\n');
        }
        self.no_gap_next |= wanted;
    }

    fn pad(&mut self, indent: usize) {
        self.text.extend(std::iter::repeat_n(' ', indent));
    }
}

#[cfg(test)]
mod tests;
