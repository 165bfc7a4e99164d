//! The effectors port: which tools a participant has.
//!
//! # For adapter authors
//!
//! Effectors are declared by the manifest, resolved here, and used by the executor, which gets them as
//! [`Tools`] with every turn. Nothing else enforces them. A server that nobody has
//! configured is named by `check`, and not passed on.

use crate::conversation::Tools;

/// Says which tools a participant has. See the module's text for the contract.
pub trait Effectors: Send + Sync {
    fn kind(&self) -> &'static str;

    /// The tools of a participant.
    fn tools(&self, participant: &str) -> Tools;

    /// Servers that are named and that nobody has configured, with the participant that names each.
    fn unknown_servers(&self) -> Vec<(String, String)>;
}
