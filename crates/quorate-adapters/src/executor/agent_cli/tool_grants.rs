//! The grants of a participant, prepared for a CLI: the tools that the manifest allows, and the MCP servers with their
//! connection data. A manifest without a tool list grants none.

use std::path::Path;

use quorate_kernel::conversation::{ConversationContext, Tools};
use quorate_kernel::ports::executor::Servers;
use quorate_protocol::Json;
use serde_json::{Map, json};

#[derive(Debug, Default)]
pub(super) struct ToolGrants<'a> {
    /// `None` if the manifest does not restrict tools.
    pub(super) allowed_tools: Option<&'a [String]>,
    /// In the manifest's order.
    pub(super) servers: Vec<Server<'a>>,
}

/// A server that the host has configured: reached by URL, or started as a process.
#[derive(Debug)]
pub(super) struct Server<'a> {
    pub(super) id: &'a str,
    table: &'a Map<String, Json>,
    dir: &'a Path,
}

/// A server that the CLI starts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StdioServer {
    /// The program; with a `/` it is absolute.
    pub(super) command: String,
    pub(super) args: Vec<String>,
    /// The variables that it needs, by name.
    pub(super) env: Vec<String>,
    /// Its working directory; `None` leaves it to the CLI.
    pub(super) cwd: Option<String>,
}

impl<'a> ToolGrants<'a> {
    /// The grants of the participant that speaks. Relative paths of servers are relative to `dir`.
    pub(super) fn for_speaker(
        conversation: Option<&'a ConversationContext>,
        servers: &'a Servers,
        dir: &'a Path,
    ) -> Self {
        let Some(Tools { allowed, servers: ids }) =
            conversation.map(|conversation| &conversation.participant.tools)
        else {
            return ToolGrants::default();
        };
        let configured = ids.iter().filter_map(|id| servers.get(id));
        ToolGrants {
            allowed_tools: allowed.as_deref(),
            servers: configured.map(|(id, table)| Server { id, table, dir }).collect(),
        }
    }

    /// Whether the manifest restricts tools.
    pub(super) fn restricts(&self) -> bool {
        self.allowed_tools.is_some() || !self.servers.is_empty()
    }

    /// The variables that its servers need, by name.
    pub(super) fn variables(&self) -> Vec<String> {
        let variables_of = |server: &Server<'_>| match server.url() {
            Some((_, token)) => token.map(str::to_owned).into_iter().collect(),
            None => server.stdio().map(|local| local.env).unwrap_or_default(),
        };
        self.servers.iter().flat_map(variables_of).collect()
    }

    /// The servers in the form that most CLIs read: `{"mcpServers": {id: …}}`. It refers to variables by name, not value.
    pub(super) fn mcp_config(&self) -> Json {
        let entries =
            self.servers.iter().filter_map(|server| Some((server.id.to_owned(), server.config_entry()?)));
        json!({"mcpServers": Map::from_iter(entries)})
    }
}

impl Server<'_> {
    /// Its address, and the variable that holds its token; `None` for a server that is started.
    pub(super) fn url(&self) -> Option<(&str, Option<&str>)> {
        let text = |key: &str| self.table.get(key).and_then(Json::as_str);
        Some((text("url")?, text("token")))
    }

    /// How to start it; `None` for a server with an address.
    pub(super) fn stdio(&self) -> Option<StdioServer> {
        let texts = |key: &str| -> Vec<String> {
            let items = self.table.get(key).and_then(Json::as_array).into_iter().flatten();
            items.filter_map(Json::as_str).map(str::to_owned).collect()
        };
        let absolute = |path: &str| {
            let path = self.dir.join(path);
            std::path::absolute(&path).unwrap_or(path).to_string_lossy().into_owned()
        };
        let command = self.table.get("command").and_then(Json::as_str)?;
        let command = if command.contains('/') { absolute(command) } else { command.to_owned() };
        let cwd = self.table.get("cwd").and_then(Json::as_str).map(absolute);
        Some(StdioServer { command, args: texts("args"), env: texts("env"), cwd })
    }

    fn config_entry(&self) -> Option<Json> {
        if let Some((url, token)) = self.url() {
            let mut entry = json!({"type": "http", "url": url});
            if let Some(token) = token {
                entry["headers"] = json!({"Authorization": format!("Bearer ${{{token}}}")});
            }
            return Some(entry);
        }
        let StdioServer { command, args, env, cwd } = self.stdio()?;
        let env: Map<String, Json> =
            env.iter().map(|name| (name.clone(), json!(format!("${{{name}:-}}")))).collect();
        Some(match cwd {
            None => json!({"type": "stdio", "command": command, "args": args, "env": env}),
            // The format has no key for a working directory.
            Some(cwd) => {
                let first =
                    ["-c", "cd \"$1\" && shift && exec \"$@\"", "sh", &cwd, &command].map(str::to_owned);
                let args = [first.to_vec(), args].concat();
                json!({"type": "stdio", "command": "/bin/sh", "args": args, "env": env})
            }
        })
    }
}

