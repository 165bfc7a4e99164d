//! Resolve: merges an assembly's chain, shows the origin of each field, and tests the locked traits on a text.
//!
//! A flat manifest needs no parent and can replace its leaf. A remark states each difference from the chain; a manifest
//! that would be less strict is refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::text::LineIndex;
use quorate_diagnostics::{Body, Report, codes};
use quorate_manifest::Capabilities;
use quorate_manifest::assembly::{self, MatchMode, ResolvedAssembly};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::document::Document;
use quorate_manifest::loader::{Chain, ReadResult, Refs};
use quorate_manifest::tree::{self, Kind, Node};
use quorate_manifest::workspace::WorkspacePath;
use quorate_playbook::lock as playbook;
use quorate_protocol::locks::{Hit, Locks, Trait};

use super::artifact::{self, Subject};
use super::disk::absolute;
use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::manifests::{self, Manifests, file_not_found};
use super::playbook::library::{self, KnownOperator as Operator};
use super::playbook::traits::Exceptions;
use super::workspace::{self, PathOverrides, find_root, search_start};

#[derive(Debug, Clone, Default)]
pub struct ResolveRequest {
    /// The manifest, or the directory that holds it.
    pub path: PathBuf,
    /// The workspace's root; `None` searches for it.
    pub root: Option<PathBuf>,
    /// Whether refs are followed.
    pub refs: Refs,
}

/// A resolved assembly with its report.
#[derive(Debug)]
pub struct Resolution {
    pub resolved: ResolvedAssembly,
    pub report: Report,
    /// The workspace's root; the chain's paths are relative to it.
    pub root: PathBuf,
}

/// The origin of a field of the merged manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldOrigin {
    /// The field, for example `members[ciso].weight`.
    pub field: String,
    pub value: serde_json::Value,
    /// The file's path as shown to the user.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The ancestors' values of the field, nearest first.
    pub overridden: Vec<FieldOrigin>,
}

/// Resolves an assembly.
///
/// # Errors
/// If it does not exist or is refused.
pub fn resolve(
    environment: &Environment,
    request: &ResolveRequest,
    capabilities: &dyn Capabilities,
) -> Result<Resolution, ServiceError> {
    let mut path = absolute(&environment.directory, &request.path);
    if path.is_dir() {
        path.push(Doctype::Assembly.file_name().unwrap_or_default());
    }
    let start = search_start(environment, &path);
    let root = find_root(environment, request.root.as_deref(), &start);
    let manifests = Manifests::open(environment, &root, request.refs)?;
    if manifests.report.has_refusals() {
        return Err(ServiceError::from_report(ExitClass::Configuration, manifests.report));
    }
    let loader = manifests.loader(capabilities);
    let location = manifests.location(&path)?;
    let document = match loader.read(&location, Doctype::Assembly) {
        ReadResult::Document(document) => document,
        ReadResult::Missing => return Err(file_not_found(&loader.display_name(&location))),
        ReadResult::Outside => {
            return Err(file_not_found(&format!(
                "{} (a link that leads out of the workspace)",
                loader.display_name(&location)
            )));
        }
        ReadResult::Unreadable(why) => {
            let body = Body::new(format!("cannot read `{}`: {why}", loader.display_name(&location)));
            return Err(ServiceError::configuration(codes::FILE_UNREADABLE, body));
        }
    };
    let loaded = assembly::load(&loader, &document);
    match loaded.value {
        Some(resolved) => Ok(Resolution { resolved, report: loaded.report, root }),
        None => Err(ServiceError::from_report(ExitClass::Refused, loaded.report)),
    }
}

impl Resolution {
    /// Every field with its origin.
    pub fn origins(&self) -> Vec<FieldOrigin> {
        let chain = &self.resolved.chain;
        let mut origins = Vec::new();
        walk(chain, &chain.merged, String::new(), &mut origins);
        origins
    }

    /// A field with its origin and overridden origins; for a mapping or a list, all fields in it.
    pub fn explain(&self, field: &str) -> Vec<FieldOrigin> {
        let chain = &self.resolved.chain;
        let wanted_field = normalize_field(field, &chain.merged);
        let below = |origin: &FieldOrigin| {
            origin.field == wanted_field
                || origin.field.strip_prefix(&wanted_field).is_some_and(|rest| rest.starts_with(['.', '[']))
        };
        let mut origins: Vec<FieldOrigin> = self.origins().into_iter().filter(below).collect();
        for origin in &mut origins {
            origin.overridden = overridden(chain, origin);
        }
        origins
    }

