//! Files and paths: the one place where use cases touch the disk.

use std::path::{Path, PathBuf};

pub(crate) use quorate_diagnostics::text::shell_quoted;
use quorate_kernel::files::{self, Readers, Resolver, read_limited, write_atomic};
pub(crate) use quorate_kernel::files::{is_same_file, open};
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::{Source, workspace};

use super::environment::Environment;

/// Reads files from the disk.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Disk;

impl Source for Disk {
    fn read(&self, path: &Path) -> Result<Vec<u8>, workspace::SourceError> {
        read(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => workspace::SourceError::Missing,
            _ => workspace::SourceError::Unreadable(error),
        })
    }
}

/// A path without links, if it exists.
pub(crate) fn canonical(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()
}

/// As [`Resolver::resolve`], for a single path.
pub(crate) fn canonical_or_new(path: &Path) -> PathBuf {
    Resolver::default().resolve(path)
}

/// The owner, the permissions and the hard links of an existing file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes {
    /// The id of its user.
    pub owner: u32,
    pub mode: u32,
    pub links: u64,
    pub is_dir: bool,
}

impl Attributes {
    /// The attributes of the target of a path; `None` if it does not exist, or the system has none of these.
    pub(crate) fn of(path: &Path) -> Option<Attributes> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let there = path.metadata().ok()?;
            let (owner, mode, links) = (there.uid(), there.mode(), there.nlink());
            Some(Attributes { owner, mode, links, is_dir: there.is_dir() })
        }
        #[cfg(not(unix))]
        {
            let _ = path;
            None
        }
    }

    /// Whether every user can write to it.
    pub(crate) fn is_world_writable(self) -> bool {
        self.mode & 0o002 != 0
    }
}

/// Whether an existing file has other hard links. Without link counts, each file may have some.
pub(crate) fn has_other_names(path: &Path) -> bool {
    path.is_file() && Attributes::of(path).is_none_or(|there| there.links > 1)
}

/// The links in a directory; none if it cannot be read.
#[expect(clippy::disallowed_methods, reason = "this module is where files are reached")]
pub(crate) fn links_in(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .map(|entry| entry.path())
        .collect()
}

/// Locks a file against other processes with a lock file beside it, until the returned handle is dropped. Creates the
/// directory for this user alone.
///
/// # Errors
/// If the directory or the lock file cannot be created or locked.
pub(crate) fn lock_with_sidecar(path: &Path) -> std::io::Result<std::fs::File> {
    let directory = path.parent().unwrap_or(Path::new("."));
    files::ensure_private_dir(directory)?;
    let lock = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path.with_extension("lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// Writes a file that only this user can read, atomically and durably. Its directory must exist.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    write_atomic(path, bytes, Readers::Owner)
}

/// The size limit of a file that is read whole and has no other limit, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// All bytes of a regular file.
///
/// # Errors
/// If it cannot be read, is not a regular file, or is too large.
pub(crate) fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    files::read(path, MAX_BYTES)
}

/// At most `limit + 1` bytes of a file that the user names, so that the caller sees that it is too large. A descriptor
/// that the user's shell opened, as in `<(command)`, may be a pipe.
///
/// # Errors
/// As [`open`].
#[expect(clippy::disallowed_methods, reason = "this module reads files")]
pub(crate) fn read_up_to(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let handed = path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd") || path == "/dev/stdin";
    read_limited(if handed { std::fs::File::open(path)? } else { open(path)? }, limit)
}

/// At most `limit + 1` bytes of standard input.
pub(crate) fn read_stdin(limit: u64) -> std::io::Result<Vec<u8>> {
    read_limited(std::io::stdin().lock(), limit)
}

/// Writes a file that does not exist yet, and creates its directories.
#[expect(clippy::disallowed_methods, reason = "this module writes files")]
pub(crate) fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let mut file = std::fs::File::create_new(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())
}

/// Creates a link to a target, and the folders above it.
#[cfg(unix)]
#[expect(clippy::disallowed_methods, reason = "this module writes files")]
pub(crate) fn link(path: &Path, target: &str) -> std::io::Result<()> {
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above)?;
    }
    std::os::unix::fs::symlink(target, path)
}

/// Replaces a file's bytes atomically: a reader sees the old or the new bytes. Keeps its permissions, and a link stays
/// a link.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    write_atomic(&std::fs::canonicalize(path)?, bytes, Readers::All)
}

/// The text of a file; `None` if it does not exist.
///
/// # Errors
/// If it cannot be read, or is not UTF-8.
pub(crate) fn read_text(path: &Path) -> std::io::Result<Option<String>> {
    let not_text = |error| std::io::Error::new(std::io::ErrorKind::InvalidData, error);
    match read(path).and_then(|bytes| String::from_utf8(bytes).map_err(not_text)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether bytes can be written at a path below a folder; creates nothing.
///
/// # Errors
/// The reason why not.
pub(crate) fn can_write_below(folder: &Path, path: &Path) -> std::io::Result<()> {
    let existing = path.ancestors().skip(1).find(|dir| dir.exists()).unwrap_or(folder);
    if !std::fs::canonicalize(existing)?.starts_with(std::fs::canonicalize(folder)?) {
        return Err(outside());
    }
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_file() => {
            Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a regular file"))
        }
        Ok(found) if found.permissions().readonly() => {
            Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied))
        }
        _ => Ok(()),
    }
}

fn outside() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::PermissionDenied, "it leads out of the workspace")
}

