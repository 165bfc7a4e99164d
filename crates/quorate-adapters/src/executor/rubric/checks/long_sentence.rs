//! Sentences that run too long to follow.

use super::{Check, Criteria};
use crate::executor::rubric::document::{BlockKind, Document};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::lens::Lens;

/// The voice lens asks for sentences that can be read aloud.
pub(super) static CHECK: Check = Check { name: "sentence length", lens: Lens::Voice, yields_to: &[], run };

/// Words; a longer sentence is a finding.
const LONG: usize = 35;
/// Words; a longer sentence is a severe finding.
const SEVERE: usize = 50;

fn run(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let is_prose = |kind| matches!(kind, BlockKind::Paragraph | BlockKind::Item);
    let sentences = document.sentences.iter().filter(|sentence| is_prose(document.kind_of(sentence)));
    let long = sentences.filter(|sentence| sentence.words.len() > LONG);
    long.map(|sentence| {
        let count = sentence.words.len();
        let severity = if count > SEVERE { Severity::Major } else { Severity::Minor };
        let issue = format!("A sentence of {count} words.");
        Finding::new(sentence.span.clone(), severity, issue, "Split it where a new thought begins.")
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::harness::findings;
    use super::*;

    #[test]
    fn length_sets_the_severity() {
        let sentence_of = |n: usize| {
            findings(&CHECK, &format!("{}end.", "word ".repeat(n - 1))).first().map(|f| f.severity)
        };
        assert_eq!(
            (sentence_of(35), sentence_of(36), sentence_of(51)),
            (None, Some(Severity::Minor), Some(Severity::Major))
        );
    }

    #[test]
    fn headings_cells_and_separate_items_are_no_sentences() {
        let long = "word ".repeat(60);
        assert!(findings(&CHECK, &format!("# {long}\n\n| a |\n|---|\n| {long} |\n")).is_empty());
        assert!(findings(&CHECK, &"- one two three four five\n".repeat(20)).is_empty());
    }
}
