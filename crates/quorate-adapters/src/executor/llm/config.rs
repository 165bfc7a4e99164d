//! The settings of an executor that asks a model over HTTP, read from its table.

use std::sync::atomic::{AtomicU64, Ordering};

use quorate_diagnostics::text::shell_quoted;
use quorate_kernel::budget::{fewest_tokens, most_tokens};
use quorate_kernel::ports::executor::{ConfigError, Settings};
use quorate_protocol::Json;
use serde_json::Map;
use url::Url;

use super::decide::api::Api;
use super::fault::any_of;
use super::schema::Dialect;
use super::service::{Asked, KNOWN, Service, ServicePreset, address};
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
    "tokens_field",
    "usage",
    "system",
    "extra",
    "effort",
    "cache",
    "context",
    "idle",
    "pool",
    "concurrency",
    "price",
];

const DEFAULT_MAX_TOKENS: u32 = 16_000;
/// Has room for an answer, and takes a small computer a few minutes.
const LOCAL_MAX_TOKENS: u32 = 4_000;

/// The names that servers have for the cap on output tokens.
pub(super) const TOKENS_FIELDS: [&str; 4] =
    ["max_completion_tokens", "max_tokens", "max_output_tokens", "max_new_tokens"];

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

quorate_manifest::words!(SchemaMode { Native = "native", Json = "json", Prompt = "prompt" });

#[derive(Debug)]
pub(super) struct Config {
    pub(super) wire: Wire,
    /// The dialect of JSON Schema that its server takes.
    pub(super) dialect: Dialect,
    pub(super) schema: SchemaMode,
    pub(super) max_tokens: u32,
    /// The name of the cap on output tokens in a request; `None` if the wire has only one.
    pub(super) tokens_field: Option<String>,
    /// Whether a stream is asked for its usage.
    pub(super) usage: bool,
    /// Whether the host's instruction is a message of its own.
    pub(super) system: bool,
    /// What is added to the body of each request.
    pub(super) extra: Map<String, Json>,
    pub(super) effort: Option<String>,
    pub(super) cache: Cache,
    pub(super) context: Option<u32>,
    pub(super) server: Server,
    /// The longest prompt that the server read, in tokens.
    longest: AtomicU64,
}

impl Config {
    /// Reads the table.
    ///
    /// # Errors
    /// When a key is unknown or unusable, or there is neither an address nor a preset.
    pub(super) fn parse(settings: &Settings) -> Result<(Service, Config), ConfigError> {
        let block = Block::parse(&settings.block, KEYS)
            .map_err(|refused| name_right_keys(refused, &settings.block))?;
        let preset = ServicePreset::of(&block)?;
        // The wires of decision models are read elsewhere, and may be meant.
        let words = [&Wire::ALL.map(Wire::as_str)[..], &Api::ALL.map(Api::as_str)].concat();
        let wire = block.word("wire", Wire::parse, &words)?;
        let has_wire = wire.is_some();
        let wire = wire.or(preset.map(|preset| preset.wire)).unwrap_or_default();
        let own_host = preset.filter(|_| !block.has("base_url"));
        let base_url = match (block.text("base_url")?, preset) {
            (Some(written), _) => check_path(address(written)?, wire)?,
            (None, Some(preset)) => preset.address()?,
            (None, None) if has_wire => address(wire.default_base_url())?,
            (None, None) => {
                block.text("model")?.map_or(Ok(()), |model| check_model(model, None))?;
                let names = ServicePreset::names();
                let help = format!("set `preset` (one of {names}), or `base_url` and `wire`");
                return Err(ConfigError::for_block("nothing says where the model is").with_help(help));
            }
        };
        let default_model = preset.and_then(|preset| preset.default_model.as_deref());
        let model = block.text("model")?.or(default_model);
        let model = model.ok_or_else(|| no_model(&settings.name, &base_url, preset, own_host))?;
        preset.map_or(Ok(()), |preset| check_model(model, Some(preset)))?;
        let server = match own_host {
            Some(preset) => preset.server,
            None if wire == Wire::Chat && is_openai(&base_url) => Server::Vendor,
            None => Server::Compatible,
        };
        let auth = wire.default_auth();
        let asked = Asked { base_url, preset, auth, model, is_whole: false, output_price: None };
        let service = Service::parse(&block, settings, asked)?;
        let max_tokens = if service.is_small { LOCAL_MAX_TOKENS } else { DEFAULT_MAX_TOKENS };
        let schema = block.word("schema", SchemaMode::parse, &SchemaMode::ALL.map(SchemaMode::as_str))?;
        let cache = block.word("cache", Cache::parse, &Cache::ALL.map(Cache::as_str))?;
        let config = Config {
            wire,
            dialect: wire.dialect(http::is_local(&service.base_url)),
            schema: schema.unwrap_or(SchemaMode::Native),
            max_tokens: whole(&block, "max_tokens")?.unwrap_or(max_tokens),
            tokens_field: tokens_field(&block, wire, server)?,
            usage: !block.has("usage") || block.flag("usage")?,
            system: !block.has("system") || block.flag("system")?,
            extra: block.table("extra")?.cloned().unwrap_or_default(),
            effort: block.text("effort")?.map(str::to_owned),
            cache: cache.unwrap_or(Cache::Auto),
            context: whole(&block, "context")?,
            server,
            longest: AtomicU64::new(0),
        };
        config.check_effects(&block)?;
        Ok((service, config))
    }

