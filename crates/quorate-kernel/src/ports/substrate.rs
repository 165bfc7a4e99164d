//! The substrate port: where a conversation is stored.
//!
//! # For adapter authors
//!
//! A substrate is append-only, and it is the only part of a cycle that lasts: everything else is restored from it. An
//! adapter must satisfy:
//!
//! - [`Substrate::append`] keeps the turn before it returns, in the order of its calls, with the content byte for byte as
//!   given. A turn with a stamp is taken once for each key: who appends a second one gets the first back, with `fresh`
//!   false, also from another process and after a restart. A substrate that cannot keep stamps returns
//!   [`Keeps::Turns`].
//! - [`Substrate::read`] gives the turns strictly newer than `since`, oldest first, at most `limit`, and costs as much
//!   as what it gives, not as much as the conversation. Without `since` it begins with the first turn.
//! - A `since` that is gone is as good as none: everything is given, and [`Page::known`] is false. Only a
//!   substrate that cannot see everything refuses with [`SubstrateError::Unknown`]; it must never pretend that a window is all.
//! - [`Substrate::window`] gives up to `count` turns that end with `at`, oldest first.
//! - [`Substrate::changed`] returns when there may be something that the last `read` did not give. It may return early;
//!   it must not stay silent. It waits for a notification where the other side has one.
//! - It declares only capabilities that it has.
//! - Metadata or a state that is not [storable](quorate_protocol::storable) is refused.
//! - Ids are opaque to all callers, contain no white space, and never change. If an id is a hash of the turn,
//!   [`Substrate::id_proof`] compares them.
//!
//! `quorate_testkit::conformance::substrate` checks all of it, by declared capability.

use std::path::PathBuf;

use async_trait::async_trait;
use quorate_protocol::Name;

use crate::conversation::{Capabilities, NewTurn, Turn};

/// Turns that were read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// The turns, oldest first.
    pub turns: Vec<Turn>,
    /// Whether `since` was there; true where none was given.
    pub known: bool,
}

/// A turn that was appended.
#[derive(Debug, Clone, PartialEq)]
pub struct Appended {
    /// It, or the one that has its key already.
    pub turn: Turn,
    /// Whether it was appended by this call.
    pub fresh: bool,
}

/// What a substrate keeps of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// The turn with its metadata and its stamp.
    Stamps,
    /// The author and the content alone. Restarts then depend on the ledger.
    Turns,
}

/// Which processes see an appended turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// This process alone: the conversation ends with it.
    Process,
    /// Every process that has the same manifest.
    Persistent,
}

/// What the id of a turn proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdProof {
    /// Nothing: ids are a server's, and authors may edit or remove their turns there.
    Unsupported,
    /// Nothing: another program chose the id. The turn may not change all the same.
    Absent,
    /// Author, time and content are those that the id was made of.
    Holds,
    /// They are not.
    Broken,
}

/// A substrate's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The kind, as manifests name it.
    pub kind: &'static str,
    /// Its features.
    pub capabilities: Capabilities,
    /// What it keeps of a runtime's own turns.
    pub keeps: Keeps,
    /// Who finds it there.
    pub lifetime: Lifetime,
    /// Which conversation it is, the same after a restart: the cursor is kept by it. A path, an address with an id.
    pub place: String,
    /// The name of the conversation for executors that work elsewhere.
    pub conversation: Option<String>,
}

/// Why a substrate operation failed.
#[derive(Debug, thiserror::Error)]
pub enum SubstrateError {
    /// The turn cannot be stored unchanged.
    #[error("{0}")]
    Refused(String),
    /// It cannot be said what is newer than `since`.
    #[error("{0}")]
    Unknown(String),
    /// The store or the remote side failed or gave an invalid answer. A retry may help.
    #[error("{what}")]
    Unavailable {
        /// What failed, for a person.
        what: String,
        /// The underlying error.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl SubstrateError {
    /// A failure of the store or the remote side, with its cause.
    pub fn unavailable(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        SubstrateError::Unavailable { what: what.into(), source: Some(source.into()) }
    }
}

/// A conversation. See the module's text for the contract.
#[async_trait]
pub trait Substrate: Send + Sync {
    /// The substrate's description of itself.
    fn about(&self) -> About;

    /// Warnings about the stored conversation: text without an author, a truncated turn. `check` shows them too, so it
    /// makes no connection, and readers do, so it does not read the whole conversation.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the id of a turn proves. A runtime passes no turn on whose id disproves it (D15).
    fn id_proof(&self, _turn: &Turn) -> IdProof {
        IdProof::Unsupported
    }

    /// The file that holds a turn, and the line at which it begins there; reads the file.
    fn locate(&self, _turn: &Name) -> Option<(PathBuf, usize)> {
        None
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, SubstrateError>;

    /// At most `limit` turns newer than `since`, oldest first.
    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, SubstrateError>;

    /// Up to `count` turns that end with `at`, oldest first; none where `at` is not there.
    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, SubstrateError>;

    /// Returns when there may be something that the last [`Substrate::read`] did not give.
    async fn changed(&self) -> Result<(), SubstrateError>;
}
