//! Character classes of the matcher: letter, mark, space or invisible; the folded form, and the look. The table is filled
//! page by page on demand: its entries are constants of Unicode, but a run needs few of them.

use std::sync::OnceLock;

use quorate_diagnostics::invisible::is_ignorable;
use unicode_normalization::char::decompose_compatible;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};
use unicode_security::confusable_detection::skeleton;

/// The class of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A letter, a figure, or what looks like one.
    Letter,
    Space,
    /// Invisible, or a mark on the preceding character.
    Nothing,
    /// A mark of Markdown: emphasis, code, brackets of links, a backslash.
    Mark,
    /// A hyphen or a dash.
    Hyphen,
    Other,
}

/// Which of its two looks a character is read by. They differ where the capital looks like one letter and the small one
/// like another: a Greek Ν is an N, and a ν is a v.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// The look of the small letter.
    Small,
    /// The look of the letter as it stands.
    Standing,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) class: Class,
    /// The letters that it can stand for among `i` and `l`: see [`I`] and [`L`]. A `1` and a `|` look like an l.
    pub(super) strokes: u8,
    /// Whether its two looks differ.
    pub(super) has_two_readings: bool,
    /// The base characters that it is made of, where they are several: `ﬁ`, `㎏`, a Hangul syllable.
    pub(super) components: Box<[char]>,
    /// Its case folded, and nothing else. Empty where that is the character itself.
    cased: Box<str>,
    /// Folded: without compatibility forms, marks and case. Empty where that is the character itself.
    plain: Box<str>,
    /// Its atoms by each reading. Empty where that is the character itself.
    atoms: [Box<str>; 2],
    /// The character for comparisons, if it is neither letter nor space.
    pub(super) sign: char,
}

/// It may be an `i`.
pub(super) const I: u8 = 1;
/// It may be an `l`.
pub(super) const L: u8 = 2;

const PAGES: usize = 0x200;

static TABLE: [OnceLock<Box<[Entry]>>; PAGES] = [const { OnceLock::new() }; PAGES];

#[inline]
pub(super) fn entry(c: char) -> &'static Entry {
    let code = c as usize;
    match TABLE.get(code >> 8) {
        Some(page) => &page.get_or_init(|| fill_page(code & !0xff))[code & 0xff],
        None => entry_beyond_table(c),
    }
}

/// Stands for a tag or the target of a link that was taken out. Unicode promises never to assign it.
pub(super) const REMOVED_MARKUP: char = '\u{10ffff}';

/// Characters beyond the planes of letters with looks: ideographs, tags, unassigned.
fn entry_beyond_table(c: char) -> &'static Entry {
    static IDEOGRAPH: OnceLock<Entry> = OnceLock::new();
    static UNSEEN: OnceLock<Entry> = OnceLock::new();
    static MARK: OnceLock<Entry> = OnceLock::new();
    if c == REMOVED_MARKUP {
        return MARK.get_or_init(|| plain_entry(Class::Mark, c));
    }
    match c.general_category_group() {
        GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number => {
            IDEOGRAPH.get_or_init(|| plain_entry(Class::Letter, c))
        }
        _ => UNSEEN.get_or_init(|| plain_entry(Class::Nothing, c)),
    }
}

fn plain_entry(class: Class, sign: char) -> Entry {
    Entry {
        class,
        strokes: 0,
        has_two_readings: false,
        components: Box::default(),
        cased: Box::default(),
        plain: Box::default(),
        atoms: Default::default(),
        sign,
    }
}

fn fill_page(first: usize) -> Box<[Entry]> {
    let one = |code: usize| {
        u32::try_from(code)
            .ok()
            .and_then(char::from_u32)
            .map_or_else(|| plain_entry(Class::Nothing, '\0'), entry_of)
    };
    (first..first + 0x100).map(one).collect()
}

impl Entry {
    /// Its case folded, and nothing else.
    #[inline]
    pub(super) fn cased<'a>(&'a self, c: char, room: &'a mut [u8; 4]) -> &'a str {
        if self.cased.is_empty() { c.encode_utf8(room) } else { &self.cased }
    }

    /// Folded: without compatibility forms, marks and case.
    #[inline]
    pub(super) fn plain<'a>(&'a self, c: char, room: &'a mut [u8; 4]) -> &'a str {
        if self.plain.is_empty() { c.encode_utf8(room) } else { &self.plain }
    }

    /// The atoms of a letter: what it looks like, with `i`, `l`, `1` and `|` as one, and `o` and `0`.
    #[inline]
    pub(super) fn atoms<'a>(&'a self, c: char, reading: Reading, room: &'a mut [u8; 4]) -> &'a [u8] {
        let atoms = &self.atoms[reading as usize];
        if atoms.is_empty() { c.encode_utf8(room).as_bytes() } else { atoms.as_bytes() }
    }
}

fn entry_of(c: char) -> Entry {
    let cased: String = case(c).collect();
    let cased = if cased.chars().eq([c]) { Box::default() } else { cased.into_boxed_str() };
    Entry { cased, ..letter_entry_of(c) }
}

