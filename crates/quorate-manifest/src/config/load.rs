//! Loads `quorate.toml`, one function for each table. Keys of an executor that are not common to all executors are passed to
//! the adapter verbatim.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, codes};
use regex::RegexBuilder;
use serde_json::Map;

use super::{
    AssemblyTable, Block, Configuration, CouncilMember, EmbedderTable, ExecutorTable, KeySource, Keys,
    Ledger, Lock, Playbooks, Redaction, RuntimeTable,
};
use crate::assembly::Signing;
use crate::tree::reader::contains_secret_key;
use crate::tree::{Field, Fields, Format, Kind, ParsedFile, open};
use crate::{Loaded, Source};

type NamedExecutor = (String, Place);

/// Loads a configuration. `shown` is the path as messages show it.
pub fn load(path: &Path, shown: &str, source: &dyn Source) -> Loaded<Configuration> {
    let opened = match open(source, path, shown, Format::Toml, codes::HOST_INVALID) {
        Ok(opened) => opened,
        Err(report) => return Loaded { value: None, report },
    };
    let configuration = read(&opened, path);
    let report = opened.source_file.into_report();
    debug_assert!(configuration.is_some() || report.has_refusals(), "no configuration and no refusal");
    Loaded { value: configuration.filter(|_| !report.has_refusals()), report }
}

fn read(opened: &ParsedFile, path: &Path) -> Option<Configuration> {
    let mut fields = opened.fields()?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let configuration = Configuration {
        dir: dir.map_or_else(|| PathBuf::from("."), Path::to_path_buf),
        strict_chain: fields.optional("strict_chain").and_then(|field| field.boolean()).unwrap_or_default(),
        ledger: fields.optional("ledger").map(|field| parse_ledger(&field)).unwrap_or_default(),
        default_executor: fields.optional("defaults").and_then(|field| executor_name(&field)),
        early_decision: fields
            .optional("early_decision")
            .and_then(|field| field.boolean())
            .unwrap_or_default(),
        council_members: fields.optional("council").map(|field| council_members(&field)).unwrap_or_default(),
        assemblies: fields.optional("assemblies").map(|field| assemblies(&field)).unwrap_or_default(),
        executors: fields.optional("executors").map(|field| executors(&field)).unwrap_or_default(),
        servers: fields.optional("mcp").map(|field| servers(&field)).unwrap_or_default(),
        runtimes: fields.optional("runtimes").map(|field| runtimes(&field)).unwrap_or_default(),
        embedder: fields.optional("embedder").and_then(|field| embedder(&field)),
        budget: fields.optional("budget").map(|field| super::parse_budget(&field)).unwrap_or_default(),
        playbooks: fields.optional("playbooks").map(|field| parse_playbooks(&field)).unwrap_or_default(),
        locks: fields.optional("locks").map(|field| locks(&field)).unwrap_or_default(),
        keys: fields.optional("keys").map(|field| parse_keys(&field)).unwrap_or_default(),
        governance: fields
            .optional("governance")
            .and_then(|field| Some((field.non_blank_text()?.to_owned(), field.place()))),
        redact: fields.optional("redact").map(|field| parse_redaction(&field)).unwrap_or_default(),
    };
    fields.finish();
    Some(configuration)
}

/// Reads `[council]`, which has the key `members` alone.
fn council_members(field: &Field<'_>) -> BTreeMap<String, CouncilMember> {
    let Some(mut fields) = field.fields() else { return BTreeMap::new() };
    let members = fields.optional("members").and_then(|field| field.entries()).unwrap_or_default();
    let members =
        members.into_iter().filter_map(|(id, field)| Some((id.to_owned(), council_member(&field)?)));
    let members = members.collect();
    fields.finish();
    members
}

fn council_member(field: &Field<'_>) -> Option<CouncilMember> {
    let mut fields = field.fields()?;
    let mut text = |key| {
        let field = fields.optional(key)?;
        Some((field.non_blank_text()?.to_owned(), field.place()))
    };
    let (executor, model) = (text("executor"), text("model"));
    let source = Arc::clone(fields.source_file().text());
    fields.finish();
    Some(CouncilMember { place: field.key_place(), executor, model, source })
}

fn assemblies(field: &Field<'_>) -> BTreeMap<String, AssemblyTable> {
    let tables = field.entries().unwrap_or_default();
    tables.into_iter().filter_map(|(name, field)| Some((name.to_owned(), assembly(&field)?))).collect()
}

