//! The effectors port: which tools a participant has.

use crate::conversation::Tools;

/// The effectors port: which tools a participant has.
///
/// # For adapter authors
///
/// Effectors are declared by the manifest, resolved here, and used by the executor, which gets them as [`Tools`] with every
/// turn. Only the executor enforces them. `check` reports a server that is not configured, and it is not passed on.
pub trait Effectors: Send + Sync {
    fn kind(&self) -> &'static str;

    /// The tools of a participant.
    fn tools(&self, participant: &str) -> Tools;

    /// Named servers that are not configured, each with its participant.
    fn unknown_servers(&self) -> Vec<(String, String)>;
}