fn letter_entry_of(c: char) -> Entry {
    let class = class(c);
    let mut bases = Vec::new();
    match enclosed(c) {
        Some(letter) => bases.push(letter),
        None => decompose_compatible(c, |part| bases.push(part)),
    }
    let many = bases.len() > 1;
    if many {
        bases.retain(|base| !is_mark(*base));
    }
    if many && bases.len() > 1 && class != Class::Nothing {
        return Entry { components: bases.into(), ..plain_entry(Class::Other, c) };
    }
    let base = bases.first().copied().unwrap_or(c);
    if c.is_ascii() || class != Class::Letter {
        // A character that decomposes to a single one has the class of that one: `＊` is a mark.
        let class = if class == Class::Other { self::class(base) } else { class };
        if class != Class::Letter {
            let sign = if class == Class::Hyphen { '-' } else { sign(base) };
            let plain = if base == c { Box::default() } else { base.to_string().into_boxed_str() };
            return Entry { plain, ..plain_entry(class, sign) };
        }
    }
    letter(c, base)
}

fn letter(c: char, base: char) -> Entry {
    let plain = folded(base);
    let small = small(&plain);
    let standing = look_as_is(c).map_or_else(|| small.clone(), |seen| look(&folded_all(&seen)));
    let mut strokes = 0;
    for seen in [&plain, &small, &standing] {
        strokes |= match seen.as_str() {
            "i" => I,
            "l" => L,
            _ => 0,
        };
    }
    let itself = |text: String| {
        if text.chars().eq([c]) { Box::default() } else { text.into_boxed_str() }
    };
    let (small, standing) = (coarse(&small), coarse(&standing));
    let has_two_readings = small != standing;
    Entry {
        strokes,
        has_two_readings,
        plain: itself(plain),
        atoms: [itself(small), itself(standing)],
        ..plain_entry(Class::Letter, c)
    }
}

/// The look of a folded letter, or of its capital if the letter itself has no Latin look. It follows from the
/// folded letter alone, so that what is the same in another case looks the same.
fn small(plain: &str) -> String {
    let seen = look(plain);
    let mut capital = plain.chars().flat_map(char::to_uppercase);
    match (seen.is_ascii(), capital.next(), capital.next()) {
        (false, Some(only), None) => {
            let capital = look_as_is(only).filter(|capital| capital.is_ascii());
            capital.map_or(seen, |capital| look(&folded_all(&capital)))
        }
        _ => seen,
    }
}

