//! `quorate.toml`: the host's own configuration. This file owns the resolved form; `host/load.rs` reads the written
//! one.

pub(crate) mod executor;
mod keys;
mod ledger;
mod load;
mod playbooks;
mod redact;
pub(crate) mod schema;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, Place};
use serde_json::{Map, Value};

use crate::assembly::audit::Signing;

pub use load::load;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Configuration {
    /// The directory of `quorate.toml`; the root of the workspace.
    pub dir: PathBuf,
    /// `strict_chain`: whether a broken chain of manifests is refused (M5).
    pub strict_chain: bool,
    /// Where the ledger is, as written: a path relative to `dir`.
    pub ledger: Ledger,
    /// `[defaults] executor`, and where it stands.
    pub default_executor: Option<(String, Place)>,
    /// `[executors.*]` by name.
    pub executors: BTreeMap<String, ExecutorTable>,
    /// `early_decision`: whether a vote ends once what is out cannot change it (V7).
    pub early_decision: bool,
    /// `[assemblies.*]` by name.
    pub assemblies: BTreeMap<String, AssemblyTable>,
    /// `[mcp.*]`, MCP servers by id, verbatim for whoever connects.
    pub servers: BTreeMap<String, Block>,
    /// `[runtimes.*]` by the manifest's id.
    pub runtimes: BTreeMap<String, RuntimeTable>,
    /// `[budget]`.
    pub budget: Budget,
    /// `[playbooks]`.
    pub playbooks: Playbooks,
    /// `[locks.*]` by the trait's id.
    pub locks: BTreeMap<String, Lock>,
    /// `[redact]`.
    pub redact: Redaction,
    /// `[keys]`.
    pub keys: Keys,
    /// `governance`: the governance file of assemblies that bind none, as written, and where it stands.
    pub governance: Option<(String, Place)>,
}

impl Configuration {
    pub fn path(&self) -> PathBuf {
        self.dir.join("quorate.toml")
    }

    /// The executors that it chooses by name, and where each choice stands.
    pub fn named_executors(&self) -> impl Iterator<Item = (&String, &Place)> {
        let assemblies =
            self.assemblies.values().flat_map(|table| table.executor.iter().chain(table.members.values()));
        let runtimes =
            self.runtimes.values().flat_map(|table| table.executor.iter().chain(table.participants.values()));
        let own = [&self.default_executor, &self.playbooks.judge, &self.playbooks.reflector];
        own.into_iter().flatten().chain(assemblies).chain(runtimes).map(|(name, place)| (name, place))
    }
}

/// Where the ledger is, and what of it is kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ledger {
    /// `path`: its file, as written; `.quorate/ledger.db` unless said.
    pub path: Option<String>,
    /// `witness`: the file that each checkpoint is appended to, or the URL of a witness that signs each, as written, and
    /// where it stands.
    pub witness: Option<(String, Place)>,
    /// `witness_key`: the verifier's line of the witness with a URL, and where it stands.
    pub witness_key: Option<(String, Place)>,
    /// `retention`: how many days what the members of reviews and runtimes said is kept; `None` for ever.
    pub retention_days: Option<u32>,
}

/// Which key signs records, and whose signatures count.
#[derive(Debug, Clone, PartialEq)]
pub struct Keys {
    /// `signing`: where the key that signs records comes from, and where that stands.
    pub signing: Option<(KeySource, Place)>,
    /// `keyring`: the keyring's file, as written, and where it stands.
    pub keyring: Option<(String, Place)>,
    /// `sign`: whether the records of reviews and runtimes are signed.
    pub sign: Signing,
}

impl Default for Keys {
    fn default() -> Self {
        Keys { signing: None, keyring: None, sign: Signing::None }
    }
}

/// Where a secret key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A file, relative to `quorate.toml`.
    File(String),
    /// A variable of the environment.
    Env(String),
    /// What a command prints: a program and its arguments, run without a shell.
    Command(Vec<String>),
}

