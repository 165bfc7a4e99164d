//! The library: a scope's playbooks, the operators they target with their prompts, and those operators' locked traits.
//! Playbooks are indexed by target, so that an agent is matched against few playbooks instead of all.
//!
//! An active playbook needs a gate (B13): a file that a person made active by hand is woven without one, unless only
//! governance may promote it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::config::Configuration;
use quorate_manifest::doctype::Doctype;
use quorate_manifest::document::Document;
use quorate_manifest::duration::IsoDuration;
use quorate_manifest::loader::{Loader, ReadResult, Reference, Refs};
use quorate_manifest::operator::{self, Operator};
use quorate_manifest::playbook::load::written_at;
use quorate_manifest::playbook::{self, Catalog, FOLDER, Gate, Playbook, PlaybookFile, Status, Weaving};
use quorate_manifest::workspace::{Scope, WorkspacePath};
use quorate_manifest::{frontmatter, persona, timestamp};
use quorate_playbook::bind::{Binding, MatchKind, RUNTIME, Subject};
use quorate_playbook::contradiction::{Contradiction, contradictions};
use quorate_playbook::curate::{AffectedOperator, Objection, objections_to};
use quorate_playbook::gate::{GOVERNANCE_PRIORITY, TextIdentity, Thresholds};
use quorate_playbook::lock::{Locks, Trait};
use quorate_playbook::log::{NEVER_GATED, priority};
use quorate_playbook::persona::BasePrompt;
use quorate_playbook::weave::{Candidate, Composition, NoEffect, Supersessions, compose};
use quorate_protocol::assembly;
use serde_json::Value;

use super::traits::{self, Exceptions};
use super::versions::{AttemptCount, RecordedVersions, VersionedFile};
use crate::service::environment::Environment;
use crate::service::error::{Error, ErrorKind};
use crate::service::manifests::{self, Manifests, file_not_found};
use crate::service::workspace::{self, PathOverrides, Workspace};

