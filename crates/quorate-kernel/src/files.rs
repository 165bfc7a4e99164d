//! The one place that answers "may I open this?": it opens, reads and writes files that another process may have replaced.
//!
//! A pipe would keep its reader waiting for a writer, and a device may have no end. So each function opens a path first and
//! checks the type of what it opened, which cannot be swapped in between. A [`Root`] opens a folder once, and resolves every
//! path beneath that open folder, so that no `..`, absolute path or symlink leads out, even if the tree changes meanwhile.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use quorate_manifest::workspace::{DirEntry, EntryKind, WorkspaceError};

/// Opens a file or a directory for reading. Reading a directory fails later.
///
/// # Errors
/// If it cannot be opened, or is a pipe, a socket or a device.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens a file or a directory with options.
///
/// # Errors
/// As [`open`].
pub fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // Without this, opening a pipe waits for its other end. It has no effect on a file.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    let kind = file.metadata()?.file_type();
    match kind.is_file() || kind.is_dir() {
        true => Ok(file),
        false => Err(not_regular()),
    }
}

fn not_regular() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")
}

/// Opens a file for appending and reading, and creates a missing one with the default permissions.
///
/// # Errors
/// As [`open`].
pub fn open_append(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true).append(true).create(true), path)
}

/// As [`open_append`], but only the owner can read a file that it creates.
///
/// # Errors
/// As [`open`].
pub fn open_append_private(path: &Path) -> io::Result<File> {
    open_with(private_options().read(true).append(true).create(true), path)
}

/// Creates a new file that only its owner can read.
///
/// # Errors
/// If it exists or cannot be created.
pub fn create_private(path: &Path) -> io::Result<File> {
    private_options().write(true).create_new(true).open(path)
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes a directory that only its owner can enter, unless it exists, and its parents with the default permissions.
///
/// # Errors
/// If it cannot be made.
#[expect(clippy::disallowed_methods, reason = "this module makes directories")]
pub fn ensure_private_dir(path: &Path) -> io::Result<()> {
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
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// The content of a file of at most `most` bytes.
///
/// # Errors
/// As [`open`], and when it is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let bytes = read_limited(open(path)?, most)?;
    match bytes.len() as u64 > most {
        true => {
            let limit = match most >> 20 << 20 == most && most > 0 {
                true => format!("{} MiB", most >> 20),
                false => format!("{most} bytes"),
            };
            Err(io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {limit}")))
        }
        false => Ok(bytes),
    }
}

/// At most `most + 1` bytes, so that the caller can detect a larger file.
///
/// # Errors
/// If they cannot be read.
pub fn read_limited(from: impl io::Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a file of at most `most` bytes.
///
/// # Errors
/// As [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// The content of a file that Quorate writes: a link in its place was made by another program, and may lead anywhere.
///
/// # Errors
/// As [`read`], and when it is a link.
pub fn read_no_symlink(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    reject_symlink(path)?;
    read(path, most)
}

/// Refuses a link. A process that can create one between this check and the opening has access to the folder anyway.
///
/// # Errors
/// When it is a link.
pub fn reject_symlink(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => {
            Err(io::Error::new(ErrorKind::InvalidInput, "it is a link; remove it"))
        }
        _ => Ok(()),
    }
}

/// The users that can read a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Its owner.
    Owner,
    /// Everyone, as with other files of a workspace; a file that is replaced keeps its permissions.
    All,
}

/// Writes a file atomically and durably: a reader sees the old or the new bytes, also after a loss of power. Replaces a
/// link. The directory must exist.
///
/// # Errors
/// If it cannot be written.
#[cfg_attr(not(unix), expect(unused_variables, reason = "other systems have no modes"))]
pub fn write_atomic(path: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The owner alone can read a temporary file.
    let mut new = tempfile::NamedTempFile::new_in(dir)?;
    new.write_all(bytes)?;
    #[cfg(unix)]
    if readers == Readers::All {
        use std::os::unix::fs::PermissionsExt as _;
        let kept = path.symlink_metadata().ok().filter(Metadata::is_file).map(|there| there.permissions());
        let permissions = kept.unwrap_or_else(|| std::fs::Permissions::from_mode(0o644));
        new.as_file().set_permissions(permissions)?;
    }
    new.as_file().sync_all()?;
    new.persist(path)?;
    sync_dir_of(path)
}

/// Makes a new file's name durable. After a power loss, a file whose own data is synced may otherwise lack its name.
///
/// # Errors
/// If the directory cannot be synced.
pub fn sync_dir_of(file: &Path) -> io::Result<()> {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Other systems cannot open a directory as a file.
    if cfg!(unix) { open(dir)?.sync_all() } else { Ok(()) }
}

/// Whether two paths lead to the same existing file or folder.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    match (file_id(one), file_id(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// The identity of an existing file or folder under any of its names: device and number, or the hash of its real path on
/// systems without numbers.
pub fn file_id(path: &Path) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        path.metadata().ok().map(|there| (there.dev(), there.ino()))
    }
    #[cfg(not(unix))]
    {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        path.canonicalize().ok()?.hash(&mut hasher);
        Some((0, hasher.finish()))
    }
}

