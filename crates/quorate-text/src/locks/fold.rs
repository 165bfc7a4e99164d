//! Folding: reads a text as characters with their places, removes markup, and writes the folded forms that are searched.

use entities::{Codepoints, ENTITIES};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{compose, decompose_compatible};

use super::character::{STROKE, case, ends_line, is_blank, is_invisible, is_mark, push_look, simplified};

/// A text without what makes two writings of the same words different: compatibility forms, case, marks, characters that are
/// not seen, entities, HTML tags, the targets of links, Markdown's marks, line-end hyphens, and runs of white space, which
/// become one space. Looks do not change: a Cyrillic а stays one. Folding is idempotent.
pub fn fold(text: &str) -> String {
    let mut tokens = read(text, Marks::Dropped);
    if let Some(unmarked) = Markup::find(&tokens, LineStarts::Kept) {
        tokens = unmarked.removed(&tokens);
    }
    // Removed markup leaves no markup; but with it the next folding might find some.
    tokens.retain(|token| !matches!(token.c, '&' | '<' | '>'));
    folded(&tokens).text.nfc().collect()
}

/// What a name looks like, by its letters and figures: names with the same look are easily confused (`Ada`, `\u{430}da`, `a-da`).
pub fn look_of_name(name: &str) -> String {
    letters(&skeleton(&read(name, Marks::Dropped)).reading('l')).text
}

/// A character as read, and the bytes of the text that it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) c: char,
    start: u32,
    end: u32,
}

/// Whether accents and other marks belong to the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marks {
    Kept,
    Dropped,
}

/// The longest text that is read, in bytes; the rest of a longer one is left out.
const MAX_BYTES: usize = u32::MAX as usize;

/// The fewest tag characters in a row that are read as the ASCII that they spell. Fewer spell nothing, and are invisible.
const MIN_TAGS: usize = 4;

/// The visible characters of a text, normalized (NFKC), with entities decoded. Soft hyphens stay: they may end a line.
pub(super) fn read(text: &str, marks: Marks) -> Vec<Token> {
    let text = &text[..text.floor_char_boundary(MAX_BYTES)];
    let mut reader = Reader { tokens: Vec::with_capacity(text.len()), marks, span: (0, 0) };
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let mut len = c.len_utf8();
        if c == '&'
            && let Some(((first, second), bytes)) = reference(&text[at..])
        {
            len = bytes;
            reader.place(at, len);
            reader.push(first);
            second.into_iter().for_each(|c| reader.push(c));
        } else if let Some(ascii) = spelled_by_tag(c) {
            let run = text[at..].chars().map_while(spelled_by_tag).count();
            if run >= MIN_TAGS {
                reader.place(at, len);
                reader.push(ascii);
                reader.push_tags(&text[at + len..], at + len);
            }
            len *= run;
        } else {
            reader.place(at, len);
            reader.push(c);
        }
        at += len;
    }
    reader.tokens
}

fn spelled_by_tag(c: char) -> Option<char> {
    ('\u{e0020}'..='\u{e007e}').contains(&c).then(|| char::from_u32(u32::from(c) & 0x7f)).flatten()
}

struct Reader {
    tokens: Vec<Token>,
    marks: Marks,
    /// The bytes of the character that is read.
    span: (u32, u32),
}

impl Reader {
    #[expect(clippy::cast_possible_truncation, reason = "the longest text fits")]
    fn place(&mut self, at: usize, len: usize) {
        self.span = (at as u32, (at + len) as u32);
    }

    fn push_tags(&mut self, text: &str, mut at: usize) {
        for (tag, ascii) in text.chars().map_while(|c| Some((c, spelled_by_tag(c)?))) {
            self.place(at, tag.len_utf8());
            self.push(ascii);
            at += tag.len_utf8();
        }
    }

    fn push(&mut self, c: char) {
        if c.is_ascii_graphic() {
            self.push_token(c);
        } else if is_blank(c) {
            self.push_token(if ends_line(c) { '\n' } else { ' ' });
        } else if matches!(c, '\u{ad}' | 'ϲ' | 'Ϲ') {
            // Compatibility makes a sigma of a lunate one, which looks like a c.
            self.push_token(c);
        } else if is_mark(c) {
            self.push_mark(c);
        } else if !is_invisible(c) {
            decompose_compatible(simplified(c), |part| self.push_part(part));
        }
    }