fn assembly(field: &Field<'_>) -> Option<AssemblyTable> {
    let (executor, members) = executor_assignments(field, "members")?;
    Some(AssemblyTable { executor, members })
}

/// Reads MCP servers; their keys are for the MCP client.
fn servers(field: &Field<'_>) -> BTreeMap<String, Block> {
    let tables = field.entries().unwrap_or_default();
    let read = |(id, field): (&str, Field<'_>)| {
        let fields = field.fields()?;
        Some((id.to_owned(), rest_block(&field, &fields)))
    };
    tables.into_iter().filter_map(read).collect()
}

fn locks(field: &Field<'_>) -> BTreeMap<String, Lock> {
    let tables = field.entries().unwrap_or_default();
    let read = |(id, field): (&str, Field<'_>)| Some((id.to_owned(), parse_lock(id, &field)?));
    tables.into_iter().filter_map(read).collect()
}

fn runtimes(field: &Field<'_>) -> BTreeMap<String, RuntimeTable> {
    let tables = field.entries().unwrap_or_default();
    let read = |(id, field): (&str, Field<'_>)| {
        let (executor, participants) = executor_assignments(&field, "participants")?;
        Some((id.to_owned(), RuntimeTable { executor, participants }))
    };
    tables.into_iter().filter_map(read).collect()
}

/// Reads `executor`, and the table `each` with executors of single members or participants.
fn executor_assignments(
    field: &Field<'_>,
    each: &'static str,
) -> Option<(Option<NamedExecutor>, BTreeMap<String, NamedExecutor>)> {
    let mut fields = field.fields()?;
    let executor =
        fields.optional("executor").and_then(|f| Some((f.non_blank_text()?.to_owned(), f.place())));
    let named = fields.optional(each).and_then(|field| field.entries()).unwrap_or_default();
    let named = named.into_iter().filter_map(|(id, field)| Some((id.to_owned(), executor_name(&field)?)));
    let named = named.collect();
    fields.finish();
    Some((executor, named))
}

/// Reads a table with the only key `executor`.
fn executor_name(field: &Field<'_>) -> Option<NamedExecutor> {
    let mut fields = field.fields()?;
    let executor =
        fields.optional("executor").and_then(|f| Some((f.non_blank_text()?.to_owned(), f.place())));
    fields.finish();
    executor
}

fn executors(field: &Field<'_>) -> BTreeMap<String, ExecutorTable> {
    let tables = field.entries().unwrap_or_default();
    let named = tables.into_iter().filter_map(|(name, field)| {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if !plain || name.is_empty() {
            let message = format!("`{name}` cannot be the name of an executor");
            field.invalid_with(message, "use the characters A-Z a-z 0-9 _ - .");
            return None;
        }
        Some((name.to_owned(), parse_executor(&field)?))
    });
    named.collect()
}

fn embedder(field: &Field<'_>) -> Option<Box<EmbedderTable>> {
    let mut fields = field.fields()?;
    let timeout = fields.optional("timeout").and_then(|field| field.duration());
    Some(Box::new(EmbedderTable { timeout, block: rest_block(field, &fields) }))
}

const MAX_RETRIES: i64 = 100;

/// The keys that select the adapter or its program; one of them is required.
const TARGET_KEYS: [&str; 4] = ["kind", "preset", "cli", "command"];

pub(super) fn parse_executor(field: &Field<'_>) -> Option<ExecutorTable> {
    let mut fields = field.fields()?;
    let written = fields.optional("kind");
    let timeout = fields.optional("timeout").and_then(|field| field.duration());
    let retries = parse_retries(&mut fields);
    let block = rest_block(field, &fields);
    if written.is_none() && !TARGET_KEYS.iter().any(|key| block.json.contains_key(*key)) {
        let message = format!("`{}` has no `kind`", field.path());
        field.invalid_with(message, "add `kind`, `preset`, `cli` or `command`");
    }
    let kind = match written {
        Some(field) => Some((field.non_blank_text()?.to_owned(), field.place())),
        None => None,
    };
    Some(ExecutorTable { kind, timeout, retries, block })
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
pub(super) fn parse_keys(field: &Field<'_>) -> Keys {
    let Some(mut fields) = field.fields() else { return Keys::default() };
    let signing =
        fields.optional("signing").and_then(|field| Some((parse_key_source(&field)?, field.place())));
    let keyring = fields.optional("keyring").and_then(|f| Some((f.non_blank_text()?.to_owned(), f.place())));
    let sign = fields.optional("sign").and_then(|field| {
        let word = field.non_blank_text()?;
        let found = Signing::ALL.into_iter().find(|signing| signing.as_str() == word);
        if found.is_none() {
            field.invalid_with(
                format!("`{}` is `{word}`; it has to be required, optional or none", field.path()),
                "`sign` is for reviews and runtimes; assemblies have `audit.signing`",
            );
        }
        found
    });
    fields.finish();
    Keys { signing, keyring, sign: sign.unwrap_or(Signing::None) }
}

fn parse_key_source(field: &Field<'_>) -> Option<KeySource> {
    if let Kind::Str(_) = field.kind() {
        // The text may be the key itself: do not quote it.
        field.invalid_with(format!("`{}` has to be a table, not text", field.path()), KEY_HELP);
        return None;
    }
    let mut fields = field.fields()?;
    let file = fields.optional("file").and_then(|field| public_text(&field));
    let env = fields.optional("env").and_then(|field| {
        let name = public_text(&field)?;
        if name.starts_with("QUORATE_") && !name.ends_with("_KEY") {
            let message = format!("executors pass the variable `{name}` to members, but it has a secret");
            field.invalid_with(
                message,
                "use the variable QUORATE_SIGNING_KEY, or a name without the prefix QUORATE_",
            );
        }
        Some(name)
    });
    let command = fields.optional("command").and_then(|field| {
        let words: Option<Vec<String>> = field.list()?.iter().map(public_text).collect();
        let words = words?;
        if words.is_empty() {
            field.invalid_with("`command` names no command", KEY_HELP);
        }
        (!words.is_empty()).then_some(words)
    });
    fields.finish();
    match (file, env, command) {
        (Some(file), None, None) => Some(KeySource::File(file)),
        (None, Some(env), None) => Some(KeySource::Env(env)),
        (None, None, Some(command)) => Some(KeySource::Command(command)),
        _ => {
            field.invalid_with(
                format!("`{}` needs one of `file`, `env` and `command`", field.path()),
                KEY_HELP,
            );
            None
        }
    }
}

fn public_text(field: &Field<'_>) -> Option<String> {
    let text = field.non_blank_text()?;
    if contains_secret_key(text) {
        field.invalid_with(format!("`{}` is a secret key; it does not belong here", field.path()), KEY_HELP);
        return None;
    }
    Some(text.to_owned())
}

/// Reads `ledger`.
pub(super) fn parse_ledger(field: &Field<'_>) -> Ledger {
    if !matches!(field.kind(), Kind::Map(_)) {
        return Ledger { path: parse_ledger_path(field), ..Ledger::default() };
    }
    let Some(mut fields) = field.fields() else { return Ledger::default() };
    let ledger = Ledger {
        path: fields.optional("path").and_then(|field| parse_ledger_path(&field)),
        witness: fields.optional("witness").and_then(|f| Some((f.non_blank_text()?.to_owned(), f.place()))),
        witness_key: fields
            .optional("witness_key")
            .and_then(|f| Some((f.non_blank_text()?.to_owned(), f.place()))),
        retention_days: fields.optional("retention").and_then(|field| parse_retention(&field)),
    };
    fields.finish();
    ledger
}

fn parse_ledger_path(field: &Field<'_>) -> Option<String> {
    let written = field.non_blank_text()?;
    if written.contains("://")
        && !["postgres://", "postgresql://"].iter().any(|scheme| written.starts_with(scheme))
    {
        field.invalid_with(
            "a ledger is a file or a Postgres database",
            "write a path relative to this file, or `postgres://user@host/database`",
        );
        return None;
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
    if days.is_none() {
        let message =
            format!("`{}` is `{written}`; it has to be forever or days:<n>, at least one", field.path());
        field.invalid_with(message, "write it like `days:90`");
    }
    days
}

/// The bounds of `max_active`.
const ACTIVE_BOUNDS: (i64, i64) = (1, 1_000);
/// The bounds of `error_rate`.
const ERROR_RATE_BOUNDS: std::ops::RangeInclusive<f64> = 0.000_1..=0.2;

/// The value of `judge` that turns the judge off.
const JUDGE_OFF: &str = "off";

/// Reads `[playbooks]`.
pub(super) fn parse_playbooks(field: &Field<'_>) -> Playbooks {
    let Some(mut fields) = field.fields() else { return Playbooks::default() };
    let mut named = |key| {
        fields.optional(key).and_then(|field| Some((field.non_blank_text()?.to_owned(), field.place())))
    };
    let (judge, reflector, governance) = (named("judge"), named("reflector"), named("governance"));
    let (judge, judge_off) = match judge {
        Some((name, place)) if name == JUDGE_OFF => (None, Some(place)),
        judge => (judge, None),
    };
    let max_active =
        fields.optional("max_active").and_then(|field| field.integer(ACTIVE_BOUNDS.0, ACTIVE_BOUNDS.1));
    let scorer = fields.optional("scorer").and_then(|field| {
        let place = field.place();
        let words = texts(&field)?;
        if words.is_empty() {
            field.invalid_with("`scorer` names no command", "write it like [\"python3\", \"score.py\"]");
            return None;
        }
        Some((words, place))
    });
    let min_sample = fields.optional("min_sample").and_then(|field| field.integer(2, 100_000));
    let error_rate = fields.optional("error_rate").and_then(|field| {
        let rate = field.number()?;
        let valid = ERROR_RATE_BOUNDS.contains(&rate);
        if !valid {
            field.invalid_with("`error_rate` is out of bounds", "write it like 0.05; from 0.0001 to 0.2");
        }
        valid.then_some(rate)
    });
    fields.finish();
    let default = Playbooks::default();
    Playbooks {
        max_active: max_active.and_then(|n| usize::try_from(n).ok()).unwrap_or(default.max_active),
        min_sample: min_sample.and_then(|n| u32::try_from(n).ok()).unwrap_or(default.min_sample),
        error_rate: error_rate.unwrap_or(default.error_rate),
        judge,
        judge_off,
        reflector,
        governance,
        scorer,
    }
}

/// Reads `[locks.<id>]`.
pub(super) fn parse_lock(id: &str, field: &Field<'_>) -> Option<Lock> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let valid_start = (2..=64).contains(&id.len()) && id.starts_with(|c: char| c.is_ascii_lowercase());
    if !valid_start || !id.chars().all(plain) {
        let message = format!("`{id}` cannot be the id of a locked trait");
        field.invalid_with(
            message,
            "use 2 to 64 lower-case letters, digits and dashes, beginning with a letter",
        );
        return None;
    }
    let mut fields = field.fields()?;
    let description =
        fields.optional("description").and_then(|field| field.non_blank_text().map(str::to_owned));
    let mut list = |key| fields.optional(key).and_then(|field| texts(&field));
    let (words, phrases, operators) = (list("words"), list("phrases"), list("operators"));
    fields.finish();
    Some(Lock {
        description,
        words: words.unwrap_or_default(),
        phrases: phrases.unwrap_or_default(),
        operators,
    })
}

fn texts(field: &Field<'_>) -> Option<Vec<String>> {
    let items = field.list()?;
    items.iter().map(|item| item.non_blank_text().map(str::to_owned)).collect()
}

/// Reads `[redact]`.
pub(super) fn parse_redaction(field: &Field<'_>) -> Redaction {
    let mut redaction = Redaction::default();
    let Some(mut fields) = field.fields() else { return redaction };
    let mut flag = |key| fields.optional(key).and_then(|field| field.boolean());
    redaction.builtin = flag("builtin").unwrap_or(redaction.builtin);
    redaction.environment = flag("environment").unwrap_or(redaction.environment);
    let patterns = fields.optional("patterns").and_then(|field| field.list()).unwrap_or_default();
    redaction.patterns = patterns.iter().filter_map(parse_secret_pattern).collect();
    fields.finish();
    redaction
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
            (budget.calls, budget.tokens, budget.usd_nanos, budget.wall),
            (Some(40), Some(400_000), Some(1_500_000_000), Some(Duration::from_secs(600)))
        );
        assert_eq!(budget.prices.map(|(path, _)| path).as_deref(), Some("prices.toml"));
    }

    #[test]
    fn an_empty_file_is_the_default() {
        let host = load(Path::new("a/quorate.toml"), "quorate.toml", &Text("")).value;
        assert_eq!(host, Some(Configuration { dir: PathBuf::from("a"), ..Configuration::default() }));
    }
}
