//! The target folder of an installation. Resolves every path from an open handle and follows no symlink, so no path leads
//! out of the folder and no file has two names. Changes are a list of [`Step`]s, each of which is atomic, so that a test can
//! stop between any two of them.

use std::ffi::OsStr;
use std::io::{self, ErrorKind as IoKind, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, OpenOptions};
use quorate_diagnostics::{Body, codes};
use quorate_kernel::ports::provisioning::MAX_FILE_BYTES;

use crate::error::{Error, ErrorKind};

/// The name of the temporary file that replaces the target. Only one process writes at a time.
pub(super) const TEMP_NAME: &str = ".quorate-part";

/// An existing file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileContent {
    pub bytes: Arc<[u8]>,
    /// The Unix permissions.
    pub mode: u32,
}

/// The permissions of a written file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// The default of new files.
    Data,
    /// The default of new programs and folders.
    Program,
    Private,
    Exactly(u32),
}

/// A change of the target folder. Paths are relative to it, with `/`, and have no `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Creates a folder in an existing one, unless it exists.
    MakeFolder(String, Access),
    /// Replaces or creates a file: a reader, also after a crash, sees the old or the new content.
    Write(String, Arc<[u8]>, Access),
    /// Removes a file if it exists.
    Remove(String),
    /// Removes a folder if it exists and is empty.
    RemoveFolder(String),
}

impl Step {
    fn path(&self) -> &str {
        let (Step::MakeFolder(path, _)
        | Step::Write(path, ..)
        | Step::Remove(path)
        | Step::RemoveFolder(path)) = self;
        path
    }
}

/// A folder on the disk.
#[derive(Debug)]
pub(super) struct Target {
    dir: Dir,
}

impl Target {
    /// Opens a folder, which may itself be reached through symlinks.
    ///
    /// # Errors
    /// If the folder does not exist or cannot be opened.
    pub(super) fn open(path: &Path) -> io::Result<Target> {
        Ok(Target { dir: Dir::open_ambient_dir(path, ambient_authority())? })
    }

    /// Locks the folder against other processes until the returned file is dropped. Waits for the lock.
    ///
    /// # Errors
    /// If the folder cannot be locked.
    pub(super) fn lock(&self) -> io::Result<std::fs::File> {
        let handle = as_file(&self.dir)?;
        match handle.lock() {
            // Some file systems have no locks, so other processes cannot be excluded there.
            Err(error) if error.kind() == IoKind::Unsupported => Ok(handle),
            locked => locked.map(|()| handle),
        }
    }

