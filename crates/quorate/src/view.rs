//! Outcomes as people read them. An outcome builds one [`Doc`], which is written as text, Markdown or HTML.

pub mod code_hosts;
pub mod doc;
pub mod layout;
pub mod markdown;
pub mod wording;

pub use doc::{Doc, Entry, Medium, Table, Text, Tone};

/// How much of an outcome a document shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What a reader needs to act: the outcome, its reasons, and what should change.
    Screen,
    /// All details, and each member's executor and usage.
    Full,
}
