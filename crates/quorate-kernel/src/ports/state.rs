//! The state port: what a participant remembers between its turns.

use async_trait::async_trait;
use quorate_protocol::Json;
use serde_json::Map;

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct StateError {
    /// What failed, for a person.
    pub what: String,
    /// The underlying error.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StateError {
    /// A failure with its cause.
    pub fn new(what: impl Into<String>, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        StateError { what: what.into(), source: Some(source.into()) }
    }
}

/// The state port: what a participant remembers between its turns. Keeps one object for each participant.
///
/// # For adapter authors
///
/// - A participant without a state has the empty object.
/// - [`State::write`] replaces the whole state. A read during a write, or after a crash in the middle of one, returns the
///   old or the new state, never a mixture.
/// - A state that is not [storable](quorate_protocol::storable) is refused, written and read.
/// - Ids are any text; two of them never share an entry, whatever the store does to names.
///
/// `quorate_testkit::conformance::state` checks it.
#[async_trait]
pub trait State: Send + Sync {
    fn kind(&self) -> &'static str;

    /// What a participant remembers.
    async fn read(&self, participant: &str) -> Result<Map<String, Json>, StateError>;

    /// Replaces what a participant remembers.
    async fn write(&self, participant: &str, state: &Map<String, Json>) -> Result<(), StateError>;
}
