//! Outcomes as people read them. An outcome builds one [`Doc`], which is written as text, Markdown or HTML.

mod audit;
pub mod code_hosts;
mod decision;
pub mod doc;
mod eval;
pub mod layout;
mod ledger;
pub mod markdown;
#[cfg(feature = "provision")]
mod provision;
pub(crate) mod resolution;
pub(crate) mod review;
mod sweep;
pub mod wording;

pub use doc::{Conclusion, Doc, Entry, Issue, Problem, Table, Text, Tone};
pub use review::{Move, members};
pub use sweep::ESTIMATE_NOTE;

/// How much of an outcome a document shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The outcome, its reasons, and what should change: enough for a reader to act.
    Screen,
    /// All details, and each member's executor and usage.
    Full,
}
