//! Marks that are not part of the text: those of list items, tasks and footnotes between two words of a sentence; and tag
//! characters, which are invisible and spell ASCII.

use std::ops::Range;

use super::character::{REMOVED_MARKUP, ends_line};
use super::item::Item;

/// The most figures of an ordered item's number, as in CommonMark.
const MAX_NUMBER_DIGITS: usize = 9;

/// The longest name of a footnote, in characters.
const MAX_FOOTNOTE_CHARS: usize = 64;

/// The items with each mark replaced by one [`REMOVED_MARKUP`]; `None` where there are no marks.
pub(super) fn remove_marks(items: &[Item]) -> Option<Vec<Item>> {
    let c = |at: usize| items.get(at).map(|item| item.c);
    let mut kept: Vec<Item> = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(item) = items.get(at) {
        let span = match item.c {
            end if ends_line(end) => list_mark(c, at + 1),
            '[' => footnote(c, at),
            sign if is_footnote_sign(sign) => Some(at..at + 1),
            _ => None,
        };
        if let Some(span) = span {
            kept.extend_from_slice(&items[from..span.start]);
            kept.push(Item { c: REMOVED_MARKUP, ..items[span.start] });
            from = span.end;
            // What ends a line may stand directly after a mark.
            at = span.end;
        } else {
            at += 1;
        }
    }
    (from > 0).then(|| {
        kept.extend_from_slice(&items[from..]);
        kept
    })
}

/// Whether a line of ASCII begins with a mark of a list.
pub(super) fn has_list_mark(line: &[u8]) -> bool {
    list_mark(|at| line.get(at).map(|byte| char::from(*byte)), 0).is_some()
}

/// The fewest tag characters in a row that are read. Fewer spell nothing, and only part the letters around them.
const MIN_TAGS: usize = 4;

/// The items with tag characters as the ASCII that they spell; `None` without tag characters.
pub(super) fn decode_tags(items: &[Item]) -> Option<Vec<Item>> {
    let is_tag = |item: &Item| ('\u{e0020}'..='\u{e007e}').contains(&item.c);
    if !items.iter().any(is_tag) {
        return None;
    }
    let mut decoded = items.to_vec();
    for run in decoded.chunk_by_mut(|one, other| is_tag(one) == is_tag(other)) {
        if run.len() >= MIN_TAGS && run.first().is_some_and(is_tag) {
            for item in run {
                item.c = u8::try_from(u32::from(item.c) & 0x7f).map_or(item.c, char::from);
            }
        }
    }
    Some(decoded)
}

/// The marks of list items and tasks with which a line begins, several of them where lists are nested.
fn list_mark(c: impl Fn(usize) -> Option<char>, line: usize) -> Option<Range<usize>> {
    let start = after_blanks(&c, line);
    let mut end = start;
    while let Some(next) = single_mark(&c, end) {
        end = after_blanks(&c, next);
    }
    (end > start).then_some(start..end)
}

/// Where a mark ends that begins here and is followed by a blank.
fn single_mark(c: &impl Fn(usize) -> Option<char>, at: usize) -> Option<usize> {
    let end = match c(at)? {
        '-' | '+' | '*' | '•' | '‣' | '◦' | '▪' | '–' => at + 1,
        '[' if c(at + 2) == Some(']') && matches!(c(at + 1), Some(' ' | 'x' | 'X')) => at + 3,
        '(' => number(c, at + 1).filter(|end| c(*end) == Some(')'))? + 1,
        sign if !sign.is_ascii()
            && sign.is_numeric()
            && !c(at + 1).is_some_and(|next| matches!(next, '.' | ')')) =>
        {
            at + 1
        }
        _ => number(c, at).filter(|end| matches!(c(*end), Some('.' | ')')))? + 1,
    };
    c(end).is_some_and(char::is_whitespace).then_some(end)
}

/// The end of an item's number, or of the letter in place of one.
fn number(c: &impl Fn(usize) -> Option<char>, at: usize) -> Option<usize> {
    let digits =
        (0..=MAX_NUMBER_DIGITS).take_while(|more| c(at + more).is_some_and(char::is_numeric)).count();
    match digits {
        0 => c(at).is_some_and(|letter| letter.is_ascii_alphabetic()).then_some(at + 1),
        1..=MAX_NUMBER_DIGITS => Some(at + digits),
        _ => None,
    }
}

/// Where a line's text begins: after blanks, and after the signs of quotations.
fn after_blanks(c: &impl Fn(usize) -> Option<char>, from: usize) -> usize {
    let is_blank = |sign: char| sign == '>' || (sign.is_whitespace() && !ends_line(sign));
    let mut at = from;
    while c(at).is_some_and(is_blank) {
        at += 1;
    }
    at
}

/// A reference to a footnote, or the mark with which one begins: `[^1]`, `[^1]:`.
fn footnote(c: impl Fn(usize) -> Option<char>, at: usize) -> Option<Range<usize>> {
    if c(at + 1) != Some('^') {
        return None;
    }
    let is_name = |sign: char| sign != ']' && !sign.is_whitespace();
    let name = (0..=MAX_FOOTNOTE_CHARS).take_while(|more| c(at + 2 + more).is_some_and(is_name)).count();
    let end = at + 2 + name;
    let colon = usize::from(c(end + 1) == Some(':'));
    ((1..=MAX_FOOTNOTE_CHARS).contains(&name) && c(end) == Some(']')).then(|| at..end + 1 + colon)
}

/// A raised figure, or a dagger.
fn is_footnote_sign(c: char) -> bool {
    matches!(c, '¹' | '²' | '³' | '⁰' | '⁴'..='⁹' | '†' | '‡')
}
