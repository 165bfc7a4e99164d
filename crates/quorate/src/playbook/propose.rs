//! Propose: turns a delta into a shadow playbook, or refuses and logs it (B5).
//!
//! A proposal is checked against every operator it targets before any write. Deltas are processed one by one, so that a
//! refused one does not block the others.
//!
//! Fragments of an advisory run can become proposals, each with its mentor's id below `metadata`. Advice lasts two weeks as
//! an overlay, and becomes permanent as a playbook that passes a gate.

use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::invisible::first_invisible;
use quorate_diagnostics::{Body, RefusalCode, Report, codes};
use quorate_kernel::ports::ledger::{Kind, Ledger as _, PlaybookEvent};
use quorate_kernel::record::Fragment;
use quorate_kernel::redact::Redactor;
use quorate_ledger::runs::PrefixMatch;
use quorate_manifest::doctype::Doctype;
use quorate_manifest::document::Document;
use quorate_manifest::loader::{OpenResult, Refs};
use quorate_manifest::playbook::edit;
use quorate_manifest::playbook::{self, EntryKind, EvidenceKind, Playbook, PlaybookFile, Status, load};
use quorate_manifest::timestamp;
use quorate_manifest::workspace::WorkspacePath;
use quorate_playbook::bind::MatchKind;
use quorate_playbook::curate::Cause;
use quorate_playbook::delta::{Add, Delta, DeltaError, Revise};
use quorate_protocol::Json;
use quorate_protocol::locks::fold;
use serde::Serialize;
use serde_json::{Map, json};

use super::change::{ChangeEvent, PlaybookChange, first_match_event};
use super::consultant::Consultant;
use super::inspect::excerpt_place;
use super::library::Library;
use super::refuse;
use super::traits::ExceptionRequest;
use super::versions::{NewVersion, VersionedFile};
use super::writer::LibraryWriter;
use crate::service::artifact::Artifact;
use crate::service::disk::display_path;
use crate::service::error::{Error, ErrorKind};
use crate::service::manifests::{Manifests, council_mentions};
use crate::service::run_opened;
use crate::view::{Doc, Text};

/// A proposal.
#[derive(Debug, Clone)]
pub(super) enum Proposal {
    /// A manifest as written, and its file name.
    Manifest {
        text: String,
        shown: String,
    },
    Delta(Box<Delta>),
    /// An invalid delta, with its slug if known.
    Unusable {
        slug: String,
        /// Why, with a help.
        misread: DeltaError,
    },
}

/// The results of proposals
#[derive(Debug, Serialize)]
pub struct Proposed {
    /// In the order of the source
    pub proposals: Vec<ProposalOutcome>,
}

/// The result of a proposal
#[derive(Debug, Serialize)]
pub struct ProposalOutcome {
    /// Empty if unknown
    pub slug: String,
    /// Whether the playbook is in shadow now
    pub accepted: bool,
    /// Its file, if it was accepted
    pub file: Option<String>,
    /// Its new version, if it was accepted
    pub version: Option<u32>,
    /// The operators that it targets, if it was accepted
    pub operators: Option<Vec<String>>,
    /// Why it was refused, and warnings
    #[serde(rename = "diagnostics")]
    pub report: Report,
}

impl Proposed {
    /// Whether no proposal was refused.
    pub fn is_accepted(&self) -> bool {
        self.proposals.iter().all(|proposal| proposal.accepted)
    }

    /// A line for each proposal.
    pub fn doc(&self) -> Doc {
        let line = |proposal: &ProposalOutcome| match proposal {
            ProposalOutcome { slug, version: Some(version), file: Some(file), operators, .. } => {
                let operators = operators.as_deref().unwrap_or_default().join(", ");
                Text::strong(slug)
                    .and(format!(" is in shadow: version {version}, for {operators}, in {file}"))
            }
            ProposalOutcome { slug, .. } if slug.is_empty() => "a proposal was refused".into(),
            ProposalOutcome { slug, .. } => Text::strong(slug).and(" was refused"),
        };
        Doc::of_lines(self.proposals.iter().map(line), "nothing is proposed")
    }
}

/// The codes and messages of refusals.
pub(super) fn refusals_in_words(report: &Report) -> String {
    let refusals = report.refusals.iter();
    let words = refusals.map(|refusal| format!("{}: {}", refusal.code.as_str(), refusal.body.message));
    words.collect::<Vec<_>>().join("; ")
}

