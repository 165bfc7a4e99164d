//! Manifests: the texts that say who decides together and how, as written and as resolved.
//!
//! Nothing here opens a file: bytes come through a [`Source`]. Nothing here knows how a mode decides or which
//! adapter kinds exist. Whatever is wrong with a text is reported at once, each with a code and a place.

pub mod assembly;
pub mod capabilities;
pub mod check;
pub(crate) mod checks;
pub mod config;
pub mod council;
pub mod decimal;
pub mod decode;
pub mod doctype;
pub mod document;
pub mod duration;
pub mod format;
pub mod frontmatter;
pub mod governance;
pub mod json_schema;
pub mod keyring;
pub mod loader;
pub mod merge;
pub mod misspelling;
pub mod operator;
mod pattern;
pub mod persona;
pub mod playbook;
pub mod runtime;
pub mod source;
pub mod timestamp;
pub mod tree;
pub mod workspace;

pub use capabilities::Capabilities;
pub use source::Source;
pub use workspace::Workspace;

use quorate_diagnostics::Report;

/// What loading gives: a value if nothing was refused, and everything that is to be said.
#[derive(Debug, Clone)]
pub struct Loaded<T> {
    /// The value; `None` exactly when the report refuses.
    pub value: Option<T>,
    /// Refusals and warnings with the texts to quote from.
    pub report: Report,
}
