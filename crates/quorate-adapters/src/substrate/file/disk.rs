//! The journal's access to the file system: reading at an offset, and the lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use quorate_kernel::ports::substrate::SubstrateError;
use quorate_protocol::Name;

use quorate_kernel::files::{self, FileStamp};

#[cfg(unix)]
pub(super) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

#[cfg(windows)]
pub(super) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, at)
}

/// Reads as much as there is at an offset, at most the buffer's length.
pub(super) fn fill_at(file: &File, mut buffer: &mut [u8], mut at: u64) -> io::Result<usize> {
    let length = buffer.len();
    while !buffer.is_empty() {
        match read_at(file, buffer, at) {
            Ok(0) => break,
            Ok(read) => {
                buffer = &mut buffer[read..];
                at += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length - buffer.len())
}

#[cfg(unix)]
pub(super) fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(windows)]
pub(super) fn write_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, at)?;
        bytes = &bytes[written..];
        at += written as u64;
    }
    Ok(())
}

/// Opens a file, or a folder, for reading.
pub(super) fn open_read(path: &Path) -> io::Result<File> {
    files::open(path)
}

/// Opens a file for appending and reading; creates it, and its folder, if missing.
#[expect(clippy::disallowed_methods, reason = "this module is where journals are made")]
pub(super) fn open_append(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    files::open_with(OpenOptions::new().read(true).append(true).create(true), path)
}

/// Makes the entries of a path's folder durable.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    // Other systems cannot open folders, and need not.
    match path.parent() {
        Some(folder) if cfg!(unix) => open_read(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Appends to a path's file name.
pub(super) fn with_suffix(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The lock of a journal: `<journal>.lock`, a separate file, since a journal may be replaced while it is locked, and since
/// on some systems other processes cannot even read a locked file.
///
/// A writer holds it from reading other writers' turns until its own turn is written, and so does a process that updates
/// the index: no participant sees half a turn.
pub(super) struct Lock {
    path: PathBuf,
    file: Option<File>,
    is_acquired: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acquisition {
    Acquired,
    /// Another process holds it.
    Busy,
}

impl Lock {
    pub(super) fn for_journal(journal: &Path) -> Self {
        Lock { path: with_suffix(journal, ".lock"), file: None, is_acquired: false }
    }

    /// Acquires the lock, waiting if necessary.
    pub(super) fn acquire(&mut self) -> io::Result<()> {
        while !self.is_acquired {
            self.lock_file()?.lock()?;
            self.is_acquired = self.is_current()?;
        }
        Ok(())
    }

    /// Acquires the lock if it is free.
    pub(super) fn try_acquire(&mut self) -> io::Result<Acquisition> {
        while !self.is_acquired {
            match self.lock_file()?.try_lock() {
                Ok(()) => self.is_acquired = self.is_current()?,
                Err(TryLockError::WouldBlock) => return Ok(Acquisition::Busy),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(Acquisition::Acquired)
    }

    pub(super) fn release(&mut self) {
        if std::mem::take(&mut self.is_acquired)
            && let Some(file) = &self.file
            && file.unlock().is_err()
        {
            // Closing the file also releases the lock.
            self.file = None;
        }
    }

    fn lock_file(&mut self) -> io::Result<&File> {
        if self.file.is_none() {
            files::reject_symlink(&self.path)?;
            self.file = Some(open_append(&self.path)?);
        }
        self.file.as_ref().ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// Whether the locked file is still the one at the path.
    fn is_current(&mut self) -> io::Result<bool> {
        let locked = self.lock_file()?.metadata().map(|meta| FileStamp::of_metadata(&meta))?;
        let current = FileStamp::of_path(&self.path)?.is_some_and(|look| look.file_id == locked.file_id);
        if !current {
            self.file = None;
        }
        Ok(current)
    }
}

#[derive(Debug)]
pub(super) enum JournalError {
    Io(io::Error),
    /// The journal is not UTF-8 at this offset.
    NotUtf8(u64),
    /// The note of a turn, at this offset, cannot be read.
    UnreadableNote {
        byte: u64,
        turn: Name,
        error: serde_json::Error,
    },
    /// The index does not match the journal.
    StaleIndex,
    /// The journal changes faster than it can be read.
    ConcurrentChange,
    /// The file has text in this line, and no turn.
    NotAJournal(usize),
    /// The turn cannot be stored.
    Refused(SubstrateError),
}

impl From<io::Error> for JournalError {
    fn from(error: io::Error) -> Self {
        JournalError::Io(error)
    }
}

impl JournalError {
    pub(super) fn into_port_error(self, journal: &Path) -> SubstrateError {
        let journal = journal.display();
        let unavailable = |what| SubstrateError::Unavailable { what, source: None };
        match self {
            JournalError::Io(error) => {
                SubstrateError::unavailable(format!("the journal {journal} does not answer"), error)
            }
            JournalError::NotUtf8(byte) => unavailable(format!(
                "the journal {journal} is not UTF-8 at byte {byte}; nothing is read past it and nothing is lost: \
                 mend the text there"
            )),
            JournalError::UnreadableNote { byte, turn, error } => SubstrateError::unavailable(
                format!(
                    "cannot read the note of turn {turn} in the journal {journal} at byte {byte}; nothing is read past \
                     it: correct the line, or remove it if the turn's state and metadata may go"
                ),
                error,
            ),
            JournalError::StaleIndex | JournalError::ConcurrentChange => unavailable(format!(
                "the journal {journal} was changed by another program at the same moment; try again"
            )),
            JournalError::NotAJournal(line) => unavailable(format!(
                "{journal} is not a journal: it has text (line {line}) and no turn, and nothing is appended to it; name \
                 another file in `path`, or make headings (`# …`) or comments (`<!-- … -->`) of the text"
            )),
            JournalError::Refused(error) => error,
        }
    }
}
