//! What counts as an item: words of one sentence, by their stems.

use std::ops::Range;

use quorate_diagnostics::word_list::WordList;

use super::stance::Stance;
use super::subject::{Passage, Word, split};

/// How many words before a match a word reaches that says it is lacking.
const REACH: usize = 4;
/// What follows one of these in an item is lacking: "tests" in "deploys without tests".
const LACKS: [&str; 5] = ["without", "no", "not", "lacking", "missing"];

static FUNCTION_WORDS: WordList = WordList::new(include_str!("../words/member.txt"), "function words");

/// What counts as an item. All words are stems.
#[derive(Debug)]
pub(super) enum Pattern {
    /// These words, one after the other.
    Phrase(Vec<String>),
    /// So many of these words in one sentence, in any order, and none of the lacking ones in the passage, unless the
    /// sentence says that they are lacking.
    Words { present: Vec<String>, needed: usize, lacking: Vec<String> },
}

impl Pattern {
    /// A phrase that an item quotes.
    pub(super) fn phrase(text: &str) -> Option<Pattern> {
        let stems: Vec<String> = split(text).0.into_iter().map(|word| word.stem).collect();
        (!stems.is_empty()).then_some(Pattern::Phrase(stems))
    }

    /// The words of an item; none where none of them says something of a subject.
    pub(super) fn words(phrase: &str, stance: Stance) -> Option<Pattern> {
        let (words, _) = split(phrase);
        let lack = words.iter().position(|word| LACKS.contains(&&*word.text));
        let lack = lack.filter(|_| stance != Stance::Asks).unwrap_or(words.len());
        let stems = |words: &[Word]| {
            let content = words.iter().filter(|word| !FUNCTION_WORDS.contains(&word.text));
            let mut stems: Vec<String> = content.map(|word| word.stem.clone()).collect();
            stems.sort();
            stems.dedup();
            stems
        };
        let (present, lacking) = (stems(&words[..lack]), stems(&words[lack..]));
        let needed = match present.len() {
            all if stance == Stance::Asks => all.div_ceil(2),
            all @ 0..=2 => all,
            more => more - 1,
        };
        (present.len() + lacking.len() > 0).then_some(Pattern::Words { present, needed, lacking })
    }

    /// The words of a sentence from the first to the last that counts.
    pub(super) fn find(&self, passage: &Passage, sentence: &Range<usize>) -> Option<Range<usize>> {
        let words = &passage.words[sentence.clone()];
        match self {
            Pattern::Phrase(stems) => {
                let mut windows = words.windows(stems.len());
                let same = |window: &[Word]| window.iter().zip(stems).all(|(word, stem)| word.stem == *stem);
                let start = sentence.start + windows.position(same)?;
                Some(start..start + stems.len())
            }
            Pattern::Words { present, needed, lacking } => {
                let at = |stem: &String| words.iter().position(|word| word.stem == *stem);
                let said_lacking = || {
                    words.iter().enumerate().find_map(|(at, word)| {
                        let from = at.saturating_sub(REACH);
                        let lacks = words[from..at].iter().position(|word| LACKS.contains(&&*word.text));
                        lacks.filter(|_| lacking.contains(&word.stem)).map(|lacks| [from + lacks, at])
                    })
                };
                let mut found: Vec<usize> = present.iter().filter_map(at).collect();
                if found.len() < *needed {
                    return None;
                }
                if !lacking.is_empty() {
                    let mentioned = || passage.words.iter().any(|word| lacking.contains(&word.stem));
                    match said_lacking() {
                        Some(said) => found.extend(said),
                        None if found.is_empty() || mentioned() => return None,
                        None => {}
                    }
                }
                let (first, last) = (found.iter().min()?, found.iter().max()?);
                Some(sentence.start + first..sentence.start + last + 1)
            }
        }
    }
}
