//! The target folder of an installation. [`TargetDir`] is a folder on the disk. It resolves every path from an open handle
//! and follows no symlink, so no path leads out of the folder and no file has two names. Tests have a target that crashes
//! between two writes.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, OpenOptions};

/// The name of the temporary file that replaces the target. Only one process writes at a time.
const TEMP_NAME: &str = ".quorate-part";

/// An existing file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileContent {
    pub bytes: Vec<u8>,
    /// The Unix permissions.
    pub mode: u32,
}

/// The permissions of a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// The default of new files.
    Data,
    /// The default of new programs.
    Program,
    Private,
    Exactly(u32),
}

/// Why an operation on the target folder failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    /// An obstacle at the path or above it. The text continues a sentence that begins with the path.
    #[error("{0}")]
    Obstructed(&'static str),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The target folder of an installation. Paths are relative to it, with `/`, and have no `..`.
pub(super) trait TargetFiles {
    /// Reads a file; `None` if it does not exist.
    ///
    /// # Errors
    /// If the path is not a regular file, the file has more than `limit` bytes, or it cannot be read.
    fn read(&self, path: &str, limit: u64) -> Result<Option<FileContent>, FileError>;

    /// Whether a folder exists.
    ///
    /// # Errors
    /// If a file or a symlink is at the path or above it.
    fn has_folder(&self, path: &str) -> Result<bool, FileError>;

    /// The sorted names in a folder; empty if the folder does not exist.
    ///
    /// # Errors
    /// If the folder cannot be read.
    fn names(&self, path: &str) -> Result<Vec<String>, FileError>;

    /// Replaces or creates a file atomically and durably: a reader, also after a crash, sees the old or the new content.
    ///
    /// # Errors
    /// If the file cannot be written. The old file then remains.
    fn replace(&self, path: &str, bytes: &[u8], access: Access) -> Result<(), FileError>;

    /// Removes a file if it exists.
    ///
    /// # Errors
    /// If the file cannot be removed.
    fn remove(&self, path: &str) -> Result<(), FileError>;

    /// Creates a folder in an existing one, unless it exists.
    ///
    /// # Errors
    /// If the folder cannot be created.
    fn make_folder(&self, path: &str, access: Access) -> Result<(), FileError>;

    /// Removes a folder if it is empty.
    ///
    /// # Errors
    /// If the empty folder cannot be removed.
    fn remove_folder(&self, path: &str) -> Result<(), FileError>;

    /// Removes the temporary file of a crashed process from a folder.
    ///
    /// # Errors
    /// If the file cannot be removed.
    fn remove_temp(&self, folder: &str) -> Result<(), FileError>;

    /// Checks that files can be written into an existing folder. Also removes the temporary file of a crashed process.
    ///
    /// # Errors
    /// If a file cannot be written.
    fn can_write(&self, folder: &str) -> Result<(), FileError>;
}

/// A folder on the disk.
#[derive(Debug)]
pub(super) struct TargetDir {
    dir: Dir,
    /// Whether a write waits for the disk, so that it survives a power failure. Only tests turn this off.
    syncs_writes: bool,
}

impl TargetDir {
    /// Opens a folder, which may itself be reached through symlinks.
    ///
    /// # Errors
    /// If the folder does not exist or cannot be opened.
    pub(super) fn open(path: &Path) -> io::Result<TargetDir> {
        Ok(TargetDir { dir: Dir::open_ambient_dir(path, ambient_authority())?, syncs_writes: true })
    }

    /// Writes without waiting for the disk.
    #[cfg(test)]
    pub(super) fn without_sync(mut self) -> TargetDir {
        self.syncs_writes = false;
        self
    }

    /// Locks the folder against other processes until the returned file is dropped. Waits for the lock.
    ///
    /// # Errors
    /// If the folder cannot be locked.
    pub(super) fn lock(&self) -> io::Result<std::fs::File> {
        let dir_handle = open_as_file(&self.dir)?;
        match dir_handle.lock() {
            // Some file systems have no locks, so other processes cannot be excluded there.
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(dir_handle),
            other => other.map(|()| dir_handle),
        }
    }

    /// The parent folder of a path and its last name; `None` if the folder does not exist.
    fn parent_dir<'p>(&self, path: &'p str) -> Result<Option<(Dir, &'p str)>, FileError> {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok(self.folder(folders)?.map(|dir| (dir, name)))
    }

    fn folder(&self, path: &str) -> Result<Option<Dir>, FileError> {
        let mut dir = self.dir.try_clone()?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            dir = match dir.open_dir_nofollow(name) {
                Ok(dir) => dir,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(obstruction(&dir, name, "lies in a file", error)),
            };
        }
        Ok(Some(dir))
    }

    fn existing_parent_dir<'p>(&self, path: &'p str) -> Result<(Dir, &'p str), FileError> {
        let missing = || FileError::Io(io::Error::new(ErrorKind::NotFound, "its folder does not exist"));
        self.parent_dir(path)?.ok_or_else(missing)
    }

    fn write_temp(&self, dir: &Dir, bytes: &[u8], access: Access) -> io::Result<()> {
        match dir.remove_file(TEMP_NAME) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No);
        #[cfg(unix)]
        {
            let mode = match access {
                Access::Data => 0o666,
                Access::Program => 0o777,
                Access::Private | Access::Exactly(_) => 0o600,
            };
            cap_std::fs::OpenOptionsExt::mode(&mut options, mode);
        }
        let mut file = dir.open_with(OsStr::new(TEMP_NAME), &options)?;
        file.write_all(bytes)?;
        #[cfg(unix)]
        if let Access::Exactly(mode) = access {
            use cap_std::fs::PermissionsExt as _;
            file.set_permissions(cap_std::fs::Permissions::from_mode(mode))?;
        }
        #[cfg(not(unix))]
        let _ = access;
        if self.syncs_writes { file.sync_all() } else { Ok(()) }
    }

    /// Makes renames and removals in a folder durable.
    fn sync(&self, dir: &Dir) -> Result<(), FileError> {
        // Other systems do not open folders as files.
        if cfg!(unix) && self.syncs_writes {
            open_as_file(dir)?.sync_all()?;
        }
        Ok(())
    }
}

