//! Signs: faults that are looked for in whatever is said, and the words by which a persona shows that it minds them.
//! Some have a file of their own below; the others are checks that the rubric has for texts.

mod distress;
mod solicitation;
mod sycophancy;

use std::ops::Range;

use super::subject::{Speaker, Subject};
use crate::executor::rubric::checks::{self, Criteria};
use crate::executor::rubric::document::Document;
use crate::executor::rubric::finding::Severity;

#[derive(Debug)]
pub(super) struct Sign {
    pub(super) name: &'static str,
    /// Beginnings of words by which a phrase is about it.
    pub(super) cues: &'static [&'static str],
    /// Beginnings of words by which a persona minds it, though they mean other things too.
    pub(super) hints: &'static [&'static str],
    /// Whether everybody minds it.
    pub(super) always: bool,
    /// Whether those mind it who say nothing of themselves.
    pub(super) unless_said: bool,
    /// What is wrong, as a sentence without its subject; `{who}` stands for whoever says it.
    pub(super) headline: &'static str,
    /// What an agent is told to do.
    pub(super) instruction: &'static str,
    pub(super) look: Look,
}

/// How a sign is looked for.
#[derive(Debug)]
pub(super) enum Look {
    /// By code of its own.
    Own(fn(&Subject<'_>) -> Vec<Place>),
    /// By the checks of these names, in what the agent or the author says.
    Checks(&'static [&'static str]),
}

/// A place where something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The passage, as an index.
    pub(super) passage: usize,
    /// Where in it, in bytes.
    pub(super) span: Range<usize>,
    /// How grave it is by itself, from 1 to 10.
    pub(super) gravity: u8,
}

/// All signs. Of equal ones the first is named first.
pub(super) static ALL: &[Sign] = &[
    distress::SIGN,
    sycophancy::SIGN,
    solicitation::SIGN,
    Sign {
        name: "lasting promises",
        cues: &["promise", "guarantee", "overcommit", "over commit", "irrevers"],
        hints: &["commit", "legal", "liab", "risk", "contract", "prudent", "stake", "revers", "deadline"],
        always: false,
        unless_said: true,
        headline: "{who} makes promises that bind for longer than anybody can answer for",
        instruction: "Promise only what you can keep and undo: say until when it holds and under which condition.",
        look: Look::Checks(&["irreversible promises"]),
    },
    Sign {
        name: "unsourced claims",
        cues: &[
            "unsourced",
            "citation",
            "uncited",
            "cite ",
            "unsupported",
            "unverified",
            "without source",
            "without evidence",
            "statistic",
            "speculat",
            "hallucinat",
            "made up",
        ],
        hints: &[
            "evidence", "source", "measur", "rigor", "rigour", "empiric", "factual", "number", "figure",
            "analyst", "finan",
        ],
        always: false,
        unless_said: true,
        headline: "{who} gives figures or claims without saying where they come from",
        instruction: "Name the source of each figure and claim, or say that there is none.",
        look: Look::Checks(&["unsourced numbers", "vague authority"]),
    },
    Sign {
        name: "absolutes",
        cues: &["absolut", "overclaim", "overconfiden", "over confiden", "certaint", "exaggerat", "hubris"],
        hints: &["skeptic", "sceptic", "humil", "nuance", "rigor", "rigour", "doubt"],
        always: false,
        unless_said: true,
        headline: "{who} claims things without exception, and one exception is enough to make them false",
        instruction: "Say how often, for whom and under which condition, in place of always, never and everyone.",
        look: Look::Checks(&["absolutes"]),
    },
    Sign {
        name: "one-sidedness",
        cues: &["one sided", "onesided", "counter", "groupthink", "confirmation bias", "dissent"],
        hints: &["skeptic", "sceptic", "balance", "alternative", "trade off", "devil"],
        always: false,
        unless_said: true,
        headline: "{who} argues one side only and never says what speaks against it",
        instruction: "Say what speaks against it before you say what speaks for it.",
        look: Look::Checks(&["counter-position"]),
    },
    Sign {
        name: "leaps",
        cues: &["causal", "cherry pick", "survivor", "correlation", "post hoc"],
        hints: &["skeptic", "sceptic", "logic", "reasoning"],
        always: false,
        unless_said: false,
        headline: "{who} draws conclusions that what was seen does not carry",
        instruction: "Say what was seen apart from what is concluded, and what else could explain it.",
        look: Look::Checks(&["causal leaps", "survivorship"]),
    },
    Sign {
        name: "hype",
        cues: &["hype", "superlative", "breathless", "buzzword", "clich", "marketing"],
        hints: &["plain", "terse", "dry", "copy", "brand"],
        always: false,
        unless_said: false,
        headline: "{who} praises where it should describe",
        instruction: "Describe what there is in plain words; leave out superlatives and stock phrases.",
        look: Look::Checks(&["superlatives", "banned phrases", "shouting"]),
    },
];

/// Whether a sign is a solicitation that decides a vote.
pub(super) fn solicitation_decides(sign: &Sign, places: &[Place]) -> bool {
    sign.name == solicitation::SIGN.name
        && places.iter().any(|place| place.gravity + 1 >= solicitation::DECISIVE)
}

impl Sign {
    /// Where it is, in the order of the passages.
    pub(super) fn places(
        &self,
        subject: &Subject<'_>,
        documents: &[Option<Document<'_>>],
        criteria: &Criteria<'_>,
    ) -> Vec<Place> {
        let names = match &self.look {
            Look::Own(look) => return look(subject),
            Look::Checks(names) => names,
        };
        let mut places = Vec::new();
        for (passage, document) in
            documents.iter().enumerate().filter_map(|(at, one)| Some((at, one.as_ref()?)))
        {
            for check in checks::ALL.iter().filter(|check| names.contains(&check.name)) {
                places.extend((check.run)(document, criteria).into_iter().map(|finding| Place {
                    passage,
                    span: finding.span,
                    gravity: match finding.severity {
                        Severity::Minor => 2,
                        Severity::Major => 4,
                        Severity::Critical => 7,
                    },
                }));
            }
        }
        places
    }

    /// Whether its checks look at what somebody says.
    pub(super) fn reads(speaker: Speaker) -> bool {
        speaker != Speaker::User
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_that_is_named_is_there() {
        for sign in ALL {
            if let Look::Checks(names) = sign.look {
                for name in names {
                    assert!(checks::ALL.iter().any(|check| check.name == *name), "{name}");
                }
            }
        }
    }

    #[test]
    fn what_agents_are_told_has_no_word_that_is_commonly_locked() {
        // L1, C7: an instruction with such a word would be dropped, or tell of who deliberates.
        let words = [
            "warmth",
            "honest",
            "kindness",
            "voice register",
            "refuse harm",
            "core persona",
            "policy",
            "council",
            "assembly",
            "persona",
            "member",
        ];
        for sign in ALL {
            assert!(
                words.iter().all(|word| !sign.instruction.to_lowercase().contains(word)),
                "{}",
                sign.name
            );
        }
    }
}
