//! `council.yaml`: who deliberates on an artifact, and how. This file owns the resolved form; `council/*` reads the
//! written one, key by key.

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

/// A council, ready to be convened. Valid by type: prompts and context files are read.
#[derive(Debug, Clone, PartialEq)]
pub struct Council {
    /// The directory of `council.yaml`; tier globs and log path are relative to it.
    pub dir: PathBuf,
    /// Three or more, in roster order, ids unique.
    pub deliberators: Vec<Deliberator>,
    pub adjudicator: Prompt,
    pub protocol: Protocol,
    /// Which artifacts are reviewed.
    pub tiers: TierRules,
    /// Where verdicts are logged and what is scrubbed.
    pub logging: Logging,
    /// What a sweep walks.
    pub watch: Watch,
    /// The `runtime` block, for whoever builds the executor; its `type` is the kind.
    pub runtime: Option<ExecutorTable>,
    /// Which verdict policy, where the file names one.
    pub policy: Option<PolicyName>,
    /// SHA-256 (hex) of the file as written and of every file that was read for it, by path as written.
    pub files: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Deliberator {
    /// Its id, unique in the council.
    pub id: Arc<str>,
    /// What it is told to be.
    pub prompt: Prompt,
    /// Recorded with its answers; the policies count heads.
    pub weight: f64,
    /// Documents that it judges by.
    pub context: Vec<ContextFile>,
}

/// A prompt and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The path as written; `None` for a built-in prompt.
    pub path: Option<String>,
    pub text: Arc<str>,
}

/// A document that a deliberator judges by.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextFile {
    /// The path as written.
    pub path: String,
    pub text: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    /// One or two rounds.
    pub rounds: Rounds,
    /// What round 2 sees of round 1.
    pub cross_read: CrossRead,
    /// End as INCOMPLETE as soon as one deliberator fails.
    pub fail_fast: FailFast,
    /// Fewer valid answers than this give INCOMPLETE.
    pub min_deliberators: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounds {
    /// Judge on independent first answers.
    One,
    /// Let everybody read the others first.
    Two,
}

/// What round 2 sees of round 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrossRead {
    /// The whole first answers (`true`, `verdicts`).
    Verdicts,
    /// Findings without verdicts, scores and blocks (`findings`).
    Findings,
    /// Nothing (`false`, `none`).
    None,
}

/// Whether one failure ends the review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailFast {
    /// `fail_fast_on_runtime_error: true`.
    Yes,
    No,
}

/// A verdict policy's name, as `verdict_policy: seed | strict` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyName {
    /// The published architecture's policy.
    Seed,
    /// The public tool's policy.
    Strict,
}

/// Where verdicts are logged and what is scrubbed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Logging {
    /// `council_log.jsonl`, relative to the council's directory.
    pub log_path: Option<PathBuf>,
    /// Regular expressions; whatever they match is replaced before anything is recorded.
    pub redact_patterns: Vec<String>,
}

/// What a sweep walks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Watch {
    /// Files and directories, relative to the council's directory.
    pub paths: Vec<String>,
}
