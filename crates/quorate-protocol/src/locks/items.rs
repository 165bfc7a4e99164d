//! A text as the matcher reads it: one item for each visible character, with its source position. Entities are decoded and
//! ligatures split; a second reading removes tags and the targets of links.
//! Also HTML character references, and the marks of lists, tasks and footnotes, which are not part of the text.

use std::ops::Range;
use std::sync::OnceLock;

use entities::{Codepoints, ENTITIES};

use super::character::{Class, Entry, REMOVED_MARKUP, ends_line, entry};

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
pub(super) fn read_items(text: &str) -> Vec<Item> {
    let mut items = Vec::with_capacity(text.len());
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let start = at as u32;
        match bytes[at] {
            b'&' => {
                let found = reference(&text[at..]);
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
        // A text that contains the sign of removed markup gets another invisible character.
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
                    b'\n' | b'\r' => has_list_mark(&bytes[at + 1..]),
                    _ => reference(&text[at..]).is_some(),
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

/// A character, and where in the text it comes from. Items follow each other without gaps: one ends where the next
/// that has another start begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) c: char,
    /// The byte at which its source begins.
    pub(super) start: u32,
}

impl Item {
    #[inline]
    pub(super) fn class(self) -> Class {
        self.entry().class
    }

    /// The entry of its character.
    #[inline]
    pub(super) fn entry(self) -> &'static Entry {
        entry(self.c)
    }
}

/// How often a reference may be wrapped in another.
const MAX_NESTING: usize = 32;

/// The longest name there is, without `&` and `;`.
const MAX_NAME_BYTES: usize = 31;

/// The characters that a reference stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reference {
    /// The characters; the second is there for few of them.
    pub(super) stands_for: (char, Option<char>),
    /// How many bytes it takes.
    pub(super) len: usize,
}

/// The reference that a text begins with, wrapped ones unwrapped: `&amp;amp;#119;` is `w`.
pub(super) fn reference(text: &str) -> Option<Reference> {
    let mut found = single_reference(text.as_bytes(), 1)?;
    for _ in 0..MAX_NESTING {
        if found.stands_for != ('&', None) {
            break;
        }
        match single_reference(text.as_bytes(), found.len) {
            Some(inner) => found = inner,
            None => break,
        }
    }
    Some(found)
}

/// The reference whose ampersand has been read and whose name begins at `from`.
fn single_reference(bytes: &[u8], from: usize) -> Option<Reference> {
    let (stands_for, len) = match bytes.get(from)? {
        b'#' => numeric_reference(&bytes[from + 1..]).map(|(c, len)| ((c, None), len + 1))?,
        b'a'..=b'z' | b'A'..=b'Z' => named_reference(&bytes[from..])?,
        _ => return None,
    };
    Some(Reference { stands_for, len: from + len })
}

fn numeric_reference(bytes: &[u8]) -> Option<(char, usize)> {
    let (radix, prefix) = if matches!(bytes.first()?, b'x' | b'X') { (16, 1) } else { (10, 0) };
    let digits = bytes[prefix..].iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
    if digits == 0 {
        return None;
    }
    let code = bytes[prefix..prefix + digits].iter().fold(0u32, |code, byte| {
        code.saturating_mul(radix).saturating_add(char::from(*byte).to_digit(radix).unwrap_or(0))
    });
    let end = prefix + digits;
    let semicolon = usize::from(bytes.get(end) == Some(&b';'));
    Some((char_of_code(code), end + semicolon))
}

/// A numeric reference's character: Windows-1252 for ISO 8859-1 controls, and the replacement character for invalid ones.
fn char_of_code(code: u32) -> char {
    const WINDOWS: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match code {
        0x80..=0x9f => WINDOWS[code as usize - 0x80],
        0 => char::REPLACEMENT_CHARACTER,
        code => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

/// The longest name that the bytes begin with; without a semicolon only one of the old ones.
fn named_reference(bytes: &[u8]) -> Option<((char, Option<char>), usize)> {
    let letters = bytes.iter().take(MAX_NAME_BYTES).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let name = &bytes[..letters];
    if bytes.get(letters) == Some(&b';')
        && let Some(stands_for) = look_up(&bytes[..=letters])
    {
        return Some((stands_for, letters + 1));
    }
    (2..=name.len()).rev().find_map(|len| Some((look_up(&name[..len])?, len)))
}

type Named = (&'static [u8], (char, Option<char>));

/// The characters of a name, with its semicolon if it has one.
fn look_up(name: &[u8]) -> Option<(char, Option<char>)> {
    static TABLE: OnceLock<Vec<Named>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let c = |code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        let one = |entity: &'static entities::Entity| {
            let stands_for = match entity.codepoints {
                Codepoints::Single(only) => (c(only), None),
                Codepoints::Double(first, second) => (c(first), Some(c(second))),
            };
            (&entity.entity.as_bytes()[1..], stands_for)
        };
        let mut table: Vec<Named> = ENTITIES.iter().map(one).collect();
        table.sort_unstable_by_key(|(name, _)| *name);
        table
    });
    table.binary_search_by_key(&name, |(name, _)| *name).ok().map(|at| table[at].1)
}

/// The most figures of an ordered item's number, as in CommonMark.
const MAX_NUMBER_DIGITS: usize = 9;

/// The longest name of a footnote, in characters.
const MAX_FOOTNOTE_CHARS: usize = 64;

/// The items with each mark replaced by one [`REMOVED_MARKUP`]; `None` if the text has no marks.
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
            // A line end may follow a mark directly.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, stands_for: &str, len: usize) {
        let found = reference(text).unwrap_or_else(|| panic!("{text} is a reference"));
        let replacement: String =
            [Some(found.stands_for.0), found.stands_for.1].into_iter().flatten().collect();
        assert_eq!((replacement.as_str(), found.len), (stands_for, len), "{text}");
    }

    #[test]
    fn references_are_read_as_browsers_read_them() {
        check("&#119;armth", "w", 6);
        check("&#x77;armth", "w", 6);
        check("&#0000119 armth", "w", 9);
        check("&amp;#119;", "w", 10);
        check("&amp;amp;#119;", "w", 14);
        check("&#38;#38#119;", "w", 13);
        check("&eacute;", "é", 8);
        check("&eacutem", "é", 7);
        check("&wscr;", "𝓌", 6);
        check("&NotEqualTilde;", "≂\u{338}", 15);
        check("&#150;", "–", 6);
        check("&#x110000;", "\u{fffd}", 10);
        check("&ampx", "&", 4);
    }

    #[test]
    fn an_ampersand_may_be_just_that() {
        for text in ["&", "& co", "&D", "&#", "&#x", "&#;", "&;", "&wscr", "&zzzz;"] {
            assert_eq!(reference(text), None, "{text}");
        }
    }
}
