//! `quorate.toml`: the configuration of a workspace, as written, with defaults for what is not; `config/load.rs` reads the
//! file, and `config/schema.rs` has the forms that the schema shows and one type reads.
//!
//! A [`Place`] beside a value is the value's place in the file.

pub(crate) mod load;
pub(crate) mod schema;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, Place};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::assembly::Signing;
use crate::duration;
use crate::money::Money;
use crate::pattern::SOMETHING;

pub use load::{MAX_SAMPLES, MAX_STAND_INS, load};

/// A name or a path as written, and its place.
pub type Named = (String, Place);

/// The configuration of a workspace; its directory is the workspace's root.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "quorate.toml", deny_unknown_fields)]
pub struct Configuration {
    // The directory of `quorate.toml`.
    #[serde(skip)]
    pub dir: PathBuf,
    /// Refuse a view whose parent is missing, instead of loading it without its parent's minimums.
    #[schemars(with = "Option<bool>")]
    pub strict_chain: bool,
    /// Location, witness and retention of the ledger.
    #[schemars(with = "Option<schema::LedgerOrPath>")]
    pub ledger: Ledger,
    /// Defaults for all commands.
    #[schemars(with = "Option<Defaults>")]
    pub defaults: Defaults,
    /// Executors, by a name of your choice.
    #[schemars(with = "Option<BTreeMap<String, ExecutorTable>>")]
    pub executors: BTreeMap<String, ExecutorTable>,
    /// End a vote as soon as the missing votes cannot change the result.
    #[schemars(with = "Option<bool>")]
    pub early_decision: bool,
    /// The executors of a council's members.
    #[schemars(with = "Option<CouncilTable>")]
    pub council: CouncilTable,
    /// The executors of an assembly's members, by the assembly's name.
    #[schemars(with = "Option<BTreeMap<String, schema::Assembly>>")]
    pub assemblies: BTreeMap<String, MemberTable>,
    /// MCP servers, by a name of your choice.
    #[serde(rename = "mcp")]
    #[schemars(with = "Option<BTreeMap<String, schema::Server>>")]
    pub servers: BTreeMap<String, Block>,
    /// The executors of a runtime's participants, by the manifest's id.
    #[schemars(with = "Option<BTreeMap<String, schema::Runtime>>")]
    pub runtimes: BTreeMap<String, MemberTable>,
    /// What compares texts by meaning, for locked traits with `matchMode: semantic`.
    pub embedder: Option<Box<EmbedderTable>>,
    /// The executor that is asked whether a text says what a locked trait says, in place of an embedder.
    pub meaning: Option<MeaningTable>,
    /// The limits of one run.
    #[schemars(with = "Option<Budget>")]
    pub budget: Budget,
    /// How playbooks are proposed and promoted.
    #[schemars(with = "Option<Playbooks>")]
    pub playbooks: Playbooks,
    /// Locked traits of operators, by the trait's id.
    #[schemars(with = "Option<BTreeMap<String, Lock>>")]
    pub locks: BTreeMap<String, Lock>,
    /// Secrets, which are neither recorded nor shown.
    #[schemars(with = "Option<Redaction>")]
    pub redact: Redaction,
    /// The key that signs records, and the keyring.
    #[schemars(with = "Option<Keys>")]
    pub keys: Keys,
    /// The governance file of assemblies that bind none, relative to this file.
    #[schemars(with = "Option<String>", regex(pattern = SOMETHING), extend("examples" = ["GOVERNANCE.md"]))]
    pub governance: Option<Named>,
}

impl Configuration {
    pub fn path(&self) -> PathBuf {
        self.dir.join("quorate.toml")
    }

    /// All executors that stand in for others.
    pub fn stand_ins(&self) -> impl Iterator<Item = &Named> {
        let of_executors = self.executors.values().flat_map(|table| &table.fallback);
        let of_members = self.council.members.values().flat_map(|member| &member.fallback);
        let of_tables = self.member_settings().filter_map(|settings| settings.fallback.as_ref());
        of_executors.chain(of_members).chain(of_tables).flatten()
    }

