//! Compares a member's items with a subject, by the stems of words within a sentence.

use std::ops::Range;
use std::sync::LazyLock;

use quorate_diagnostics::word_list::WordList;

use super::items::{Item, Stance};
use super::subject::{Passage, Place, Subject, Word, split};
use crate::executor::rubric::checks::{Criteria, instructions};
use crate::executor::rubric::document::Document;

/// How many words before a match a word reaches that denies it.
const REACH: usize = 4;
const DENIES: [&str; 14] = [
    "not", "no", "never", "without", "don't", "doesn't", "won't", "cannot", "can't", "nor", "refuse",
    "avoid", "instead", "stop",
];
/// What follows one of these in an item is lacking: "tests" in "deploys without tests".
const LACKS: [&str; 5] = ["without", "no", "not", "lacking", "missing"];

static FUNCTION_WORDS: WordList = WordList::new(include_str!("../words/member.txt"), "function words");
/// Every member refuses a text that tells its judges how to judge.
static INSTRUCTIONS: LazyLock<Item> = LazyLock::new(|| Item {
    phrase: instructions::CHECK.name.to_owned(),
    stance: Stance::Refuses,
    patterns: Vec::new(),
    check: Some(&instructions::CHECK),
});

/// What counts as an item. All words are stems.
#[derive(Debug)]
pub(super) enum Pattern {
    /// These words, one after the other.
    Phrase(Vec<String>),
    /// So many of these words in one sentence, in any order, and none of the lacking ones in the passage, unless the
    /// sentence says that they are lacking.
    Words { present: Vec<String>, needed: usize, lacking: Vec<String> },
}

/// An item that was found, and where.
#[derive(Debug, Clone)]
pub(super) struct Finding<'i> {
    pub(super) item: &'i Item,
    /// In the order of the subject, at least one.
    pub(super) places: Vec<Place>,
}

#[derive(Debug)]
pub(super) struct Search<'i> {
    /// The items that count against the subject, the heaviest first.
    pub(super) findings: Vec<Finding<'i>>,
    /// The items that the subject speaks of, also where it denies them.
    pub(super) touched: Vec<Finding<'i>>,
    /// The questions that it says nothing about.
    pub(super) open: Vec<&'i Item>,
}

impl<'i> Search<'i> {
    pub(super) fn run(items: &'i [Item], subject: &Subject, criteria: &Criteria<'_>) -> Search<'i> {
        let mut search = Search { findings: Vec::new(), touched: Vec::new(), open: Vec::new() };
        for item in items.iter().chain([&*INSTRUCTIONS]) {
            let (mut places, mut denied) = (Vec::new(), Vec::new());
            for passage in &subject.passages {
                if let Some(check) = item.check {
                    let found = (check.run)(&Document::parse("", &passage.text), criteria);
                    places.extend(found.into_iter().map(|found| subject.place(passage, found.span)));
                }
                for sentence in &passage.sentences {
                    let found = item.patterns.iter().find_map(|pattern| pattern.find(passage, sentence));
                    let Some(found) = found else { continue };
                    let list = if denies(passage, sentence, found.start) { &mut denied } else { &mut places };
                    list.push(subject.place(passage, passage.span(found)));
                }
            }
            if !places.is_empty() && item.stance != Stance::Asks {
                search.findings.push(Finding { item, places: places.clone() });
            }
            places.append(&mut denied);
            match places.is_empty() {
                false => search.touched.push(Finding { item, places }),
                true if item.stance == Stance::Asks => search.open.push(item),
                true => {}
            }
        }
        search.findings.sort_by_key(|finding| finding.item.stance);
        search
    }
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
    fn find(&self, passage: &Passage, sentence: &Range<usize>) -> Option<Range<usize>> {
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

/// Whether a sentence denies what stands in it from a word on: "we do not sell data". "Not only" denies nothing.
fn denies(passage: &Passage, sentence: &Range<usize>, from: usize) -> bool {
    let first = from.saturating_sub(REACH).max(sentence.start);
    (first..from).any(|at| {
        let next = passage.words.get(at + 1).map_or("", |word| &word.text);
        DENIES.iter().any(|word| passage.words[at].text == *word) && !matches!(next, "only" | "just")
    })
}
