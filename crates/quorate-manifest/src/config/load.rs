//! Loads `quorate.toml`, one function for each table. Keys of an executor that are not common to all executors are passed to
//! the adapter verbatim.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, codes};
use regex::RegexBuilder;
use serde_json::Map;

use super::{
    Block, Configuration, EmbedderTable, ExecutorTable, Fallback, KeySource, Keys, Ledger, Lock,
    MeaningTable, MemberSettings, MemberTable, Playbooks, Redaction,
};
use crate::assembly::Signing;
use crate::tree::reader::contains_secret_key;
use crate::tree::{Field, Fields, Format, Kind, ParsedFile, open};
use crate::{Loaded, Source};

type NamedExecutor = (String, Place);

/// Loads a configuration. `shown` is the path as messages show it.
pub fn load(path: &Path, shown: &str, source: &dyn Source) -> Loaded<Configuration> {
    open::load(source, (path, shown), Format::Toml, codes::HOST_INVALID, |opened| read(opened, path))
}

fn read(opened: &ParsedFile, path: &Path) -> Option<Configuration> {
    let mut fields = opened.fields()?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let embedder = fields.read("embedder", embedder);
    let (council_members, tiers) = fields.read("council", council).unwrap_or_default();
    let configuration = Configuration {
        dir: dir.map_or_else(|| PathBuf::from("."), Path::to_path_buf),
        strict_chain: fields.read("strict_chain", Field::boolean).unwrap_or_default(),
        ledger: fields.optional("ledger").map(|field| parse_ledger(&field)).unwrap_or_default(),
        default_executor: fields.read("defaults", executor_name),
        early_decision: fields.read("early_decision", Field::boolean).unwrap_or_default(),
        council_members,
        tiers,
        assemblies: fields
            .read("assemblies", |field| field.table(|_, field| member_table(field, MEMBERS)))
            .unwrap_or_default(),
        executors: fields.read("executors", |field| field.table(named_executor)).unwrap_or_default(),
        // The keys of MCP servers are for the MCP client.
        servers: fields
            .read("mcp", |field| field.table(|_, field| Some(rest_block(field, &field.fields()?))))
            .unwrap_or_default(),
        runtimes: fields
            .read("runtimes", |field| field.table(|_, field| member_table(field, "participants")))
            .unwrap_or_default(),
        meaning: fields.read("meaning", |field| meaning(field, embedder.is_some())),
        embedder,
        budget: fields.read("budget", super::parse_budget).unwrap_or_default(),
        playbooks: fields.read("playbooks", parse_playbooks).unwrap_or_default(),
        locks: fields.read("locks", |field| field.table(parse_lock)).unwrap_or_default(),
        keys: fields.read("keys", parse_keys).unwrap_or_default(),
        governance: fields.read("governance", Field::named),
        redact: fields.read("redact", parse_redaction).unwrap_or_default(),
    };
    fields.finish_with(misplaced);
    Some(configuration)
}

/// Reads `[council]`: the tables of its members, and the executor that says tiers.
fn council(field: &Field<'_>) -> Option<(BTreeMap<String, MemberSettings>, Option<NamedExecutor>)> {
    let mut fields = field.fields()?;
    let members = fields.read("members", |field| field.table(|_, field| council_member(field)));
    let tiers = fields.read("tiers", Field::named);
    fields.finish_with(misplaced);
    Some((members.unwrap_or_default(), tiers))
}

fn council_member(field: &Field<'_>) -> Option<MemberSettings> {
    let mut fields = field.fields()?;
    let member = member_settings(&mut fields);
    fields.finish();
    Some(MemberSettings { place: field.key_place(), ..member })
}

/// Reads the settings of a council's member.
pub(crate) fn member_settings(fields: &mut Fields<'_>) -> MemberSettings {
    MemberSettings {
        executor: fields.read("executor", Field::named),
        model: fields.read("model", Field::named),
        runtime: None,
        fallback: fields.read("fallback", parse_fallback),
        samples: fields.read("samples", parse_samples),
        place: Place::default(),
        source: Arc::clone(fields.source_file().text()),
    }
}

