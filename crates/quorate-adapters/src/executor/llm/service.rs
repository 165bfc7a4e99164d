//! A model service: where it is, how it is reached, and the key that it is sent. These settings are the same whatever is
//! asked of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_kernel::ports::executor::{ConfigError, SideEffect};
use reqwest::header::{HeaderName, HeaderValue};
use url::Url;

use super::key::{Key, Source};
use super::wire::Auth;
use crate::block::{Block, nearest, quoted_list};
use crate::http;

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
}

/// What counts where the table does not say.
pub(super) struct Defaults<'a> {
    pub(super) base_url: Url,
    pub(super) auth: Auth,
    /// The variables that may have the key.
    pub(super) variables: &'a [&'a str],
    pub(super) idle: Duration,
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
        let auth = block.text("auth")?.map(auth).transpose()?.unwrap_or(defaults.auth);
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
        })
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

    /// What asking does outside of this process.
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

fn auth(word: &str) -> Result<Auth, ConfigError> {
    Auth::read(word).ok_or_else(|| unknown_word("auth", word, &Auth::ALL.map(Auth::as_str)))
}

/// The refusal of a word that is none of those that a key may have.
pub(super) fn unknown_word(key: &str, word: &str, known: &[&str]) -> ConfigError {
    let help = match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it is one of {}", quoted_list(known)),
    };
    ConfigError::for_key(key, format!("`{key}` cannot be `{word}`")).with_help(help)
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
        .map_err(|error| refuse(&format!("is no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(refuse("must begin with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("holds a name or a password; a key goes into `key`"));
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
