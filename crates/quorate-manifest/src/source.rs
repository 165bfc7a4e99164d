//! Where bytes come from. The library never opens a file itself.

use std::path::Path;

/// Gives the bytes of files.
pub trait Source {
    /// The bytes of one file.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is no such file, [`Error::Unreadable`] for everything else.
    fn read(&self, path: &Path) -> Result<Vec<u8>, Error>;
}

/// Why there are no bytes.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file.
    #[error("no such file")]
    Missing,
    /// It is there and cannot be read.
    #[error("{0}")]
    Unreadable(#[source] std::io::Error),
}
