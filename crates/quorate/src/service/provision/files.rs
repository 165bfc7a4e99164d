//! The folder that is installed into, as provisioning wants it. [`Beneath`] is such a folder on the disk: every path is
//! walked from an open handle and no symlink is followed, neither on the way nor at its end, so that nothing leads out
//! and nothing is known by two names. Tests have one that dies between two writes.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, OpenOptions};

/// The name of what is written before it takes a file's place. Only one process writes at a time.
const PART: &str = ".quorate-part";

/// A file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Its permissions, as Unix has them.
    pub mode: u32,
}

/// The permissions of what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Whatever new data gets.
    Data,
    /// Whatever a new program gets.
    Program,
    /// Only its owner's.
    Private,
    /// Exactly these.
    Exactly(u32),
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// What stands there, or on the way there, is not what is needed. The rest of a sentence that begins with the path.
    #[error("{0}")]
    Place(&'static str),
    /// The disk refuses.
    #[error("{0}")]
    Disk(#[from] io::Error),
}

/// The folder that is installed into. Paths are relative to it, with `/`, and have no `..`.
pub trait Files {
    /// A file, if there is anything of that name.
    ///
    /// # Errors
    /// When it is no file, has more bytes than `limit`, or cannot be read.
    fn look(&self, path: &str, limit: u64) -> Result<Option<Found>, Trouble>;

    /// Whether there is a folder.
    ///
    /// # Errors
    /// When something else is there or on the way.
    fn has_folder(&self, path: &str) -> Result<bool, Trouble>;

    /// The names in a folder, sorted; none where there is no folder.
    ///
    /// # Errors
    /// When it cannot be read.
    fn names(&self, path: &str) -> Result<Vec<String>, Trouble>;

    /// Puts a file in its place, all at once and durably: whoever reads it, now or after a crash, sees the old or the
    /// new.
    ///
    /// # Errors
    /// When it cannot be written; then the old one is still there.
    fn replace(&self, path: &str, bytes: &[u8], access: Access) -> Result<(), Trouble>;

    /// Removes a file; one that is not there is removed already.
    ///
    /// # Errors
    /// When it cannot be removed.
    fn remove(&self, path: &str) -> Result<(), Trouble>;

    /// Makes a folder in one that is there; one that is there is made already.
    ///
    /// # Errors
    /// When it cannot be made.
    fn make_folder(&self, path: &str, access: Access) -> Result<(), Trouble>;

    /// Removes a folder if nothing is in it.
    ///
    /// # Errors
    /// When it is empty and cannot be removed.
    fn remove_folder(&self, path: &str) -> Result<(), Trouble>;

    /// Removes what a process that died while writing has left in a folder.
    ///
    /// # Errors
    /// When it cannot be removed.
    fn remove_part(&self, folder: &str) -> Result<(), Trouble>;

    /// Whether files can be written into a folder that is there. What a process that died while writing has left there
    /// is gone afterwards.
    ///
    /// # Errors
    /// When they cannot.
    fn can_write(&self, folder: &str) -> Result<(), Trouble>;
}

/// A folder on the disk.
#[derive(Debug)]
pub struct Beneath {
    dir: Dir,
    lasting: Lasting,
}

/// Whether what is written has to outlast a machine that loses its power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lasting {
    Yes,
    /// For tests, which lose processes at most.
    #[cfg(test)]
    No,
}

impl Beneath {
    /// Opens a folder, which may itself be reached through symlinks.
    ///
    /// # Errors
    /// When it is not there or cannot be opened.
    pub fn open(path: &Path) -> io::Result<Beneath> {
        Ok(Beneath { dir: Dir::open_ambient_dir(path, ambient_authority())?, lasting: Lasting::Yes })
    }

    /// Writes without waiting for the disk.
    #[cfg(test)]
    pub(super) fn hasty(mut self) -> Beneath {
        self.lasting = Lasting::No;
        self
    }

    /// Waits until no other process writes here, and keeps others out as long as what is returned lives.
    ///
    /// # Errors
    /// When the system cannot lock a folder.
    pub fn lock(&self) -> io::Result<std::fs::File> {
        let held = handle(&self.dir)?;
        match held.lock() {
            // Some file systems know no locks; there, nobody could be kept out.
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(held),
            other => other.map(|()| held),
        }
    }

    /// The folder that a path lies in; nothing where it is not there.
    fn above<'p>(&self, path: &'p str) -> Result<Option<(Dir, &'p str)>, Trouble> {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok(self.folder(folders)?.map(|dir| (dir, name)))
    }

    fn folder(&self, path: &str) -> Result<Option<Dir>, Trouble> {
        let mut dir = self.dir.try_clone()?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            dir = match dir.open_dir_nofollow(name) {
                Ok(dir) => dir,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(obstacle(&dir, name, "lies in a file", error)),
            };
        }
        Ok(Some(dir))
    }

    fn needed<'p>(&self, path: &'p str) -> Result<(Dir, &'p str), Trouble> {
        let missing = || Trouble::Disk(io::Error::new(ErrorKind::NotFound, "its folder is not there"));
        self.above(path)?.ok_or_else(missing)
    }
}

