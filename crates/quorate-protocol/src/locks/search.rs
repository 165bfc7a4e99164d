//! The search: compiled traits, and the passes over a text. A text of plain ASCII without markup, which most are, is read
//! byte by byte without a copy; any other is read as items, with and without its markup.

use std::ops::Range;

use super::automaton::{Automaton, IGNORED, MAX_SUFFIX_BYTES, RN};
use super::character::{Class, Reading, entry, is_pipe};
use super::exact_search::ExactSearch;
use super::fold::{Folded, Form};
use super::hit::Layer;
use super::item::Item;
use super::items::{self, has_markup, items, remove_markup};
use super::marks;
use super::patterns::Patterns;
use super::target::{CONTEXT_ITEMS, Target, TextItems};

/// How many parts of a long text are read side by side.
const LANES: usize = 4;

/// Parts shorter than this are not worth it, in bytes.
const MIN_LANE_BYTES: usize = 256;

/// How many states there may be at once. States are few, since each is the beginning of a trait.
const MAX_STATES: usize = 32;

/// Receives hits.
pub(super) trait HitSink {
    /// Whether it is of interest that a trait is hit by a layer, at a place whose last letter is at this byte.
    fn wants(&self, at: usize, layer: Layer, last: usize) -> bool;
    /// A trait is hit.
    fn hit(&mut self, at: usize, layer: Layer, span: Range<usize>);
}

/// Everything that is looked for.
#[derive(Debug, Clone)]
pub(super) struct Search {
    given: ExactSearch,
    /// Whether there are traits without letters, which only [`Given`] finds in plain text.
    letterless: bool,
    targets: Vec<Target>,
    /// Finds the letters of targets, by their index.
    letters: Automaton,
    /// What each byte of plain text is to the automaton.
    bytes: [u8; 256],
    patterns: Patterns,
}

/// A trait to be looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct TraitSource<'a> {
    pub(super) text: &'a str,
    pub(super) is_pattern: bool,
}

