//! Causal leaps: one thing after another, stated as cause and effect.

use std::sync::LazyLock;

use quorate_diagnostics::word_list::WordList;

use super::{Check, Criteria};
use crate::executor::rubric::document::{Document, Margin, Sentence, Word};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::lens::Lens;
use crate::executor::rubric::lexicon::Lexicon;

const WORDS: &str = include_str!("../words/causal_leap.txt");

/// The skeptic asks what else it could have been. The missing figure is the business of evidence.
pub(super) static CHECK: Check = Check { name: "causal leaps", lens: Lens::Skeptic, yields_to: &[], run };

/// Proof by assertion: a leap whatever was seen.
static PROOF: LazyLock<Lexicon<()>> = LazyLock::new(|| {
    Lexicon::from_phrases(&[
        "proves that?",
        "proof that",
        "which means that? everyone|every|all",
        "the reason is simple",
    ])
});
static CAUSES: LazyLock<Lexicon<()>> = LazyLock::new(|| Lexicon::from_section(WORDS, "causes"));
/// A change that was observed.
static OBSERVED: WordList = WordList::new(WORDS, "observed");
/// Signs that the cause was tested, or is held with care.
static TESTED: LazyLock<Lexicon<()>> = LazyLock::new(|| Lexicon::from_section(WORDS, "tested"));
/// "After we switched, sales rose": before and after, nothing else.
const AFTERWARDS: &[&str] = &["after", "since", "once"];

fn run(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, sentence) in document.sentences.iter().enumerate() {
        let before =
            index.checked_sub(1).map(|at| &document.sentences[at]).filter(|one| one.block == sentence.block);
        let next = document.sentences.get(index + 1).filter(|one| one.block == sentence.block);
        let near = [before, Some(sentence), next];
        let careful =
            near.iter().flatten().any(|one| one.cites || TESTED.first(document.words_of(one)).is_some());
        if let Some(at) = leap(document, sentence, before).filter(|_| !careful) {
            let words = document.words_of(sentence);
            let span = words[at.start].start..words[at.end - 1].end;
            let said = document.one_line(&span);
            findings.push(Finding::new(
                document.with_context(sentence, &span, Margin { before: 3, after: 5 }),
                Severity::Major,
                format!("“{said}” makes a cause of what was only seen to happen."),
                "Say how the cause was tested, what else could explain it, or tell it as a sequence.",
            ));
        }
    }
    findings
}

/// The words of a sentence that leap, if any do.
fn leap(
    document: &Document<'_>,
    sentence: &Sentence,
    before: Option<&Sentence>,
) -> Option<std::ops::Range<usize>> {
    let words = document.words_of(sentence);
    if let Some(hit) = PROOF.first(words).filter(|hit| !words[hit.words.start].quoted) {
        return Some(hit.words);
    }
    let here = observed(words);
    let earlier = before.is_some_and(|one| observed(document.words_of(one)).is_some());
    let mut causes =
        CAUSES.all(words).into_iter().map(|hit| hit.words).filter(|hit| !words[hit.start].quoted);
    let cause = causes.find(|hit| match &*words[hit.start].text {
        "so" => is_conjunction(document, words, hit.start) && here.is_some(),
        "this" | "that" | "that's" | "therefore" | "as" => here.is_some() || earlier,
        _ => here.is_some(),
    });
    cause.or_else(|| {
        let change = here.filter(|_| {
            AFTERWARDS.contains(&&*words[0].text)
                && words.iter().any(|word| {
                    matches!(&*word.text, "we" | "they" | "switching" | "adopting" | "moving" | "using")
                })
        })?;
        Some(change..change + 1)
    })
}

fn observed(words: &[Word<'_>]) -> Option<usize> {
    words.iter().position(|word| OBSERVED.contains(&word.text) && !word.quoted)
}

/// ", so sales rose", not "so fast" nor "so that".
fn is_conjunction(document: &Document<'_>, words: &[Word<'_>], at: usize) -> bool {
    let broken = document.prose[..words[at].start].trim_end().ends_with([',', ';', '—', '–']);
    (broken || at == 0) && words.get(at + 1).is_some_and(|next| next.text != "that")
}

#[cfg(test)]
mod tests {
    use super::super::harness::findings;
    use super::*;

    #[test]
    fn before_and_after_told_as_cause() {
        for text in [
            "Sales rose in May because we moved the button.",
            "Support tickets fell. This is why the new form works.",
            "We switched in June, so complaints dropped.",
            "After we adopted it, revenue grew.",
            "This proves that the method works.",
            "The redesign led to a jump, and sign-ups doubled.",
        ] {
            assert_eq!(findings(&CHECK, text).len(), 1, "{text}");
        }
    }

    #[test]
    fn tested_hedged_sourced_or_no_observation() {
        for text in [
            "The cache is empty, so the query runs again.",
            "Sales rose because we moved the button; a controlled experiment in two shops agrees.",
            "Sales rose, perhaps because we moved the button.",
            "Sales rose because we moved the button ([test](t.md)).",
            "Errors rose after the deploy. Rolling back, we reproduced it.",
            "Use it because it is small.",
            "It is so fast that errors dropped.",
        ] {
            assert!(findings(&CHECK, text).is_empty(), "{text}");
        }
    }
}
