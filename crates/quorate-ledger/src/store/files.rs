//! The ledger's dealings with the file system.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Result};
use std::path::Path;

/// Opens a file for reading.
#[expect(clippy::disallowed_methods, reason = "this module is where the ledger opens files")]
pub fn open(path: &Path) -> Result<File> {
    File::open(path)
}

/// Opens a log for reading.
///
/// # Errors
/// When it cannot be opened, or is a pipe: whoever opens one waits for its other end.
pub fn open_log(path: &Path) -> Result<File> {
    no_pipe(path)?;
    open(path)
}

/// Refuses pipes, sockets and devices. A directory is refused by whoever reads or writes it.
///
/// # Errors
/// As [`open_log`].
pub fn no_pipe(path: &Path) -> Result<()> {
    let there = std::fs::metadata(path)?;
    match there.is_file() || there.is_dir() {
        true => Ok(()),
        false => Err(std::io::Error::other("it is neither a file nor a directory")),
    }
}

/// Opens a file for appending and reading, making it if it is not there, as the surroundings have new files.
///
/// # Errors
/// As [`open_log`].
pub fn append_to(path: &Path) -> Result<File> {
    append(path, OpenOptions::new())
}

/// As [`append_to`]; a file that is made is its owner's alone.
///
/// # Errors
/// As [`open_log`].
pub fn append_privately_to(path: &Path) -> Result<File> {
    append(path, owners())
}

fn append(path: &Path, mut options: OpenOptions) -> Result<File> {
    match no_pipe(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    options.read(true).append(true).create(true).open(path)
}

/// Creates a file that is not there yet, for its owner alone.
pub fn create_new(path: &Path) -> Result<File> {
    owners().write(true).create_new(true).open(path)
}

/// Makes an empty file for its owner alone, unless it is there. SQLite gives what it puts beside a file the same
/// permissions.
pub fn make_privately(path: &Path) -> Result<()> {
    match create_new(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.map(|_| ()),
    }
}

/// How files are opened that nobody but their owner can read where they are made.
fn owners() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Writes a file's own bytes once more, where they are, and syncs them: after a sync that failed the system may hold them
/// for written.
pub fn write_again(path: &Path) -> Result<()> {
    use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
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

/// Whether SQLite has a log beside its file, which nobody has folded into it yet.
pub fn has_log(path: &Path) -> bool {
    super::open::wal(path).exists()
}

/// Renames a file.
#[expect(clippy::disallowed_methods, reason = "this module is where the ledger renames files")]
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to)
}

/// Removes a file.
#[expect(clippy::disallowed_methods, reason = "this module is where the ledger removes files")]
pub fn remove(path: &Path) -> Result<()> {
    std::fs::remove_file(path)
}

/// Makes a directory (and its parents) that only its owner can enter.
#[expect(clippy::disallowed_methods, reason = "this module is where the ledger makes directories")]
pub fn private_dir(path: &Path) -> Result<()> {
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
#[expect(clippy::disallowed_methods, reason = "this module is where the ledger writes files")]
pub fn quorate_dir(path: &Path) -> Result<()> {
    private_dir(path)?;
    let ignore = path.join(".gitignore");
    if ignore.exists() { Ok(()) } else { std::fs::write(ignore, "*\n") }
}
