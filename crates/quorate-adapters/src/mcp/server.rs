//! A table `[mcp.<id>]` of `quorate.toml`: where a server is, or how it is started.

use std::path::Path;
use std::time::Duration;

use quorate_kernel::ports::executor::ConfigError;
use quorate_protocol::Json;
use serde_json::Map;

use crate::block::Block;
use crate::executor::agent_cli::companion::Program;

const REMOTE: &[&str] = &["url", "token"];
const LOCAL: &[&str] = &["command", "args", "env", "cwd"];
const KEYS: &[&str] = &["url", "token", "command", "args", "env", "cwd", "timeout"];

/// How long a call may take where the table says nothing.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A server, as its table describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// The name of its table.
    pub(super) id: String,
    /// How it is reached.
    pub(super) way: Way,
    /// How long a call may take.
    pub(super) timeout: Duration,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// It listens somewhere.
    Http {
        /// Where, whole.
        url: String,
        /// The variable that holds the bearer token.
        token: Option<String>,
    },
    /// It is a program of ours.
    Child(Program),
}

impl Server {
    /// Reads a table.
    ///
    /// # Errors
    /// When it has an unknown key, a value of the wrong type, or not exactly one of `url` and `command`. The key that
    /// is refused is the whole path, since the table is not the block that names it.
    pub(super) fn read(id: &str, table: &Map<String, Json>, dir: &Path) -> Result<Self, ConfigError> {
        Server::of(id, table, dir).map_err(|mut refused| {
            refused.message = format!("[mcp.{id}]: {}", refused.message);
            refused.key =
                Some(refused.key.map_or_else(|| format!("mcp.{id}"), |key| format!("mcp.{id}.{key}")));
            refused
        })
    }

    fn of(id: &str, table: &Map<String, Json>, dir: &Path) -> Result<Self, ConfigError> {
        let block = Block::of(table, KEYS)?;
        let timeout = match block.text("timeout")? {
            None => TIMEOUT,
            Some(written) => quorate_manifest::duration::parse(written).map_err(|error| {
                ConfigError::for_key("timeout", format!("`{written}`: {error}"))
                    .with_help("write it like \"30s\"")
            })?,
        };
        let is_set = |key: &&&str| table.get(**key).is_some_and(|value| !value.is_null());
        let way = match (block.text("url")?, block.text("command")?) {
            (Some(url), None) => {
                if let Some(stray) = LOCAL.iter().find(is_set) {
                    return Err(ConfigError::for_key(
                        *stray,
                        format!("`{stray}` is for a server with a `command`"),
                    )
                    .with_help("leave it out, or leave `url` out"));
                }
                Way::Http { url: address(url)?, token: block.text("token")?.map(variable).transpose()? }
            }
            (None, Some(command)) => {
                if let Some(stray) = REMOTE.iter().find(is_set) {
                    return Err(ConfigError::for_key(
                        *stray,
                        format!("`{stray}` is for a server with a `url`"),
                    )
                    .with_help("name the variables that the program gets to see in `env`"));
                }
                Way::Child(Program::new(
                    command,
                    block.texts("args")?,
                    block.texts("env")?,
                    block.text("cwd")?,
                    dir,
                )?)
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
        Ok(Server { id: id.to_owned(), way, timeout })
    }

    /// A message of the library, without the part of the address that may be secret.
    pub(super) fn without_secrets(&self, message: &str) -> String {
        match &self.way {
            Way::Http { url, .. } => message.replace(url.as_str(), &self.place()),
            Way::Child(_) => message.to_owned(),
        }
    }

    /// The server's name for good: the same after a restart, and without anything secret.
    pub(super) fn place(&self) -> String {
        match &self.way {
            Way::Http { url, .. } => url.split(['?', '#']).next().unwrap_or(url).to_owned(),
            Way::Child(_) => format!("mcp:{}", self.id),
        }
    }
}

fn address(written: &str) -> Result<String, ConfigError> {
    let url = reqwest::Url::parse(written).map_err(|error| {
        ConfigError::for_key("url", format!("`url` is no address: {error}"))
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

fn variable(name: &str) -> Result<String, ConfigError> {
    let fits = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    match fits && !name.starts_with(|first: char| first.is_ascii_digit()) {
        true => Ok(name.to_owned()),
        // What stands here may be the token itself, which is not repeated.
        false => Err(ConfigError::for_key("token", "`token` is not the name of an environment variable")
            .with_help("put the token into a variable, and its name here, for example `GUILDE_TOKEN`")),
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
