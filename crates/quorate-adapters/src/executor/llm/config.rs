//! The settings of an executor that asks a model over HTTP, read from its table.
//! The presets name services with their addresses, wires and variables of keys.

use std::time::Duration;

use quorate_diagnostics::text::shell_quoted;
use quorate_kernel::ports::executor::{ConfigError, Settings};
use quorate_protocol::Json;
use serde_json::Map;
use url::Url;

use super::adapt;
use super::decide::api::Api;
use super::prices::Priced;
use super::schema::Dialect;
use super::service::{Defaults, Service, address};
use super::wire::{Auth, Cache, Server, Wire};
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
/// No byte for this long is a dead stream. Models that reason may pause for over a minute; comments count as life.
const DEFAULT_IDLE: Duration = Duration::from_secs(300);
/// Members of a council.
pub(super) const DEFAULT_CONCURRENCY: usize = 4;
/// Most local servers have one slot, and calls that wait for it have no byte to send.
pub(super) const LOCAL_CONCURRENCY: usize = 1;

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
    pub(super) model: String,
    pub(super) service: Service,
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
    pub(super) pool: String,
    pub(super) concurrency: usize,
    pub(super) server: Server,
    pub(super) price: Priced,
}

impl Config {
    /// The dialect of JSON Schema that its server takes.
    pub(super) fn dialect(&self) -> Dialect {
        self.wire.dialect(http::is_local(&self.service.base_url))
    }

    /// Reads the table.
    ///
    /// # Errors
    /// When a key is unknown or unusable, or there is neither an address nor a preset.
    pub(super) fn parse(settings: &Settings) -> Result<Config, ConfigError> {
        let block = Block::parse(&settings.block, KEYS)
            .map_err(|refused| name_right_keys(refused, &settings.block))?;
        let preset = block.text("preset")?.map(preset).transpose()?;
        // The wires of decision models are read elsewhere, and may be meant.
        let words: Vec<&str> =
            Wire::ALL.map(Wire::as_str).into_iter().chain(Api::ALL.map(Api::as_str)).collect();
        let wire = match (block.word("wire", Wire::parse, &words)?, preset) {
            (Some(wire), _) => wire,
            (None, Some(preset)) => preset.wire,
            (None, None) => Wire::Chat,
        };
        let written = block.text("base_url")?;
        let base_url = match (written, preset) {
            (Some(written), _) => {
                let url = address(written)?;
                check_path(&url, wire)?;
                url
            }
            (None, Some(preset)) => preset_address(preset)?,
            (None, None) if block.has("wire") => address(wire.default_base_url())?,
            (None, None) => {
                block.text("model")?.map_or(Ok(()), |model| check_model(model, None))?;
                let help = format!("set `preset` (one of {}), or `base_url` and `wire`", preset_names());
                return Err(ConfigError::for_block("nothing says where the model is").with_help(help));
            }
        };
        // A preset's own key goes to the preset's own host only.
        let own_host = written.is_none();
        let variables = preset.filter(|_| own_host).map_or(&[][..], |preset| preset.variables);
        let auth = preset.map_or_else(|| wire.default_auth(), |preset| preset.auth);
        let idle = block.duration("idle")?;
        let is_preset_local = preset.is_some_and(|preset| preset.is_local);
        let is_slow = is_preset_local || http::is_local(&base_url);
        let defaults = Defaults {
            base_url,
            auth,
            variables,
            idle: idle.unwrap_or(DEFAULT_IDLE),
            is_slow_to_start: is_slow && idle.is_none(),
        };
        let service = Service::parse(&block, &settings.dir, defaults)?;
        let model = block.text("model")?.or_else(|| preset.and_then(|preset| preset.default_model));
        let Some(model) = model else {
            let lacks_path = settings.name.contains("://") && service.base_url.path() == "/";
            let v1 = if lacks_path { "/v1" } else { "" };
            let name = &*format!("{}{v1}", settings.name.trim_end_matches('/'));
            let write = match preset {
                _ if name.contains("://") => format!("write `{name}#MODEL`"),
                Some(preset) => format!("write `{}:MODEL`, or set `model`", preset.name),
                None => format!("set `model` in `[executors.{name}]`"),
            };
            let list = shell_quoted(preset.filter(|_| own_host).map_or(name, |preset| preset.name));
            let help = format!("{write}; `quorate models {list}` lists the models");
            return Err(ConfigError::for_key("model", "no model is named").with_help(help));
        };
        preset.map_or(Ok(()), |preset| check_model(model, Some(preset)))?;
        let is_local = is_preset_local || http::is_loopback(&service.base_url);
        let server = match (preset, wire) {
            (Some(preset), _) if own_host => preset.server,
            (_, Wire::Chat) if base_url_is_vendor(written, wire) => Server::Vendor,
            _ => Server::Compatible,
        };
        let price = Priced::of(&block, model, is_local, settings.prices.as_deref(), None)?;
        let config = Config {
            wire,
            model: model.to_owned(),
            pool: service.pool(block.text("pool")?),
            service,
            schema: block
                .word("schema", SchemaMode::parse, &SchemaMode::ALL.map(SchemaMode::as_str))?
                .unwrap_or(SchemaMode::Native),
            max_tokens: whole(&block, "max_tokens")?.unwrap_or(if is_slow {
                LOCAL_MAX_TOKENS
            } else {
                DEFAULT_MAX_TOKENS
            }),
            tokens_field: tokens_field(&block, wire, server, written)?,
            usage: !block.has("usage") || block.flag("usage")?,
            system: !block.has("system") || block.flag("system")?,
            extra: block.table("extra")?.cloned().unwrap_or_default(),
            effort: block.text("effort")?.map(str::to_owned),
            cache: block.word("cache", Cache::parse, &Cache::ALL.map(Cache::as_str))?.unwrap_or(Cache::Auto),
            context: whole(&block, "context")?,
            concurrency: block.count("concurrency")?.unwrap_or(if is_slow {
                LOCAL_CONCURRENCY
            } else {
                DEFAULT_CONCURRENCY
            }),
            server,
            price,
        };
        config.check_effects(&block)?;
        Ok(config)
    }