/// Writes a file below a folder atomically and durably, and creates its directories. Replaces an existing file. Does
/// not follow a link that leads out of the folder.
///
/// # Errors
/// If it cannot be written, or is outside of the folder.
#[expect(clippy::disallowed_methods, reason = "this module writes files")]
pub(crate) fn write_below(folder: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    can_write_below(folder, path)?;
    let dir = path.parent().unwrap_or(folder);
    std::fs::create_dir_all(dir)?;
    let dir = std::fs::canonicalize(dir)?;
    if !dir.starts_with(std::fs::canonicalize(folder)?) {
        return Err(outside());
    }
    write_atomic(&dir.join(path.file_name().unwrap_or_default()), bytes, Readers::All)
}

/// Appends bytes durably to a file below a folder; creates a missing one.
///
/// # Errors
/// As [`write_below`].
pub(crate) fn append_below(folder: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if !path.exists() {
        return write_below(folder, path, bytes);
    }
    let file = std::fs::canonicalize(path)?;
    if !file.starts_with(std::fs::canonicalize(folder)?) {
        return Err(outside());
    }
    let mut file = files::open_with(std::fs::OpenOptions::new().append(true), &file)?;
    if file.metadata()?.permissions().readonly() {
        return Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied));
    }
    std::io::Write::write_all(&mut file, bytes)?;
    file.sync_data()
}

/// Writes a file at a path that a user has named, atomically. Replaces an existing file.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => replace(path, bytes),
        Ok(_) => Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a regular file")),
        Err(_) => write_atomic(path, bytes, Readers::All),
    }
}

/// Removes a file if it exists.
///
/// # Errors
/// If it cannot be removed.
#[expect(clippy::disallowed_methods, reason = "this module removes files")]
pub(crate) fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The temporary files at or below a directory that a killed [`write_below`] left behind. They include those of a
/// process that is writing there now.
pub(crate) fn abandoned_files(dir: &Path) -> Vec<PathBuf> {
    let is_abandoned = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let drawn = name.strip_prefix(".tmp").unwrap_or_default();
        drawn.len() == 6
            && drawn.chars().all(|c| c.is_ascii_alphanumeric())
            && std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
    };
    walk(dir).unwrap_or_default().into_iter().map(|entry| entry.path).filter(is_abandoned).collect()
}

/// A file found by walking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileEntry {
    pub path: PathBuf,
    /// The time of its last change, in milliseconds since the Unix epoch.
    pub modified_ms: i64,
}

/// All regular files at or below a path, sorted, without hidden directories. Follows links to files but not to
/// directories, so that a walk ends. Skips unreadable entries.
///
/// # Errors
/// If the path itself does not exist or cannot be read.
pub(crate) fn walk(path: &Path) -> std::io::Result<Vec<FileEntry>> {
    walk_to_depth(path, usize::MAX)
}

/// As [`walk`], down to a depth: 1 is the directory's own files.
///
/// # Errors
/// As [`walk`].
pub(crate) fn walk_to_depth(path: &Path, depth: usize) -> std::io::Result<Vec<FileEntry>> {
    let mut found = Vec::new();
    let metadata = std::fs::metadata(path)?;
    if metadata.is_file() {
        found.push(FileEntry { path: path.to_owned(), modified_ms: modified_ms(&metadata) });
    } else {
        walk_below(path, depth, &mut found)?;
        found.sort_by(|a, b| a.path.cmp(&b.path));
    }
    Ok(found)
}

#[expect(clippy::disallowed_methods, reason = "this module reads directories")]
fn walk_below(dir: &Path, depth: usize, found: &mut Vec<FileEntry>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            if depth > 1 && !name.to_string_lossy().starts_with('.') {
                let _ = walk_below(&path, depth - 1, found);
            }
        } else if let Ok(metadata) = std::fs::metadata(&path)
            && metadata.is_file()
        {
            found.push(FileEntry { modified_ms: modified_ms(&metadata), path });
        }
    }
    Ok(())
}

fn modified_ms(metadata: &std::fs::Metadata) -> i64 {
    let since = metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Makes a path absolute, from a directory.
pub(crate) fn absolute(directory: &Path, path: &Path) -> PathBuf {
    let joined = directory.join(path);
    std::path::absolute(&joined).unwrap_or(joined)
}

/// A path as a user in the working directory would write it.
pub(crate) fn display_path(environment: &Environment, path: &Path) -> String {
    path.strip_prefix(&environment.directory).unwrap_or(path).display().to_string()
}

/// A ledger's address as a user in the working directory would write it.
pub(crate) fn display_ledger(environment: &Environment, ledger: &StoreAddress) -> String {
    ledger.file().map_or_else(|| ledger.to_string(), |path| display_path(environment, path))
}

/// The outermost directory at or above `start` that has the file (M10).
pub(crate) fn find_outermost(start: &Path, name: &str) -> Option<PathBuf> {
    start.ancestors().map(|dir| dir.join(name)).filter(|path| entry_exists(path)).last()
}

/// Whether an entry with this path exists. A directory or a dangling link counts: it is not a valid configuration, but
/// it must be refused when it is read, not skipped.
pub(crate) fn entry_exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Whether a path is below a root by its name, but leads out by a link.
pub(crate) fn leads_out(root: &Path, path: &Path) -> bool {
    path.starts_with(root) && !is_inside(root, path)
}

/// Whether a path is below a root once links are followed. A root or path that does not exist counts at the place where
/// it would be created.
pub(crate) fn is_inside(root: &Path, path: &Path) -> bool {
    Resolver::default().is_inside(root, path)
}
