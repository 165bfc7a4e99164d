//! `council.yaml`: the members and protocol of a council, the built-in council, and the embedded prompts. This file owns the
//! resolved form; `council/load.rs` reads the file.

pub mod files;
mod load;
mod policy;
pub(crate) mod schema;
pub mod tiers;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use quorate_diagnostics::Place;
use serde::{Deserialize, Serialize};

use crate::config::{ExecutorTable, MemberSettings};
use crate::tree::open::sha256_hex;
use tiers::TierRules;

pub use files::FileAccess;
pub use load::{load, load_in};
pub use policy::{Condition, Exception, OwnPolicy, Policy, Row, Verdict, VerdictPolicy};

/// A valid council, with the text of its prompts and context files.
#[derive(Debug, Clone, PartialEq)]
pub struct Council {
    /// The directory of `council.yaml`; tier globs and log path are relative to it.
    pub dir: PathBuf,
    /// At least three, in roster order, with unique ids.
    pub deliberators: Vec<Deliberator>,
    pub adjudicator: Prompt,
    /// The executor of the adjudicator, with its settings.
    pub adjudicator_settings: Box<MemberSettings>,
    pub protocol: Protocol,
    pub tiers: TierRules,
    pub logging: Logging,
    pub watch: Watch,
    /// The `runtime` block, which configures the executor of members without a block of their own; its `type` is the kind.
    pub runtime: Option<ExecutorTable>,
    pub policy: Option<Policy>,
    /// The places of the rows of its own policy.
    pub policy_rows: Vec<Place>,
    /// Path as written and SHA-256 (hex) of the file itself and of every file that it names.
    pub files: Vec<(String, String)>,
}

impl Council {
    /// The ids of all members: the deliberators in roster order, then the adjudicator.
    pub fn member_ids(&self) -> impl Iterator<Item = &str> {
        self.deliberators.iter().map(|deliberator| &*deliberator.id).chain([ADJUDICATOR])
    }

    /// The settings of all members, in the order of [`Council::member_ids`].
    pub fn settings(&self) -> impl Iterator<Item = &MemberSettings> {
        let own = self.deliberators.iter().map(|deliberator| &deliberator.settings);
        own.chain([&*self.adjudicator_settings])
    }

    /// All executors that stand in for others.
    pub fn stand_ins(&self) -> impl Iterator<Item = &(String, Place)> {
        let of_runtimes = self.runtimes().filter_map(|table| table.fallback.as_ref());
        of_runtimes.chain(self.settings().filter_map(|settings| settings.fallback.as_ref())).flatten()
    }

    /// All `runtime` blocks: the council's, and those of single members.
    pub fn runtimes(&self) -> impl Iterator<Item = &ExecutorTable> {
        self.runtime.iter().chain(self.settings().filter_map(|settings| settings.runtime.as_ref()))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Deliberator {
    /// Unique in the council.
    pub id: Arc<str>,
    pub prompt: Prompt,
    /// Recorded with the answers. Only a policy with `block_weight` counts it.
    pub weight: f64,
    pub context: Vec<ContextFile>,
    /// The executor of the deliberator, with its settings.
    pub settings: MemberSettings,
}

/// A prompt and its path.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The path as written; `None` for a built-in prompt.
    pub path: Option<String>,
    pub text: Arc<str>,
}

/// A document with criteria for a deliberator.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextFile {
    /// The path as written.
    pub path: String,
    pub text: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    pub rounds: Rounds,
    pub cross_read: CrossRead,
    pub fail_fast: OnFailure,
    /// With fewer valid answers the verdict is INCOMPLETE.
    pub min_deliberators: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rounds {
    /// The verdict uses independent first answers.
    One,
    /// Each deliberator reads the others' first answers before its second.
    Two,
}

/// The part of round 1 that deliberators read in round 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CrossRead {
    /// The whole first answers (`true`, `verdicts`).
    Verdicts,
    /// Findings without verdicts, scores and blocks (`findings`).
    Findings,
    /// Nothing (`false`, `none`).
    None,
}

/// The effect of the first failure of a deliberator (`fail_fast_on_runtime_error`). The words are those of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// `true`: ends the review as INCOMPLETE.
    #[serde(rename = "yes")]
    End,
    /// `false`: the other deliberators continue.
    #[serde(rename = "no")]
    Continue,
}

/// The log of verdicts, and the patterns to redact.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Logging {
    /// Relative to the council's directory.
    pub log_path: Option<PathBuf>,
    /// Regular expressions; matches are replaced before anything is recorded.
    pub redact_patterns: Vec<String>,
}

/// The paths that a sweep walks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Watch {
    /// Files and directories, relative to the council's directory.
    pub paths: Vec<String>,
}

/// Four deliberators and an adjudicator with the embedded prompts, two rounds, no runtime, no tier rules.
pub fn built_in_council() -> Council {
    // Programs that run several commands hash the prompts only once.
    static BUILT_IN: LazyLock<Council> = LazyLock::new(assemble_built_in);
    BUILT_IN.clone()
}

