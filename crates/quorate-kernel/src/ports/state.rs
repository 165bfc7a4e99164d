//! The state port: what a participant remembers between its turns.
//!
//! # For adapter authors
//!
//! - A participant without a state has the empty object.
//! - [`State::write`] replaces the whole state. A read during a write, or after a crash in the middle of one, returns the
//!   old or the new state, never a mixture.
//! - A state that is not [storable](quorate_protocol::storable) is refused, written and read.
//! - Ids are any text; two of them never share an entry, whatever the store does to names.
//!
//! `quorate_testkit::conformance::state` checks it.

use async_trait::async_trait;
use quorate_protocol::Json;
use serde_json::Map;

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Error {
    /// What failed, for a person.
    pub what: String,
    /// The underlying error.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub fn new(what: impl Into<String>, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error { what: what.into(), source: Some(source.into()) }
    }
}

/// Keeps one object for each participant. See the module's text for the contract.
#[async_trait]
pub trait State: Send + Sync {
    fn kind(&self) -> &'static str;

    /// Warnings about the stored states. `check` shows them too, so it makes no connection.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// What a participant remembers.
    async fn read(&self, participant: &str) -> Result<Map<String, Json>, Error>;

    /// Replaces what a participant remembers.
    async fn write(&self, participant: &str, state: &Map<String, Json>) -> Result<(), Error>;
}