    /// Refuses keys that the service would not be told of.
    fn check_effects(&self, block: &Block<'_>) -> Result<(), ConfigError> {
        check_extra(&self.extra)?;
        let (wire, word) = (self.wire, self.wire.as_str());
        let is_twice = |name: &&String| self.extra.contains_key(*name);
        let (key, message, help) = if block.has("usage") && wire != Wire::Chat {
            let message = format!("`usage` is for `chat`: with `{word}` a response has its usage unasked");
            ("usage", message, "remove `usage`")
        } else if let Some(name) = self.tokens_field.as_ref().filter(is_twice) {
            let message = format!("`extra.{name}` cannot be set: the key `max_tokens` sets it");
            ("extra", message, "remove it from `extra`")
        } else if self.context.is_some() && !matches!(wire, Wire::Chat | Wire::Ollama) {
            let message = format!(
                "`context` is for `chat` and `ollama`: with `{word}` a service says itself what does not fit"
            );
            ("context", message, "remove `context`")
        } else if self.cache != Cache::Auto && !wire.has_cache_control(self.server) {
            let message = format!("a request of `{word}` to this server cannot say what is cached");
            ("cache", message, "leave `cache` out, or set it to `auto`")
        } else if self.schema == SchemaMode::Json && !wire.has_json_mode() {
            ("schema", format!("`{word}` has no mode for any JSON object"), "use `native` or `prompt`")
        } else {
            return Ok(());
        };
        Err(ConfigError::for_key(key, message).with_help(help))
    }
}

/// Prompts with no more words are not judged: they fit in every context.
const SHORT: u64 = 500;

/// No server has a smaller context, in tokens.
const LEAST_CONTEXT: u64 = 256;

/// Some local servers cut a long prompt silently, which shows in the tokens that they report.
impl Config {
    /// Refuses a prompt that does not fit in any tokenizer.
    ///
    /// # Errors
    /// The reason, for a person.
    pub(super) fn check_fits(&self, prompt: &str) -> Result<(), String> {
        let fewest = fewest_tokens(prompt);
        match self.context.filter(|context| fewest > u64::from(*context)) {
            Some(context) => {
                Err(format!("the prompt has {fewest} tokens or more, and `context` is {context}"))
            }
            None => Ok(()),
        }
    }