/// The playbooks and the operators of a scope.
pub struct Library {
    /// The workspace's root.
    pub root: PathBuf,
    /// The scope in it.
    pub scope: Scope,
    pub(crate) workspace: Workspace,
    /// The playbooks.
    pub catalogue: Catalogue,
    /// The operators, by slug.
    pub operators: Vec<KnownOperator>,
    /// The recorded exceptions.
    pub(crate) exceptions: Exceptions,
    pub(crate) environment: Environment,
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
    ) -> Result<Self, Error> {
        let (root, scope) = manifests::root_and_scope(environment, root);
        let workspace = workspace::load(environment, places, &root)?;
        let manifests = Manifests::open(environment, &root, Refs::Followed)?;
        let loader = manifests.loader(&*environment.registries);
        let exceptions = Exceptions::of(&workspace, &scope);
        // `check` reports the errors of the others.
        let loaded = operators_of(&loader, &scope).flatten();
        let known = |operator| KnownOperator::new(operator, &workspace.config, &exceptions);
        let operators = loaded.map(known).collect();
        let catalogue = Catalogue::open(&loader, &scope, &workspace.ledger);
        let environment = environment.clone();
        Ok(Library { root, scope, workspace, catalogue, operators, exceptions, environment })
    }

    /// The folder of the playbooks.
    pub(crate) fn folder(&self) -> PathBuf {
        self.root.join(self.scope.folder()).join(FOLDER)
    }

    /// The time of the workspace's clock.
    pub(crate) fn now_ms(&self) -> i64 {
        self.environment.clock.now_ms()
    }

    /// How the gates weigh evidence.
    pub(crate) fn thresholds(&self) -> Thresholds {
        let settings = &self.workspace.config.playbooks;
        Thresholds { min_sample: settings.min_sample, error_rate: settings.error_rate }
    }

    /// A playbook by its slug.
    pub(crate) fn book(&self, slug: &str) -> Option<&PlaybookFile> {
        self.catalogue.book(slug)
    }

    /// A playbook by its slug.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn find(&self, slug: &str) -> Result<&PlaybookFile, Error> {
        self.book(slug).ok_or_else(|| {
            let body = Body::new(format!("unknown playbook `{slug}`"));
            let help = "run `quorate playbook list` to see the available playbooks";
            Error::not_found(codes::PLAYBOOK_UNKNOWN, body.help(help))
        })
    }

    /// A playbook's file with its versions, compared with the ledger.
    ///
    /// # Errors
    /// As [`VersionedFile::read`].
    pub(crate) fn record(&self, book: &PlaybookFile) -> Result<VersionedFile, Error> {
        self.catalogue.record(&self.environment, &self.root, book)
    }

    /// Whether a gate passed a playbook. A playbook whose versions cannot be read counts as never gated.
    pub(crate) fn gating(&self, book: &PlaybookFile) -> Gating {
        match book.playbook.status {
            Status::Active => self.catalogue.gating(book, &self.record(book).unwrap_or_default()),
            Status::Shadow | Status::Archived => Gating::Passed,
        }
    }

    /// Whether a playbook targets all operators without naming them.
    pub(crate) fn targets_all(&self, playbook: &Playbook) -> bool {
        Binding::new(playbook).targets_all(self.operators.iter().map(|known| &known.subject))
    }

    /// Errors of the playbooks' files, divergences from their histories and the ledger, and active playbooks that governance
    /// did not promote; only for `slug`, if given.
    pub(crate) fn integrity_report(&self, slug: Option<&str>) -> Report {
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
    pub(crate) fn operators_for(&self, playbook: &Playbook) -> Vec<(&KnownOperator, MatchKind)> {
        let binding = Binding::new(playbook);
        self.operators.iter().filter_map(|known| Some((known, binding.matches(&known.subject)?))).collect()
    }

    /// The playbooks for an operator, checked against its locks. Leaves out active ones that diverge from their history or
    /// that governance did not promote: they go into no prompt.
    pub(crate) fn candidates_for(&self, known: &KnownOperator) -> Vec<Candidate> {
        let counts = |book: &PlaybookFile| {
            let is_woven = |record: VersionedFile| {
                record.is_intact() && !matches!(self.catalogue.gating(book, &record), Gating::Denied { .. })
            };
            book.playbook.status != Status::Active || self.record(book).is_ok_and(is_woven)
        };
        let bound = self.catalogue.matching(&[known]).into_iter().filter(|(book, _)| counts(book));
        bound.map(|(book, _)| known.candidate(&book.playbook, book.text())).collect()
    }

    /// The operators that a playbook targets, each with the playbooks for it.
    pub(crate) fn standing_for(&self, playbook: &Playbook) -> Vec<(String, Vec<Candidate>)> {
        let matched = self.operators_for(playbook).into_iter();
        matched.map(|(known, _)| (known.slug.clone(), self.candidates_for(known))).collect()
    }

    /// Checks a text of a playbook for all operators that it targets. `standing` are the playbooks for them.
    pub(crate) fn objections(
        &self,
        playbook: &Playbook,
        text: &str,
        standing: &[(String, Vec<Candidate>)],
    ) -> Vec<Objection> {
        let of =
            |slug: &str| standing.iter().find(|(known, _)| known == slug).map_or(&[][..], |(_, all)| all);
        let matched = self.operators_for(playbook).into_iter();
        let affected = matched.map(|(known, _)| AffectedOperator {
            operator: &known.slug,
            base: &known.base,
            existing: of(&known.slug),
            proposal: known.candidate(playbook, text),
        });
        objections_to(&affected.collect::<Vec<_>>(), self.now_ms())
    }

    /// The active playbooks of the same operators that state the opposite of a text, each once (B14).
    pub(super) fn contradictions(&self, playbook: &Playbook, text: &str) -> Vec<Contradiction> {
        let of_operator = |(known, _): (&KnownOperator, _)| {
            let mut candidates = self.candidates_for(known);
            candidates.retain(|one| one.status == Status::Active && one.slug != playbook.slug);
            candidates.push(Candidate { status: Status::Shadow, ..known.candidate(playbook, text) });
            contradictions(&candidates, self.now_ms())
        };
        let mut named = BTreeSet::new();
        let found = self.operators_for(playbook).into_iter().flat_map(of_operator);
        found.filter(|one| one.slug == playbook.slug && named.insert(one.active.clone())).collect()
    }

    /// Warns about contradictions.
    pub(super) fn warn_contradictions(&self, playbook: &Playbook, text: &str, report: &mut Report) {
        for found in self.contradictions(playbook, text) {
            report.warn(codes::PLAYBOOKS_CONTRADICT, Body::new(found.to_string()).help(found.help()));
        }
    }
}

