//! Files: the one place where use cases touch the disk.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use quorate_manifest::{Source, source};

/// Reads files from the disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Source for Disk {
    #[expect(clippy::disallowed_methods, reason = "this module reads files")]
    fn read(&self, path: &Path) -> Result<Vec<u8>, source::Error> {
        std::fs::read(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => source::Error::Missing,
            _ => source::Error::Unreadable(error),
        })
    }
}

/// At most `limit + 1` bytes of a file, so that the caller sees that it is too large.
#[expect(clippy::disallowed_methods, reason = "this module reads files")]
pub fn read_up_to(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// At most `limit + 1` bytes of standard input.
pub fn read_stdin(limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(limit + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file that is not there yet, and its directories.
#[expect(clippy::disallowed_methods, reason = "this module writes files")]
pub fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let mut file = std::fs::File::create_new(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())
}

/// Puts new bytes in a file's place, all at once: whoever reads it sees the old or the new. Its permissions stay, and a
/// link to it stays a link.
pub fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let path = std::fs::canonicalize(path)?;
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    std::io::Write::write_all(&mut file, bytes)?;
    file.as_file().set_permissions(std::fs::metadata(&path)?.permissions())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}

/// Whether a file can be appended to, making nothing that was not there.
pub fn can_append(path: &Path) -> std::io::Result<()> {
    if path.exists() {
        return std::fs::OpenOptions::new().append(true).open(path).map(|_| ());
    }
    let parent = path.ancestors().skip(1).find(|dir| dir.exists()).unwrap_or(Path::new("."));
    let metadata = std::fs::metadata(parent)?;
    match (metadata.is_dir(), metadata.permissions().readonly()) {
        (false, _) => Err(std::io::Error::from(std::io::ErrorKind::NotADirectory)),
        (true, true) => Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied)),
        (true, false) => Ok(()),
    }
}

/// A file found by walking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// When it was last changed, in milliseconds since the Unix epoch.
    pub changed_ms: i64,
}

/// All regular files at or below a path, sorted, hidden directories passed over; links are followed for files and
/// not for directories, so that a walk ends.
///
/// # Errors
/// When the path itself is not there or cannot be read. What cannot be read below it is passed over.
pub fn walk(path: &Path) -> std::io::Result<Vec<Found>> {
    let mut found = Vec::new();
    let metadata = std::fs::metadata(path)?;
    if metadata.is_file() {
        found.push(Found { path: path.to_owned(), changed_ms: changed_ms(&metadata) });
    } else {
        below(path, &mut found)?;
        found.sort_by(|a, b| a.path.cmp(&b.path));
    }
    Ok(found)
}

#[expect(clippy::disallowed_methods, reason = "this module reads directories")]
fn below(dir: &Path, found: &mut Vec<Found>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            if !name.to_string_lossy().starts_with('.') {
                let _ = below(&path, found);
            }
        } else if let Ok(metadata) = std::fs::metadata(&path)
            && metadata.is_file()
        {
            found.push(Found { changed_ms: changed_ms(&metadata), path });
        }
    }
    Ok(())
}

fn changed_ms(metadata: &std::fs::Metadata) -> i64 {
    let since = metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