/// What is a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redaction {
    /// `builtin`: whether whatever has the shape of one is.
    pub builtin: bool,
    /// `environment`: whether the values of variables whose names promise one are.
    pub environment: bool,
    /// `patterns`: regular expressions of what else is one.
    pub patterns: Vec<String>,
}

impl Default for Redaction {
    fn default() -> Self {
        Redaction { builtin: true, environment: true, patterns: Vec::new() }
    }
}

/// How agents may get better.
#[derive(Debug, Clone, PartialEq)]
pub struct Playbooks {
    /// `max_active`: how many playbooks may be active for one operator.
    pub max_active: usize,
    /// `judge`: the executor that reads each proposal against the locked traits, and where it stands.
    pub judge: Option<(String, Place)>,
    /// `reflector`: the executor that reads runs and proposes deltas, and where it stands.
    pub reflector: Option<(String, Place)>,
    /// `governance`: the voting assembly that decides on promotions, and where it stands.
    pub governance: Option<(String, Place)>,
    /// `scorer`: the command that compares two prompts, and where it stands.
    pub scorer: Option<(Vec<String>, Place)>,
    /// `min_sample`: how many outcomes a gate has to see on each side.
    pub min_sample: u32,
    /// `error_rate`: how often a gate may let through what is no better.
    pub error_rate: f64,
}

impl Default for Playbooks {
    fn default() -> Self {
        Playbooks {
            max_active: 12,
            judge: None,
            reflector: None,
            governance: None,
            scorer: None,
            min_sample: 8,
            error_rate: 0.05,
        }
    }
}

/// A trait that nothing may change in an operator.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lock {
    pub description: Option<String>,
    /// Words that stand for it.
    pub words: Vec<String>,
    /// Phrases that betray it.
    pub phrases: Vec<String>,
    /// The slugs of the operators whose trait it is; `None` for all of them.
    pub operators: Option<Vec<String>>,
}

/// One `[assemblies.<name>]` table: who answers for its members.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AssemblyTable {
    /// `executor`: for all of them, and where it stands.
    pub executor: Option<(String, Place)>,
    /// `[assemblies.<name>.members.<id>] executor`, and where it stands.
    pub members: BTreeMap<String, (String, Place)>,
}

/// One `[runtimes.<id>]` table: who answers for its participants.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuntimeTable {
    /// `executor`: for all of them, and where it stands.
    pub executor: Option<(String, Place)>,
    /// `[runtimes.<id>.participants.<id>] executor`, and where it stands.
    pub participants: BTreeMap<String, (String, Place)>,
}

/// One `[executors.<name>]` table.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutorTable {
    /// `kind`, which picks the adapter, and where it stands. `None` where a `preset` or a `command` in the block
    /// says it instead.
    pub kind: Option<(String, Place)>,
    /// `timeout`; one deadline spans all attempts.
    pub timeout: Option<Duration>,
    /// `retries`; failures, not timeouts.
    pub retries: Option<u32>,
    /// Everything else, verbatim, for the adapter.
    pub block: Block,
}

/// An adapter's own keys, verbatim, with the place of each, so that whatever the adapter refuses can be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The keys and values.
    pub json: Map<String, Value>,
    /// Where the block as a whole stands.
    pub place: Place,
    /// Where each key stands.
    pub keys: BTreeMap<String, Place>,
    /// The file's text, to quote from.
    pub source: Arc<str>,
}

impl Block {
    /// The place of a key, or of the whole block.
    pub fn place_of(&self, key: Option<&str>) -> Place {
        key.and_then(|key| self.keys.get(key)).unwrap_or(&self.place).clone()
    }

    /// A body that points at a key, or at the whole block.
    pub fn body(&self, key: Option<&str>, message: impl Into<String>) -> Body {
        Body::new(message).at(self.place_of(key))
    }
}

/// The caps of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// How many calls a run may make, re-prompts and retries included.
    pub calls: Option<u32>,
    /// How long a run may take.
    pub wall: Option<Duration>,
}
