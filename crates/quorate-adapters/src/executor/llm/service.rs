//! A model service: where it is, how it is reached, and the key that it is sent. These settings are the same whatever is
//! asked of it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex as Shared, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_kernel::ports::executor::{ConfigError, Failure, SideEffect};
use quorate_kernel::redact::{Redactor, Secrets};
use reqwest::Client;
use reqwest::header::{HeaderName, HeaderValue};
use tokio::sync::{Mutex, OnceCell};
use url::Url;
use zeroize::Zeroizing;

use super::wire::Auth;
use crate::block::{Block, variable_name};
use crate::executor::agent_cli::command::Program;
use crate::http::{self, Redirects};
use quorate_kernel::files;

/// Headers that the program sets, or that would change what a request means.
const RESERVED_HEADERS: &[&str] = &[
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "transfer-encoding",
    "accept",
    "accept-encoding",
    "connection",
    "te",
    "upgrade",
    "trailer",
];

/// A service and how it is spoken to.
#[derive(Debug)]
pub(super) struct Service {
    /// Without a slash at its end.
    pub(super) base_url: Url,
    pub(super) auth: Auth,
    pub(super) key: Option<Key>,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) ca: Option<PathBuf>,
    /// No byte for this long is a dead connection.
    pub(super) idle: Duration,
    /// Whether that counts only from the first byte of an answer on: a local server may read a long prompt in silence.
    pub(super) is_slow_to_start: bool,
    /// Made for the first call, so that its connections serve all of them.
    client: OnceCell<Client>,
}

/// The values of keys that the table omits.
pub(super) struct Defaults<'a> {
    pub(super) base_url: Url,
    pub(super) auth: Auth,
    /// The variables that may have the key.
    pub(super) variables: &'a [&'a str],
    pub(super) idle: Duration,
    pub(super) is_slow_to_start: bool,
}

impl Service {
    /// Reads the keys `auth`, `key`, `headers` and `ca` of a table. Paths are relative to `dir`.
    ///
    /// # Errors
    /// When one is unusable, or the key would be sent unencrypted to another machine.
    pub(super) fn parse(
        block: &Block<'_>,
        dir: &Path,
        defaults: Defaults<'_>,
    ) -> Result<Service, ConfigError> {
        let auth = block.word("auth", Auth::parse, &Auth::ALL.map(Auth::as_str))?.unwrap_or(defaults.auth);
        let source = Source::parse(block, dir)?.or_else(|| {
            let names = defaults.variables.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            (!names.is_empty()).then_some(Source::Variables(names))
        });
        check_cleartext(&defaults.base_url, source.is_some())?;
        Ok(Service {
            base_url: defaults.base_url,
            auth: if source.is_none() { Auth::None } else { auth },
            key: source.map(Key::new),
            headers: headers(block)?,
            ca: block.text("ca")?.map(|path| dir.join(path)),
            idle: defaults.idle,
            is_slow_to_start: defaults.is_slow_to_start,
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
        match &self.key {
            Some(key) => key.get().await.map(Some),
            None => Ok(None),
        }
    }

    /// Whether the next call has another key than this one, which was not accepted.
    pub(super) async fn renews_key(&self, refused: Option<&Secret>) -> bool {
        match (&self.key, refused) {
            (Some(key), Some(refused)) => key.forget(refused).await,
            _ => false,
        }
    }

    /// A text of the service without the key that was sent, or one that was sent before.
    pub(super) fn without_keys(&self, text: String, key: Option<&Secret>) -> String {
        let text = answer_without_key(text, key);
        match &self.key {
            Some(source) => source.without_refused(text),
            None => text,
        }
    }

    /// The name of the pool of its calls. A limit is a host's, so that no pool spans two. One that a table names joins all keys of
    /// its host; else each key has its own, by the place that it comes from.
    pub(super) fn pool(&self, name: Option<&str>) -> String {
        let host = http::host_and_port(&self.base_url);
        match name {
            Some(name) => format!("{name} at {host}"),
            None => match self.key.as_ref().and_then(|key| key.source().side_effect()) {
                Some(command) => format!("{host}, {}", command.what),
                None => format!("{host} with {}", self.describe_key()),
            },
        }
    }

    /// The key's source, for a person.
    pub(super) fn describe_key(&self) -> String {
        self.key.as_ref().map_or("no key".to_owned(), |key| key.source().describe())
    }

    /// Refuses a key that is known not to be there.
    ///
    /// # Errors
    /// As [`Source::check`].
    pub(super) fn check_key(&self) -> Result<(), ConfigError> {
        self.key.as_ref().map_or(Ok(()), |key| key.source().check())
    }

    /// The side effects of a call outside of this process.
    pub(super) fn side_effects(&self) -> Vec<SideEffect> {
        let mut what = format!("send texts to {}", self.base_url);
        if let Some(key) = &self.key {
            what.push_str(&format!(" with {}", key.source().describe()));
        }
        if let Some(ca) = &self.ca {
            what.push_str(&format!(", trusting the certificates of {}", ca.display()));
        }
        let mut all = vec![SideEffect { what, files: self.ca.iter().cloned().collect() }];
        all.extend(self.key.as_ref().and_then(|key| key.source().side_effect()));
        all
    }
}

fn headers(block: &Block<'_>) -> Result<Vec<(HeaderName, HeaderValue)>, ConfigError> {
    let Some(table) = block.table("headers")? else { return Ok(Vec::new()) };
    let read = |(name, value): (&String, &quorate_protocol::Json)| {
        let key = format!("headers.{name}");
        let lower = name.to_ascii_lowercase();
        if RESERVED_HEADERS.contains(&&*lower) {
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

/// Refuses to send a key without encryption to another machine.
fn check_cleartext(url: &Url, has_key: bool) -> Result<(), ConfigError> {
    match has_key && url.scheme() == "http" && !http::is_loopback(url) {
        true => Err(ConfigError::for_key("base_url", "`base_url` would send the key unencrypted")
            .with_help("use https://, or set `auth = \"none\"` and no `key`")),
        false => Ok(()),
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
    source: Source,
    value: Mutex<Option<Secret>>,
    /// Those that a service did not accept any more. They may be accepted elsewhere, so that no text may have them either.
    refused: Shared<Vec<Secret>>,
}

impl Key {
    pub(super) fn new(source: Source) -> Self {
        Key { source, value: Mutex::new(None), refused: Shared::default() }
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// The key.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub(super) async fn get(&self) -> Result<Secret, Failure> {
        let mut value = self.value.lock().await;
        if value.is_none() {
            *value = Some(self.source.read().await?);
        }
        value.clone().ok_or_else(|| Failure::never("the service has no key"))
    }

    /// Forgets a key that a service did not accept, if a command may print another. Says whether it did.
    pub(super) async fn forget(&self, refused: &Secret) -> bool {
        let Source::Command(_) = self.source else { return false };
        let mut value = self.value.lock().await;
        // Another call may have renewed it meanwhile.
        if value.as_ref() == Some(refused) {
            *value = None;
            self.refused().push(refused.clone());
        }
        true
    }

    /// The text of an answer or a message without the keys that were used before this one.
    pub(super) fn without_refused(&self, text: String) -> String {
        self.refused().iter().fold(text, |text, key| answer_without_key(text, Some(key)))
    }

    fn refused(&self) -> MutexGuard<'_, Vec<Secret>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