/// The real path, if it is outside of a directory by its name or through a link.
pub fn path_outside(dir: &Path, path: &Path) -> Option<PathBuf> {
    let resolver = Resolver::default();
    let resolved = resolver.resolve(path);
    (!resolved.starts_with(resolver.resolve(dir))).then_some(resolved)
}

/// As [`Resolver::resolve`], for a single path.
pub fn real_path(path: &Path) -> PathBuf {
    Resolver::default().resolve(path)
}

/// The maximum number of links that are followed in a path.
const MAX_LINKS: usize = 40;

/// Resolves the links in several paths at one time: it reads each name once. A later change on disk has no effect on it,
/// so a resolver must not outlive the call that needs it.
#[derive(Debug, Default)]
pub struct Resolver {
    /// The resolved path of each name that was read.
    known: RefCell<HashMap<PathBuf, PathBuf>>,
}

impl Resolver {
    /// The absolute path without links and `..`, also if its end does not exist yet: a write would create the missing
    /// directories and follow a dangling link. A path with more links than the system follows stays unchanged, since it
    /// cannot be opened.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.follow(PathBuf::new(), &path, &mut { MAX_LINKS }).unwrap_or(path)
    }

    /// Whether a path is below a root once links are followed.
    pub fn is_inside(&self, root: &Path, path: &Path) -> bool {
        self.resolve(path).starts_with(self.resolve(root))
    }

    /// `None` after too many links.
    fn follow(&self, from: PathBuf, path: &Path, links: &mut usize) -> Option<PathBuf> {
        path.components().try_fold(from, |mut resolved, part| match part {
            Component::Prefix(_) | Component::RootDir => Some(resolved.join(part)),
            Component::CurDir => Some(resolved),
            Component::ParentDir => {
                // The parent of `/` is `/`.
                resolved.pop();
                Some(resolved)
            }
            Component::Normal(name) => self.entry(resolved.join(name), links),
        })
    }

    /// The resolved path of an entry of a resolved directory.
    fn entry(&self, path: PathBuf, links: &mut usize) -> Option<PathBuf> {
        if let Some(known) = self.known.borrow().get(&path) {
            return Some(known.clone());
        }
        let resolved = match path.read_link() {
            Ok(target) => {
                *links = links.checked_sub(1)?;
                self.follow(path.parent().map_or_else(PathBuf::new, Path::to_owned), &target, links)?
            }
            _ if cfg!(target_os = "linux") => path.clone(),
            // Other systems may know the entry by another spelling.
            _ => path.canonicalize().unwrap_or_else(|_| path.clone()),
        };
        self.known.borrow_mut().insert(path, resolved.clone());
        Some(resolved)
    }
}

/// A folder that is held open. A path beneath it cannot lead out; a folder that is moved is still read at its new place.
///
/// A symlink with an absolute target always leads out, because the target starts at the root of the file system.
#[derive(Debug)]
pub struct Root {
    dir: Dir,
    syncs: bool,
}

impl Root {
    /// Opens a folder, which may itself be reached through symlinks.
    ///
    /// # Errors
    /// If it does not exist or cannot be opened.
    pub fn open(dir: &Path) -> io::Result<Root> {
        Ok(Root { dir: Dir::open_ambient_dir(dir, ambient_authority())?, syncs: true })
    }

