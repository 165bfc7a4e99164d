//! The library: a scope's playbooks, the operators they target, and those operators' locked traits.

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Report, codes};
use quorate_manifest::loader::{Loader, Refs};
use quorate_manifest::playbook::{FOLDER, PlaybookFile};
use quorate_manifest::playbook::{Playbook, Status};
use quorate_manifest::workspace::{Scope, WorkspacePath};
use quorate_playbook::bind::{Binding, MatchKind};
use quorate_playbook::compose::Candidate;
use quorate_playbook::curate::AffectedOperator;

use super::catalogue::Catalogue;
use super::exceptions::Exceptions;
use super::gating::Gating;
use super::versions::VersionedFile;
use crate::service::environment::Environment;
use crate::service::error::ServiceError;
use crate::service::host::Host;
use crate::service::manifests;
use crate::service::manifests::Manifests;
use crate::service::operators;
use crate::service::playbook::known_operator::KnownOperator;
use crate::service::workspace::{self, PathOverrides, Workspace};

pub struct Library {
    pub root: PathBuf,
    /// The scope in it.
    pub scope: Scope,
    pub workspace: Workspace,
    pub catalogue: Catalogue,
    pub operators: Vec<KnownOperator>,
    /// Errors of operators.
    pub report: Report,
    /// The recorded exceptions.
    pub exceptions: Exceptions,
    environment: Environment,
}

impl Library {
    /// Opens the library of the working directory.
    ///
    /// # Errors
    /// If the workspace cannot be opened, or its configuration is refused.
    pub fn open(
        environment: &Environment,
        places: &PathOverrides,
        root: Option<&Path>,
        host: &Host,
    ) -> Result<Self, ServiceError> {
        let (root, scope) = manifests::root_and_scope(environment, root);
        let workspace = workspace::load(environment, places, &root)?;
        let manifests = Manifests::open(environment, &root, Refs::Followed)?;
        let loader = manifests.loader(host);
        let exceptions = Exceptions::of(&workspace, &scope);
        let (operators, report) = operators(&loader, &scope, &workspace, &exceptions);
        Ok(Library {
            catalogue: Catalogue::open(&loader, &scope, &workspace.ledger),
            root,
            scope,
            workspace,
            operators,
            report,
            exceptions,
            environment: environment.clone(),
        })
    }

    /// The folder of the playbooks.
    pub fn folder(&self) -> PathBuf {
        self.root.join(self.scope.folder()).join(FOLDER)
    }

    /// A playbook by its slug.
    pub fn book(&self, slug: &str) -> Option<&PlaybookFile> {
        self.catalogue.book(slug)
    }

    /// A playbook's file with its versions, compared with the ledger.
    ///
    /// # Errors
    /// As [`VersionedFile::read`].
    pub fn record(&self, book: &PlaybookFile) -> Result<VersionedFile, ServiceError> {
        self.catalogue.record(&self.environment, &self.root, book)
    }

    /// Whether a gate passed a playbook. A playbook whose versions cannot be read counts as never gated.
    pub fn gating(&self, book: &PlaybookFile) -> Gating {
        match book.playbook.status {
            Status::Active => self.catalogue.gating(book, &self.record(book).unwrap_or_default()),
            Status::Shadow | Status::Archived => Gating::Passed,
        }
    }

    /// Whether a playbook targets all operators without naming them.
    pub fn targets_all(&self, playbook: &Playbook) -> bool {
        Binding::new(playbook).targets_all(self.operators.iter().map(|known| &known.subject))
    }

    /// Errors of the playbooks' files, divergences from their histories and the ledger, and active playbooks that governance
    /// did not promote; only for `slug`, if given.
    pub fn integrity_report(&self, slug: Option<&str>) -> Report {
        let mut report = self.catalogue.report.clone();
        let books =
            self.catalogue.books.iter().filter(|book| slug.is_none_or(|slug| book.playbook.slug == slug));
        for book in books {
            let checked = self.record(book).and_then(|record| record.ensure_intact(&self.environment));
            if let Err(error) = checked {
                report.absorb(*error.report);
            }
            if let Gating::Denied { body, .. } = self.gating(book) {
                report.refuse(codes::PROMOTION_DENIED, body);
            }
        }
        report
    }

    /// The operators that a playbook targets.
    pub fn operators_for(&self, playbook: &Playbook) -> Vec<(&KnownOperator, MatchKind)> {
        let binding = Binding::new(playbook);
        self.operators.iter().filter_map(|known| Some((known, binding.matches(&known.subject)?))).collect()
    }

    /// The playbooks for an operator, checked against its locks. Leaves out active ones that diverge from their history or
    /// that governance did not promote: they go into no prompt.
    pub fn candidates_for(&self, known: &KnownOperator) -> Vec<Candidate> {
        let counts = |book: &PlaybookFile| {
            let is_woven = |record: VersionedFile| {
                record.is_intact() && !matches!(self.catalogue.gating(book, &record), Gating::Denied { .. })
            };
            book.playbook.status != Status::Active || self.record(book).is_ok_and(is_woven)
        };
        let bound = self.catalogue.matching(&[known]).into_iter().filter(|(book, _)| counts(book));
        bound.map(|(book, _)| known.candidate(&book.playbook, book.text())).collect()
    }

    /// Checks a proposal against all operators it targets; returns their candidates.
    pub fn affected<'s>(
        &'s self,
        playbook: &Playbook,
        text: &str,
        standing: &'s [(String, Vec<Candidate>)],
    ) -> Vec<AffectedOperator<'s>> {
        let of =
            |slug: &str| standing.iter().find(|(known, _)| known == slug).map_or(&[][..], |(_, all)| all);
        let matched = self.operators_for(playbook).into_iter();
        let affected = matched.map(|(known, _)| AffectedOperator {
            operator: &known.slug,
            base: &known.base,
            existing: of(&known.slug),
            proposal: known.candidate(playbook, text),
        });
        affected.collect()
    }
}

/// The operators of a scope; refused ones are left out and reported.
fn operators(
    loader: &Loader<'_>,
    scope: &Scope,
    workspace: &Workspace,
    exceptions: &Exceptions,
) -> (Vec<KnownOperator>, Report) {
    let mut report = Report::new();
    let folder = match scope.folder() {
        top if top.is_empty() => "operators".to_owned(),
        tenant => format!("{tenant}/operators"),
    };
    let Ok(location) = WorkspacePath::new(&folder) else { return (Vec::new(), report) };
    let mut slugs = loader.folder_names(&location);
    slugs.sort();
    let mut known = Vec::new();
    for slug in slugs {
        match operators::load_operator(loader, scope, &format!("ws://operators/{slug}")) {
            Ok(operating) => known.push(KnownOperator::new(operating, &workspace.host, exceptions)),
            Err(error) => report.absorb(*error.report),
        }
    }
    (known, report)
}
