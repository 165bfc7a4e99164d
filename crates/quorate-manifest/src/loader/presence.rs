//! Whether a path exists under its exact name (M10, M14). A name that another operating system would confuse with a
//! sibling or could not have counts as absent on all.

use std::collections::HashMap;
use std::sync::Arc;

use super::Loader;
use crate::workspace::{EntryKind, WorkspacePath};

/// How deep a folder is searched for a file.
const MAX_SEARCH_DEPTH: usize = 6;

/// Device names on Windows, with any extension.
const RESERVED: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// Whether a path exists, and as what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    File,
    Folder,
    /// The path does not exist or cannot be used; the reason.
    Absent(String),
}

/// The entries of a folder.
#[derive(Debug, Default)]
pub(super) struct FolderListing {
    entries: HashMap<String, EntryKind>,
    /// How often a name occurs when case is ignored.
    case_folded: HashMap<String, u32>,
}

impl Loader<'_> {
    /// Whether a path exists; each component has to match exactly.
    pub fn presence(&self, location: &WorkspacePath) -> Presence {
        let mut at = location.root();
        let mut found = Presence::Folder;
        for part in location.as_str().split('/').filter(|part| !part.is_empty()) {
            if found != Presence::Folder {
                return Presence::Absent(format!("`{}` is not a folder", self.display_name(&at)));
            }
            if let Some(why) = portability_problem(part) {
                return Presence::Absent(why);
            }
            let folder = self.folder(&at);
            let path = at.child(part);
            found = match folder.entries.get(part) {
                _ if folder.case_folded.get(&part.to_lowercase()).is_some_and(|count| *count > 1) => {
                    return Presence::Absent(format!(
                        "another name in `{}` differs from `{part}` in case alone, which other systems do not tell apart",
                        self.display_name(&at)
                    ));
                }
                Some(EntryKind::File) => Presence::File,
                Some(EntryKind::Directory) => Presence::Folder,
                Some(EntryKind::Other) => {
                    return Presence::Absent(format!(
                        "`{}` leads out of its workspace or tenant, or nowhere",
                        self.display_name(&path)
                    ));
                }
                None => return Presence::Absent(format!("there is no `{}`", self.display_name(location))),
            };
            at = path;
        }
        found
    }

    /// Whether a folder contains a file, at most [`MAX_SEARCH_DEPTH`] levels down.
    pub(super) fn contains_file(&self, location: &WorkspacePath) -> bool {
        fn search(loader: &Loader<'_>, location: &WorkspacePath, depth: usize) -> bool {
            let folder = loader.folder(location);
            let mut folders: Vec<&String> = Vec::new();
            for (name, kind) in &folder.entries {
                match kind {
                    EntryKind::File => return true,
                    EntryKind::Directory => folders.push(name),
                    EntryKind::Other => {}
                }
            }
            depth > 0 && folders.iter().any(|name| search(loader, &location.child(name), depth - 1))
        }
        search(self, location, MAX_SEARCH_DEPTH)
    }

    /// The names of the folders in a folder, sorted.
    pub fn folder_names(&self, location: &WorkspacePath) -> Vec<String> {
        self.entries(location, EntryKind::Directory)
    }

    /// The names of the files in a folder, sorted.
    pub fn file_names(&self, location: &WorkspacePath) -> Vec<String> {
        self.entries(location, EntryKind::File)
    }

    fn entries(&self, location: &WorkspacePath, wanted: EntryKind) -> Vec<String> {
        let folder = self.folder(location);
        let entries = folder.entries.iter().filter(|(_, kind)| **kind == wanted);
        let mut names: Vec<String> = entries.map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names
    }

    fn folder(&self, location: &WorkspacePath) -> Arc<FolderListing> {
        if let Some(folder) = self.folders.borrow().get(location) {
            return Arc::clone(folder);
        }
        let mut folder = FolderListing::default();
        for listed in self.workspace.list(location).unwrap_or_default() {
            *folder.case_folded.entry(listed.name.to_lowercase()).or_default() += 1;
            folder.entries.insert(listed.name, listed.kind);
        }
        let folder = Arc::new(folder);
        self.folders.borrow_mut().insert(location.clone(), Arc::clone(&folder));
        folder
    }
}

/// Why a name cannot be used on every operating system.
fn portability_problem(name: &str) -> Option<String> {
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let port = |prefix: &str| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    if RESERVED.contains(&stem.as_str()) || port("com") || port("lpt") {
        return Some(format!("`{name}` is the name of a device on some systems"));
    }
    let odd = name.ends_with(['.', ' ']) || name.contains(['%', '\\', ':', '*', '?', '"', '<', '>', '|']);
    (odd || name.chars().any(char::is_control))
        .then(|| format!("`{name}` is not a valid name on every system"))
}
