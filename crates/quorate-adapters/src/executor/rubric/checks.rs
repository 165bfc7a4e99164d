//! The checks, one file each, and the list of them.

mod absolute;
mod banned_phrase;
mod boasting;
mod call_to_action;
mod causal_leap;
mod claim;
mod goal;
pub(super) mod instructions;
mod irreversible_promise;
mod long_sentence;
mod missing_base;
mod no_counter_position;
mod no_evidence;
mod pivot;
mod register;
mod shouting;
mod superlative;
mod survivorship;
mod unsourced_number;
mod vague_authority;

use super::banned::BannedPhrases;
use super::document::{BlockKind, Document};
use super::finding::Finding;
use super::goals::Goals;
use super::lens::Lens;

/// What a text is judged by, besides the checks themselves.
pub(super) struct Criteria<'a> {
    pub(super) banned: &'a BannedPhrases,
    /// May be empty.
    pub(super) goals: &'a Goals,
    /// Documents of the member's context: a number or a phrase that occurs in one of them raises no finding.
    pub(super) context: &'a [Document<'a>],
}

#[derive(Debug)]
pub(super) struct Check {
    /// Also the name of its score.
    pub(super) name: &'static str,
    /// The lens that runs it. Every lens runs those of [`Lens::General`].
    pub(super) lens: Lens,
    /// Other lenses that may find the same words; the second round leaves the finding to them.
    pub(super) yields_to: &'static [Lens],
    pub(super) run: fn(&Document<'_>, &Criteria<'_>) -> Vec<Finding>,
}

/// All checks.
pub(super) static ALL: &[&Check] = &[
    &instructions::CHECK,
    &boasting::CHECK,
    &absolute::CHECK,
    &causal_leap::CHECK,
    &survivorship::CHECK,
    &no_counter_position::CHECK,
    &banned_phrase::CHECK,
    &pivot::CHECK,
    &long_sentence::CHECK,
    &shouting::CHECK,
    &register::CHECK,
    &unsourced_number::CHECK,
    &superlative::CHECK,
    &vague_authority::CHECK,
    &missing_base::CHECK,
    &no_evidence::CHECK,
    &irreversible_promise::CHECK,
    &call_to_action::CHECK,
    &goal::CHECK,
];

impl Check {
    /// Whether it also reads verse, which promises and counts as prose does, but argues and sounds otherwise.
    fn reads_verse(&self) -> bool {
        !matches!(self.lens, Lens::Skeptic | Lens::Voice)
    }
}

#[derive(Clone)]
pub(super) struct CheckFinding {
    pub(super) check: &'static Check,
    pub(super) finding: Finding,
}

/// Runs all checks of a lens.
pub(super) fn run(lens: Lens, document: &Document<'_>, criteria: &Criteria<'_>) -> Vec<CheckFinding> {
    let mut raised: Vec<CheckFinding> = Vec::new();
    for check in ALL.iter().copied().filter(|check| lens.covers(check.lens)) {
        let findings = (check.run)(document, criteria).into_iter();
        let read = findings.filter(|found| check.reads_verse() || !document.is_verse(found.span.start));
        raised.extend(read.map(|finding| CheckFinding { check, finding }));
    }
    raised
}

/// The place of a finding on the whole text: its title, else its first longer sentence, else its first words.
fn opening_span(document: &Document<'_>) -> std::ops::Range<usize> {
    let title =
        document.sentences.first().filter(|sentence| document.kind_of(sentence) == BlockKind::Heading);
    let long = document.sentences.iter().find(|sentence| sentence.words.len() >= 4);
    title.or(long).or(document.sentences.first()).map_or(0..0, |sentence| sentence.span.clone())
}

#[cfg(test)]
mod harness {
    //! Runs one check on a text.

    use super::{Check, Criteria};
    use crate::executor::rubric::banned::BannedPhrases;
    use crate::executor::rubric::document::Document;
    use crate::executor::rubric::finding::Finding;
    use crate::executor::rubric::goals::Goals;

    /// What a check finds in a text, without goals or context.
    pub(super) fn findings(check: &Check, text: &str) -> Vec<Finding> {
        findings_in(check, "", text, "")
    }

    /// What a check finds in a named text, with a goals document.
    pub(super) fn findings_in(check: &Check, name: &str, text: &str, goals: &str) -> Vec<Finding> {
        let banned = BannedPhrases::new(true, &[]).expect("usable");
        let criteria = Criteria { banned: &banned, goals: &Goals::read(goals), context: &[] };
        (check.run)(&Document::parse(name, text), &criteria)
    }

    /// The quotes of what a check finds.
    pub(super) fn quotes(check: &Check, text: &str) -> Vec<String> {
        let document = Document::parse("", text);
        findings(check, text).iter().map(|finding| text[document.quote(&finding.span)].to_owned()).collect()
    }
}
