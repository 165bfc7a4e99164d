//! Manifests: the files that declare councils, assemblies, personas, playbooks and runtimes, as written and as resolved.
//!
//! This crate opens no file: bytes come through a [`Source`] or a [`Workspace`]. It does not know how a mode decides or
//! which adapter kinds exist. Loading reports all problems of a text at once, each with a code and a place.

pub mod assembly;
pub mod capabilities;
pub mod check;
pub(crate) mod checks;
pub mod config;
pub mod council;
pub mod decimal;
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
pub mod timestamp;
pub mod tree;
pub mod workspace;

pub use capabilities::Capabilities;
pub use workspace::{Source, Workspace};

use quorate_diagnostics::Report;

/// Result of loading a manifest.
#[derive(Debug, Clone)]
pub struct Loaded<T> {
    /// `None` if and only if the report has refusals.
    pub value: Option<T>,
    pub report: Report,
}
