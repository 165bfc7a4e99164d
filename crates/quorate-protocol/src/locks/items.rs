//! A text as the matcher reads it: one item for each visible character, with its source position. Entities are decoded and
//! ligatures split; a second reading removes tags and the targets of links.

use std::ops::Range;

use super::character::{REMOVED_MARKUP, entry};
use super::entity;
use super::item::Item;
use super::marks;

/// The longest text that is read at once, in bytes.
const MAX_PIECE_BYTES: usize = 1 << 30;

/// How much two pieces of a longer text share.
const PIECE_OVERLAP_BYTES: usize = 1 << 20;

/// A text in pieces that can be read, each with the byte at which it begins. Nearly always that is the text.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let step = MAX_PIECE_BYTES - PIECE_OVERLAP_BYTES;
    let count = text.len().saturating_sub(PIECE_OVERLAP_BYTES).div_ceil(step).max(1);
    (0..count).map(move |piece| {
        let start = text.floor_char_boundary(piece * step);
        let end = text.floor_char_boundary(text.len().min(piece * step + MAX_PIECE_BYTES));
        (start, &text[start..end])
    })
}

/// The items of a piece of text.
#[expect(clippy::cast_possible_truncation, reason = "the longest text fits")]
pub(super) fn items(text: &str) -> Vec<Item> {
    let mut items = Vec::with_capacity(text.len());
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let start = at as u32;
        match bytes[at] {
            b'&' => {
                let found = entity::reference(&text[at..]);
                match found {
                    None => items.push(Item { c: '&', start }),
                    Some(found) => {
                        push(&mut items, found.stands_for.0, start);
                        if let Some(second) = found.stands_for.1 {
                            push(&mut items, second, start);
                        }
                    }
                }
                at += found.map_or(1, |found| found.len);
            }
            byte if byte < 0x80 => {
                items.push(Item { c: char::from(byte), start });
                at += 1;
            }
            _ => {
                let Some(c) = text[at..].chars().next() else { break };
                push(&mut items, c, start);
                at += c.len_utf8();
            }
        }
    }
    items
}

fn push(items: &mut Vec<Item>, c: char, start: u32) {
    let entry = entry(c);
    if entry.components.is_empty() {
        // Who writes the sign for what was taken out gets something else that is not seen.
        items.push(Item { c: if c == REMOVED_MARKUP { '\u{200b}' } else { c }, start });
    } else {
        items.extend(entry.components.iter().map(|part| Item { c: *part, start }));
    }
}

/// Takes out HTML tags, comments and the targets of links, each of which becomes one [`TAKEN`], and says whether there
/// were any. In place, for a copy of a long text costs more than the rest of this.
pub(super) fn remove_markup(items: &mut Vec<Item>) -> bool {
    let spans = markup(items);
    let (mut kept, mut from) = (0, 0);
    for span in &spans {
        items.copy_within(from..span.start, kept);
        kept += span.start - from;
        items[kept] = Item { c: REMOVED_MARKUP, start: items[span.start].start };
        kept += 1;
        from = span.end;
    }
    let len = items.len();
    items.copy_within(from.., kept);
    items.truncate(kept + len - from);
    !spans.is_empty()
}

/// Where markup stands that can be taken out.
fn markup(items: &[Item]) -> Vec<Range<usize>> {
    let c = |at: usize| items.get(at).map(|item| item.c);
    let mut spans = Vec::new();
    let mut closings = Closings::default();
    let mut at = 0;
    while at < items.len() {
        let end = match items[at].c {
            '<' => tag(items, at, &mut closings),
            ']' if matches!(c(at + 1), Some('(' | '[')) => target(items, at, &mut closings),
            '!' if c(at + 1) == Some('[') => Some(at + 1),
            _ => None,
        };
        match end {
            Some(end) => {
                spans.push(at..end);
                at = end;
            }
            None => at += 1,
        }
    }
    spans
}

