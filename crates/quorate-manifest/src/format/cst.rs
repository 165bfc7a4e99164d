//! The concrete syntax tree of a manifest: entries, each with its comments and the lines of its value's text.
//!
//! Between the spans of the tree there are only blanks, line breaks, comments, colons and dashes. A text with anything else
//! is not formatted.

use super::{MODELINE, cst};
use crate::tree::{Kind, Node};

pub(super) struct Root<'t> {
    /// The line `---`: the comments above and beside it.
    pub(super) fence: Option<(Vec<Comment<'t>>, Option<TrailingComment<'t>>)>,
    pub(super) block: Block<'t>,
    /// The line `...`: the comments beside and below it.
    pub(super) end: Option<(Option<TrailingComment<'t>>, Vec<Comment<'t>>)>,
}

/// A block mapping or a block list.
#[derive(Default)]
pub(super) struct Block<'t> {
    /// Comments on the whole block: at its start, with an empty line below.
    pub(super) head: Vec<Comment<'t>>,
    /// Whether there is an empty line below the head.
    pub(super) head_gap: bool,
    pub(super) items: Vec<Item<'t>>,
    /// Comments after the last piece.
    pub(super) tail: Vec<Comment<'t>>,
}

/// An entry of a mapping, or an item of a list.
pub(super) struct Item<'t> {
    /// The key; `None` for an item.
    pub(super) key: Option<Key<'t>>,
    /// Comments on the lines above.
    pub(super) lead: Vec<Comment<'t>>,
    /// Whether there is an empty line right above the key or dash.
    pub(super) gap: bool,
    /// A comment on the line of the key or dash, if the value starts on a later line.
    pub(super) trailing: Option<TrailingComment<'t>>,
    pub(super) value: Value<'t>,
    /// Comments below the value, indented as deep as the value.
    pub(super) below: Vec<Comment<'t>>,
}

#[derive(Clone, Copy)]
pub(super) struct Key<'t> {
    pub(super) name: &'t str,
    pub(super) text: &'t str,
}

/// The value of a key or a dash.
pub(super) enum Value<'t> {
    Nothing,
    /// A scalar or a flow collection, with its original text.
    Text(Text<'t>),
    /// A block mapping or a block list.
    Block(Block<'t>),
}

/// The text of a value.
pub(super) struct Text<'t> {
    /// Comments between the key and the value; `None` if the value starts on the key's line.
    pub(super) above: Option<Vec<Comment<'t>>>,
    /// At least one.
    pub(super) lines: Vec<Line<'t>>,
    /// The comment on its last line.
    pub(super) trailing: Option<TrailingComment<'t>>,
    /// Whether the empty lines below are part of the value.
    pub(super) keeps_blank_lines: bool,
}

/// One line of a value.
pub(super) struct Line<'t> {
    /// Indentation relative to the key or dash; meaningless for a line that starts there.
    pub(super) indent: usize,
    pub(super) text: &'t str,
}

/// A comment on a line of its own.
#[derive(Clone, Copy)]
pub(super) struct Comment<'t> {
    /// From `#` on.
    pub(super) text: &'t str,
    /// The column, in characters.
    pub(super) column: usize,
    /// Whether there is an empty line above the comment.
    pub(super) gap: bool,
}

/// A comment at the end of a line with other text.
pub(super) struct TrailingComment<'t> {
    /// The blanks before the comment, which may align it with others.
    pub(super) space: &'t str,
    /// From `#` on.
    pub(super) text: &'t str,
    /// The column, in characters.
    pub(super) column: usize,
    /// The following comment lines in the same column.
    pub(super) below: Vec<&'t str>,
}

impl Item<'_> {
    /// Whether there is an empty line above the piece and its comments.
    pub(super) fn first_gap(&mut self) -> &mut bool {
        match self.lead.first_mut() {
            Some(remark) => &mut remark.gap,
            None => &mut self.gap,
        }
    }
}

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

/// Splits a document; `None` if it has a form that is not formatted.
pub(super) fn document<'t>(text: &'t str, root: &'t Node) -> Option<Root<'t>> {
    let mut reading = Reader { text, at: 0, pending: Vec::new(), gap: false };
    reading.skip_to_content();
    let mut fence = None;
    if reading.is_marker("---") {
        let above = std::mem::take(&mut reading.pending);
        reading.at += 3;
        fence = Some((above, reading.line_end()?));
        reading.skip_to_content();
    }
    let mut block = Block::default();
    if is_block(root, reading.rest()) {
        let modeline = reading.pending.first().is_some_and(|remark| remark.text.starts_with(MODELINE));
        block = reading.block(root, None, usize::from(fence.is_none() && modeline))?;
    } else if is_nothing(root) {
        block.tail = std::mem::take(&mut reading.pending);
    }
    let mut end = None;
    if reading.is_marker("...") {
        reading.at += 3;
        let beside = reading.line_end()?;
        reading.skip_to_content();
        end = Some((beside, std::mem::take(&mut reading.pending)));
    }
    reading.rest().is_empty().then_some(Root { fence, block, end })
}