fn assemble_built_in() -> Council {
    let embedded = |name| built_in_prompt(name).expect("every embedded prompt is found by its name");
    let roster = built_in_prompts().map(|(name, _)| name).filter(|name| *name != ADJUDICATOR);
    Council {
        dir: PathBuf::from("."),
        deliberators: roster
            .map(|id| Deliberator {
                id: id.into(),
                prompt: embedded(id),
                weight: 1.0,
                context: Vec::new(),
                settings: MemberSettings::default(),
            })
            .collect(),
        adjudicator: embedded(ADJUDICATOR),
        adjudicator_settings: Box::default(),
        protocol: Protocol::default(),
        tiers: TierRules::default(),
        logging: Logging::default(),
        watch: Watch::default(),
        runtime: None,
        policy: None,
        policy_rows: Vec::new(),
        files: built_in_prompts()
            .map(|(name, text)| (built_in_label(name), sha256_hex(text.as_bytes())))
            .collect(),
    }
}

impl Default for Protocol {
    /// Two rounds; round 2 reads the whole first answers; a verdict needs three valid answers.
    fn default() -> Self {
        Protocol {
            rounds: Rounds::Two,
            cross_read: CrossRead::Verdicts,
            fail_fast: OnFailure::Continue,
            min_deliberators: 3,
        }
    }
}

/// The prefix of a `prompt` that names an embedded one.
pub const BUILTIN_PREFIX: &str = "builtin:";

/// Name and text, deliberators in roster order, the adjudicator last.
const PROMPTS: [(&str, &str); 5] = [
    ("skeptic", include_str!("council/prompts/skeptic.md")),
    ("voice_identity", include_str!("council/prompts/voice_identity.md")),
    ("evidence", include_str!("council/prompts/evidence.md")),
    ("strategy", include_str!("council/prompts/strategy.md")),
    (ADJUDICATOR, include_str!("council/prompts/adjudicator.md")),
];

/// The adjudicator's name, which no deliberator may have.
pub const ADJUDICATOR: &str = "adjudicator";

/// Name and text of every embedded prompt, deliberators in roster order, the adjudicator last.
pub fn built_in_prompts() -> impl Iterator<Item = (&'static str, &'static str)> {
    PROMPTS.into_iter()
}

pub fn built_in_prompt(name: &str) -> Option<Prompt> {
    let (_, text) = built_in_prompts().find(|(known, _)| *known == name)?;
    Some(Prompt { path: None, text: Arc::from(text) })
}

/// The name of an embedded prompt in [`Council::files`].
fn built_in_label(name: &str) -> String {
    format!("{BUILTIN_PREFIX}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    // C8
    #[test]
    fn four_deliberate_and_one_adjudicates() {
        let council = built_in_council();
        let ids: Vec<_> = council.deliberators.iter().map(|deliberator| deliberator.id.as_ref()).collect();
        assert_eq!(ids, ["skeptic", "voice_identity", "evidence", "strategy"]);
        assert!(council.adjudicator.text.starts_with("# Adjudicator\n"));
        assert!(council.deliberators[2].prompt.text.starts_with("# Evidence & Calibration\n"));
        assert_eq!(council.files.len(), 5);
        assert_eq!(council, built_in_council());
    }
}

#[cfg(test)]
mod prompts_tests {
    use super::*;

    #[test]
    fn each_prompt_has_the_required_words() {
        for (name, text) in built_in_prompts() {
            let lower = text.to_lowercase();
            for needed in ["verdict", "verbatim", "material", "your one concern"] {
                assert!(lower.contains(needed), "{name}: {needed}");
            }
            let words = text.split_whitespace().count();
            assert!((250..=450).contains(&words), "{name}: {words} words");
        }
    }

    #[test]
    fn the_adjudicator_is_told_the_rule_that_the_policy_applies() {
        // C3
        let (_, text) = built_in_prompts().find(|(name, _)| *name == ADJUDICATOR).expect("a prompt");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for rule in [
            "You may be stricter than the count, never looser",
            "When three or more deliberators block and none of the blocks is irreducible, you may answer exactly `REVISE`",
            "Without such reasons answer `HOLD`.",
        ] {
            assert!(text.contains(rule), "{rule}");
        }
    }

    #[test]
    fn each_deliberator_prompt_has_its_scope_rounds_and_fields() {
        for (name, text) in built_in_prompts().filter(|(name, _)| *name != ADJUDICATOR) {
            for needed in [
                "leave to others",
                "Round 1:",
                "Round 2:",
                "oncede",
                "old",
                "scalate",
                "`would_block`",
                "`irreducible`",
                "`findings`",
                "`revision_brief`",
                "`concessions`",
                "`escalations`",
                "`scores`",
            ] {
                assert!(text.contains(needed), "{name}: {needed}");
            }
        }
    }
}
