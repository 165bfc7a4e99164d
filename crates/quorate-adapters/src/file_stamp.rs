//! How a file looks from outside: by that it is known whether it was touched, or is another one by now.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::SystemTime;

/// How a file looks from outside: which it is, how long, and when it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) file_id: (u64, u64),
    pub(crate) len: u64,
    changed: (Option<SystemTime>, i64, i64),
}

impl FileStamp {
    /// How the file of a path looks; `None` where there is none.
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

    /// Which file it is follows from when it was made, where there is no number of it to be had.
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
