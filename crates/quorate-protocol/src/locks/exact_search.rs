//! Finds traits in the text as given, ignoring case.

use std::ops::Range;

use super::automaton::Automaton;
use super::character::{case, entry, is_mark};

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
