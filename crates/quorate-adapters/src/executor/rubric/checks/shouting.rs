//! Shouting: runs of exclamation marks, words in capitals for emphasis.

use quorate_diagnostics::word_list::WordList;

use super::{Check, Criteria};
use crate::executor::rubric::document::{BlockKind, Document, Sentence, Word, WordKind};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::lens::Lens;

const WORDS: &str = include_str!("../words/shouting.txt");

/// The voice lens asks for a level voice.
pub(super) static CHECK: Check = Check { name: "shouting", lens: Lens::Voice, yields_to: &[], run };

/// Words that are shouted one by one; `MUST`, `NOT` and acronyms are terms.
static SHOUTED: WordList = WordList::new(WORDS, "shouted");
/// In a row of capitals, one of these shows that it is speech and not a list of acronyms.
static SPEECH: WordList = WordList::new(WORDS, "speech");

fn run(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut loud_before: Option<&Sentence> = None;
    for sentence in &document.sentences {
        let text = &document.prose[sentence.span.clone()];
        let words = document.words_of(sentence);
        let loud = text.trim_end_matches(['"', '”', ')', '*', '_']).ends_with('!');
        let run = text.find("!!").or_else(|| text.find("?!")).or_else(|| text.find("!?"));
        if let Some(at) = run.map(|at| sentence.span.start + at) {
            let from = words.iter().rev().find(|word| word.end <= at).map_or(at, |word| word.start);
            findings.push(finding(
                from..at + 2,
                "A run of exclamation marks.",
                "End the sentence with a full stop.",
            ));
        } else if loud && loud_before.is_some_and(|before| before.block == sentence.block) {
            findings.push(finding(
                sentence.span.clone(),
                "One exclamation after another.",
                "Keep one at most.",
            ));
        }
        loud_before = loud.then_some(sentence);
        if document.kind_of(sentence) != BlockKind::Heading {
            findings.extend(capitals(document, words));
        }
    }
    findings
}

fn finding(span: std::ops::Range<usize>, issue: &str, fix: &str) -> Finding {
    Finding::new(span, Severity::Minor, issue, fix)
}

fn capitals(document: &Document<'_>, words: &[Word<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let length = words[at..].iter().take_while(|word| is_capital(document, word)).count();
        let run = &words[at..at + length];
        let speech = length >= 3 && run.iter().any(|word| SPEECH.contains(&word.text));
        let single = run.iter().find(|word| SHOUTED.contains(&word.text) && word.text.len() > 2);
        let span = if speech {
            Some(run[0].start..run[length - 1].end)
        } else {
            single.map(|word| word.start..word.end)
        };
        if let Some(span) = span {
            let issue = format!("“{}” shouts.", document.one_line(&span));
            findings.push(finding(span, &issue, "Write it in small letters and let the words do it."));
        }
        at += length.max(1);
    }
    findings
}

fn is_capital(document: &Document<'_>, word: &Word<'_>) -> bool {
    let text = &document.text[word.start..word.end];
    word.kind == WordKind::Letters
        && !word.quoted
        && text.chars().count() > 1
        && text.chars().all(|c| c.is_uppercase() || c == '\'')
}

#[cfg(test)]
mod tests {
    use super::super::harness::quotes;
    use super::*;

    #[test]
    fn exclamations_and_capitals() {
        assert_eq!(
            quotes(&CHECK, "It is here!! Get it FREE of charge. THIS IS THE ONE you want."),
            ["here!!", "FREE", "THIS IS THE ONE"]
        );
        assert_eq!(quotes(&CHECK, "We did it! You can too! Try it."), ["You can too!"]);
    }

    #[test]
    fn terms_and_a_single_exclamation_are_calm() {
        assert!(
            quotes(&CHECK, "It answers SHIP, REVISE or HOLD over HTTP and JSON; it MUST NOT fail. Welcome!")
                .is_empty()
        );
    }
}
