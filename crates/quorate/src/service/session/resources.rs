//! What is a workspace's own, whatever configuration a run was started with: where it records, with which keys, in which log
//! and before which witness. A run's record names paths, too, and whoever can write the ledger can write these: they are
//! never where a key is looked for, and a line is appended to no file outside of the workspace.

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_ledger::store::address::Address;
use quorate_protocol::Json;

use super::LedgerSession;
use crate::service::environment::Environment;
use crate::service::guard::{Guard, Role};
use crate::service::keys::Keys;
use crate::service::witness::Witness;
use crate::service::workspace::boundary::is_inside;
use crate::service::workspace::{Workspace, display_path};

/// What is a workspace's own.
pub struct WorkspaceResources {
    pub(super) keys: Keys,
    ledger: Address,
    log: PathBuf,
    witness: Option<Witness>,
    guard: Guard,
}

impl WorkspaceResources {
    pub(super) fn of(environment: &Environment, workspace: &Workspace) -> WorkspaceResources {
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

impl LedgerSession {
    /// Where a run's lines are appended, and behind how many bytes they can stand: in the log that its record names where
    /// that is of this workspace, else in the workspace's own, which is said.
    pub(super) fn log_target(&self, history: &History) -> (PathBuf, u64) {
        let named = history.opened.get("log_path").and_then(Json::as_str).map(Path::new);
        match named {
            Some(named) if self.owns_log(named) => {
                let bytes = history.opened.get("log_bytes").and_then(Json::as_u64);
                let log = if self.is_default_log(named) { &self.workspace.log } else { named };
                return (log.to_owned(), bytes.unwrap_or(0));
            }
            Some(named) => {
                let log = display_path(&self.environment, &self.workspace.log);
                let body = Body::new(format!(
                    "the log of run {} is {}, which is not in this workspace: the line stands in {log}",
                    history.run,
                    named.display()
                ));
                let help = "`quorate ledger verify` finds it here; give the command in the run's own workspace to have it there";
                self.warn(codes::LOG_ELSEWHERE, body.help(help));
            }
            None => {}
        }
        (self.workspace.log.clone(), 0)
    }

    /// What the record says that ends a run whose lines stand elsewhere than its first record says: in which log. `verify`
    /// looks for them there.
    pub(super) fn logged_elsewhere(&self, history: &History) -> Option<Json> {
        let named = history.opened.get("log_path").and_then(Json::as_str)?;
        let own = self.workspace.redaction.redactor.redact(&self.workspace.log.to_string_lossy()).0;
        (!self.owns_log(Path::new(named))).then_some(Json::String(own))
    }

    /// Whether a log is this workspace's: its own, or another one below its root.
    pub(super) fn owns_log(&self, log: &Path) -> bool {
        let is_log = || log.extension().is_some_and(|end| end == "jsonl");
        let is_free = || self.workspace.guard.occupant(log, Some(Role::Log)).is_none();
        self.is_default_log(log) || (is_log() && is_inside(self.keys.root(), log) && is_free())
    }

    /// Whether a log, as a record names it, is the workspace's own. What is recorded was redacted.
    fn is_default_log(&self, log: &Path) -> bool {
        let own = &self.workspace.log;
        log == own
            || *log.to_string_lossy() == *self.workspace.redaction.redactor.redact(&own.to_string_lossy()).0
    }
}
