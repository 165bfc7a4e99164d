//! The ledger's files, and quarantine: torn or corrupt files are moved to `aside/`, never deleted and never reused.

use std::fs::OpenOptions;
use std::io::Result;
use std::path::{Path, PathBuf};

use quorate_kernel::files::create_private;
pub(crate) use quorate_kernel::files::{
    ensure_private_dir, open, open_append, open_append_private, open_with, sync_dir_of,
};

/// Creates an empty file for its owner only, unless it exists. SQLite creates the files beside a database with the same
/// permissions.
pub fn ensure_private(path: &Path) -> Result<()> {
    match create_private(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(|_| ()),
    }
}

/// Writes a file's own bytes again at the same offsets and syncs them. After a failed sync the system may treat
/// unwritten pages as clean.
pub fn rewrite(path: &Path) -> Result<()> {
    use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
    let mut file = open_with(OpenOptions::new().read(true).write(true), path)?;
    let mut part = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        file.seek(SeekFrom::Start(at))?;
        let read = file.read(&mut part)?;
        if read == 0 {
            return file.sync_all();
        }
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&part[..read])?;
        at += read as u64;
    }
}

/// The path of SQLite's write-ahead log for a database file.
pub fn wal_path(path: &Path) -> PathBuf {
    with_suffix(path, "-wal")
}

/// The path beside a file with a suffix appended to its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(suffix);
    PathBuf::from(beside)
}

#[expect(clippy::disallowed_methods, reason = "this module is where the ledger renames files")]
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to)
}

#[expect(clippy::disallowed_methods, reason = "this module is where the ledger removes files")]
pub fn remove(path: &Path) -> Result<()> {
    std::fs::remove_file(path)
}

/// Makes `.quorate/`: private, and ignored by version control.
pub fn ensure_quorate_dir(path: &Path) -> Result<()> {
    ensure_private_dir(path)?;
    // A link that leads nowhere is not followed.
    let ignore = std::fs::OpenOptions::new().write(true).create_new(true).open(path.join(".gitignore"));
    match ignore {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        ignore => std::io::Write::write_all(&mut ignore?, b"*\n"),
    }
}

/// Creates the directory of a ledger: ignored by version control if it is named `.quorate`, and for this user alone
/// otherwise.
///
/// # Errors
/// If it cannot be created.
pub(crate) fn ensure_ledger_dir(path: &Path) -> Result<()> {
    match path.file_name() {
        Some(name) if name == ".quorate" => ensure_quorate_dir(path),
        _ => ensure_private_dir(path),
    }
}

/// A file in quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedFile {
    /// The file in `aside/`.
    pub path: PathBuf,
}

/// Writes bytes into a new file in `aside/` under the ledger's directory.
///
/// # Errors
/// If it cannot be written. The caller must then keep the original.
pub fn quarantine_bytes(dir: &Path, name: &str, bytes: &[u8]) -> std::io::Result<QuarantinedFile> {
    let quarantine = ensure_quarantine(dir)?;
    let path = unused_path(&quarantine, name);
    let mut file = create_private(&path)?;
    std::io::Write::write_all(&mut file, bytes)?;
    file.sync_all()?;
    sync_dir_of(&path)?;
    Ok(QuarantinedFile { path })
}

/// Moves a file into `aside/` under the ledger's directory.
///
/// # Errors
/// When it cannot be moved.
pub fn quarantine_file(dir: &Path, file: &Path) -> std::io::Result<QuarantinedFile> {
    let quarantine = ensure_quarantine(dir)?;
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or("piece");
    let path = unused_path(&quarantine, name);
    rename(file, &path)?;
    Ok(QuarantinedFile { path })
}

fn ensure_quarantine(dir: &Path) -> std::io::Result<PathBuf> {
    let quarantine = dir.join("aside");
    ensure_private_dir(&quarantine)?;
    Ok(quarantine)
}

fn unused_path(quarantine: &Path, name: &str) -> PathBuf {
    let numbered = (1_u32..).map(|number| quarantine.join(format!("{name}.{number}")));
    numbered.into_iter().find(|path| !path.exists()).unwrap_or_else(|| quarantine.join(name))
}
