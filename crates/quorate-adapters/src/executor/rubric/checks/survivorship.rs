//! Survivorship: conclusions about all from those who stayed.

use std::sync::LazyLock;

use super::{Check, Criteria};
use crate::executor::rubric::document::Document;
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::lens::Lens;
use crate::executor::rubric::lexicon::Lexicon;

const WORDS: &str = include_str!("../words/survivorship.txt");

/// The skeptic asks about those who left.
pub(super) static CHECK: Check = Check { name: "survivorship", lens: Lens::Skeptic, yields_to: &[], run };

static SURVIVORS: LazyLock<Lexicon<()>> = LazyLock::new(|| Lexicon::from_section(WORDS, "survivors"));

fn run(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for sentence in document.sentences.iter().filter(|sentence| !sentence.cites) {
        let words = document.words_of(sentence);
        for hit in SURVIVORS.all(words).into_iter().filter(|hit| !words[hit.words.start].quoted) {
            let before = hit.words.start.checked_sub(1).map_or("", |at| &*words[at].text);
            if matches!(before, "not" | "ask" | "tell" | "told" | "email" | "notify" | "for" | "thank" | "to")
            {
                continue;
            }
            let span = words[hit.words.start].start..words[hit.words.end - 1].end;
            let issue = format!("“{}” hears only those who stayed.", document.one_line(&span));
            findings.push(Finding::new(
                span,
                Severity::Major,
                issue,
                "Say how many were asked, how many answered, and what those who left say.",
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
    fn those_who_stayed_speak_for_all() {
        for text in [
            "All our customers love it.",
            "Every team that switched ships more.",
            "Everyone who tried it stayed.",
            "All three reported fewer bugs.",
            "Our users love the new form.",
            "Every one of our customers renewed.",
        ] {
            assert_eq!(quotes(&CHECK, text).len(), 1, "{text}");
        }
    }

    #[test]
    fn plain_groups_are_not() {
        for text in [
            "We wrote to all our customers on Monday.",
            "All three files are read.",
            "Every team has a lead.",
            "In our survey of 40 former users, all three reported fewer bugs.",
        ] {
            assert!(quotes(&CHECK, text).is_empty(), "{text}");
        }
    }
}