#[cfg(test)]
pub(super) mod fixture {
    //! A speaker with tools and servers, for the tests of presets.

    use quorate_kernel::conversation::{ConversationContext, Participant, Tools};
    use quorate_kernel::ports::executor::Servers;
    use quorate_protocol::Json;

    /// A speaker who may use these.
    pub(in crate::executor::agent_cli) fn conversation(
        allowed: Option<&[&str]>,
        servers: &[&str],
    ) -> ConversationContext {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        let tools = Tools { allowed: allowed.map(owned), servers: owned(servers) };
        ConversationContext {
            participant: Participant { id: "a".into(), tools, ..Participant::default() },
            recent: Vec::new(),
            state: Default::default(),
            external_id: None,
        }
    }

    pub(in crate::executor::agent_cli) fn servers(tables: &Json) -> Servers {
        let tables = tables.as_object().cloned().unwrap_or_default();
        let tables =
            tables.into_iter().map(|(id, table)| (id, table.as_object().cloned().unwrap_or_default()));
        Servers::new(tables.collect())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{ToolGrants, fixture};
    use serde_json::json;

    #[test]
    fn servers_are_written_without_anything_secret() {
        let servers = fixture::servers(&json!({
            "far": {"url": "https://example.com/mcp", "token": "FAR_TOKEN", "timeout": "5s"},
            "near": {"command": "bin/near", "args": ["--x"], "env": ["NEAR_KEY"]},
            "placed": {"command": "placed", "cwd": "sub"},
            "unused": {"command": "unused"}
        }));
        let conversation = fixture::conversation(Some(&["Read"]), &["near", "far", "gone", "placed"]);
        let granted = ToolGrants::for_speaker(Some(&conversation), &servers, Path::new("/srv"));
        assert_eq!(granted.variables(), ["NEAR_KEY", "FAR_TOKEN"]);
        let expected = json!({"mcpServers": {
            "far": {"type": "http", "url": "https://example.com/mcp",
                    "headers": {"Authorization": "Bearer ${FAR_TOKEN}"}},
            "near": {"type": "stdio", "command": "/srv/bin/near", "args": ["--x"], "env": {"NEAR_KEY": "${NEAR_KEY:-}"}},
            "placed": {"type": "stdio", "command": "/bin/sh", "env": {},
                       "args": ["-c", "cd \"$1\" && shift && exec \"$@\"", "sh", "/srv/sub", "placed"]},
        }});
        assert_eq!(granted.mcp_config(), expected);
    }

    #[test]
    fn nothing_is_granted_where_nothing_is_said() {
        let servers = fixture::servers(&json!({}));
        let silent = fixture::conversation(None, &[]);
        assert!(!ToolGrants::for_speaker(Some(&silent), &servers, Path::new("/")).restricts());
        assert!(!ToolGrants::for_speaker(None, &servers, Path::new("/")).restricts());
        let none = fixture::conversation(Some(&[]), &[]);
        assert!(ToolGrants::for_speaker(Some(&none), &servers, Path::new("/")).restricts());
    }
}