/// The operators of a scope, by slug.
pub(crate) fn operators_of(
    loader: &Loader<'_>,
    scope: &Scope,
) -> impl Iterator<Item = Result<LoadedOperator, Error>> {
    let folder = WorkspacePath::new(&scope.path("operators")).ok();
    let slugs = folder.map(|folder| loader.folder_names(&folder)).unwrap_or_default();
    slugs.into_iter().map(|slug| load_operator(loader, scope, &format!("ws://operators/{slug}")))
}

/// An operator with its locks and exceptions.
pub struct KnownOperator {
    pub(crate) slug: String,
    /// Its prompt without playbooks.
    pub base: BasePrompt,
    /// The subject that selectors match.
    pub subject: Subject,
    /// Its locked traits.
    pub(crate) traits: Vec<Arc<Trait>>,
    /// The exceptions from them.
    exceptions: Exceptions,
}

impl KnownOperator {
    /// Loads the locks of an operator.
    pub(crate) fn new(
        operating: LoadedOperator,
        configuration: &Configuration,
        exceptions: &Exceptions,
    ) -> Self {
        let LoadedOperator { operator, base, persona_locks, .. } = operating;
        let traits = traits::locked_traits(&configuration.locks, &operator, &persona_locks);
        let subject = operator_subject(&operator);
        KnownOperator { slug: operator.id, base, subject, traits, exceptions: exceptions.clone() }
    }

    /// Checks a playbook against its locks and the author's, minus exceptions.
    pub(crate) fn candidate(&self, playbook: &Playbook, text: &str) -> Candidate {
        let mut touches = self.locks().check(text);
        let beyond = traits::extra_traits(&playbook.lock_check, &self.traits);
        if !beyond.is_empty() {
            touches.extend(traits::compile(&beyond).check(text));
        }
        let written_ms = written_at(playbook).and_then(timestamp::parse);
        let ttl = playbook.ttl.as_ref().and_then(|ttl| ttl.parse::<IsoDuration>().ok());
        Candidate {
            slug: playbook.slug.clone(),
            text: text.trim().to_owned(),
            block: playbook.block.clone().filter(|_| playbook.kind == Weaving::BlockReplacement),
            priority: priority(playbook),
            written_ms,
            expires_ms: written_ms.zip(ttl).map(|(at, ttl)| timestamp::add_duration(at, ttl)),
            status: playbook.status,
            supersedes: playbook.supersedes.clone().unwrap_or_default(),
            violations: self.exceptions.not_excepted(&playbook.slug, text, touches),
        }
    }

    /// Its prompt with these playbooks, without overlays of advisory runs.
    pub(super) fn compose(&self, candidates: &[Candidate], now_ms: i64) -> Composition {
        compose(&self.base, candidates, &[], &self.locks(), now_ms)
    }

    /// The traits that overlays of advisory runs are checked against.
    pub(crate) fn locks(&self) -> Arc<Locks> {
        traits::compile(&self.traits)
    }

    /// Its name in overlays of advisory runs.
    pub(crate) fn overlay_name(&self, scope: &Scope) -> String {
        assembly::operator_id(scope, &self.slug)
    }
}

/// What selectors match of an operator.
fn operator_subject(operator: &Operator) -> Subject {
    let subject = Subject::from_operator(operator);
    match &operator.runtime {
        Some(runtime) => subject.replace(RUNTIME, runtime),
        None => subject,
    }
}

