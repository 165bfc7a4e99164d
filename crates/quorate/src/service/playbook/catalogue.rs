//! The playbooks of a scope with a catalogue of whom they are for, so that whoever is told something is held against the
//! few that may be for it, not against all.

use std::collections::BTreeMap;
use std::path::Path;

use quorate_diagnostics::Report;
use quorate_ledger::store::address::Address;
use quorate_manifest::loader::Loader;
use quorate_manifest::playbook::Status;
use quorate_manifest::playbook::catalog::{self, Catalog, PlaybookFile};
use quorate_manifest::workspace::Scope;
use quorate_playbook::bind::{BindingIndex, MatchKind};

use super::library::KnownOperator;
use super::recorded_versions::RecordedVersions;
use super::traits;
use super::versions::VersionedFile;
use crate::service::environment::Environment;
use crate::service::error::ServiceError;

/// The playbooks of a scope, and whom they are for.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// Those that can be used, by the path of their file.
    pub books: Vec<PlaybookFile>,
    /// What is wrong with the others, and warnings.
    pub report: Report,
    bindings: BindingIndex,
    recalled: RecordedVersions,
}

impl Catalogue {
    /// Loads the playbooks of a scope. What is active among them is held against what the ledger remembers.
    pub fn open(round: &Loader<'_>, scope: &Scope, ledger: &Address) -> Self {
        // Reading takes longer than making locks ready, which are needed as soon as there is a playbook.
        if catalog::exists(round, scope) {
            traits::precompile();
        }
        let catalogue = Catalogue::from(catalog::load_all(round, scope));
        match catalogue.books.iter().any(|book| book.playbook.status == Status::Active) {
            true => Catalogue { recalled: RecordedVersions::load_blocking(ledger, scope), ..catalogue },
            false => catalogue,
        }
    }

    /// A playbook's file with its versions, and how far the ledger knows it to have come.
    ///
    /// # Errors
    /// As [`VersionedFile::read`].
    pub fn record(
        &self,
        environment: &Environment,
        root: &Path,
        book: &PlaybookFile,
    ) -> Result<VersionedFile, ServiceError> {
        let mut record = VersionedFile::read(environment, root, book)?;
        if book.playbook.status == Status::Active {
            record.recorded_version = self.recalled.version(&record.slug);
        }
        Ok(record)
    }

    /// A playbook by its slug.
    pub fn book(&self, slug: &str) -> Option<&PlaybookFile> {
        self.books.iter().find(|book| book.playbook.slug == slug)
    }

    /// The playbooks that are for any of these, in the order of their files, each with those whom it is for.
    pub fn matching<'k>(
        &self,
        known: &[&'k KnownOperator],
    ) -> Vec<(&PlaybookFile, Vec<(&'k KnownOperator, MatchKind)>)> {
        let mut bound: BTreeMap<usize, Vec<(&'k KnownOperator, MatchKind)>> = BTreeMap::new();
        for one in known {
            for (at, how) in self.bindings.matching(&one.subject) {
                bound.entry(at).or_default().push((one, how));
            }
        }
        bound.into_iter().map(|(at, known)| (&self.books[at], known)).collect()
    }
}

impl From<Catalog> for Catalogue {
    fn from(Catalog { playbooks: books, report }: Catalog) -> Self {
        let bindings = BindingIndex::new(books.iter().map(|book| &book.playbook));
        Catalogue { bindings, books, report, recalled: RecordedVersions::default() }
    }
}
