//! What is a workspace's own, whatever configuration a run was started with: where it records, with which keys, in which log
//! and before which witness. A run's record names paths, too, and anyone who can write the ledger can write these: they are
//! never where a key is looked for, and a line is appended to no file outside of the workspace.

use std::path::PathBuf;

use quorate_ledger::store::address::Address;

use crate::service::environment::Environment;
use crate::service::guard::Guard;
use crate::service::keys::Keys;
use crate::service::witness::Witness;
use crate::service::workspace::Workspace;

/// The resources that belong to a workspace.
pub struct WorkspaceResources {
    pub(super) keys: Keys,
    ledger: Address,
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

    /// A configuration that is used from here.
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
