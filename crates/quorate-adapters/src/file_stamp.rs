//! Detects that a file was changed or replaced, by its metadata.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::SystemTime;

/// Identity, length and modification time of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) file_id: (u64, u64),
    pub(crate) len: u64,
    changed: (Option<SystemTime>, i64, i64),
}

impl FileStamp {
    /// The stamp of a path; `None` if there is no file.
    pub(crate) fn of_path(path: &Path) -> io::Result<Option<Self>> {
        match std::fs::metadata(path) {
            Ok(meta) => Ok(Some(FileStamp::of_metadata(&meta))),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    #[cfg(unix)]
    pub(crate) fn of_metadata(meta: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        FileStamp {
            file_id: (meta.dev(), meta.ino()),
            len: meta.len(),
            changed: (meta.modified().ok(), meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// Uses the creation time as the file's identity, since the system has no inode numbers.
    #[cfg(not(unix))]
    pub(crate) fn of_metadata(meta: &Metadata) -> Self {
        let since = meta.created().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let since = since.unwrap_or_default();
        FileStamp {
            file_id: (since.as_secs(), u64::from(since.subsec_nanos())),
            len: meta.len(),
            changed: (meta.modified().ok(), 0, 0),
        }
    }
}