    /// Fields with a name similar to an unknown one.
    pub fn nearest(&self, field: &str) -> Option<String> {
        let origins = self.origins();
        let mut names: Vec<&str> = Vec::new();
        for origin in &origins {
            let ends = origin.field.match_indices(['.', '[']).map(|(at, _)| &origin.field[..at]);
            names.extend(ends.chain([origin.field.as_str()]));
        }
        tree::reader::nearest(field, &names).map(str::to_owned)
    }
}

/// `members[0].weight` as `members[ciso].weight`.
fn normalize_field(field: &str, merged: &Node) -> String {
    let mut out = String::new();
    let mut at = Some(merged);
    for part in field.split_inclusive(['.', ']']).flat_map(|part| part.split_inclusive('[')) {
        let bare = part.trim_end_matches(['.', ']', '[']);
        match (part.ends_with(']'), bare.parse::<usize>()) {
            (true, Ok(index)) => {
                let item = at.and_then(|node| node.items().get(index));
                let id = item.and_then(|item| item.key("id")).and_then(Node::as_str);
                out.push_str(&id.map_or_else(|| part.to_owned(), |id| format!("{id}]")));
                at = item;
            }
            (true, Err(_)) => {
                at = at.and_then(|node| {
                    node.items().iter().find(|item| item.key("id").and_then(Node::as_str) == Some(bare))
                });
                out.push_str(part);
            }
            _ => {
                if !bare.is_empty() {
                    at = at.and_then(|node| node.key(bare));
                }
                out.push_str(part);
            }
        }
    }
    out
}

/// Scalars, empty containers and lists of scalars of one document are fields; other nodes are traversed.
fn walk(chain: &Chain, node: &Node, field: String, origins: &mut Vec<FieldOrigin>) {
    match &node.kind {
        Kind::Map(entries) if !entries.is_empty() => {
            for entry in entries.iter().filter(|entry| entry.value.kind != Kind::Null) {
                let dot = if field.is_empty() { "" } else { "." };
                walk(chain, &entry.value, format!("{field}{dot}{}", entry.key), origins);
            }
        }
        Kind::Seq(items)
            if items
                .iter()
                .any(|item| item.document != node.document || matches!(item.kind, Kind::Map(_))) =>
        {
            for (at, item) in items.iter().enumerate() {
                let id = item.key("id").and_then(Node::as_str).map_or_else(|| at.to_string(), str::to_owned);
                walk(chain, item, format!("{field}[{id}]"), origins);
            }
        }
        _ => origins.push(origin(chain.document_of(node), node, field)),
    }
}

fn origin(document: &Document, node: &Node, field: String) -> FieldOrigin {
    let line = document.text[..node.span.start.min(document.text.len())].matches('\n').count() + 1;
    FieldOrigin {
        field,
        value: node.to_json(),
        file: document.shown.to_string(),
        line,
        overridden: Vec::new(),
    }
}

/// The origins below the winning one.
fn overridden(chain: &Chain, won: &FieldOrigin) -> Vec<FieldOrigin> {
    let mut found = Vec::new();
    for document in chain.documents.iter().rev() {
        let mut own = Vec::new();
        let alone = Chain { documents: vec![std::sync::Arc::clone(document)], merged: document.root.clone() };
        walk(&alone, &document.root, String::new(), &mut own);
        let same = own.into_iter().find(|origin| origin.field == won.field);
        found.extend(same.filter(|origin| (&origin.file, origin.line) != (&won.file, won.line)));
    }
    found
}

/// The disk path of a chain's file.
pub fn disk_path(root: &Path, document: &Document) -> PathBuf {
    root.join(document.path.workspace_relative())
}

/// One manifest, and its remarks.
#[derive(Debug, Clone)]
pub struct FlatManifest {
    pub root: Node,
    /// Its differences from its chain, one sentence each.
    pub remarks: Vec<String>,
}

impl Resolution {
    /// The merged manifest as a root, without the keys that bind it to a parent or a consumer.
    ///
    /// # Errors
    /// If one manifest cannot lock all locked traits of the chain.
    pub fn flatten(&self) -> Result<FlatManifest, ServiceError> {
        let mut root = self.resolved.chain.merged.clone();
        let mut remarks = Vec::new();
        if let Kind::Map(entries) = &mut root.kind {
            entries.retain(|entry| entry.key != "extends" && entry.key != "appliesTo");
            for entry in entries {
                match entry.key.as_str() {
                    "lockedTraits" => self.flatten_traits(&mut entry.value, &mut remarks)?,
                    "governance" => self.flatten_governance(&mut entry.value, &mut remarks),
                    _ => {}
                }
            }
        }
        self.remark_foreign_refs(&root, &mut remarks);
        Ok(FlatManifest { root, remarks })
    }