    fn member_settings(&self) -> impl Iterator<Item = &MemberSettings> {
        let tables = self.assemblies.values().chain(self.runtimes.values());
        tables.flat_map(|table| std::iter::once(&table.common).chain(table.own.values()))
    }

    /// The names of all executors that other tables choose, stand-ins included.
    pub fn named_executors(&self) -> impl Iterator<Item = (&String, &Place)> {
        let tables = self.member_settings().filter_map(|settings| settings.executor.as_ref());
        let council = self.council.members.values().filter_map(|member| member.executor.as_ref());
        let playbooks = [&self.playbooks.judge, &self.playbooks.reflector];
        let single = [&self.defaults.executor, playbooks[0], playbooks[1], &self.council.tiers];
        let single = single.into_iter().flatten().chain(self.meaning.as_ref().map(|table| &table.executor));
        let all = single.chain(council).chain(tables).chain(self.stand_ins());
        all.map(|(name, place)| (name, place))
    }
}

/// Location, witness and retention of the ledger.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct Ledger {
    /// The ledger's file, relative to this one; the default is `.quorate/ledger.db`.
    #[schemars(regex(pattern = SOMETHING), extend("examples" = [".quorate/ledger.db"]))]
    pub path: Option<String>,
    /// The file that each checkpoint is appended to, relative to this one, or the URL of a witness (c2sp.org/tlog-witness)
    /// that signs each.
    #[schemars(with = "Option<String>", regex(pattern = SOMETHING), extend("examples" = ["checkpoints.txt", "https://witness.example.org"]))]
    pub witness: Option<Named>,
    /// The key of the witness with a URL: a verifier's line of type 0x04 (c2sp.org/tlog-cosignature).
    #[schemars(with = "Option<String>", regex(pattern = SOMETHING), extend("examples" = ["witness.example.org+a1b2c3d4+BA…"]))]
    pub witness_key: Option<Named>,
    /// How long answers of reviews and runtimes are kept; the default is `forever`.
    #[serde(rename = "retention", deserialize_with = "load::days")]
    #[schemars(with = "Option<String>", regex(pattern = "^(forever|days:0*[1-9][0-9]*)$"), extend("examples" = ["days:90"]))]
    pub retention_days: Option<u32>,
}

/// The key that signs records, and the keyring.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct Keys {
    /// The source of the key that signs records; the default is `keys/signing.ed25519` beside the ledger.
    #[schemars(with = "Option<schema::KeySource>")]
    pub signing: Option<(KeySource, Place)>,
    /// The keyring, relative to this file; the default is `keyring.toml`.
    #[schemars(with = "Option<String>", regex(pattern = SOMETHING), extend("examples" = ["keyring.toml"]))]
    pub keyring: Option<Named>,
    /// Whether the records of reviews and runtimes are signed; the default is `none`.
    #[schemars(with = "Option<Signing>")]
    pub sign: Signing,
}

/// The source of a secret key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeySource {
    /// A file, relative to `quorate.toml`.
    File(String),
    /// A variable of the environment.
    Env(String),
    /// The output of a program with arguments, run without a shell.
    Command(Vec<String>),
}

/// Which texts are secrets.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct Redaction {
    /// Redact texts with the form of well-known secrets; the default is `true`.
    #[schemars(with = "Option<bool>")]
    pub builtin: bool,
    /// Redact values of environment variables whose names suggest a secret; the default is `true`.
    #[schemars(with = "Option<bool>")]
    pub environment: bool,
    /// Additional regular expressions that match secrets.
    #[schemars(with = "Option<Vec<String>>")]
    pub patterns: Vec<String>,
}

impl Default for Redaction {
    fn default() -> Self {
        Redaction { builtin: true, environment: true, patterns: Vec::new() }
    }
}

