//! Reads a table `[mcp.<id>]` of `quorate.toml`, in every build: without the feature `mcp`, servers are still passed to
//! CLIs that take part in a runtime.

use std::time::Duration;

use quorate_kernel::ports::executor::ConfigError;
use quorate_protocol::Json;
use serde_json::Map;
use url::Url;

use crate::block::{Block, variable_name};

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
    not(feature = "mcp"),
    expect(dead_code, reason = "without MCP a table is held, and no server reached")
)]
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
pub(crate) fn read(table: &Map<String, Json>) -> Result<ServerTable, ConfigError> {
    let block = Block::parse(table, KEYS)?;
    let timeout = block.text("timeout")?.map(|written| {
        quorate_manifest::duration::parse(written).map_err(|error| {
            ConfigError::for_key("timeout", format!("`{written}`: {error}"))
                .with_help("write it like \"30s\"")
        })
    });
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
    Ok(ServerTable { target, timeout: timeout.transpose()? })
}

fn address(written: &str) -> Result<String, ConfigError> {
    let url = Url::parse(written).map_err(|error| {
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
