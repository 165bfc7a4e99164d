//! A user's decisions with `quorate trust`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};

use super::super::disk;
use super::super::environment::Environment;
use super::super::error::ServiceError;
use super::super::manifests::{file_not_found, find_root};
use super::super::paths::absolute;
use super::inventory;
use super::requests::{Inventory, TrustRequest, canonical};
use super::store::{Store, TrustRecord};

/// The result of a trust command, and the files that are trusted now.
#[derive(Debug)]
pub struct TrustChange {
    pub what: Action,
    /// The files of the inventory that are trusted with their present bytes.
    pub trusted: BTreeSet<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The inventory was shown.
    Inspected,
    /// The files of the inventory are trusted.
    Trusted,
    /// No file below the root is trusted.
    Revoked,
}

/// The inventory of files that a person names. It covers each of them, whether or not it has side effects now.
///
/// # Errors
/// If a file does not exist.
pub fn inventory_of(environment: &Environment, files: &[PathBuf]) -> Result<Inventory, ServiceError> {
    let named: Vec<PathBuf> = files.iter().map(|file| absolute(&environment.directory, file)).collect();
    if let Some(at) = named.iter().position(|file| !file.is_file()) {
        return Err(file_not_found(&files[at].display().to_string()));
    }
    let start = named.first().and_then(|file| file.parent()).unwrap_or(&environment.directory);
    let mut found = inventory::of_files(environment, find_root(environment, None, start), named.clone())?;
    let named_requests =
        named.into_iter().map(|file| TrustRequest { file, acts: Vec::new() }).collect::<Vec<_>>();
    found.files.extend(super::file_hashes(&named_requests));
    Ok(found)
}

/// Reads which files are trusted.
///
/// # Errors
/// If the record of trust cannot be read.
pub fn inspect(environment: &Environment, inventory: &Inventory) -> Result<TrustChange, ServiceError> {
    change_of(environment, inventory, Action::Inspected)
}

/// Trusts the files of an inventory.
///
/// # Errors
/// If the record of trust cannot be written.
pub fn trust(environment: &Environment, inventory: &Inventory) -> Result<TrustChange, ServiceError> {
    if !inventory.files.is_empty() {
        store(environment)?.add(&inventory.files, environment.clock.now_ms())?;
    }
    change_of(environment, inventory, Action::Trusted)
}

/// Revokes the trust in an inventory's files, and in all files below its root.
///
/// # Errors
/// As [`trust`].
pub fn revoke(environment: &Environment, inventory: &Inventory) -> Result<TrustChange, ServiceError> {
    let root = canonical(&inventory.root);
    store(environment)?.change(|trusted| {
        trusted.files.retain(|file, _| !file.starts_with(&root) && !inventory.files.contains_key(file));
    })?;
    change_of(environment, inventory, Action::Revoked)
}

/// Allows a directory of another owner to configure Quorate, and returns its path.
///
/// # Errors
/// If the directory does not exist, or as [`trust`].
pub fn safe_directory(environment: &Environment, directory: &Path) -> Result<PathBuf, ServiceError> {
    let path = absolute(&environment.directory, directory);
    let Some(path) = disk::canonical(&path).filter(|path| path.is_dir()) else {
        return Err(file_not_found(&directory.display().to_string()));
    };
    store(environment)?.change(|trusted| {
        trusted.safe_directories.insert(path.clone());
    })?;
    Ok(path)
}

/// Revokes what [`safe_directory`] recorded, and returns the directory's path. The directory need not exist any more.
///
/// # Errors
/// If it is not recorded, or as [`trust`].
pub fn revoke_safe_directory(environment: &Environment, directory: &Path) -> Result<PathBuf, ServiceError> {
    let path = disk::canonical_or_new(&absolute(&environment.directory, directory));
    let mut was_there = false;
    store(environment)?.change(|trusted| was_there = trusted.safe_directories.remove(&path))?;
    if was_there {
        return Ok(path);
    }
    let body = Body::new(format!("{} is not recorded as a safe directory", path.display()));
    let help = "pass the directory that was given to `--safe-directory`, not one below it";
    Err(ServiceError::not_found(codes::FILE_UNREADABLE, body.help(help)))
}

fn change_of(
    environment: &Environment,
    inventory: &Inventory,
    what: Action,
) -> Result<TrustChange, ServiceError> {
    let store = Store::of(environment)?;
    let trusted = store.as_ref().map_or_else(|| Ok(TrustRecord::default()), Store::read)?;
    let is_trusted = |(file, hash): &(&PathBuf, &String)| trusted.trusts(file, hash);
    Ok(TrustChange {
        what,
        trusted: inventory.files.iter().filter(is_trusted).map(|(file, _)| file.clone()).collect(),
    })
}

fn store(environment: &Environment) -> Result<Store, ServiceError> {
    Store::of(environment)?.ok_or_else(|| {
        let body = Body::new("cannot record trust: neither XDG_STATE_HOME nor HOME names a directory");
        let help = "set HOME, or use `--trust` or QUORATE_TRUST for each command";
        ServiceError::configuration(codes::TRUST_UNREADABLE, body.help(help))
    })
}