    /// Refuses the answer to a prompt that was cut. `tokens_in` is what the server says that it read.
    ///
    /// # Errors
    /// The reason, for a person.
    pub(super) fn check_read(&self, prompt: &str, tokens_in: Option<u64>) -> Result<(), String> {
        let help = match self.wire {
            Wire::Ollama => "set a larger `context`, or choose a model with one",
            Wire::Chat => {
                "raise its context. If it counts only what is not in its cache, set `context` to the size of its context"
            }
            Wire::Messages | Wire::Responses | Wire::Gemini => return Ok(()),
        };
        let fewest = fewest_tokens(prompt);
        // Such a small number is not the size of a context: the server counts only tokens outside of its cache.
        let least = (fewest / 20).clamp(1, LEAST_CONTEXT);
        let Some(read) = tokens_in.filter(|read| *read >= least) else { return Ok(()) };
        let longest = self.longest.fetch_max(read, Ordering::Relaxed).max(read);
        // The settings vouch for a context of `chat`. Ollama's is what the program asks for, and not what the model has.
        let needed = most_tokens(prompt) + u64::from(self.max_tokens);
        let surely_fits =
            self.wire == Wire::Chat && self.context.is_some_and(|context| needed <= context.into());
        // A server that read a longer prompt does not cut this one.
        if fewest <= longest.max(SHORT) || surely_fits {
            return Ok(());
        }
        Err(format!(
            "the server read {read} tokens of a prompt that has {fewest} or more: it cut the prompt; {help}"
        ))
    }
}

/// A similar address, for the message of a call that found no API at this one.
pub(super) fn other_address(wire: Wire, base_url: &Url) -> Option<String> {
    let url = base_url.as_str().trim_end_matches('/');
    match wire {
        Wire::Chat | Wire::Responses if base_url.path() == "/" => Some(format!("{url}/v1")),
        Wire::Messages | Wire::Ollama => url.strip_suffix("/v1").map(str::to_owned),
        _ => None,
    }
}

/// The refusal of a table that names no model. `own_host` is the preset whose address counts.
fn no_model(
    name: &str,
    base_url: &Url,
    preset: Option<&ServicePreset>,
    own_host: Option<&ServicePreset>,
) -> ConfigError {
    let lacks_path = name.contains("://") && base_url.path() == "/";
    let name = format!("{}{}", name.trim_end_matches('/'), if lacks_path { "/v1" } else { "" });
    let write = match preset {
        _ if name.contains("://") => format!("write `{name}#MODEL`"),
        Some(preset) => format!("write `{}:MODEL`, or set `model`", preset.name),
        None => format!("set `model` in `[executors.{name}]`"),
    };
    let list = shell_quoted(own_host.map_or(&name, |preset| &preset.name));
    let help = format!("{write}; `quorate models {list}` lists the models");
    ConfigError::for_key("model", "no model is named").with_help(help)
}

/// Adds the right form to a refusal of keys that other tools have. Values are not repeated: one may be a key.
fn name_right_keys(refused: ConfigError, keys: &Map<String, Json>) -> ConfigError {
    let preset = |key: &str| keys.get(key).and_then(Json::as_str).and_then(ServicePreset::find);
    let variable = preset("preset").and_then(|preset| preset.variables.first());
    let right = |key: &String| {
        let plain = key.replace(['-', '_'], "").to_ascii_lowercase();
        let (form, _) = KNOWN.synonyms.iter().find(|(_, names)| any_of(names, |name| name == plain))?;
        let form = form.replace("{key}", variable.map_or("MY_KEY", String::as_str)).replace("{written}", key);
        let form = form.replace("{preset}", preset(key).map_or("NAME", |preset| &preset.name));
        Some(format!("write `{form}` in place of `{key}`"))
    };
    let unknown = keys.keys().filter(|key| !KEYS.contains(&key.as_str()));
    let rights: Vec<String> = unknown.filter_map(right).collect();
    if rights.is_empty() { refused } else { refused.with_help(rights.join("; ")) }
}

