//! Access to files by path. This crate never opens a file itself.

use std::path::Path;

/// Reads files for the loader.
pub trait Source {
    /// # Errors
    /// [`Error::Missing`] when there is no such file, [`Error::Unreadable`] for everything else.
    fn read(&self, path: &Path) -> Result<Vec<u8>, Error>;
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no such file")]
    Missing,
    /// The file exists but cannot be read.
    #[error("{0}")]
    Unreadable(#[source] std::io::Error),
}