impl Search {
    /// # Errors
    /// The index of a pattern that does not compile, and why.
    pub(super) fn new(wanted: &[TraitSource<'_>]) -> Result<Search, (usize, String)> {
        let texts =
            || wanted.iter().enumerate().filter(|(_, one)| !one.is_pattern).map(|(at, one)| (at, one.text));
        let mut targets: Vec<Target> = Vec::new();
        let mut letterless = Vec::new();
        for (at, text) in texts() {
            let before = targets.len();
            add_targets(at, text, &mut targets);
            if targets.len() == before && !text.is_empty() {
                letterless.push((at, text));
            }
        }
        let strings: Vec<&[u8]> = targets.iter().map(|target| &*target.atoms).collect();
        let letters = Automaton::of_suffixes(&strings);
        let folded = letterless
            .iter()
            .map(|(at, text)| (*at, signs(text)))
            .filter(|(_, text)| !text.trim().is_empty());
        let patterns =
            wanted.iter().enumerate().filter(|(_, one)| one.is_pattern).map(|(at, one)| (at, one.text));
        Ok(Search {
            given: ExactSearch::new(texts()),
            letterless: !letterless.is_empty(),
            bytes: bytes(&letters),
            patterns: Patterns::new(patterns, folded)?,
            targets,
            letters,
        })
    }

    /// Reports every hit in a text to the sink.
    pub(super) fn find(&self, text: &str, sink: &mut impl HitSink) {
        for (offset, piece) in items::pieces(text) {
            self.find_in(piece, &mut OffsetSink { inner: sink, offset });
        }
    }

    fn find_in(&self, text: &str, sink: &mut impl HitSink) {
        let plain = text.is_ascii() && !has_markup(text);
        if !self.patterns.is_empty() {
            self.patterns.find_given(text, |at, layer, span| sink.hit(at, layer, span));
        }
        if !plain || self.letterless {
            self.given.find(text, |at, span| sink.hit(at, Layer::AsGiven, span));
        }
        if plain {
            self.find_plain(text, sink);
        }
        if plain && self.patterns.is_empty() && !text.as_bytes().contains(&b'|') {
            return;
        }
        let read = items(text);
        let tagged = marks::decode_tags(&read);
        self.find_read(read, text.len(), plain, sink);
        if let Some(tagged) = tagged {
            self.find_read(tagged, text.len(), false, sink);
        }
    }

    /// The passes over items: as they stand, without pipes, without markup, and without the marks of lists and footnotes.
    fn find_read(&self, mut read: Vec<Item>, end: usize, plain: bool, sink: &mut impl HitSink) {
        if !plain {
            self.find_items(&read, end, sink);
        }
        let has_pipes = read.iter().any(|item| is_pipe(item.c));
        if has_pipes {
            self.find_items(&without_pipes(&read), end, sink);
        }
        let as_read = if self.patterns.is_empty() { Vec::new() } else { read.clone() };
        let removed_markup = remove_markup(&mut read);
        if removed_markup && !plain {
            self.find_items(&read, end, sink);
            if has_pipes {
                self.find_items(&without_pipes(&read), end, sink);
            }
        }
        if !self.patterns.is_empty() {
            self.patterns.find_folded(&as_read, &read, end, |at, layer, span| sink.hit(at, layer, span));
        }
        if let Some(unmarked) = marks::remove_marks(&read).filter(|_| !plain) {
            self.find_items(&unmarked, end, sink);
            if !self.patterns.is_empty() {
                let on_hit = |at, layer, span| sink.hit(at, layer, span);
                self.patterns.find_folded(&unmarked, &unmarked, end, on_hit);
            }
        }
    }

    /// The pass over plain text: one look at a table for each byte. A look has to wait for the one before it, so that
    /// the parts of a long text are read side by side.
    fn find_plain(&self, text: &str, sink: &mut impl HitSink) {
        let (bytes, mut around) = (text.as_bytes(), Vec::new());
        let part = bytes.len() / LANES;
        if part < MIN_LANE_BYTES {
            self.find_from(text, 0..bytes.len(), self.letters.start(), &mut around, sink);
            return;
        }
        let mut states = [self.letters.start(); LANES];
        for at in 0..part {
            let mut highest = 0;
            for (lane, state) in states.iter_mut().enumerate() {
                *state = self.letters.step(*state, self.bytes[usize::from(bytes[lane * part + at])]);
                highest = highest.max(*state);
            }
            if self.letters.is_match(highest) {
                for (lane, state) in states.into_iter().enumerate() {
                    let at = lane * part + at;
                    if self.letters.is_match(state) && self.bytes[usize::from(bytes[at])] != IGNORED {
                        self.ends_plain(text, at, state, &mut around, sink);
                    }
                }
            }
        }
        // What began in one part may end in the next, as many letters on as the longest ending has.
        for (lane, state) in states.into_iter().enumerate() {
            let from = (lane + 1) * part;
            let is_seen = |at: &usize| self.bytes[usize::from(bytes[*at])] != IGNORED;
            let to = (from..bytes.len()).filter(is_seen).nth(MAX_SUFFIX_BYTES).unwrap_or(bytes.len());
            self.find_from(text, from..to, state, &mut around, sink);
        }
    }

    fn find_from(
        &self,
        text: &str,
        part: Range<usize>,
        mut state: u32,
        around: &mut Vec<Item>,
        sink: &mut impl HitSink,
    ) {
        for at in part {
            let column = self.bytes[usize::from(text.as_bytes()[at])];
            state = self.letters.step(state, column);
            if self.letters.is_match(state) && column != IGNORED {
                self.ends_plain(text, at, state, around, sink);
            }
        }
    }

    #[cold]
    fn ends_plain(&self, text: &str, at: usize, state: u32, around: &mut Vec<Item>, sink: &mut impl HitSink) {
        for index in self.letters.matches(state) {
            let target = &self.targets[*index as usize];
            if !sink.wants(target.trait_index, Layer::AsGiven, at) {
                continue;
            }
            let given = self.given.cased(target.trait_index).and_then(|cased| exact_at(text, at, cased));
            if let Some(span) = given {
                sink.hit(target.trait_index, Layer::AsGiven, span);
                continue;
            }
            if !sink.wants(target.trait_index, Layer::Folded, at) {
                continue;
            }
            let Some(part) = self.bytes_around(text.as_bytes(), at, target.atoms.len()) else { continue };
            around.clear();
            around.extend(plain_items(text, &part));
            let read = TextItems { items: around, end: part.end };
            if let Some((layer, span)) = target.match_at(read, at - part.start) {
                sink.hit(target.trait_index, layer, span);
            }
        }
    }

    /// The range of a plain text that may hold this number of atoms ending at a byte.
    fn bytes_around(&self, bytes: &[u8], last: usize, atoms: usize) -> Option<Range<usize>> {
        let mut left = atoms;
        let mut start = last + 1;
        while left > 0 {
            start = start.checked_sub(1)?;
            left = left.checked_sub(match self.bytes[usize::from(bytes[start])] {
                IGNORED => 0,
                RN => 2,
                _ => 1,
            })?;
        }
        Some(start.saturating_sub(CONTEXT_ITEMS)..bytes.len().min(last + 1 + CONTEXT_ITEMS))
    }

    /// The pass over items. A letter with two looks is read as both, so that there may be several states at once.
    fn find_items(&self, items: &[Item], end: usize, sink: &mut impl HitSink) {
        let read = TextItems { items, end };
        let mut state = self.letters.start();
        let mut at = 0;
        while let Some(item) = items.get(at) {
            let seen = if item.c.is_ascii() {
                let column = self.bytes[item.c as usize];
                state = self.letters.step(state, column);
                column != IGNORED
            } else {
                let entry = item.entry();
                if entry.has_two_readings {
                    (state, at) = self.find_branching(read, at, state, sink);
                    continue;
                }
                let is_letter = entry.class == Class::Letter;
                if is_letter {
                    state = self.steps(state, entry.atoms(item.c, Reading::Small, &mut [0; 4]));
                }
                is_letter
            };
            if self.letters.is_match(state) && seen {
                self.ends_items(read, at, state, sink);
            }
            at += 1;
        }
    }

    /// Continues from a letter with two looks until only one state is left; returns it, and the next item.
    fn find_branching(
        &self,
        read: TextItems<'_>,
        first: usize,
        state: u32,
        sink: &mut impl HitSink,
    ) -> (u32, usize) {
        let mut states = vec![state];
        for (at, item) in read.items.iter().enumerate().skip(first) {
            let entry = item.entry();
            if entry.class != Class::Letter {
                continue;
            }
            let (mut small, mut standing) = ([0; 4], [0; 4]);
            let small = entry.atoms(item.c, Reading::Small, &mut small);
            let standing = entry.atoms(item.c, Reading::Standing, &mut standing);
            let readings = if entry.has_two_readings { vec![small, standing] } else { vec![small] };
            states = states
                .iter()
                .flat_map(|state| readings.iter().map(|atoms| self.steps(*state, atoms)))
                .collect();
            states.sort_unstable();
            states.dedup();
            states.truncate(MAX_STATES);
            for state in states.iter().filter(|state| self.letters.is_match(**state)) {
                self.ends_items(read, at, *state, sink);
            }
            if let [only] = states[..] {
                return (only, at + 1);
            }
        }
        (self.letters.start(), read.items.len())
    }

    fn steps(&self, state: u32, atoms: &[u8]) -> u32 {
        atoms.iter().fold(state, |state, atom| self.letters.step(state, self.letters.column(*atom)))
    }

    #[cold]
    fn ends_items(&self, read: TextItems<'_>, at: usize, state: u32, sink: &mut impl HitSink) {
        for index in self.letters.matches(state) {
            let target = &self.targets[*index as usize];
            if sink.wants(target.trait_index, Layer::Folded, read.items[at].start as usize)
                && let Some((layer, span)) = target.match_at(read, at)
            {
                sink.hit(target.trait_index, layer, span);
            }
        }
    }
}

/// The forms in which a trait is looked for: by both readings, with and without its own markup.
fn add_targets(at: usize, text: &str, targets: &mut Vec<Target>) {
    let mut read = items(text);
    let first = targets.len();
    loop {
        for reading in [Reading::Small, Reading::Standing] {
            if let Some(target) = Target::new(at, &read, reading)
                && !targets[first..].contains(&target)
            {
                targets.push(target);
            }
        }
        if !remove_markup(&mut read) {
            break;
        }
    }
}

/// A text without letters, folded.
fn signs(text: &str) -> String {
    Folded::new(&items(text), Form::Bare, text.len()).text
}

fn bytes(letters: &Automaton) -> [u8; 256] {
    let mut columns = [IGNORED; 256];
    for byte in 0..0x80u8 {
        let (c, mut room) = (char::from(byte), [0; 4]);
        if entry(c).class == Class::Letter {
            columns[usize::from(byte)] = match entry(c).atoms(c, Reading::Small, &mut room) {
                [only] => letters.column(*only),
                _ => RN,
            };
        }
    }
    columns
}

/// The items with blanks in place of pipes. A pipe may look like a letter, or part those of a table.
fn without_pipes(items: &[Item]) -> Vec<Item> {
    let blank = |item: &Item| if is_pipe(item.c) { Item { c: ' ', ..*item } } else { *item };
    items.iter().map(blank).collect()
}

/// The range of a case-folded trait in plain text, if its last letter is at this byte.
fn exact_at(text: &str, last: usize, cased: &str) -> Option<Range<usize>> {
    let trail = cased.bytes().rev().take_while(|byte| !is_plain_letter(*byte)).count();
    let end = last + 1 + trail;
    let start = end.checked_sub(cased.len())?;
    text.as_bytes().get(start..end)?.eq_ignore_ascii_case(cased.as_bytes()).then_some(start..end)
}

fn is_plain_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'|'
}

#[expect(clippy::cast_possible_truncation, reason = "the longest text fits")]
fn plain_items(text: &str, part: &Range<usize>) -> impl Iterator<Item = Item> {
    let start = part.start;
    text.as_bytes()[part.clone()]
        .iter()
        .enumerate()
        .map(move |(at, byte)| Item { c: char::from(*byte), start: (start + at) as u32 })
}

/// Reports the hits in a piece with their places in the whole text.
struct OffsetSink<'a, T> {
    inner: &'a mut T,
    offset: usize,
}

impl<T: HitSink> HitSink for OffsetSink<'_, T> {
    fn wants(&self, at: usize, layer: Layer, last: usize) -> bool {
        self.inner.wants(at, layer, last + self.offset)
    }

    fn hit(&mut self, at: usize, layer: Layer, span: Range<usize>) {
        self.inner.hit(at, layer, span.start + self.offset..span.end + self.offset);
    }
}
