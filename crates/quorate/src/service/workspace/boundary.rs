//! Side effects of a configuration outside of its workspace: a ledger in a database or elsewhere on the disk, a witness, a
//! log. Files below the root need no trust, links included.

use std::path::Path;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::ports::executor::SideEffect;
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::config::{Configuration, KeySource};
use quorate_manifest::council::Council;
use quorate_manifest::{Source, source};

use super::super::disk::{self, Disk};
use super::super::error::ServiceError;
use crate::service::paths::absolute;

/// The side effects of a `quorate.toml` outside of its directory.
pub fn of_configuration(host: &Configuration) -> Vec<SideEffect> {
    let key = host.keys.signing.as_ref().and_then(|(source, _)| match source {
        KeySource::File(path) => of_key(&host.dir, &absolute(&host.dir, path.as_ref())),
        KeySource::Env(_) | KeySource::Command(_) => None,
    });
    of_ledger(host).into_iter().chain(of_witness(host)).chain(key).collect()
}

/// The ledger of a `quorate.toml`, if it is outside.
pub(super) fn of_ledger(host: &Configuration) -> Option<SideEffect> {
    let written = host.ledger.path.as_deref()?;
    if StoreAddress::is_postgres(written) {
        let address = StoreAddress::Postgres { url: written.to_owned(), dir: host.dir.clone() };
        return Some(SideEffect::new(format!("keep the ledger in {address}")));
    }
    let path = absolute(&host.dir, written.as_ref());
    (!is_inside(&host.dir, &path)).then(|| SideEffect::new(format!("keep the ledger at {}", path.display())))
}

/// The witness of a `quorate.toml`, if it is outside.
pub(super) fn of_witness(host: &Configuration) -> Option<SideEffect> {
    let (written, _) = host.ledger.witness.as_ref()?;
    if written.contains("://") {
        return Some(SideEffect::new(format!("send checkpoints to {written}")));
    }
    let path = absolute(&host.dir, written.as_ref());
    (!is_inside(&host.dir, &path))
        .then(|| SideEffect::new(format!("append checkpoints to {}", path.display())))
}

/// The key of a root's `quorate.toml`, if it is outside.
pub fn of_key(root: &Path, path: &Path) -> Option<SideEffect> {
    (!is_inside(root, path)).then(|| SideEffect::new(format!("sign with the key {}", path.display())))
}

/// The files outside of a root and of its own directory that a council reads and writes: prompts and documents that it shows
/// to members, and its log.
pub fn of_council(council: &Council, root: &Path) -> Vec<SideEffect> {
    let outside = |path: &Path| {
        let path = absolute(&council.dir, path);
        (!is_inside(root, &path) && !is_inside(&council.dir, &path)).then(|| path.display().to_string())
    };
    let read = council.files.iter().filter_map(|(written, _)| outside(written.as_ref()));
    let read = read.map(|path| SideEffect::new(format!("show members the file {path}")));
    let log = council.logging.log_path.as_ref().and_then(|path| outside(path));
    read.chain(log.map(|path| SideEffect::new(format!("append verdicts to {path}")))).collect()
}

/// The watched folders of a council outside of a root and of its own directory, which a sweep shows members.
pub fn of_watch(council: &Council, root: &Path) -> Vec<SideEffect> {
    let folders = council.watch.paths.iter().map(|written| absolute(&council.dir, written.as_ref()));
    let outside = folders.filter(|path| !is_inside(root, path) && !is_inside(&council.dir, path));
    outside.map(|path| SideEffect::new(format!("show members the files below {}", path.display()))).collect()
}

/// Refuses a path that is below a root by its name, but leads out by a link.
///
/// # Errors
/// [`codes::WORKSPACE_UNTRUSTED`].
pub(super) fn ensure_inside(root: &Path, path: &Path, what: &str) -> Result<(), ServiceError> {
    if is_inside(root, path) {
        return Ok(());
    }
    let target = disk::canonical_or_new(path);
    let body = Body::new(format!(
        "cannot keep the {what} at {}: a link leads out of the workspace, to {}",
        path.display(),
        target.display()
    ));
    let help = "remove the link, or choose the place yourself: `--ledger PATH`";
    Err(ServiceError::configuration(codes::WORKSPACE_UNTRUSTED, body.help(help)))
}

/// The entries of a ledger's directory that must not lead elsewhere.
const LEDGER_ENTRIES: [&str; 5] = ["keys", "aside", "live", "keys/checkpoints", ".gitignore"];

/// Refuses a ledger's directory with an entry that leads out of a root by a link: a key, a checkpoint, a file moved aside.
///
/// # Errors
/// [`codes::WORKSPACE_UNTRUSTED`].
pub(super) fn ensure_no_outside_links(root: &Path, dir: &Path) -> Result<(), ServiceError> {
    for kept in LEDGER_ENTRIES {
        ensure_inside(root, &dir.join(kept), kept)?;
    }
    let own_dir = dir.ends_with(".quorate").then(|| dir.to_owned());
    for dir in own_dir.into_iter().chain(LEDGER_ENTRIES.map(|kept| dir.join(kept))) {
        for link in disk::links_in(&dir) {
            ensure_inside(root, &link, "files of the ledger")?;
        }
    }
    Ok(())
}

/// The disk for a file that was found in a workspace and not named by a person. A file that is a link out of the root is not
/// read, so that no line of it is shown.
pub struct FoundFile<'a> {
    pub root: &'a Path,
    /// The checked file; other files are read without this check.
    pub file: &'a Path,
}

impl Source for FoundFile<'_> {
    fn read(&self, path: &Path) -> Result<Vec<u8>, source::Error> {
        match path == self.file && leads_out(self.root, path) {
            true => Err(source::Error::Unreadable(std::io::Error::other("it leads out of its workspace"))),
            false => Disk.read(path),
        }
    }
}

/// Whether a path is below a root by its name, but leads out by a link.
pub fn leads_out(root: &Path, path: &Path) -> bool {
    path.starts_with(root) && !is_inside(root, path)
}

/// Whether a path is below a root once links are followed. A root or path that does not exist counts at the place where it
/// would be created.
pub fn is_inside(root: &Path, path: &Path) -> bool {
    disk::canonical_or_new(path).starts_with(disk::canonical_or_new(root))
}