/// A character's case folded, through all the forms that it shares a case with: `ß` and `ẞ` are `ss`, `ς` is `σ`.
pub(super) fn case(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

/// Without compatibility forms, marks and case, until nothing more changes.
fn folded(c: char) -> String {
    let mut now = String::from(c);
    for _ in 0..4 {
        let next = folded_all(&now);
        if next == now {
            break;
        }
        now = next;
    }
    now
}

fn folded_all(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().flat_map(case) {
        decompose_compatible(c, |part| {
            if !is_mark(part) {
                out.push(part);
            }
        });
    }
    if out.is_empty() { text.to_owned() } else { out }
}

/// Whether it is drawn on or around the preceding character. Marks that turn one kana into another stay: without
/// them が and か would be the same.
pub(super) fn is_mark(c: char) -> bool {
    matches!(c.general_category(), GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark)
        && !matches!(c, '\u{3099}' | '\u{309a}')
}

/// Letters in brackets, circles, squares and flags: those that Unicode gives no decomposition to, or one with the brackets.
fn enclosed(c: char) -> Option<char> {
    let code = u32::from(c);
    let first = [0x249c, 0x1f110, 0x1f150, 0x1f170, 0x1f1e6]
        .into_iter()
        .find(|first| (*first..first + 26).contains(&code))?;
    char::from_u32(u32::from('a') + code - first)
}

fn class(c: char) -> Class {
    if c.is_ascii() {
        return match c {
            '0'..='9' | 'A'..='Z' | 'a'..='z' | '|' => Class::Letter,
            '\t'..='\r' | ' ' => Class::Space,
            '*' | '_' | '~' | '`' | '[' | ']' | '\\' => Class::Mark,
            '-' => Class::Hyphen,
            _ if c.is_control() => Class::Nothing,
            _ => Class::Other,
        };
    }
    if is_ignorable(c) || is_mark(c) {
        return Class::Nothing;
    }
    if c.is_whitespace() || c == '\u{2800}' {
        return Class::Space;
    }
    if enclosed(c).is_some() || is_letter(c) {
        return Class::Letter;
    }
    match c.general_category_group() {
        GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number | GeneralCategoryGroup::Mark => {
            Class::Letter
        }
        GeneralCategoryGroup::Other => Class::Nothing,
        _ if c.general_category() == GeneralCategory::DashPunctuation => Class::Hyphen,
        _ => Class::Other,
    }
}

/// Whether it is an upright stroke that parts the cells of a table, or looks like one. Some of them also look like letters.
pub(super) fn is_pipe(c: char) -> bool {
    matches!(
        c,
        '|' | '¦'
            | 'ǀ'
            | 'ǁ'
            | '\u{5c0}'
            | '\u{964}'
            | '\u{965}'
            | '‖'
            | '∣'
            | '∥'
            | '⎪'
            | '⏐'
            | '│'
            | '┃'
            | '┆'..='┋'
            | '║'
            | '╎'
            | '╏'
            | '❘'..='❚'
            | '⼁'
            | '丨'
            | '︱'
            | '︳'
            | '｜'
            | '￨'
    )
}

/// Whether it ends a line.
pub(super) fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether the preceding letter continues with it: a vowel or a final of a Hangul syllable, a sound mark of a kana.
pub(super) fn continues_letter(c: char) -> bool {
    matches!(c, '\u{1161}'..='\u{11ff}' | '\u{3099}' | '\u{309a}' | '\u{ff9e}' | '\u{ff9f}')
}

/// What a folded text looks like, in small letters: prototypes of prototypes, until nothing more changes. Marks and
/// signs that a prototype brings along are left out, unless nothing else is left.
pub(in crate::locks) fn look(text: &str) -> String {
    let mut now = text.to_owned();
    for _ in 0..4 {
        let next = skeleton_once(&now);
        if next == now {
            break;
        }
        now = next;
    }
    now
}

fn skeleton_once(text: &str) -> String {
    let seen = skeleton(text).filter(|c| !is_mark(*c)).map(small_capital).flat_map(case);
    let letters: String = seen.filter(|c| c.is_alphanumeric()).collect();
    if letters.is_empty() { text.to_owned() } else { letters }
}

/// The look of a character in this case, if it differs.
fn look_as_is(c: char) -> Option<String> {
    let seen: String = skeleton(c.encode_utf8(&mut [0; 4])).filter(|c| !is_mark(*c)).collect();
    (!seen.is_empty() && !seen.chars().eq([c]) && seen.chars().any(char::is_alphanumeric)).then_some(seen)
}

/// Whether it looks like a letter, without being one: `∣`, `˛`, `∞`.
fn is_letter(c: char) -> bool {
    look_as_is(c).is_some_and(|seen| seen.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// The sign for comparisons: its look, if that is one ASCII character.
fn sign(c: char) -> char {
    let mut room = [0; 4];
    let mut seen = skeleton(c.encode_utf8(&mut room));
    match (seen.next(), seen.next()) {
        (Some(only), None) if only.is_ascii_punctuation() => only,
        _ => c,
    }
}

/// With `i`, `l`, `1` and `|` as one and `o` and `0` as one: which of them it was is looked at afterwards.
fn coarse(text: &str) -> String {
    let one = |c| match c {
        'l' | '1' | '|' => 'i',
        '0' => 'o',
        c => c,
    };
    text.chars().map(one).collect()
}

/// Small capitals and Greek letters that UTS 39 gives prototypes of their own.
fn small_capital(c: char) -> char {
    match c {
        'ᴀ' => 'a',
        'ʙ' | 'ß' => 'b',
        'ᴅ' => 'd',
        'ᴇ' | 'ɛ' => 'e',
        'ꜰ' => 'f',
        'ɢ' => 'g',
        'ʜ' => 'h',
        'ᴊ' => 'j',
        'ĸ' => 'k',
        'ʟ' => 'l',
        'ʍ' | 'ᴍ' => 'm',
        'ɴ' => 'n',
        'ᴘ' => 'p',
        'ǫ' => 'q',
        'ʀ' => 'r',
        'ᴛ' => 't',
        'μ' => 'u',
        'ω' => 'w',
        'χ' => 'x',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_read_by_its_folded_form_and_both_looks() {
        for (c, plain, small, standing) in [
            ('ƅ', "ƅ", "b", "b"),
            ('Ƅ', "ƅ", "b", "b"),
            ('ð', "ð", "d", "d"),
            ('º', "o", "o", "o"),
            ('Ν', "ν", "v", "n"),
            ('１', "1", "i", "i"),
            ('¢', "¢", "c", "c"),
        ] {
            let (entry, mut room) = (entry(c), [[0; 4]; 3]);
            let [one, two, three] = &mut room;
            assert_eq!(entry.class, Class::Letter, "{c}");
            assert_eq!(entry.plain(c, one), plain, "{c}");
            assert_eq!(entry.atoms(c, Reading::Small, two), small.as_bytes(), "{c}");
            assert_eq!(entry.atoms(c, Reading::Standing, three), standing.as_bytes(), "{c}");
            assert_eq!(entry.has_two_readings, small != standing, "{c}");
        }
    }

    #[test]
    fn a_sign_is_compared_as_the_ascii_sign_that_it_looks_like() {
        for (c, sign) in [('—', '-'), ('＊', '*'), ('’', '\''), ('¦', '¦'), ('˓', '˓'), ('!', '!')] {
            assert_eq!(entry(c).sign, sign, "{c}");
        }
    }
}