    /// Does not wait for the disk: a loss of power may take back what was written.
    #[must_use]
    pub fn without_sync(self) -> Root {
        Root { syncs: false, ..self }
    }

    /// Opens a folder beneath this one that is not a link.
    ///
    /// # Errors
    /// If it is missing or a link.
    pub fn folder(&self, name: &str) -> Result<Root, WorkspaceError> {
        self.dir.open_dir_nofollow(name).map(|dir| Root { dir, ..*self }).map_err(|failed| {
            // Systems report a refused symlink differently, so this looks at the link itself.
            let is_link = self.dir.symlink_metadata(name).is_ok_and(|found| found.is_symlink());
            if is_link { WorkspaceError::Outside } else { classify(failed) }
        })
    }

    /// The content of a regular file of at most `most` bytes.
    ///
    /// # Errors
    /// If it is missing, outside, too large, or unreadable.
    pub fn read_regular(&self, path: &Path, most: u64) -> Result<Vec<u8>, WorkspaceError> {
        let file = self.open_beneath(path).map_err(classify)?;
        let found = file.metadata().map_err(WorkspaceError::Unreadable)?;
        if found.is_dir() {
            return Err(WorkspaceError::Unreadable(ErrorKind::IsADirectory.into()));
        }
        if !found.is_file() {
            return Err(WorkspaceError::Unreadable(not_regular()));
        }
        // One spare byte lets the read find the end without growing the buffer; the file may have grown since.
        let mut bytes = Vec::with_capacity(found.len().min(most) as usize + 1);
        file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(WorkspaceError::Unreadable)?;
        if bytes.len() as u64 > most { Err(WorkspaceError::TooLarge) } else { Ok(bytes) }
    }

    /// The entries of a folder, without names that are not UTF-8. Links are followed as a read follows them.
    ///
    /// # Errors
    /// If it is missing, outside, or unreadable.
    pub fn list(&self, path: &Path) -> Result<Vec<DirEntry>, WorkspaceError> {
        let mut listed = Vec::new();
        for entry in self.dir.read_dir(path).map_err(classify)? {
            let entry = entry.map_err(WorkspaceError::Unreadable)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let found = entry.file_type().map_err(WorkspaceError::Unreadable)?;
            let kind = if found.is_file() {
                EntryKind::File
            } else if found.is_dir() {
                EntryKind::Directory
            } else {
                self.resolved_kind(&path.join(&name))
            };
            listed.push(DirEntry { name, kind });
        }
        Ok(listed)
    }

    /// The kind of a link. Opens it as a read would: asking for a path's kind would follow links that lead out and back in.
    fn resolved_kind(&self, path: &Path) -> EntryKind {
        match self.open_beneath(path).and_then(|opened| opened.metadata()) {
            Ok(found) if found.is_file() => EntryKind::File,
            Ok(found) if found.is_dir() => EntryKind::Directory,
            _ => EntryKind::Other,
        }
    }

    fn open_beneath(&self, path: &Path) -> io::Result<File> {
        let mut options = cap_std::fs::OpenOptions::new();
        // Without this, opening a pipe waits for its other end.
        options.read(true).nonblock(true);
        Ok(self.dir.open_with(path, &options)?.into_std())
    }
}

/// A file's content and its Unix permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    pub bytes: Arc<[u8]>,
    pub mode: u32,
}

/// The permissions of a written file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The default of new files.
    Data,
    /// The default of new programs and folders.
    Program,
    Private,
    Exactly(u32),
}

/// The name of the temporary file that replaces another. Only one process writes in a [`Root`] at a time.
pub const TEMP_NAME: &str = ".quorate-part";

/// Reading and writing without following any symlink. Paths are relative, with `/`, and have no `..`. Something else in a
/// path's way is [`is_obstacle`]. Changes are durable when they return, and a reader, also after a crash, sees the old or
/// the new content.
impl Root {
    /// Locks the folder against other processes until the returned file is dropped. Waits for the lock.
    ///
    /// # Errors
    /// If the folder cannot be locked.
    pub fn lock(&self) -> io::Result<File> {
        let handle = self.dir.open(".")?.into_std();
        match handle.lock() {
            // Some file systems have no locks, so other processes cannot be excluded there.
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(handle),
            locked => locked.map(|()| handle),
        }
    }

