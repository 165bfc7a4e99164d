//! Reads a workspace's files: resolves every path beneath the folder of its scope, from an open handle, so that no `..`,
//! absolute path or symlink leads out, even if the tree changes meanwhile (M10).

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cap_fs_ext::{DirExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use quorate_manifest::Workspace;
use quorate_manifest::tree::MAX_BYTES;
use quorate_manifest::workspace::{DirEntry, EntryKind, Error, Scope, WorkspacePath};

/// How many tenants' folders are open at once: a workspace may have more tenants than a process may have open files.
const MAX_OPEN_TENANTS: usize = 64;

/// A workspace on the disk.
///
/// It holds folders open instead of remembering their names: the workspace's from the start, a tenant's from its first
/// use. A folder that is moved meanwhile is still read at its new place, and a folder that replaces it is ignored. Use one
/// for a single operation, not for the life of a process.
///
/// A symlink with an absolute target always leads out, because the target starts at the root of the file system. A loop of
/// symlinks and a path that is not a regular file give [`Error::Unreadable`].
#[derive(Debug)]
pub struct Confined {
    root: Arc<Dir>,
    tenants: Mutex<HashMap<Arc<str>, Arc<Dir>>>,
}

impl Confined {
    /// The workspace whose folder is `root`, which may itself be reached through symlinks.
    ///
    /// # Errors
    /// If the directory does not exist or cannot be opened.
    pub fn open(root: &Path) -> io::Result<Confined> {
        let root = Arc::new(Dir::open_ambient_dir(root, ambient_authority())?);
        Ok(Confined { root, tenants: Mutex::default() })
    }

    /// The folder of a scope.
    fn folder(&self, scope: &Scope) -> Result<Arc<Dir>, Error> {
        let Scope::Tenant(slug) = scope else { return Ok(Arc::clone(&self.root)) };
        if let Some(held) = self.lock_tenants().get(slug) {
            return Ok(Arc::clone(held));
        }
        let opened = Arc::new(self.open_tenant(slug, &scope.folder())?);
        let mut tenants = self.lock_tenants();
        if tenants.len() >= MAX_OPEN_TENANTS {
            tenants.clear();
        }
        tenants.insert(Arc::clone(slug), Arc::clone(&opened));
        Ok(opened)
    }

    fn open_tenant(&self, slug: &str, folder: &str) -> Result<Dir, Error> {
        if !is_single_component(slug) {
            return Err(Error::Outside);
        }
        self.root.open_dir_nofollow(folder).map_err(|failed| {
            // Systems report a refused symlink differently, so this looks at the link itself.
            let link = self.root.symlink_metadata(folder).is_ok_and(|found| found.is_symlink());
            if link { Error::Outside } else { classify_open_error(failed) }
        })
    }

    /// At most `limit + 1` bytes of a regular file, so that the caller sees that it is too large.
    ///
    /// # Errors
    /// As [`Workspace::read`], except for [`Error::TooLarge`].
    pub fn read_up_to(&self, path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
        let file = open(&self.root, path).map_err(classify_open_error)?;
        let kind = match file.metadata().map_err(Error::Unreadable)? {
            found if found.is_file() => None,
            found if found.is_dir() => Some(io::ErrorKind::IsADirectory.into()),
            _ => Some(io::Error::other("it is not a regular file")),
        };
        if let Some(error) = kind {
            return Err(Error::Unreadable(error));
        }
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes).map_err(Error::Unreadable)?;
        Ok(bytes)
    }

    fn lock_tenants(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Dir>>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workspace for Confined {
    fn read(&self, location: &WorkspacePath) -> Result<Vec<u8>, Error> {
        let file =
            open(&*self.folder(location.scope())?, Path::new(path(location))).map_err(classify_open_error)?;
        // Metadata of the opened file, since the path may lead elsewhere by now.
        let metadata = file.metadata().map_err(Error::Unreadable)?;
        if metadata.is_dir() {
            return Err(Error::Unreadable(io::ErrorKind::IsADirectory.into()));
        }
        if !metadata.is_file() {
            return Err(Error::Unreadable(io::Error::other("it is not a regular file")));
        }
        if metadata.len() > MAX_BYTES as u64 {
            return Err(Error::TooLarge);
        }
        // One spare byte lets the read find the end without growing the buffer. The file may have grown since, so the
        // limit is checked again.
        let mut bytes = Vec::with_capacity((metadata.len() as usize + 1).max(64));
        file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(Error::Unreadable)?;
        if bytes.len() > MAX_BYTES { Err(Error::TooLarge) } else { Ok(bytes) }
    }

    fn list(&self, location: &WorkspacePath) -> Result<Vec<DirEntry>, Error> {
        let folder = self.folder(location.scope())?;
        let mut listed = Vec::new();
        for entry in folder.read_dir(path(location)).map_err(classify_open_error)? {
            let entry = entry.map_err(Error::Unreadable)?;
            // No ref can name an entry that is not UTF-8.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let file_type = entry.file_type().map_err(Error::Unreadable)?;
            let kind = if file_type.is_file() {
                EntryKind::File
            } else if file_type.is_dir() {
                EntryKind::Directory
            } else {
                resolved_kind(&folder, &Path::new(path(location)).join(&name))
            };
            listed.push(DirEntry { name, kind });
        }
        Ok(listed)
    }
}

/// The kind of an entry that the directory does not report: symlinks, and every entry on file systems whose directories
/// have no kinds.
///
/// Opens the entry as a read would, because asking for a path's kind follows links that lead out and back in.
fn resolved_kind(folder: &Dir, path: &Path) -> EntryKind {
    match open(folder, path).and_then(|opened| opened.metadata()) {
        Ok(found) if found.is_file() => EntryKind::File,
        Ok(found) if found.is_dir() => EntryKind::Directory,
        _ => EntryKind::Other,
    }
}

/// Opens a path within a folder.
fn open(folder: &Dir, path: &Path) -> io::Result<std::fs::File> {
    let mut options = OpenOptions::new();
    // Without this, opening a FIFO waits for a writer.
    options.read(true).nonblock(true);
    Ok(folder.open_with(path, &options)?.into_std())
}

/// The path for the system, which has no empty paths.
fn path(location: &WorkspacePath) -> &str {
    if location.as_str().is_empty() { "." } else { location.as_str() }
}

/// Whether a slug is a single path component.
fn is_single_component(slug: &str) -> bool {
    let mut parts = Path::new(slug).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(name)), None) if name == slug)
}

/// Classifies a failure to open. cap-std itself refuses a path that leads out, so that error has no system error number.
fn classify_open_error(failed: io::Error) -> Error {
    match failed.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::Missing,
        io::ErrorKind::PermissionDenied if failed.raw_os_error().is_none() => Error::Outside,
        _ => Error::Unreadable(failed),
    }
}

#[cfg(test)]
mod tests;