/// Reads the settings of all members or participants, and those of single ones in the table `each`.
fn member_table(field: &Field<'_>, each: &'static str) -> Option<MemberTable> {
    let settings = |fields: &mut Fields<'_>| MemberSettings {
        executor: fields.read("executor", Field::named),
        fallback: fields.read("fallback", parse_fallback),
        // Participants answer in free text, which has no typed fields to compare.
        samples: (each == MEMBERS).then(|| fields.read("samples", parse_samples)).flatten(),
        ..MemberSettings::default()
    };
    let mut fields = field.fields()?;
    let common = settings(&mut fields);
    let own = fields.read(each, |field| {
        field.table(|_, field| {
            let mut fields = field.fields()?;
            let own = settings(&mut fields);
            fields.finish();
            Some(own)
        })
    });
    fields.finish();
    Some(MemberTable { common, own: own.unwrap_or_default() })
}

/// The key of the tables of single members.
const MEMBERS: &str = "members";

/// The most samples of one answer.
pub const MAX_SAMPLES: u32 = 9;

/// Reads `samples`.
pub(crate) fn parse_samples(field: &Field<'_>) -> Option<u32> {
    u32::try_from(field.integer(1, i64::from(MAX_SAMPLES))?).ok()
}

/// The most stand-ins of one executor or member.
pub const MAX_STAND_INS: usize = 8;

/// Reads `fallback`.
pub(crate) fn parse_fallback(field: &Field<'_>) -> Option<Fallback> {
    let items = field.list()?;
    if items.len() > MAX_STAND_INS {
        let message = format!("`{}` has {} entries", field.path(), items.len());
        return field.reject(message, format!("name at most {MAX_STAND_INS} executors"));
    }
    let named: Fallback = items.iter().map(Field::named).collect::<Option<_>>()?;
    let is_repeated = |at: &usize| named[..*at].iter().any(|(name, _)| *name == named[*at].0);
    match (0..named.len()).find(is_repeated) {
        Some(at) => {
            items[at].reject(format!("`{}` names `{}` twice", field.path(), named[at].0), "remove one")
        }
        None => Some(named),
    }
}

/// Reads a table with the only key `executor`.
fn executor_name(field: &Field<'_>) -> Option<NamedExecutor> {
    let mut fields = field.fields()?;
    let executor = fields.read("executor", Field::named);
    fields.finish_with(misplaced);
    executor
}

/// What to write for a key that names a service or a model in a place without it.
fn misplaced(key: &str) -> Option<(String, String)> {
    let help = "write `executor = \"SERVICE:MODEL\"` in `[defaults]`, such as `openai:gpt-5.5`";
    let is_one = matches!(key, "executor" | "model" | "preset" | "provider");
    is_one.then(|| (format!("`{key}` is not a key here"), help.to_owned()))
}

fn named_executor(name: &str, field: &Field<'_>) -> Option<ExecutorTable> {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if !plain || name.is_empty() {
        let message = format!("`{name}` cannot be the name of an executor");
        return field.reject(message, "use the characters A-Z a-z 0-9 _ - .");
    }
    let table = parse_executor(field)?;
    match table.fallback.iter().flatten().any(|(other, _)| other == name) {
        true => field.reject(format!("`{name}` cannot stand in for itself"), "name another executor"),
        false => Some(table),
    }
}

fn embedder(field: &Field<'_>) -> Option<Box<EmbedderTable>> {
    let mut fields = field.fields()?;
    let timeout = fields.read("timeout", Field::duration);
    Some(Box::new(EmbedderTable { timeout, block: rest_block(field, &fields) }))
}

/// Keys of an executor's table that a person may expect in `[meaning]`.
const EXECUTOR_KEYS: [&str; 8] =
    ["model", "preset", "wire", "base_url", "key", "timeout", "retries", "fallback"];