    /// Reads a file; `None` if it does not exist.
    ///
    /// # Errors
    /// If it is not a regular file of at most `most` bytes, or cannot be read.
    pub fn read_unlinked(&self, path: &str, most: u64) -> io::Result<Option<FileContent>> {
        let Some((dir, name)) = self.parent(path)? else { return Ok(None) };
        match dir.dir.symlink_metadata(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Ok(found) if found.is_symlink() => return Err(obstacle("is a symlink")),
            Ok(found) if found.is_dir() => return Err(obstacle("is a folder")),
            _ => {}
        }
        let mut options = cap_std::fs::OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let file = dir.dir.open_with(name, &options)?.into_std();
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(obstacle("is not a regular file"));
        }
        let bytes = read_limited(file, most)?;
        if bytes.len() as u64 > most {
            return Err(obstacle(&format!("is larger than {} MiB", most >> 20)));
        }
        #[cfg(unix)]
        let mode = std::os::unix::fs::MetadataExt::mode(&metadata) & 0o7777;
        #[cfg(not(unix))]
        let mode = 0o644;
        Ok(Some(FileContent { bytes: bytes.into(), mode }))
    }

    /// Opens a folder; `None` if it does not exist.
    ///
    /// # Errors
    /// If something else is there, or above it.
    pub fn open_unlinked(&self, path: &str) -> io::Result<Option<Root>> {
        let mut dir = self.dir.try_clone()?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            dir = match dir.open_dir_nofollow(name) {
                Ok(dir) => dir,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                // Systems report a refused symlink differently, so this inspects the entry.
                Err(error) => {
                    return Err(match dir.symlink_metadata(name) {
                        Ok(found) if found.is_symlink() => obstacle("is reached through a symlink"),
                        Ok(found) if !found.is_dir() => obstacle("is in the place of a file, or below one"),
                        _ => error,
                    });
                }
            };
        }
        Ok(Some(Root { dir, ..*self }))
    }

    /// The sorted names in a folder; empty if the folder does not exist.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn names(&self, path: &str) -> io::Result<Vec<String>> {
        let Some(dir) = self.open_unlinked(path)? else { return Ok(Vec::new()) };
        let name = |entry: io::Result<cap_std::fs::DirEntry>| {
            entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
        };
        let mut names = dir.dir.entries()?.map(name).collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    /// Makes a folder in an existing one, unless it exists.
    ///
    /// # Errors
    /// If the disk refuses it.
    pub fn make_folder(&self, path: &str, access: Access) -> io::Result<()> {
        let (dir, name) = self.parent(path)?.ok_or_else(no_folder)?;
        #[cfg_attr(not(unix), expect(unused_mut, reason = "other systems have no modes"))]
        let mut builder = cap_std::fs::DirBuilder::new();
        #[cfg(unix)]
        if access == Access::Private {
            cap_std::fs::DirBuilderExt::mode(&mut builder, 0o700);
        }
        match dir.dir.create_dir_with(name, &builder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => dir.open_unlinked(name).map(drop),
            made => made.and_then(|()| dir.sync()),
        }
    }

    /// Replaces or creates a file.
    ///
    /// # Errors
    /// If the disk refuses it.
    pub fn replace(&self, path: &str, bytes: &[u8], access: Access) -> io::Result<()> {
        let (dir, name) = self.parent(path)?.ok_or_else(no_folder)?;
        let replaced = dir.write_temp(bytes, access).and_then(|()| dir.dir.rename(TEMP_NAME, &dir.dir, name));
        if replaced.is_err() {
            let _ = dir.dir.remove_file(TEMP_NAME);
        }
        replaced.and_then(|()| dir.sync())
    }

    /// Removes a file if it exists.
    ///
    /// # Errors
    /// If the disk refuses it.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        self.remove_with(path, |dir, name| dir.remove_file(name), &[])
    }

    /// Removes a folder if it exists and is empty.
    ///
    /// # Errors
    /// If the disk refuses it.
    pub fn remove_folder(&self, path: &str) -> io::Result<()> {
        let stays = [ErrorKind::DirectoryNotEmpty, ErrorKind::NotADirectory];
        self.remove_with(path, |dir, name| dir.remove_dir(name), &stays)
    }

    fn remove_with(
        &self,
        path: &str,
        remove: fn(&Dir, &str) -> io::Result<()>,
        stays: &[ErrorKind],
    ) -> io::Result<()> {
        let Some((dir, name)) = self.parent(path)? else { return Ok(()) };
        match remove(&dir.dir, name) {
            Err(error) if error.kind() == ErrorKind::NotFound || stays.contains(&error.kind()) => Ok(()),
            removed => removed.and_then(|()| dir.sync()),
        }
    }

    fn write_temp(&self, bytes: &[u8], access: Access) -> io::Result<()> {
        // A crashed process may have left one.
        let _ = self.dir.remove_file(TEMP_NAME);
        let mut options = cap_std::fs::OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No);
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::mode(
            &mut options,
            match access {
                Access::Data => 0o666,
                Access::Program => 0o777,
                Access::Private | Access::Exactly(_) => 0o600,
            },
        );
        let mut file = self.dir.open_with(TEMP_NAME, &options)?.into_std();
        file.write_all(bytes)?;
        #[cfg(unix)]
        if let Access::Exactly(mode) = access {
            use std::os::unix::fs::PermissionsExt as _;
            file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        }
        if self.syncs { file.sync_all() } else { Ok(()) }
    }

    /// Makes the changes in the folder durable. Only Unix opens folders as files.
    fn sync(&self) -> io::Result<()> {
        if cfg!(unix) && self.syncs { self.dir.open(".")?.into_std().sync_all() } else { Ok(()) }
    }

    /// The parent folder of a path and its last name; `None` if the folder does not exist.
    fn parent<'p>(&self, path: &'p str) -> io::Result<Option<(Root, &'p str)>> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok(self.open_unlinked(folder)?.map(|dir| (dir, name)))
    }
}