/// The error for an obstacle at a name. Systems report a refused symlink differently, so this inspects the entry.
fn obstruction(dir: &Dir, name: &str, otherwise: &'static str, error: io::Error) -> FileError {
    match dir.symlink_metadata(name) {
        Ok(found) if found.is_symlink() => FileError::Obstructed("is reached through a symlink"),
        Ok(found) if !found.is_dir() => FileError::Obstructed(otherwise),
        _ => FileError::Io(error),
    }
}

impl TargetFiles for TargetDir {
    fn read(&self, path: &str, limit: u64) -> Result<Option<FileContent>, FileError> {
        let Some((dir, name)) = self.parent_dir(path)? else { return Ok(None) };
        match dir.symlink_metadata(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
            Ok(found) if found.is_symlink() => return Err(FileError::Obstructed("is a symlink")),
            Ok(found) if found.is_dir() => return Err(FileError::Obstructed("is a folder")),
            Ok(found) if !found.is_file() => return Err(FileError::Obstructed("is not a regular file")),
            Ok(_) => {}
        }
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let file = dir.open_with(name, &options)?;
        // Checked on the open file, since its path may have been replaced.
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(FileError::Obstructed("is not a regular file"));
        }
        let mut bytes = Vec::new();
        let mode = mode_of(&metadata);
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(FileError::Obstructed("is larger than 16 MiB"));
        }
        Ok(Some(FileContent { bytes, mode }))
    }

    fn has_folder(&self, path: &str) -> Result<bool, FileError> {
        Ok(self.folder(path)?.is_some())
    }

    fn names(&self, path: &str) -> Result<Vec<String>, FileError> {
        let Some(dir) = self.folder(path)? else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for entry in dir.entries()? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn replace(&self, path: &str, bytes: &[u8], access: Access) -> Result<(), FileError> {
        let (dir, name) = self.existing_parent_dir(path)?;
        let written = self.write_temp(&dir, bytes, access).and_then(|()| dir.rename(TEMP_NAME, &dir, name));
        if let Err(error) = written {
            let _ = dir.remove_file(TEMP_NAME);
            return Err(error.into());
        }
        self.sync(&dir)
    }

    fn remove(&self, path: &str) -> Result<(), FileError> {
        let Some((dir, name)) = self.parent_dir(path)? else { return Ok(()) };
        // A crashed process may have left a temporary file.
        let _ = dir.remove_file(TEMP_NAME);
        match dir.remove_file(name) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => self.sync(&dir),
        }
    }

    fn make_folder(&self, path: &str, access: Access) -> Result<(), FileError> {
        let (dir, name) = self.existing_parent_dir(path)?;
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        if access == Access::Private {
            cap_std::fs::DirBuilderExt::mode(&mut builder, 0o700);
        }
        #[cfg(not(unix))]
        let _ = access;
        match dir.create_dir_with(name, &builder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match dir.open_dir_nofollow(name) {
                Ok(_) => Ok(()),
                Err(error) => Err(obstruction(&dir, name, "is not a folder", error)),
            },
            Err(error) => Err(error.into()),
            Ok(()) => self.sync(&dir),
        }
    }

    fn remove_folder(&self, path: &str) -> Result<(), FileError> {
        let Some((dir, name)) = self.parent_dir(path)? else { return Ok(()) };
        let Ok(folder) = dir.open_dir_nofollow(name) else { return Ok(()) };
        let _ = folder.remove_file(TEMP_NAME);
        match folder.entries()?.next() {
            Some(_) => Ok(()),
            None => Ok(dir.remove_dir(name)?),
        }
    }

    fn remove_temp(&self, folder: &str) -> Result<(), FileError> {
        let Some(dir) = self.folder(folder)? else { return Ok(()) };
        match dir.remove_file(TEMP_NAME) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn can_write(&self, folder: &str) -> Result<(), FileError> {
        let Some(dir) = self.folder(folder)? else { return Ok(()) };
        self.write_temp(&dir, b"", Access::Private)?;
        Ok(dir.remove_file(TEMP_NAME)?)
    }
}

/// Opens a folder as a file, which can be locked and synced.
fn open_as_file(dir: &Dir) -> io::Result<std::fs::File> {
    Ok(dir.open(".")?.into_std())
}

#[cfg(unix)]
fn mode_of(metadata: &cap_std::fs::Metadata) -> u32 {
    cap_std::fs::MetadataExt::mode(metadata) & 0o7777
}

#[cfg(not(unix))]
fn mode_of(_: &cap_std::fs::Metadata) -> u32 {
    0o644
}
