//! File system access of the ledger.

use std::fs::{File, OpenOptions};
use std::io::Result;
use std::path::{Path, PathBuf};

/// Opens a file or a directory for reading. Reading or writing a directory fails later.
///
/// # Errors
/// When it cannot be opened, or is a pipe, a socket or a device: opening a pipe would wait for its other end.
pub fn open(path: &Path) -> Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens a file or a directory in another way. Checks it after opening, so that it cannot be swapped in between.
///
/// # Errors
/// As [`open`].
pub fn open_with(options: &mut OpenOptions, path: &Path) -> Result<File> {
    // Without this, opening a pipe waits for its other end. It changes nothing for a file.
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

/// Opens a file for appending and reading, making it if it is not there, as the surroundings have new files.
///
/// # Errors
/// As [`open`].
pub fn open_append(path: &Path) -> Result<File> {
    append(path, OpenOptions::new())
}

/// As [`open_append`]; a file that is made is its owner's alone.
///
/// # Errors
/// As [`open`].
pub fn open_append_private(path: &Path) -> Result<File> {
    append(path, private_options())
}

fn append(path: &Path, mut options: OpenOptions) -> Result<File> {
    open_with(options.read(true).append(true).create(true), path)
}

/// Creates a file that is not there yet, for its owner alone.
pub fn create_private(path: &Path) -> Result<File> {
    private_options().write(true).create_new(true).open(path)
}

/// Makes an empty file for its owner alone, unless it is there. SQLite gives what it puts beside a file the same
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

/// Writes a file's own bytes once more, where they are, and syncs them: after a sync that failed the system may hold them
/// for written.
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

/// Where SQLite keeps the log of a file.
pub(crate) fn wal_path(path: &Path) -> PathBuf {
    with_suffix(path, "-wal")
}

/// The path of a file that is beside another, with a longer name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(suffix);
    PathBuf::from(beside)
}

/// Whether SQLite has a log beside its file that was not checkpointed.
pub fn has_wal(path: &Path) -> bool {
    wal_path(path).exists()
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
