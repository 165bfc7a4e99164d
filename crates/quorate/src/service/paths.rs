//! Paths: made absolute, shown to people, and looked for upwards.

use std::path::{Path, PathBuf};

use quorate_ledger::store::address::Address;

use super::environment::Environment;

/// A path that may be relative to a directory, made absolute.
pub fn absolute(directory: &Path, path: &Path) -> PathBuf {
    let joined = directory.join(path);
    std::path::absolute(&joined).unwrap_or(joined)
}

/// A path as a user in this directory writes it.
pub fn display_path(environment: &Environment, path: &Path) -> String {
    path.strip_prefix(&environment.directory).unwrap_or(path).display().to_string()
}

/// A ledger's address as a user in this directory writes it.
pub fn display_ledger(environment: &Environment, ledger: &Address) -> String {
    ledger.file().map_or_else(|| ledger.to_string(), |path| display_path(environment, path))
}

/// The outermost directory at or above `start` that has the file (M10).
pub fn find_outermost(start: &Path, name: &str) -> Option<PathBuf> {
    start.ancestors().map(|dir| dir.join(name)).filter(|path| entry_exists(path)).last()
}

/// Whether there is anything of that name: a directory or a dangling link is no configuration either, and is refused
/// where it is read, not passed over.
pub fn entry_exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// A path as a shell takes it.
pub fn shell_quoted(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ',' | ':' | '@');
    match !path.is_empty() && path.chars().all(plain) && !path.starts_with('-') {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}