/// How playbooks are proposed and promoted.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct Playbooks {
    /// The maximum number of active playbooks for one operator; the default is 12.
    #[schemars(with = "Option<u32>", range(min = 1, max = 1_000))]
    pub max_active: usize,
    /// The executor that checks each proposal against the locked traits.
    #[schemars(with = "Option<String>", regex(pattern = SOMETHING))]
    pub judge: Option<Named>,
    // `judge = "off"`: where proposals are exempted from the judge.
    #[serde(skip)]
    pub judge_off: Option<Place>,
    /// The executor that reads runs and proposes playbooks.
    #[schemars(with = "Option<String>", regex(pattern = SOMETHING))]
    pub reflector: Option<Named>,
    /// The voting assembly that decides on promotions, relative to this file.
    #[schemars(with = "Option<String>", regex(pattern = SOMETHING), extend("examples" = ["assemblies/prompt-board"]))]
    pub governance: Option<Named>,
    /// The command that compares two prompts.
    #[schemars(with = "Option<Vec<String>>", extend("minItems" = 1, "examples" = [["python3", "score.py"]]))]
    pub scorer: Option<(Vec<String>, Place)>,
    /// The outcomes that a gate needs on each side; the default is 8.
    #[schemars(with = "Option<u32>", range(min = 2, max = 100_000))]
    pub min_sample: u32,
    /// The rate at which a gate may promote a playbook that is no improvement; the default is 0.05.
    #[schemars(with = "Option<f64>", range(min = 0.000_1, max = 0.2))]
    pub error_rate: f64,
}

impl Default for Playbooks {
    fn default() -> Self {
        Playbooks {
            max_active: 12,
            judge: None,
            judge_off: None,
            reflector: None,
            governance: None,
            scorer: None,
            min_sample: 8,
            error_rate: 0.05,
        }
    }
}

/// A locked trait of operators.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct Lock {
    /// A description of the trait.
    #[schemars(regex(pattern = SOMETHING))]
    pub description: Option<String>,
    /// Words that stand for the trait.
    #[schemars(with = "Option<Vec<String>>")]
    pub words: Vec<String>,
    /// Phrases that indicate the trait.
    #[schemars(with = "Option<Vec<String>>")]
    pub phrases: Vec<String>,
    /// The slugs of the operators with this lock; the default is all.
    pub operators: Option<Vec<String>>,
}

/// A `fallback`: the executors that stand in when the service of another one fails, in the order in which they are asked.
pub type Fallback = Vec<Named>;

/// The choice of an executor.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct Defaults {
    /// The name of the executor.
    #[schemars(with = "Option<String>", regex(pattern = SOMETHING))]
    pub executor: Option<Named>,
}

/// The executors of a council.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct CouncilTable {
    /// The executor that says the tier of a text, for `tier_classifier.type` other than `rules`; the default is the
    /// adjudicator's.
    #[schemars(with = "Option<String>")]
    pub tiers: Option<Named>,
    /// By the member's id; the adjudicator's is `adjudicator`.
    #[schemars(with = "Option<BTreeMap<String, schema::CouncilMember>>")]
    pub members: BTreeMap<String, MemberSettings>,
}

/// One `[assemblies.<name>]` or `[runtimes.<id>]` table: the executors of an assembly's members, or of a runtime's participants.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct MemberTable {
    /// For all of them.
    #[serde(rename = "$common")]
    pub common: MemberSettings,
    /// By the id of a member or participant.
    #[serde(rename = "members", alias = "participants")]
    pub own: BTreeMap<String, MemberSettings>,
}

/// The settings of one member or participant, or of all, in quorate.toml or in the manifest.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct MemberSettings {
    /// `executor`.
    pub executor: Option<Named>,
    /// `model`, in place of the executor's own; only a council's members have it.
    pub model: Option<Named>,
    /// `runtime`, in place of `executor` and `model`; only in council.yaml.
    #[serde(skip)]
    pub runtime: Option<ExecutorTable>,
    /// `fallback`, in place of the executor's own.
    pub fallback: Option<Fallback>,
    /// `samples`, which participants do not have: they answer in free text, which has no typed fields to compare.
    pub samples: Option<u32>,
    /// The place of the settings.
    #[serde(rename = "$place")]
    pub place: Place,
    /// The text of its file, which diagnostics quote.
    #[serde(skip)]
    pub source: Arc<str>,
}

