//! A server's tools and their arguments, listed once for each connection.

use std::collections::BTreeMap;

use quorate_protocol::Json;
use serde_json::Map;

use super::Arguments;
use super::error::CallError;
use crate::block::nearest;

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ServerTools {
    server: String,
    tools: BTreeMap<String, Map<String, Json>>,
}

impl ServerTools {
    /// The tools, each with the JSON Schema of its input.
    pub(super) fn new(server: &str, tools: impl IntoIterator<Item = (String, Map<String, Json>)>) -> Self {
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
    pub(super) fn require_tool(&self, tool: &str) -> Result<(), CallError> {
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

#[cfg(test)]
mod tests {
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