    fn push_part(&mut self, part: char) {
        if is_mark(part) {
            self.push_mark(part);
        } else if is_blank(part) {
            self.push_token(' ');
        } else if !(continues_letter(part) && self.compose(part)) {
            self.push_token(simplified(part));
        }
    }

    fn push_mark(&mut self, mark: char) {
        if self.marks == Marks::Kept {
            if !self.compose(mark) {
                self.push_token(mark);
            }
        } else if let Some(last) = self.tokens.last_mut().filter(|last| last.end == self.span.0) {
            // The marks on a letter belong to its place.
            last.end = self.span.1;
        }
    }

    /// Makes one character of the last one and the next, if there is one.
    fn compose(&mut self, c: char) -> bool {
        let composed = self.tokens.last_mut().and_then(|last| Some((compose(last.c, c)?, last)));
        composed.map(|(c, last)| (last.c, last.end) = (c, self.span.1)).is_some()
    }

    fn push_token(&mut self, c: char) {
        self.tokens.push(Token { c, start: self.span.0, end: self.span.1 });
    }
}

/// Whether the preceding letter continues with it: a vowel or a final of a Hangul syllable, a sound mark of a kana.
fn continues_letter(c: char) -> bool {
    matches!(c, '\u{1161}'..='\u{11ff}' | '\u{3099}' | '\u{309a}')
}

/// Where the markup of a text is.
pub(super) struct Markup(Vec<(Range<usize>, Kind)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A tag, the target of a link, a mark of emphasis: nothing, or a space.
    Mark,
    /// The hyphen at the end of a line, with the line's end: nothing.
    Hyphen,
    /// A low line within a word, or what a line begins with: it stays, or is a space.
    Space,
}

/// How far the end of a tag or of a link's target is looked for, in characters.
const MAX_MARKUP_CHARS: usize = 512;

/// Whether what a line begins with counts as markup: signs of quotation, marks of lists and tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineStarts {
    Kept,
    Removed,
}

impl Markup {
    /// `None` if there is no markup.
    pub(super) fn find(tokens: &[Token], line_starts: LineStarts) -> Option<Markup> {
        let (mut spans, mut at, mut has_comment_end) = (Vec::new(), 0, true);
        while at < tokens.len() {
            let rest = &tokens[at..];
            let (len, kind) = match rest[0].c {
                '<' => (tag_len(rest, &mut has_comment_end), Kind::Mark),
                ']' => (target_len(rest), Kind::Mark),
                '[' => (footnote_len(rest).max(1), Kind::Mark),
                '*' | '~' | '`' | '\\' | '†' | '‡' => (1, Kind::Mark),
                '_' if is_within_word(tokens, at) => (1, Kind::Space),
                '_' => (1, Kind::Mark),
                '-' | '\u{ad}' => (line_end_len(rest), Kind::Hyphen),
                '\n' if line_starts == LineStarts::Removed => {
                    match line_start_len(|at| c(rest, at + 1), true) {
                        0 => (0, Kind::Space),
                        len => (1 + len, Kind::Space),
                    }
                }
                _ => (0, Kind::Mark),
            };
            if len > 0 {
                spans.push((at..at + len, kind));
            }
            at += len.max(1);
        }
        (!spans.is_empty()).then_some(Markup(spans))
    }

    /// The tokens without the markup.
    pub(super) fn removed(&self, tokens: &[Token]) -> Vec<Token> {
        self.replaced(tokens, |kind, c| (kind == Kind::Space).then_some(if c == '_' { '_' } else { ' ' }))
    }

    /// The tokens with space in place of the markup.
    pub(super) fn spaced(&self, tokens: &[Token]) -> Vec<Token> {
        self.replaced(tokens, |kind, _| (kind != Kind::Hyphen).then_some(' '))
    }

