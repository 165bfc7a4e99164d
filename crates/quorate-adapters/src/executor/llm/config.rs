//! The settings of an executor that asks a model over HTTP, read from its table.

use std::path::PathBuf;
use std::time::Duration;

use quorate_kernel::ports::executor::{ConfigError, Settings, SideEffect};
use reqwest::header::{HeaderName, HeaderValue};
use url::Url;

use super::key::{Key, Source};
use super::presets::{PRESETS, Preset};
use super::prices::{self, Price};
use super::wire::{Auth, Cache, Server, Wire};
use crate::block::{Block, nearest, quoted_list};
use crate::http;

/// The keys of the table.
const KEYS: &[&str] = &[
    "preset",
    "wire",
    "model",
    "base_url",
    "key",
    "auth",
    "headers",
    "ca",
    "schema",
    "max_tokens",
    "effort",
    "cache",
    "context",
    "idle",
    "pool",
    "concurrency",
    "price",
];

const DEFAULT_MAX_TOKENS: u32 = 16_000;
/// No byte for this long is a dead stream. Models that reason may pause for over a minute; comments count as life.
const DEFAULT_IDLE: Duration = Duration::from_secs(300);
/// Members of a council.
const DEFAULT_CONCURRENCY: usize = 4;

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

/// How a service is told of the answer's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaMode {
    /// With the schema, which the service holds the model to.
    Native,
    /// That it is some JSON object.
    Json,
    /// Not at all: the prompt says it.
    Prompt,
}

#[derive(Debug)]
pub(super) struct Config {
    pub(super) wire: Wire,
    pub(super) model: String,
    /// Without a slash at its end.
    pub(super) base_url: Url,
    pub(super) auth: Auth,
    pub(super) key: Option<Key>,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) ca: Option<PathBuf>,
    pub(super) schema: SchemaMode,
    pub(super) max_tokens: u32,
    pub(super) effort: Option<String>,
    pub(super) cache: Cache,
    pub(super) context: Option<u32>,
    pub(super) idle: Duration,
    pub(super) pool: String,
    pub(super) concurrency: usize,
    pub(super) server: Server,
    /// What the model costs; `None` where that is not known.
    pub(super) price: Option<Price>,
    /// Where the price comes from.
    pub(super) price_source: String,
}

impl Config {
    /// Reads the table.
    ///
    /// # Errors
    /// When a key is unknown or unusable, or there is neither an address nor a preset.
    pub(super) fn parse(settings: &Settings) -> Result<Config, ConfigError> {
        let block = Block::parse(&settings.block, KEYS)?;
        let preset = block.text("preset")?.map(preset).transpose()?;
        let wire = match (block.text("wire")?, preset) {
            (Some(word), _) => wire(word)?,
            (None, Some(preset)) => preset.wire,
            (None, None) => Wire::Chat,
        };
        let written = block.text("base_url")?;
        let base_url = match (written, preset) {
            (Some(written), _) => address(written)?,
            (None, Some(preset)) => preset_address(preset)?,
            (None, None) if block.has("wire") => address(wire.default_base_url())?,
            (None, None) => {
                let help = format!("set `preset` (one of {}), or `base_url` and `wire`", preset_names());
                return Err(ConfigError::for_block("nothing says where the model is").with_help(help));
            }
        };
        // A preset's own key goes to the preset's own host only.
        let own_host = written.is_none();
        let auth = match block.text("auth")? {
            Some(word) => auth(word)?,
            None => preset.map_or_else(|| wire.default_auth(), |preset| preset.auth),
        };
        let source = Source::parse(&block, &settings.dir)?.or_else(|| {
            let variables = preset.filter(|_| own_host).map_or(&[][..], |preset| preset.variables);
            let names = variables.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            (!names.is_empty()).then_some(Source::Variables(names))
        });
        let auth = if source.is_none() { Auth::None } else { auth };
        check_cleartext(&base_url, source.is_some())?;
        let model = block.text("model")?.or_else(|| preset.and_then(|preset| preset.default_model));
        let Some(model) = model else {
            let name = preset.map_or(&*settings.name, |preset| preset.name);
            return Err(ConfigError::for_key("model", "no model is named").with_help(format!(
                "write `{name}:MODEL`, or set `model`; `quorate models {name}` lists them"
            )));
        };
        let is_local = preset.is_some_and(|preset| preset.is_local) || http::is_loopback(&base_url);
        let (price, price_source) = match prices::parse(&block)? {
            Some(price) => (Some(price), "`price`".to_owned()),
            None if is_local => (Some(Price::FREE), "on this machine".to_owned()),
            None => (prices::shipped().price(model), format!("prices of {}", prices::shipped().date)),
        };
        let config = Config {
            wire,
            model: model.to_owned(),
            pool: match block.text("pool")? {
                Some(pool) => pool.to_owned(),
                None => http::host_and_port(&base_url),
            },
            base_url,
            auth,
            key: source.map(Key::new),
            headers: headers(&block)?,
            ca: block.text("ca")?.map(|path| settings.dir.join(path)),
            schema: schema(&block)?,
            max_tokens: whole(&block, "max_tokens")?.unwrap_or(DEFAULT_MAX_TOKENS),
            effort: block.text("effort")?.map(str::to_owned),
            cache: cache(&block)?,
            context: whole(&block, "context")?,
            idle: duration(&block, "idle")?.unwrap_or(DEFAULT_IDLE),
            concurrency: block.count("concurrency")?.unwrap_or(DEFAULT_CONCURRENCY),
            server: match (preset, wire) {
                (Some(preset), _) if own_host => preset.server,
                (_, Wire::Chat) if base_url_is_vendor(written, wire) => Server::Vendor,
                _ => Server::Compatible,
            },
            price,
            price_source,
        };
        config.check_effects(&block)?;
        Ok(config)
    }

