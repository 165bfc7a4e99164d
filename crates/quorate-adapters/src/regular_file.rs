//! Reads files that another process may have replaced: by a pipe, which would keep its reader waiting for a writer, by a
//! device, or by an endless file. The type is checked after the file was opened, so that it cannot be swapped in between.
//! A [`FileStamp`] detects by metadata that a file was changed or replaced.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

/// Opens a file or a directory for reading.
///
/// # Errors
/// When it cannot be opened, or is of another type.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens a file or a directory with options.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // Without this, opening a pipe waits for its other end. It has no effect on a file.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    let kind = file.metadata()?.file_type();
    match kind.is_file() || kind.is_dir() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// The real path, if it is outside of a directory by its name or through a link.
pub(crate) fn path_outside(dir: &Path, path: &Path) -> Option<PathBuf> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let resolved = real(path);
    (!resolved.starts_with(real(dir))).then_some(resolved)
}

/// As [`Resolver::resolve`], for a single path.
pub(crate) fn real_path(path: &Path) -> PathBuf {
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
    /// directories and follow a dangling link. A path with more links than the system follows stays as it is, since it
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

/// The content of a file of at most `most` bytes.
///
/// # Errors
/// As [`open`], and when it is larger.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_all(open(path)?, most)
}

/// The content of a file that Quorate writes: a link in its place was made by another program, and may lead anywhere.
///
/// # Errors
/// As [`read`], and when it is a link.
pub(crate) fn read_no_symlink(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // The file is usually missing, which one call finds out.
    match path.symlink_metadata()?.is_symlink() {
        true => Err(link_refused()),
        false => read_all(open(path)?, most),
    }
}

/// Refuses a link. A process that can create one between this check and the opening has access to the folder anyway.
///
/// # Errors
/// When it is a link.
pub(crate) fn reject_symlink(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => Err(link_refused()),
        _ => Ok(()),
    }
}

fn link_refused() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is a link; remove it")
}

fn read_all(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// The text of a file of at most `most` bytes.
///
/// # Errors
/// As [`read`], and when it is not UTF-8.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
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
}

/// Identity, length and modification time of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) file_id: (u64, u64),
    pub(crate) len: u64,
    changed: (Option<SystemTime>, i64, i64),
}

impl FileStamp {
    /// The stamp of a path; `None` if the file is missing.
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