    fn replaced(&self, tokens: &[Token], by: impl Fn(Kind, char) -> Option<char>) -> Vec<Token> {
        let mut kept = Vec::with_capacity(tokens.len());
        let mut from = 0;
        for (span, kind) in &self.0 {
            kept.extend_from_slice(&tokens[from..span.start]);
            let first = tokens[span.start];
            kept.extend(by(*kind, first.c).map(|c| Token { c, ..first }));
            from = span.end;
        }
        kept.extend_from_slice(&tokens[from..]);
        kept
    }
}

/// Markdown takes a low line between two letters for no mark: `data_index`.
fn is_within_word(tokens: &[Token], at: usize) -> bool {
    let is_letter = |at: usize| tokens.get(at).is_some_and(|token| token.c.is_alphanumeric());
    at > 0 && is_letter(at - 1) && is_letter(at + 1)
}

/// The length of the tag or comment that begins here; 0 for another sign.
fn tag_len(rest: &[Token], has_comment_end: &mut bool) -> usize {
    let c = |at: usize| c(rest, at);
    if *has_comment_end && c(1) == '!' && c(2) == '-' && c(3) == '-' {
        let end =
            rest.windows(3).skip(2).position(|end| end[0].c == '-' && end[1].c == '-' && end[2].c == '>');
        match end {
            Some(end) => return end + 5,
            None => *has_comment_end = false,
        }
    }
    if !(c(1).is_ascii_alphabetic() || matches!(c(1), '!' | '/' | '?')) {
        return 0;
    }
    let (mut quote, mut first) = (None, 0);
    for (at, token) in rest.iter().enumerate().take(MAX_MARKUP_CHARS) {
        match (quote, token.c) {
            (None, '>') => return at + 1,
            (None, sign @ ('"' | '\'')) if c(at - 1) == '=' => quote = Some(sign),
            (Some(open), sign) if open == sign => quote = None,
            // A `>` in quotes does not end a tag, unless the quotes do not end.
            (Some(_), '>') if first == 0 => first = at + 1,
            _ => {}
        }
    }
    first
}

/// The length of a closing bracket, with the target of the link whose text it ends: `](…)`, `][…]`.
fn target_len(rest: &[Token]) -> usize {
    let Some(open) = rest.get(1).map(|token| token.c).filter(|c| matches!(c, '(' | '[')) else { return 1 };
    let close = if open == '(' { ')' } else { ']' };
    let mut depth = 0;
    for (at, token) in rest.iter().enumerate().take(MAX_MARKUP_CHARS).skip(1) {
        if token.c == open {
            depth += 1;
        } else if token.c == close {
            depth -= 1;
            if depth == 0 {
                return at + 1;
            }
        }
    }
    1
}

/// The length of a hyphen, the line's end after it and what the next line begins with; 0 for a hyphen within a line.
fn line_end_len(rest: &[Token]) -> usize {
    let blanks = rest[1..].iter().take_while(|token| matches!(token.c, ' ' | '\n')).count();
    if !rest[1..=blanks].iter().any(|token| token.c == '\n') {
        return 0;
    }
    1 + blanks + line_start_len(|at| c(rest, 1 + blanks + at), false)
}

/// The length of the reference to a footnote, or of the mark with which one begins: `[^1]`, `[^1]:`; 0 for another bracket.
fn footnote_len(rest: &[Token]) -> usize {
    if c(rest, 1) != '^' {
        return 0;
    }
    let is_name = |token: &&Token| !matches!(token.c, ']' | ' ' | '\n');
    let name = rest.iter().take(MAX_FOOTNOTE_CHARS).take_while(is_name).count();
    match name > 2 && c(rest, name) == ']' {
        true => name + 1 + usize::from(c(rest, name + 1) == ':'),
        false => 0,
    }
}

/// The longest reference to a footnote, in characters.
const MAX_FOOTNOTE_CHARS: usize = 64;

/// The most figures of an ordered item's number, as in CommonMark.
const MAX_NUMBER_DIGITS: usize = 9;

