//! Authorities without a name: studies show, experts agree, it is well known.

use std::sync::LazyLock;

use super::claim::has_source;
use super::{Check, Criteria};
use crate::executor::rubric::document::Document;
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::lens::Lens;
use crate::executor::rubric::lexicon::Lexicon;

const WORDS: &str = include_str!("../words/vague_authority.txt");

/// The evidence lens asks which study.
pub(super) static CHECK: Check = Check { name: "vague authority", lens: Lens::Evidence, yields_to: &[], run };

static AUTHORITIES: LazyLock<Lexicon<()>> = LazyLock::new(|| Lexicon::from_section(WORDS, "authorities"));

fn run(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, sentence) in document.sentences.iter().enumerate() {
        let words = document.words_of(sentence);
        let hits = AUTHORITIES.all(words).into_iter().filter(|hit| !words[hit.words.start].quoted);
        for hit in hits.filter(|_| !has_source(document, index)) {
            let span = words[hit.words.start].start..words[hit.words.end - 1].end;
            let issue = format!("“{}” names nobody who could be asked.", document.one_line(&span));
            findings.push(Finding::new(
                span,
                Severity::Major,
                issue,
                "Name and link the study or the person, or say it as your own view.",
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::harness::quotes;
    use super::*;

    #[test]
    fn nameless_authorities_are_found() {
        let text = "Studies show that it helps. Experts agree. It is well known. Clinically proven.";
        assert_eq!(quotes(&CHECK, text).len(), 4);
    }

    #[test]
    fn named_or_linked_ones_are_not() {
        assert!(quotes(&CHECK, "[Studies show](https://x.example/a) that it helps.").is_empty());
        assert!(
            quotes(&CHECK, "According to Okafor, research shows a gain. The command shows data.").is_empty()
        );
    }
}
