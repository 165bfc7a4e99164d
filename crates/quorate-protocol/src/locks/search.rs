//! The search: compiled traits, and the passes over a text. A text of plain ASCII without markup, which most are, is read
//! byte by byte without a copy; any other is read as items, with and without its markup.

use std::ops::Range;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::Layer;
use super::automaton::{Automaton, IGNORED, MAX_SUFFIX_BYTES, RN};
use super::character::{Class, Reading, case, entry, is_mark, is_pipe};
use super::fold::{Folded, Form};
use super::items::{self, Item, has_markup, read_items, remove_markup};
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
    /// The automaton's class of each byte of plain text.
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
        let read = read_items(text);
        let tagged = items::decode_tags(&read);
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
        if let Some(unmarked) = items::remove_marks(&read).filter(|_| !plain) {
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
        // A string that begins in one part may end in the next, as many letters on as the longest ending has.
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
    let mut read = read_items(text);
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
    Folded::new(&read_items(text), Form::Bare, text.len()).text
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

/// Finds traits in text as given.
#[derive(Debug, Clone)]
pub(super) struct ExactSearch {
    automaton: Automaton,
    /// The index of each trait that is looked for, and its text with case folded.
    wanted: Vec<(usize, Box<str>)>,
}

impl ExactSearch {
    /// For the traits given, by index; those that are empty are never found.
    pub(super) fn new<'a>(traits: impl Iterator<Item = (usize, &'a str)>) -> ExactSearch {
        let fold = |text: &str| text.chars().flat_map(case).collect::<String>().into_boxed_str();
        let wanted: Vec<(usize, Box<str>)> =
            traits.map(|(at, text)| (at, fold(text))).filter(|(_, text)| !text.is_empty()).collect();
        let strings: Vec<&[u8]> = wanted.iter().map(|(_, text)| text.as_bytes()).collect();
        ExactSearch { automaton: Automaton::of_suffixes(&strings), wanted }
    }

    /// A trait's text with case folded.
    pub(super) fn cased(&self, at: usize) -> Option<&str> {
        let found = self.wanted.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        Some(&self.wanted[found].1)
    }

    /// Calls back with every trait in the text, in the order of their ends.
    pub(super) fn find(&self, text: &str, mut found: impl FnMut(usize, Range<usize>)) {
        if self.wanted.is_empty() {
            return;
        }
        let mut state = self.automaton.start();
        for (at, c) in text.char_indices() {
            let mut room = [0; 4];
            let bytes = if c.is_ascii() {
                room[0] = c.to_ascii_lowercase() as u8;
                &room[..1]
            } else {
                entry(c).cased(c, &mut room).as_bytes()
            };
            for (index, byte) in bytes.iter().enumerate() {
                state = self.automaton.step(state, self.automaton.column(*byte));
                if self.automaton.is_match(state) {
                    for wanted in self.automaton.matches(state) {
                        let (trait_at, cased) = &self.wanted[*wanted as usize];
                        if let Some(start) = begins(&text[..at], cased.as_bytes(), &bytes[..=index]) {
                            let end = at + c.len_utf8();
                            // The marks on the last letter belong to it.
                            let marks = text[end..].chars().take_while(|c| is_mark(*c)).map(char::len_utf8);
                            found(*trait_at, start..end + marks.sum::<usize>());
                        }
                    }
                }
            }
        }
    }
}

/// Where a trait begins that ends with `last` after `before`. It may begin within what a character folds to.
fn begins(before: &str, cased: &[u8], last: &[u8]) -> Option<usize> {
    let mut remaining = match strip(cased, last)? {
        [] => return Some(before.len()),
        remaining => remaining,
    };
    for (at, c) in before.char_indices().rev() {
        let mut room = [0; 4];
        remaining = strip(remaining, entry(c).cased(c, &mut room).as_bytes())?;
        if remaining.is_empty() {
            return Some(at);
        }
    }
    None
}

/// What is left of a text that ends with another; nothing where the other is longer and ends with it.
fn strip<'a>(text: &'a [u8], end: &[u8]) -> Option<&'a [u8]> {
    text.strip_suffix(end).or_else(|| end.ends_with(text).then_some(&[]))
}

