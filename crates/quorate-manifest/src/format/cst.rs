//! The concrete syntax tree of a manifest: entries, each with its comments.

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