/// Reads `[meaning]`, which excludes `[embedder]`: a text is compared in one way.
fn meaning(field: &Field<'_>, has_embedder: bool) -> Option<MeaningTable> {
    let mut fields = field.fields()?;
    let named = fields.required("executor", "the executor that is asked").and_then(|field| field.named());
    let threshold = fields.read("threshold", |field| match field.number()? {
        threshold if threshold > 0.0 && threshold <= 1.0 => Some(threshold),
        other => {
            let message = format!("`{}` must be above 0 and at most 1, not {other}", field.path());
            field.reject(message, "write the lowest probability at which a text is a hit, such as 0.5")
        }
    });
    fields.finish_with(|key| {
        let is_of_executor = EXECUTOR_KEYS.contains(&key);
        let help = "write it in the table `[executors.<name>]` that `executor` names";
        is_of_executor.then(|| (format!("`{key}` is not a key of `[meaning]`"), help.to_owned()))
    });
    if has_embedder {
        let help = "keep `[meaning]`, which asks a question, or `[embedder]`, which compares vectors";
        field.invalid_with("`[meaning]` and `[embedder]` exclude each other", help);
    }
    Some(MeaningTable { executor: named?, threshold })
}

const MAX_RETRIES: i64 = 100;

/// The keys that select the adapter or its program; one of them is required.
const TARGET_KEYS: [&str; 4] = ["kind", "preset", "cli", "command"];

/// The keys with which other tools name a service.
const SERVICE_KEYS: [&str; 3] = ["provider", "service", "vendor"];

/// What to write in a table without any of [`TARGET_KEYS`]. The user's own service is named: a draft must not go to another
/// one.
fn add_target(block: &Block) -> String {
    let named = SERVICE_KEYS.iter().find_map(|key| block.json.get(*key)?.as_str());
    let is_word =
        |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let service = named.filter(|name| !name.is_empty() && name.len() <= 16).filter(is_word).unwrap_or("NAME");
    format!(
        "write `preset = \"{service}\"` for a service, `kind = \"llm\"` with `base_url` and `model`, or `command` for a \
         program"
    )
}

fn parse_executor(field: &Field<'_>) -> Option<ExecutorTable> {
    let mut fields = field.fields()?;
    let written = fields.optional("kind");
    let timeout = fields.read("timeout", Field::duration);
    let retries = parse_retries(&mut fields);
    let fallback = fields.read("fallback", parse_fallback);
    let block = rest_block(field, &fields);
    if written.is_none() && !TARGET_KEYS.iter().any(|key| block.json.contains_key(*key)) {
        let message = format!("`{}` has no `kind`", field.path());
        field.invalid_with(message, add_target(&block));
    }
    let kind = match written {
        Some(field) => Some(field.named()?),
        None => None,
    };
    Some(ExecutorTable { kind, timeout, retries, fallback, block })
}

/// Reads `retries`.
pub(crate) fn parse_retries(fields: &mut Fields<'_>) -> Option<u32> {
    let retries = fields.optional("retries")?.integer(0, MAX_RETRIES)?;
    u32::try_from(retries).ok()
}

/// The keys that the caller has not read, verbatim, each with its place.
pub(crate) fn rest_block(field: &Field<'_>, fields: &Fields<'_>) -> Block {
    let mut json = Map::new();
    let mut keys = BTreeMap::new();
    for (key, value) in fields.rest() {
        json.insert(key.to_owned(), value.json());
        keys.insert(key.to_owned(), value.key_place());
    }
    Block { json, place: field.key_place(), keys, source: Arc::clone(fields.source_file().text()) }
}

const KEY_HELP: &str = "write the source of the key: {file = \"path\"}, {env = \"VARIABLE\"} or {command = [\"program\", \"argument\"]}";

/// Reads `[keys]`.
fn parse_keys(field: &Field<'_>) -> Option<Keys> {
    let mut fields = field.fields()?;
    let signing = fields.read("signing", |field| Some((parse_key_source(field)?, field.place())));
    let keyring = fields.read("keyring", Field::named);
    let sign = fields.read("sign", |field| {
        let word = field.non_blank_text()?;
        let message = || format!("`{}` is `{word}`; it has to be required, optional or none", field.path());
        let help = "`sign` is for reviews and runtimes; assemblies have `audit.signing`";
        Signing::parse(word).or_else(|| field.reject(message(), help))
    });
    fields.finish();
    Some(Keys { signing, keyring, sign: sign.unwrap_or_default() })
}

