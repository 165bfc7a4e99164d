//! Playbooks: what agents learn from their runs. Most files below own one operation on playbooks. The others are shared:
//! `playbook/library.rs` reads playbooks and operators and matches them, `playbook/versions.rs` reads earlier versions from
//! files and from the ledger, `playbook/change.rs` and `playbook/writer.rs` change files and ledger together,
//! `playbook/consultant.rs` asks an executor, and `playbook/traits.rs` determines the locked traits. This file has the
//! result of a gate and the interface to a person who decides.

pub mod change;
pub mod consultant;
pub mod gate;
pub mod inspect;
pub mod library;
pub mod overview;
pub mod promote;
pub mod propose;
pub mod reflect;
pub mod repair;
pub mod rollback;
pub mod traits;
pub mod versions;
pub mod writer;

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
    /// The reason.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl GateClosed {
    /// A reason, and what to do.
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
    fn ask(&mut self, question: &str) -> Result<Approval, GateClosed>;
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Whether the person agrees.
    pub yes: bool,
    /// The reason, in one line; it may be empty.
    pub why: String,
    /// The person's name, which is recorded.
    pub by: String,
}

/// Adds untrusted text as a quotation, with invisible characters escaped.
fn push_quote(text: &mut String, quoted: &str) {
    for line in escape_invisible(quoted).lines() {
        text.push_str(&format!("> {line}\n"));
    }
}
