//! The JSON Schema of `quorate.toml`. The loader gives better messages.

#![expect(dead_code, reason = "only the schemas of these types are used")]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::assembly::Signing;

/// The configuration of a workspace; its directory is the workspace's root.
#[derive(JsonSchema)]
#[schemars(title = "quorate.toml", deny_unknown_fields)]
pub(crate) struct Configuration {
    /// Refuse a view whose parent is missing, instead of loading it without its parent's minimums.
    pub strict_chain: Option<bool>,
    /// Location, witness and retention of the ledger.
    pub ledger: Option<LedgerOrPath>,
    /// Defaults for all commands.
    pub defaults: Option<Defaults>,
    /// Executors, by a name of your choice.
    pub executors: Option<BTreeMap<String, Executor>>,
    /// End a vote as soon as the missing votes cannot change the result.
    pub early_decision: Option<bool>,
    /// The executors of a council's members.
    pub council: Option<Council>,
    /// The executors of an assembly's members, by the assembly's name.
    pub assemblies: Option<BTreeMap<String, Assembly>>,
    /// MCP servers, by a name of your choice.
    pub mcp: Option<BTreeMap<String, Server>>,
    /// The executors of a runtime's participants, by the manifest's id.
    pub runtimes: Option<BTreeMap<String, Runtime>>,
    /// What compares texts by meaning, for locked traits with `matchMode: semantic`.
    pub embedder: Option<Embedder>,
    /// The executor that is asked whether a text says what a locked trait says, in place of an embedder.
    pub meaning: Option<Meaning>,
    /// The limits of one run.
    pub budget: Option<Budget>,
    /// How playbooks are proposed and promoted.
    pub playbooks: Option<Playbooks>,
    /// Locked traits of operators, by the trait's id.
    pub locks: Option<BTreeMap<String, Lock>>,
    /// Secrets, which are neither recorded nor shown.
    pub redact: Option<Redaction>,
    /// The key that signs records, and the keyring.
    pub keys: Option<Keys>,
    /// The governance file of assemblies that bind none, relative to this file.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["GOVERNANCE.md"]))]
    pub governance: Option<String>,
}

/// A path relative to this file, or a table.
#[derive(JsonSchema)]
#[schemars(inline, untagged)]
pub(crate) enum LedgerOrPath {
    /// The ledger, relative to this file.
    Path(
        #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = [".quorate/ledger.db"]))]
        String,
    ),
    /// Location, witness and retention.
    Table(Ledger),
}

/// Location, witness and retention of the ledger.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Ledger {
    /// The ledger's file, relative to this one; the default is `.quorate/ledger.db`.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = [".quorate/ledger.db"]))]
    pub path: Option<String>,
    /// The file that each checkpoint is appended to, relative to this one, or the URL of a witness (c2sp.org/tlog-witness)
    /// that signs each.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["checkpoints.txt", "https://witness.example.org"]))]
    pub witness: Option<String>,
    /// The key of the witness with a URL: a verifier's line of type 0x04 (c2sp.org/tlog-cosignature).
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["witness.example.org+a1b2c3d4+BA…"]))]
    pub witness_key: Option<String>,
    /// How long answers of reviews and runtimes are kept; the default is `forever`.
    #[schemars(regex(pattern = "^(forever|days:0*[1-9][0-9]*)$"), extend("examples" = ["days:90"]))]
    pub retention: Option<String>,
}

/// The key that signs records, and the keyring.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Keys {
    /// The source of the key that signs records; the default is `keys/signing.ed25519` beside the ledger.
    pub signing: Option<KeySource>,
    /// The keyring, relative to this file; the default is `keyring.toml`.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["keyring.toml"]))]
    pub keyring: Option<String>,
    /// Whether the records of reviews and runtimes are signed; the default is `none`.
    pub sign: Option<Signing>,
}

/// The source of a secret key: exactly one of the three keys.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct KeySource {
    /// A file, relative to this one.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub file: Option<String>,
    /// A variable of the environment.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub env: Option<String>,
    /// A program and its arguments, run without a shell, which prints the key.
    #[schemars(extend("minItems" = 1, "examples" = [["pass", "show", "quorate"]]))]
    pub command: Option<Vec<String>>,
}

/// Which texts are secrets.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Redaction {
    /// Redact texts with the form of well-known secrets; the default is `true`.
    pub builtin: Option<bool>,
    /// Redact values of environment variables whose names suggest a secret; the default is `true`.
    pub environment: Option<bool>,
    /// Additional regular expressions that match secrets.
    pub patterns: Option<Vec<String>>,
}

/// How playbooks are proposed and promoted.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Playbooks {
    /// The maximum number of active playbooks for one operator; the default is 12.
    #[schemars(range(min = 1, max = 1_000))]
    pub max_active: Option<u32>,
    /// The executor that checks each proposal against the locked traits.
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
    /// The outcomes that a gate needs on each side; the default is 8.
    #[schemars(range(min = 2, max = 100_000))]
    pub min_sample: Option<u32>,
    /// The rate at which a gate may promote a playbook that is no improvement; the default is 0.05.
    #[schemars(range(min = 0.000_1, max = 0.2))]
    pub error_rate: Option<f64>,
}