/// Reads proposals: a manifest with frontmatter, a delta, a list of deltas, or an object with `deltas`.
///
/// # Errors
/// If it is not one of these.
pub(super) fn parse(text: &str, shown: &str, redactor: &Redactor) -> Result<Vec<Proposal>, Error> {
    let clean = |text: &str| redactor.redact(text).0;
    let bare = text.trim_start_matches('\u{feff}');
    if bare.starts_with("---") {
        return Ok(vec![Proposal::Manifest { text: clean(text), shown: clean(shown) }]);
    }
    let invalid = |why: String| {
        let body = Body::new(format!("{shown} is not a delta: {why}"));
        let help =
            "write a playbook with frontmatter, or JSON like {\"deltas\": [{\"op\": \"add\", \"slug\": …}]}";
        Error::configuration(codes::DELTA_INVALID, body.help(help))
    };
    let value: Json = serde_json::from_str(bare).map_err(|error| invalid(error.to_string()))?;
    let deltas = match value {
        Json::Array(all) => all,
        Json::Object(mut object) => match object.remove("deltas") {
            Some(Json::Array(all)) => match object.keys().next() {
                None => all,
                Some(key) => return Err(invalid(format!("unknown key `{key}` beside `deltas`"))),
            },
            Some(_) => return Err(invalid("`deltas` is not a list".to_owned())),
            None => vec![Json::Object(object)],
        },
        _ => return Err(invalid("it is neither an object nor a list".to_owned())),
    };
    // An unreadable delta does not block the others.
    Ok(deltas.into_iter().map(|delta| proposal_from_json(delta, redactor)).collect())
}

/// A proposal with secrets redacted: it goes into prompts, files and the ledger.
pub(super) fn proposal_from_json(value: Json, redactor: &Redactor) -> Proposal {
    let value = redactor.redact_json(value).0;
    let slug = value.get("slug").and_then(Json::as_str).unwrap_or_default().to_owned();
    match Delta::parse(value) {
        Ok(delta) => Proposal::Delta(Box::new(delta)),
        Err(misread) => Proposal::Unusable {
            slug,
            misread: DeltaError { reason: format!("it is not a delta: {}", misread.reason), ..misread },
        },
    }
}

/// Proposes what a text says.
///
/// # Errors
/// As [`parse`] and [`propose`].
#[crate::boxed]
pub(super) async fn propose_text(
    writer: &mut LibraryWriter,
    read: &Artifact,
    operator: Option<String>,
    exception: Option<ExceptionRequest>,
) -> Result<Proposed, Error> {
    let name = if read.display_name == "-" { "standard input" } else { &read.display_name };
    let proposals = parse(&read.text, name, &writer.session.workspace.redaction.redactor)?;
    let proposer = Proposer { by: writer.user().to_owned(), operator };
    propose(writer, &proposals, &proposer, exception).await
}

/// Proposes the advice of an advisory run.
///
/// # Errors
/// If the run is unknown or has no advice; and as [`propose`].
#[crate::boxed]
pub(super) async fn propose_advice(writer: &mut LibraryWriter, run: &str) -> Result<Proposed, Error> {
    let proposals = proposals_of_run(writer, run).await?;
    let proposer = Proposer { by: writer.user().to_owned(), operator: None };
    propose(writer, &proposals, &proposer, None).await
}

/// Processes proposals. A person may allow the traits that `excepting` names.
///
/// # Errors
/// If a file cannot be written or read, or the judge cannot be asked; a refused proposal is an outcome.
#[crate::boxed]
pub(super) async fn propose(
    writer: &mut LibraryWriter,
    proposals: &[Proposal],
    proposer: &Proposer,
    mut excepting: Option<ExceptionRequest>,
) -> Result<Proposed, Error> {
    let judge = Consultant::judge_of(writer)?;
    let redactor = writer.session.workspace.redaction.redactor.clone();
    if let Some(excepting) = &mut excepting {
        excepting.reason = redactor.redact(&excepting.reason).0;
    }
    let mut outcomes = Vec::new();
    for proposal in proposals {
        outcomes.push(propose_one(writer, proposal, proposer, judge.as_ref(), excepting.as_mut()).await?);
    }
    Ok(Proposed { proposals: outcomes })
}

