//! The library: the playbooks of a scope, the operators that they are for, and what is locked in these.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::Report;
use quorate_manifest::config::Configuration;
use quorate_manifest::duration::IsoDuration;
use quorate_manifest::loader::{Loader, Refs};
use quorate_manifest::operator::Operator;
use quorate_manifest::playbook::catalog::{FOLDER, PlaybookFile};
use quorate_manifest::playbook::load::written_at;
use quorate_manifest::playbook::{Playbook, Status, Weaving};
use quorate_manifest::timestamp;
use quorate_manifest::workspace::{Scope, WorkspacePath};
use quorate_playbook::base::BasePrompt;
use quorate_playbook::bind::{Binding, MatchKind, RUNTIME, Subject};
use quorate_playbook::compose::Candidate;
use quorate_playbook::curate::AffectedOperator;
use quorate_playbook::index::priority;
use quorate_playbook::lock::{Locks, Trait};
use quorate_playbook::weave::{Origin, Overlay, Placement};
use quorate_protocol::assembly;

use super::catalogue::Catalogue;
use super::exceptions::Exceptions;
use super::traits;
use super::versions::VersionedFile;
use crate::service::environment::Environment;
use crate::service::error::ServiceError;
use crate::service::host::Host;
use crate::service::manifests::Manifests;
use crate::service::weave::{self, LoadedOperator};
use crate::service::workspace::{self, PathOverrides, Workspace};

/// The playbooks of a scope, and whom they are for.
pub struct Library {
    pub root: PathBuf,
    /// The scope in it.
    pub scope: Scope,
    pub workspace: Workspace,
    pub catalogue: Catalogue,
    pub operators: Vec<KnownOperator>,
    /// What is wrong with operators.
    pub report: Report,
    /// What persons have let texts touch.
    pub exceptions: Exceptions,
    environment: Environment,
}

pub struct KnownOperator {
    pub slug: String,
    pub operator: Operator,
    pub base: BasePrompt,
    /// What playbooks are held against.
    pub subject: Subject,
    /// What nothing may change in it.
    pub traits: Vec<Trait>,
    /// Which texts may touch it all the same.
    exceptions: Exceptions,
}

impl Library {
    /// Opens the library of the working directory.
    ///
    /// # Errors
    /// When the workspace cannot be opened, or its configuration is refused.
    pub fn open(
        environment: &Environment,
        places: &PathOverrides,
        root: Option<&Path>,
        host: &Host,
    ) -> Result<Self, ServiceError> {
        let (root, scope) = weave::root_and_scope(environment, root);
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

    /// A playbook's file with its versions, held against the ledger.
    ///
    /// # Errors
    /// As [`VersionedFile::read`].
    pub fn record(&self, book: &PlaybookFile) -> Result<VersionedFile, ServiceError> {
        self.catalogue.record(&self.environment, &self.root, book)
    }

    /// What is wrong with the playbooks' files, and which of them are not what their histories and the ledger say; of one,
    /// where a slug is given.
    pub fn integrity_report(&self, slug: Option<&str>) -> Report {
        let mut report = self.catalogue.report.clone();
        let books =
            self.catalogue.books.iter().filter(|book| slug.is_none_or(|slug| book.playbook.slug == slug));
        for book in books {
            let checked = self.record(book).and_then(|record| record.ensure_intact(&self.environment));
            if let Err(error) = checked {
                report.absorb(*error.report);
            }
        }
        report
    }

    /// The operators that a playbook is for.
    pub fn operators_for(&self, playbook: &Playbook) -> Vec<(&KnownOperator, MatchKind)> {
        let binding = Binding::new(playbook);
        self.operators.iter().filter_map(|known| Some((known, binding.matches(&known.subject)?))).collect()
    }

    /// What is for an operator, held against its locks. What says that it is active and is not what its history says is
    /// told to nobody, and does not count.
    pub fn candidates_for(&self, known: &KnownOperator) -> Vec<Candidate> {
        let counts = |book: &PlaybookFile| {
            book.playbook.status != Status::Active || self.record(book).is_ok_and(|one| one.is_intact())
        };
        let bound = self.catalogue.matching(&[known]).into_iter().filter(|(book, _)| counts(book));
        bound.map(|(book, _)| known.candidate(&book.playbook, book.text())).collect()
    }

    /// A proposal held against everybody whom it is for, with what stands for each.
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

impl KnownOperator {
    /// An operator with its locks.
    pub(in crate::service) fn new(
        operating: LoadedOperator,
        configuration: &Configuration,
        exceptions: &Exceptions,
    ) -> Self {
        let LoadedOperator { operator, base, persona_locks, .. } = operating;
        let traits = traits::locked_traits(&configuration.locks, &operator, &persona_locks);
        let mut subject = Subject::from_operator(&operator);
        if let Some(runtime) = &operator.runtime {
            subject = subject.replace(RUNTIME, runtime);
        }
        let exceptions = exceptions.clone();
        KnownOperator { slug: operator.id.clone(), operator, base, subject, traits, exceptions }
    }

    /// A playbook, held against its locks and those that its author names, but for what a person has let it touch.
    pub fn candidate(&self, playbook: &Playbook, text: &str) -> Candidate {
        let mut touches = self.locks().check(text);
        let beyond = traits::extra_traits(&playbook.lock_check, &self.traits);
        if !beyond.is_empty() {
            touches.extend(traits::compile(&beyond).check(text));
        }
        Candidate {
            overlay: overlay(playbook, text),
            status: playbook.status,
            supersedes: playbook.supersedes.clone().unwrap_or_default(),
            violations: self.exceptions.not_excepted(&playbook.slug, text, touches),
        }
    }

    /// What overlays of advisory runs are held against.
    pub fn locks(&self) -> Arc<Locks> {
        traits::compile(&self.traits)
    }

    /// As overlays of advisory runs name it.
    pub fn overlay_name(&self, scope: &Scope) -> String {
        assembly::operator_id(scope, &self.slug)
    }
}

/// A playbook as an overlay.
fn overlay(playbook: &Playbook, text: &str) -> Overlay {
    let written_ms = written_at(playbook).and_then(timestamp::parse);
    let ttl = playbook.ttl.as_ref().and_then(|ttl| ttl.parse::<IsoDuration>().ok());
    Overlay {
        id: playbook.slug.clone(),
        origin: Origin::Playbook,
        text: text.trim().to_owned(),
        placement: match (playbook.kind, &playbook.block) {
            (Weaving::BlockReplacement, Some(block)) => Placement::Block(block.clone()),
            _ => Placement::Appended,
        },
        priority: priority(playbook),
        written_ms,
        expires_ms: written_ms.zip(ttl).map(|(at, ttl)| timestamp::add_duration(at, ttl)),
    }
}

/// The operators of a scope; one that is refused is left out and named.
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
        match weave::load_operator(loader, scope, &format!("ws://operators/{slug}")) {
            Ok(operating) => known.push(KnownOperator::new(operating, &workspace.host, exceptions)),
            Err(error) => report.absorb(*error.report),
        }
    }
    (known, report)
}