fn parse_key_source(field: &Field<'_>) -> Option<KeySource> {
    if let Kind::Str(_) = field.kind() {
        // The text may be the key itself: do not quote it.
        return field.reject(format!("`{}` has to be a table, not text", field.path()), KEY_HELP);
    }
    let mut fields = field.fields()?;
    let file = fields.read("file", public_text);
    let env = fields.read("env", |field| {
        let name = public_text(field)?;
        if name.starts_with("QUORATE_") && !name.ends_with("_KEY") {
            let message = format!("executors pass the variable `{name}` to members, but it has a secret");
            field.invalid_with(
                message,
                "use the variable QUORATE_SIGNING_KEY, or a name without the prefix QUORATE_",
            );
        }
        Some(name)
    });
    let command = fields.read("command", |field| {
        let words: Vec<String> = field.list()?.iter().map(public_text).collect::<Option<_>>()?;
        match words.is_empty() {
            true => field.reject("`command` names no command", KEY_HELP),
            false => Some(words),
        }
    });
    fields.finish();
    match (file, env, command) {
        (Some(file), None, None) => Some(KeySource::File(file)),
        (None, Some(env), None) => Some(KeySource::Env(env)),
        (None, None, Some(command)) => Some(KeySource::Command(command)),
        _ => field.reject(format!("`{}` needs one of `file`, `env` and `command`", field.path()), KEY_HELP),
    }
}

fn public_text(field: &Field<'_>) -> Option<String> {
    let text = field.non_blank_text()?;
    if contains_secret_key(text) {
        let message = format!("`{}` is a secret key; it does not belong here", field.path());
        return field.reject(message, KEY_HELP);
    }
    Some(text.to_owned())
}

/// Reads `ledger`.
fn parse_ledger(field: &Field<'_>) -> Ledger {
    if !matches!(field.kind(), Kind::Map(_)) {
        return Ledger { path: parse_ledger_path(field), ..Ledger::default() };
    }
    let Some(mut fields) = field.fields() else { return Ledger::default() };
    let ledger = Ledger {
        path: fields.read("path", parse_ledger_path),
        witness: fields.read("witness", Field::named),
        witness_key: fields.read("witness_key", Field::named),
        retention_days: fields.read("retention", parse_retention),
    };
    fields.finish();
    ledger
}

fn parse_ledger_path(field: &Field<'_>) -> Option<String> {
    let written = field.non_blank_text()?;
    if written.contains("://")
        && !["postgres://", "postgresql://"].iter().any(|scheme| written.starts_with(scheme))
    {
        let help = "write a path relative to this file, or `postgres://user@host/database`";
        return field.reject("a ledger is a file or a Postgres database", help);
    }
    Some(written.to_owned())
}

fn parse_retention(field: &Field<'_>) -> Option<u32> {
    let written = field.non_blank_text()?;
    if written == "forever" {
        return None;
    }
    let days =
        written.strip_prefix("days:").filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
    let days = days.and_then(|digits| digits.parse().ok()).filter(|days| *days > 0);
    let message =
        || format!("`{}` is `{written}`; it has to be forever or days:<n>, at least one", field.path());
    days.or_else(|| field.reject(message(), "write it like `days:90`"))
}

/// The bounds of `max_active`.
const ACTIVE_BOUNDS: (i64, i64) = (1, 1_000);
/// The bounds of `error_rate`.
const ERROR_RATE_BOUNDS: std::ops::RangeInclusive<f64> = 0.000_1..=0.2;

/// The value of `judge` that turns the judge off.
const JUDGE_OFF: &str = "off";