async fn propose_one(
    writer: &mut LibraryWriter,
    proposal: &Proposal,
    proposer: &Proposer,
    judge: Option<&Consultant>,
    excepting: Option<&mut ExceptionRequest>,
) -> Result<ProposalOutcome, Error> {
    let at_ms = writer.now_ms();
    let mut draft = DraftBuilder {
        writer,
        proposer,
        at: timestamp::format(at_ms),
        slug: String::new(),
        report: Report::new(),
        document: None,
    };
    let drafted = match proposal {
        Proposal::Manifest { text, shown } => draft.build_manifest(text, shown),
        Proposal::Delta(delta) => match &**delta {
            Delta::Add(add) => draft.build_add(add),
            Delta::Revise(revise) => draft.build_revision(revise),
        },
        Proposal::Unusable { slug, misread } => {
            draft.slug.clone_from(slug);
            let help = misread.help.as_deref().unwrap_or("see docs/playbooks.md for the format of a delta");
            draft.refuse(codes::DELTA_INVALID, Body::new(&misread.reason).help(help))
        }
    }?;
    let DraftBuilder { slug, report, .. } = draft;
    let mut outcome =
        ProposalOutcome { slug, accepted: false, file: None, version: None, operators: None, report };
    let mut change = PlaybookChange::new_at(at_ms);
    if let Some(drafted) = drafted {
        let report = &mut outcome.report;
        let (affected, allowed) = examine(writer, &drafted, excepting, report).await?;
        if let (false, Some(judge)) = (report.has_refusals(), judge) {
            let Draft { playbook, text, document, .. } = &drafted;
            judge.judge(writer, playbook, text, document.as_deref(), &affected, report).await?;
        }
        if !report.has_refusals() {
            change.events.extend(allowed);
            outcome.accepted = true;
            outcome.file = Some(display_path(&writer.session.environment, &drafted.record.path));
            outcome.version = Some(drafted.accept(writer, proposer, &affected, &mut change)?);
            outcome.operators = Some(affected);
        }
    }
    if !outcome.accepted {
        let refusals = &outcome.report.refusals;
        let codes: Vec<&str> = refusals.iter().map(|refusal| refusal.code.as_str()).collect();
        let data = json!({"codes": codes, "by": proposer.by});
        let slug = if outcome.slug.is_empty() { "?" } else { &outcome.slug };
        let words = refusals_in_words(&outcome.report);
        change.events.push(ChangeEvent::new(PlaybookEvent::Rejected, slug, words, data));
    }
    writer.commit(&change).await?;
    Ok(outcome)
}

impl Draft {
    /// Refuses invisible text, which an agent reads but a person does not see.
    fn refuse_unseen_characters(&self, report: &mut Report) {
        let evidence = json!(self.evidence).to_string();
        let texts = [
            ("title", &self.playbook.title),
            ("body", &self.text),
            ("summary", &self.summary),
            ("evidence", &evidence),
        ];
        for (what, text) in texts {
            if let Some(place) = first_invisible(text) {
                let message = format!("its {what} has an invisible character: {place}");
                refuse(report, codes::DELTA_INVALID, message, "remove the character");
            }
        }
        if self.playbook.title.contains(['\n', '\r']) {
            let message = "its title has several lines";
            refuse(report, codes::DELTA_INVALID, message, "describe the playbook in one line");
        }
    }

    /// Adds the version to a change; returns its number.
    fn accept(
        self,
        writer: &LibraryWriter,
        proposer: &Proposer,
        affected: &[String],
        change: &mut PlaybookChange,
    ) -> Result<u32, Error> {
        let (by, summary) = (&proposer.by, one_line(&self.summary));
        let is_new = self.manifest.is_some();
        let kind = if is_new { EntryKind::Created } else { EntryKind::Delta };
        let words = format!("version {} is in shadow: {summary}", self.record.next_n());
        let event = (PlaybookEvent::Shadowed, &*words, json!({"operators": affected, "by": by}));
        let (step, from) = (NewVersion::new(kind, summary, by), self.manifest.as_deref());
        let version = change.add_version(&self.record, &step, from, event, |edit, at| {
            if self.playbook.created_at.is_none() {
                edit.set_string("created_at", at);
            }
            edit.set_string("updated_at", at);
            if !is_new {
                edit.set_body(&format!("{}\n", self.text));
            }
            self.evidence.iter().for_each(|item| edit.push_item("evidence", item));
        })?;
        if is_new && let Some(shadowed) = change.events.pop() {
            let words = format!("proposed by {by}, for {}", affected.join(", "));
            let data = shadowed.data.clone();
            change.events.push(ChangeEvent::new(PlaybookEvent::Registered, &shadowed.slug, words, data));
            change.events.push(shadowed);
        }
        writer.record_pattern_matches(&self.playbook, change);
        Ok(version)
    }
}

