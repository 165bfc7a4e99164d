//! A model service: where it is, how it is reached, the key that it is sent, and what it costs. These settings are the same
//! whatever is asked of it. `settings.toml` has what is known of services and their words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex as Shared, PoisonError};
use std::time::Duration;

use quorate_kernel::ports::executor::{CallLimit, ConfigError, Failure, Settings, SideEffect, Usage};
use quorate_kernel::redact::{Redactor, Secrets};
use quorate_manifest::money::Money;
use reqwest::Client;
use reqwest::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use tokio::sync::{Mutex, OnceCell};
use url::Url;
use zeroize::Zeroizing;

use super::decide::api::Api;
use super::fault::quoted;
use super::pool::Pool;
use super::prices::{Price, Priced};
use super::wire::{Auth, Server, Wire};
use crate::block::{Block, variable_name};
use crate::executor::agent_cli::command::Program;
use crate::http::{self, Redirects};
use quorate_kernel::files;

/// Headers that the program sets, or that would change what a request means.
const RESERVED_HEADERS: &str = "authorization|x-api-key|api-key|x-goog-api-key|host|content-length|content-type|\
    content-encoding|transfer-encoding|accept|accept-encoding|connection|te|upgrade|trailer";

/// No byte for this long is a dead stream. Models that reason may pause for over a minute; comments count as life.
const DEFAULT_IDLE: Duration = Duration::from_secs(300);
/// Members of a council.
const DEFAULT_CONCURRENCY: usize = 4;
/// Most local servers have one slot, and calls that wait for it have no byte to send.
const LOCAL_CONCURRENCY: usize = 1;

/// What is known of services and of the settings of other tools.
#[derive(Debug, Deserialize)]
pub(super) struct Known {
    pub(super) preset: Vec<ServicePreset>,
    /// What to write in place of keys that other tools have.
    pub(super) synonyms: BTreeMap<String, String>,
    /// What sets the parts of a request that `extra` may not set.
    pub(super) reserved: BTreeMap<String, String>,
    /// The words of servers.
    pub(super) words: Words,
    /// The names of fields in the words of servers.
    pub(super) fields: BTreeMap<Field, String>,
}

/// A part of a request that a server may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Field {
    Tokens,
    Usage,
    System,
    Schema,
    Effort,
    Cache,
    Store,
}

/// Parts of messages, separated by `|`.
#[derive(Debug, Deserialize)]
pub(super) struct Words {
    pub(super) refuses_field: String,
    pub(super) refuses_value: String,
    pub(super) too_large: String,
    pub(super) too_long: String,
}

/// The content of `settings.toml`.
pub(super) static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    toml::from_str(include_str!("settings.toml"))
        .expect("the file that ships can be read, which a test holds")
});

/// A service with its settings.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServicePreset {
    /// The value of the key `preset`.
    pub name: String,
    pub(super) wire: Wire,
    /// The wire of its decision models, if it has no others.
    pub(super) decides: Option<Api>,
    /// The base URL; `{}` stands for the value of `host_variable`.
    base_url: String,
    /// The variable that completes the base URL, and an example of its value.
    pub(super) host_variable: Option<(String, String)>,
    /// The variables that may have the key; the first that is set counts.
    pub(super) variables: Vec<String>,
    pub(super) auth: Auth,
    /// The model that is asked if none is named.
    pub(super) default_model: Option<String>,
    pub(super) server: Server,
    /// Whether it runs on this machine, and costs nothing.
    pub(super) is_local: bool,
}

