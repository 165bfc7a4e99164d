//! The `manifest` effectors: the manifest's `effectors` with the MCP servers that the host has configured.
//!
//! Several entries for one participant add up. A participant without an entry keeps its executor's tools; one with an
//! entry has exactly the named tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_kernel::conversation::Tools;
use quorate_kernel::ports::effectors::Effectors;
use quorate_kernel::ports::executor::Servers;

const KIND: &str = "manifest";

/// Binds participants to tools. An entry whose allowed list is `None` allows no tool.
pub fn new(bindings: Vec<(String, Tools)>, servers: &Servers) -> Arc<dyn Effectors> {
    let mut bound = ManifestEffectors::default();
    for (participant, tools) in bindings {
        let granted = bound.tools.entry(participant.clone()).or_default();
        append_missing(granted.allowed.get_or_insert_default(), tools.allowed.unwrap_or_default());
        let (known, unknown) = tools.servers.into_iter().partition(|id| servers.get(id).is_some());
        append_missing(&mut granted.servers, known);
        append_missing(
            &mut bound.unknown_servers,
            unknown.into_iter().map(|id| (participant.clone(), id)).collect(),
        );
    }
    Arc::new(bound)
}

#[derive(Debug, Default)]
struct ManifestEffectors {
    tools: BTreeMap<String, Tools>,
    unknown_servers: Vec<(String, String)>,
}

fn append_missing<T: PartialEq>(list: &mut Vec<T>, more: Vec<T>) {
    for item in more {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

impl Effectors for ManifestEffectors {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn tools(&self, participant: &str) -> Tools {
        self.tools.get(participant).cloned().unwrap_or_default()
    }

    /// Pairs of a participant and a server, in the manifest's order.
    fn unknown_servers(&self) -> Vec<(String, String)> {
        self.unknown_servers.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(participant: &str, tools: &[&str], servers: &[&str]) -> (String, Tools) {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        (participant.to_owned(), Tools { allowed: Some(owned(tools)), servers: owned(servers) })
    }

    #[test]
    fn entries_add_up_and_unconfigured_servers_are_named_and_not_passed_on() {
        let servers = Servers::new(BTreeMap::from([("github".to_owned(), Default::default())]));
        let bound = new(
            vec![
                binding("a", &["Read", "Grep"], &["github", "gone"]),
                binding("b", &[], &[]),
                binding("a", &["Read", "Bash"], &["gone", "github"]),
            ],
            &servers,
        );
        let a = bound.tools("a");
        assert_eq!(a.allowed.as_deref(), Some(&["Read", "Grep", "Bash"].map(str::to_owned)[..]));
        assert_eq!(a.servers, ["github"]);
        assert_eq!(bound.tools("b").allowed, Some(Vec::new()), "an empty list allows nothing");
        assert_eq!(bound.tools("c").allowed, None, "nothing is said of it");
        assert_eq!(bound.unknown_servers(), [("a".to_owned(), "gone".to_owned())]);
    }
}
