//! The `mcp-kv` store: an entry for each participant in a key-value store behind an MCP server.

use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::state::{State, StateError};
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Json;
use serde_json::{Map, json};

use super::check_storable;
use crate::block::Block;
use crate::mcp::{self, Arguments, CallDeadline, CallError, Connection, Retry};

/// The kind that a manifest names.
pub const KIND: &str = crate::optional_kinds::MCP_STATE;

const KEYS: &[&str] = &["kind", mcp::SERVER_KEY, "prefix", "getTool", "setTool"];

const GET_TOOL: &str = "kv_get";
const SET_TOOL: &str = "kv_set";

/// The longest id that is used as a key, in bytes; a longer one is replaced by its hash.
const MAX_KEY_BYTES: usize = 160;

/// Builds the store from its block.
///
/// # Errors
/// When the block has an unknown key or a value of the wrong type, or when the server that it names is not configured.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn State>, ConfigError> {
    let block = Block::parse(build.block, KEYS)?;
    let prefix = block.text("prefix")?.map_or_else(|| format!("quorate/{}/", build.runtime), str::to_owned);
    Ok(Arc::new(McpKvState {
        prefix,
        get: block.text("getTool")?.unwrap_or(GET_TOOL).to_owned(),
        set: block.text("setTool")?.unwrap_or(SET_TOOL).to_owned(),
        connection: mcp::connection(&block, build.servers, build.dir)?,
    }))
}

struct McpKvState {
    connection: Arc<Connection>,
    prefix: String,
    get: String,
    set: String,
}

impl McpKvState {
    fn key(&self, participant: &str) -> Json {
        json!(format!("{}{}", self.prefix, encode_key(participant)))
    }

    fn read_error(&self, participant: &str, why: String) -> StateError {
        let error = CallError::MalformedResult {
            server: self.connection.id().to_owned(),
            tool: self.get.clone(),
            why,
        };
        StateError::new(format!("the state of `{participant}` cannot be read"), error)
    }
}

/// The key of an entry: the id, in characters that no store changes or treats as equal.
fn encode_key(participant: &str) -> String {
    use std::fmt::Write as _;

    let mut name = String::with_capacity(participant.len());
    for byte in participant.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            // Writing to a string does not fail.
            byte => drop(write!(name, "%{byte:02x}")),
        }
    }
    // An encoded id is never empty and contains no `~`.
    if name.is_empty() || name.len() > MAX_KEY_BYTES {
        format!("~{}", sha256_hex(participant.as_bytes()))
    } else {
        name
    }
}

#[async_trait]
impl State for McpKvState {
    fn kind(&self) -> &'static str {
        KIND
    }

    async fn read(&self, participant: &str) -> Result<Map<String, Json>, StateError> {
        let arguments = Arguments::from_iter([("key".to_owned(), self.key(participant))]);
        let result = self.connection.call(&self.get, arguments, Retry::Safe, CallDeadline::Timeout).await;
        let result = result.map_err(|error| {
            StateError::new(format!("the state of `{participant}` cannot be read"), error)
        })?;
        let mut value = match result {
            Json::Object(mut fields) => fields
                .remove("value")
                .ok_or_else(|| self.read_error(participant, "has no `value`".to_owned()))?,
            _ => return Err(self.read_error(participant, "is not an object".to_owned())),
        };
        if let Json::String(text) = &value {
            value = serde_json::from_str(text)
                .map_err(|_| self.read_error(participant, "has a `value` that is not JSON".to_owned()))?;
        }
        match value {
            Json::Null => Ok(Map::new()),
            Json::Object(state) => {
                check_storable(participant, &state)?;
                Ok(state)
            }
            _ => Err(self.read_error(participant, "has a `value` that is not an object".to_owned())),
        }
    }

    async fn write(&self, participant: &str, state: &Map<String, Json>) -> Result<(), StateError> {
        check_storable(participant, state)?;
        let unwritten =
            |error| StateError::new(format!("the state of `{participant}` cannot be written"), error);
        let offer = self.connection.tools(CallDeadline::Timeout).await.map_err(unwritten)?;
        let state = Json::Object(state.clone());
        let value = if offer.is_text(&self.set, "value") { Json::String(state.to_string()) } else { state };
        let key = self.key(participant);
        let arguments = Arguments::from_iter([("key".to_owned(), key), ("value".to_owned(), value)]);
        // Writing the whole state is idempotent.
        let set = self.connection.call(&self.set, arguments, Retry::Safe, CallDeadline::Timeout).await;
        set.map(drop).map_err(unwritten)
    }
}

#[cfg(test)]
mod tests {
    use super::encode_key;

    #[test]
    fn no_two_ids_share_an_entry_whatever_the_store_does_to_names() {
        let long = "x".repeat(1000);
        let ids = [
            "a", "A", "a ", "%41", "é", "e\u{301}", "..", "a/b", "a%2fb", "", "~", &long, "Straße", "strasse",
        ];
        let mut entries: Vec<String> = ids.iter().map(|id| encode_key(id).to_lowercase()).collect();
        entries.sort();
        entries.dedup();
        assert_eq!(entries.len(), ids.len());
        assert!(
            entries
                .iter()
                .all(|name| name.is_ascii() && !name.is_empty() && name.len() <= super::MAX_KEY_BYTES)
        );
        assert_eq!(encode_key("reviewer-2"), "reviewer-2");
    }
}
