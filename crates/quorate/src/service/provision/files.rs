//! The folder that is installed into, as provisioning wants it. [`TargetDir`] is such a folder on the disk: every path is
//! walked from an open handle and no symlink is followed, neither on the way nor at its end, so that nothing leads out
//! and nothing is known by two names. Tests have one that dies between two writes.

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
pub struct FileContent {
    /// The content.
    pub bytes: Vec<u8>,
    /// Its permissions, as Unix has them.
    pub mode: u32,
}

/// The permissions of a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The default of new files.
    Data,
    /// The default of new programs.
    Program,
    Private,
    Exactly(u32),
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// An obstacle at the path or above it. The text continues a sentence that begins with the path.
    #[error("{0}")]
    Obstructed(&'static str),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The folder that is installed into. Paths are relative to it, with `/`, and have no `..`.
pub trait TargetFiles {
    /// A file, if there is anything of that name.
    ///
    /// # Errors
    /// When it is no file, has more bytes than `limit`, or cannot be read.
    fn read(&self, path: &str, limit: u64) -> Result<Option<FileContent>, FileError>;

    /// Whether there is a folder.
    ///
    /// # Errors
    /// If there is an obstacle at the path or above it.
    fn has_folder(&self, path: &str) -> Result<bool, FileError>;

    /// The names in a folder, sorted; none where there is no folder.
    ///
    /// # Errors
    /// When it cannot be read.
    fn names(&self, path: &str) -> Result<Vec<String>, FileError>;

    /// Puts a file in its place, atomically and durably: a reader, now or after a crash, sees the old or the
    /// new.
    ///
    /// # Errors
    /// When it cannot be written; then the old one is still there.
    fn replace(&self, path: &str, bytes: &[u8], access: Access) -> Result<(), FileError>;

    /// Removes a file if it exists.
    ///
    /// # Errors
    /// When it cannot be removed.
    fn remove(&self, path: &str) -> Result<(), FileError>;

    /// Creates a folder in an existing one, unless it exists.
    ///
    /// # Errors
    /// When it cannot be made.
    fn make_folder(&self, path: &str, access: Access) -> Result<(), FileError>;

    /// Removes a folder if nothing is in it.
    ///
    /// # Errors
    /// When it is empty and cannot be removed.
    fn remove_folder(&self, path: &str) -> Result<(), FileError>;

    /// Removes what a process that died while writing has left in a folder.
    ///
    /// # Errors
    /// When it cannot be removed.
    fn remove_temp(&self, folder: &str) -> Result<(), FileError>;

    /// Whether files can be written into an existing folder. Removes what a process that died while
    /// writing has left there.
    ///
    /// # Errors
    /// When they cannot.
    fn can_write(&self, folder: &str) -> Result<(), FileError>;
}

/// A folder on the disk.
#[derive(Debug)]
pub struct TargetDir {
    dir: Dir,
    durability: Durability,
}

/// Whether a write has to survive a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    Yes,
    /// For tests, which lose processes at most.
    #[cfg(test)]
    No,
}

impl TargetDir {
    /// Opens a folder, which may itself be reached through symlinks.
    ///
    /// # Errors
    /// When it is not there or cannot be opened.
    pub fn open(path: &Path) -> io::Result<TargetDir> {
        Ok(TargetDir { dir: Dir::open_ambient_dir(path, ambient_authority())?, durability: Durability::Yes })
    }

    /// Writes without waiting for the disk.
    #[cfg(test)]
    pub(super) fn without_sync(mut self) -> TargetDir {
        self.durability = Durability::No;
        self
    }

    /// Waits until no other process writes here, and keeps others out until the returned guard is dropped.
    ///
    /// # Errors
    /// When the system cannot lock a folder.
    pub fn lock(&self) -> io::Result<std::fs::File> {
        let dir_handle = open_as_file(&self.dir)?;
        match dir_handle.lock() {
            // Some file systems have no locks; there, other processes cannot be excluded.
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(dir_handle),
            other => other.map(|()| dir_handle),
        }
    }

    /// The folder that a path is in; nothing where it is not there.
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
}

/// What stood in the way. Systems differ in how they refuse a symlink that is not to be followed, so it is looked at.
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
            return Err(FileError::Obstructed("is too large: 16 MiB are the most"));
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
        let written =
            write_temp(&dir, bytes, access, self.durability).and_then(|()| dir.rename(TEMP_NAME, &dir, name));
        if let Err(error) = written {
            let _ = dir.remove_file(TEMP_NAME);
            return Err(error.into());
        }
        sync(&dir, self.durability)
    }

    fn remove(&self, path: &str) -> Result<(), FileError> {
        let Some((dir, name)) = self.parent_dir(path)? else { return Ok(()) };
        // One that a dead process left.
        let _ = dir.remove_file(TEMP_NAME);
        match dir.remove_file(name) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => sync(&dir, self.durability),
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
            Ok(()) => sync(&dir, self.durability),
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
        write_temp(&dir, b"", Access::Private, self.durability)?;
        Ok(dir.remove_file(TEMP_NAME)?)
    }
}

fn write_temp(dir: &Dir, bytes: &[u8], access: Access, lasting: Durability) -> io::Result<()> {
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
    if lasting == Durability::Yes { file.sync_all() } else { Ok(()) }
}

/// A folder as a file that can be locked and synced, which the handle that paths start from is not.
fn open_as_file(dir: &Dir) -> io::Result<std::fs::File> {
    Ok(dir.open(".")?.into_std())
}

/// Makes what was renamed or removed in a folder last.
fn sync(dir: &Dir, lasting: Durability) -> Result<(), FileError> {
    // Other systems open no folders as files.
    if cfg!(unix) && lasting == Durability::Yes {
        open_as_file(dir)?.sync_all()?;
    }
    Ok(())
}

#[cfg(unix)]
fn mode_of(metadata: &cap_std::fs::Metadata) -> u32 {
    cap_std::fs::MetadataExt::mode(metadata) & 0o7777
}

#[cfg(not(unix))]
fn mode_of(_: &cap_std::fs::Metadata) -> u32 {
    0o644
}
