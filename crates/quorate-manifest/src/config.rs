//! `quorate.toml`: the configuration of a workspace. This file owns the resolved form; `config/load.rs` reads the file.
//!
//! A [`Place`] beside a value is the value's place in the file.

pub(crate) mod load;
pub(crate) mod schema;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, Place};
use serde_json::{Map, Value};

use crate::assembly::Signing;
use crate::money::Money;
use crate::tree::Field;

pub(crate) use load::parse_secret_pattern;
pub use load::{MAX_SAMPLES, MAX_STAND_INS, load};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Configuration {
    /// The directory of `quorate.toml`; the root of the workspace.
    pub dir: PathBuf,
    /// `strict_chain`: refuse a broken `extends` chain (M5).
    pub strict_chain: bool,
    /// `ledger` or `[ledger]`.
    pub ledger: Ledger,
    /// `[defaults] executor`.
    pub default_executor: Option<(String, Place)>,
    /// `[executors.*]` by name.
    pub executors: BTreeMap<String, ExecutorTable>,
    /// `early_decision`: end a vote as soon as the missing votes cannot change the result (V7).
    pub early_decision: bool,
    /// `[council.members.*]` by the member's id.
    pub council_members: BTreeMap<String, MemberSettings>,
    /// `[council] tiers`: the executor that says the tier of a text; by default the adjudicator's.
    pub tiers: Option<(String, Place)>,
    /// `[assemblies.*]` by name.
    pub assemblies: BTreeMap<String, MemberTable>,
    /// `[mcp.*]`: MCP servers by id, verbatim for the client.
    pub servers: BTreeMap<String, Block>,
    /// `[runtimes.*]` by the manifest's id.
    pub runtimes: BTreeMap<String, MemberTable>,
    /// `[embedder]`: what compares texts by meaning for locked traits.
    pub embedder: Option<Box<EmbedderTable>>,
    /// `[meaning]`: the executor that is asked whether a text says what a locked trait says.
    pub meaning: Option<MeaningTable>,
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
    /// `governance`: the path, as written, of the governance file for assemblies that bind none.
    pub governance: Option<(String, Place)>,
}

impl Configuration {
    pub fn path(&self) -> PathBuf {
        self.dir.join("quorate.toml")
    }

    /// All executors that stand in for others.
    pub fn stand_ins(&self) -> impl Iterator<Item = &(String, Place)> {
        let of_executors = self.executors.values().flat_map(|table| &table.fallback);
        let of_members = self.council_members.values().flat_map(|member| &member.fallback);
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
        let council = self.council_members.values().filter_map(|member| member.executor.as_ref());
        let single = [&self.default_executor, &self.playbooks.judge, &self.playbooks.reflector, &self.tiers];
        let single = single.into_iter().flatten().chain(self.meaning.as_ref().map(|table| &table.executor));
        let all = single.chain(council).chain(tables).chain(self.stand_ins());
        all.map(|(name, place)| (name, place))
    }
}

/// Location, witness and retention of the ledger.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ledger {
    /// `path`: a path relative to `quorate.toml`, or a Postgres URL, as written; the default is `.quorate/ledger.db`.
    pub path: Option<String>,
    /// `witness`: the file that each checkpoint is appended to, or the URL of a witness that signs each, as written.
    pub witness: Option<(String, Place)>,
    /// `witness_key`: the verifier key line of a witness with a URL.
    pub witness_key: Option<(String, Place)>,
    /// `retention`: days for which answers of reviews and runtimes are kept; `None` is forever.
    pub retention_days: Option<u32>,
}

/// The key that signs records, and the accepted keys.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Keys {
    /// `signing`: the source of the key that signs records.
    pub signing: Option<(KeySource, Place)>,
    /// `keyring`: the path of the keyring, as written.
    pub keyring: Option<(String, Place)>,
    /// `sign`: whether records of reviews and runtimes are signed.
    pub sign: Signing,
}

/// The source of a secret key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A file, relative to `quorate.toml`.
    File(String),
    /// A variable of the environment.
    Env(String),
    /// The output of a program with arguments, run without a shell.
    Command(Vec<String>),
}

/// Which texts are secrets, to be redacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redaction {
    /// `builtin`: texts with the form of well-known secrets.
    pub builtin: bool,
    /// `environment`: values of environment variables whose names suggest a secret.
    pub environment: bool,
    /// `patterns`: additional regular expressions.
    pub patterns: Vec<String>,
}

impl Default for Redaction {
    fn default() -> Self {
        Redaction { builtin: true, environment: true, patterns: Vec::new() }
    }
}

