//! Paths: makes them absolute, formats them for users, and searches upwards.

use std::path::{Path, PathBuf};

use quorate_ledger::store::address::StoreAddress;

use super::environment::Environment;

/// Makes a path absolute, from a directory.
pub fn absolute(directory: &Path, path: &Path) -> PathBuf {
    let joined = directory.join(path);
    std::path::absolute(&joined).unwrap_or(joined)
}

/// A path as a user in the working directory would write it.
pub fn display_path(environment: &Environment, path: &Path) -> String {
    path.strip_prefix(&environment.directory).unwrap_or(path).display().to_string()
}

/// A ledger's address as a user in the working directory would write it.
pub fn display_ledger(environment: &Environment, ledger: &StoreAddress) -> String {
    ledger.file().map_or_else(|| ledger.to_string(), |path| display_path(environment, path))
}

/// The outermost directory at or above `start` that has the file (M10).
pub fn find_outermost(start: &Path, name: &str) -> Option<PathBuf> {
    start.ancestors().map(|dir| dir.join(name)).filter(|path| entry_exists(path)).last()
}

/// Whether an entry with this path exists. A directory or a dangling link counts: it is not a valid configuration, but it must
/// be refused when it is read, not skipped.
pub fn entry_exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// A path quoted for a shell.
pub fn shell_quoted(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ',' | ':' | '@');
    match !path.is_empty() && path.chars().all(plain) && !path.starts_with('-') {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}
