//! The playbooks of a scope (B1): every Markdown file below its `playbooks/`, at any depth. Files that begin with `_` (the
//! index, the log) and histories are about playbooks, and are none.

use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};

use super::{Playbook, load};
use crate::doctype::Doctype;
use crate::layer::Layer;
use crate::round::{Read, Round};
use crate::workspace::{Scope, Spot};

/// The folder, in its scope.
pub const FOLDER: &str = "playbooks";
/// What stands at the end of the name of a playbook's history.
pub const HISTORY: &str = ".history.md";

/// How deep folders are looked into: links can lead in a circle.
const DEPTH: usize = 8;

/// A playbook, and where it is.
#[derive(Debug, Clone)]
pub struct Book {
    /// Its file.
    pub spot: Spot,
    /// Its manifest.
    pub playbook: Playbook,
    /// Its manifest as it was read.
    pub layer: Arc<Layer>,
}

impl Book {
    /// The fragment.
    pub fn text(&self) -> &str {
        self.layer.body().trim()
    }
}

/// All playbooks of a scope.
#[derive(Debug, Default)]
pub struct Shelf {
    /// Those that can be used, by the path of their file.
    pub books: Vec<Book>,
    /// What is wrong with the others, and warnings.
    pub report: Report,
}

/// Loads all playbooks of a scope.
pub fn open(round: &Round<'_>, scope: &Scope) -> Shelf {
    let mut shelf = Shelf::default();
    for spot in spots(round, scope) {
        match round.read(&spot, Doctype::Playbook) {
            Read::Layer(layer) => {
                let loaded = load::load(round, &layer);
                shelf.report.absorb(loaded.report);
                shelf.books.extend(loaded.value.map(|playbook| Book { spot, playbook, layer }));
            }
            Read::Unreadable(why) => {
                let body = Body::new(format!("`{}` cannot be read: {why}", round.shown(&spot)));
                shelf.report.refuse(codes::FILE_UNREADABLE, body);
            }
            // It is gone since the folder was listed, or was never in the scope.
            Read::Missing | Read::Outside => {}
        }
    }
    shelf
}

/// The files of a scope that are playbooks, sorted.
pub fn spots(round: &Round<'_>, scope: &Scope) -> Vec<Spot> {
    let mut found = Vec::new();
    if let Some(folder) = folder(scope) {
        walk(round, &folder, DEPTH, &mut found);
    }
    found.sort();
    found
}

/// Whether a scope has anything in the folder of its playbooks.
pub fn is_there(round: &Round<'_>, scope: &Scope) -> bool {
    folder(scope).is_some_and(|folder| !round.files(&folder).is_empty() || !round.names(&folder).is_empty())
}

fn folder(scope: &Scope) -> Option<Spot> {
    let folder = match scope.folder() {
        top if top.is_empty() => FOLDER.to_owned(),
        tenant => format!("{tenant}/{FOLDER}"),
    };
    Spot::new(&folder).ok()
}

fn walk(round: &Round<'_>, folder: &Spot, depth: usize, found: &mut Vec<Spot>) {
    let is_one = |name: &str| name.ends_with(".md") && !name.starts_with('_') && !name.ends_with(HISTORY);
    for name in round.files(folder) {
        if is_one(&name) {
            found.push(folder.child(&name));
        }
    }
    for name in round.names(folder) {
        if depth > 0 && !name.starts_with(['.', '_']) {
            walk(round, &folder.child(&name), depth - 1, found);
        }
    }
}
