//! The files of a commit on GitHub. One request lists them all, except in a large repository, where each folder takes one.

use std::collections::BTreeMap;

use super::api::{Api, TreeEntry};
use quorate::service::error::ServiceError;

pub(super) struct CommitFiles<'a> {
    api: &'a Api,
    commit: &'a str,
    listed: BTreeMap<String, TreeEntry>,
    /// Whether the list is complete.
    pub(super) is_complete: bool,
    /// The entries of folders, by their hashes.
    folders: BTreeMap<String, Vec<TreeEntry>>,
}

impl<'a> CommitFiles<'a> {
    pub(super) async fn of(api: &'a Api, commit: &'a str) -> Result<CommitFiles<'a>, ServiceError> {
        let tree = api.files_of_commit(commit).await?;
        let listed = tree.tree.into_iter().map(|entry| (entry.path.clone(), entry)).collect();
        Ok(CommitFiles { api, commit, listed, is_complete: !tree.truncated, folders: BTreeMap::new() })
    }

    /// The listed paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.listed.keys().map(String::as_str)
    }

    /// The entry at a path; `None` if it does not exist or lies behind a link.
    pub(super) async fn find(&mut self, path: &str) -> Result<Option<&TreeEntry>, ServiceError> {
        if self.is_complete || self.listed.contains_key(path) {
            return Ok(self.listed.get(path));
        }
        let mut folder = self.commit.to_owned();
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        for part in above.split('/').filter(|part| !part.is_empty()) {
            match self.entry(&folder, part).await? {
                Some(entry) if entry.mode == FOLDER => folder = entry.sha.clone(),
                _ => return Ok(None),
            }
        }
        self.entry(&folder, name).await
    }

    async fn entry(&mut self, folder: &str, name: &str) -> Result<Option<&TreeEntry>, ServiceError> {
        if !self.folders.contains_key(folder) {
            let entries = self.api.folder(folder).await?.tree;
            self.folders.insert(folder.to_owned(), entries);
        }
        Ok(self.folders.get(folder).and_then(|entries| entries.iter().find(|entry| entry.path == name)))
    }
}

const FOLDER: &str = "040000";

impl TreeEntry {
    pub(super) fn is_file(&self) -> bool {
        matches!(&*self.mode, "100644" | "100755")
    }
}
