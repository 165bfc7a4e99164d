//! Splits a text along its tree, and assigns each comment to an entry.
//!
//! Between the spans of the tree there are only blanks, line breaks, comments, colons and dashes. A text with anything else
//! there is not formatted.

use super::MODELINE;
use super::cst::{Block, Comment, Item, Key, Root, Text, TrailingComment, Value};
use super::lines::{self, ValuePosition};
use crate::tree::{Kind, Node};

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
    /// Reads a block that starts here, of a key or dash in the column `owner`, with at least so many comments in its head.
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
            let literal = lines::block_scalar(self.rest(), at.owner);
            (lines, keeps) = (literal.lines, literal.keeps);
            self.at += literal.len;
        } else if self.at == node.span.start {
            let text = &self.text[node.span.clone()];
            let flow = matches!(node.kind, Kind::Map(_) | Kind::Seq(_));
            lines = if flow { lines::flow(text, self.text, node, at) } else { lines::scalar(text, at) };
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
