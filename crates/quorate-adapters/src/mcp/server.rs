//! A server of a table `[mcp.<id>]` of `quorate.toml`: where it is, or how it is started here.

use std::path::Path;
use std::time::Duration;

use quorate_kernel::ports::executor::ConfigError;
use quorate_protocol::Json;
use serde_json::Map;

use crate::executor::agent_cli::sidecar::Program;
use crate::server_table::{self, ServerTable, Target};

/// How long a call may take where the table says nothing.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A server, as its table describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// The name of its table.
    pub(super) id: String,
    /// How it is reached.
    pub(super) endpoint: Endpoint,
    /// How long a call may take.
    pub(super) timeout: Duration,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    Http {
        url: String,
        /// The variable that holds the bearer token.
        token: Option<String>,
    },
    /// It is a program of ours.
    Process(Program),
}

impl Server {
    /// Reads a table.
    ///
    /// # Errors
    /// When the table or its program is unusable. The key that is refused is the whole path, since the table is not the
    /// block that names it.
    pub(super) fn parse(id: &str, table: &Map<String, Json>, dir: &Path) -> Result<Self, ConfigError> {
        Server::parse_table(id, table, dir).map_err(|mut refused| {
            refused.message = format!("[mcp.{id}]: {}", refused.message);
            refused.key =
                Some(refused.key.map_or_else(|| format!("mcp.{id}"), |key| format!("mcp.{id}.{key}")));
            refused
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

    /// A message of the library, without the part of the address that may be secret.
    pub(super) fn without_secrets(&self, message: &str) -> String {
        match &self.endpoint {
            Endpoint::Http { url, .. } => message.replace(url.as_str(), &self.stable_name()),
            Endpoint::Process(_) => message.to_owned(),
        }
    }

    /// The server's name for good: the same after a restart, and without anything secret.
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