/// The length of what a line begins with beside its text: blanks, signs of quotation, marks of lists and tasks; 0 without
/// such signs. `c` gives the characters of the line; `a)` is a mark unless the line ends a word that the line before begins.
pub(super) fn line_start_len(c: impl Fn(usize) -> char, has_letters: bool) -> usize {
    let (mut at, mut has_mark) = (0, false);
    loop {
        while c(at) == ' ' {
            at += 1;
        }
        let digits = (0..MAX_NUMBER_DIGITS).take_while(|more| c(at + more).is_ascii_digit()).count();
        let is_letter = has_letters && c(at).is_ascii_alphabetic();
        let number = if digits == 0 { usize::from(is_letter) } else { digits };
        let mark = match c(at) {
            '>' => 1,
            '-' | '+' | '*' | '•' if c(at + 1) == ' ' => 2,
            '[' if matches!(c(at + 1), ' ' | 'x' | 'X') && c(at + 2) == ']' && c(at + 3) == ' ' => 4,
            '(' if c(at + 1).is_ascii_alphanumeric() && c(at + 2) == ')' && c(at + 3) == ' ' => 4,
            _ if number > 0 && matches!(c(at + number), '.' | ')') && c(at + number + 1) == ' ' => number + 2,
            _ if has_mark => return at,
            _ => return 0,
        };
        at += mark;
        has_mark = true;
    }
}

fn c(tokens: &[Token], at: usize) -> char {
    tokens.get(at).map_or('\n', |token| token.c)
}

/// Text that knows for each of its bytes which bytes of the text as given it comes from.
#[derive(Debug, Clone, Default)]
pub(super) struct Mapped {
    pub(super) text: String,
    from: Vec<(u32, u32)>,
}

impl Mapped {
    /// Where bytes of it come from.
    pub(super) fn source(&self, span: Range<usize>) -> Range<usize> {
        let from = &self.from[span];
        let end = from.iter().map(|(_, end)| *end).max().unwrap_or(0);
        from.first().map_or(0, |(start, _)| *start as usize)..end as usize
    }

    /// The characters of the text as given that a part of it comes from, in bytes of that part.
    pub(super) fn characters(&self, span: Range<usize>) -> usize {
        self.from[span].chunk_by(|one, other| one == other).count()
    }

    /// A skeleton with a letter for its strokes and an `o` for its zeros.
    pub(super) fn reading(&self, stroke: char) -> Mapped {
        let letter = |c| match c {
            '1' | STROKE => stroke,
            '0' => 'o',
            c => c,
        };
        Mapped { text: self.text.chars().map(letter).collect(), from: self.from.clone() }
    }

    fn push(&mut self, c: char, from: (u32, u32)) {
        self.text.push(c);
        self.from.resize(self.text.len(), from);
    }

    fn push_blank(&mut self, from: (u32, u32)) {
        if !self.text.ends_with(' ') {
            self.push(' ', from);
        }
    }
}

/// A text with case folded, and nothing else.
#[expect(clippy::cast_possible_truncation, reason = "the longest text fits")]
pub(super) fn cased(text: &str) -> Mapped {
    let mut cased = Mapped::default();
    for (at, c) in text[..text.floor_char_boundary(MAX_BYTES)].char_indices() {
        let from = (at as u32, (at + c.len_utf8()) as u32);
        case(c).for_each(|c| cased.push(c, from));
    }
    cased
}

/// Tokens with case folded and white space collapsed.
pub(super) fn folded(tokens: &[Token]) -> Mapped {
    let mut folded = Mapped::default();
    for token in tokens {
        let from = (token.start, token.end);
        match token.c {
            ' ' | '\n' => folded.push_blank(from),
            '\u{ad}' => {}
            c if c.is_ascii() => folded.push(c.to_ascii_lowercase(), from),
            c => case(c).filter(|c| !is_mark(*c)).for_each(|c| folded.push(c, from)),
        }
    }
    folded
}

/// Tokens by what they look like.
pub(super) fn skeleton(tokens: &[Token]) -> Mapped {
    let mut skeleton = Mapped::default();
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map_or(' ', |before| tokens[before].c);
        let after = tokens.get(at + 1).map_or(' ', |after| after.c);
        let from = (token.start, token.end);
        match token.c {
            ' ' | '\n' => skeleton.push_blank(from),
            '\u{ad}' => {}
            // A capital I among small letters passes for an l, and an l among capitals for an I.
            'I' if before.is_lowercase() => skeleton.push(STROKE, from),
            'l' if before.is_uppercase() && after.is_uppercase() => skeleton.push(STROKE, from),
            c => {
                push_look(c, &mut skeleton.text);
                skeleton.from.resize(skeleton.text.len(), from);
            }
        }
    }
    skeleton
}

