//! The playbooks of a scope (B1): every Markdown file below its `playbooks/`, at any depth. Files that begin with `_` (the
//! index, the log) and histories are about playbooks, and are none.

use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};

use super::{Playbook, load};
use crate::doctype::Doctype;
use crate::document::Document;
use crate::loader::{Loader, ReadResult};
use crate::workspace::{Scope, WorkspacePath};

/// The folder, in its scope.
pub const FOLDER: &str = "playbooks";
/// What stands at the end of the name of a playbook's history.
pub const HISTORY_SUFFIX: &str = ".history.md";

/// How deep folders are looked into: links can lead in a circle.
const MAX_DEPTH: usize = 8;

/// A playbook, and where it is.
#[derive(Debug, Clone)]
pub struct PlaybookFile {
    pub path: WorkspacePath,
    pub playbook: Playbook,
    /// Its manifest as it was read.
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
    /// Those that can be used, by the path of their file.
    pub playbooks: Vec<PlaybookFile>,
    /// What is wrong with the others, and warnings.
    pub report: Report,
}

/// Loads all playbooks of a scope.
pub fn load_all(loader: &Loader<'_>, scope: &Scope) -> Catalog {
    let mut shelf = Catalog::default();
    for location in paths(loader, scope) {
        match loader.read(&location, Doctype::Playbook) {
            ReadResult::Document(document) => {
                let loaded = load::load(loader, &document);
                shelf.report.absorb(loaded.report);
                shelf.playbooks.extend(loaded.value.map(|playbook| PlaybookFile {
                    path: location,
                    playbook,
                    document,
                }));
            }
            ReadResult::Unreadable(why) => {
                let body = Body::new(format!("`{}` cannot be read: {why}", loader.display_name(&location)));
                shelf.report.refuse(codes::FILE_UNREADABLE, body);
            }
            // It is gone since the folder was listed, or was never in the scope.
            ReadResult::Missing | ReadResult::Outside => {}
        }
    }
    shelf
}

/// The files of a scope that are playbooks, sorted.
pub fn paths(loader: &Loader<'_>, scope: &Scope) -> Vec<WorkspacePath> {
    let mut found = Vec::new();
    if let Some(folder) = folder(scope) {
        walk(loader, &folder, MAX_DEPTH, &mut found);
    }
    found.sort();
    found
}

/// Whether a scope has anything in the folder of its playbooks.
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
    let is_one =
        |name: &str| name.ends_with(".md") && !name.starts_with('_') && !name.ends_with(HISTORY_SUFFIX);
    for name in loader.file_names(folder) {
        if is_one(&name) {
            found.push(folder.child(&name));
        }
    }
    for name in loader.folder_names(folder) {
        if depth > 0 && !name.starts_with(['.', '_']) {
            walk(loader, &folder.child(&name), depth - 1, found);
        }
    }
}
