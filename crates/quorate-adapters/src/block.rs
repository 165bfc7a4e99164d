//! Parses an adapter's block: unknown keys are refused by name, wrong types by key; null counts as absent (M3).
//! Also the key `answer`, and a table `[mcp.<id>]` of `quorate.toml`, which every build reads: without the feature `mcp`,
//! servers are still passed to CLIs that take part in a runtime.

use std::time::Duration;

use quorate_kernel::ports::executor::ConfigError;
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;
use serde_json::Map;
use url::Url;

/// A block whose keys are all known.
pub(crate) struct Block<'a> {
    keys: &'a Map<String, Json>,
}

impl<'a> Block<'a> {
    /// Refuses keys other than `known`.
    pub(crate) fn parse(keys: &'a Map<String, Json>, known: &[&str]) -> Result<Self, ConfigError> {
        let unknown: Vec<&str> = keys.keys().map(String::as_str).filter(|key| !known.contains(key)).collect();
        match unknown[..] {
            [] => Ok(Block { keys }),
            [only] => {
                let help = match nearest(only, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known keys: {}", quoted_list(known)),
                };
                Err(ConfigError::for_unknown_key(only, format!("unknown key `{only}`")).with_help(help))
            }
            // One refusal names all unknown keys, so that the author mends them in one edit.
            [first, ..] => {
                Err(ConfigError::for_unknown_key(first, format!("unknown keys {}", quoted_list(&unknown)))
                    .with_help(format!("known keys: {}", quoted_list(known))))
            }
        }
    }

    /// A string that is not empty.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, ConfigError> {
        match self.value(key) {
            None => Ok(None),
            Some(Json::String(text)) if text.trim().is_empty() => {
                Err(ConfigError::for_key(key, format!("`{key}` is empty")))
            }
            Some(Json::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(key, "a text", other)),
        }
    }

    /// One of the `known` words, which `parse` reads.
    pub(crate) fn word<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Option<T>,
        known: &[&str],
    ) -> Result<Option<T>, ConfigError> {
        let Some(word) = self.text(key)? else { return Ok(None) };
        let unknown = || {
            let help = match nearest(word, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it is one of {}", quoted_list(known)),
            };
            ConfigError::for_key(key, format!("`{key}` cannot be `{word}`")).with_help(help)
        };
        parse(word).map(Some).ok_or_else(unknown)
    }

    /// A duration, such as `30s`.
    pub(crate) fn duration(&self, key: &str) -> Result<Option<Duration>, ConfigError> {
        let Some(written) = self.text(key)? else { return Ok(None) };
        quorate_manifest::duration::parse(written).map(Some).map_err(|error| {
            ConfigError::for_key(key, format!("`{written}`: {error}")).with_help("write it like \"30s\"")
        })
    }

    /// A list of strings; absent is an empty list.
    pub(crate) fn texts(&self, key: &str) -> Result<Vec<String>, ConfigError> {
        let Some(value) = self.value(key) else { return Ok(Vec::new()) };
        let Json::Array(items) = value else { return Err(wrong_type(key, "a list of texts", value)) };
        items
            .iter()
            .map(|item| match item {
                Json::String(text) if text.contains('\0') => {
                    Err(ConfigError::for_key(key, format!("`{key}` holds a NUL character")))
                }
                Json::String(text) => Ok(text.clone()),
                other => Err(wrong_type(key, "a list of texts", other)),
            })
            .collect()
    }

    /// A boolean; absent is `false`.
    pub(crate) fn flag(&self, key: &str) -> Result<bool, ConfigError> {
        match self.value(key) {
            None => Ok(false),
            Some(Json::Bool(flag)) => Ok(*flag),
            Some(other) => Err(wrong_type(key, "true or false", other)),
        }
    }

    /// An integer of at least 1.
    pub(crate) fn count(&self, key: &str) -> Result<Option<usize>, ConfigError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let count = value.as_u64().and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
        match (count, value) {
            (Some(count), _) => Ok(Some(count)),
            (None, Json::Number(number)) => Err(ConfigError::for_key(
                key,
                format!("`{key}` must be a whole number from 1 on, not {number}"),
            )),
            (None, other) => Err(wrong_type(key, "a whole number", other)),
        }
    }

    /// A number.
    pub(crate) fn number(&self, key: &str) -> Result<Option<f64>, ConfigError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        value.as_f64().map(Some).ok_or_else(|| wrong_type(key, "a number", value))
    }

    pub(crate) fn table(&self, key: &str) -> Result<Option<&'a Map<String, Json>>, ConfigError> {
        match self.value(key) {
            None => Ok(None),
            Some(Json::Object(table)) => Ok(Some(table)),
            Some(other) => Err(wrong_type(key, "a table", other)),
        }
    }

    /// Whether a key's value is a string.
    pub(crate) fn is_text(&self, key: &str) -> bool {
        self.value(key).is_some_and(Json::is_string)
    }

    /// Whether the block has a key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    fn value(&self, key: &str) -> Option<&'a Json> {
        self.keys.get(key).filter(|value| !value.is_null())
    }
}