/// Checks a draft against all operators it targets; returns their slugs, and the exceptions granted.
async fn examine(
    writer: &LibraryWriter,
    drafted: &Draft,
    excepting: Option<&mut ExceptionRequest>,
    report: &mut Report,
) -> Result<(Vec<String>, Option<ChangeEvent>), Error> {
    let library = &writer.library;
    let playbook = &drafted.playbook;
    let matched = library.operators_for(playbook);
    drafted.refuse_unseen_characters(report);
    if library.targets_all(playbook) {
        let message = "it targets all operators, but was learned from some of them";
        let help = "name the operator or the role that it was learned from";
        refuse(report, codes::DELTA_INVALID, message, help);
    } else if matched.is_empty() {
        let message = "its targets match no operator in this workspace";
        let help = "run `quorate check operators` to see the available operators";
        refuse(report, codes::TARGET_UNRESOLVED, message, help);
    }
    if let Some((word, _)) = council_mentions(&drafted.text).next() {
        let message = format!("its text mentions the judges of the agent's work: `{word}`");
        refuse(report, codes::DELTA_INVALID, message, "tell the agent what to do, without its judges");
    }
    check_superseded(library, playbook, report);
    library.warn_contradictions(playbook, &drafted.text, report);
    let standing = library.standing_for(playbook);
    let mut objections = library.objections(playbook, &drafted.text, &standing);
    // Do not ask a person about a proposal that is refused anyway.
    let excepting = excepting.filter(|_| !report.has_refusals());
    let allowed = excepting.map(|excepting| excepting.allow(&playbook.slug, &drafted.text, &mut objections));
    let allowed = allowed.transpose().unwrap_or_else(|closed| {
        refuse(report, codes::LOCK_VIOLATED, closed.message, closed.help);
        None
    });
    for objection in objections {
        let (code, mut body) = (objection.code(), objection.body);
        if let (Cause::Locked(touch), Some(document)) = (&objection.cause, &drafted.document) {
            report.add_source(document.shown.clone(), document.text.clone());
            body = body.at(excerpt_place(document, &touch.excerpt));
        }
        report.refuse(code, body);
    }
    for evidence in playbook.evidence.iter().filter(|one| one.kind == EvidenceKind::Run) {
        if let Some(what) = tainted_reason(writer, &evidence.reference).await? {
            let message = format!("it was learned from run {}, in which {what}", evidence.reference);
            refuse(report, codes::DELTA_INVALID, message, "learn it from runs whose records are intact");
        }
    }
    Ok((matched.into_iter().map(|(known, _)| known.slug.clone()).collect(), allowed))
}

/// A superseded playbook must exist and target no other operator: that operator would otherwise lose it unnoticed.
pub(super) fn check_superseded(library: &Library, playbook: &Playbook, report: &mut Report) {
    let matched: Vec<&str> =
        library.operators_for(playbook).iter().map(|(known, _)| known.slug.as_str()).collect();
    for slug in playbook.supersedes.iter().flatten() {
        let Some(book) = library.book(slug) else {
            let message = format!("it supersedes `{slug}`, which does not exist");
            let help = "run `quorate playbook list` to see the available playbooks";
            refuse(report, codes::DELTA_INVALID, message, help);
            continue;
        };
        let others = library.operators_for(&book.playbook);
        if let Some((other, _)) = others.iter().find(|(known, _)| !matched.contains(&&*known.slug)) {
            let message =
                format!("it supersedes `{slug}`, but does not target its operator `{}`", other.slug);
            refuse(report, codes::DELTA_INVALID, message, "add the operator to the targets");
        }
    }
}

/// Why a run cannot be evidence; `None` for a run of another ledger.
async fn tainted_reason(writer: &LibraryWriter, reference: &str) -> Result<Option<&'static str>, Error> {
    let id = reference.strip_prefix("runs/").unwrap_or(reference);
    if !id.starts_with('r') || !id.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Ok(None);
    }
    let PrefixMatch::One(run) = writer.session.store.find_by_prefix(id).await? else { return Ok(None) };
    let records = writer.session.store.records(&run.run).await?;
    Ok(records.iter().any(|record| record.is(Kind::Violation)).then_some("a locked trait was touched"))
}

