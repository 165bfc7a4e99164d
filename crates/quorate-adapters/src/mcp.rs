//! The MCP client of substrate, executor and state. This file owns what all of them do, calling a tool. In `mcp/`: the
//! tables of `quorate.toml` (`server`), access to a server (`transport`), the connection and its repair (`connection`),
//! one connection for all adapters of a process (`shared`), a server's tools (`server_tools`), results (`tool_result`),
//! and errors (`error`).
//!
//! Only `connection`, `transport` and `tool_result` name the protocol library.

mod connection;
mod error;
mod server;
mod server_tools;
mod shared;
mod tool_result;
mod transport;

use std::path::Path;
use std::sync::Arc;

use quorate_kernel::ports::executor::{ConfigError, Servers};
use quorate_protocol::Json;
use serde_json::Map;

use crate::block::{Block, nearest, quoted_list};
pub(crate) use connection::{CallDeadline, Connection, Retry};
pub(crate) use error::CallError;
pub(crate) use server_tools::ServerTools;

/// The key of a block that names the server.
pub(crate) const SERVER_KEY: &str = "server";

/// The server of a block without that key.
const DEFAULT_SERVER: &str = "guilde";

pub(crate) type Arguments = Map<String, Json>;

/// The connection to a block's server. It connects at the first call.
///
/// # Errors
/// When the host has no server of that name, or its table is unusable.
pub(crate) fn connection(
    block: &Block<'_>,
    servers: &Servers,
    dir: &Path,
) -> Result<Arc<Connection>, ConfigError> {
    let configured = block.text(SERVER_KEY)?;
    let id = configured.unwrap_or(DEFAULT_SERVER);
    let Some((_, table)) = servers.get(id) else {
        let known: Vec<&str> = servers.ids().collect();
        let help = match nearest(id, &known) {
            Some(near) => format!("did you mean `{near}`, which quorate.toml has?"),
            None if known.is_empty() => {
                format!("add a table `[mcp.{id}]` with `url` or `command` to quorate.toml")
            }
            None => {
                format!("known servers: {}; or add a table `[mcp.{id}]` to quorate.toml", quoted_list(&known))
            }
        };
        return Err(
            ConfigError::for_key(SERVER_KEY, format!("no MCP server `{id}` is configured")).with_help(help)
        );
    };
    Ok(shared::connection(server::Server::parse(id, table, dir)?))
}
