//! Loads `quorate.toml`: its schema and types are in `config.rs`, and the checks beyond the schema here, by the path of their
//! values. Keys of an executor that are not common to all executors are passed to the adapter verbatim.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use regex::RegexBuilder;
use serde::{Deserialize, Deserializer};

use super::Configuration;
use crate::doctype::{Doctype, compiled_schema};
use crate::money::Money;
use crate::tree::reader::contains_secret_key;
use crate::tree::{Field, Format, Kind, ParsedFile, open};
use crate::{Loaded, Source, duration};

/// Loads a configuration. `shown` is the path as messages show it.
pub fn load(path: &Path, shown: &str, source: &dyn Source) -> Loaded<Configuration> {
    open::load(source, (path, shown), Format::Toml, codes::HOST_INVALID, |opened| read(opened, path))
}

fn read(opened: &ParsedFile, path: &Path) -> Option<Configuration> {
    let schema = compiled_schema(Doctype::Config)?;
    let mut config: Configuration = opened.read(schema, |root| {
        meaning_or_embedder(root);
        for (path, check) in CHECKS {
            root.at(path).iter().for_each(check);
        }
    })?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    config.dir = dir.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    if let Some((_, place)) = config.playbooks.judge.take_if(|(name, _)| name == JUDGE_OFF) {
        config.playbooks.judge_off = Some(place);
    }
    let text = opened.source_file.text();
    let executors = config.executors.values_mut().map(|table| &mut table.block);
    let embedder = config.embedder.iter_mut().map(|table| &mut table.block);
    for block in executors.chain(embedder).chain(config.servers.values_mut()) {
        block.source = Arc::clone(text);
    }
    config.council.members.values_mut().for_each(|member| member.source = Arc::clone(text));
    Some(config)
}

/// A path, and the check of the values there.
type PathCheck = (&'static str, fn(&Field<'_>));

/// The checks beyond the schema, or with a better message, each with the path of its values.
const CHECKS: &[PathCheck] = &[
    ("*", misplaced),
    ("defaults.*", misplaced),
    ("council.*", misplaced),
    ("council.tiers", not_blank),
    ("ledger", ledger_path),
    ("ledger.path", ledger_path),
    ("ledger.retention", retention),
    ("executors", executors),
    ("executors.*.timeout", check_duration),
    ("embedder.timeout", check_duration),
    ("meaning", meaning),
    ("budget.money", money),
    ("budget.wall", check_duration),
    ("playbooks.scorer.*", not_blank),
    ("locks", locks),
    ("locks.*.*.*", not_blank),
    ("redact.patterns.*", check_secret_pattern),
    ("keys.signing", key_source),
];

fn not_blank(field: &Field<'_>) {
    if field.node().as_str().is_some() && field.text().is_none() {
        field.invalid(format!("`{}` is empty", field.path()));
    }
}

/// Refuses a key that names a service or a model in a place without it, and says what to write.
fn misplaced(field: &Field<'_>) {
    let key = field.path().rsplit('.').next().unwrap_or_default();
    if matches!(key, "executor" | "model" | "preset" | "provider") && field.path() != "defaults.executor" {
        let help = "write `executor = \"SERVICE:MODEL\"` in `[defaults]`, such as `openai:gpt-5.5`";
        field.refuse_key(Body::new(format!("`{key}` is not a key here")).help(help));
    }
}

/// The value of `judge` that turns the judge off.
const JUDGE_OFF: &str = "off";

/// The most samples of one answer.
pub const MAX_SAMPLES: u32 = 9;

/// The most stand-ins of one executor or member.
pub const MAX_STAND_INS: usize = 8;

/// The keys that select the adapter or its program; one of them is required.
const TARGET_KEYS: [&str; 4] = ["kind", "preset", "cli", "command"];

/// The keys with which other tools name a service.
const SERVICE_KEYS: [&str; 3] = ["provider", "service", "vendor"];

fn executors(tables: &Field<'_>) {
    for (name, table) in tables.entries() {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || !name.chars().all(is_plain) {
            let message = format!("`{name}` cannot be the name of an executor");
            table.invalid_with(message, "use the characters A-Z a-z 0-9 _ - .");
        } else if table.at("fallback.*").iter().any(|other| other.text() == Some(name)) {
            table.invalid_with(format!("`{name}` cannot stand in for itself"), "name another executor");
        } else if matches!(table.kind(), Kind::Map(_))
            && TARGET_KEYS.iter().all(|key| table.get(key).is_none())
        {
            table.invalid_with(format!("`{}` has no `kind`", table.path()), add_target(&table));
        }
    }
}

/// What to write in a table without any of [`TARGET_KEYS`]. The user's own service is named: a draft must not go to another
/// one.
fn add_target(table: &Field<'_>) -> String {
    let named = SERVICE_KEYS.iter().find_map(|key| table.get(key)?.text());
    let is_word =
        |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let service = named.filter(|name| name.len() <= 16).filter(is_word).unwrap_or("NAME");
    format!(
        "write `preset = \"{service}\"` for a service, `kind = \"llm\"` with `base_url` and `model`, or `command` for a \
         program"
    )
}

/// Keys of an executor's table that a person may expect in `[meaning]`.
const EXECUTOR_KEYS: [&str; 8] =
    ["model", "preset", "wire", "base_url", "key", "timeout", "retries", "fallback"];

/// `[meaning]` excludes `[embedder]`: a text is compared in one way.
fn meaning(table: &Field<'_>) {
    for (key, field) in table.entries().iter().filter(|(key, _)| EXECUTOR_KEYS.contains(key)) {
        let body = Body::new(format!("`{key}` is not a key of `[meaning]`"));
        field.refuse_key(body.help("write it in the table `[executors.<name>]` that `executor` names"));
    }
}

