//! The resources of a workspace, whatever configuration a run was started with: ledger, keys, log and witness. A run's record
//! also names paths, but anyone who can write to the ledger can choose these. Keys are therefore never searched for there, and
//! no line is appended to a file outside of the workspace.

use std::path::PathBuf;

use quorate_ledger::store::address::StoreAddress;

use crate::service::environment::Environment;
use crate::service::guard::Guard;
use crate::service::keys::Keys;
use crate::service::witness::Witness;
use crate::service::workspace::Workspace;

/// The resources that belong to a workspace.
pub struct WorkspaceResources {
    pub(super) keys: Keys,
    ledger: StoreAddress,
    log: PathBuf,
    witness: Option<Witness>,
    guard: Guard,
}

impl WorkspaceResources {
    pub(in crate::service) fn of(environment: &Environment, workspace: &Workspace) -> WorkspaceResources {
        WorkspaceResources {
            keys: Keys::of(environment, workspace),
            ledger: workspace.ledger.clone(),
            log: workspace.log.clone(),
            witness: workspace.witness.clone(),
            guard: workspace.guard.clone(),
        }
    }

    /// Applies these resources to another workspace's configuration.
    pub(super) fn apply_to(&self, configuration: Workspace) -> Workspace {
        Workspace {
            ledger: self.ledger.clone(),
            log: self.log.clone(),
            witness: self.witness.clone(),
            guard: self.guard.clone(),
            ..configuration
        }
    }
}