/// A locked trait of operators.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Lock {
    /// A description of the trait.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub description: Option<String>,
    /// Words that stand for the trait.
    pub words: Option<Vec<String>>,
    /// Phrases that indicate the trait.
    pub phrases: Option<Vec<String>>,
    /// The slugs of the operators with this lock; the default is all.
    pub operators: Option<Vec<String>>,
}

/// An MCP server: `url` with `token` (the name of the variable with the token), or `command` with `args`.
#[derive(JsonSchema)]
pub(crate) struct Server {
    #[schemars(flatten)]
    pub block: Map<String, Value>,
}

/// The executors of a runtime's participants.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Runtime {
    /// The executor of all participants.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub executor: Option<String>,
    /// Executors that stand in for it when its service fails.
    #[schemars(extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = crate::pattern::SOMETHING)))]
    pub fallback: Option<Vec<String>>,
    /// The executors of single participants, by id.
    pub participants: Option<BTreeMap<String, MemberExecutor>>,
}

/// The executors of a council.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Council {
    /// The executor that says the tier of a text, for `tier_classifier.type` other than `rules`; the default is the
    /// adjudicator's.
    pub tiers: Option<String>,
    /// By the member's id; the adjudicator's is `adjudicator`.
    pub members: Option<BTreeMap<String, CouncilMember>>,
}

/// What one member of a council is asked through.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct CouncilMember {
    /// The name of the executor; the default is the council's.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub executor: Option<String>,
    /// The model, in place of the executor's own.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub model: Option<String>,
    /// Executors that stand in when its service fails, in place of the executor's own list.
    #[schemars(extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = crate::pattern::SOMETHING)))]
    pub fallback: Option<Vec<String>>,
    /// How many times it is asked for each answer; the answer that most samples agree with counts.
    #[schemars(range(min = 1, max = 9))]
    pub samples: Option<u8>,
}

/// The executors of an assembly's members.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Assembly {
    /// The executor of all members.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub executor: Option<String>,
    /// Executors that stand in for it when its service fails.
    #[schemars(extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = crate::pattern::SOMETHING)))]
    pub fallback: Option<Vec<String>>,
    /// How many times each member is asked for each answer.
    #[schemars(range(min = 1, max = 9))]
    pub samples: Option<u8>,
    /// The executors of single members, by id.
    pub members: Option<BTreeMap<String, AssemblyMember>>,
}

/// The executor of one member of an assembly.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct AssemblyMember {
    /// The name of the executor.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub executor: Option<String>,
    /// Executors that stand in when its service fails, in place of the executor's own list.
    #[schemars(extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = crate::pattern::SOMETHING)))]
    pub fallback: Option<Vec<String>>,
    /// How many times it is asked for each answer; the answer that most samples agree with counts.
    #[schemars(range(min = 1, max = 9))]
    pub samples: Option<u8>,
}

/// The executor of one participant.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct MemberExecutor {
    /// The name of the executor.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub executor: Option<String>,
    /// Executors that stand in when its service fails, in place of the executor's own list.
    #[schemars(extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = crate::pattern::SOMETHING)))]
    pub fallback: Option<Vec<String>>,
}

/// The choice of an executor.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Defaults {
    /// The name of the executor.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub executor: Option<String>,
}

/// An executor. Other keys are passed to the adapter.
#[derive(JsonSchema)]
pub(crate) struct Executor {
    /// The kind of adapter.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub kind: Option<String>,
    /// The deadline of a member for all attempts together, for example `120s`.
    #[schemars(extend("examples" = ["120s"]))]
    pub timeout: Option<String>,
    /// The number of retries after a failure.
    #[schemars(range(min = 0, max = 100))]
    pub retries: Option<u32>,
    /// Executors that stand in for it when its service fails, in the order in which they are asked.
    #[schemars(extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = crate::pattern::SOMETHING)))]
    pub fallback: Option<Vec<String>>,
    #[schemars(flatten)]
    pub block: Map<String, Value>,
}

/// A model that turns texts into vectors. Other keys are passed to the adapter.
#[derive(JsonSchema)]
pub(crate) struct Embedder {
    /// How long one comparison may take, with all its attempts; the default is `60s`.
    #[schemars(extend("examples" = ["60s"]))]
    pub timeout: Option<String>,
    #[schemars(flatten)]
    pub block: Map<String, Value>,
}

/// The question whether a text says what a locked trait says.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Meaning {
    /// The name of the executor.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub executor: String,
    /// The lowest probability at which a text is a hit; the default is the executor's. A model that gives no probability
    /// answers yes or no.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub threshold: Option<f64>,
}

/// The limits of one run.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Budget {
    /// Calls of executors, including re-prompts and retries.
    #[schemars(range(min = 1))]
    pub calls: Option<u32>,
    /// Tokens of prompts and answers.
    #[schemars(range(min = 1))]
    pub tokens: Option<u64>,
    /// Money in US dollars, for example `5 USD`.
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]{1,9})? USD$"), extend("examples" = ["5 USD", "0.50 USD"]))]
    pub money: Option<String>,
    /// A file of prices, relative to this file; its prices come before those that ship.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["prices.toml"]))]
    pub prices: Option<String>,
    /// Wall-clock time, for example `10m`.
    #[schemars(extend("examples" = ["10m"]))]
    pub wall: Option<String>,
}
