//! A draft: a proposal rendered as a playbook and loaded beside the existing ones.

use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, RefusalCode, Report, codes};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::document::Document;
use quorate_manifest::loader::{OpenResult, Refs};
use quorate_manifest::playbook;
use quorate_manifest::playbook::TargetKind;
use quorate_manifest::playbook::{Playbook, Status, edit, load};
use quorate_manifest::workspace::WorkspacePath;
use quorate_playbook::delta::{Add, Revise};
use quorate_protocol::Json;
use quorate_protocol::locks::fold;
use serde_json::{Map, json};

use super::super::versions::VersionedFile;
use super::super::writer::LibraryWriter;
use crate::service::error::ServiceError;
use crate::service::host::Host;
use crate::service::manifests::Manifests;

/// The proposer, and its default operator.
#[derive(Debug, Clone)]
pub struct Proposer {
    pub by: String,
    /// The operator of deltas that name none.
    pub operator: Option<String>,
}

/// A proposal in progress.
pub(super) struct DraftBuilder {
    /// The time of the proposal, in RFC 3339.
    pub(super) at: String,
    /// The slug, if known.
    pub(super) slug: String,
    /// Refusals and warnings.
    pub(super) report: Report,
    /// The source text, for places.
    pub(super) document: Option<Arc<Document>>,
}

/// A proposal that parses as a playbook.
pub(super) struct Draft {
    pub(super) playbook: Playbook,
    pub(super) text: String,
    /// Its target file, and that file's current text; `None` for a new one.
    pub(super) record: VersionedFile,
    /// The manifest as written; `None` for a delta, which has no places.
    pub(super) document: Option<Arc<Document>>,
    /// The text of the new file, without its history; `None` for a revision.
    pub(super) manifest: Option<String>,
    pub(super) summary: String,
    /// Items added to its evidence.
    pub(super) evidence: Vec<Map<String, Json>>,
}

impl DraftBuilder {
    pub(super) fn build_manifest(
        &mut self,
        keeping: &LibraryWriter,
        text: &str,
        shown: &str,
        host: &Host,
    ) -> Result<Option<Draft>, ServiceError> {
        let path = keeping.session.environment.directory.join(shown);
        if let Some(book) = keeping.library.catalogue.books.iter().find(|book| {
            let current_path = keeping.library.root.join(book.path.workspace_relative());
            std::fs::canonicalize(&path)
                .ok()
                .is_some_and(|path| std::fs::canonicalize(current_path).ok() == Some(path))
        }) {
            self.slug.clone_from(&book.playbook.slug);
            let body = Body::new(format!("`{}` already exists among the playbooks", book.playbook.slug));
            let help = format!("run `quorate playbook promote {} --gate …` to make it active", self.slug);
            self.refuse(codes::SLUG_DUPLICATE, body.help(help));
            return Ok(None);
        }
        let name = Path::new(shown).file_name().map_or("-", |name| name.to_str().unwrap_or("-"));
        let drafted = self.build_text(keeping, text, name, host)?;
        Ok(drafted.map(|drafted| Draft { document: self.document.take(), ..drafted }))
    }

    pub(super) fn build_add(
        &mut self,
        keeping: &LibraryWriter,
        add: &Add,
        proposer: &Proposer,
        host: &Host,
    ) -> Result<Option<Draft>, ServiceError> {
        let mut manifest = add.manifest(&self.at);
        self.slug.clone_from(&add.slug);
        if add.targets.is_none() && add.selector.is_none() {
            let Some(operator) = &proposer.operator else {
                let body = Body::new("the delta has no targets");
                self.refuse(codes::DELTA_INVALID, body.help("give it `targets` or a `selector`"));
                return Ok(None);
            };
            manifest.insert("targets".to_owned(), json!([{"kind": "operator", "ref": operator}]));
        }
        if add.evidence.is_none() {
            let provenance = format!("{} at {}", proposer.by, self.at);
            manifest.insert("evidence".to_owned(), json!([{"kind": "human", "ref": provenance}]));
        }
        let text = match edit::render(&manifest, &format!("{}\n", add.body.trim())) {
            Ok(text) => text,
            Err(why) => {
                let body = Body::new(format!("cannot write the delta as a playbook: {why}"));
                self.refuse(codes::PLAYBOOK_INVALID, body);
                return Ok(None);
            }
        };
        self.build_text(keeping, &text, &format!("{}.md", add.slug), host)
    }

