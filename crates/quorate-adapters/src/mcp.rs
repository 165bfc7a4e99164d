//! The MCP client of substrate, executor and state: how a block names its server, a server's table in `quorate.toml`,
//! its tools and their arguments (listed once for each connection), and one connection for all adapters of a process.
//! `mcp/connection.rs` owns access to a server, its repair, results and errors; only that file names the protocol
//! library.

mod connection;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use quorate_kernel::ports::executor::{ConfigError, Servers};
use quorate_protocol::Json;
use serde_json::Map;

use crate::block::{self, Block, ServerTable, Target, nearest, quoted_list};
use crate::executor::agent_cli::command::Program;

pub(crate) use connection::CallError;
pub(crate) use connection::{CallDeadline, Connection, Retry};

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
    Ok(shared_connection(Server::parse(id, table, dir)?))
}

/// The default timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Server {
    /// The id in its table's name.
    id: String,
    endpoint: Endpoint,
    /// The timeout of a call.
    timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Endpoint {
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
    fn parse(id: &str, table: &Map<String, Json>, dir: &Path) -> Result<Self, ConfigError> {
        Server::parse_table(id, table, dir).map_err(|mut error| {
            error.message = format!("[mcp.{id}]: {}", error.message);
            error.key = Some(error.key.map_or_else(|| format!("mcp.{id}"), |key| format!("mcp.{id}.{key}")));
            error
        })
    }

    fn parse_table(id: &str, table: &Map<String, Json>, dir: &Path) -> Result<Self, ConfigError> {
        let ServerTable { target, timeout } = block::read_server_table(table)?;
        let endpoint = match target {
            Target::Url { url, token } => Endpoint::Http { url, token },
            Target::Command { command, args, env, cwd } => {
                Endpoint::Process(Program::new(&command, args, env, cwd.as_deref(), dir)?)
            }
        };
        Ok(Server { id: id.to_owned(), endpoint, timeout: timeout.unwrap_or(TIMEOUT) })
    }

    /// A message of the library, without the parts of the address that may be secret.
    fn without_secrets(&self, message: &str) -> String {
        match &self.endpoint {
            Endpoint::Http { url, .. } => message.replace(url.as_str(), &self.stable_name()),
            Endpoint::Process(_) => message.to_owned(),
        }
    }

    /// A name that stays the same after a restart and holds no secret.
    fn stable_name(&self) -> String {
        match &self.endpoint {
            Endpoint::Http { url, .. } => url.split(['?', '#']).next().unwrap_or(url).to_owned(),
            Endpoint::Process(_) => format!("mcp:{}", self.id),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ServerTools {
    server: String,
    tools: BTreeMap<String, Map<String, Json>>,
}

impl ServerTools {
    /// The tools, each with the JSON Schema of its input.
    fn new(server: &str, tools: impl IntoIterator<Item = (String, Map<String, Json>)>) -> Self {
        ServerTools { server: server.to_owned(), tools: tools.into_iter().collect() }
    }

    /// Whether a tool takes an argument.
    pub(crate) fn accepts(&self, tool: &str, argument: &str) -> bool {
        self.schema(tool, argument).is_some()
    }

    /// The JSON Schema of an argument; `None` if the tool does not take it.
    pub(crate) fn schema(&self, tool: &str, argument: &str) -> Option<&Json> {
        self.tools.get(tool)?.get("properties")?.get(argument)
    }

    /// The largest value of an argument, if the schema limits it.
    pub(crate) fn maximum(&self, tool: &str, argument: &str) -> Option<u64> {
        self.schema(tool, argument)?.get("maximum")?.as_u64()
    }

    /// Whether an argument accepts only strings.
    pub(crate) fn is_text(&self, tool: &str, argument: &str) -> bool {
        self.schema(tool, argument).and_then(|schema| schema.get("type")?.as_str()) == Some("string")
    }

    /// `arguments` without those of `optional` that the tool does not take.
    pub(crate) fn without_unsupported(
        &self,
        tool: &str,
        arguments: Arguments,
        optional: &[&str],
    ) -> Arguments {
        let fits = |name: &str| !optional.contains(&name) || self.accepts(tool, name);
        arguments.into_iter().filter(|(name, _)| fits(name)).collect()
    }

    /// Refuses a tool that the server does not have.
    fn require_tool(&self, tool: &str) -> Result<(), CallError> {
        if self.tools.contains_key(tool) {
            return Ok(());
        }
        let names: Vec<&str> = self.tools.keys().map(String::as_str).collect();
        let suggestion = match nearest(tool, &names) {
            Some(near) => format!("; it has `{near}`"),
            None if names.is_empty() => "; it has no tools at all".to_owned(),
            None => format!("; it has {} others", names.len()),
        };
        Err(CallError::Unusable {
            server: self.server.clone(),
            why: format!("it has no tool `{tool}`{suggestion}. Is it the right server?"),
        })
    }
}

/// The connections in use. A connection closes with its last user, and its entry is then removed.
static CONNECTIONS: Mutex<Vec<Weak<Connection>>> = Mutex::new(Vec::new());

/// The existing connection to a server, or a new one.
fn shared_connection(server: Server) -> Arc<Connection> {
    let mut used = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    used.retain(|connection| connection.strong_count() > 0);
    let same = |connection: &Weak<Connection>| connection.upgrade().filter(|found| *found.server() == server);
    if let Some(found) = used.iter().find_map(same) {
        return found;
    }
    let new = Arc::new(Connection::new(server));
    used.push(Arc::downgrade(&new));
    new
}

#[cfg(test)]
mod server_tools_tests {
    use serde_json::json;

    use super::ServerTools;

    #[test]
    fn arguments_that_a_tool_does_not_take_are_left_out() {
        let schema = json!({"properties": {"key": {"type": "string"}, "limit": {"maximum": 100}}});
        let offer = ServerTools::new("s", [("get".to_owned(), schema.as_object().unwrap().clone())]);
        let arguments =
            json!({"key": "k", "after": "x", "limit": 5, "other": 1}).as_object().unwrap().clone();
        let fitted = offer.without_unsupported("get", arguments, &["after", "limit"]);
        assert_eq!(fitted.keys().collect::<Vec<_>>(), ["key", "limit", "other"]);
        assert_eq!(offer.maximum("get", "limit"), Some(100));
        assert!(offer.is_text("get", "key") && !offer.is_text("get", "limit"));
        assert!(offer.require_tool("get").is_ok());
        assert!(offer.require_tool("gett").unwrap_err().to_string().contains("it has `get`"));
    }
}

#[cfg(test)]
mod shared_tests {
    use std::path::Path;
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::{Server, shared_connection};

    fn server(table: Value) -> Server {
        Server::parse("guilde", table.as_object().unwrap(), Path::new("/")).unwrap()
    }

    #[test]
    fn the_same_table_is_the_same_connection_for_as_long_as_it_is_used() {
        let first = shared_connection(server(json!({"url": "http://127.0.0.1:1/shared"})));
        let same = shared_connection(server(json!({"url": "http://127.0.0.1:1/shared"})));
        let other = shared_connection(server(json!({"url": "http://127.0.0.1:1/shared", "token": "OTHER"})));
        assert!(Arc::ptr_eq(&first, &same) && !Arc::ptr_eq(&first, &other));
        let weak = Arc::downgrade(&first);
        drop((first, same));
        assert!(weak.upgrade().is_none());
    }
}

#[cfg(test)]
mod tests {
    //! Valid and invalid tables of servers.

    use std::path::Path;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::{Endpoint, Server};

    fn read(table: Value) -> Result<Server, (Option<String>, String, Option<String>)> {
        Server::parse("guilde", table.as_object().unwrap(), Path::new("/"))
            .map_err(|error| (error.key, error.message, error.help))
    }

    fn refused_key(table: Value) -> String {
        let (key, message, help) = read(table).unwrap_err();
        assert!(message.starts_with("[mcp.guilde]: "), "{message}");
        assert!(help.is_some(), "{message}");
        key.unwrap()
    }

    #[test]
    fn a_url_and_a_command_are_read() {
        let server =
            read(json!({"url": "https://example.com/mcp?team=7", "token": "GUILDE_TOKEN", "timeout": "5s"}));
        let server = server.unwrap();
        assert_eq!(server.timeout, Duration::from_secs(5));
        assert_eq!(server.stable_name(), "https://example.com/mcp");
        assert!(
            matches!(server.endpoint, Endpoint::Http { token: Some(name), .. } if name == "GUILDE_TOKEN")
        );
        let server = read(json!({"command": "guilde", "args": ["serve"], "env": ["KEY"]})).unwrap();
        assert_eq!((server.timeout, server.stable_name().as_str()), (Duration::from_secs(30), "mcp:guilde"));
        assert!(matches!(server.endpoint, Endpoint::Process(_)));
    }

    #[test]
    fn a_bad_table_is_refused_by_key_with_help() {
        assert_eq!(refused_key(json!({})), "mcp.guilde");
        assert_eq!(refused_key(json!({"urll": "x"})), "mcp.guilde.urll");
        assert_eq!(refused_key(json!({"url": "ftp://example.com"})), "mcp.guilde.url");
        assert_eq!(refused_key(json!({"url": "example.com"})), "mcp.guilde.url");
        assert_eq!(refused_key(json!({"url": "https://me:secret@example.com"})), "mcp.guilde.url");
        assert_eq!(refused_key(json!({"url": "https://example.com", "command": "x"})), "mcp.guilde.command");
        assert_eq!(refused_key(json!({"url": "https://example.com", "args": ["x"]})), "mcp.guilde.args");
        assert_eq!(refused_key(json!({"command": "x", "token": "T"})), "mcp.guilde.token");
        assert_eq!(refused_key(json!({"command": "x", "env": ["A=b"]})), "mcp.guilde.env");
        assert_eq!(refused_key(json!({"url": "https://example.com", "timeout": "30"})), "mcp.guilde.timeout");
    }

    #[test]
    fn a_token_that_stands_in_the_table_is_not_repeated() {
        let (key, message, help) =
            read(json!({"url": "https://example.com", "token": "sk-very-secret"})).unwrap_err();
        assert_eq!(key.as_deref(), Some("mcp.guilde.token"));
        assert!(!message.contains("very") && !help.unwrap().contains("very"));
    }
}
