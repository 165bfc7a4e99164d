//! File access for the ledger, and quarantine: torn or corrupt files are moved to `aside/`, never deleted and never
//! reused.

use std::fs::{File, OpenOptions};
use std::io::Result;
use std::path::{Path, PathBuf};

/// Opens a file or a directory for reading. Reading a directory fails later.
///
/// # Errors
/// If it cannot be opened, or is a pipe, a socket or a device: opening a pipe would block until its other end opens.
pub fn open(path: &Path) -> Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens a file or a directory with other options. Checks the type after opening, so that the file cannot be swapped in
/// between.
///
/// # Errors
/// As [`open`].
pub fn open_with(options: &mut OpenOptions, path: &Path) -> Result<File> {
    // Without this flag, opening a pipe blocks. It has no effect on a file.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        options,
        i32::from_ne_bytes(rustix::fs::OFlags::NONBLOCK.bits().to_ne_bytes()),
    );
    let file = options.open(path)?;
    let kind = file.metadata()?.file_type();
    match kind.is_file() || kind.is_dir() {
        true => Ok(file),
        false => Err(std::io::Error::other("it is neither a file nor a directory")),
    }
}

/// Opens a file for appending and reading. Creates a missing file with the default permissions.
///
/// # Errors
/// As [`open`].
pub fn open_append(path: &Path) -> Result<File> {
    append(path, OpenOptions::new())
}

/// As [`open_append`], but creates a missing file with permissions for its owner only.
///
/// # Errors
/// As [`open`].
pub fn open_append_private(path: &Path) -> Result<File> {
    append(path, private_options())
}

fn append(path: &Path, mut options: OpenOptions) -> Result<File> {
    open_with(options.read(true).append(true).create(true), path)
}

/// Creates a new file with permissions for its owner only.
pub fn create_private(path: &Path) -> Result<File> {
    private_options().write(true).create_new(true).open(path)
}

/// Creates an empty file for its owner only, unless it exists. SQLite creates the files beside a database with the same
/// permissions.
pub fn ensure_private(path: &Path) -> Result<()> {
    match create_private(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(|_| ()),
    }
}

/// The mode of new files: readable and writable by their owner only.
fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
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

/// Makes a directory (and its parents) that only its owner can enter.
#[expect(clippy::disallowed_methods, reason = "this module is where the ledger makes directories")]
pub fn ensure_private_dir(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
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
    sync_directory(&path)?;
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

/// Makes a new file's directory entry durable. After a power loss, a file whose own data is synced may otherwise lack
/// its name.
///
/// # Errors
/// When the directory cannot be synced.
pub(crate) fn sync_directory(file: &Path) -> std::io::Result<()> {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Other systems cannot open a directory as a file.
    if cfg!(unix) { open(dir)?.sync_all() } else { Ok(()) }
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

#[cfg(all(test, unix))]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_pipe_is_refused_at_once_however_it_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for opened in [open(&pipe).map(drop), open_append(&pipe).map(drop), rewrite(&pipe)] {
            assert!(opened.unwrap_err().to_string().contains("neither a file nor a directory"));
        }
        assert!(open(Path::new("/dev/null")).is_err());
        assert!(open(dir.path()).is_ok() && open_append(&dir.path().join("new")).is_ok());
    }
}
