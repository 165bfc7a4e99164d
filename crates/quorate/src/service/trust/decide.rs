//! What a person says about trust with `quorate trust`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};

use super::super::disk;
use super::super::environment::Environment;
use super::super::manifests::{missing, root_of};
use super::super::stop::Stop;
use super::super::workspace::absolute;
use super::inventory::{self, Inventory};
use super::{Need, Store, Trusted, canonical};

/// What was done, and which files are trusted now.
#[derive(Debug)]
pub struct Done {
    /// What was done.
    pub what: What,
    /// The files of the inventory that are trusted as they are now.
    pub trusted: BTreeSet<PathBuf>,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Nothing: it was looked at.
    Looked,
    /// The files of the inventory are trusted.
    Trusted,
    /// Nothing below the root is.
    Revoked,
}

/// The inventory of files that a person names. Each of them is covered, whether it would do anything now or not.
///
/// # Errors
/// When one is not there.
pub fn files(environment: &Environment, files: &[PathBuf]) -> Result<Inventory, Stop> {
    let named: Vec<PathBuf> = files.iter().map(|file| absolute(&environment.directory, file)).collect();
    if let Some(at) = named.iter().position(|file| !file.is_file()) {
        return Err(missing(&files[at].display().to_string()));
    }
    let start = named.first().and_then(|file| file.parent()).unwrap_or(&environment.directory);
    let mut found = inventory::named(environment, root_of(environment, None, start), named.clone())?;
    let own = named.into_iter().map(|file| Need { file, acts: Vec::new() }).collect::<Vec<_>>();
    found.files.extend(super::covered(&own));
    Ok(found)
}

/// Looks at what is trusted.
///
/// # Errors
/// When the record of what is trusted cannot be read.
pub fn look(environment: &Environment, inventory: &Inventory) -> Result<Done, Stop> {
    done(environment, inventory, What::Looked)
}

/// Trusts the files of an inventory.
///
/// # Errors
/// When the record of what is trusted cannot be written.
pub fn trust(environment: &Environment, inventory: &Inventory) -> Result<Done, Stop> {
    if !inventory.files.is_empty() {
        store(environment)?.add(&inventory.files, environment.clock.now_ms())?;
    }
    done(environment, inventory, What::Trusted)
}

/// Trusts no file of an inventory any more, and none below its root.
///
/// # Errors
/// As [`trust`].
pub fn revoke(environment: &Environment, inventory: &Inventory) -> Result<Done, Stop> {
    let root = canonical(&inventory.root);
    store(environment)?.change(|trusted| {
        trusted.files.retain(|file, _| !file.starts_with(&root) && !inventory.files.contains_key(file));
    })?;
    done(environment, inventory, What::Revoked)
}

/// Lets a directory of another owner configure us, and gives its path.
///
/// # Errors
/// When there is no such directory, or as [`trust`].
pub fn safe_directory(environment: &Environment, directory: &Path) -> Result<PathBuf, Stop> {
    let path = absolute(&environment.directory, directory);
    let Some(path) = disk::canonical(&path).filter(|path| path.is_dir()) else {
        return Err(missing(&directory.display().to_string()));
    };
    store(environment)?.change(|trusted| {
        trusted.safe_directories.insert(path.clone());
    })?;
    Ok(path)
}

fn done(environment: &Environment, inventory: &Inventory, what: What) -> Result<Done, Stop> {
    let store = Store::of(environment)?;
    let trusted = store.as_ref().map_or_else(|| Ok(Trusted::default()), Store::read)?;
    let has = |(file, hash): &(&PathBuf, &String)| trusted.has(file, hash);
    Ok(Done { what, trusted: inventory.files.iter().filter(has).map(|(file, _)| file.clone()).collect() })
}

fn store(environment: &Environment) -> Result<Store, Stop> {
    Store::of(environment)?.ok_or_else(|| {
        let body =
            Body::new("cannot record what is trusted: neither XDG_STATE_HOME nor HOME names a directory");
        let help = "set HOME, or use `--trust` or QUORATE_TRUST for each command";
        Stop::configuration(codes::TRUST_UNREADABLE, body.help(help))
    })
}
