//! Quarantine: torn or corrupt files are moved to `aside/`, never deleted and never reused.

use std::path::{Path, PathBuf};

/// Where a piece was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedFile {
    /// The file in `aside/`.
    pub path: PathBuf,
}

/// Writes a piece into `aside/` under the ledger's directory.
///
/// # Errors
/// When it cannot be written; then nothing may be removed from where it was.
pub fn write(dir: &Path, name: &str, bytes: &[u8]) -> std::io::Result<QuarantinedFile> {
    let quarantine = ensure_dir(dir)?;
    let path = unused_path(&quarantine, name);
    let mut file = crate::files::create_private(&path)?;
    std::io::Write::write_all(&mut file, bytes)?;
    file.sync_all()?;
    sync_directory(&path)?;
    Ok(QuarantinedFile { path })
}

/// Moves a file into `aside/`.
///
/// # Errors
/// When it cannot be moved.
pub fn move_file(dir: &Path, file: &Path) -> std::io::Result<QuarantinedFile> {
    let quarantine = ensure_dir(dir)?;
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or("piece");
    let path = unused_path(&quarantine, name);
    crate::files::rename(file, &path)?;
    Ok(QuarantinedFile { path })
}

/// Makes the name of a new file durable: a sync of the file alone may leave it without one when the power is lost.
///
/// # Errors
/// When the directory cannot be synced.
pub(crate) fn sync_directory(file: &Path) -> std::io::Result<()> {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Elsewhere a directory is no file that can be opened.
    if cfg!(unix) { crate::files::open(dir)?.sync_all() } else { Ok(()) }
}

fn ensure_dir(dir: &Path) -> std::io::Result<PathBuf> {
    let quarantine = dir.join("aside");
    crate::files::ensure_private_dir(&quarantine)?;
    Ok(quarantine)
}

fn unused_path(quarantine: &Path, name: &str) -> PathBuf {
    let numbered = (1_u32..).map(|number| quarantine.join(format!("{name}.{number}")));
    numbered.into_iter().find(|path| !path.exists()).unwrap_or_else(|| quarantine.join(name))
}
