//! Letters set apart: `i g n o r e`, `i.g.n.o.r.e`, `ign-ore`. It is fed the gaps between the letters of a candidate one by
//! one, and decides at the end whether that is the trait, set apart, or just other words.
//!
//! Letters set apart must form whole words of the trait: each word is as the trait has it, or all of its letters are apart.
//! A long trait also matches if only its blanks were moved (`ign orethe policy`), since other words rarely share so many
//! letters.

use super::character::{Class, ends_line};
use super::gap::Gap;
use super::item::Item;

/// The fewest letters of a trait that is also looked for letter by letter, `h o n e s t`. One of fewer is seen only with a
/// single sign between its letters, `A.I.`.
const MIN_SPELLED_LETTERS: usize = 4;

/// The fewest letters of a trait that may be parted here and there by a single sign.
const MIN_SPLIT_LETTERS: usize = 5;

/// The fewest letters of a trait whose blanks may have been moved.
const MIN_MOVED_LETTERS: usize = 12;

/// How many signs may be between letters that are set apart; blanks in a row are one.
const MAX_GAP_SIGNS: usize = 8;

/// How much may be between them at all.
const MAX_GAP_ITEMS: usize = 64;

/// What is known of a place's gaps so far.
#[derive(Debug)]
pub(super) struct SpacingState {
    letters: usize,
    /// Every two letters are apart.
    all_apart: bool,
    /// Every two letters have a single sign between them.
    all_single_sign: bool,
    /// Where letters are apart that should not be, a single sign parts them.
    some_split: bool,
    /// Where the gap is another, it is one of blanks, or of nothing.
    blanks_moved: bool,
    /// Each word is whole, or apart.
    word_by_word: bool,
    word: WordState,
    /// Whether the first word is apart; `None` before its end.
    first: Option<bool>,
    /// Whether the word before the current one is apart, or has only one letter.
    before: bool,
    /// The gap before the current word is another than the trait's, which only words that are apart may have.
    pending: bool,
}

#[derive(Debug)]
struct WordState {
    gaps: usize,
    matches_trait: bool,
    is_apart: bool,
}

const NEW_WORD: WordState = WordState { gaps: 0, matches_trait: true, is_apart: true };

/// How a place is set apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edges {
    /// Nothing may stand directly before it.
    pub(super) before: bool,
    /// Nothing may stand directly after it.
    pub(super) after: bool,
    /// The adjacent rows of letters must not continue either.
    pub(super) is_abbreviation: bool,
}

impl SpacingState {
    /// Of a trait with so many letters.
    pub(super) fn new(letters: usize) -> Self {
        SpacingState {
            letters,
            all_apart: letters >= MIN_SPELLED_LETTERS,
            all_single_sign: (2..MIN_SPELLED_LETTERS).contains(&letters),
            some_split: letters >= MIN_SPLIT_LETTERS,
            blanks_moved: letters >= MIN_MOVED_LETTERS,
            word_by_word: letters >= MIN_SPELLED_LETTERS,
            word: NEW_WORD,
            first: None,
            before: false,
            pending: false,
        }
    }

    /// Takes the gap between two letters, and whether it is what the trait has there. Whether it still may be set apart.
    pub(super) fn accept_gap(&mut self, gap: &[Item], wanted: &Gap, is_met: bool) -> bool {
        let is_separated = separates(gap);
        self.all_apart &= is_separated;
        self.all_single_sign &= is_joiner(gap);
        if !is_met {
            self.some_split &= may_split_word(gap, wanted);
            let plain = wanted.is_empty() || wanted.is_space();
            self.blanks_moved &= (plain && is_blank(gap)) || may_split_word(gap, wanted);
        }
        if wanted.is_empty() {
            self.word.gaps += 1;
            self.word.matches_trait &= is_met;
            self.word.is_apart &= is_separated;
            self.word_by_word &= self.word.matches_trait || self.word.is_apart;
        } else {
            self.end_word();
            self.word_by_word &= is_met || (is_separated && self.before);
            self.pending = !is_met;
        }
        self.all_apart || self.all_single_sign || self.some_split || self.blanks_moved || self.word_by_word
    }

    fn end_word(&mut self) {
        let word = std::mem::replace(&mut self.word, NEW_WORD);
        let apart = !word.matches_trait;
        self.before = apart || word.gaps == 0;
        self.word_by_word &= !self.pending || self.before;
        self.first = self.first.or(Some(apart));
    }

    /// Whether the place is the trait, set apart, and what has to stand around it then.
    pub(super) fn edges(mut self) -> Option<Edges> {
        let last = !self.word.matches_trait;
        self.end_word();
        let edges = |before: bool, after: bool| Edges {
            before,
            after,
            is_abbreviation: self.letters < MIN_SPELLED_LETTERS,
        };
        if self.word_by_word {
            return Some(edges(self.first.unwrap_or(true), last));
        }
        (self.all_apart || self.all_single_sign || self.some_split || self.blanks_moved)
            .then(|| edges(true, true))
    }
}

/// Whether a gap sets two letters apart.
fn separates(gap: &[Item]) -> bool {
    let (mut signs, mut in_blanks) = (0, false);
    for item in gap {
        let blank = item.class() == Class::Space;
        signs += usize::from(item.class() != Class::Nothing && !(blank && in_blanks));
        in_blanks = blank || (in_blanks && item.class() == Class::Nothing);
    }
    gap.len() <= MAX_GAP_ITEMS && (1..=MAX_GAP_SIGNS).contains(&signs)
}

fn is_blank(gap: &[Item]) -> bool {
    gap.iter().all(|item| matches!(item.class(), Class::Space | Class::Nothing))
}

/// Whether a gap may part a word that is otherwise whole: a hyphen or a dot without space, which a word has for other
/// reasons than to hide it only now and then; between words also a line-end hyphen.
fn may_split_word(gap: &[Item], wanted: &Gap) -> bool {
    if wanted.is_space() {
        let hyphen = gap.iter().any(|item| item.class() == Class::Hyphen || item.c == '\u{ad}');
        let breaks = gap.iter().any(|item| ends_line(item.c));
        let spaceless = gap.iter().all(|item| item.class() != Class::Space);
        return (hyphen && breaks) || (spaceless && is_joiner(gap));
    }
    wanted.is_empty() && is_joiner(gap)
}

/// Whether a gap is a single sign that joins as well as it parts.
fn is_joiner(gap: &[Item]) -> bool {
    let mut seen = gap.iter().filter(|item| item.class() != Class::Nothing);
    match (seen.next(), seen.next()) {
        (Some(only), None) => {
            only.class() == Class::Hyphen || matches!(only.c, '.' | '·' | '\'' | '’' | '/' | '+' | '•' | '‧')
        }
        _ => false,
    }
}