    /// Loads a manifest with the usual checks, beside the existing playbooks.
    fn build_text(
        &mut self,
        keeping: &LibraryWriter,
        text: &str,
        name: &str,
        host: &Host,
    ) -> Result<Option<Draft>, ServiceError> {
        let library = &keeping.library;
        let manifests = Manifests::open(&keeping.session.environment, &library.root, Refs::Followed)?;
        let loader = manifests.loader(host);
        // The first playbook keeps the slug.
        drop(playbook::load_all(&loader, &library.scope));
        let Ok(location) = WorkspacePath::new(&in_scope(library.scope.folder(), name)) else {
            let body = Body::new(format!("`{name}` cannot be the name of a file here"));
            self.refuse(
                codes::PLAYBOOK_INVALID,
                body.help("a slug has lower-case letters, digits and dashes"),
            );
            return Ok(None);
        };
        let document = match loader.open_bytes(&location, text.as_bytes().to_vec()) {
            OpenResult::Document(document) if document.doctype == Doctype::Playbook => document,
            OpenResult::UnknownDoctype(report) => {
                self.report.absorb(report);
                return Ok(None);
            }
            OpenResult::Document(_) | OpenResult::Missing | OpenResult::Unreadable(_) => {
                let body = Body::new(format!("{name} is not a playbook"))
                    .help("begin it with `schema: playbooks/v1`");
                self.refuse(codes::PLAYBOOK_INVALID, body);
                return Ok(None);
            }
        };
        self.document = Some(Arc::clone(&document));
        let loaded = load::load_playbook(&loader, &document);
        self.report.absorb(loaded.report);
        let Some(playbook) = loaded.value else { return Ok(None) };
        self.slug.clone_from(&playbook.slug);
        match playbook.status {
            Status::Shadow => {}
            Status::Active => {
                let body = Body::new("a proposal must begin in shadow, and this one has `status: active`");
                let body = body.at(document.value_place("status"));
                let help = "propose it with `status: shadow`, then run `quorate playbook promote`";
                self.refuse(codes::PROMOTION_DENIED, body.help(help));
            }
            Status::Archived => {
                let body = Body::new("a proposal must begin in shadow, and this one has `status: archived`");
                self.refuse(codes::DELTA_INVALID, body.at(document.value_place("status")));
            }
        }
        if playbook.history.as_ref().is_some_and(|entries| !entries.is_empty()) {
            let body = Body::new("a proposal cannot have a `history`");
            let help = "remove `history`: Quorate writes it";
            self.refuse(codes::HISTORY_MUTATION, body.at(document.key_place("history")).help(help));
        }
        let path = library.root.join(in_scope(library.scope.folder(), &file_path(&playbook)));
        let summary = playbook.title.clone();
        let record = VersionedFile { slug: playbook.slug.clone(), path, ..VersionedFile::default() };
        let (text, body) = (text.to_owned(), document.body().trim().to_owned());
        Ok(Some(Draft {
            playbook,
            text: body,
            record,
            document: None,
            manifest: Some(text),
            summary,
            evidence: Vec::new(),
        }))
    }

    pub(super) fn build_revision(
        &mut self,
        keeping: &LibraryWriter,
        revise: &Revise,
        proposer: &Proposer,
    ) -> Result<Option<Draft>, ServiceError> {
        let library = &keeping.library;
        self.slug.clone_from(&revise.slug);
        let Some(book) = library.book(&revise.slug) else {
            let body = Body::new(format!("cannot revise `{}`: no playbook has this slug", revise.slug));
            self.refuse(
                codes::DELTA_INVALID,
                body.help("run `quorate playbook list` to see the available playbooks"),
            );
            return Ok(None);
        };
        if book.playbook.status != Status::Shadow {
            let body = Body::new(format!(
                "cannot revise `{}`: only playbooks in shadow can be revised",
                revise.slug
            ));
            let help = format!("propose another playbook with `supersedes: [{}]`", revise.slug);
            self.refuse(codes::PROMOTION_DENIED, body.help(help));
            return Ok(None);
        }
        let is_for = |operator: &String| {
            library.operators_for(&book.playbook).iter().any(|(known, _)| known.slug == *operator)
        };
        if let Some(operator) = proposer.operator.as_ref().filter(|operator| !is_for(operator)) {
            let body = Body::new(format!(
                "`{}` does not target `{operator}`, whose runs this was learned from",
                revise.slug
            ));
            self.refuse(codes::DELTA_INVALID, body);
            return Ok(None);
        }
        let record = library.record(book)?;
        record.ensure_intact(&keeping.session.environment)?;
        if fold(revise.body.trim()) == fold(book.text()) {
            let body = Body::new(format!("`{}` already has this text", revise.slug));
            self.refuse(codes::DELTA_INVALID, body);
            return Ok(None);
        }
        let evidence = match revise.evidence.clone() {
            Some(Json::Array(all)) => all.into_iter().filter_map(|one| one.as_object().cloned()).collect(),
            _ => vec![Map::from_iter([
                ("kind".to_owned(), json!("human")),
                ("ref".to_owned(), json!(format!("{} at {}", proposer.by, self.at))),
            ])],
        };
        let playbook = book.playbook.clone();
        let text = revise.body.trim().to_owned();
        Ok(Some(Draft {
            playbook,
            text,
            record,
            document: None,
            manifest: None,
            summary: revise.summary.clone(),
            evidence,
        }))
    }

    fn refuse(&mut self, code: RefusalCode, body: Body) {
        self.report.refuse(code, body);
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
            let word = match only.kind {
                TargetKind::Operator => "operator",
                TargetKind::Role => "role",
                TargetKind::Skill => "skill",
                TargetKind::Runtime => "runtime",
            };
            plain.then(|| format!("{word}/{bare}/"))
        }
        _ => None,
    };
    format!("{}/{}{slug}.md", playbook::FOLDER, folder.unwrap_or_default())
}

fn in_scope(folder: impl AsRef<str>, path: &str) -> String {
    match folder.as_ref() {
        "" => path.to_owned(),
        tenant => format!("{tenant}/{path}"),
    }
}
