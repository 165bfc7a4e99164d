//! Denies members access to the files of the ledger in use.

use std::path::Path;

use quorate_adapters::process::{self, LedgerFiles};

use super::guard::{SQLITE_SUFFIXES, with_suffix};
use super::workspace::Workspace;

/// Denies members that start from now on access to the keys, ledger and log of a workspace.
pub(super) fn deny_to_members(workspace: &Workspace) {
    let dir = workspace.ledger.dir();
    let ledger = match workspace.ledger.file() {
        // The whole of Quorate's own directory is denied, with the files that were moved aside.
        _ if dir.file_name().is_some_and(|name| name == ".quorate") => vec![dir.to_owned()],
        Some(file) => {
            SQLITE_SUFFIXES.iter().map(|ending| with_suffix(file, ending)).chain([file.to_owned()]).collect()
        }
        None => vec![dir.to_owned()],
    };
    let council = workspace.council_path.as_deref();
    let root = workspace.host_path.as_deref().or(council).and_then(Path::parent);
    process::protect_from_members(LedgerFiles {
        keys: dir.join("keys"),
        ledger,
        log: workspace.log.clone(),
        workspace: root.map(Path::to_owned),
    });
}
