//! Why a call came to nothing.

use std::time::Duration;

/// The longest text of the other side that is passed on, in characters.
const MAX_EXCERPT_CHARS: usize = 600;

/// Why a call came to nothing. The message names the server and says what to do where that is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// There is no connection, and no request was sent.
    #[error("MCP server `{server}`: {why}")]
    Unreachable { server: String, why: String },
    /// It is set up in a way that cannot work; trying again does not help.
    #[error("MCP server `{server}`: {why}")]
    Unusable {
        server: String,
        /// What went wrong, and what to do.
        why: String,
    },
    /// The server answers that it does not do it.
    #[error("MCP server `{server}`: `{tool}` failed: {message}")]
    Failed {
        server: String,
        tool: String,
        /// What the server says, capped.
        message: String,
    },
    /// The connection broke after the request was sent: it may have been carried out.
    #[error("MCP server `{server}`: the connection broke while `{tool}` was under way: {why}")]
    Lost { server: String, tool: String, why: String },
    /// No answer in time: it may have been carried out, or may be yet.
    #[error("MCP server `{server}`: `{tool}` gave no answer within {limit:?}")]
    TimedOut {
        server: String,
        tool: String,
        /// How long was waited.
        limit: Duration,
    },
    /// There is an answer, and it is none that the tool should give.
    #[error("MCP server `{server}`: the result of `{tool}` {why}")]
    MalformedResult {
        server: String,
        tool: String,
        /// What is wrong with it, as a predicate: `is no JSON`.
        why: String,
    },
}

impl CallError {
    /// Whether what was asked for may have been done all the same.
    pub(crate) fn may_have_run(&self) -> bool {
        match self {
            CallError::Lost { .. } | CallError::TimedOut { .. } | CallError::MalformedResult { .. } => true,
            CallError::Unreachable { .. } | CallError::Unusable { .. } | CallError::Failed { .. } => false,
        }
    }

    /// Whether the connection is at fault, so that another one may help.
    pub(super) fn is_connection_error(&self) -> bool {
        matches!(self, CallError::Unreachable { .. } | CallError::Lost { .. })
    }
}

/// A text of the other side, fit for a message: one line, not too long.
pub(crate) fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// An error with everything that it comes from, in one line.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Many errors repeat their cause in their own text.
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    excerpt(&text)
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
