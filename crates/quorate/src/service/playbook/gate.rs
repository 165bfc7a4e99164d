//! The gates of a promotion (B6), one file each.

pub mod ab;
pub mod evidence;
pub mod governance;
pub mod human;
pub mod scorer;

use quorate_manifest::playbook::Gate;
use quorate_manifest::playbook::PlaybookFile;
use quorate_playbook::gate::Thresholds;

use super::trials::NewAttempt;
use super::writer::LibraryWriter;
use crate::service::error::ServiceError;
use crate::service::host::Host;

pub use evidence::{Answer, Approver, GateClosed, GateEvidence};

/// Asks a gate. A closed gate is the inner error.
///
/// # Errors
/// If a file cannot be read, or the gate cannot be asked.
#[crate::boxed]
pub async fn attempt(
    keeping: &LibraryWriter,
    book: &PlaybookFile,
    gate: Gate,
    attempt: &NewAttempt,
    asked: &mut dyn Approver,
    host: &Host,
) -> Result<Result<GateEvidence, GateClosed>, ServiceError> {
    let playbooks = &keeping.library.workspace.host.playbooks;
    let terms = Thresholds { min_sample: playbooks.min_sample, error_rate: playbooks.error_rate };
    match gate {
        Gate::AB => ab::attempt(keeping, book, terms).await,
        Gate::Scorer => scorer::attempt(keeping, book, attempt, terms).await,
        Gate::Human => Ok(human::attempt(keeping, book, asked)),
        Gate::Governance => Box::pin(governance::attempt(keeping, book, host)).await,
    }
}