impl ServicePreset {
    /// The preset of a name.
    pub(super) fn find(name: &str) -> Option<&'static ServicePreset> {
        KNOWN.preset.iter().find(|preset| preset.name == name)
    }

    pub(super) fn names() -> String {
        KNOWN.preset.iter().map(|preset| &*preset.name).collect::<Vec<_>>().join(", ")
    }

    /// The preset that a table names.
    ///
    /// # Errors
    /// When there is none of that name.
    pub(super) fn of(block: &Block<'_>) -> Result<Option<&'static ServicePreset>, ConfigError> {
        let Some(name) = block.text("preset")? else { return Ok(None) };
        let unknown = || {
            ConfigError::for_key("preset", format!("unknown preset `{name}`"))
                .with_help(format!("the presets are {}", ServicePreset::names()))
        };
        ServicePreset::find(name).map(Some).ok_or_else(unknown)
    }

    /// # Errors
    /// When the variable that completes the address is not set, or cannot stand in an address.
    pub(super) fn address(&self) -> Result<Url, ConfigError> {
        let Some((variable, example)) = &self.host_variable else { return address(&self.base_url) };
        let refused = |why: &str| {
            ConfigError::for_key("base_url", format!("the environment variable {variable}{why}"))
                .with_help(format!("export {variable}={example}"))
        };
        let value = http::read_variable(variable);
        let value = value.ok_or_else(|| refused(", which says where the service is, is not set"))?;
        let value = value.trim().trim_end_matches('/');
        // Within a name of a host, anything else could lead the key to another one.
        let is_label = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        match self.base_url.starts_with("{}") || is_label {
            true => address(&self.base_url.replace("{}", value)),
            false => Err(refused(" has other characters than letters, digits and `-`")),
        }
    }
}

/// A service and how it is spoken to.
#[derive(Debug)]
pub(super) struct Service {
    /// Without a slash at its end.
    pub(super) base_url: Url,
    pub(super) model: String,
    pub(super) pool: Arc<Pool>,
    price: Priced,
    pub(super) auth: Auth,
    pub(super) key: Option<Key>,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    ca: Option<PathBuf>,
    /// No byte for this long is a dead connection.
    pub(super) idle: Duration,
    /// Whether that counts only from the first byte of an answer on: a local server may read a long prompt in silence.
    pub(super) is_slow_to_start: bool,
    /// Whether it has few resources: it is on this machine or in a private network.
    pub(super) is_small: bool,
    /// Made for the first call, so that its connections serve all of them.
    client: OnceCell<Client>,
}

/// What the keys of the table that the kind of model decides say.
pub(super) struct Asked<'a> {
    pub(super) base_url: Url,
    pub(super) preset: Option<&'static ServicePreset>,
    /// How the key is sent where neither the table nor the preset says it.
    pub(super) auth: Auth,
    pub(super) model: &'a str,
    /// Whether a response arrives at once, so that silence before it says nothing.
    pub(super) is_whole: bool,
    /// The price of output where `price` has none.
    pub(super) output_price: Option<f64>,
}

impl Service {
    /// Reads the keys that all tables have. Paths are relative to the settings' directory.
    ///
    /// # Errors
    /// When one is unusable, or the key would be sent unencrypted to another machine.
    pub(super) fn parse(
        block: &Block<'_>,
        settings: &Settings,
        asked: Asked<'_>,
    ) -> Result<Service, ConfigError> {
        let Asked { base_url, preset, auth, model, is_whole, output_price } = asked;
        let auth = preset.map_or(auth, |preset| preset.auth);
        let auth = block.word("auth", Auth::parse, &Auth::ALL.map(Auth::as_str))?.unwrap_or(auth);
        // A preset's own key goes to the preset's own host only.
        let names = preset.filter(|_| !block.has("base_url")).map_or(&[][..], |preset| &preset.variables);
        let source = Source::parse(block, &settings.dir)?
            .or_else(|| (!names.is_empty()).then(|| Source::Variables(names.to_vec())));
        if source.is_some() && base_url.scheme() == "http" && !http::is_loopback(&base_url) {
            return Err(ConfigError::for_key("base_url", "`base_url` would send the key unencrypted")
                .with_help("use https://, or set `auth = \"none\"` and no `key`"));
        }
        let is_local = preset.is_some_and(|preset| preset.is_local);
        let is_small = is_local || http::is_local(&base_url);
        let is_free = is_local || http::is_loopback(&base_url);
        let idle = block.duration("idle")?;
        let key = source.map(|source| Key { source, value: Mutex::default(), refused: Shared::default() });
        let concurrency = if is_small { LOCAL_CONCURRENCY } else { DEFAULT_CONCURRENCY };
        let concurrency = block.count("concurrency")?.unwrap_or(concurrency);
        Ok(Service {
            pool: Pool::named(&pool_name(block.text("pool")?, &base_url, key.as_ref()), concurrency),
            price: Priced::of(block, model, is_free, settings.prices.as_deref(), output_price)?,
            base_url,
            model: model.to_owned(),
            auth: if key.is_none() { Auth::None } else { auth },
            key,
            headers: headers(block)?,
            ca: block.text("ca")?.map(|path| settings.dir.join(path)),
            idle: idle.unwrap_or(DEFAULT_IDLE),
            is_slow_to_start: is_whole || (is_small && idle.is_none()),
            is_small,
            client: OnceCell::new(),
        })
    }