/// The known name closest to a misspelt one; `None` below a similarity of 0.8.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), *candidate))
        .filter(|(similarity, _)| *similarity > 0.8)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, candidate)| candidate)
}

/// The name of the environment variable that has a secret.
///
/// # Errors
/// When it is not a name. The message does not repeat it, since it may be the secret itself.
pub(crate) fn variable_name(key: &str, name: &str, example: &str) -> Result<String, ConfigError> {
    let fits = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    match fits && !name.starts_with(|first: char| first.is_ascii_digit()) {
        true => Ok(name.to_owned()),
        false => {
            let help = format!("put the secret into a variable, and its name here, for example `{example}`");
            let message = format!("`{key}` is not the name of an environment variable");
            Err(ConfigError::for_key(key, message).with_help(help))
        }
    }
}

/// Names for a message: `` `a`, `b` ``.
pub(crate) fn quoted_list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn wrong_type(key: &str, wanted: &str, found: &Json) -> ConfigError {
    let found = match found {
        Json::Null => "null",
        Json::Bool(_) => "true or false",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "a table",
    };
    ConfigError::for_key(key, format!("`{key}` must be {wanted}, not {found}"))
}

const TEXT_ANSWER: &str = "text";
const JSON_ANSWER: &str = "json";

/// Reads the key `answer` of a participant's config: the form in which its executor answers in a conversation. The default
/// is a text.
///
/// # Errors
/// When the form is unknown.
pub(crate) fn parse_answer_form(written: Option<&str>) -> Result<Schema, ConfigError> {
    match written {
        None | Some(TEXT_ANSWER) => Ok(Schema::PlainText),
        Some(JSON_ANSWER) => Ok(Schema::Turn),
        Some(other) => Err(ConfigError::for_key("answer", format!("unknown form of answer `{other}`")).with_help(
            "`text`: what is printed is what is said; `json`: an object with `content`, `meta` and `stateUpdate`",
        )),
    }
}

/// The value of the key `answer` for a schema.
#[cfg(feature = "nats")]
pub(crate) fn answer_form_name(schema: Schema) -> &'static str {
    match schema {
        Schema::Turn => JSON_ANSWER,
        _ => TEXT_ANSWER,
    }
}

const REMOTE: &[&str] = &["url", "token"];
const LOCAL: &[&str] = &["command", "args", "env", "cwd"];
const KEYS: &[&str] = &["url", "token", "command", "args", "env", "cwd", "timeout"];

#[cfg_attr(
    not(feature = "mcp"),
    expect(dead_code, reason = "without MCP a table is held, and no server reached")
)]
pub(crate) struct ServerTable {
    pub(crate) target: Target,
    /// The timeout of a call, if the table sets one.
    pub(crate) timeout: Option<Duration>,
}

#[cfg_attr(
    not(any(feature = "mcp", feature = "agent-cli")),
    expect(dead_code, reason = "a table is held, and no server reached")
)]
#[derive(Debug)]
pub(crate) enum Target {
    Url {
        url: String,
        /// The variable that holds the bearer token.
        token: Option<String>,
    },
    Command {
        command: String,
        args: Vec<String>,
        /// The variables that it sees, by name.
        env: Vec<String>,
        cwd: Option<String>,
    },
}