/// What stood in the way. Systems differ in how they refuse a symlink that is not to be followed, so it is looked at.
fn obstacle(dir: &Dir, name: &str, otherwise: &'static str, error: io::Error) -> Trouble {
    match dir.symlink_metadata(name) {
        Ok(found) if found.is_symlink() => Trouble::Place("is reached through a symlink"),
        Ok(found) if !found.is_dir() => Trouble::Place(otherwise),
        _ => Trouble::Disk(error),
    }
}

impl Files for Beneath {
    fn look(&self, path: &str, limit: u64) -> Result<Option<Found>, Trouble> {
        let Some((dir, name)) = self.above(path)? else { return Ok(None) };
        match dir.symlink_metadata(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
            Ok(found) if found.is_symlink() => return Err(Trouble::Place("is a symlink")),
            Ok(found) if found.is_dir() => return Err(Trouble::Place("is a folder")),
            Ok(found) if !found.is_file() => return Err(Trouble::Place("is not a regular file")),
            Ok(_) => {}
        }
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let file = dir.open_with(name, &options)?;
        // Asked of what was opened, since another may have taken its place.
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(Trouble::Place("is not a regular file"));
        }
        let mut bytes = Vec::new();
        let mode = mode_of(&metadata);
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(Trouble::Place("is too large: 16 MiB are the most"));
        }
        Ok(Some(Found { bytes, mode }))
    }

    fn has_folder(&self, path: &str) -> Result<bool, Trouble> {
        Ok(self.folder(path)?.is_some())
    }

    fn names(&self, path: &str) -> Result<Vec<String>, Trouble> {
        let Some(dir) = self.folder(path)? else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for entry in dir.entries()? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn replace(&self, path: &str, bytes: &[u8], access: Access) -> Result<(), Trouble> {
        let (dir, name) = self.needed(path)?;
        let written =
            write_part(&dir, bytes, access, self.lasting).and_then(|()| dir.rename(PART, &dir, name));
        if let Err(error) = written {
            let _ = dir.remove_file(PART);
            return Err(error.into());
        }
        sync(&dir, self.lasting)
    }

    fn remove(&self, path: &str) -> Result<(), Trouble> {
        let Some((dir, name)) = self.above(path)? else { return Ok(()) };
        // One that a dead process left.
        let _ = dir.remove_file(PART);
        match dir.remove_file(name) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => sync(&dir, self.lasting),
        }
    }

    fn make_folder(&self, path: &str, access: Access) -> Result<(), Trouble> {
        let (dir, name) = self.needed(path)?;
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
                Err(error) => Err(obstacle(&dir, name, "is not a folder", error)),
            },
            Err(error) => Err(error.into()),
            Ok(()) => sync(&dir, self.lasting),
        }
    }

    fn remove_folder(&self, path: &str) -> Result<(), Trouble> {
        let Some((dir, name)) = self.above(path)? else { return Ok(()) };
        let Ok(folder) = dir.open_dir_nofollow(name) else { return Ok(()) };
        let _ = folder.remove_file(PART);
        match folder.entries()?.next() {
            Some(_) => Ok(()),
            None => Ok(dir.remove_dir(name)?),
        }
    }

    fn remove_part(&self, folder: &str) -> Result<(), Trouble> {
        let Some(dir) = self.folder(folder)? else { return Ok(()) };
        match dir.remove_file(PART) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn can_write(&self, folder: &str) -> Result<(), Trouble> {
        let Some(dir) = self.folder(folder)? else { return Ok(()) };
        write_part(&dir, b"", Access::Private, self.lasting)?;
        Ok(dir.remove_file(PART)?)
    }
}

fn write_part(dir: &Dir, bytes: &[u8], access: Access, lasting: Lasting) -> io::Result<()> {
    match dir.remove_file(PART) {
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
    let mut file = dir.open_with(OsStr::new(PART), &options)?;
    file.write_all(bytes)?;
    #[cfg(unix)]
    if let Access::Exactly(mode) = access {
        use cap_std::fs::PermissionsExt as _;
        file.set_permissions(cap_std::fs::Permissions::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = access;
    if lasting == Lasting::Yes { file.sync_all() } else { Ok(()) }
}

/// A folder as a file that can be locked and synced, which the handle that paths start from is not.
fn handle(dir: &Dir) -> io::Result<std::fs::File> {
    Ok(dir.open(".")?.into_std())
}

/// Makes what was renamed or removed in a folder last.
fn sync(dir: &Dir, lasting: Lasting) -> Result<(), Trouble> {
    // Other systems open no folders as files.
    if cfg!(unix) && lasting == Lasting::Yes {
        handle(dir)?.sync_all()?;
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
