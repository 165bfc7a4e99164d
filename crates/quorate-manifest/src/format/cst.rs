//! A text taken apart along its tree: entries, each with the comments that belong to it.

pub(super) struct Root<'t> {
    /// The line `---`, where there is one: the comments above it and the one beside it.
    pub(super) fence: Option<(Vec<Comment<'t>>, Option<TrailingComment<'t>>)>,
    pub(super) block: Block<'t>,
    /// The line `...`, where there is one: the comment beside it and those below.
    pub(super) end: Option<(Option<TrailingComment<'t>>, Vec<Comment<'t>>)>,
}

/// A block mapping or a block list.
#[derive(Default)]
pub(super) struct Block<'t> {
    /// Comments that speak of the whole: at its beginning, an empty line below them.
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
    /// Whether there is an empty line between them, or whatever stands there, and the key or dash.
    pub(super) gap: bool,
    /// A comment on the line of the key or dash, where the value does not stand on that line.
    pub(super) trailing: Option<TrailingComment<'t>>,
    pub(super) value: Value<'t>,
    /// Comments below the value that are indented as if they stood inside it.
    pub(super) below: Vec<Comment<'t>>,
}

#[derive(Clone, Copy)]
pub(super) struct Key<'t> {
    pub(super) name: &'t str,
    pub(super) text: &'t str,
}

/// What a key or a dash has.
pub(super) enum Value<'t> {
    Nothing,
    /// A scalar or a flow collection, whose text stays as it is.
    Text(Text<'t>),
    /// A block mapping or a block list.
    Block(Block<'t>),
}

/// The text of a value.
pub(super) struct Text<'t> {
    /// Comments between the key and the value; `None` where it begins on the key's line.
    pub(super) above: Option<Vec<Comment<'t>>>,
    /// Its lines, one or more.
    pub(super) lines: Vec<Line<'t>>,
    /// The comment on its last line.
    pub(super) trailing: Option<TrailingComment<'t>>,
    /// Whether the empty lines below it are part of it.
    pub(super) keeps_blank_lines: bool,
}

/// One line of a value.
pub(super) struct Line<'t> {
    /// How much deeper it begins than the key or dash; of no meaning where it begins on that line.
    pub(super) indent: usize,
    pub(super) text: &'t str,
}

/// A comment on a line of its own.
#[derive(Clone, Copy)]
pub(super) struct Comment<'t> {
    /// From `#` on.
    pub(super) text: &'t str,
    /// How many characters stand before it.
    pub(super) column: usize,
    /// Whether there is an empty line above it.
    pub(super) gap: bool,
}

/// A comment beside something.
pub(super) struct TrailingComment<'t> {
    /// What stands between that and the comment: people align comments.
    pub(super) space: &'t str,
    /// From `#` on.
    pub(super) text: &'t str,
    /// How many characters stand before it.
    pub(super) column: usize,
    /// How it goes on in the lines below, in the same column.
    pub(super) below: Vec<&'t str>,
}

impl Item<'_> {
    /// Whether there is an empty line above everything that belongs to the piece.
    pub(super) fn first_gap(&mut self) -> &mut bool {
        match self.lead.first_mut() {
            Some(remark) => &mut remark.gap,
            None => &mut self.gap,
        }
    }
}
