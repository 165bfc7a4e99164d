//! The settings of an executor that asks a model over HTTP, read from its table.

use std::path::PathBuf;
use std::time::Duration;

use quorate_kernel::ports::executor::{ConfigError, Settings};
use url::Url;

use super::presets::{PRESETS, Preset};
use super::prices::{self, Price, PriceTable};
use super::service::{Defaults, Service, address, unknown_word};
use super::wire::{Cache, Server, Wire};
use crate::block::Block;
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
pub(super) const DEFAULT_CONCURRENCY: usize = 4;

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
    pub(super) service: Service,
    pub(super) schema: SchemaMode,
    pub(super) max_tokens: u32,
    pub(super) effort: Option<String>,
    pub(super) cache: Cache,
    pub(super) context: Option<u32>,
    pub(super) pool: String,
    pub(super) concurrency: usize,
    pub(super) server: Server,
    /// What the model costs; `None` where that is not known.
    pub(super) price: Option<Price>,
    /// Where the price comes from.
    pub(super) price_source: String,
    /// Prices that come before those that ship, and their file.
    pub(super) own_prices: Option<PriceTable>,
    pub(super) price_file: Option<PathBuf>,
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
        let variables = preset.filter(|_| own_host).map_or(&[][..], |preset| preset.variables);
        let auth = preset.map_or_else(|| wire.default_auth(), |preset| preset.auth);
        let idle = duration(&block, "idle")?.unwrap_or(DEFAULT_IDLE);
        let service = Service::parse(&block, &settings.dir, Defaults { base_url, auth, variables, idle })?;
        let model = block.text("model")?.or_else(|| preset.and_then(|preset| preset.default_model));
        let Some(model) = model else {
            let name = preset.map_or(&*settings.name, |preset| preset.name);
            return Err(ConfigError::for_key("model", "no model is named").with_help(format!(
                "write `{name}:MODEL`, or set `model`; `quorate models {name}` lists them"
            )));
        };
        let is_local = preset.is_some_and(|preset| preset.is_local) || http::is_loopback(&service.base_url);
        let own_prices = settings.prices.as_deref().map(prices::read).transpose()?;
        let (price, price_source) = match prices::parse(&block)? {
            Some(price) => (Some(price), "`price`".to_owned()),
            None if is_local => (Some(Price::FREE), "on this machine".to_owned()),
            None => match own_prices.as_ref().and_then(|own| Some((own.price(model)?, &own.date))) {
                Some((price, date)) => (Some(price), prices::source("`budget.prices`", date)),
                None => (prices::shipped().price(model), prices::source("prices", &prices::shipped().date)),
            },
        };
        let config = Config {
            wire,
            model: model.to_owned(),
            pool: match block.text("pool")? {
                Some(pool) => pool.to_owned(),
                None => http::host_and_port(&service.base_url),
            },
            service,
            schema: schema(&block)?,
            max_tokens: whole(&block, "max_tokens")?.unwrap_or(DEFAULT_MAX_TOKENS),
            effort: block.text("effort")?.map(str::to_owned),
            cache: cache(&block)?,
            context: whole(&block, "context")?,
            concurrency: block.count("concurrency")?.unwrap_or(DEFAULT_CONCURRENCY),
            server: match (preset, wire) {
                (Some(preset), _) if own_host => preset.server,
                (_, Wire::Chat) if base_url_is_vendor(written, wire) => Server::Vendor,
                _ => Server::Compatible,
            },
            price,
            price_source,
            own_prices,
            price_file: settings.prices.clone(),
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
        let cost = match &self.price {
            Some(price) if *price == Price::FREE => "free".to_owned(),
            Some(price) => format!("{price} USD for a million tokens in and out ({})", self.price_source),
            None => "unknown price: set `price`".to_owned(),
        };
        format!(
            "`{}` at {} ({}), {}, {cost}",
            self.model,
            self.service.base_url,
            self.wire.as_str(),
            self.service.describe_key()
        )
    }

    /// The price of a model: that of the workspace's own file, else of the table that ships.
    pub(super) fn price_of(&self, model: &str) -> Option<Price> {
        let own = self.own_prices.as_ref().and_then(|own| own.price(model));
        own.or_else(|| prices::shipped().price(model))
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

/// Whether an address is the vendor's own.
fn base_url_is_vendor(written: Option<&str>, wire: Wire) -> bool {
    written.is_none_or(|written| written.trim_end_matches('/') == wire.default_base_url())
}
