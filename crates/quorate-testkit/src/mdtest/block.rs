//! A code block of a document.

/// Why a document cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    pub line: usize,
    pub message: String,
}

pub(super) struct Block<'t> {
    pub(super) line: usize,
    pub(super) info: &'t str,
    pub(super) text: String,
}