/// How playbooks are proposed and promoted.
#[derive(Debug, Clone, PartialEq)]
pub struct Playbooks {
    /// `max_active`: the maximum number of active playbooks for one operator.
    pub max_active: usize,
    /// `judge`: the executor that checks each proposal against the locked traits; by default the default executor, if a model
    /// is behind it.
    pub judge: Option<(String, Place)>,
    /// `judge = "off"`: where proposals are exempted from the judge.
    pub judge_off: Option<Place>,
    /// `reflector`: the executor that reads runs and proposes deltas.
    pub reflector: Option<(String, Place)>,
    /// `governance`: the voting assembly that decides on promotions.
    pub governance: Option<(String, Place)>,
    /// `scorer`: the command that compares two prompts.
    pub scorer: Option<(Vec<String>, Place)>,
    /// `min_sample`: the outcomes that a gate needs on each side.
    pub min_sample: u32,
    /// `error_rate`: the rate at which a gate may promote a playbook that does not improve the outcomes.
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lock {
    pub description: Option<String>,
    /// Words that stand for the trait.
    pub words: Vec<String>,
    /// Phrases that indicate the trait.
    pub phrases: Vec<String>,
    /// The slugs of the operators with this lock; `None` for all.
    pub operators: Option<Vec<String>>,
}

/// A `fallback`: the executors that stand in when the service of another one fails, in the order in which they are asked.
pub type Fallback = Vec<(String, Place)>;

/// One `[assemblies.<name>]` or `[runtimes.<id>]` table: the executors of an assembly's members, or of a runtime's participants.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MemberTable {
    /// For all of them.
    pub common: MemberSettings,
    /// By the id of a member or participant.
    pub own: BTreeMap<String, MemberSettings>,
}

/// The settings of one member or participant, or of all, in quorate.toml or in the manifest.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MemberSettings {
    /// `executor`.
    pub executor: Option<(String, Place)>,
    /// `model`, in place of the executor's own; only a council's members have it.
    pub model: Option<(String, Place)>,
    /// `runtime`, in place of `executor` and `model`; only in council.yaml.
    pub runtime: Option<ExecutorTable>,
    /// `fallback`, in place of the executor's own.
    pub fallback: Option<Fallback>,
    /// `samples`, which participants do not have.
    pub samples: Option<u32>,
    /// The place of the settings of a council's member.
    pub place: Place,
    /// The text of its file, which diagnostics quote.
    pub source: Arc<str>,
}

impl MemberTable {
    /// A setting of one member or participant; `None` leaves it to the executor's table or to the manifest.
    pub fn of<T>(&self, id: &str, setting: impl Fn(&MemberSettings) -> Option<&T>) -> Option<&T> {
        self.own.get(id).and_then(&setting).or_else(|| setting(&self.common))
    }
}

/// One `[executors.<name>]` table.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutorTable {
    /// `kind`, which selects the adapter. `None` if a `preset` or a `command` in the block implies it.
    pub kind: Option<(String, Place)>,
    /// `timeout`; one deadline for all attempts.
    pub timeout: Option<Duration>,
    /// `retries` after failures, not after timeouts.
    pub retries: Option<u32>,
    /// `fallback`; a member's own list replaces it.
    pub fallback: Option<Fallback>,
    /// All other keys, for the adapter.
    pub block: Block,
}

/// The `[embedder]` table.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbedderTable {
    /// `timeout`: how long one comparison may take, with all its attempts.
    pub timeout: Option<Duration>,
    /// All other keys, for the adapter.
    pub block: Block,
}

/// The `[meaning]` table.
#[derive(Debug, Clone, PartialEq)]
pub struct MeaningTable {
    /// `executor`.
    pub executor: (String, Place),
    /// `threshold`: the lowest probability at which a text is a hit, where the executor's own does not decide.
    pub threshold: Option<f64>,
}

/// An adapter's own keys, verbatim, with their places for the adapter's diagnostics.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    pub json: Map<String, Value>,
    /// The place of the whole block.
    pub place: Place,
    /// The place of each key.
    pub keys: BTreeMap<String, Place>,
    /// The file's text, which diagnostics quote.
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
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Budget {
    /// Calls of executors, including re-prompts and retries.
    pub calls: Option<u32>,
    /// Tokens of prompts and answers.
    pub tokens: Option<u64>,
    /// The price of all calls.
    pub money: Option<Money>,
    /// A file of prices that comes before the table that ships, as written.
    pub prices: Option<(String, Place)>,
    /// Wall-clock time.
    pub wall: Option<Duration>,
}

/// A limit on money, for messages.
const MONEY_FORM: &str =
    "write an amount in US dollars, in which models are priced: \"5 USD\" or \"0.50 USD\"";

/// Reads `[budget]`.
fn parse_budget(field: &Field<'_>) -> Option<Budget> {
    let mut fields = field.fields()?;
    let count = |field: &Field<'_>| field.integer(1, i64::MAX);
    let budget = Budget {
        calls: fields.read("calls", count).map(|calls| u32::try_from(calls).unwrap_or(u32::MAX)),
        tokens: fields.read("tokens", count).and_then(|tokens| u64::try_from(tokens).ok()),
        money: fields.read("money", |field| {
            let refused = |why| field.reject(format!("`{}`: {why}", field.path()), MONEY_FORM);
            Money::parse_cap(field.non_blank_text()?).map_or_else(refused, Some)
        }),
        prices: fields.read("prices", Field::named),
        wall: fields.read("wall", Field::duration),
    };
    fields.finish();
    Some(budget)
}