    /// # Errors
    /// When the file `ca` cannot be used.
    pub(super) async fn client(&self) -> Result<&Client, Failure> {
        let make = || async { http::client(&self.base_url, self.ca.as_deref(), Redirects::Refused) };
        self.client.get_or_try_init(make).await.map_err(Failure::never)
    }

    /// The key to send; `None` where the service needs none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) async fn key(&self) -> Result<Option<Secret>, Failure> {
        let Some(key) = &self.key else { return Ok(None) };
        let mut value = key.value.lock().await;
        if value.is_none() {
            *value = Some(key.source.read().await?);
        }
        Ok(value.clone())
    }

    /// Whether the next call has another key than this one, which was not accepted: a command may print another.
    pub(super) async fn renews_key(&self, refused: Option<&Secret>) -> bool {
        let (Some(key), Some(refused)) = (&self.key, refused) else { return false };
        if !matches!(key.source, Source::Command(_)) {
            return false;
        }
        let mut value = key.value.lock().await;
        // Another call may have renewed it meanwhile.
        if value.as_ref() == Some(refused) {
            *value = None;
            key.refused.lock().unwrap_or_else(PoisonError::into_inner).push(refused.clone());
        }
        true
    }

    /// A text of the service without the key that was sent, or one that was sent before.
    pub(super) fn without_keys(&self, text: String, key: Option<&Secret>) -> String {
        let text = answer_without_key(text, key);
        let Some(own) = &self.key else { return text };
        let refused = own.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.iter().fold(text, |text, key| answer_without_key(text, Some(key)))
    }

    /// A name that the service gave, as it may be shown.
    pub(super) fn shown_name(&self, name: &str, key: Option<&Secret>) -> String {
        self.without_keys(quoted(name), key)
    }

    /// Refuses a key that is known not to be there.
    ///
    /// # Errors
    /// As [`Source::check`].
    pub(super) fn check_key(&self) -> Result<(), ConfigError> {
        self.key.as_ref().map_or(Ok(()), |key| key.source.check())
    }

    /// The side effects of a call outside of this process. The file of prices decides how much a budget of money allows.
    pub(super) fn side_effects(&self) -> Vec<SideEffect> {
        let mut what = format!("send texts to {}", self.base_url);
        if let Some(key) = &self.key {
            what.push_str(&format!(" with {}", key.source.describe()));
        }
        if let Some(ca) = &self.ca {
            what.push_str(&format!(", trusting the certificates of {}", ca.display()));
        }
        let files = self.ca.iter().chain(&self.price.file).cloned().collect();
        let command = self.key.as_ref().and_then(|key| key.source.side_effect());
        std::iter::once(SideEffect { what, files }).chain(command).collect()
    }

    /// What is asked and what it costs, in one line. `more` says what the kind of model adds.
    pub(super) fn describe(&self, wire: &str, more: &str) -> String {
        let (key, cost) = (describe_key(self.key.as_ref()), self.price.describe());
        format!("`{}` at {} ({wire}), {key}{more}, {cost}", self.model, self.base_url)
    }

    /// The cost of a response. `served` is the model that answered.
    pub(super) fn charge(&self, usage: Usage, served: Option<&str>) -> Usage {
        Usage { money: self.price.charge(&usage, served), ..usage }
    }

    /// The price of a usage.
    pub(super) fn cost(&self, usage: &Usage) -> Option<Money> {
        self.price.price.as_ref()?.cost(usage)
    }

    /// The most that a call takes that reads and writes so many tokens.
    pub(super) fn limit(&self, read: u64, wrote: u64) -> CallLimit {
        let money = self.price.price.as_ref().map(|price| price.most(read, wrote));
        CallLimit { tokens: read + wrote, money }
    }

    pub(super) fn is_metered(&self) -> bool {
        self.price.price != Some(Price::FREE)
    }
}

