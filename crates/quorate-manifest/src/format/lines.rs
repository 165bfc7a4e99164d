//! The lines of a value's text with their indentation relative to the key or dash, so that the text can be moved.

use super::cst::Line;
use crate::tree::{Kind, Node};

/// Indentation relative to the key.
pub(super) const INDENT: usize = 2;

/// The position of a value's text.
#[derive(Clone, Copy)]
pub(super) struct ValuePosition {
    /// The column of the key or dash.
    pub(super) owner: usize,
    /// The column of the first character; `None` if it is on the line of the key or dash.
    pub(super) own_line: Option<usize>,
}

/// A plain or quoted scalar. Its indentation has no meaning; the lines keep their relative indentation.
pub(super) fn scalar(text: &str, at: ValuePosition) -> Vec<Line<'_>> {
    let columns = text.split('\n').skip(1).filter(|line| !line.trim().is_empty()).map(leading);
    let least = columns.chain(at.own_line).min().unwrap_or(0);
    let quoted = text.starts_with('"');
    let line = |(number, line)| {
        let column = if number == 0 { at.own_line.unwrap_or(least) } else { leading(line) };
        let bare = line.trim_end();
        // After a backslash a blank is part of the text.
        let text = if quoted && bare.ends_with('\\') { line } else { bare };
        Line { indent: INDENT + column.saturating_sub(least), text: text.trim_start_matches(' ') }
    };
    text.split('\n').enumerate().map(line).collect()
}

/// A flow collection, which moves as a whole.
pub(super) fn flow<'t>(text: &'t str, all: &str, node: &Node, at: ValuePosition) -> Vec<Line<'t>> {
    let exact = has_long_scalar(node, all);
    let mut lines: Vec<Line<'_>> = Vec::new();
    for line in text.split('\n') {
        let indent = match at.own_line {
            Some(_) if lines.is_empty() => INDENT,
            Some(column) => (leading(line) + INDENT).saturating_sub(column),
            None => leading(line).saturating_sub(at.owner),
        };
        let text = if exact { line } else { line.trim_end() }.trim_start_matches(' ');
        let repeated = text.is_empty() && lines.last().is_some_and(|line| line.text.is_empty());
        if exact || !repeated {
            lines.push(Line { indent, text });
        }
    }
    lines
}

/// Whether it contains a scalar of several lines.
fn has_long_scalar(node: &Node, all: &str) -> bool {
    let long = |span: &std::ops::Range<usize>| all[span.clone()].contains('\n');
    match &node.kind {
        Kind::Seq(items) => items.iter().any(|item| has_long_scalar(item, all)),
        Kind::Map(entries) => {
            entries.iter().any(|entry| long(&entry.key_span) || has_long_scalar(&entry.value, all))
        }
        _ => long(&node.span),
    }
}

/// The lines of a block scalar.
pub(super) struct BlockScalar<'t> {
    /// The header and the content.
    pub(super) lines: Vec<Line<'t>>,
    /// Their length in bytes.
    pub(super) len: usize,
    /// Whether the final empty lines are part of the scalar.
    pub(super) keeps: bool,
}

/// Reads a block scalar: its header and the following lines that belong to it.
pub(super) fn block_scalar(text: &str, owner: usize) -> BlockScalar<'_> {
    let header = text.split('\n').next().unwrap_or_default();
    let marks: &str = header.split([' ', '\t']).next().unwrap_or_default();
    let keeps_blank_lines = marks.contains('+');
    let explicit =
        marks.chars().find_map(|mark| mark.to_digit(10)).and_then(|digit| usize::try_from(digit).ok());
    let body = text.get(header.len() + 1..).unwrap_or_default();
    let found = body.split('\n').find(|line| !is_blank(line)).map(leading).filter(|column| *column > owner);
    let indent = explicit.unwrap_or(INDENT);
    // An empty scalar has no content lines.
    let column = explicit.map(|digit| owner + digit).or(found).unwrap_or(usize::MAX);

    let mut lines = vec![Line { indent: INDENT, text: header.trim_end() }];
    let mut len = header.len();
    let (mut blanks, mut end) = (0, len);
    for line in body.split_inclusive('\n') {
        let line = line.trim_end_matches('\n');
        if !is_blank(line) && leading(line) < column {
            break;
        }
        end += 1 + line.len();
        let content = line.get(column..).unwrap_or_default();
        if is_blank(line) && content.is_empty() {
            blanks += 1;
            continue;
        }
        lines.extend((0..blanks).map(|_| Line { indent, text: "" }));
        lines.push(Line { indent, text: content });
        (blanks, len) = (0, end);
    }
    if keeps_blank_lines {
        lines.extend((0..blanks).map(|_| Line { indent, text: "" }));
        len = end;
    }
    BlockScalar { lines, len, keeps: keeps_blank_lines }
}

fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| byte == b' ')
}

fn leading(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}
