//! Files in memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use quorate_manifest::Source;
use quorate_manifest::source::Error;

/// A source that holds what it is given. Paths are compared without `.` and with `..` resolved.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    files: BTreeMap<PathBuf, Content>,
}

#[derive(Debug, Clone)]
enum Content {
    Bytes(Vec<u8>),
    Unreadable,
}

impl Memory {
    /// No files.
    pub fn new() -> Self {
        Memory::default()
    }

    /// Adds a file, in place of one that was there.
    pub fn put(&mut self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) {
        self.files.insert(plain(path.as_ref()), Content::Bytes(bytes.into()));
    }

    /// Adds a file that is there and cannot be read.
    pub fn put_unreadable(&mut self, path: impl AsRef<Path>) {
        self.files.insert(plain(path.as_ref()), Content::Unreadable);
    }

    /// The bytes of a file, if it is there and can be read.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<&[u8]> {
        match self.files.get(&plain(path.as_ref()))? {
            Content::Bytes(bytes) => Some(bytes),
            Content::Unreadable => None,
        }
    }
}

impl Source for Memory {
    fn read(&self, path: &Path) -> Result<Vec<u8>, Error> {
        match self.files.get(&plain(path)) {
            Some(Content::Bytes(bytes)) => Ok(bytes.clone()),
            Some(Content::Unreadable) => {
                Err(Error::Unreadable(io::Error::new(io::ErrorKind::PermissionDenied, "permission denied")))
            }
            None => Err(Error::Missing),
        }
    }
}

fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}