    /// Refuses keys that the service would not be told of.
    fn check_effects(&self, block: &Block<'_>) -> Result<(), ConfigError> {
        let (wire, word) = (self.wire, self.wire.as_str());
        if self.context.is_some() && !wire.takes_context_tokens() {
            return Err(ConfigError::for_key("context", "`context` is for `wire = \"ollama\"`"));
        }
        if block.has("cache") && self.cache != Cache::Auto && !wire.has_cache_control(self.server) {
            let message = format!("a request of `{word}` to this server cannot say what is cached");
            return Err(
                ConfigError::for_key("cache", message).with_help("leave `cache` out, or set it to `auto`")
            );
        }
        if self.schema == SchemaMode::Json && !wire.has_json_mode() {
            let message = format!("`{word}` has no mode for any JSON object");
            return Err(ConfigError::for_key("schema", message).with_help("use `native` or `prompt`"));
        }
        Ok(())
    }

    /// What is asked and what it costs, in one line.
    pub(super) fn describe(&self) -> String {
        let key = self.key.as_ref().map_or("no key".to_owned(), |key| key.source().describe());
        let cost = match &self.price {
            Some(price) if *price == Price::FREE => "free".to_owned(),
            Some(price) => format!("{price} USD for a million tokens in and out ({})", self.price_source),
            None => "unknown price: set `price`".to_owned(),
        };
        format!("`{}` at {} ({}), {key}, {cost}", self.model, self.base_url, self.wire.as_str())
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

fn preset(name: &str) -> Result<&'static Preset, ConfigError> {
    Preset::find(name).ok_or_else(|| {
        let help = format!("the presets are {}", preset_names());
        ConfigError::for_key("preset", format!("there is no preset `{name}`")).with_help(help)
    })
}

fn preset_names() -> String {
    PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ")
}

fn wire(word: &str) -> Result<Wire, ConfigError> {
    Wire::read(word).ok_or_else(|| unknown_word("wire", word, &Wire::ALL.map(Wire::as_str)))
}

fn auth(word: &str) -> Result<Auth, ConfigError> {
    Auth::read(word).ok_or_else(|| unknown_word("auth", word, &Auth::ALL.map(Auth::as_str)))
}

fn schema(block: &Block<'_>) -> Result<SchemaMode, ConfigError> {
    match block.text("schema")? {
        None | Some("native") => Ok(SchemaMode::Native),
        Some("json") => Ok(SchemaMode::Json),
        Some("prompt") => Ok(SchemaMode::Prompt),
        Some(other) => Err(unknown_word("schema", other, &["native", "json", "prompt"])),
    }
}

fn cache(block: &Block<'_>) -> Result<Cache, ConfigError> {
    match block.text("cache")? {
        None | Some("auto") => Ok(Cache::Auto),
        Some("off") => Ok(Cache::Off),
        Some("5m") => Ok(Cache::Minutes),
        Some("1h") => Ok(Cache::Hour),
        Some(other) => Err(unknown_word("cache", other, &["off", "auto", "5m", "1h"])),
    }
}

fn unknown_word(key: &str, word: &str, known: &[&str]) -> ConfigError {
    let help = match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it is one of {}", quoted_list(known)),
    };
    ConfigError::for_key(key, format!("`{key}` cannot be `{word}`")).with_help(help)
}

fn whole(block: &Block<'_>, key: &str) -> Result<Option<u32>, ConfigError> {
    let count = block.count(key)?;
    count
        .map(|count| {
            u32::try_from(count).map_err(|_| ConfigError::for_key(key, format!("`{key}` is too large")))
        })
        .transpose()
}

fn duration(block: &Block<'_>, key: &str) -> Result<Option<Duration>, ConfigError> {
    let Some(written) = block.text(key)? else { return Ok(None) };
    quorate_manifest::duration::parse(written).map(Some).map_err(|error| {
        ConfigError::for_key(key, format!("`{written}`: {error}")).with_help("write it like \"30s\"")
    })
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
fn address(written: &str) -> Result<Url, ConfigError> {
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

fn preset_address(preset: &Preset) -> Result<Url, ConfigError> {
    let Some((variable, example)) = preset.host_variable else { return address(preset.base_url) };
    let Some(value) = http::read_variable(variable) else {
        let message =
            format!("the environment variable {variable}, which says where the service is, is not set");
        return Err(
            ConfigError::for_key("base_url", message).with_help(format!("export {variable}={example}"))
        );
    };
    address(&preset.base_url.replace("{}", value.trim().trim_end_matches('/')))
}

/// Refuses to send a key without encryption to another machine.
fn check_cleartext(url: &Url, has_key: bool) -> Result<(), ConfigError> {
    match has_key && url.scheme() == "http" && !http::is_loopback(url) {
        true => Err(ConfigError::for_key("base_url", "`base_url` would send the key unencrypted")
            .with_help("use https://, or set `auth = \"none\"` and no `key`")),
        false => Ok(()),
    }
}

/// Whether an address is the vendor's own.
fn base_url_is_vendor(written: Option<&str>, wire: Wire) -> bool {
    written.is_none_or(|written| written.trim_end_matches('/') == wire.default_base_url())
}
