//! The playbooks of a scope, indexed by target, so that an agent is matched against few playbooks instead of all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quorate_diagnostics::{Body, Report, codes};
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::loader::Loader;
use quorate_manifest::playbook;
use quorate_manifest::playbook::{Catalog, PlaybookFile};
use quorate_manifest::workspace::Scope;
use quorate_playbook::bind::{BindingIndex, MatchKind};
use quorate_playbook::gate::TextIdentity;

use super::gating::{Gating, targeting_all};
use super::known_operator::KnownOperator;
use super::recorded_versions::RecordedVersions;
use super::traits;
use super::trials::AttemptCount;
use super::versions::VersionedFile;
use crate::service::environment::Environment;
use crate::service::error::ServiceError;

#[derive(Debug, Default)]
pub struct Catalogue {
    /// Usable playbooks, by the path of their file.
    pub books: Vec<PlaybookFile>,
    /// Errors of the others, and warnings.
    pub report: Report,
    bindings: BindingIndex,
    recorded: RecordedVersions,
    /// Active playbooks that target all operators.
    targeting_all: BTreeSet<String>,
}

impl Catalogue {
    /// Loads the playbooks of a scope, and what the ledger has recorded of them.
    pub fn open(loader: &Loader<'_>, scope: &Scope, ledger: &StoreAddress) -> Self {
        // Lock matchers are compiled while files are read, since every playbook needs them.
        if playbook::exists(loader, scope) {
            traits::precompile();
        }
        let mut catalogue = Catalogue::from(playbook::load_all(loader, scope));
        catalogue.recorded = RecordedVersions::load_blocking(ledger, scope);
        catalogue.targeting_all = targeting_all(&catalogue.books, loader, scope);
        for body in catalogue.missing_bodies() {
            catalogue.report.warn(codes::PLAYBOOK_GONE, body);
        }
        catalogue
    }

    /// The recorded version of a playbook that is not archived and whose file is missing; `None` otherwise.
    pub fn missing_version(&self, slug: &str) -> Option<u32> {
        self.missing().find(|(missing, _)| *missing == slug).map(|(_, n)| n)
    }

    fn missing(&self) -> impl Iterator<Item = (&str, u32)> {
        let is_missing = |slug: &str| self.book(slug).is_none() && !self.is_refused(slug);
        self.recorded.unarchived().filter(move |(slug, _)| is_missing(slug))
    }

    /// Whether the slug's file exists but is refused, which is reported already.
    fn is_refused(&self, slug: &str) -> bool {
        let name = format!("/{slug}.md");
        self.report.refusals.iter().any(|refusal| {
            let place = refusal.body.place.as_ref();
            refusal.body.message.contains(&name) || place.is_some_and(|place| place.file.ends_with(&name))
        })
    }

    /// The reports about recorded playbooks without a file.
    pub fn missing_bodies(&self) -> Vec<Body> {
        let body = |(slug, n): (&str, u32)| {
            Body::new(format!("the file of `{slug}` is missing; the ledger has version {n} of it")).help(format!(
                "restore its files from a copy or from version control (`quorate playbook repair` restores it from its \
                 history), or `quorate playbook archive {slug}` to end it"
            ))
        };
        self.missing().map(body).collect()
    }

    /// A playbook's file with its versions, and what the ledger has recorded of it.
    ///
    /// # Errors
    /// As [`VersionedFile::read`].
    pub fn record(
        &self,
        environment: &Environment,
        root: &Path,
        book: &PlaybookFile,
    ) -> Result<VersionedFile, ServiceError> {
        let recorded = self.recorded.playbook(&book.playbook.slug);
        Ok(VersionedFile { recorded, ..VersionedFile::read(environment, root, book)? })
    }

    /// Whether a gate passed a playbook.
    pub fn gating(&self, book: &PlaybookFile, record: &VersionedFile) -> Gating {
        Gating::of(book, record, self.targeting_all.contains(&book.playbook.slug))
    }

    /// How often gates were asked about a text.
    pub fn attempts(&self, text: &str) -> AttemptCount {
        self.recorded.trials.count(&TextIdentity::new(text))
    }

    /// A playbook by its slug.
    pub fn book(&self, slug: &str) -> Option<&PlaybookFile> {
        self.books.iter().find(|book| book.playbook.slug == slug)
    }

    /// The playbooks that target any of these operators, in file order, each with those operators.
    pub fn matching<'k>(
        &self,
        known: &[&'k KnownOperator],
    ) -> Vec<(&PlaybookFile, Vec<(&'k KnownOperator, MatchKind)>)> {
        let mut bound: BTreeMap<usize, Vec<(&'k KnownOperator, MatchKind)>> = BTreeMap::new();
        for operator in known {
            for (at, how) in self.bindings.matching(&operator.subject) {
                bound.entry(at).or_default().push((operator, how));
            }
        }
        bound.into_iter().map(|(at, known)| (&self.books[at], known)).collect()
    }
}

impl From<Catalog> for Catalogue {
    fn from(Catalog { playbooks: books, report }: Catalog) -> Self {
        let bindings = BindingIndex::new(books.iter().map(|book| &book.playbook));
        Catalogue { bindings, books, report, ..Catalogue::default() }
    }
}