/// The name of the pool of a service's calls. A limit is a host's, so that no pool spans two. One that a table names joins all
/// keys of its host; else each key has its own, by the place that it comes from.
fn pool_name(name: Option<&str>, base_url: &Url, key: Option<&Key>) -> String {
    let host = http::host_and_port(base_url);
    match (name, key.and_then(|key| key.source.side_effect())) {
        (Some(name), _) => format!("{name} at {host}"),
        (None, Some(command)) => format!("{host}, {}", command.what),
        (None, None) => format!("{host} with {}", describe_key(key)),
    }
}

fn describe_key(key: Option<&Key>) -> String {
    key.map_or("no key".to_owned(), |key| key.source.describe())
}

fn headers(block: &Block<'_>) -> Result<Vec<(HeaderName, HeaderValue)>, ConfigError> {
    let Some(table) = block.table("headers")? else { return Ok(Vec::new()) };
    let read = |(name, value): (&String, &quorate_protocol::Json)| {
        let key = format!("headers.{name}");
        let lower = name.to_ascii_lowercase();
        if RESERVED_HEADERS.split('|').any(|reserved| reserved == lower) {
            let message = format!("the header `{name}` is set by the program");
            return Err(
                ConfigError::for_key(key, message).with_help("a key goes into `key`, its style into `auth`")
            );
        }
        let text = value.as_str().ok_or_else(|| ConfigError::for_key(&key, "a header is a text"))?;
        match (HeaderName::from_bytes(lower.as_bytes()), HeaderValue::from_str(text)) {
            (Ok(name), Ok(value)) => Ok((name, value)),
            _ => Err(ConfigError::for_key(key, "the header has characters that cannot be sent")),
        }
    };
    table.iter().map(read).collect()
}

/// Reads a base URL.
pub(super) fn address(written: &str) -> Result<Url, ConfigError> {
    let refuse = |why: &str| {
        ConfigError::for_key("base_url", format!("`base_url` {why}"))
            .with_help("for example `https://api.example.com/v1`")
    };
    // A secret in it is not repeated.
    let url = Url::parse(written.trim_end_matches('/'))
        .map_err(|error| refuse(&format!("is not an address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(refuse("must begin with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("holds a name or a password; a key goes into `key`"));
    }
    let model = written.split_once("/v1:").or_else(|| written.split_once("/v1#"));
    if let Some((host, model)) = model.filter(|_| url.query().is_none()) {
        let help = format!("write `base_url = \"{host}/v1\"` and `model = \"{model}\"`");
        return Err(refuse("ends with the name of a model").with_help(help));
    }
    match url.query().is_some() || url.fragment().is_some() {
        true => Err(refuse("has a query or a fragment")),
        false => Ok(url),
    }
}

/// The largest key, in bytes: tokens of identity services have some thousand.
const MAX_BYTES: usize = 64 << 10;

/// How long a command may take that prints a key.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// The value, wiped from memory when it is dropped.
pub(super) type Secret = Zeroizing<String>;

/// Where a key comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// The first of these environment variables that is set.
    Variables(Vec<String>),
    File(PathBuf),
    /// What a command prints. It is run again once a service does not accept what it printed.
    Command(Program),
}

