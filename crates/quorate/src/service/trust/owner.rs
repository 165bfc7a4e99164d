//! The ownership of files that configure Quorate. As with git's `safe.directory`, a directory that another user owns or can
//! write to configures nothing.

use std::path::Path;

use quorate_diagnostics::{Body, codes};

use super::super::environment::Environment;
use super::super::error::ServiceError;
use super::super::paths::shell_quoted;
use super::requests::canonical;
use super::store::Store;

/// Refuses a file or directory that belongs to another user, and one in a directory that every user can write to,
/// unless a person has named the directory with `quorate trust --safe-directory`. A missing one has no owner.
///
/// # Errors
/// [`codes::OWNERSHIP_DUBIOUS`].
pub fn check(environment: &Environment, path: &Path) -> Result<(), ServiceError> {
    let directory = path.parent().unwrap_or(path);
    let Some(why) = dubious(environment, path).or_else(|| dubious_directory(environment, directory)) else {
        return Ok(());
    };
    if let Some(store) = Store::of(environment)?
        && store.read()?.is_safe(&canonical(directory))
    {
        return Ok(());
    }
    let body =
        Body::new(format!("detected dubious ownership in workspace at `{}`: {why}", directory.display()));
    let help = format!(
        "to add an exception for this directory, call: quorate trust --safe-directory {}",
        shell_quoted(&directory.display().to_string())
    );
    Err(ServiceError::configuration(codes::OWNERSHIP_DUBIOUS, body.help(help)))
}

/// Whether a directory is this user's alone: no other user owns it or can add a file to it.
#[cfg(unix)]
pub fn is_own(environment: &Environment, directory: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    directory.metadata().is_ok_and(|there| environment.trusts_owner(there.uid()) && there.mode() & 0o002 == 0)
}

#[cfg(not(unix))]
pub fn is_own(_: &Environment, _: &Path) -> bool {
    true
}

#[cfg(unix)]
fn dubious(environment: &Environment, path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = path.metadata().ok()?;
    let owner = metadata.uid();
    if !environment.trusts_owner(owner) {
        return Some(format!("`{}` belongs to user {owner}", path.display()));
    }
    let writable = metadata.mode() & 0o002 != 0 && !metadata.is_dir();
    writable.then(|| format!("every user can write to `{}`", path.display()))
}

/// In a sticky directory, such as `/tmp`, other users cannot replace our files, and files that they add belong to them.
#[cfg(unix)]
fn dubious_directory(environment: &Environment, directory: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = directory.metadata().ok()?;
    let sticky = metadata.mode() & 0o1000 != 0;
    if metadata.mode() & 0o002 != 0 && !sticky {
        return Some(format!("every user can write to `{}`", directory.display()));
    }
    let owner = metadata.uid();
    // A sticky directory is the system's; the owner of any other directory can replace its files.
    (!environment.trusts_owner(owner) && owner != 0)
        .then(|| format!("`{}` belongs to user {owner}", directory.display()))
}

#[cfg(not(unix))]
fn dubious(_: &Environment, _: &Path) -> Option<String> {
    None
}

#[cfg(not(unix))]
fn dubious_directory(_: &Environment, _: &Path) -> Option<String> {
    None
}