/// The letters and figures of a skeleton alone. They know where in the skeleton they come from.
#[expect(clippy::cast_possible_truncation, reason = "the longest text fits")]
pub(super) fn letters(skeleton: &Mapped) -> Mapped {
    let mut letters = Mapped::default();
    for (at, c) in skeleton.text.char_indices().filter(|(_, c)| c.is_alphanumeric()) {
        letters.push(c, (at as u32, (at + c.len_utf8()) as u32));
    }
    letters
}
/// The characters that a reference stands for; the second exists for few of them.
type Characters = (char, Option<char>);

/// How often a reference may be wrapped in another.
const MAX_NESTING: usize = 32;

/// The longest name, without `&` and `;`.
const MAX_NAME_BYTES: usize = 31;

/// The names, with their semicolon if they need one.
static NAMES: LazyLock<HashMap<&'static str, Characters>> = LazyLock::new(|| {
    let c = |code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    let named = |entity: &'static entities::Entity| {
        let characters = match entity.codepoints {
            Codepoints::Single(only) => (c(only), None),
            Codepoints::Double(first, second) => (c(first), Some(c(second))),
        };
        (&entity.entity[1..], characters)
    };
    ENTITIES.iter().map(named).collect()
});

/// The characters of the reference that a text begins with, and its length in bytes.
fn reference(text: &str) -> Option<(Characters, usize)> {
    let (mut characters, mut len) = single(text.strip_prefix('&')?).map(|(c, len)| (c, len + 1))?;
    for _ in 0..MAX_NESTING {
        match single(&text[len..]) {
            Some((inner, more)) if characters == ('&', None) => (characters, len) = (inner, len + more),
            _ => break,
        }
    }
    Some((characters, len))
}

/// The reference whose ampersand is before the text.
fn single(text: &str) -> Option<(Characters, usize)> {
    if let Some(number) = text.strip_prefix('#') {
        let (radix, prefix) = if number.starts_with(['x', 'X']) { (16, 1) } else { (10, 0) };
        let digits = number[prefix..].find(|c: char| !c.is_digit(radix)).unwrap_or(number.len() - prefix);
        let end = prefix + digits;
        let code = number[prefix..end].trim_start_matches('0');
        let c = u32::from_str_radix(code, radix).ok().and_then(char::from_u32);
        let len = 1 + end + usize::from(number[end..].starts_with(';'));
        return (digits > 0).then_some(((c.unwrap_or(char::REPLACEMENT_CHARACTER), None), len));
    }
    let letters = text.bytes().take(MAX_NAME_BYTES).take_while(u8::is_ascii_alphanumeric).count();
    let longest = letters + usize::from(text[letters..].starts_with(';'));
    // Some old names need no semicolon, so that text may follow.
    (2..=longest).rev().find_map(|len| Some((*NAMES.get(&text[..len])?, len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_as_browsers_read_them() {
        let rows = [
            ("&#119;armth", "w", 6),
            ("&#x77;armth", "w", 6),
            ("&#0000119 armth", "w", 9),
            ("&amp;#119;", "w", 10),
            ("&amp;amp;#119;", "w", 14),
            ("&#38;#38#119;", "w", 13),
            ("&eacute;", "é", 8),
            ("&eacutem", "é", 7),
            ("&wscr;", "𝓌", 6),
            ("&NotEqualTilde;", "≂\u{338}", 15),
            ("&#x110000;", "\u{fffd}", 10),
            ("&ampx", "&", 4),
        ];
        for (text, characters, len) in rows {
            let ((first, second), found) = reference(text).unwrap_or_else(|| panic!("{text} is a reference"));
            let read: String = [Some(first), second].into_iter().flatten().collect();
            assert_eq!((read.as_str(), found), (characters, len), "{text}");
        }
    }

    #[test]
    fn an_ampersand_may_be_just_that() {
        for text in ["&", "& co", "&D", "&#", "&#x", "&#;", "&;", "&wscr", "&zzzz;", "&é"] {
            assert_eq!(reference(text), None, "{text}");
        }
    }
}
