//! The playbooks of a scope with a catalogue of whom they are for, so that whoever is told something is held against the
//! few that may be for it, not against all.

use std::collections::BTreeMap;

use quorate_diagnostics::Report;
use quorate_manifest::playbook::shelf::{self, Book, Shelf};
use quorate_manifest::round::Round;
use quorate_manifest::workspace::Scope;
use quorate_playbook::bind::Bindings;

use super::library::Known;
use super::traits;

/// The playbooks of a scope, and whom they are for.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// Those that can be used, by the path of their file.
    pub books: Vec<Book>,
    /// What is wrong with the others, and warnings.
    pub report: Report,
    bindings: Bindings,
}

impl Catalogue {
    /// Loads the playbooks of a scope.
    pub fn open(round: &Round<'_>, scope: &Scope) -> Self {
        // Reading takes longer than making locks ready, which are needed as soon as there is a playbook.
        if shelf::is_there(round, scope) {
            traits::make_ready();
        }
        shelf::open(round, scope).into()
    }

    /// The playbooks that are for any of these, in the order of their files, each with those whom it is for.
    pub fn bound<'k>(&self, known: &[&'k Known]) -> Vec<(&Book, Vec<&'k Known>)> {
        let mut bound: BTreeMap<usize, Vec<&'k Known>> = BTreeMap::new();
        for one in known {
            for (at, _) in self.bindings.bound(&one.subject) {
                bound.entry(at).or_default().push(one);
            }
        }
        bound.into_iter().map(|(at, known)| (&self.books[at], known)).collect()
    }
}

impl From<Shelf> for Catalogue {
    fn from(Shelf { books, report }: Shelf) -> Self {
        Catalogue { bindings: Bindings::of(books.iter().map(|book| &book.playbook)), books, report }
    }
}
