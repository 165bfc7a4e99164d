//! A server of a table `[mcp.<id>]` of `quorate.toml`: its address, or how to start it.

use std::path::Path;
use std::time::Duration;

use quorate_kernel::ports::executor::ConfigError;
use quorate_protocol::Json;
use serde_json::Map;

use crate::executor::agent_cli::sidecar::Program;
use crate::server_table::{self, ServerTable, Target};

/// The default timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// The id in its table's name.
    pub(super) id: String,
    pub(super) endpoint: Endpoint,
    /// The timeout of a call.
    pub(super) timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    Http {
        url: String,
        /// The variable that holds the bearer token.
        token: Option<String>,
    },
    /// A program that this process starts.
    Process(Program),
}

impl Server {
    /// Reads a table.
    ///
    /// # Errors
    /// When the table or its program is unusable. The error's key is the whole path, since the table is not the block that
    /// names it.
    pub(super) fn parse(id: &str, table: &Map<String, Json>, dir: &Path) -> Result<Self, ConfigError> {
        Server::parse_table(id, table, dir).map_err(|mut error| {
            error.message = format!("[mcp.{id}]: {}", error.message);
            error.key = Some(error.key.map_or_else(|| format!("mcp.{id}"), |key| format!("mcp.{id}.{key}")));
            error
        })
    }

    fn parse_table(id: &str, table: &Map<String, Json>, dir: &Path) -> Result<Self, ConfigError> {
        let ServerTable { target, timeout } = server_table::read(table)?;
        let endpoint = match target {
            Target::Url { url, token } => Endpoint::Http { url, token },
            Target::Command { command, args, env, cwd } => {
                Endpoint::Process(Program::new(&command, args, env, cwd.as_deref(), dir)?)
            }
        };
        Ok(Server { id: id.to_owned(), endpoint, timeout: timeout.unwrap_or(TIMEOUT) })
    }

    /// A message of the library, without the parts of the address that may be secret.
    pub(super) fn without_secrets(&self, message: &str) -> String {
        match &self.endpoint {
            Endpoint::Http { url, .. } => message.replace(url.as_str(), &self.stable_name()),
            Endpoint::Process(_) => message.to_owned(),
        }
    }

    /// A name that stays the same after a restart and holds no secret.
    pub(super) fn stable_name(&self) -> String {
        match &self.endpoint {
            Endpoint::Http { url, .. } => url.split(['?', '#']).next().unwrap_or(url).to_owned(),
            Endpoint::Process(_) => format!("mcp:{}", self.id),
        }
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