impl Source {
    /// Reads the table `key`: exactly one of `env`, `file` and `command`.
    ///
    /// # Errors
    /// When it is something else. A text is not repeated, since it may be the key itself.
    pub(super) fn parse(block: &Block<'_>, dir: &Path) -> Result<Option<Source>, ConfigError> {
        const HELP: &str = "write `key = { env = \"NAME\" }`, `{ file = \"path\" }` or `{ command = [\"program\", \"argument\"] }`";
        if block.is_text("key") {
            let message = "`key` says where the key is, and does not hold it";
            return Err(ConfigError::for_key("key", message).with_help(HELP));
        }
        let Some(table) = block.table("key")? else { return Ok(None) };
        let inside = |error: ConfigError| {
            let key = error.key.as_deref().map_or("key".to_owned(), |key| format!("key.{key}"));
            ConfigError { key: Some(key), ..error }
        };
        let keys = Block::parse(table, &["env", "file", "command"]).map_err(inside)?;
        let source = match (keys.text("env"), keys.text("file"), keys.texts("command")) {
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => return Err(inside(error)),
            (Ok(Some(name)), Ok(None), Ok(command)) if command.is_empty() => {
                Source::Variables(vec![variable_name("key.env", name, "ANTHROPIC_API_KEY")?])
            }
            (Ok(None), Ok(Some(path)), Ok(command)) if command.is_empty() => Source::File(dir.join(path)),
            (Ok(None), Ok(None), Ok(command)) if !command.is_empty() => {
                let (program, arguments) =
                    command.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
                let command = Program::new(program, arguments.to_vec(), Vec::new(), None, dir);
                Source::Command(command.map_err(inside)?)
            }
            _ => {
                let message = "`key` needs exactly one of `env`, `file` and `command`";
                return Err(ConfigError::for_key("key", message).with_help(HELP));
            }
        };
        Ok(Some(source))
    }

    /// Its description for a user who decides whether to trust the file that names it.
    pub(super) fn describe(&self) -> String {
        match self {
            Source::Variables(names) => format!("the value of {}", names.join(" or ")),
            Source::File(path) => format!("the content of {}", path.display()),
            Source::Command(_) => "what a command prints".to_owned(),
        }
    }

    /// The command that is run for it.
    pub(super) fn side_effect(&self) -> Option<SideEffect> {
        match self {
            Source::Command(command) => Some(command.side_effect()),
            Source::Variables(_) | Source::File(_) => None,
        }
    }

