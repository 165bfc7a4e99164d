//! Phrases to look for, word by word, indexed by their first word so that a text is walked once.
//!
//! A phrase is written as its words with spaces. `a|b` stands for either word, a trailing `?` makes a word optional
//! (not the first), `*` stands for any one word, `*?` for one or none. Hyphens and case do not matter: words are compared as
//! [`Word`] folds them.

use std::collections::HashMap;
use std::ops::Range;

use quorate_diagnostics::text;

use super::document::Word;

/// A set of phrases, each with what it means.
#[derive(Debug, Clone)]
pub(super) struct Lexicon<T> {
    by_first: HashMap<String, Vec<usize>>,
    phrases: Vec<(Vec<Slot>, T)>,
}

#[derive(Debug, Clone)]
struct Slot {
    any_of: Vec<String>,
    optional: bool,
}

/// A phrase that was found.
#[derive(Debug, Clone)]
pub(super) struct Hit<'l, T> {
    /// Its words, as indices into the words looked at.
    pub(super) words: Range<usize>,
    /// What the phrase means.
    pub(super) meaning: &'l T,
}

impl Lexicon<()> {
    /// The phrases of a word list's section.
    pub(super) fn from_section(file: &'static str, section: &str) -> Self {
        Lexicon::new(text::section(file, section).map(|phrase| (phrase, ())))
    }

    /// Phrases that mean no more than themselves.
    pub(super) fn from_phrases(phrases: &[&str]) -> Self {
        Lexicon::new(phrases.iter().map(|phrase| (*phrase, ())))
    }
}

impl<T> Lexicon<T> {
    /// Builds the index.
    pub(super) fn new<'p>(phrases: impl IntoIterator<Item = (&'p str, T)>) -> Self {
        let mut lexicon = Lexicon { by_first: HashMap::new(), phrases: Vec::new() };
        for (phrase, means) in phrases {
            let slots: Vec<Slot> = phrase.split_whitespace().map(Slot::read).collect();
            for first in slots.first().into_iter().flat_map(|slot| &slot.any_of) {
                lexicon.by_first.entry(first.clone()).or_default().push(lexicon.phrases.len());
            }
            lexicon.phrases.push((slots, means));
        }
        lexicon
    }

    /// The longest phrase that starts at a word.
    pub(super) fn match_at(&self, words: &[Word<'_>], index: usize) -> Option<Hit<'_, T>> {
        let candidates = self.by_first.get(&*words.get(index)?.text)?;
        let matching = candidates.iter().filter_map(|candidate| {
            let (slots, means) = &self.phrases[*candidate];
            let length = match_length(slots, &words[index..])?;
            Some(Hit { words: index..index + length, meaning: means })
        });
        // Of equally long ones the first listed: `max_by_key` would give the last.
        matching.reduce(|best, next| if next.words.len() > best.words.len() { next } else { best })
    }

    /// The first phrase in a run of words.
    pub(super) fn first(&self, words: &[Word<'_>]) -> Option<Hit<'_, T>> {
        (0..words.len()).find_map(|index| self.match_at(words, index))
    }

    /// All phrases in a run of words, none overlapping another.
    pub(super) fn all(&self, words: &[Word<'_>]) -> Vec<Hit<'_, T>> {
        let mut hits = Vec::new();
        let mut index = 0;
        while index < words.len() {
            match self.match_at(words, index) {
                Some(hit) => {
                    index = hit.words.end;
                    hits.push(hit);
                }
                None => index += 1,
            }
        }
        hits
    }
}

impl Slot {
    fn read(written: &str) -> Self {
        let (written, optional) = written.strip_suffix('?').map_or((written, false), |bare| (bare, true));
        Slot { any_of: written.split('|').map(str::to_lowercase).collect(), optional }
    }

    fn matches(&self, word: &Word<'_>) -> bool {
        self.any_of.iter().any(|one| one == "*" || **one == *word.text)
    }
}

/// How many words a phrase takes, where it fits.
fn match_length(slots: &[Slot], words: &[Word<'_>]) -> Option<usize> {
    let Some((slot, rest)) = slots.split_first() else { return Some(0) };
    let taken = words
        .first()
        .filter(|word| slot.matches(word))
        .and_then(|_| match_length(rest, &words[1..]).map(|n| n + 1));
    taken.or_else(|| if slot.optional { match_length(rest, words) } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::rubric::document::Document;

    fn found(phrases: &[&str], text: &str) -> Vec<String> {
        let document = Document::parse("", text);
        let lexicon = Lexicon::from_phrases(phrases);
        let hits = lexicon.all(&document.words).into_iter();
        hits.map(|hit| document.words[hit.words].iter().map(|w| &*w.text).collect::<Vec<_>>().join(" "))
            .collect()
    }

    #[test]
    fn alternatives_options_and_the_longest() {
        assert_eq!(
            found(&["all of? our users|teams", "all"], "All our users, all of our teams, all."),
            ["all our users", "all of our teams", "all"]
        );
        assert_eq!(found(&["it's * time"], "It’s about time"), ["it's about time"]);
        assert_eq!(found(&["game changer"], "a game-changer"), ["game changer"]);
        assert!(found(&["in the end"], "in the").is_empty());
    }
}