    /// Refuses keys that the service would not be told of.
    fn check_effects(&self, block: &Block<'_>) -> Result<(), ConfigError> {
        let (wire, word) = (self.wire, self.wire.as_str());
        if block.has("usage") && wire != Wire::Chat {
            let message = format!("`usage` is for `chat`: with `{word}` a response has its usage unasked");
            return Err(ConfigError::for_key("usage", message).with_help("remove `usage`"));
        }
        adapt::check_extra(&self.extra)?;
        if let Some(name) = self.tokens_field.as_ref().filter(|name| self.extra.contains_key(*name)) {
            let message = format!("`extra.{name}` cannot be set: the key `max_tokens` sets it");
            return Err(ConfigError::for_key("extra", message));
        }
        if self.context.is_some() && !matches!(wire, Wire::Chat | Wire::Ollama) {
            let message = format!(
                "`context` is for `chat` and `ollama`: with `{word}` a service says itself what does not fit"
            );
            return Err(ConfigError::for_key("context", message));
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

    /// A similar address, for the message of a call that found no API at this one.
    pub(super) fn other_address(&self) -> Option<String> {
        let (url, path) = (self.service.base_url.as_str(), self.service.base_url.path());
        let url = url.trim_end_matches('/');
        match self.wire {
            Wire::Chat | Wire::Responses if path.trim_matches('/').is_empty() => Some(format!("{url}/v1")),
            Wire::Messages | Wire::Ollama => url.strip_suffix("/v1").map(str::to_owned),
            _ => None,
        }
    }

    /// What is asked and what it costs, in one line.
    pub(super) fn describe(&self) -> String {
        let cost = self.price.describe();
        format!(
            "`{}` at {} ({}), {}, {cost}",
            self.model,
            self.service.base_url,
            self.wire.as_str(),
            self.service.describe_key()
        )
    }
}

pub(super) fn preset(name: &str) -> Result<&'static ServicePreset, ConfigError> {
    ServicePreset::find(name).ok_or_else(|| {
        let help = format!("the presets are {}", preset_names());
        ConfigError::for_key("preset", format!("unknown preset `{name}`")).with_help(help)
    })
}

fn preset_names() -> String {
    PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ")
}

/// Keys that other tools have, without `-` and `_` and in lower case, and what to write here.
const SYNONYMS: &[(&str, &str)] = &[
    ("apikey|apitoken|token|secret|apikeyenv|keyenv|accesstoken", "key = { env = \"{key}\" }"),
    (
        "url|endpoint|apibase|baseuri|address|host|baseurl|server|apiurl|openaiapibase",
        "base_url = \"http://localhost:8080/v1\"",
    ),
    ("provider|service|vendor|backend", "preset = \"{preset}\""),
    ("name|modelname|modelid|deployment|engine|deploymentname", "model = \"MODEL\""),
    ("api|protocol|apitype|apistyle", "wire = \"chat\""),
    ("maxoutputtokens|maxcompletiontokens|maxtokens|numpredict|npredict|maxnewtokens", "max_tokens = 4000"),
    ("numctx|contextlength|contextwindow|nctx|contextsize", "context = 8192"),
    ("reasoningeffort|thinking|reasoning|think", "effort = \"low\""),
    ("streamoptions|includeusage", "usage = false"),
    ("systemrole|systemmessage|systemprompt", "system = false"),
    ("responseformat|jsonmode|structuredoutput|format", "schema = \"json\""),
    ("parallel|maxconcurrency|numparallel|maxparallel|slots", "concurrency = 2"),
    ("header|extraheaders|defaultheaders", "headers = { NAME = \"VALUE\" }"),
    ("timeoutseconds|requesttimeout|timeoutms", "timeout = \"600s\""),
    ("maxretries", "retries = 2"),
    ("temperature|topp|topk|minp|seed|stop|options|extrabody|keepalive", "extra = { {written} = … }"),
];

/// Adds the right form to a refusal of keys that other tools have. Values are not repeated: one may be a key.
fn name_right_keys(refused: ConfigError, keys: &Map<String, Json>) -> ConfigError {
    let preset = keys.get("preset").and_then(Json::as_str).and_then(ServicePreset::find);
    let variable = preset.and_then(|preset| preset.variables.first()).copied().unwrap_or("MY_KEY");
    let right = |key: &String| {
        let plain = key.replace(['-', '_'], "").to_ascii_lowercase();
        let form = SYNONYMS
            .iter()
            .find(|(names, _)| names.split('|').any(|name| name == plain))
            .map(|(_, form)| *form)?;
        let named = keys.get(key).and_then(Json::as_str).and_then(ServicePreset::find);
        let named = named.map_or("NAME", |preset| preset.name);
        let form = form.replace("{key}", variable).replace("{written}", key).replace("{preset}", named);
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
    let is_own = preset.is_some_and(|preset| preset.name == named.name);
    let is_refused = preset.is_none_or(|preset| {
        let is_gateway = preset.server == Server::Compatible || preset.wire == Wire::Ollama;
        match is_own {
            true => !is_gateway || !model.contains('/') || preset.is_local,
            false => !is_gateway && model.contains(':'),
        }
    });
    if !is_refused {
        return Ok(());
    }
    let help = match is_own {
        true => format!("write `{name}`, the name of the model alone"),
        false => format!("write `preset = \"{}\"` and `model = \"{name}\"`", named.name),
    };
    let message = format!("`model` is `{model}`, with the name of a service before the model's");
    Err(ConfigError::for_key("model", message).with_help(help))
}

/// Refuses an address that ends with the path that the API adds to it.
fn check_path(url: &Url, wire: Wire) -> Result<(), ConfigError> {
    let ends: &[&str] = match wire {
        Wire::Messages => &["/v1/messages", "/messages"],
        Wire::Ollama => &["/api/chat", "/api/generate", "/api/tags"],
        _ => &["/chat/completions", "/completions", "/responses", "/models", "/v1/messages"],
    };
    let written = url.as_str().trim_end_matches('/');
    let Some(base) = ends.iter().find_map(|end| written.strip_suffix(end)) else { return Ok(()) };
    // Most servers have the API there.
    let v1 = if matches!(wire, Wire::Chat | Wire::Responses) && base.matches('/').count() == 2 {
        "/v1"
    } else {
        ""
    };
    Err(ConfigError::for_key("base_url", "`base_url` ends with the path of the API, which Quorate adds")
        .with_help(format!("write `base_url = \"{base}{v1}\"`")))
}

/// The name of the cap on output tokens: that of the key, else the one that the server knows.
fn tokens_field(
    block: &Block<'_>,
    wire: Wire,
    server: Server,
    base_url: Option<&str>,
) -> Result<Option<String>, ConfigError> {
    let name = match (block.text("tokens_field")?, wire) {
        (None, Wire::Responses) => "max_output_tokens",
        (None, Wire::Chat) if server == Server::Vendor || base_url.is_some_and(is_openai) => {
            "max_completion_tokens"
        }
        (None, Wire::Chat) => "max_tokens",
        (None, _) => return Ok(None),
        (Some(name), Wire::Chat | Wire::Responses) => name,
        (Some(_), _) => {
            let message = format!(
                "`tokens_field` is for `chat` and `responses`: with `{}` the field has one name",
                wire.as_str()
            );
            return Err(ConfigError::for_key("tokens_field", message).with_help("remove `tokens_field`"));
        }
    };
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    // Another part of the request would be lost.
    let is_other = ["text", "store", "reasoning"].contains(&name)
        || !name.contains("token")
            && adapt::check_extra(&Map::from_iter([(name.to_owned(), Json::Null)])).is_err();
    if !is_name || is_other {
        let message =
            format!("`tokens_field` cannot be `{name}`: it is the name of the most tokens of an answer");
        let help = format!("for example `{}`", adapt::TOKENS_FIELDS.join("` or `"));
        return Err(ConfigError::for_key("tokens_field", message).with_help(help));
    }
    Ok(Some(name.to_owned()))
}

/// Whether an address is one of OpenAI's, or of Azure's for the same models, whose newer models refuse `max_tokens`.
fn is_openai(base_url: &str) -> bool {
    let host =
        Url::parse(base_url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let ends =
        [".api.openai.com", ".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"];
    host == "api.openai.com" || ends.iter().any(|end| host.ends_with(end))
}

fn whole(block: &Block<'_>, key: &str) -> Result<Option<u32>, ConfigError> {
    let count = block.count(key)?;
    count
        .map(|count| {
            u32::try_from(count).map_err(|_| ConfigError::for_key(key, format!("`{key}` is too large")))
        })
        .transpose()
}

pub(super) fn preset_address(preset: &ServicePreset) -> Result<Url, ConfigError> {
    let Some((variable, example)) = preset.host_variable else { return address(preset.base_url) };
    let Some(value) = http::read_variable(variable) else {
        let message =
            format!("the environment variable {variable}, which says where the service is, is not set");
        return Err(
            ConfigError::for_key("base_url", message).with_help(format!("export {variable}={example}"))
        );
    };
    let value = value.trim().trim_end_matches('/');
    // Within a name of a host, anything else could lead the key to another one.
    let is_label = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !preset.base_url.starts_with("{}") && !is_label {
        let message =
            format!("the environment variable {variable} has other characters than letters, digits and `-`");
        return Err(
            ConfigError::for_key("base_url", message).with_help(format!("export {variable}={example}"))
        );
    }
    address(&preset.base_url.replace("{}", value))
}

/// Whether an address is the vendor's own.
fn base_url_is_vendor(written: Option<&str>, wire: Wire) -> bool {
    written.is_none_or(|written| written.trim_end_matches('/') == wire.default_base_url())
}

/// Sorted by name.
pub const PRESETS: &[ServicePreset] = &[
    ServicePreset {
        variables: &["ANTHROPIC_API_KEY"],
        auth: Auth::XApiKey,
        default_model: Some("claude-sonnet-5"),
        ..ServicePreset::of("anthropic", Wire::Messages, "https://api.anthropic.com")
    },
    ServicePreset {
        variables: &["AZURE_OPENAI_API_KEY"],
        auth: Auth::ApiKey,
        host_variable: Some(("AZURE_OPENAI_ENDPOINT", "https://NAME.openai.azure.com")),
        ..ServicePreset::of("azure", Wire::Responses, "{}/openai/v1")
    },
    ServicePreset {
        variables: &["AWS_BEARER_TOKEN_BEDROCK"],
        host_variable: Some(("AWS_REGION", "us-east-1")),
        server: Server::Compatible,
        ..ServicePreset::of("bedrock", Wire::Chat, "https://bedrock-runtime.{}.amazonaws.com/openai/v1")
    },
    ServicePreset {
        variables: &["DATABRICKS_TOKEN"],
        host_variable: Some(("DATABRICKS_HOST", "https://NAME.cloud.databricks.com")),
        ..ServicePreset::decides("databricks", "{}/ai-gateway/typesafe/v1")
    },
    ServicePreset {
        variables: &["FIREWORKS_API_KEY"],
        ..ServicePreset::decides("fireworks", "https://api.fireworks.ai/inference/v1")
    },
    ServicePreset {
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        auth: Auth::XGoogApiKey,
        default_model: Some("gemini-3.5-flash"),
        ..ServicePreset::of("gemini", Wire::Gemini, "https://generativelanguage.googleapis.com/v1")
    },
    ServicePreset {
        server: Server::Compatible,
        is_local: true,
        auth: Auth::None,
        ..ServicePreset::of("lmstudio", Wire::Chat, "http://localhost:1234/v1")
    },
    ServicePreset {
        is_local: true,
        auth: Auth::None,
        ..ServicePreset::of("ollama", Wire::Ollama, "http://localhost:11434")
    },
    ServicePreset {
        variables: &["OPENAI_API_KEY"],
        default_model: Some("gpt-5.5"),
        ..ServicePreset::of("openai", Wire::Responses, "https://api.openai.com/v1")
    },
    ServicePreset {
        variables: &["OPENROUTER_API_KEY"],
        server: Server::Compatible,
        ..ServicePreset::of("openrouter", Wire::Chat, "https://openrouter.ai/api/v1")
    },
    ServicePreset {
        variables: &["TYPESAFE_API_KEY"],
        default_model: Some("jev-latest"),
        ..ServicePreset::decides("typesafe", "https://api.typesafe.ai/v1")
    },
];

/// The first preset that can be asked with nothing but its name, as its variable is set; with that variable.
pub fn with_key(is_set: impl Fn(&str) -> bool) -> Option<(&'static str, &'static str)> {
    let ready =
        PRESETS.iter().filter(|preset| preset.default_model.is_some() && preset.host_variable.is_none());
    // A decision model cannot be a member of a council.
    let ready = ready.filter(|preset| preset.decides.is_none());
    ready
        .flat_map(|preset| preset.variables.iter().map(|name| (preset.name, *name)))
        .find(|(_, name)| is_set(name))
}

/// A service with its settings.
#[derive(Debug)]
pub struct ServicePreset {
    /// The value of the key `preset`.
    pub name: &'static str,
    pub(super) wire: Wire,
    /// The wire of its decision models, if it has no others.
    pub(super) decides: Option<Api>,
    /// The base URL; `{}` stands for the value of `host_variable`.
    pub(super) base_url: &'static str,
    /// The variable that completes the base URL, and an example of its value.
    pub(super) host_variable: Option<(&'static str, &'static str)>,
    /// The variables that may have the key; the first that is set counts.
    pub(super) variables: &'static [&'static str],
    pub(super) auth: Auth,
    /// The model that is asked if none is named.
    pub(super) default_model: Option<&'static str>,
    pub(super) server: Server,
    /// Whether it runs on this machine, and costs nothing.
    pub(super) is_local: bool,
}

impl ServicePreset {
    const fn of(name: &'static str, wire: Wire, base_url: &'static str) -> ServicePreset {
        ServicePreset {
            name,
            wire,
            decides: None,
            base_url,
            host_variable: None,
            variables: &[],
            auth: Auth::Bearer,
            default_model: None,
            server: Server::Vendor,
            is_local: false,
        }
    }

    /// A service of decision models.
    const fn decides(name: &'static str, base_url: &'static str) -> ServicePreset {
        ServicePreset { decides: Some(Api::SystemOne), ..ServicePreset::of(name, Wire::Chat, base_url) }
    }

    /// The preset of a name.
    pub(super) fn find(name: &str) -> Option<&'static ServicePreset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }
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
            let config =
                Config::parse(&crate::block::test_settings(std::path::Path::new("/"), &block)).unwrap();
            config.service.is_slow_to_start
        };
        assert!(waits("", "http://localhost:8080/v1") && waits("", "http://10.0.0.9:8080/v1"));
        assert!(!waits("30s", "http://localhost:8080/v1") && !waits("", "https://api.example.com/v1"));
    }

    #[test]
    fn addresses_of_openai_and_azure_get_the_newer_name_of_the_cap() {
        let name = |block: serde_json::Value| {
            let config =
                Config::parse(&crate::block::test_settings(std::path::Path::new("/"), &block)).unwrap();
            config.tokens_field
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
        assert!(PRESETS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert_eq!(with_key(|name| name == "GOOGLE_API_KEY"), Some(("gemini", "GOOGLE_API_KEY")));
        assert_eq!(with_key(|_| true), Some(("anthropic", "ANTHROPIC_API_KEY")));
        // Those also need a model.
        assert_eq!(with_key(|name| name == "OPENROUTER_API_KEY" || name == "AZURE_OPENAI_API_KEY"), None);
    }
}