impl MemberTable {
    /// A setting of one member or participant; `None` leaves it to the executor's table or to the manifest.
    pub fn of<T>(&self, id: &str, setting: impl Fn(&MemberSettings) -> Option<&T>) -> Option<&T> {
        self.own.get(id).and_then(&setting).or_else(|| setting(&self.common))
    }
}

/// An executor. Other keys are passed to the adapter.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[schemars(rename = "Executor")]
pub struct ExecutorTable {
    /// The kind of adapter.
    #[schemars(with = "Option<String>", regex(pattern = SOMETHING))]
    pub kind: Option<Named>,
    /// The deadline of a member for all attempts together, for example `120s`.
    #[serde(default, deserialize_with = "duration::optional")]
    #[schemars(with = "Option<String>", extend("examples" = ["120s"]))]
    pub timeout: Option<Duration>,
    /// The number of retries after a failure.
    #[schemars(range(min = 0, max = 100))]
    pub retries: Option<u32>,
    /// Executors that stand in for it when its service fails, in the order in which they are asked.
    #[schemars(with = "Option<Vec<String>>", extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = SOMETHING)))]
    pub fallback: Option<Fallback>,
    #[serde(rename = "$block")]
    #[schemars(flatten, with = "Map<String, Value>")]
    pub block: Block,
}

/// A model that turns texts into vectors. Other keys are passed to the adapter.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[schemars(rename = "Embedder")]
pub struct EmbedderTable {
    /// How long one comparison may take, with all its attempts; the default is `60s`.
    #[serde(default, deserialize_with = "duration::optional")]
    #[schemars(with = "Option<String>", extend("examples" = ["60s"]))]
    pub timeout: Option<Duration>,
    #[serde(rename = "$block")]
    #[schemars(flatten, with = "Map<String, Value>")]
    pub block: Block,
}

/// The question whether a text says what a locked trait says.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct MeaningTable {
    /// The name of the executor.
    #[schemars(with = "String", regex(pattern = SOMETHING))]
    pub executor: Named,
    /// The lowest probability at which a text is a hit; the default is the executor's. A model that gives no probability
    /// answers yes or no.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub threshold: Option<f64>,
}

/// An adapter's own keys, verbatim, with their places for the adapter's diagnostics.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Block {
    pub json: Map<String, Value>,
    /// The place of the whole block.
    pub place: Place,
    /// The place of each key.
    pub keys: BTreeMap<String, Place>,
    /// The file's text, which diagnostics quote.
    #[serde(skip)]
    pub source: Arc<str>,
}

impl Block {
    /// The place of a key, or of the whole block.
    pub fn place_of(&self, key: Option<&str>) -> Place {
        key.and_then(|key| self.keys.get(key)).unwrap_or(&self.place).clone()
    }

    /// A diagnostic body at a key, or at the whole block.
    pub fn body(&self, key: Option<&str>, message: impl Into<String>) -> Body {
        Body::new(message).at(self.place_of(key))
    }
}

/// The limits of one run.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct Budget {
    /// Calls of executors, including re-prompts and retries.
    #[schemars(range(min = 1))]
    pub calls: Option<u32>,
    /// Tokens of prompts and answers.
    #[schemars(range(min = 1))]
    pub tokens: Option<u64>,
    /// Money in US dollars, for example `5 USD`.
    #[serde(deserialize_with = "load::cap")]
    #[schemars(with = "Option<String>", regex(pattern = r"^[0-9]+(\.[0-9]{1,9})? USD$"), extend("examples" = ["5 USD", "0.50 USD"]))]
    pub money: Option<Money>,
    /// A file of prices, relative to this file; its prices come before those that ship.
    #[schemars(with = "Option<String>", regex(pattern = SOMETHING), extend("examples" = ["prices.toml"]))]
    pub prices: Option<Named>,
    /// Wall-clock time, for example `10m`.
    #[serde(deserialize_with = "duration::optional")]
    #[schemars(with = "Option<String>", extend("examples" = ["10m"]))]
    pub wall: Option<Duration>,
}
