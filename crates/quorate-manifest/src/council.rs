//! `council.yaml`: the members and protocol of a council. This file owns the resolved form; `council/*` reads the file,
//! key by key.

mod built_in;
mod files;
pub mod glob;
mod load;
pub(crate) mod logging;
pub mod prompts;
mod protocol;
mod roster;
mod runtime;
pub(crate) mod schema;
mod tier_rules;
pub mod tiers;

use std::path::PathBuf;
use std::sync::Arc;

pub use built_in::built_in;
pub use files::FileAccess;
pub use load::{load, load_in};

use crate::config::ExecutorTable;
use tiers::TierRules;

/// A valid council, with the text of its prompts and context files.
#[derive(Debug, Clone, PartialEq)]
pub struct Council {
    /// The directory of `council.yaml`; tier globs and log path are relative to it.
    pub dir: PathBuf,
    /// At least three, in roster order, with unique ids.
    pub deliberators: Vec<Deliberator>,
    pub adjudicator: Prompt,
    /// The adjudicator's own `runtime` block.
    pub adjudicator_runtime: Option<Box<ExecutorTable>>,
    pub protocol: Protocol,
    pub tiers: TierRules,
    pub logging: Logging,
    pub watch: Watch,
    /// The `runtime` block, which configures the executor of members without a block of their own; its `type` is the kind.
    pub runtime: Option<ExecutorTable>,
    pub policy: Option<PolicyName>,
    /// Path as written and SHA-256 (hex) of the file itself and of every file that it names.
    pub files: Vec<(String, String)>,
}

impl Council {
    /// The ids of all members: the deliberators in roster order, then the adjudicator.
    pub fn member_ids(&self) -> impl Iterator<Item = &str> {
        self.deliberators.iter().map(|deliberator| &*deliberator.id).chain([prompts::ADJUDICATOR])
    }

    /// The `runtime` block of a member alone; `None` where the council's own counts.
    pub fn runtime_of(&self, member: &str) -> Option<&ExecutorTable> {
        match member {
            prompts::ADJUDICATOR => self.adjudicator_runtime.as_deref(),
            _ => self.deliberators.iter().find(|one| &*one.id == member)?.runtime.as_ref(),
        }
    }

    /// All `runtime` blocks: the council's, and those of single members.
    pub fn runtimes(&self) -> impl Iterator<Item = &ExecutorTable> {
        let own = self.deliberators.iter().filter_map(|deliberator| deliberator.runtime.as_ref());
        self.runtime.iter().chain(own).chain(self.adjudicator_runtime.as_deref())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Deliberator {
    /// Unique in the council.
    pub id: Arc<str>,
    pub prompt: Prompt,
    /// Recorded with the answers; the policies ignore it and count members.
    pub weight: f64,
    pub context: Vec<ContextFile>,
    /// Its own `runtime` block.
    pub runtime: Option<ExecutorTable>,
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
    pub fail_fast: FailFast,
    /// With fewer valid answers the verdict is INCOMPLETE.
    pub min_deliberators: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounds {
    /// The verdict uses independent first answers.
    One,
    /// Each deliberator reads the others' first answers before its second.
    Two,
}

/// The part of round 1 that deliberators read in round 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrossRead {
    /// The whole first answers (`true`, `verdicts`).
    Verdicts,
    /// Findings without verdicts, scores and blocks (`findings`).
    Findings,
    /// Nothing (`false`, `none`).
    None,
}

/// Whether the first failure of a deliberator ends the review as INCOMPLETE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailFast {
    /// `fail_fast_on_runtime_error: true`.
    Yes,
    No,
}

/// The value of `verdict_policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyName {
    /// The published architecture's policy.
    Seed,
    /// The public tool's policy.
    Strict,
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
