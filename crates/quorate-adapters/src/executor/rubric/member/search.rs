//! Compares a member's items with a subject, by the stems of words within a sentence.

use std::ops::Range;
use std::sync::LazyLock;

use super::items::Item;
use super::stance::Stance;
use super::subject::{Passage, Place, Subject};
use crate::executor::rubric::checks::{Criteria, instructions};
use crate::executor::rubric::document::Document;

/// How many words before a match a word reaches that denies it.
const REACH: usize = 4;
const DENIES: [&str; 14] = [
    "not", "no", "never", "without", "don't", "doesn't", "won't", "cannot", "can't", "nor", "refuse",
    "avoid", "instead", "stop",
];

/// Every member refuses a text that tells its judges how to judge.
static INSTRUCTIONS: LazyLock<Item> = LazyLock::new(|| Item {
    phrase: instructions::CHECK.name.to_owned(),
    stance: Stance::Refuses,
    patterns: Vec::new(),
    check: Some(&instructions::CHECK),
});

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

/// Whether a sentence denies what is in it from a word on: "we do not sell data". "Not only" denies nothing.
fn denies(passage: &Passage, sentence: &Range<usize>, from: usize) -> bool {
    let first = from.saturating_sub(REACH).max(sentence.start);
    (first..from).any(|at| {
        let next = passage.words.get(at + 1).map_or("", |word| &word.text);
        DENIES.iter().any(|word| passage.words[at].text == *word) && !matches!(next, "only" | "just")
    })
}