/// Refuses a model with the name of a service before it, as `--executor` takes it and other tools write it. Gateways have
/// models such as `openai/gpt-5.5`.
fn check_model(model: &str, preset: Option<&ServicePreset>) -> Result<(), ConfigError> {
    let Some((service, name)) = model.split_once([':', '/']) else { return Ok(()) };
    let Some(named) = ServicePreset::find(service).filter(|_| !name.is_empty()) else { return Ok(()) };
    let has_colon = model[service.len()..].starts_with(':');
    let is_own = preset.is_some_and(|preset| preset.name == named.name);
    let is_refused = preset.is_none_or(|preset| match is_own {
        true => has_colon || preset.server == Server::Vendor || preset.is_local,
        false => has_colon && preset.server == Server::Vendor && !preset.is_local,
    });
    let help = match is_own {
        true => format!("write `{name}`, the name of the model alone"),
        false => format!("write `preset = \"{}\"` and `model = \"{name}\"`", named.name),
    };
    let message = format!("`model` is `{model}`, with the name of a service before the model's");
    if is_refused { Err(ConfigError::for_key("model", message).with_help(help)) } else { Ok(()) }
}

/// Refuses an address that ends with the path that the API adds to it.
fn check_path(url: Url, wire: Wire) -> Result<Url, ConfigError> {
    let ends: &[&str] = match wire {
        Wire::Messages => &["/v1/messages", "/messages"],
        Wire::Ollama => &["/api/chat", "/api/generate", "/api/tags"],
        _ => &["/chat/completions", "/completions", "/responses", "/models", "/v1/messages"],
    };
    let written = url.as_str().trim_end_matches('/');
    let Some(base) = ends.iter().find_map(|end| written.strip_suffix(end)) else { return Ok(url) };
    // Most servers have the API there.
    let is_host = matches!(wire, Wire::Chat | Wire::Responses) && base.matches('/').count() == 2;
    let v1 = if is_host { "/v1" } else { "" };
    Err(ConfigError::for_key("base_url", "`base_url` ends with the path of the API, which Quorate adds")
        .with_help(format!("write `base_url = \"{base}{v1}\"`")))
}

/// The name of the cap on output tokens: that of the key, else the one that the server knows.
fn tokens_field(block: &Block<'_>, wire: Wire, server: Server) -> Result<Option<String>, ConfigError> {
    let Some(name) = block.text("tokens_field")? else {
        return Ok(wire.tokens_field(server).map(str::to_owned));
    };
    let refused =
        |message: String, help: String| Err(ConfigError::for_key("tokens_field", message).with_help(help));
    if !matches!(wire, Wire::Chat | Wire::Responses) {
        let word = wire.as_str();
        let message =
            format!("`tokens_field` is for `chat` and `responses`: with `{word}` the field has one name");
        return refused(message, "remove `tokens_field`".to_owned());
    }
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    // Another part of the request would be lost.
    let is_other = ["text", "store", "reasoning"].contains(&name)
        || !name.contains("token") && check_extra(&Map::from_iter([(name.to_owned(), Json::Null)])).is_err();
    if !is_name || is_other {
        let message =
            format!("`tokens_field` cannot be `{name}`: it is the name of the most tokens of an answer");
        return refused(message, format!("for example `{}`", TOKENS_FIELDS.join("` or `")));
    }
    Ok(Some(name.to_owned()))
}

/// Whether an address is one of OpenAI's, or of Azure's for the same models.
fn is_openai(base_url: &Url) -> bool {
    const ENDS: &str =
        ".api.openai.com|.openai.azure.com|.cognitiveservices.azure.com|.services.ai.azure.com";
    let host = base_url.host_str().unwrap_or_default();
    host == "api.openai.com" || any_of(ENDS, |end| host.ends_with(end))
}