/// How large a compiled pattern may get, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// How large all patterns together may get, in bytes, before each is tried by itself.
const MAX_COMBINED_BYTES: usize = 32 << 20;

/// Patterns, ready to be tried.
#[derive(Debug, Clone)]
pub(super) struct Patterns {
    all: Vec<Pattern>,
    /// All of them as one; `None` where that is too large.
    together: Option<RegexSet>,
}

#[derive(Debug, Clone)]
struct Pattern {
    at: usize,
    /// Its label in hits on the folded text.
    folded: Layer,
    regex: Regex,
}

impl Patterns {
    /// By index: patterns of traits, and plain texts that must match folded text verbatim.
    ///
    /// # Errors
    /// The index of a pattern that does not compile, and why.
    pub(super) fn new<'a>(
        patterns: impl Iterator<Item = (usize, &'a str)>,
        texts: impl Iterator<Item = (usize, String)>,
    ) -> Result<Patterns, (usize, String)> {
        let mut all = Vec::new();
        for (at, pattern) in patterns {
            let regex = compile(pattern).map_err(|why| (at, why))?;
            all.push(Pattern { at, folded: Layer::RegexFolded, regex });
        }
        for (at, text) in texts {
            let regex = compile(&regex::escape(&text)).map_err(|why| (at, why))?;
            all.push(Pattern { at, folded: Layer::Folded, regex });
        }
        let texts = all.iter().map(|pattern| pattern.regex.as_str());
        let combined = RegexSetBuilder::new(texts)
            .case_insensitive(true)
            .size_limit(MAX_COMBINED_BYTES)
            .dfa_size_limit(MAX_COMBINED_BYTES)
            .build()
            .ok()
            .filter(|_| all.len() > 1);
        Ok(Patterns { all, together: combined })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Calls back with every place in the text as given. Empty matches of a pattern do not count as places.
    pub(super) fn find_given(&self, text: &str, mut found: impl FnMut(usize, Layer, Range<usize>)) {
        self.find(text, |pattern, span| {
            if pattern.folded == Layer::RegexFolded {
                found(pattern.at, Layer::Regex, span);
            }
        });
    }

    /// Calls back with every place in the forms of the text; `taken` is without its markup, and `end` the byte at
    /// which it ends.
    pub(super) fn find_folded(
        &self,
        items: &[Item],
        taken: &[Item],
        end: usize,
        mut found: impl FnMut(usize, Layer, Range<usize>),
    ) {
        let any = |items: &[Item], is: fn(&Item) -> bool| items.iter().any(is);
        let is_joined =
            |item: &Item| matches!(item.class(), Class::Mark | Class::Hyphen) || item.c == '\u{ad}';
        let (marked, taken_out) = (any(taken, is_joined), items != taken);
        // A form that is another's is not tried again.
        let forms = [
            (items, Form::Composed, any(items, |item| !item.c.is_ascii())),
            (items, Form::Bare, true),
            (items, Form::Tight, taken_out && any(items, is_joined)),
            (taken, Form::Tight, marked),
            (taken, Form::Loose, marked),
        ];
        for (items, form, _) in forms.into_iter().filter(|(.., differs)| *differs) {
            let folded = Folded::new(items, form, end);
            self.find(&folded.text, |pattern, span| found(pattern.at, pattern.folded, folded.source(span)));
        }
    }

    fn find(&self, text: &str, mut found: impl FnMut(&Pattern, Range<usize>)) {
        let fitting: Vec<usize> = match &self.together {
            Some(set) => set.matches(text).into_iter().collect(),
            None => (0..self.all.len()).collect(),
        };
        for pattern in fitting.into_iter().map(|index| &self.all[index]) {
            for place in pattern.regex.find_iter(text).filter(|place| !place.is_empty()) {
                found(pattern, place.range());
            }
        }
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern).case_insensitive(true).size_limit(MAX_PATTERN_BYTES).build().map_err(|error| {
        match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            error => {
                error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
            }
        }
    })
}