impl LibraryWriter {
    /// Adds an event for each operator that a pattern matches for the first time (B10).
    pub(super) fn record_pattern_matches(&self, playbook: &Playbook, change: &mut PlaybookChange) {
        let Library { root, scope, .. } = &self.library;
        let matched = self.library.operators_for(playbook).into_iter();
        let by_pattern = matched.filter(|(_, bound)| *bound != MatchKind::Exact);
        let events =
            by_pattern.filter_map(|(known, _)| first_match_event(root, scope, &playbook.slug, &known.slug));
        change.events.extend(events);
    }
}

/// The first line of a summary, shortened for a history.
fn one_line(text: &str) -> &str {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(400) {
        Some((end, _)) => &line[..end],
        None if line.is_empty() => "changed",
        None => line,
    }
}

/// The proposer, and its default operator.
#[derive(Debug, Clone)]
pub(super) struct Proposer {
    pub(super) by: String,
    /// The operator of deltas that name none.
    pub(super) operator: Option<String>,
}

/// A proposal in progress.
struct DraftBuilder<'k> {
    writer: &'k LibraryWriter,
    proposer: &'k Proposer,
    /// The time of the proposal, in RFC 3339.
    at: String,
    /// The slug, if known.
    slug: String,
    /// Refusals and warnings.
    report: Report,
    /// The source text, for places.
    document: Option<Arc<Document>>,
}

/// A proposal that parses as a playbook.
struct Draft {
    playbook: Playbook,
    text: String,
    /// Its target file, and that file's current text; `None` for a new one.
    record: VersionedFile,
    /// The manifest as written; `None` for a delta, which has no places.
    document: Option<Arc<Document>>,
    /// The text of the new file, without its history; `None` for a revision.
    manifest: Option<String>,
    summary: String,
    /// Items added to its evidence.
    evidence: Vec<Map<String, Json>>,
}

/// A draft; `None` if it was refused.
type Drafted = Result<Option<Draft>, Error>;