fn whole(block: &Block<'_>, key: &str) -> Result<Option<u32>, ConfigError> {
    let count = block.count(key)?.map(u32::try_from).transpose();
    count.map_err(|_| ConfigError::for_key(key, format!("`{key}` is too large")))
}

/// Refuses entries of `extra` that other keys set, or with which an answer could not be read.
///
/// # Errors
/// Names the entry, and the key that sets it.
pub(super) fn check_extra(extra: &Map<String, Json>) -> Result<(), ConfigError> {
    check_entries(extra, "", "extra")
}

fn check_entries(entries: &Map<String, Json>, above: &str, shown: &str) -> Result<(), ConfigError> {
    for (key, value) in entries {
        let path = format!("{above}{}", key.replace('_', "").to_lowercase());
        let (inside, shown) = (format!("{path}."), format!("{shown}.{key}"));
        // Another value would replace the whole table.
        let is_reserved =
            |reserved: &str| reserved == path || (reserved.starts_with(&inside) && !value.is_object());
        if let Some((why, _)) = KNOWN.reserved.iter().find(|(_, paths)| any_of(paths, is_reserved)) {
            return Err(ConfigError::for_key("extra", format!("`{shown}` cannot be set: {why}")));
        }
        if let Json::Object(entries) = value {
            check_entries(entries, &inside, &shown)?;
        }
    }
    Ok(())
}