    /// Converts the traits to the single match mode that a manifest has (M9).
    fn flatten_traits(&self, traits: &mut Node, remarks: &mut Vec<String>) -> Result<(), ServiceError> {
        let Kind::Seq(items) = &mut traits.kind else { return Ok(()) };
        for (item, locked) in items.iter_mut().zip(&self.resolved.locked_traits) {
            match (self.resolved.match_mode, locked.declared_match_mode) {
                (MatchMode::Regex, MatchMode::Substring) => {
                    let escaped = regex::escape(&locked.text);
                    remarks.push(format!(
                        "`{}` is text in {}, and a pattern here: it no longer matches lookalike letters",
                        locked.text,
                        self.document_name(locked.document)
                    ));
                    item.kind = Kind::Str(escaped);
                }
                (MatchMode::Semantic, MatchMode::Regex) => {
                    let body = Body::new(format!(
                        "cannot flatten: `{}` is a pattern in {}, but other traits are matched by meaning, and a manifest has one match mode",
                        locked.text,
                        self.document_name(locked.document)
                    ));
                    let help = "use the chain; `--format json` shows the merged manifest";
                    return Err(ServiceError::new(
                        ExitClass::Refused,
                        codes::MATCH_MODE_LOOSENED,
                        body.help(help),
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes the path to a governance file relative to the leaf.
    fn flatten_governance(&self, governance: &mut Node, remarks: &mut Vec<String>) {
        let chain = &self.resolved.chain;
        let from = &chain.document_of(governance).path;
        let Some(text) = governance.as_str().filter(|text| !text.starts_with("ws://")) else { return };
        if let (Ok(file), Some(leaf)) = (from.resolve_relative(text), chain.documents.last()) {
            governance.kind = Kind::Str(relative_path(&leaf.path, &file));
        }
        for document in &chain.documents {
            if document.root.key("governance").is_some() && document.path != *from {
                remarks.push(format!(
                    "the requirements of the `governance` of {} are not enforced here",
                    document.shown
                ));
            }
        }
    }

    /// Remarks on refs of documents in another scope than the leaf (M10).
    fn remark_foreign_refs(&self, root: &Node, remarks: &mut Vec<String>) {
        let chain = &self.resolved.chain;
        let Some(leaf) = chain.documents.last() else { return };
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            match &node.kind {
                Kind::Map(entries) => open.extend(entries.iter().rev().map(|entry| &entry.value)),
                Kind::Seq(items) => open.extend(items.iter().rev()),
                Kind::Str(text) if text.starts_with("ws://") => {
                    let document = chain.document_of(node);
                    let remark = format!("`{text}` refers to {}, which is in another scope", document.shown);
                    if document.path.scope() != leaf.path.scope() && !remarks.contains(&remark) {
                        remarks.push(remark);
                    }
                }
                _ => {}
            }
        }
    }

    fn document_name(&self, document: usize) -> &str {
        self.resolved.chain.documents.get(document).map_or("an ancestor", |document| &*document.shown)
    }
}

/// The path of a file relative to another file.
fn relative_path(from: &WorkspacePath, file: &WorkspacePath) -> String {
    let (from, file) = (from.workspace_relative(), file.workspace_relative());
    let above: Vec<&str> = from.split('/').collect();
    let above = &above[..above.len() - 1];
    let parts: Vec<&str> = file.split('/').collect();
    let shared = above.iter().zip(&parts).take_while(|(one, other)| one == other).count();
    let up = vec![".."; above.len() - shared];
    let path: Vec<&str> = up.into_iter().chain(parts[shared..].iter().copied()).collect();
    if path.first() == Some(&"..") { path.join("/") } else { format!("./{}", path.join("/")) }
}

#[derive(Debug, Clone)]
pub struct LocksRequest {
    /// The assembly, or the directory that holds it.
    pub path: PathBuf,
    /// The workspace's root; `None` searches for it.
    pub root: Option<PathBuf>,
    pub material: TextSource,
}

/// The text to test.
#[derive(Debug, Clone)]
pub enum TextSource {
    Text(String),
    /// Read from a file or standard input.
    Subject(Subject),
}

#[derive(Debug)]
pub struct LockTest {
    pub assembly: String,
    /// The merged match mode.
    pub match_mode: MatchMode,
    /// The traits, in the order of the merged manifest.
    pub traits: Vec<TraitHits>,
    /// The text's name as shown to the user; `None` if it was given on the command line.
    pub file: Option<String>,
    pub text: Arc<str>,
    /// Warnings about the assembly.
    pub report: Report,
}

/// A trait and its hits.
#[derive(Debug, Clone)]
pub struct TraitHits {
    /// The trait as written.
    pub text: String,
    /// The match mode that it was declared under.
    pub declared: MatchMode,
    /// The path of the declaring manifest, as shown to the user.
    pub file: String,
    /// The line in that manifest, from 1.
    pub line: usize,
    /// Whether runs also compare it by meaning, if there is an embedder. This test matches text alone.
    pub by_meaning: bool,
    /// Its hits, by position.
    pub hits: Vec<HitPosition>,
}

/// A place in the text.
#[derive(Debug, Clone)]
pub struct HitPosition {
    pub hit: Hit,
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
}

/// Tests a text against the locked traits of an assembly.
///
/// # Errors
/// If the assembly or the text does not exist or cannot be used.
pub fn test_locks(
    environment: &Environment,
    request: &LocksRequest,
    capabilities: &dyn Capabilities,
) -> Result<LockTest, ServiceError> {
    let asked =
        ResolveRequest { path: request.path.clone(), root: request.root.clone(), refs: Refs::ShapeOnly };
    let view = resolve(environment, &asked, capabilities).map_err(refused_as_configuration)?;
    let resolved = &view.resolved;
    let recorded: Vec<Trait> = resolved
        .locked_traits
        .iter()
        .map(|locked_trait| Trait {
            text: locked_trait.text.clone(),
            declared: locked_trait.declared_match_mode,
        })
        .collect();
    let locks = Locks::compile(&recorded, resolved.match_mode).map_err(|invalid| {
        let body = Body::new(format!("cannot search for `{}`: {}", recorded[invalid.at].text, invalid.why));
        ServiceError::configuration(codes::PATTERN_INVALID, body)
    })?;
    let (file, text) = match &request.material {
        TextSource::Text(text) => (None, Arc::from(text.as_str())),
        TextSource::Subject(subject) => {
            let artifact = artifact::read(subject, &environment.directory)?;
            (Some(artifact.display_name), artifact.text)
        }
    };
    let mut traits = trait_declarations(resolved);
    locks.semantic_traits().into_iter().for_each(|at| traits[at].by_meaning = true);
    let lines = LineIndex::new(&text);
    for hit in locks.find_all(&text) {
        let place = lines.position(hit.span.start);
        traits[hit.trait_index].hits.push(HitPosition { line: place.line, column: place.column, hit });
    }
    Ok(LockTest {
        assembly: resolved.name.clone(),
        match_mode: resolved.match_mode,
        traits,
        file,
        text,
        report: view.report,
    })
}

/// The locked traits of an operator (B4).
///
/// # Errors
/// If the operator does not exist or is refused.
pub fn operator_traits(
    environment: &Environment,
    places: &PathOverrides,
    root: Option<&Path>,
    operator: &str,
    capabilities: &dyn Capabilities,
) -> Result<Vec<Arc<playbook::Trait>>, ServiceError> {
    let (root, scope) = manifests::root_and_scope(environment, root);
    let workspace = workspace::load(environment, places, &root)?;
    let manifests = Manifests::open(environment, &root, Refs::Followed)?;
    let loader = manifests.loader(capabilities);
    let operating = library::load_operator(&loader, &scope, &library::full_ref(operator, "operators"))?;
    Ok(Operator::new(operating, &workspace.config, &Exceptions::default()).traits)
}

/// A refused assembly is unusable input here: with exit code 1 it would look like an answer about the text.
fn refused_as_configuration(error: ServiceError) -> ServiceError {
    match error.class {
        ExitClass::Refused => ServiceError { class: ExitClass::Configuration, ..error },
        _ => error,
    }
}

/// The traits, with the places that declare them.
fn trait_declarations(resolved: &ResolvedAssembly) -> Vec<TraitHits> {
    let chain = &resolved.chain;
    let nodes = chain.merged.key("lockedTraits").map_or(&[][..], Node::items);
    let line = |text: &str, document: usize| {
        let text_of = &chain.documents[document].text;
        let node =
            nodes.iter().find(|node| usize::from(node.document) == document && node.as_str() == Some(text));
        node.map_or(1, |node| LineIndex::new(text_of).position(node.span.start).line)
    };
    resolved
        .locked_traits
        .iter()
        .map(|locked_trait| TraitHits {
            text: locked_trait.text.clone(),
            declared: locked_trait.declared_match_mode,
            file: chain.documents[locked_trait.document].shown.to_string(),
            line: line(&locked_trait.text, locked_trait.document),
            by_meaning: false,
            hits: Vec::new(),
        })
        .collect()
}
