//! The `mcp-kv` state: an entry for each participant in a key-value store behind an MCP server.

use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::state::{Error, State};
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Json;
use serde_json::{Map, json};

use super::admit;
use crate::block::Block;
use crate::mcp::{self, Arguments, Connection, Repeat, Trouble, Until};

/// The kind that a manifest names.
pub const KIND: &str = crate::needs_mcp::STATE;

const KEYS: &[&str] = &["kind", mcp::SERVER, "prefix", "getTool", "setTool"];

const GET: &str = "kv_get";
const SET: &str = "kv_set";

/// The longest key that is written out, in bytes; a longer id is named by its hash.
const LONGEST: usize = 160;

/// Builds the store from its block.
///
/// # Errors
/// When the block has an unknown key or a value of the wrong type, or when the server that it names is not configured.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn State>, ConfigError> {
    let block = Block::of(build.block, KEYS)?;
    let prefix = block.text("prefix")?.map_or_else(|| format!("quorate/{}/", build.runtime), str::to_owned);
    Ok(Arc::new(Store {
        prefix,
        get: block.text("getTool")?.unwrap_or(GET).to_owned(),
        set: block.text("setTool")?.unwrap_or(SET).to_owned(),
        connection: mcp::connection(&block, build.servers, build.dir)?,
    }))
}

struct Store {
    connection: Arc<Connection>,
    prefix: String,
    get: String,
    set: String,
}

impl Store {
    fn key(&self, participant: &str) -> Json {
        json!(format!("{}{}", self.prefix, entry(participant)))
    }

    fn unreadable(&self, participant: &str, why: String) -> Error {
        let trouble =
            Trouble::Nonsense { server: self.connection.id().to_owned(), tool: self.get.clone(), why };
        Error::new(format!("the state of `{participant}` cannot be read"), trouble)
    }
}

/// The name of an entry: the id, in letters that no store changes or folds together.
fn entry(participant: &str) -> String {
    use std::fmt::Write as _;

    let mut name = String::with_capacity(participant.len());
    for byte in participant.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            // Writing to a text does not fail.
            other => drop(write!(name, "%{other:02x}")),
        }
    }
    // A name that is written out has no `~`, and none is empty.
    if name.is_empty() || name.len() > LONGEST {
        format!("~{}", sha256_hex(participant.as_bytes()))
    } else {
        name
    }
}

#[async_trait]
impl State for Store {
    fn kind(&self) -> &'static str {
        KIND
    }

    async fn read(&self, participant: &str) -> Result<Map<String, Json>, Error> {
        let arguments = Arguments::from_iter([("key".to_owned(), self.key(participant))]);
        let result = self.connection.call(&self.get, arguments, Repeat::Harmless, Until::Timeout).await;
        let result = result
            .map_err(|trouble| Error::new(format!("the state of `{participant}` cannot be read"), trouble))?;
        let mut value = match result {
            Json::Object(mut fields) => fields
                .remove("value")
                .ok_or_else(|| self.unreadable(participant, "has no `value`".to_owned()))?,
            _ => return Err(self.unreadable(participant, "is no object".to_owned())),
        };
        if let Json::String(text) = &value {
            value = serde_json::from_str(text)
                .map_err(|_| self.unreadable(participant, "has a `value` that is no JSON".to_owned()))?;
        }
        match value {
            Json::Null => Ok(Map::new()),
            Json::Object(state) => {
                admit(participant, &state)?;
                Ok(state)
            }
            _ => Err(self.unreadable(participant, "has a `value` that is no object".to_owned())),
        }
    }

    async fn write(&self, participant: &str, state: &Map<String, Json>) -> Result<(), Error> {
        admit(participant, state)?;
        let unwritten =
            |trouble| Error::new(format!("the state of `{participant}` cannot be written"), trouble);
        let offer = self.connection.offer(Until::Timeout).await.map_err(unwritten)?;
        let state = Json::Object(state.clone());
        let value = if offer.is_text(&self.set, "value") { Json::String(state.to_string()) } else { state };
        let key = self.key(participant);
        let arguments = Arguments::from_iter([("key".to_owned(), key), ("value".to_owned(), value)]);
        // Writing the whole twice is the same as once.
        let set = self.connection.call(&self.set, arguments, Repeat::Harmless, Until::Timeout).await;
        set.map(drop).map_err(unwritten)
    }
}

#[cfg(test)]
mod tests {
    use super::entry;

    #[test]
    fn no_two_ids_share_an_entry_whatever_the_store_does_to_names() {
        let long = "x".repeat(1000);
        let ids = [
            "a", "A", "a ", "%41", "é", "e\u{301}", "..", "a/b", "a%2fb", "", "~", &long, "Straße", "strasse",
        ];
        let mut entries: Vec<String> = ids.iter().map(|id| entry(id).to_lowercase()).collect();
        entries.sort();
        entries.dedup();
        assert_eq!(entries.len(), ids.len());
        assert!(
            entries.iter().all(|name| name.is_ascii() && !name.is_empty() && name.len() <= super::LONGEST)
        );
        assert_eq!(entry("reviewer-2"), "reviewer-2");
    }
}