/// Reads `[playbooks]`.
fn parse_playbooks(field: &Field<'_>) -> Option<Playbooks> {
    let mut fields = field.fields()?;
    let (judge, judge_off) = match fields.read("judge", Field::named) {
        Some((name, place)) if name == JUDGE_OFF => (None, Some(place)),
        judge => (judge, None),
    };
    let scorer = |field: &Field<'_>| match field.texts()? {
        words if words.is_empty() => {
            field.reject("`scorer` names no command", "write it like [\"python3\", \"score.py\"]")
        }
        words => Some((words, field.place())),
    };
    let error_rate = |field: &Field<'_>| match field.number()? {
        rate if ERROR_RATE_BOUNDS.contains(&rate) => Some(rate),
        _ => field.reject("`error_rate` is out of bounds", "write it like 0.05; from 0.0001 to 0.2"),
    };
    let default = Playbooks::default();
    let playbooks = Playbooks {
        judge,
        judge_off,
        reflector: fields.read("reflector", Field::named),
        governance: fields.read("governance", Field::named),
        max_active: fields
            .read("max_active", |field| field.integer(ACTIVE_BOUNDS.0, ACTIVE_BOUNDS.1))
            .and_then(|number| usize::try_from(number).ok())
            .unwrap_or(default.max_active),
        scorer: fields.read("scorer", scorer),
        min_sample: fields
            .read("min_sample", |field| field.integer(2, 100_000))
            .and_then(|number| u32::try_from(number).ok())
            .unwrap_or(default.min_sample),
        error_rate: fields.read("error_rate", error_rate).unwrap_or(default.error_rate),
    };
    fields.finish();
    Some(playbooks)
}

/// Reads `[locks.<id>]`.
fn parse_lock(id: &str, field: &Field<'_>) -> Option<Lock> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let valid_start = (2..=64).contains(&id.len()) && id.starts_with(|c: char| c.is_ascii_lowercase());
    if !valid_start || !id.chars().all(plain) {
        let help = "use 2 to 64 lower-case letters, digits and dashes, beginning with a letter";
        return field.reject(format!("`{id}` cannot be the id of a locked trait"), help);
    }
    let mut fields = field.fields()?;
    let lock = Lock {
        description: fields.read("description", |field| field.non_blank_text().map(str::to_owned)),
        words: fields.read("words", Field::texts).unwrap_or_default(),
        phrases: fields.read("phrases", Field::texts).unwrap_or_default(),
        operators: fields.read("operators", Field::texts),
    };
    fields.finish();
    Some(lock)
}

/// Reads `[redact]`.
fn parse_redaction(field: &Field<'_>) -> Option<Redaction> {
    let mut fields = field.fields()?;
    let redaction = Redaction {
        builtin: fields.read("builtin", Field::boolean).unwrap_or(true),
        environment: fields.read("environment", Field::boolean).unwrap_or(true),
        patterns: fields
            .read("patterns", Field::list)
            .map(|patterns| patterns.iter().filter_map(parse_secret_pattern).collect())
            .unwrap_or_default(),
    };
    fields.finish();
    Some(redaction)
}

