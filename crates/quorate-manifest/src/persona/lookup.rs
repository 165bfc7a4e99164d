//! What a persona ref names.

use quorate_diagnostics::Place;

use crate::workspace::WorkspacePath;

/// Result of looking up a persona by its ref.
pub type Lookup = Result<FoundPersona, Box<LookupError>>;

/// The target of a persona ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPersona {
    pub path: WorkspacePath,
    pub title: String,
}

/// Why a persona ref cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupError {
    /// A clause for the end of a sentence.
    pub reason: String,
    pub help: Option<String>,
    /// The first refusal in the persona's own file.
    pub related: Option<(Place, String)>,
}