impl DraftBuilder<'_> {
    fn build_manifest(&mut self, text: &str, shown: &str) -> Drafted {
        let library = &self.writer.library;
        let path = std::fs::canonicalize(self.writer.session.environment.directory.join(shown)).ok();
        let is_it = |book: &&PlaybookFile| {
            path.is_some()
                && std::fs::canonicalize(library.root.join(book.path.workspace_relative())).ok() == path
        };
        if let Some(book) = library.catalogue.books.iter().find(is_it) {
            self.slug.clone_from(&book.playbook.slug);
            let message = format!("`{}` already exists among the playbooks", self.slug);
            let help = format!("run `quorate playbook promote {} --gate …` to make it active", self.slug);
            return self.refuse(codes::SLUG_DUPLICATE, Body::new(message).help(help));
        }
        let name = Path::new(shown).file_name().map_or("-", |name| name.to_str().unwrap_or("-"));
        let drafted = self.build_text(text, name)?;
        Ok(drafted.map(|drafted| Draft { document: self.document.take(), ..drafted }))
    }

    fn build_add(&mut self, add: &Add) -> Drafted {
        let mut manifest = add.manifest(&self.at);
        self.slug.clone_from(&add.slug);
        if add.targets.is_none() && add.selector.is_none() {
            let Some(operator) = &self.proposer.operator else {
                let help = "give it `targets` or a `selector`";
                return self.refuse(codes::DELTA_INVALID, Body::new("the delta has no targets").help(help));
            };
            manifest.insert("targets".to_owned(), json!([{"kind": "operator", "ref": operator}]));
        }
        if add.evidence.is_none() {
            manifest.insert("evidence".to_owned(), json!([self.provenance()]));
        }
        match edit::render(&manifest, &format!("{}\n", add.body.trim())) {
            Ok(text) => self.build_text(&text, &format!("{}.md", add.slug)),
            Err(why) => {
                let body = Body::new(format!("cannot write the delta as a playbook: {why}"));
                self.refuse(codes::PLAYBOOK_INVALID, body)
            }
        }
    }

    /// The evidence of a delta that names none.
    fn provenance(&self) -> Json {
        json!({"kind": "human", "ref": format!("{} at {}", self.proposer.by, self.at)})
    }

    /// Loads a manifest with the usual checks, beside the existing playbooks.
    fn build_text(&mut self, text: &str, name: &str) -> Drafted {
        let library = &self.writer.library;
        let environment = &self.writer.session.environment;
        let manifests = Manifests::open(environment, &library.root, Refs::Followed)?;
        let loader = manifests.loader(&*environment.registries);
        // The first playbook keeps the slug.
        drop(playbook::load_all(&loader, &library.scope));
        let Ok(location) = WorkspacePath::new(&library.scope.path(name)) else {
            let help = "a slug has lower-case letters, digits and dashes";
            let message = format!("`{name}` cannot be the name of a file here");
            return self.refuse(codes::PLAYBOOK_INVALID, Body::new(message).help(help));
        };
        let document = match loader.open_bytes(&location, text.as_bytes().to_vec()) {
            OpenResult::Document(document) if document.doctype == Doctype::Playbook => document,
            OpenResult::UnknownDoctype(report) => {
                self.report.absorb(report);
                return Ok(None);
            }
            OpenResult::Document(_) | OpenResult::Missing | OpenResult::Unreadable(_) => {
                let help = "begin it with `schema: playbooks/v1`";
                return self.refuse(
                    codes::PLAYBOOK_INVALID,
                    Body::new(format!("{name} is not a playbook")).help(help),
                );
            }
        };
        self.document = Some(Arc::clone(&document));
        let loaded = load::load_playbook(&loader, &document);
        self.report.absorb(loaded.report);
        let Some(playbook) = loaded.value else { return Ok(None) };
        self.slug.clone_from(&playbook.slug);
        if playbook.status != Status::Shadow {
            let status = playbook.status.as_str();
            let body =
                Body::new(format!("a proposal must begin in shadow, and this one has `status: {status}`"));
            let body = body.at(document.value_place("status"));
            let help =
                "propose it with `status: shadow`, then run `quorate playbook promote SLUG --gate GATE`";
            match playbook.status {
                Status::Active => self.report.refuse(codes::PROMOTION_DENIED, body.help(help)),
                _ => self.report.refuse(codes::DELTA_INVALID, body),
            }
        }
        if playbook.history.as_ref().is_some_and(|entries| !entries.is_empty()) {
            let body = Body::new("a proposal cannot have a `history`");
            let help = "remove `history`: Quorate writes it";
            self.report.refuse(codes::HISTORY_MUTATION, body.at(document.key_place("history")).help(help));
        }
        let path = library.root.join(library.scope.path(&file_path(&playbook)));
        Ok(Some(Draft {
            summary: playbook.title.clone(),
            text: document.body().trim().to_owned(),
            record: VersionedFile { slug: playbook.slug.clone(), path, ..VersionedFile::default() },
            document: None,
            manifest: Some(text.to_owned()),
            evidence: Vec::new(),
            playbook,
        }))
    }

    fn build_revision(&mut self, revise: &Revise) -> Drafted {
        let library = &self.writer.library;
        let slug = &revise.slug;
        self.slug.clone_from(slug);
        let Some(book) = library.book(slug) else {
            let message = format!("cannot revise `{slug}`: no playbook has this slug");
            let help = "run `quorate playbook list` to see the available playbooks";
            return self.refuse(codes::DELTA_INVALID, Body::new(message).help(help));
        };
        let playbook = &book.playbook;
        if playbook.status != Status::Shadow {
            let message = format!("cannot revise `{slug}`: only playbooks in shadow can be revised");
            let help = format!("propose another playbook with `supersedes: [{slug}]`");
            return self.refuse(codes::PROMOTION_DENIED, Body::new(message).help(help));
        }
        let matched = library.operators_for(playbook);
        let is_other = |operator: &&String| !matched.iter().any(|(known, _)| known.slug == **operator);
        if let Some(operator) = self.proposer.operator.as_ref().filter(is_other) {
            let message = format!("`{slug}` does not target `{operator}`, whose runs this was learned from");
            return self.refuse(codes::DELTA_INVALID, Body::new(message));
        }
        let record = self.writer.intact_record(book)?;
        if fold(revise.body.trim()) == fold(book.text()) {
            return self.refuse(codes::DELTA_INVALID, Body::new(format!("`{slug}` already has this text")));
        }
        let evidence = match revise.evidence.clone() {
            Some(Json::Array(all)) => all,
            _ => vec![self.provenance()],
        };
        Ok(Some(Draft {
            playbook: playbook.clone(),
            text: revise.body.trim().to_owned(),
            record,
            document: None,
            manifest: None,
            summary: revise.summary.clone(),
            evidence: evidence.into_iter().filter_map(|one| one.as_object().cloned()).collect(),
        }))
    }

    /// Refuses a proposal that cannot be drafted.
    fn refuse(&mut self, code: RefusalCode, body: Body) -> Drafted {
        self.report.refuse(code, body);
        Ok(None)
    }
}

