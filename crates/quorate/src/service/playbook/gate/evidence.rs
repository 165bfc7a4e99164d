//! A gate's result: the evidence that opens it, or why it stays closed; and the interface to a person.

use quorate_diagnostics::invisible::escape_invisible;

/// The evidence of a promotion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateEvidence {
    /// The kind of evidence.
    pub kind: &'static str,
    pub reference: String,
    /// What it shows, in one line.
    pub note: String,
}

/// Why a gate stays closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateClosed {
    pub message: String,
    pub help: String,
}

impl GateClosed {
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        GateClosed { message: message.into(), help: help.into() }
    }
}

/// A person who decides.
pub trait Approver: Send {
    /// Shows a question and asks for yes or no.
    ///
    /// # Errors
    /// If no person can be asked.
    fn ask(&mut self, shown: &str) -> Result<Answer, GateClosed>;
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub yes: bool,
    /// The reason, in one line; it may be empty.
    pub why: String,
    pub by: String,
}

/// Adds untrusted text as a quotation, with invisible characters escaped.
pub fn push_quote(text: &mut String, quoted: &str) {
    for line in escape_invisible(quoted).lines() {
        text.push_str(&format!("> {line}\n"));
    }
}