/// The messages about claims of a playbook that have no effect.
pub(crate) fn ineffective_claims(catalogue: &Catalogue, playbook: &Playbook) -> Vec<Body> {
    let claims = supersession_claims(catalogue, playbook);
    let mut bodies = Vec::new();
    for other in playbook.supersedes.iter().flatten() {
        let why = match catalogue.book(other) {
            None => NoEffect::Unknown,
            // The superseded playbook is archived.
            Some(book) if book.playbook.status == Status::Archived => continue,
            Some(_) => match claims.check(&playbook.slug, other) {
                Ok(()) => continue,
                Err(why) => why,
            },
        };
        let help = match why {
            NoEffect::Unknown => "run `quorate playbook list` to see the available playbooks",
            NoEffect::Mutual => "remove the claim from one of them, or archive one",
            NoEffect::Governed => "promote it with `--gate governance`",
        };
        let message = format!("`{}` supersedes `{other}` without effect: {why}", playbook.slug);
        bodies.push(Body::new(message).help(help));
    }
    bodies
}

/// The active playbook that supersedes one that is about to become active.
pub(crate) fn replacement<'c>(catalogue: &'c Catalogue, playbook: &Playbook) -> Option<&'c str> {
    let claims = supersession_claims(catalogue, playbook);
    let names = |book: &&PlaybookFile| {
        let active = &book.playbook;
        active.status == Status::Active
            && active.supersedes.iter().flatten().any(|slug| *slug == playbook.slug)
            && claims.check(&active.slug, &playbook.slug).is_ok()
    };
    catalogue.books.iter().find(names).map(|book| &*book.playbook.slug)
}

/// The claims of all unarchived playbooks, and of one.
fn supersession_claims<'p>(catalogue: &'p Catalogue, playbook: &'p Playbook) -> Supersessions<'p> {
    let playbooks = catalogue.books.iter().map(|book| &book.playbook);
    let playbooks =
        playbooks.filter(|candidate| candidate.status != Status::Archived && candidate.slug != playbook.slug);
    let claims_of = |playbook: &'p Playbook| {
        (playbook.slug.as_str(), priority(playbook), playbook.supersedes.as_deref().unwrap_or_default())
    };
    Supersessions::new(playbooks.chain([playbook]).map(claims_of))
}

/// Whether a playbook may be woven, by the gates that it passed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Gating {
    /// It passed a gate, or is not active.
    Passed,
    /// It passed no gate, and needs none.
    NeverGated,
    /// Only governance may promote it, and did not: it is not woven.
    Denied {
        body: Body,
        /// Whether it passed no other gate.
        never_gated: bool,
    },
}

impl Gating {
    /// Whether it is active and passed no gate.
    pub(crate) fn is_never_gated(&self) -> bool {
        matches!(self, Gating::NeverGated | Gating::Denied { never_gated: true, .. })
    }

    /// The gating of a playbook by its versions. A gate counts if it passed the current text of the file.
    pub(crate) fn of(file: &PlaybookFile, record: &VersionedFile, targets_all: bool) -> Gating {
        let playbook = &file.playbook;
        if playbook.status != Status::Active {
            return Gating::Passed;
        }
        let body = |text: &str| {
            let parts = frontmatter::split(text).ok()?;
            Some(text[parts.body].trim().replace("\r\n", "\n"))
        };
        let own = Some(file.text().replace("\r\n", "\n"));
        let promoted =
            record.versions.iter().rfind(|version| version.event == "promoted" && body(&version.text) == own);
        let gate = promoted.and_then(|version| playbook.gate_of_promotion(&version.at));
        let priority = priority(playbook);
        let reach = match (priority >= GOVERNANCE_PRIORITY, targets_all) {
            (true, _) => format!("is active at priority {priority}"),
            (false, true) => "is active for all operators".to_owned(),
            (false, false) => return if gate.is_some() { Gating::Passed } else { Gating::NeverGated },
        };
        let slug = &playbook.slug;
        let message = match gate {
            Some(Gate::Governance) => return Gating::Passed,
            Some(gate) => {
                format!(
                    "`{slug}` {reach}, which only governance promotes, and it passed the gate `{}`",
                    gate.as_str()
                )
            }
            None => format!("`{slug}` {reach}, which only governance promotes, and was {NEVER_GATED}"),
        };
        let help = format!(
            "run `quorate playbook shadow {slug}` and `quorate playbook promote {slug} --gate governance`; or give it a \
             priority below {GOVERNANCE_PRIORITY} and name its operators"
        );
        Gating::Denied { body: Body::new(message).help(help), never_gated: gate.is_none() }
    }
}

