//! The files of one workspace, reached by scope and path (M10). Nothing outside a scope can be named here, and whoever
//! implements [`Workspace`] sees to it that no symlink leads there either.

mod memory;
mod workspace_path;

pub use memory::Memory;
pub use workspace_path::{Escape, Scope, WorkspacePath};

/// Gives what a workspace holds.
///
/// Implementations confine every call to the location's scope: what `..`, an absolute path or a symlink would lead to
/// outside is [`Error::Outside`], also while somebody swaps files. Symlinks that stay inside are followed.
pub trait Workspace: Send + Sync {
    /// The bytes of a file.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is no such file, [`Error::Outside`] when it leads out of its scope,
    /// [`Error::TooLarge`] when it is longer than [`crate::tree::MAX_BYTES`], [`Error::Unreadable`] for everything else.
    fn read(&self, location: &WorkspacePath) -> Result<Vec<u8>, Error>;

    /// What a directory holds, by name; a symlink counts as what it leads to. The names are in no order.
    ///
    /// # Errors
    /// As [`Workspace::read`].
    fn list(&self, location: &WorkspacePath) -> Result<Vec<DirEntry>, Error>;
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The entry's name, exactly as the file system has it.
    pub name: String,
    pub kind: EntryKind,
}

/// What an entry of a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    File,
    Directory,
    /// Anything else: a socket, a dangling link, a link that leads out of the scope.
    Other,
}

/// Why there is nothing to read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file or directory.
    #[error("no such file")]
    Missing,
    /// It leads out of its scope.
    #[error("it leads out of its workspace or tenant; `--root` names a wider workspace")]
    Outside,
    /// It is longer than what is read.
    #[error("it is longer than the {} bytes that are read", crate::tree::MAX_BYTES)]
    TooLarge,
    /// It is there and cannot be read.
    #[error("{0}")]
    Unreadable(#[source] std::io::Error),
}

/// Whether a name is that of a device on Windows, where no file or folder can have it, whatever its ending: `con`,
/// `com1`. Letters count in either case.
pub fn is_device_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered = |prefix: &str| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    matches!(&*stem, "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}