/// Reads a table.
///
/// # Errors
/// When it has an unknown key, a value of the wrong type, an invalid address, or not exactly one of `url` and `command`.
pub(crate) fn read_server_table(table: &Map<String, Json>) -> Result<ServerTable, ConfigError> {
    let block = Block::parse(table, KEYS)?;
    let is_set = |key: &&&str| block.has(key);
    let target = match (block.text("url")?, block.text("command")?) {
        (Some(url), None) => {
            if let Some(stray) = LOCAL.iter().find(is_set) {
                let message = format!("`{stray}` is for a server with a `command`");
                return Err(
                    ConfigError::for_key(*stray, message).with_help("leave it out, or leave `url` out")
                );
            }
            Target::Url {
                url: address(url)?,
                token: block
                    .text("token")?
                    .map(|name| variable_name("token", name, "GUILDE_TOKEN"))
                    .transpose()?,
            }
        }
        (None, Some(command)) => {
            if let Some(stray) = REMOTE.iter().find(is_set) {
                let message = format!("`{stray}` is for a server with a `url`");
                return Err(ConfigError::for_key(*stray, message)
                    .with_help("name the variables that the program gets to see in `env`"));
            }
            Target::Command {
                command: command.to_owned(),
                args: block.texts("args")?,
                env: block.texts("env")?,
                cwd: block.text("cwd")?.map(str::to_owned),
            }
        }
        (Some(_), Some(_)) => {
            return Err(ConfigError::for_key("command", "both `url` and `command` are set")
                .with_help("a server listens at a `url`, or is started as a `command`"));
        }
        (None, None) => {
            return Err(ConfigError::for_block("neither `url` nor `command` says where the server is")
                .with_help("for example `url = \"https://example.com/mcp\"`"));
        }
    };
    Ok(ServerTable { target, timeout: block.duration("timeout")? })
}

fn address(written: &str) -> Result<String, ConfigError> {
    let url = Url::parse(written).map_err(|error| {
        ConfigError::for_key("url", format!("`url` is not an address: {error}"))
            .with_help("for example `https://example.com/mcp`")
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(ConfigError::for_key(
            "url",
            format!("`{}:` is not a way to reach an MCP server", url.scheme()),
        )
        .with_help("use `https://…`, `http://…`, or a `command`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ConfigError::for_key("url", "`url` holds a name or a password")
            .with_help("put the token into an environment variable, and the variable's name into `token`"));
    }
    Ok(url.into())
}

/// The settings of an executor in a folder, for tests.
#[cfg(test)]
pub(crate) fn test_settings(
    dir: &std::path::Path,
    block: &Json,
) -> quorate_kernel::ports::executor::Settings {
    quorate_kernel::ports::executor::Settings {
        name: "tested".into(),
        timeout: Duration::from_secs(1),
        retries: 0,
        dir: dir.to_owned(),
        block: block.as_object().cloned().unwrap_or_default(),
        servers: Default::default(),
        prices: None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, nearest};
    use serde_json::json;

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_known_one() {
        let keys = json!({"comand": "x"});
        let error = Block::parse(keys.as_object().unwrap(), &["command", "args"]).err().unwrap();
        assert_eq!(error.key.as_deref(), Some("comand"));
        assert_eq!(error.help.as_deref(), Some("did you mean `command`?"));
        assert_eq!(nearest("zzz", &["command"]), None);
    }

    #[test]
    fn all_unknown_keys_are_reported_at_once() {
        let keys = json!({"comand": "x", "args": [], "zzz": 1});
        let error = Block::parse(keys.as_object().unwrap(), &["command", "args"]).err().unwrap();
        assert_eq!(error.message, "unknown keys `comand`, `zzz`");
        assert_eq!(error.help.as_deref(), Some("known keys: `command`, `args`"));
    }

    #[test]
    fn types_are_checked_by_key_and_null_is_absent() {
        let keys = json!({"command": 3, "args": ["a", 1], "model": null, "cwd": " "});
        let block =
            Block::parse(keys.as_object().unwrap(), &["command", "args", "model", "cwd", "env_clear"])
                .unwrap();
        assert_eq!(block.text("command").unwrap_err().message, "`command` must be a text, not a number");
        assert_eq!(block.texts("args").unwrap_err().message, "`args` must be a list of texts, not a number");
        assert_eq!(block.text("model").unwrap(), None);
        assert_eq!(block.text("cwd").unwrap_err().message, "`cwd` is empty");
        assert!(!block.flag("env_clear").unwrap());
        assert_eq!(block.count("command").unwrap(), Some(3));
        let keys = json!({"a": 0, "b": -1, "c": 1.5, "d": "1", "e": null});
        let block = Block::parse(keys.as_object().unwrap(), &["a", "b", "c", "d", "e"]).unwrap();
        for key in ["a", "b", "c", "d"] {
            assert!(block.count(key).unwrap_err().message.contains("must be a whole number"), "{key}");
        }
        assert_eq!(block.count("e").unwrap(), None);
    }
}
