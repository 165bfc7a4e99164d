//! The gates of a promotion (B6), one file each: what they ask the world, and what they make of it.

pub mod ab;
pub mod governance;
pub mod human;
pub mod scorer;

use quorate_manifest::playbook::catalog::PlaybookFile;
use quorate_manifest::playbook::history::Gate;
use quorate_playbook::gate::Thresholds;

use super::change::LibraryWriter;
use crate::service::error::ServiceError;
use crate::service::host::Host;

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

/// Tries a gate.
///
/// # Errors
/// When something cannot be read or asked at all.
pub async fn attempt(
    keeping: &LibraryWriter,
    book: &PlaybookFile,
    gate: Gate,
    asked: &mut dyn Approver,
    host: &Host,
) -> Result<Result<GateEvidence, GateClosed>, ServiceError> {
    let playbooks = &keeping.library.workspace.host.playbooks;
    let terms = Thresholds { min_sample: playbooks.min_sample, error_rate: playbooks.error_rate };
    match gate {
        Gate::AB => ab::attempt(keeping, book, terms).await,
        Gate::Scorer => scorer::attempt(keeping, book, terms).await,
        Gate::Human => Ok(human::attempt(keeping, book, asked)),
        Gate::Governance => governance::attempt(keeping, book, host).await,
    }
}
