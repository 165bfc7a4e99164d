//! The grants of a participant, prepared for a CLI: the tools that the manifest allows, and the MCP servers with their
//! connection data. A manifest without a tool list grants none.

use std::path::Path;

use quorate_kernel::conversation::{ConversationContext, Tools};
use quorate_kernel::ports::executor::Servers;
use quorate_protocol::Json;
use serde_json::{Map, json};

use crate::block::{self, Target};

#[derive(Debug, Default)]
pub(super) struct ToolGrants<'a> {
    /// `None` if the manifest does not restrict tools.
    pub(super) allowed_tools: Option<&'a [String]>,
    /// In the manifest's order, by id, with absolute paths.
    pub(super) servers: Vec<(&'a str, Target)>,
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
        let server = |id: &'a String| {
            let (id, table) = servers.get(id)?;
            // A table that cannot be read was refused where it was configured.
            Some((id, absolute(block::read_server_table(table).ok()?.target, dir)))
        };
        let servers = ids.iter().filter_map(server).collect();
        ToolGrants { allowed_tools: allowed.as_deref(), servers }
    }

    /// Whether the manifest restricts tools.
    pub(super) fn restricts(&self) -> bool {
        self.allowed_tools.is_some() || !self.servers.is_empty()
    }

    /// The variables that its servers need, by name.
    pub(super) fn variables(&self) -> Vec<String> {
        let variables_of = |(_, target): &(_, Target)| match target {
            Target::Url { token, .. } => token.iter().cloned().collect(),
            Target::Command { env, .. } => env.clone(),
        };
        self.servers.iter().flat_map(variables_of).collect()
    }

    /// The servers in the form that most CLIs read: `{"mcpServers": {id: …}}`. It refers to variables by name, not value.
    pub(super) fn mcp_config(&self) -> Json {
        let entries = self.servers.iter().map(|(id, target)| ((*id).to_owned(), config_entry(target)));
        json!({"mcpServers": Map::from_iter(entries)})
    }
}

/// A server whose program and working directory, as far as they are paths, are absolute.
fn absolute(target: Target, dir: &Path) -> Target {
    let absolute = |path: String| {
        let path = dir.join(path);
        std::path::absolute(&path).unwrap_or(path).to_string_lossy().into_owned()
    };
    match target {
        Target::Command { command, args, env, cwd } => Target::Command {
            command: if command.contains('/') { absolute(command) } else { command },
            args,
            env,
            cwd: cwd.map(absolute),
        },
        Target::Url { .. } => target,
    }
}

fn config_entry(target: &Target) -> Json {
    let (command, args, env, cwd) = match target {
        Target::Url { url, token: None } => return json!({"type": "http", "url": url}),
        Target::Url { url, token: Some(token) } => {
            let headers = json!({"Authorization": format!("Bearer ${{{token}}}")});
            return json!({"type": "http", "url": url, "headers": headers});
        }
        Target::Command { command, args, env, cwd } => (command, args, env, cwd),
    };
    let env: Map<String, Json> =
        env.iter().map(|name| (name.clone(), json!(format!("${{{name}:-}}")))).collect();
    let Some(cwd) = cwd else {
        return json!({"type": "stdio", "command": command, "args": args, "env": env});
    };
    // The format has no key for a working directory.
    let first = ["-c", "cd \"$1\" && shift && exec \"$@\"", "sh", cwd, command].map(str::to_owned);
    let args = [&first[..], args].concat();
    json!({"type": "stdio", "command": "/bin/sh", "args": args, "env": env})
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
