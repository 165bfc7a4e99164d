//! A workspace in memory, for tests and for programs that keep manifests elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use super::{DirEntry, EntryKind, Error, Workspace, WorkspacePath};
use crate::tree::MAX_BYTES;

/// Files by workspace-relative path.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    files: BTreeMap<String, Vec<u8>>,
}

impl Memory {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or replaces it. `path` is relative to the workspace and `/`-separated.
    #[must_use]
    pub fn with(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.to_owned(), bytes.into());
        self
    }
}

impl Workspace for Memory {
    fn read(&self, location: &WorkspacePath) -> Result<Vec<u8>, Error> {
        match self.files.get(&location.workspace_relative()) {
            Some(bytes) if bytes.len() > MAX_BYTES => Err(Error::TooLarge),
            Some(bytes) => Ok(bytes.clone()),
            None => Err(Error::Missing),
        }
    }

    fn list(&self, location: &WorkspacePath) -> Result<Vec<DirEntry>, Error> {
        let folder = location.workspace_relative();
        let prefix = if folder.is_empty() { folder } else { format!("{folder}/") };
        let below = self.files.keys().filter_map(|path| path.strip_prefix(&prefix));
        let listed: BTreeSet<DirEntry> = below
            .map(|rest| match rest.split_once('/') {
                Some((name, _)) => DirEntry { name: name.to_owned(), kind: EntryKind::Directory },
                None => DirEntry { name: rest.to_owned(), kind: EntryKind::File },
            })
            .collect();
        if listed.is_empty() && !prefix.is_empty() {
            Err(Error::Missing)
        } else {
            Ok(listed.into_iter().collect())
        }
    }
}
