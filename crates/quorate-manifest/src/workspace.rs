//! Access to the files of one workspace by scope and path (M10). A [`WorkspacePath`] cannot name a file outside of its
//! scope, and implementations of [`Workspace`] make sure that no symlink leads there.

mod memory;
mod workspace_path;

pub use memory::Memory;
pub use workspace_path::{Escape, Scope, WorkspacePath};

/// Reads the files of a workspace.
///
/// Implementations MUST confine every call to the location's scope: a target outside of it, through `..`, an absolute path
/// or a symlink, is [`Error::Outside`], also if another process swaps files during the call. They follow symlinks inside the
/// scope.
pub trait Workspace: Send + Sync {
    /// The bytes of a file.
    ///
    /// # Errors
    /// [`Error::Missing`] if the file does not exist, [`Error::Outside`] if it leads out of its scope,
    /// [`Error::TooLarge`] if it is longer than [`crate::tree::MAX_BYTES`], [`Error::Unreadable`] otherwise.
    fn read(&self, location: &WorkspacePath) -> Result<Vec<u8>, Error>;

    /// The entries of a directory, in any order; a symlink has the kind of its target.
    ///
    /// # Errors
    /// As [`Workspace::read`].
    fn list(&self, location: &WorkspacePath) -> Result<Vec<DirEntry>, Error>;
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The exact name in the file system.
    pub name: String,
    pub kind: EntryKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    File,
    Directory,
    /// Anything else: a socket, a dangling link, a link that leads out of the scope.
    Other,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such file or directory.
    #[error("no such file")]
    Missing,
    #[error("it leads out of its workspace or tenant; `--root` names a wider workspace")]
    Outside,
    #[error("it is longer than {} bytes", crate::tree::MAX_BYTES)]
    TooLarge,
    /// It exists but cannot be read.
    #[error("{0}")]
    Unreadable(#[source] std::io::Error),
}

/// Whether Windows reserves a name for a device, with any extension and in any case: `con`, `com1`.
pub fn is_device_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered = |prefix: &str| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    matches!(&*stem, "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}
