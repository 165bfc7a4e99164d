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
use crate::tree::Field;

pub use load::load;
pub(crate) use load::parse_secret_pattern;

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
    pub council_members: BTreeMap<String, CouncilMember>,
    /// `[assemblies.*]` by name.
    pub assemblies: BTreeMap<String, AssemblyTable>,
    /// `[mcp.*]`: MCP servers by id, verbatim for the client.
    pub servers: BTreeMap<String, Block>,
    /// `[runtimes.*]` by the manifest's id.
    pub runtimes: BTreeMap<String, RuntimeTable>,
    /// `[embedder]`: what compares texts by meaning for locked traits.
    pub embedder: Option<Box<EmbedderTable>>,
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

    /// The names of all executors that other tables choose.
    pub fn named_executors(&self) -> impl Iterator<Item = (&String, &Place)> {
        let assemblies =
            self.assemblies.values().flat_map(|table| table.executor.iter().chain(table.members.values()));
        let runtimes =
            self.runtimes.values().flat_map(|table| table.executor.iter().chain(table.participants.values()));
        let council = self.council_members.values().filter_map(|member| member.executor.as_ref());
        let single = [&self.default_executor, &self.playbooks.judge, &self.playbooks.reflector];
        let all = single.into_iter().flatten().chain(council).chain(assemblies).chain(runtimes);
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
#[derive(Debug, Clone, PartialEq)]
pub struct Keys {
    /// `signing`: the source of the key that signs records.
    pub signing: Option<(KeySource, Place)>,
    /// `keyring`: the path of the keyring, as written.
    pub keyring: Option<(String, Place)>,
    /// `sign`: whether records of reviews and runtimes are signed.
    pub sign: Signing,
}

impl Default for Keys {
    fn default() -> Self {
        Keys { signing: None, keyring: None, sign: Signing::None }
    }
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

/// One `[council.members.<id>]` table: what one member of a council is asked through.
#[derive(Debug, Clone, PartialEq)]
pub struct CouncilMember {
    /// The place of the table.
    pub place: Place,
    /// `executor`; without it the member has the council's.
    pub executor: Option<(String, Place)>,
    /// `model`, in place of the executor's own.
    pub model: Option<(String, Place)>,
    /// The file's text, which diagnostics quote.
    pub source: Arc<str>,
}

/// One `[assemblies.<name>]` table: the executors of an assembly's members.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AssemblyTable {
    /// `executor`: for all members.
    pub executor: Option<(String, Place)>,
    /// `[assemblies.<name>.members.<id>] executor`, by member id.
    pub members: BTreeMap<String, (String, Place)>,
}

/// One `[runtimes.<id>]` table: the executors of a runtime's participants.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuntimeTable {
    /// `executor`: for all participants.
    pub executor: Option<(String, Place)>,
    /// `[runtimes.<id>.participants.<id>] executor`, by participant id.
    pub participants: BTreeMap<String, (String, Place)>,
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
    /// Money, in billionths of a US dollar.
    pub usd_nanos: Option<u64>,
    /// A file of prices that comes before the table that ships, as written.
    pub prices: Option<(String, Place)>,
    /// Wall-clock time.
    pub wall: Option<Duration>,
}

/// A limit on money, for messages.
const MONEY_FORM: &str =
    "write an amount in US dollars, in which models are priced: \"5 USD\" or \"0.50 USD\"";

/// Reads `[budget]`.
fn parse_budget(field: &Field<'_>) -> Budget {
    let Some(mut fields) = field.fields() else { return Budget::default() };
    let mut count = |key| fields.optional(key).and_then(|field| field.integer(1, i64::MAX));
    let (calls, tokens) = (count("calls"), count("tokens"));
    let budget = Budget {
        calls: calls.map(|calls| u32::try_from(calls).unwrap_or(u32::MAX)),
        tokens: tokens.and_then(|tokens| u64::try_from(tokens).ok()),
        usd_nanos: fields.optional("money").and_then(|field| parse_money_field(&field)),
        prices: fields.optional("prices").and_then(|f| Some((f.non_blank_text()?.to_owned(), f.place()))),
        wall: fields.optional("wall").and_then(|field| field.duration()),
    };
    fields.finish();
    budget
}

fn parse_money_field(field: &Field<'_>) -> Option<u64> {
    let amount = parse_money(field.non_blank_text()?);
    if let Err(why) = &amount {
        field.invalid_with(format!("`{}`: {why}", field.path()), MONEY_FORM);
    }
    amount.ok()
}

/// Reads an amount such as `5 USD` as billionths of a US dollar.
///
/// # Errors
/// Says what is wrong with it: another currency, more than nine decimal places, nothing or less.
pub fn parse_money(text: &str) -> Result<u64, String> {
    const NANOS: u64 = 1_000_000_000;
    let refused = || format!("`{text}` is not an amount of money");
    let (amount, currency) = text.split_once(' ').ok_or_else(refused)?;
    if currency != "USD" {
        return Err(format!("`{currency}` is not USD, and Quorate converts no currencies"));
    }
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return Err(refused());
    }
    let read = |text: &str| text.parse::<u64>().map_err(|_| refused());
    let nanos = read(whole)?.checked_mul(NANOS).ok_or_else(refused)?;
    match nanos.checked_add(read(&format!("{fraction:0<9}"))?) {
        None => Err(refused()),
        Some(0) => Err("nothing could be asked with that".to_owned()),
        Some(nanos) => Ok(nanos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_an_exact_amount_of_dollars() {
        for (text, nanos) in [("5 USD", 5_000_000_000), ("0.50 USD", 500_000_000), ("0.000000001 USD", 1)] {
            assert_eq!(parse_money(text), Ok(nanos), "{text}");
        }
        for text in [
            "5",
            "5USD",
            "5 EUR",
            "$5",
            "-1 USD",
            "1e3 USD",
            ".5 USD",
            "5  USD",
            "1. USD",
            "0 USD",
            "0.0000000001 USD",
            "99999999999999 USD",
            "",
        ] {
            assert!(parse_money(text).is_err(), "{text}");
        }
        assert!(parse_money("5 EUR").unwrap_err().contains("converts no currencies"));
    }
}