fn is_nothing(node: &Node) -> bool {
    node.kind == Kind::Null && node.span.is_empty()
}

fn is_block(node: &Node, text: &str) -> bool {
    match node.kind {
        Kind::Map(_) => !text.starts_with('{'),
        Kind::Seq(_) => !text.starts_with('['),
        _ => false,
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// Comments above `at` that are not assigned yet.
    pending: Vec<Comment<'t>>,
    /// Whether there is an empty line right above `at`.
    gap: bool,
}

impl<'t> Reader<'t> {
    /// Reads a block that starts here, of a key or dash in the column `owner`, with at least `comments` comments in its head.
    fn block(&mut self, node: &'t Node, owner: Option<usize>, head: usize) -> Option<Block<'t>> {
        let column = self.column();
        let mut block = self.head(head);
        match &node.kind {
            Kind::Map(entries) => {
                for entry in entries {
                    let (lead, gap) = self.lead();
                    if self.at != entry.key_span.start {
                        return None;
                    }
                    let key = Key { name: &entry.key, text: &self.text[entry.key_span.clone()] };
                    self.at = entry.key_span.end;
                    self.skip_blanks();
                    block.items.push(self.item(Some(key), lead, gap, column, &entry.value)?);
                }
            }
            Kind::Seq(items) => {
                for item in items {
                    let (lead, gap) = self.lead();
                    block.items.push(self.item(None, lead, gap, column, item)?);
                }
            }
            _ => return None,
        }
        let list = matches!(node.kind, Kind::Seq(_)).then_some(column);
        block.tail = self.take_inner_comments(owner, list);
        Some(block)
    }

    /// The head of a block: the comments at its start, up to an empty line.
    fn head(&mut self, least: usize) -> Block<'t> {
        let parted = (1..self.pending.len()).rev().find(|at| self.pending[*at].gap).unwrap_or(0);
        let count = if self.gap { self.pending.len() } else { parted.max(least) };
        let lead = self.pending.split_off(count);
        let head = std::mem::replace(&mut self.pending, lead);
        let gap = self.pending.first_mut().map_or(&mut self.gap, |remark| &mut remark.gap);
        Block { head, head_gap: std::mem::replace(gap, false), ..Block::default() }
    }

    fn lead(&mut self) -> (Vec<Comment<'t>>, bool) {
        (std::mem::take(&mut self.pending), self.gap)
    }

    /// Reads a piece from its colon or dash on.
    fn item(
        &mut self,
        key: Option<Key<'t>>,
        lead: Vec<Comment<'t>>,
        gap: bool,
        owner: usize,
        node: &'t Node,
    ) -> Option<Item<'t>> {
        self.text[self.at..].starts_with(if key.is_some() { ':' } else { '-' }).then_some(())?;
        self.at += 1;
        let mut piece = Item {
            key,
            lead,
            gap,
            trailing: self.trailing_comment(),
            value: Value::Nothing,
            below: Vec::new(),
        };
        self.skip_blanks();
        let own_line = piece.trailing.is_some() || self.is_at_line_end();
        if own_line {
            self.skip_to_content();
        }
        if is_nothing(node) {
            self.extend_trailing(piece.trailing.as_mut(), owner);
            piece.below = self.take_inner_comments(Some(owner), None);
        } else if is_block(node, self.rest()) {
            if key.is_some() && !own_line {
                return None;
            }
            let inner = self.column();
            // A comment right above the first key of an item belongs to that key.
            self.extend_trailing(piece.trailing.as_mut().filter(|beside| beside.column > inner), owner);
            piece.value = Value::Block(self.block(node, Some(owner), 0)?);
        } else {
            let own_line = own_line.then(|| self.column());
            self.extend_trailing(piece.trailing.as_mut(), owner);
            let (text, literal) = self.value(node, ValuePosition { owner, own_line })?;
            piece.value = Value::Text(text);
            // A deeper comment below a block scalar would become part of it.
            piece.below = if literal { Vec::new() } else { self.take_inner_comments(Some(owner), None) };
        }
        Some(piece)
    }

    /// Reads a scalar or a flow collection; returns whether it is a block scalar.
    fn value(&mut self, node: &'t Node, at: ValuePosition) -> Option<(Text<'t>, bool)> {
        let above = at.own_line.map(|_| std::mem::take(&mut self.pending));
        let is_literal = matches!(node.kind, Kind::Str(_)) && self.rest().starts_with(['|', '>']);
        let (mut lines, mut keeps) = (Vec::new(), false);
        if is_literal {
            let literal = cst::block_scalar(self.rest(), at.owner);
            (lines, keeps) = (literal.lines, literal.keeps);
            self.at += literal.len;
        } else if self.at == node.span.start {
            let text = &self.text[node.span.clone()];
            let flow = matches!(node.kind, Kind::Map(_) | Kind::Seq(_));
            lines = if flow { cst::flow(text, self.text, node, at) } else { cst::scalar(text, at) };
            self.at = node.span.end;
        }
        let mut comment = self.line_end()?;
        self.skip_to_content();
        self.extend_trailing(comment.as_mut(), at.owner);
        (!lines.is_empty())
            .then_some((Text { above, lines, trailing: comment, keeps_blank_lines: keeps }, is_literal))
    }

    /// The comments that are indented deeper than the key or dash above them; in a list with the indentation of its key,
    /// also commented-out items.
    fn take_inner_comments(&mut self, owner: Option<usize>, list: Option<usize>) -> Vec<Comment<'t>> {
        let Some(owner) = owner else { return std::mem::take(&mut self.pending) };
        let mut item = None;
        let outside = self.pending.iter().position(|remark| {
            let text = remark.text.trim_start_matches('#');
            let depth = text.len() - text.trim_start().len();
            let goes_on = item.is_some_and(|item| depth > item) && !remark.gap;
            item = if text.trim_start().starts_with("- ") { Some(depth) } else { item.filter(|_| goes_on) };
            remark.column <= owner && (item.is_none() || list != Some(remark.column))
        });
        let outside = self.pending.split_off(outside.unwrap_or(self.pending.len()));
        std::mem::replace(&mut self.pending, outside)
    }

    /// Adds the continuation lines to a comment at the end of a line.
    fn extend_trailing(&mut self, aside: Option<&mut TrailingComment<'t>>, owner: usize) {
        let Some(aside) = aside.filter(|aside| aside.column > owner) else { return };
        let other = self.pending.iter().position(|remark| remark.gap || remark.column != aside.column);
        let below = self.pending.drain(..other.unwrap_or(self.pending.len()));
        aside.below.extend(below.map(|remark| remark.text));
    }

    /// Whether the line is a document marker, `---` or `...`.
    fn is_marker(&self, marker: &str) -> bool {
        let behind = self.rest().strip_prefix(marker);
        self.column() == 0
            && behind.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\n']))
    }

    /// The comment on the rest of the line, which must have no other text.
    #[expect(clippy::option_option, reason = "a line without a comment is fine; one with more is not")]
    fn line_end(&mut self) -> Option<Option<TrailingComment<'t>>> {
        let comment = self.trailing_comment();
        self.skip_blanks();
        self.is_at_line_end().then_some(comment)
    }

    fn trailing_comment(&mut self) -> Option<TrailingComment<'t>> {
        let line = self.rest().split('\n').next()?;
        let text = line.trim_start_matches([' ', '\t']);
        let space = &line[..line.len() - text.len()];
        if space.is_empty() || !text.starts_with('#') {
            return None;
        }
        self.at += space.len();
        let comment =
            TrailingComment { space, text: text.trim_end(), column: self.column(), below: Vec::new() };
        self.at += text.len();
        Some(comment)
    }

    /// Skips from the end of a line to the next token, and collects comments.
    fn skip_to_content(&mut self) {
        let mut breaks = 0;
        loop {
            self.skip_blanks();
            if self.rest().starts_with('\n') {
                breaks += 1;
                self.at += 1;
            } else if self.rest().starts_with('#') {
                let text = self.rest().split('\n').next().unwrap_or_default();
                self.pending.push(Comment { text: text.trim_end(), column: self.column(), gap: breaks > 1 });
                self.at += text.len();
                breaks = 0;
            } else {
                break;
            }
        }
        self.gap = breaks > 1;
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    fn is_at_line_end(&self) -> bool {
        self.rest().is_empty() || self.rest().starts_with('\n')
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The column of this position, in characters.
    fn column(&self) -> usize {
        let begin = self.text[..self.at].rfind('\n').map_or(0, |at| at + 1);
        self.text[begin..self.at].chars().count()
    }
}
