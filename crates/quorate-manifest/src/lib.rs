//! Manifests: the files that declare councils, assemblies, personas, playbooks and runtimes, as written and as resolved.
//!
//! This crate opens no file: bytes come through a [`Source`] or a [`Workspace`]. It does not know how a mode decides or
//! which adapter kinds exist. Loading reports all problems of a text at once, each with a code and a place.

/// Gives an enum its words in files and records: `ALL`, `as_str` and `parse`.
#[doc(hidden)]
#[macro_export]
macro_rules! words {
    ($name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $name {
            /// All values, in the order of their declaration.
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$variant),+];

            /// The word in files and records.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word),+
                }
            }

            /// The inverse of [`Self::as_str`].
            pub fn parse(word: &str) -> Option<$name> {
                Self::ALL.into_iter().find(|value| value.as_str() == word)
            }
        }
    };
}

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
mod merge;
pub mod misspelling;
pub mod money;
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
