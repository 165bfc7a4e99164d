//! `quorate.toml` as its JSON Schema has it. The reader beside this file says more, and in better words.

#![expect(dead_code, reason = "only the schemas of these types are used")]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::assembly::audit::Signing;

/// The host's own configuration, and the root of its workspace.
#[derive(JsonSchema)]
#[schemars(title = "quorate.toml", deny_unknown_fields)]
pub(crate) struct Configuration {
    /// Refuse a view whose parent is missing, instead of loading it without its parent's floor.
    pub strict_chain: Option<bool>,
    /// Where the ledger is, and what of it is kept.
    pub ledger: Option<LedgerOrPath>,
    /// What holds where nothing else is said.
    pub defaults: Option<Defaults>,
    /// How members are asked, by a name of your choice.
    pub executors: Option<BTreeMap<String, Executor>>,
    /// End a vote once what is out cannot change it.
    pub early_decision: Option<bool>,
    /// Who answers for the members of an assembly, by the assembly's name.
    pub assemblies: Option<BTreeMap<String, Assembly>>,
    /// MCP servers, by a name of your choice.
    pub mcp: Option<BTreeMap<String, Server>>,
    /// Who answers for the participants of a runtime, by the manifest's id.
    pub runtimes: Option<BTreeMap<String, Runtime>>,
    /// What one run may use up.
    pub budget: Option<Budget>,
    /// How agents may get better.
    pub playbooks: Option<Playbooks>,
    /// What nothing may change in an operator, by the trait's id.
    pub locks: Option<BTreeMap<String, Lock>>,
    /// What is a secret, and so neither recorded nor shown.
    pub redact: Option<Redaction>,
    /// Which key signs records, and whose signatures count.
    pub keys: Option<Keys>,
    /// The governance file of assemblies that bind none, relative to this file.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["GOVERNANCE.md"]))]
    pub governance: Option<String>,
}

/// A path relative to this file, or a table.
#[derive(JsonSchema)]
#[schemars(inline, untagged)]
pub(crate) enum LedgerOrPath {
    /// Where the ledger is, relative to this file.
    Path(
        #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = [".quorate/ledger.db"]))]
        String,
    ),
    /// Where it is, and what of it is kept.
    Table(Ledger),
}

/// Where the ledger is, and what of it is kept.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Ledger {
    /// Its file, relative to this one; `.quorate/ledger.db` unless said.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = [".quorate/ledger.db"]))]
    pub path: Option<String>,
    /// The file that each checkpoint is appended to, relative to this one, or the URL of a witness (c2sp.org/tlog-witness)
    /// that signs each.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["checkpoints.txt", "https://witness.example.org"]))]
    pub witness: Option<String>,
    /// The key of the witness with a URL: a verifier's line of type 0x04 (c2sp.org/tlog-cosignature).
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["witness.example.org+a1b2c3d4+BA…"]))]
    pub witness_key: Option<String>,
    /// How long what the members of reviews and runtimes said is kept; `forever` unless said.
    #[schemars(regex(pattern = "^(forever|days:0*[1-9][0-9]*)$"), extend("examples" = ["days:90"]))]
    pub retention: Option<String>,
}

/// Which key signs records, and whose signatures count.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Keys {
    /// Where the key that signs records comes from; `keys/signing.ed25519` beside the ledger unless said.
    pub signing: Option<KeySource>,
    /// The keyring, relative to this file; `keyring.toml` unless said.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["keyring.toml"]))]
    pub keyring: Option<String>,
    /// Whether the records of reviews and runtimes are signed; `none` unless said.
    pub sign: Option<Signing>,
}

/// Where a secret key comes from: one of the three.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct KeySource {
    /// A file, relative to this one.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub file: Option<String>,
    /// A variable of the environment.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub env: Option<String>,
    /// A program and its arguments, run without a shell, that prints it.
    #[schemars(extend("minItems" = 1, "examples" = [["pass", "show", "quorate"]]))]
    pub command: Option<Vec<String>>,
}

/// What is a secret.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Redaction {
    /// Whatever has the shape of a secret is one; `true` unless said.
    pub builtin: Option<bool>,
    /// The values of variables whose names promise a secret are; `true` unless said.
    pub environment: Option<bool>,
    /// Regular expressions of what else is one.
    pub patterns: Option<Vec<String>>,
}

/// How agents may get better.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Playbooks {
    /// How many playbooks may be active for one operator; 12 unless said.
    #[schemars(range(min = 1, max = 1_000))]
    pub max_active: Option<u32>,
    /// The executor that reads each proposal against the locked traits.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub judge: Option<String>,
    /// The executor that reads runs and proposes playbooks.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub reflector: Option<String>,
    /// The voting assembly that decides on promotions, relative to this file.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["assemblies/prompt-board"]))]
    pub governance: Option<String>,
    /// The command that compares two prompts.
    #[schemars(extend("minItems" = 1, "examples" = [["python3", "score.py"]]))]
    pub scorer: Option<Vec<String>>,
    /// How many outcomes a gate has to see on each side; 8 unless said.
    #[schemars(range(min = 2, max = 100_000))]
    pub min_sample: Option<u32>,
    /// How often a gate may let through what is no better; 0.05 unless said.
    #[schemars(range(min = 0.000_1, max = 0.2))]
    pub error_rate: Option<f64>,
}

/// A trait that nothing may change in an operator.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Lock {
    /// What it is.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub description: Option<String>,
    /// Words that stand for it.
    pub words: Option<Vec<String>>,
    /// Phrases that betray it.
    pub phrases: Option<Vec<String>>,
    /// The slugs of the operators whose trait it is; all of them unless said.
    pub operators: Option<Vec<String>>,
}

/// An MCP server: `url` with `token`, the name of the variable that holds it, or `command` with `args`.
#[derive(JsonSchema)]
pub(crate) struct Server {
    #[schemars(flatten)]
    pub block: Map<String, Value>,
}

/// Who answers for the participants of a runtime.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Runtime {
    /// The executor of all of them.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub executor: Option<String>,
    /// Single participants, by their ids.
    pub participants: Option<BTreeMap<String, Defaults>>,
}

/// Who answers for the members of an assembly.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Assembly {
    /// The executor of all of its members.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub executor: Option<String>,
    /// Single members, by their ids.
    pub members: Option<BTreeMap<String, Defaults>>,
}

/// What holds where nothing else is said.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Defaults {
    /// The executor.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub executor: Option<String>,
}

/// How members are asked. Further keys are the adapter's.
#[derive(JsonSchema)]
pub(crate) struct Executor {
    /// The adapter.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub kind: Option<String>,
    /// How long one member may take, all attempts together, for example `120s`.
    #[schemars(extend("examples" = ["120s"]))]
    pub timeout: Option<String>,
    /// How often a failure is tried again.
    #[schemars(range(min = 0, max = 100))]
    pub retries: Option<u32>,
    #[schemars(flatten)]
    pub block: Map<String, Value>,
}

/// What one run may use up.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Budget {
    /// Calls, re-prompts and retries included.
    #[schemars(range(min = 1))]
    pub calls: Option<u32>,
    /// Time, for example `10m`.
    #[schemars(extend("examples" = ["10m"]))]
    pub wall: Option<String>,
}
