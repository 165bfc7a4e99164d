//! A profile that is a folder: files are opened beneath it from an open handle, so that no link leads out.

use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use super::ReadError;

pub(super) struct Folder {
    dir: Dir,
}

impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Folder> {
        Ok(Folder { dir: Dir::open_ambient_dir(path, ambient_authority())? })
    }

    /// Whether there is a folder of that name at the top.
    pub(super) fn has_folder(&self, name: &str) -> bool {
        self.dir.metadata(name).is_ok_and(|found| found.is_dir())
    }

    /// A file of the profile, if it has no more than so many bytes.
    pub(super) fn read(&self, path: &str, limit: u64) -> Result<Vec<u8>, ReadError> {
        let mut options = OpenOptions::new();
        // Without this, opening a FIFO waits for a writer.
        options.read(true).nonblock(true);
        let file = self.dir.open_with(path, &options).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => ReadError::Missing,
            // The refusal of a path that leads out is made by cap-std, and has no error number of the system.
            ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                ReadError::Refused("is a link that leads out of the profile".to_owned())
            }
            _ => ReadError::Refused(format!("cannot be read: {error}")),
        })?;
        let unreadable = |error: io::Error| ReadError::Refused(format!("cannot be read: {error}"));
        let found = file.metadata().map_err(unreadable)?;
        if !found.is_file() {
            return Err(ReadError::Refused("is not a file".to_owned()));
        }
        let mut bytes = Vec::new();
        // The file may grow while it is read, so its reported size is no bound.
        file.take(limit + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > limit {
            return Err(ReadError::Refused(format!("is larger than {} MiB", limit >> 20)));
        }
        Ok(bytes)
    }
}