/// The warning about a playbook that is woven without a gate.
pub(crate) fn never_gated_body(slug: &str) -> Body {
    let body = Body::new(format!("`{slug}` is active, and no gate passed its text: it was {NEVER_GATED}"));
    body.help(format!(
        "to have it tested, run `quorate playbook shadow {slug}` and `quorate playbook promote {slug} --gate GATE`"
    ))
}

/// The active playbooks that target all operators of a scope by patterns. Operators are read only if there is a pattern.
fn targeting_all(books: &[PlaybookFile], loader: &Loader<'_>, scope: &Scope) -> BTreeSet<String> {
    let mut subjects: Option<Vec<Subject>> = None;
    let load = || operators_of(loader, scope).flatten().map(|one| operator_subject(&one.operator)).collect();
    let active = books.iter().map(|book| &book.playbook).filter(|book| book.status == Status::Active);
    let targets_all = active.filter(|playbook| {
        let binding = Binding::new(playbook);
        binding.has_patterns() && binding.targets_all(subjects.get_or_insert_with(&load).iter())
    });
    targets_all.map(|playbook| playbook.slug.clone()).collect()
}

/// The playbooks of a scope, with what the ledger has recorded of them.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// Usable playbooks, by the path of their file.
    pub books: Vec<PlaybookFile>,
    /// Errors of the others, and warnings.
    pub(crate) report: Report,
    /// Those of the books, in their order.
    bindings: Vec<Binding>,
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
        let Catalog { playbooks: books, report } = playbook::load_all(loader, scope);
        let mut catalogue = Catalogue {
            bindings: books.iter().map(|book| Binding::new(&book.playbook)).collect(),
            recorded: RecordedVersions::of(&RecordedVersions::records_blocking(ledger, scope)),
            targeting_all: targeting_all(&books, loader, scope),
            books,
            report,
        };
        for body in catalogue.missing_bodies() {
            catalogue.report.warn(codes::PLAYBOOK_GONE, body);
        }
        catalogue
    }

    /// The recorded version of a playbook that is not archived and whose file is missing; `None` otherwise.
    pub(crate) fn missing_version(&self, slug: &str) -> Option<u32> {
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
    pub(crate) fn missing_bodies(&self) -> Vec<Body> {
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
    pub(crate) fn record(
        &self,
        environment: &Environment,
        root: &Path,
        book: &PlaybookFile,
    ) -> Result<VersionedFile, Error> {
        let recorded = self.recorded.playbook(&book.playbook.slug);
        Ok(VersionedFile { recorded, ..VersionedFile::read(environment, root, book)? })
    }

    /// Whether a gate passed a playbook.
    pub(crate) fn gating(&self, book: &PlaybookFile, record: &VersionedFile) -> Gating {
        Gating::of(book, record, self.targeting_all.contains(&book.playbook.slug))
    }

    /// How often gates were asked about a text.
    pub(crate) fn attempts(&self, text: &str) -> AttemptCount {
        self.recorded.trials.count(&TextIdentity::new(text))
    }

    /// A playbook by its slug.
    pub(crate) fn book(&self, slug: &str) -> Option<&PlaybookFile> {
        self.books.iter().find(|book| book.playbook.slug == slug)
    }

    /// The playbooks that target any of these operators, in file order, each with those operators.
    pub(crate) fn matching<'k>(
        &self,
        known: &[&'k KnownOperator],
    ) -> Vec<(&PlaybookFile, Vec<(&'k KnownOperator, MatchKind)>)> {
        let of = |binding: &Binding| -> Vec<(&'k KnownOperator, MatchKind)> {
            known.iter().filter_map(|known| Some((*known, binding.matches(&known.subject)?))).collect()
        };
        let bound = self.books.iter().zip(&self.bindings).map(|(book, binding)| (book, of(binding)));
        bound.filter(|(_, known)| !known.is_empty()).collect()
    }
}

/// An operator with its prompt.
pub(crate) struct LoadedOperator {
    pub(crate) operator: Operator,
    /// Its persona's prompt, or its own body if it has no persona.
    pub(crate) base: BasePrompt,
    /// The value of `metadata.quorate.locks` in each document of its persona.
    pub(crate) persona_locks: Vec<Value>,
    pub(crate) report: Report,
}

/// Loads an operator by its ref.
pub(crate) fn load_operator(
    loader: &Loader<'_>,
    scope: &Scope,
    reference: &str,
) -> Result<LoadedOperator, Error> {
    let document = load_document(loader, scope, reference, Doctype::Operator)?;
    let loaded = operator::load_operator(loader, &document);
    let Some(operator) = loaded.value else {
        return Err(Error::from_report(ErrorKind::Configuration, loaded.report));
    };
    let folder = reference.rsplit('/').next().unwrap_or(reference);
    if operator.id != folder {
        let body =
            Body::new(format!("the operator's `id` is `{}`, but its folder is `{folder}`", operator.id));
        let body = body
            .at(document.value_place("id"))
            .help("give both the same name: locks and playbooks refer to it");
        let mut report = loaded.report;
        report.add_source(document.shown.clone(), document.text.clone());
        report.refuse(codes::OPERATOR_UNRESOLVABLE, body);
        return Err(Error::from_report(ErrorKind::Configuration, report));
    }
    let mut report = loaded.report;
    let (base, persona_locks) = match &operator.persona {
        None => (BasePrompt::from_body(document.body().trim()), Vec::new()),
        Some(persona) => {
            let (base, more, locks) = persona_prompt(loader, scope, &full_ref(persona, "personas"))?;
            report.absorb(more);
            (base, locks)
        }
    };
    Ok(LoadedOperator { operator, base, persona_locks, report })
}

/// Loads the manifest that a ref names.
fn load_document(
    loader: &Loader<'_>,
    scope: &Scope,
    reference: &str,
    doctype: Doctype,
) -> Result<Arc<Document>, Error> {
    let Some(location) = Reference::parse(reference).and_then(|read| read.path(scope).ok()) else {
        let kind = doctype.as_str();
        let body = Body::new(format!("`{reference}` is not a ref to a manifest of the kind `{kind}`"));
        let help = format!("write its slug, or ws://{kind}s/<slug>");
        return Err(Error::new(ErrorKind::InvalidRequest, codes::USAGE, body.help(help)));
    };
    match loader.read(&location, doctype) {
        ReadResult::Document(document) => Ok(document),
        ReadResult::Missing | ReadResult::Outside => Err(file_not_found(&loader.display_name(&location))),
        ReadResult::Unreadable(why) => {
            let body = Body::new(format!("cannot read `{}`: {why}", loader.display_name(&location)));
            Err(Error::configuration(codes::FILE_UNREADABLE, body))
        }
    }
}

/// Expands a short ref to `ws://<collection>/<slug>`.
pub(crate) fn full_ref(written: &str, collection: &str) -> String {
    if written.contains("://") {
        return written.to_owned();
    }
    // A shell's completion gives the folder with a slash.
    let bare = written.trim_end_matches('/');
    let bare = bare.strip_prefix(collection).and_then(|rest| rest.strip_prefix('/')).unwrap_or(bare);
    format!("ws://{collection}/{bare}")
}

/// A persona's prompt, warnings, and the locks of each of its documents.
pub(crate) type PersonaPrompt = (BasePrompt, Report, Vec<Value>);

/// Loads a persona's prompt.
pub(crate) fn persona_prompt(
    loader: &Loader<'_>,
    scope: &Scope,
    reference: &str,
) -> Result<PersonaPrompt, Error> {
    let document = load_document(loader, scope, reference, Doctype::Persona)?;
    let loaded = persona::load_persona(loader, &document);
    match loaded.value {
        Some(persona) => {
            // Locks are not merged: a view could drop its parent's lock, but views may only add locks.
            let locks_of = |document: &Arc<Document>| {
                let locks = document.root.key("metadata")?.key("quorate")?.key("locks")?;
                Some(locks.to_json())
            };
            let locks = persona.chain.documents.iter().filter_map(locks_of).collect();
            Ok((BasePrompt::from_persona(&persona), loaded.report, locks))
        }
        None => Err(Error::from_report(ErrorKind::Configuration, loaded.report)),
    }
}