/// Something that is in the way of a path, as a predicate.
fn obstacle(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}

/// Whether something is in the way of a path that is to be reached without symlinks; the error's text is a predicate.
pub fn is_obstacle(error: &io::Error) -> bool {
    error.kind() == ErrorKind::InvalidInput && error.raw_os_error().is_none()
}

fn no_folder() -> io::Error {
    io::Error::new(ErrorKind::NotFound, "its folder does not exist")
}

/// cap-std itself refuses a path that leads out, so that error has no system error number.
fn classify(failed: io::Error) -> WorkspaceError {
    match failed.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => WorkspaceError::Missing,
        ErrorKind::PermissionDenied if failed.raw_os_error().is_none() => WorkspaceError::Outside,
        _ => WorkspaceError::Unreadable(failed),
    }
}

/// Identity, length and modification time of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Device and number, or the creation time on systems without file numbers.
    pub file_id: (u64, u64),
    /// The length in bytes.
    pub len: u64,
    changed: (Option<SystemTime>, i64, i64),
}

impl FileStamp {
    /// The stamp of a path; `None` if the file is missing.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn of_path(path: &Path) -> io::Result<Option<Self>> {
        match std::fs::metadata(path) {
            Ok(meta) => Ok(Some(FileStamp::of_metadata(&meta))),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The stamp of an opened file.
    #[cfg(unix)]
    pub fn of_metadata(meta: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        FileStamp {
            file_id: (meta.dev(), meta.ino()),
            len: meta.len(),
            changed: (meta.modified().ok(), meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// Uses the creation time as the file's identity, since the system has no inode numbers.
    #[cfg(not(unix))]
    pub fn of_metadata(meta: &Metadata) -> Self {
        let since = meta.created().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let since = since.unwrap_or_default();
        FileStamp {
            file_id: (since.as_secs(), u64::from(since.subsec_nanos())),
            len: meta.len(),
            changed: (meta.modified().ok(), 0, 0),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test needs files")]
    fn a_file_has_one_path_before_it_is_made_and_after() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        std::fs::create_dir(dir.join("sub")).unwrap();
        std::os::unix::fs::symlink("sub", dir.join("folder")).unwrap();
        std::os::unix::fs::symlink("sub/file", dir.join("link")).unwrap();
        let names = ["sub/file", "sub/../sub/file", "folder/file", "link", "gone/../sub/file", "sub/./file"];
        let file = dir.join("sub/file");
        for name in names {
            assert_eq!(real_path(&dir.join(name)), file, "{name}");
        }
        std::fs::write(&file, "").unwrap();
        for name in names.into_iter().filter(|name| !name.starts_with("gone")) {
            assert_eq!(real_path(&dir.join(name)), file, "{name}");
        }
        std::os::unix::fs::symlink("round", dir.join("round")).unwrap();
        assert_eq!(real_path(&dir.join("round")), dir.join("round"), "it ends");
    }

    #[test]
    fn no_path_climbs_above_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let up = "../".repeat(40);
        std::os::unix::fs::symlink(format!("{up}etc"), dir.join("link")).unwrap();
        let etc = Path::new("/etc").canonicalize().unwrap();
        assert_eq!(real_path(&dir.join(format!("{up}etc"))), etc);
        assert_eq!(real_path(&dir.join("link")), etc);
        assert_eq!(real_path(Path::new("/../../etc")), etc);
        let resolver = Resolver::default();
        assert!(!resolver.is_inside(&dir, &dir.join("link")));
        assert!(resolver.is_inside(&dir, &dir.join(format!("{up}{}", dir.join("new").display()))));
    }

    #[test]
    fn a_path_with_too_many_links_changes_no_other() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        std::fs::create_dir(dir.join("ws")).unwrap();
        symlink("../outside", dir.join("ws/out")).unwrap();
        for at in 0..45 {
            let target = if at == 44 { "out".to_owned() } else { format!("a{}", at + 1) };
            symlink(target, dir.join(format!("ws/a{at}"))).unwrap();
        }
        let resolver = Resolver::default();
        for at in 0..45 {
            resolver.resolve(&dir.join(format!("ws/a{at}/file")));
            assert!(!resolver.is_inside(&dir.join("ws"), &dir.join("ws/out/file")), "after a{at}");
        }
        assert!(!Resolver::default().is_inside(&dir.join("ws"), &dir.join("ws/a20/file")));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test needs files")]
    fn what_is_no_file_is_refused_at_once_and_a_long_one_is_not_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::os::unix::fs::symlink("pipe", path("link")).unwrap();
        for name in ["pipe", "link"] {
            assert_eq!(open(&path(name)).unwrap_err().kind(), io::ErrorKind::InvalidInput);
            let appending = open_with(OpenOptions::new().read(true).append(true), &path(name));
            assert_eq!(appending.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        assert_eq!(read(Path::new("/dev/zero"), 8).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        std::fs::write(path("file"), "12345678").unwrap();
        assert_eq!(read_text(&path("file"), 8).unwrap(), "12345678");
        assert_eq!(read(&path("file"), 7).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(open(&path("gone")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_refusal_of_the_system_does_not_lead_out() {
        // A file without permissions would not do: tests that run as root may read it.
        let refused = classify(io::Error::from_raw_os_error(libc::EACCES));
        assert!(
            matches!(refused, WorkspaceError::Unreadable(error) if error.kind() == ErrorKind::PermissionDenied)
        );
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test needs files")]
    fn one_file_has_several_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("file"), "text").unwrap();
        std::fs::hard_link(path("file"), path("hard")).unwrap();
        std::os::unix::fs::symlink("file", path("link")).unwrap();
        std::fs::write(path("other"), "text").unwrap();
        assert!(is_same_file(&path("file"), &path("hard")) && is_same_file(&path("link"), &path("file")));
        assert!(!is_same_file(&path("file"), &path("other")) && !is_same_file(&path("gone"), &path("gone")));
    }

    #[test]
    fn a_written_file_replaces_a_link_and_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let mode = |name: &str| path(name).metadata().unwrap().permissions().mode() & 0o777;
        write_atomic(&path("private"), b"1", Readers::Owner).unwrap();
        write_atomic(&path("shared"), b"1", Readers::All).unwrap();
        assert_eq!((mode("private"), mode("shared")), (0o600, 0o644));
        write_atomic(&path("private"), b"2", Readers::All).unwrap();
        assert_eq!((mode("private"), read(&path("private"), 1).unwrap()), (0o600, b"2".to_vec()));
        std::os::unix::fs::symlink("shared", path("link")).unwrap();
        write_atomic(&path("link"), b"3", Readers::All).unwrap();
        assert!(!path("link").is_symlink());
        assert_eq!(read_text(&path("shared"), 9).unwrap(), "1");
    }
}
