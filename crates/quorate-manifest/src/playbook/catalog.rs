//! The playbooks of a scope (B1): all Markdown files below its `playbooks/`, except histories and files that begin with `_`
//! (the index, the log).

use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};

use super::{Playbook, load};
use crate::doctype::Doctype;
use crate::document::Document;
use crate::loader::{Loader, ReadResult};
use crate::workspace::{Scope, WorkspacePath};

/// The folder of playbooks in a scope.
pub const FOLDER: &str = "playbooks";
/// The suffix of a history's file name.
pub const HISTORY_SUFFIX: &str = ".history.md";

/// The maximum depth of folders, since links can form cycles.
const MAX_DEPTH: usize = 8;

/// A playbook and its file.
#[derive(Debug, Clone)]
pub struct PlaybookFile {
    pub path: WorkspacePath,
    pub playbook: Playbook,
    pub document: Arc<Document>,
}

impl PlaybookFile {
    pub fn text(&self) -> &str {
        self.document.body().trim()
    }
}

/// All playbooks of a scope.
#[derive(Debug, Default)]
pub struct Catalog {
    /// The valid playbooks, sorted by path.
    pub playbooks: Vec<PlaybookFile>,
    /// The refusals of the others, and all warnings.
    pub report: Report,
}

/// Loads all playbooks of a scope.
pub fn load_all(loader: &Loader<'_>, scope: &Scope) -> Catalog {
    let mut catalog = Catalog::default();
    for location in paths(loader, scope) {
        match loader.read(&location, Doctype::Playbook) {
            ReadResult::Document(document) => {
                let loaded = load::load(loader, &document);
                catalog.report.absorb(loaded.report);
                catalog.playbooks.extend(loaded.value.map(|playbook| PlaybookFile {
                    path: location,
                    playbook,
                    document,
                }));
            }
            ReadResult::Unreadable(why) => {
                let body = Body::new(format!("`{}` cannot be read: {why}", loader.display_name(&location)));
                catalog.report.refuse(codes::FILE_UNREADABLE, body);
            }
            // Removed since the folder was listed, or not in the scope.
            ReadResult::Missing | ReadResult::Outside => {}
        }
    }
    catalog
}

/// The paths of a scope's playbooks, sorted.
pub fn paths(loader: &Loader<'_>, scope: &Scope) -> Vec<WorkspacePath> {
    let mut found = Vec::new();
    if let Some(folder) = folder(scope) {
        walk(loader, &folder, MAX_DEPTH, &mut found);
    }
    found.sort();
    found
}

/// Whether a scope has a non-empty folder of playbooks.
pub fn exists(loader: &Loader<'_>, scope: &Scope) -> bool {
    folder(scope).is_some_and(|folder| {
        !loader.file_names(&folder).is_empty() || !loader.folder_names(&folder).is_empty()
    })
}

fn folder(scope: &Scope) -> Option<WorkspacePath> {
    let folder = match scope.folder() {
        top if top.is_empty() => FOLDER.to_owned(),
        tenant => format!("{tenant}/{FOLDER}"),
    };
    WorkspacePath::new(&folder).ok()
}

fn walk(loader: &Loader<'_>, folder: &WorkspacePath, depth: usize, found: &mut Vec<WorkspacePath>) {
    let is_playbook =
        |name: &str| name.ends_with(".md") && !name.starts_with('_') && !name.ends_with(HISTORY_SUFFIX);
    for name in loader.file_names(folder) {
        if is_playbook(&name) {
            found.push(folder.child(&name));
        }
    }
    for name in loader.folder_names(folder) {
        if depth > 0 && !name.starts_with(['.', '_']) {
            walk(loader, &folder.child(&name), depth - 1, found);
        }
    }
}
