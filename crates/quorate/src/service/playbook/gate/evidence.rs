//! What a gate says: the evidence that opens it, or why it stays closed; and the person who may be asked.

use quorate_diagnostics::invisible::escape_invisible;

/// What let a playbook through, as it stands in its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateEvidence {
    /// The kind of evidence.
    pub kind: &'static str,
    pub reference: String,
    /// What it shows, in one line.
    pub note: String,
}

/// Why a gate stays shut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateClosed {
    pub message: String,
    pub help: String,
}

impl GateClosed {
    /// A reason, with what to do.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        GateClosed { message: message.into(), help: help.into() }
    }
}

/// A person, who is asked.
pub trait Approver: Send {
    /// Shows what is to be decided and asks for a yes or a no.
    ///
    /// # Errors
    /// When there is nobody who could be asked.
    fn ask(&mut self, shown: &str) -> Result<Answer, GateClosed>;
}

/// What a person says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub yes: bool,
    /// Why, in a line; it may be empty.
    pub why: String,
    pub by: String,
}

/// Adds a foreign text as a quotation, with invisible characters escaped.
pub fn push_quote(text: &mut String, quoted: &str) {
    for line in escape_invisible(quoted).lines() {
        text.push_str(&format!("> {line}\n"));
    }
}
