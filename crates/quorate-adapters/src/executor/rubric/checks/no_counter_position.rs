//! Arguments with one side: a text that wants to persuade and never says what speaks against it.

use std::sync::LazyLock;

use super::{Check, Criteria, absolute, causal_leap, opening_span, survivorship};
use crate::executor::rubric::document::{Channel, Document};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::lens::Lens;
use crate::executor::rubric::lexicon::Lexicon;

const WORDS: &str = include_str!("../words/no_counter_position.txt");

/// The skeptic asks for the other side.
pub(super) static CHECK: Check = Check { name: "counter-position", lens: Lens::Skeptic, yields_to: &[], run };

/// A shorter text need not argue both sides.
const MIN_WORDS: usize = 100;
/// So many signs of persuasion make it an argument.
const SIGNS: usize = 3;
/// So many points of absolutes, survivors and leaps, with nothing against them, leave nothing to repair by edits.
const ONE_SIDED_POINTS: u32 = 18;

static PERSUASION: LazyLock<Lexicon<()>> = LazyLock::new(|| Lexicon::from_section(WORDS, "persuasion"));
static OTHER_SIDE: LazyLock<Lexicon<()>> = LazyLock::new(|| Lexicon::from_section(WORDS, "other side"));

fn run(document: &Document<'_>, criteria: &Criteria<'_>) -> Vec<Finding> {
    if document.word_count() < MIN_WORDS || document.channel == Channel::Manual {
        return Vec::new();
    }
    let (mut signs, mut other_side) = (0, false);
    for sentence in &document.sentences {
        let words = document.words_of(sentence);
        signs += PERSUASION.all(words).into_iter().filter(|hit| !words[hit.words.start].quoted).count();
        other_side |=
            OTHER_SIDE.first(words).is_some() || words.first().is_some_and(|word| word.text == "but");
        other_side |= document.prose[sentence.span.clone()].contains(", but ");
    }
    if signs < SIGNS || other_side {
        return Vec::new();
    }
    let one_sided = [&absolute::CHECK, &survivorship::CHECK, &causal_leap::CHECK];
    let points: u32 = one_sided
        .iter()
        .flat_map(|check| (check.run)(document, criteria))
        .map(|finding| finding.points())
        .sum();
    let place = opening_span(document);
    if points >= ONE_SIDED_POINTS && points as usize * 30 >= document.word_count() {
        let issue = "The argument is absolutes and success stories from end to end, and nothing in it could turn out wrong.";
        return vec![Finding::beyond_edit(
            place,
            issue,
            "Work out what speaks against it, and for whom it is not, then write it again.",
        )];
    }
    let issue = "The text argues and never says what speaks against it, or for whom it is not.";
    vec![Finding::new(
        place,
        Severity::Major,
        issue,
        "Add the strongest objection and your answer, or when not to use it.",
    )]
}

#[cfg(test)]
mod tests {
    use super::super::harness::{findings, findings_in};
    use super::*;
    use crate::executor::rubric::finding::Repair;

    fn pitch(end: &str) -> String {
        let body =
            "You should join us today. Imagine a week without meetings. We believe it is better than mail. ";
        format!("{}{end}", body.repeat(6))
    }

    #[test]
    fn a_pitch_with_one_side() {
        assert_eq!(findings(&CHECK, &pitch("")).first().map(|f| f.severity), Some(Severity::Major));
        assert!(findings(&CHECK, &pitch("However, it is slow.")).is_empty());
        assert!(findings(&CHECK, &pitch("It is small, but it is slow.")).is_empty());
    }

    #[test]
    fn a_pitch_of_nothing_but_certainty_is_beyond_an_edit() {
        let sure = "All our customers love it. It works for everyone. Success is guaranteed. ";
        assert_eq!(
            findings(&CHECK, &pitch(&sure.repeat(5))).first().map(|f| f.repair),
            Some(Repair::Rethink)
        );
    }

    #[test]
    fn what_does_not_argue_needs_no_other_side() {
        let plain = "The disk filled at noon and the service answered with errors until we had moved the old files away. ";
        assert!(findings(&CHECK, &plain.repeat(10)).is_empty());
        assert!(findings_in(&CHECK, "README.md", &pitch(""), "").is_empty());
    }
}