fn meaning_or_embedder(root: &Field<'_>) {
    if let (Some(meaning), Some(_)) = (root.get("meaning"), root.get("embedder")) {
        let help = "keep `[meaning]`, which asks a question, or `[embedder]`, which compares vectors";
        meaning.refuse_key(Body::new("`[meaning]` and `[embedder]` exclude each other").help(help));
    }
}

const KEY_HELP: &str = "write the source of the key: {file = \"path\"}, {env = \"VARIABLE\"} or {command = [\"program\", \"argument\"]}";

fn key_source(source: &Field<'_>) {
    if let Kind::Str(_) = source.kind() {
        // The text may be the key itself: do not quote it.
        return source.invalid_with(format!("`{}` has to be a table, not text", source.path()), KEY_HELP);
    }
    for text in source.at("*").into_iter().chain(source.at("command.*")) {
        not_blank(&text);
        if text.text().is_some_and(contains_secret_key) {
            text.invalid_with(
                format!("`{}` is a secret key; it does not belong here", text.path()),
                KEY_HELP,
            );
        }
    }
    let variable = source.get("env").and_then(|field| Some((field.text()?, field)));
    if let Some((name, field)) =
        variable.filter(|(name, _)| name.starts_with("QUORATE_") && !name.ends_with("_KEY"))
    {
        let message = format!("executors pass the variable `{name}` to members, but it has a secret");
        let help = "use the variable QUORATE_SIGNING_KEY, or a name without the prefix QUORATE_";
        field.invalid_with(message, help);
    }
    if ["file", "env", "command"].iter().filter(|key| source.get(key).is_some()).count() != 1 {
        let message = format!("`{}` needs one of `file`, `env` and `command`", source.path());
        source.invalid_with(message, KEY_HELP);
    }
}

fn ledger_path(field: &Field<'_>) {
    let is_postgres =
        |url: &str| ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
    if field.text().is_some_and(|written| written.contains("://") && !is_postgres(written)) {
        let help = "write a path relative to this file, or `postgres://user@host/database`";
        field.invalid_with("a ledger is a file or a Postgres database", help);
    }
}

fn retention(field: &Field<'_>) {
    let Some(written) = field.text() else { return };
    let days = written.strip_prefix("days:").filter(|days| days.bytes().all(|digit| digit.is_ascii_digit()));
    let days = days.and_then(|days| days.parse::<u32>().ok());
    if written != "forever" && days.is_none_or(|days| days == 0) {
        let message =
            format!("`{}` is `{written}`; it has to be forever or days:<n>, at least one", field.path());
        field.invalid_with(message, "write it like `days:90`");
    }
}

fn money(field: &Field<'_>) {
    if let Some(Err(why)) = field.text().map(Money::parse_cap) {
        let help = "write an amount in US dollars, in which models are priced: \"5 USD\" or \"0.50 USD\"";
        field.invalid_with(format!("`{}`: {why}", field.path()), help);
    }
}

fn locks(tables: &Field<'_>) {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    for (id, lock) in tables.entries() {
        let valid_start = (2..=64).contains(&id.len()) && id.starts_with(|c: char| c.is_ascii_lowercase());
        if !valid_start || !id.chars().all(plain) {
            let help = "use 2 to 64 lower-case letters, digits and dashes, beginning with a letter";
            lock.invalid_with(format!("`{id}` cannot be the id of a locked trait"), help);
        }
    }
}

/// Refuses anything but a duration, for example `90s`.
pub(crate) fn check_duration(field: &Field<'_>) {
    let (why, help) = match field.kind() {
        Kind::Str(text) => match duration::parse(text) {
            Ok(_) => return,
            Err(error) => (error.to_string(), "write it like \"120s\" or \"10m\"".to_owned()),
        },
        Kind::Int(number) => {
            ("a duration needs a unit".to_owned(), format!("write \"{number}s\" for seconds"))
        }
        other => (format!("{} is not a duration", other.name()), "write it like \"120s\"".to_owned()),
    };
    field.refuse(codes::DURATION, Body::new(format!("`{}`: {why}", field.path())).help(help));
}

/// The largest compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Refuses anything but a regular expression that matches secrets.
pub(crate) fn check_secret_pattern(field: &Field<'_>) {
    let Some(pattern) = field.node().as_str() else { return };
    let body = match RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build() {
        Ok(regex) if regex.is_match("") => {
            Body::new("this pattern matches the empty text, and so matches everywhere")
                .help("let it match at least one character")
        }
        Ok(_) => return,
        Err(regex::Error::CompiledTooBig(_)) => {
            Body::new("this pattern is too large").help("shorten its repetitions")
        }
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Body::new(format!("this is not a regular expression: {reason}"))
                .help("look-around and back-references are not supported")
        }
    };
    field.refuse(codes::PATTERN_INVALID, body);
}

/// Reads a limit on money.
pub(crate) fn cap<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Money>, D::Error> {
    Ok(Money::parse_cap(&String::deserialize(from)?).ok())
}

/// Reads a retention in days; `None` is forever.
pub(crate) fn days<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let written = String::deserialize(from)?;
    Ok(written.strip_prefix("days:").map(|days| days.parse().unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::super::{Fallback, MemberTable};
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
            host.defaults.executor.map(|(name, place)| (name, place.path)),
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
        assert_eq!(names(host.council.members["skeptic"].fallback.as_ref()), of(&["c"]));
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