/// The first preset that can be asked with nothing but its name, as its variable is set; with that variable.
pub fn with_key(is_set: impl Fn(&str) -> bool) -> Option<(&'static str, &'static str)> {
    // A decision model cannot be a member of a council.
    let is_ready = |preset: &&ServicePreset| {
        preset.default_model.is_some() && preset.host_variable.is_none() && preset.decides.is_none()
    };
    let ready = KNOWN.preset.iter().filter(is_ready);
    let mut names = ready.flat_map(|preset| preset.variables.iter().map(|name| (&*preset.name, &**name)));
    names.find(|(_, name)| is_set(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_before_the_first_byte_counts_if_idle_is_set_or_the_server_is_remote() {
        let waits = |more: &str, address: &str| {
            let mut block = serde_json::json!({"base_url": address, "model": "m"});
            if !more.is_empty() {
                block["idle"] = more.into();
            }
            let settings = crate::block::test_settings(std::path::Path::new("/"), &block);
            Config::parse(&settings).unwrap().0.is_slow_to_start
        };
        assert!(waits("", "http://localhost:8080/v1") && waits("", "http://10.0.0.9:8080/v1"));
        assert!(!waits("30s", "http://localhost:8080/v1") && !waits("", "https://api.example.com/v1"));
    }

    #[test]
    fn addresses_of_openai_and_azure_get_the_newer_name_of_the_cap() {
        let name = |block: serde_json::Value| {
            let settings = crate::block::test_settings(std::path::Path::new("/"), &block);
            Config::parse(&settings).unwrap().1.tokens_field
        };
        let at =
            |address: &str| name(serde_json::json!({"wire": "chat", "base_url": address, "model": "o3"}));
        for address in [
            "https://api.openai.com/v1",
            "https://api.openai.com/v1/",
            "https://eu.api.openai.com/v1",
            "https://mine.openai.azure.com/openai/v1",
            "https://mine.services.ai.azure.com/openai/v1",
        ] {
            assert_eq!(at(address).as_deref(), Some("max_completion_tokens"), "{address}");
        }
        for address in [
            "https://gw.example.com/v1",
            "http://localhost:8080/v1",
            "https://api.openai.com.evil.example/v1",
        ] {
            assert_eq!(at(address).as_deref(), Some("max_tokens"), "{address}");
        }
        assert_eq!(
            name(serde_json::json!({"preset": "openai", "wire": "chat"})).as_deref(),
            Some("max_completion_tokens")
        );
        assert_eq!(name(serde_json::json!({"preset": "openai"})).as_deref(), Some("max_output_tokens"));
        assert_eq!(name(serde_json::json!({"preset": "anthropic"})), None);
    }

    #[test]
    fn presets_are_sorted_and_one_with_a_key_is_named() {
        assert!(KNOWN.preset.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert_eq!(with_key(|name| name == "GOOGLE_API_KEY"), Some(("gemini", "GOOGLE_API_KEY")));
        assert_eq!(with_key(|_| true), Some(("anthropic", "ANTHROPIC_API_KEY")));
        // Those also need a model.
        assert_eq!(with_key(|name| name == "OPENROUTER_API_KEY" || name == "AZURE_OPENAI_API_KEY"), None);
    }

    /// A server, and the size of its context.
    fn server(wire: Wire, context: Option<u32>) -> Config {
        let address = "https://h.example/v1";
        let mut block = serde_json::json!({"wire": wire.as_str(), "base_url": address, "model": "m", "max_tokens": 1_000});
        if let Some(context) = context {
            block["context"] = context.into();
        }
        Config::parse(&crate::block::test_settings(std::path::Path::new("/"), &block)).unwrap().1
    }

    #[test]
    fn a_number_below_that_of_words_is_of_a_cut_prompt() {
        let prompt = "word ".repeat(4_000);
        for wire in [Wire::Chat, Wire::Ollama] {
            let reader = server(wire, None);
            assert!(reader.check_read(&prompt, Some(2_048)).unwrap_err().contains("it cut the prompt"));
            // The same server gives another number for a prompt that it reads whole.
            assert_eq!(reader.check_read(&prompt[..5_000], Some(1_010)), Ok(()));
            assert!(reader.check_read(&prompt, Some(2_048)).is_err());
        }
        for (wire, read) in [(Wire::Chat, None), (Wire::Chat, Some(0)), (Wire::Messages, Some(12))] {
            assert_eq!(server(wire, None).check_read(&prompt, read), Ok(()));
        }
        assert_eq!(server(Wire::Chat, None).check_read("word ", Some(1)), Ok(()));
    }

    #[test]
    fn a_text_with_few_words_or_a_server_that_counts_without_its_cache_is_not_cut() {
        let reader = server(Wire::Chat, None);
        for text in ["=".repeat(60_000), "w".repeat(60_000), format!("{}\n", "- ".repeat(40)).repeat(500)] {
            assert_eq!(reader.check_read(&text, Some(900)), Ok(()));
        }
        let prompt = "word ".repeat(4_000);
        // The first call fills the cache, the second is read from it.
        assert_eq!(reader.check_read(&prompt, Some(4_100)), Ok(()));
        assert_eq!(reader.check_read(&prompt, Some(30)), Ok(()));
        // A cache that was full before, and a person who knows the context.
        let told = |context| server(Wire::Chat, Some(context)).check_read(&prompt, Some(300));
        assert_eq!(told(16_384), Ok(()));
        assert!(told(8_192).is_err(), "it may not fit");
        assert!(server(Wire::Ollama, Some(16_384)).check_read(&prompt, Some(300)).is_err());
        // Fewer tokens than any context has.
        for (read, is_cut) in [(12, false), (199, false), (200, true)] {
            let answer = server(Wire::Ollama, None).check_read(&prompt, Some(read));
            assert_eq!(answer.is_err(), is_cut, "{read}");
        }
    }

    #[test]
    fn what_cannot_fit_is_not_sent() {
        let reader = server(Wire::Chat, Some(2_048));
        assert!(reader.check_fits(&"word ".repeat(2_049)).unwrap_err().contains("`context` is 2048"));
        assert_eq!(reader.check_fits(&"word ".repeat(2_000)), Ok(()));
        assert_eq!(server(Wire::Chat, None).check_fits(&"word ".repeat(99_999)), Ok(()));
    }
}