    /// Refuses a source that is known to have no key, without starting anything.
    ///
    /// # Errors
    /// When no variable is set, or the file is not there.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        match self {
            Source::Variables(names) if !names.iter().any(|name| http::read_variable(name).is_some()) => {
                let message = match &names[..] {
                    [only] => format!("the environment variable {only}, which holds the key, is not set"),
                    all => format!(
                        "none of the environment variables {} is set, which hold the key",
                        all.join(", ")
                    ),
                };
                let help = format!("export {}=…", names.first().map_or("", String::as_str));
                Err(ConfigError::for_key("key", message).with_help(help))
            }
            Source::File(path) => files::open(path).map(drop).map_err(|error| {
                ConfigError::for_key("key", format!("cannot read the key from {}: {error}", path.display()))
            }),
            Source::Variables(_) | Source::Command(_) => Ok(()),
        }
    }

    async fn read(&self) -> Result<Secret, Failure> {
        let text = match self {
            Source::Variables(names) => {
                let value = names.iter().find_map(|name| http::read_variable(name));
                Zeroizing::new(value.ok_or_else(|| {
                    Failure::never(format!("the environment variable {} is not set", names.join(" or ")))
                })?)
            }
            Source::File(path) => {
                let text = files::read_text(path, MAX_BYTES as u64).map_err(|error| {
                    Failure::never(format!("cannot read the key from {}: {error}", path.display()))
                })?;
                Zeroizing::new(text)
            }
            Source::Command(command) => {
                let printed = command.run_for_secret(COMMAND_TIMEOUT).await;
                Zeroizing::new(printed.map_err(|why| Failure::never(format!("no key: {why}")))?)
            }
        };
        let key = text.trim();
        // Anything else cannot stand in a header, and would end it.
        match !key.is_empty() && key.len() <= MAX_BYTES && key.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Zeroizing::new(key.to_owned())),
            false => Err(Failure::never(format!(
                "{} is not a key: it is empty, too long, or has blanks or characters outside of ASCII",
                self.describe()
            ))),
        }
    }
}

/// A key that is read once.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) source: Source,
    value: Mutex<Option<Secret>>,
    /// Those that a service did not accept any more. They may be accepted elsewhere, so that no text may have them either.
    refused: Shared<Vec<Secret>>,
}

/// The text without the key: without all of it, or without its beginning at the end of a shortened text.
pub(super) fn without_key(text: String, key: Option<&Secret>) -> String {
    const LEAST: usize = 4;
    let Some(key) = key.filter(|key| key.len() >= LEAST) else { return text };
    let text = text.replace(key.as_str(), "[key]");
    let Some(cut) = text.strip_suffix('…') else { return text };
    let beginning = (LEAST..key.len()).rev().find_map(|length| cut.strip_suffix(&key[..length]));
    beginning.map_or_else(|| text.clone(), |before| format!("{before}[key]…"))
}

/// The text of an answer without the key, also where an escape in its JSON hides it until it is read.
pub(super) fn answer_without_key(text: String, key: Option<&Secret>) -> String {
    let Some(secret) = key else { return text };
    let secrets = Secrets { values: vec![secret.to_string()], ..Secrets::default() };
    let text = without_key(text, key);
    match Redactor::from_secrets(&secrets) {
        Ok(redactor) => redactor.redact_output(&text).0,
        // No text is better than one with a key in it.
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_taken_out_whole_and_where_a_text_was_cut_in_it() {
        let key = Some(&Zeroizing::new("sk-canary-77".to_owned())).cloned();
        let clean = |text: &str| without_key(text.to_owned(), key.as_ref());
        assert_eq!(clean("bad sk-canary-77, sk-canary-77"), "bad [key], [key]");
        assert_eq!(clean("bad sk-canary-7…"), "bad [key]…");
        assert_eq!(clean("bad sk-c…"), "bad [key]…");
        assert_eq!(clean("bad…"), "bad…");
        assert_eq!(without_key("x".to_owned(), None), "x");
    }

    #[test]
    fn a_key_that_an_escape_hides_is_taken_out_of_an_answer() {
        let key = Zeroizing::new("sk-\"canary\\77".to_owned());
        let clean = |text: &str| answer_without_key(text.to_owned(), Some(&key));
        for text in [
            r#"{"brief": "it is \u0073k-\u0022canary\u005c77."}"#,
            r#"{"brief": "it is sk-\"canary\\77."}"#,
            r#"Here: {"a": [{"sk-\u0022canary\\77": 1}]}"#,
        ] {
            let clean = clean(text);
            assert!(clean.contains("[REDACTED]") && !clean.contains("canary"), "{clean}");
        }
        assert_eq!(clean(r#"{"brief": "a \u0073 \"b\""}"#), r#"{"brief": "a \u0073 \"b\""}"#);
    }
}