    /// Reads a file; `None` if it does not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] if the path is not a regular file of at most 16 MiB, or leads through a symlink;
    /// another kind if the file cannot be read.
    pub(super) fn read(&self, path: &str) -> Result<Option<FileContent>, Error> {
        let unreadable = |error| unusable(path, "read", &error);
        let Some((dir, name)) = self.parent(path)? else { return Ok(None) };
        match dir.symlink_metadata(name) {
            Err(error) if error.kind() == IoKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error)),
            Ok(found) if found.is_symlink() => return Err(obstructed(path, "is a symlink")),
            Ok(found) if found.is_dir() => return Err(obstructed(path, "is a folder")),
            Ok(_) => {}
        }
        let mut options = OpenOptions::new();
        // Without `nonblock`, opening a FIFO waits for a writer.
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let file = dir.open_with(name, &options).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(obstructed(path, "is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(obstructed(path, "is larger than 16 MiB"));
        }
        Ok(Some(FileContent { bytes: bytes.into(), mode: mode_of(&metadata) }))
    }

    /// Whether a folder exists.
    ///
    /// # Errors
    /// If a file or a symlink is at the path or above it.
    pub(super) fn has_folder(&self, path: &str) -> Result<bool, Error> {
        Ok(self.folder(path, path)?.is_some())
    }

    /// The sorted names in a folder; empty if the folder does not exist.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(super) fn names(&self, path: &str) -> Result<Vec<String>, Error> {
        let Some(dir) = self.folder(path, path)? else { return Ok(Vec::new()) };
        let name = |entry: io::Result<cap_std::fs::DirEntry>| {
            entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
        };
        let names = dir.entries().and_then(|entries| entries.map(name).collect::<io::Result<Vec<_>>>());
        let mut names = names.map_err(|error| unusable(path, "read", &error))?;
        names.sort();
        Ok(names)
    }

    /// Makes a change durably.
    ///
    /// # Errors
    /// If the disk refuses it. Nothing is changed then.
    pub(super) fn perform(&self, step: &Step) -> Result<(), Error> {
        let path = step.path();
        let Some((dir, name)) = self.parent(path)? else {
            return match step {
                Step::Remove(_) | Step::RemoveFolder(_) => Ok(()),
                _ => Err(unusable(path, "write", &"its folder does not exist")),
            };
        };
        let absent_or = |error: io::Error| match error.kind() {
            IoKind::NotFound => Ok(()),
            _ => Err(error),
        };
        let done = match step {
            Step::MakeFolder(_, access) => match make_folder(&dir, name, *access) {
                Err(error) if error.kind() == IoKind::AlreadyExists => {
                    return self.has_folder(path).map(|_| ());
                }
                made => made,
            },
            Step::Write(_, bytes, access) => write_temp(&dir, bytes, *access)
                .and_then(|()| dir.rename(TEMP_NAME, &dir, name))
                .inspect_err(|_| {
                    let _ = dir.remove_file(TEMP_NAME);
                }),
            Step::Remove(_) => dir.remove_file(name).or_else(absent_or),
            Step::RemoveFolder(_) => dir.remove_dir(name).or_else(|error| match error.kind() {
                IoKind::DirectoryNotEmpty | IoKind::NotADirectory => Ok(()),
                _ => absent_or(error),
            }),
        };
        done.and_then(|()| sync(&dir)).map_err(|error| unusable(path, "write", &error))
    }

    /// The parent folder of a path and its last name; `None` if the folder does not exist.
    fn parent<'p>(&self, path: &'p str) -> Result<Option<(Dir, &'p str)>, Error> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok(self.folder(folder, path)?.map(|dir| (dir, name)))
    }

    /// Opens a folder for the file or folder `of`, which errors name.
    fn folder(&self, path: &str, of: &str) -> Result<Option<Dir>, Error> {
        let mut dir = self.dir.try_clone().map_err(|error| unusable(of, "read", &error))?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            dir = match dir.open_dir_nofollow(name) {
                Ok(dir) => dir,
                Err(error) if error.kind() == IoKind::NotFound => return Ok(None),
                // Systems report a refused symlink differently, so this inspects the entry.
                Err(error) => {
                    return Err(match dir.symlink_metadata(name) {
                        Ok(found) if found.is_symlink() => obstructed(of, "is reached through a symlink"),
                        Ok(found) if !found.is_dir() && path == of => obstructed(of, "is not a folder"),
                        Ok(found) if !found.is_dir() => obstructed(of, "lies in a file"),
                        _ => unusable(of, "read", &error),
                    });
                }
            };
        }
        Ok(Some(dir))
    }
}

/// The error of a path that something else occupies.
fn obstructed(path: &str, why: &str) -> Error {
    let body = Body::new(format!("{path} {why}"));
    Error::new(ErrorKind::Refused, codes::PROFILE_TARGET, body.help("move it away and run the command again"))
}

fn unusable(path: &str, verb: &str, error: &dyn std::fmt::Display) -> Error {
    let help = "fix this and run the same command again: it continues where it stopped";
    let body = Body::new(format!("cannot {verb} {path}: {error}"));
    Error::configuration(codes::PROFILE_TARGET, body.help(help))
}

fn make_folder(dir: &Dir, name: &str, access: Access) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    if access == Access::Private {
        cap_std::fs::DirBuilderExt::mode(&mut builder, 0o700);
    }
    #[cfg(not(unix))]
    let _ = access;
    dir.create_dir_with(name, &builder)
}

fn write_temp(dir: &Dir, bytes: &[u8], access: Access) -> io::Result<()> {
    // A crashed process may have left one.
    let _ = dir.remove_file(TEMP_NAME);
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
    // Tests do not survive a power failure.
    if cfg!(test) { Ok(()) } else { file.sync_all() }
}

/// Makes the changes in a folder durable. Only Unix opens folders as files.
fn sync(dir: &Dir) -> io::Result<()> {
    if cfg!(unix) && !cfg!(test) { as_file(dir)?.sync_all() } else { Ok(()) }
}

fn as_file(dir: &Dir) -> io::Result<std::fs::File> {
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