/// The largest compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Reads a regular expression that matches secrets.
pub(crate) fn parse_secret_pattern(field: &Field<'_>) -> Option<String> {
    let pattern = field.text()?;
    let refuse = |body: Body| {
        field.refuse(codes::PATTERN_INVALID, body);
        None
    };
    match RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build() {
        Ok(regex) if regex.is_match("") => {
            let body = Body::new("this pattern matches the empty text, and so matches everywhere");
            refuse(body.help("let it match at least one character"))
        }
        Ok(_) => Some(pattern.to_owned()),
        Err(regex::Error::CompiledTooBig(_)) => {
            refuse(Body::new("this pattern is too large").help("shorten its repetitions"))
        }
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let body = Body::new(format!("this is not a regular expression: {reason}"));
            refuse(body.help("look-around and back-references are not supported"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::money::Money;
    use crate::workspace::SourceError;

    struct Text(&'static str);

    impl Source for Text {
        fn read(&self, _: &Path) -> Result<Vec<u8>, SourceError> {
            Ok(self.0.as_bytes().to_vec())
        }
    }

    #[test]
    fn every_key_arrives() {
        let text = "\
ledger = \"x.db\"
defaults.executor = \"claude\"
[executors.claude]
preset = \"claude\"
timeout = \"2m\"
retries = 1
env = [\"KEY\"]
[executors.script]
kind = \"script\"
[budget]
calls = 40
tokens = 400000
money = \"1.5 USD\"
prices = \"prices.toml\"
wall = \"10m\"
";
        let host =
            load(Path::new("quorate.toml"), "quorate.toml", &Text(text)).value.expect("nothing was refused");
        assert_eq!((host.dir.as_path(), host.ledger.path.as_deref()), (Path::new("."), Some("x.db")));
        assert_eq!(
            host.default_executor.map(|(name, place)| (name, place.path)),
            Some(("claude".into(), "defaults.executor".into()))
        );
        let claude = &host.executors["claude"];
        assert_eq!(
            (&claude.kind, claude.timeout, claude.retries),
            (&None, Some(Duration::from_secs(120)), Some(1))
        );
        assert_eq!(
            serde_json::Value::from(claude.block.json.clone()),
            json!({"preset": "claude", "env": ["KEY"]})
        );
        assert_eq!(&text[claude.block.place_of(Some("env")).span], "env");
        let (kind, place) = host.executors["script"].kind.clone().expect("a kind");
        assert_eq!((kind.as_str(), &text[place.span]), ("script", "\"script\""));
        let budget = host.budget;
        assert_eq!(
            (budget.calls, budget.tokens, budget.money, budget.wall),
            (Some(40), Some(400_000), Some(Money::from_nanos(1_500_000_000)), Some(Duration::from_secs(600)))
        );
        assert_eq!(budget.prices.map(|(path, _)| path).as_deref(), Some("prices.toml"));
    }

    #[test]
    fn stand_ins_are_read_in_order_and_with_their_places() {
        let text = "\
[executors.a]
kind = \"script\"
fallback = [\"b\", \"ollama:qwen3\"]
[council.members.skeptic]
fallback = [\"c\"]
[assemblies.board]
fallback = [\"d\"]
members.ana.fallback = [\"e\"]
members.bo.executor = \"a\"
[runtimes.desk.participants.ann]
fallback = []
";
        let host =
            load(Path::new("quorate.toml"), "quorate.toml", &Text(text)).value.expect("nothing was refused");
        let names = |list: Option<&Fallback>| {
            list.map(|list| list.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>())
        };
        let of = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let board = &host.assemblies["board"];
        assert_eq!(names(host.executors["a"].fallback.as_ref()), of(&["b", "ollama:qwen3"]));
        assert_eq!(names(host.council_members["skeptic"].fallback.as_ref()), of(&["c"]));
        let fallback = |table: &MemberTable, id| names(table.of(id, |settings| settings.fallback.as_ref()));
        assert_eq!(fallback(board, "ana"), of(&["e"]));
        assert_eq!(fallback(board, "bo"), of(&["d"]));
        let named = board.own.iter().filter_map(|(id, own)| Some((&**id, own.executor.as_ref()?.0.as_str())));
        assert_eq!(named.collect::<Vec<_>>(), [("bo", "a")]);
        assert_eq!(fallback(&host.runtimes["desk"], "ann"), of(&[]));
        assert_eq!(fallback(&host.runtimes["desk"], "bob"), None);
        let places: Vec<&str> = host.stand_ins().map(|(_, place)| place.path.as_str()).collect();
        assert_eq!(places[..2], ["executors.a.fallback[0]", "executors.a.fallback[1]"]);
        assert_eq!(host.stand_ins().count(), 5);
    }

    #[test]
    fn an_empty_file_is_the_default() {
        let host = load(Path::new("a/quorate.toml"), "quorate.toml", &Text("")).value;
        assert_eq!(host, Some(Configuration { dir: PathBuf::from("a"), ..Configuration::default() }));
    }
}