/// The folder of a new playbook: by its single operator or role.
fn file_path(playbook: &Playbook) -> String {
    let slug = &playbook.slug;
    let folder = match playbook.targets.as_deref() {
        Some([only]) if playbook.selector.is_none() => {
            let bare = only.reference.rsplit('/').next().unwrap_or_default();
            let plain = !bare.is_empty()
                && bare.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            plain.then(|| format!("{}/{bare}/", only.kind.as_str()))
        }
        _ => None,
    };
    format!("{}/{}{slug}.md", playbook::FOLDER, folder.unwrap_or_default())
}

/// The maximum length of a title made of a fragment, in characters.
const MAX_TITLE_CHARS: usize = 120;

/// The fragments of an advisory run as proposals for its operators.
///
/// # Errors
/// If the run is unknown, or has no fragments.
#[crate::boxed]
pub(super) async fn proposals_of_run(writer: &LibraryWriter, prefix: &str) -> Result<Vec<Proposal>, Error> {
    let run = writer.session.find_run(prefix).await?.run;
    let history = writer.session.partial_history(&run).await?;
    let fragments = history.outcome().map(|outcome| outcome.fragments).filter(|all| !all.is_empty());
    let (Some(setup), Some(fragments)) = (run_opened::assembly_setup(&history), fragments) else {
        let body = Body::new(format!("run {run} has no advice"));
        let help = "name a run of an advisory assembly: `quorate runs` lists all runs";
        return Err(Error::new(ErrorKind::InvalidRequest, codes::USAGE, body.help(help)));
    };
    let known = writer.library.operators.iter();
    let targets: Vec<Json> = known
        .filter(|known| setup.operators.contains(&known.overlay_name(&writer.library.scope)))
        .map(|known| json!({"kind": "operator", "ref": known.slug}))
        .collect();
    if targets.is_empty() {
        let body = Body::new(format!("run {run} does not advise an operator of this workspace"));
        let help = "name one in `appliesTo` or `executor` of the assembly";
        return Err(Error::configuration(codes::TARGET_UNRESOLVED, body.help(help)));
    }
    let redactor = &writer.session.workspace.redaction.redactor;
    let proposals = fragments.iter().map(|fragment| {
        let Fragment { member, severity, .. } = fragment;
        let text = fragment.text.trim().to_owned();
        let priority = u8::try_from(fragment.priority).ok();
        let add = Add {
            slug: emitted_slug(&setup.assembly, member, &run),
            title: emitted_title(&text),
            body: text,
            targets: Some(json!(targets)),
            priority: priority.map(|n| json!(n.min(quorate_playbook::weave::ADVISORY_CAP))),
            evidence: Some(json!([{
                "kind": "run", "ref": format!("runs/{run}"), "note": format!("severity {severity}"),
            }])),
            metadata: Some(json!({"quorate": {"mentor": member, "assembly": &*setup.assembly}})),
            ..Add::default()
        };
        proposal_from_json(json!(Delta::Add(Box::new(add))), redactor)
    });
    Ok(proposals.collect())
}

/// A slug that depends only on the run and the fragment.
fn emitted_slug(assembly: &str, member: &str, run: &str) -> String {
    let plain = |text: &str| -> String {
        let text = text.to_ascii_lowercase();
        let text = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
        text.trim_matches('-').chars().take(28).collect()
    };
    let slug = format!("{}-{}-{}", plain(assembly), plain(member), plain(run));
    let slug = slug.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    slug.trim_end_matches('-').to_owned()
}

fn emitted_title(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(MAX_TITLE_CHARS).collect();
    if cut.len() < line.len() { format!("{}…", cut.trim_end()) } else { cut }
}
