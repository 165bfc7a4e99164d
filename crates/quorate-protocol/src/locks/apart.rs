//! Letters set apart: `i g n o r e`, `i.g.n.o.r.e`, `ign-ore`. What stands between two letters of a place is told here, one
//! gap after the other; at the end it is known whether that is the trait, set apart, or only other words.
//!
//! Words that are set apart letter by letter count for whole words of a trait: each word is as the trait has it, or all of
//! its letters are apart. A long trait is also seen where nothing but its blanks was moved (`ign orethe policy`), since
//! other words do not come to so many of the same letters.

use super::character::{Class, ends_line};
use super::gap::Gap;
use super::items::Item;

/// The fewest letters of a trait that is also looked for letter by letter, `h o n e s t`. One of fewer is seen only with a
/// single sign between its letters, `A.I.`.
const SPELLED: usize = 4;

/// The fewest letters of a trait that may be parted here and there by a single sign.
const PARTED: usize = 5;

/// The fewest letters of a trait whose blanks may have been moved.
const MOVED: usize = 12;

/// How many signs may stand between letters that are set apart; blanks in a row are one.
const SIGNS: usize = 8;

/// How much may stand between them at all.
const WIDE: usize = 64;

/// What is known of a place's gaps so far.
#[derive(Debug)]
pub(super) struct Apart {
    letters: usize,
    /// Every two letters are apart.
    all: bool,
    /// Every two letters have a single sign between them.
    tight: bool,
    /// Where letters are apart that should not be, a single sign parts them.
    some: bool,
    /// Where the gap is another, it is one of blanks, or of nothing.
    moved: bool,
    /// Each word is whole, or apart.
    by_word: bool,
    word: Word,
    /// Whether the first word is apart; `None` before its end.
    first: Option<bool>,
    /// Whether the word before the current one is apart, or has only one letter.
    before: bool,
    /// The gap before the current word is another than the trait's, which only words that are apart may have.
    pending: bool,
}

/// The current word.
#[derive(Debug)]
struct Word {
    gaps: usize,
    is_met: bool,
    is_apart: bool,
}

const NEW: Word = Word { gaps: 0, is_met: true, is_apart: true };

/// How a place is set apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edges {
    /// Nothing may stand directly before it.
    pub(super) before: bool,
    /// Nothing may stand directly after it.
    pub(super) after: bool,
    /// The rows of letters that it stands in may not go on either.
    pub(super) is_abbreviation: bool,
}

impl Apart {
    /// Of a trait with so many letters.
    pub(super) fn new(letters: usize) -> Self {
        Apart {
            letters,
            all: letters >= SPELLED,
            tight: (2..SPELLED).contains(&letters),
            some: letters >= PARTED,
            moved: letters >= MOVED,
            by_word: letters >= SPELLED,
            word: NEW,
            first: None,
            before: false,
            pending: false,
        }
    }

    /// Takes the gap between two letters, and whether it is what the trait has there. Whether it still may be set apart.
    pub(super) fn takes(&mut self, gap: &[Item], wanted: &Gap, is_met: bool) -> bool {
        let apart = parts(gap);
        self.all &= apart;
        self.tight &= joined(gap);
        if !is_met {
            self.some &= may_part(gap, wanted);
            let plain = wanted.is_empty() || wanted.is_space();
            self.moved &= (plain && is_blank(gap)) || may_part(gap, wanted);
        }
        if wanted.is_empty() {
            self.word.gaps += 1;
            self.word.is_met &= is_met;
            self.word.is_apart &= apart;
            self.by_word &= self.word.is_met || self.word.is_apart;
        } else {
            self.end_word();
            self.by_word &= is_met || (apart && self.before);
            self.pending = !is_met;
        }
        self.all || self.tight || self.some || self.moved || self.by_word
    }

    fn end_word(&mut self) {
        let word = std::mem::replace(&mut self.word, NEW);
        let apart = !word.is_met;
        self.before = apart || word.gaps == 0;
        self.by_word &= !self.pending || self.before;
        self.first = self.first.or(Some(apart));
    }

    /// Whether the place is the trait, set apart, and what has to stand around it then.
    pub(super) fn edges(mut self) -> Option<Edges> {
        let last = !self.word.is_met;
        self.end_word();
        let edges =
            |before: bool, after: bool| Edges { before, after, is_abbreviation: self.letters < SPELLED };
        if self.by_word {
            return Some(edges(self.first.unwrap_or(true), last));
        }
        (self.all || self.tight || self.some || self.moved).then(|| edges(true, true))
    }
}

/// Whether a gap sets two letters apart.
fn parts(gap: &[Item]) -> bool {
    let (mut signs, mut in_blanks) = (0, false);
    for item in gap {
        let blank = item.class() == Class::Space;
        signs += usize::from(item.class() != Class::Nothing && !(blank && in_blanks));
        in_blanks = blank || (in_blanks && item.class() == Class::Nothing);
    }
    gap.len() <= WIDE && (1..=SIGNS).contains(&signs)
}

fn is_blank(gap: &[Item]) -> bool {
    gap.iter().all(|item| matches!(item.class(), Class::Space | Class::Nothing))
}

/// Whether a gap may part a word that is otherwise whole: a hyphen or a dot without space, which a word has for other
/// reasons than to hide it only now and then; between words also a line-end hyphen.
fn may_part(gap: &[Item], wanted: &Gap) -> bool {
    if wanted.is_space() {
        let hyphen = gap.iter().any(|item| item.class() == Class::Hyphen || item.c == '\u{ad}');
        let breaks = gap.iter().any(|item| ends_line(item.c));
        let spaceless = gap.iter().all(|item| item.class() != Class::Space);
        return (hyphen && breaks) || (spaceless && joined(gap));
    }
    wanted.is_empty() && joined(gap)
}

/// Whether a gap is a single sign that joins as well as it parts.
fn joined(gap: &[Item]) -> bool {
    let mut seen = gap.iter().filter(|item| item.class() != Class::Nothing);
    match (seen.next(), seen.next()) {
        (Some(only), None) => {
            only.class() == Class::Hyphen || matches!(only.c, '.' | '·' | '\'' | '’' | '/' | '+' | '•' | '‧')
        }
        _ => false,
    }
}
