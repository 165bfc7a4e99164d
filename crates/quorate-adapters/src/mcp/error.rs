//! Why a call failed.

use std::time::Duration;

use crate::http::error_chain;

/// The longest excerpt of the server's text, in characters.
const MAX_EXCERPT_CHARS: usize = 600;

/// Why a call failed. The message names the server, and a remedy if one is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// There is no connection, and no request was sent.
    #[error("MCP server `{server}`: {why}")]
    Unreachable { server: String, why: String },
    /// The configuration cannot work; a retry does not help.
    #[error("MCP server `{server}`: {why}")]
    Unusable {
        server: String,
        /// The problem and its remedy.
        why: String,
    },
    /// The server answers with an error.
    #[error("MCP server `{server}`: `{tool}` failed: {message}")]
    Failed {
        server: String,
        tool: String,
        /// The server's text, capped.
        message: String,
    },
    /// The connection broke after the request was sent; the server may have carried it out.
    #[error("MCP server `{server}`: the connection broke while `{tool}` was under way: {why}")]
    Lost { server: String, tool: String, why: String },
    /// No answer in time; the server may have carried it out, or may do so later.
    #[error("MCP server `{server}`: `{tool}` gave no answer within {limit:?}")]
    TimedOut { server: String, tool: String, limit: Duration },
    /// The answer does not have the tool's format.
    #[error("MCP server `{server}`: the result of `{tool}` {why}")]
    MalformedResult {
        server: String,
        tool: String,
        /// The problem, as a predicate: `is no JSON`.
        why: String,
    },
}

impl CallError {
    /// Whether the server may have carried out the request nevertheless.
    pub(crate) fn may_have_run(&self) -> bool {
        match self {
            // Servers store a message and fail afterwards, for example when they notify others.
            CallError::Lost { .. }
            | CallError::TimedOut { .. }
            | CallError::MalformedResult { .. }
            | CallError::Failed { .. } => true,
            CallError::Unreachable { .. } | CallError::Unusable { .. } => false,
        }
    }

    /// Whether the connection failed, so that another one may help.
    pub(super) fn is_connection_error(&self) -> bool {
        matches!(self, CallError::Unreachable { .. } | CallError::Lost { .. })
    }
}

/// An excerpt of the server's text for a message: one line, capped.
pub(crate) fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// An error with all of its causes, in one line.
pub(super) fn error_text(error: &dyn std::error::Error) -> String {
    excerpt(&error_chain(error))
}

#[cfg(test)]
mod tests {
    use super::{MAX_EXCERPT_CHARS, excerpt};

    #[test]
    fn what_the_other_side_says_is_one_line_and_capped() {
        assert_eq!(excerpt(" no\nsuch\tthing "), "no such thing");
        let long = excerpt(&"é".repeat(10_000));
        assert_eq!(long.chars().count(), MAX_EXCERPT_CHARS + 1);
    }
}