/// Whether an ASCII text has anything that [`items`], [`remove_markup`] or [`marks`] would read in another way than byte by byte.
pub(super) fn has_markup(text: &str) -> bool {
    let bytes = text.as_bytes();
    let suspect = |byte: &u8| matches!(byte, b'<' | b'&' | b'!' | b'[' | b']' | b'\n' | b'\r');
    // In blocks, which the compiler makes vectors of.
    let mut from = 0;
    for block in bytes.chunks(256) {
        if block.iter().fold(false, |any, byte| any | suspect(byte)) {
            for at in (from..from + block.len()).filter(|at| suspect(&bytes[*at])) {
                let next = bytes.get(at + 1).copied().unwrap_or(b' ');
                let markup = match bytes[at] {
                    b'<' => next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'?'),
                    b'!' => next == b'[',
                    b']' => matches!(next, b'(' | b'['),
                    b'[' => next == b'^',
                    b'\n' | b'\r' => marks::has_list_mark(&bytes[at + 1..]),
                    _ => entity::reference(&text[at..]).is_some(),
                };
                if markup {
                    return true;
                }
            }
        }
        from += block.len();
    }
    false
}

/// Where the next of each closing sign stands, looked for once for all that need it, so that a text of nothing but
/// opening signs takes no longer than another.
#[derive(Default)]
struct Closings {
    angle: Option<usize>,
    comment: Option<usize>,
    round: Option<usize>,
    square: Option<usize>,
}

/// The next place from `at` on where something holds, remembered.
fn next(known: &mut Option<usize>, at: usize, len: usize, holds: impl Fn(usize) -> bool) -> Option<usize> {
    let found = match *known {
        Some(found) if found >= at => found,
        _ => (at..len).find(|at| holds(*at)).unwrap_or(len),
    };
    *known = Some(found);
    (found < len).then_some(found)
}

/// How far a quoted attribute is followed, in characters.
const MAX_ATTRIBUTE_CHARS: usize = 512;

/// The end of the tag or comment that begins here.
fn tag(items: &[Item], at: usize, closings: &mut Closings) -> Option<usize> {
    let c = |at: usize| items.get(at).map(|item| item.c);
    match c(at + 1)? {
        '!' if c(at + 2) == Some('-') && c(at + 3) == Some('-') => {
            let is_end = |at: usize| c(at) == Some('>') && c(at - 1) == Some('-') && c(at - 2) == Some('-');
            if let Some(end) = next(&mut closings.comment, at + 4, items.len(), is_end) {
                return Some(end + 1);
            }
        }
        '!' | '/' | '?' => {}
        letter if letter.is_ascii_alphabetic() => {}
        _ => return None,
    }
    let first = next(&mut closings.angle, at + 1, items.len(), |at| c(at) == Some('>'))?;
    // A `>` in quotes does not end a tag.
    let mut quote = None;
    let attributes = items.iter().enumerate().take(at + MAX_ATTRIBUTE_CHARS).skip(at + 1);
    for (end, item) in attributes {
        match (quote, item.c) {
            (None, '>') => return Some(end + 1),
            (None, sign @ ('"' | '\'')) if c(end - 1) == Some('=') => quote = Some(sign),
            (Some(open), sign) if open == sign => quote = None,
            _ => {}
        }
    }
    Some(first + 1)
}

/// The end of the target of a link whose text ends here: `](…)`, `][…]`.
fn target(items: &[Item], at: usize, closings: &mut Closings) -> Option<usize> {
    let c = |at: usize| items[at].c;
    if c(at + 1) == '[' {
        return next(&mut closings.square, at + 2, items.len(), |at| c(at) == ']').map(|end| end + 1);
    }
    let first = next(&mut closings.round, at + 2, items.len(), |at| c(at) == ')')?;
    // Round brackets in a target come in pairs.
    let mut open = 1;
    for end in at + 2..items.len().min(at + MAX_ATTRIBUTE_CHARS) {
        match c(end) {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(end + 1);
        }
    }
    Some(first + 1)
}
