//! Superlatives that could be checked and are not: the fastest, number one, best in class, leading.

use std::sync::LazyLock;

use quorate_diagnostics::word_list::WordList;

use super::claim::has_source;
use super::{Check, Criteria};
use crate::executor::rubric::document::{Document, Word};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::lens::Lens;
use crate::executor::rubric::lexicon::Lexicon;

const WORDS: &str = include_str!("../words/superlative.txt");

/// The evidence lens asks who compared.
pub(super) static CHECK: Check = Check { name: "superlatives", lens: Lens::Evidence, yields_to: &[], run };

static SUPERLATIVES: LazyLock<Lexicon<Severity>> = LazyLock::new(|| {
    Lexicon::new([
        (
            "the|world's fastest|easiest|smartest|simplest|safest|cheapest|greatest|strongest|finest",
            Severity::Major,
        ),
        (
            "the|world's|our most powerful|advanced|secure|reliable|complete|comprehensive|accurate|innovative|popular|loved|trusted|intelligent|efficient|scalable|affordable|intuitive",
            Severity::Major,
        ),
        ("the best", Severity::Major),
        ("the only tool|platform|product|solution|service|app|system|company|way", Severity::Major),
        ("number one", Severity::Major),
        ("second to none", Severity::Major),
        ("unrivalled|unrivaled|unmatched|unparalleled|unbeatable|unsurpassed", Severity::Major),
        ("best in class", Severity::Major),
        ("world class|leading", Severity::Minor),
        ("industry|market leading|leader", Severity::Major),
        (
            "the|a leading provider|platform|tool|solution|company|vendor|supplier|choice|expert|experts",
            Severity::Major,
        ),
    ])
});

/// What follows "the best" where nothing is compared in the world.
static IDIOMS: WordList = WordList::new(WORDS, "idioms");

fn run(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for (index, sentence) in document.sentences.iter().enumerate() {
        let words = document.words_of(sentence);
        let claims = SUPERLATIVES.all(words).into_iter().filter(|hit| is_claim(words, &hit.words));
        for hit in claims.filter(|_| !has_source(document, index)) {
            let span = words[hit.words.start].start..words[hit.words.end - 1].end;
            let issue = format!(
                "“{}” ranks it first and shows no comparison.",
                document.one_line(&span).to_lowercase()
            );
            let again = findings
                .last()
                .is_some_and(|last| last.issue == issue && sentence.span.contains(&last.span.start));
            if again {
                continue;
            }
            findings.push(Finding::new(
                span,
                *hit.meaning,
                issue,
                "Name what it was compared with and link the result, or say what it does.",
            ));
        }
    }
    findings
}

fn is_claim(words: &[Word<'_>], hit: &std::ops::Range<usize>) -> bool {
    let next = words.get(hit.end).map_or("", |word| &*word.text);
    let idiom = matches!(&*words[hit.end - 1].text, "best") && IDIOMS.contains(next);
    // "the fastest of the four" says what it was compared with.
    let compared = next == "of"
        && words
            .get(hit.end + 1)
            .is_some_and(|word| matches!(&*word.text, "the" | "our" | "these" | "those"));
    let denied = hit.start > 0 && matches!(&*words[hit.start - 1].text, "not" | "isn't" | "never" | "aren't");
    !words[hit.start].quoted && !idiom && !compared && !denied
}

#[cfg(test)]
mod tests {
    use super::super::harness::quotes;
    use super::*;

    #[test]
    fn bare_superlatives_are_found() {
        let text =
            "It is the fastest tool, an industry-leading and unmatched one. The best editor on the market.";
        assert_eq!(quotes(&CHECK, text), ["the fastest", "industry-leading", "unmatched", "The best"]);
    }

    #[test]
    fn compared_sourced_denied_or_idiomatic_ones_are_not() {
        for text in [
            "It was the fastest of the four we ran.",
            "It is the fastest ([results](bench.md)).",
            "The best way to start is small, with the most recent release.",
            "It is not the fastest.",
            "They call it “the best tool”.",
        ] {
            assert!(quotes(&CHECK, text).is_empty(), "{text}");
        }
    }
}
