//! Resolve: merges an assembly's chain, shows the origin of each field, and tests the locked traits on a text.
//!
//! A flat manifest needs no parent and can replace its leaf. A remark states each difference from the chain; a manifest
//! that would be less strict is refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_manifest::Capabilities;
use quorate_manifest::assembly::{self, MatchMode, ResolvedAssembly};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::document::Document;
use quorate_manifest::loader::{Chain, ReadResult, Refs};
use quorate_manifest::tree::{self, Kind, Node};
use quorate_manifest::workspace::WorkspacePath;
use serde::Serialize;

use super::disk::absolute;
use super::environment::Environment;
use super::error::{Error, ErrorKind};
use super::manifests::{Manifests, file_not_found};
use super::workspace::{by_name, find_root, search_start};

/// The assembly to resolve.
#[derive(Debug, Clone, Default)]
pub struct ResolveRequest {
    /// The manifest, the directory that holds it, or the name of its directory below `assemblies/`.
    pub path: PathBuf,
    /// The workspace's root; `None` searches for it.
    pub root: Option<PathBuf>,
    /// Whether refs are followed.
    pub refs: Refs,
}

impl ResolveRequest {
    /// The assembly at this path.
    pub fn new(path: impl Into<PathBuf>) -> ResolveRequest {
        ResolveRequest { path: path.into(), ..ResolveRequest::default() }
    }
}

/// A resolved assembly with its report.
#[derive(Debug)]
pub struct Resolution {
    /// The assembly, with its chain merged.
    pub resolved: ResolvedAssembly,
    /// Warnings.
    pub report: Report,
    /// The workspace's root; the chain's paths are relative to it.
    pub root: PathBuf,
}

/// A field of the merged manifest, with its origin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldOrigin {
    /// The field, for example `members[ciso].weight`.
    pub field: String,
    /// Its value.
    #[serde(flatten)]
    pub value: FieldValue,
    /// The ancestors' values of the field, nearest first.
    pub overridden: Vec<FieldValue>,
}

/// A value, and the line that sets it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldValue {
    /// The value.
    pub value: serde_json::Value,
    /// The file's path as shown to the user.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

/// Resolves an assembly.
///
/// # Errors
/// If it does not exist or is refused.
pub(crate) fn resolve(
    environment: &Environment,
    request: &ResolveRequest,
    capabilities: &dyn Capabilities,
) -> Result<Resolution, Error> {
    let mut path = absolute(&environment.directory, &request.path);
    if !path.exists() {
        let root = request.root.as_deref();
        path = by_name(environment, root, &request.path, &["assemblies/*"]).unwrap_or(path);
    }
    if path.is_dir() {
        path.push(Doctype::Assembly.file_name().unwrap_or_default());
    }
    let start = search_start(environment, &path);
    let root = find_root(environment, request.root.as_deref(), &start);
    let manifests = Manifests::open(environment, &root, request.refs)?;
    if manifests.report.has_refusals() {
        return Err(Error::from_report(ErrorKind::Configuration, manifests.report));
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
            return Err(Error::configuration(codes::FILE_UNREADABLE, body));
        }
    };
    let loaded = assembly::load(&loader, &document);
    match loaded.value {
        Some(resolved) => Ok(Resolution { resolved, report: loaded.report, root }),
        None => Err(Error::from_report(ErrorKind::Refused, loaded.report)),
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

    /// A field with its origin and the overridden values; for a mapping or a list, all fields in it.
    ///
    /// # Errors
    /// If the field has no value; the help suggests a field with a similar name.
    pub fn explain(&self, field: &str) -> Result<Vec<FieldOrigin>, Error> {
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
        if !origins.is_empty() {
            return Ok(origins);
        }
        let body = Body::new(format!("`{field}` has no value in this assembly"));
        let body = body.help(match self.nearest(field) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`quorate resolve FILE --format json` lists all fields".to_owned(),
        });
        Err(Error::new(ErrorKind::NotFound, codes::USAGE, body))
    }

    /// A field with a name similar to an unknown one.
    fn nearest(&self, field: &str) -> Option<String> {
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
                at = at.and_then(|node| node.items().iter().find(|item| item.text_of("id") == Some(bare)));
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
                let id = item.text_of("id").map_or_else(|| at.to_string(), str::to_owned);
                walk(chain, item, format!("{field}[{id}]"), origins);
            }
        }
        _ => origins.push(origin(chain.document_of(node), node, field)),
    }
}

fn origin(document: &Document, node: &Node, field: String) -> FieldOrigin {
    let line = document.text[..node.span.start.min(document.text.len())].matches('\n').count() + 1;
    let value = FieldValue { value: node.to_json(), file: document.shown.to_string(), line };
    FieldOrigin { field, value, overridden: Vec::new() }
}

/// The values below the winning one.
fn overridden(chain: &Chain, won: &FieldOrigin) -> Vec<FieldValue> {
    let mut found = Vec::new();
    for document in chain.documents.iter().rev() {
        let mut own = Vec::new();
        let alone = Chain { documents: vec![Arc::clone(document)], merged: document.root.clone() };
        walk(&alone, &document.root, String::new(), &mut own);
        let same = own.into_iter().find(|origin| origin.field == won.field).map(|origin| origin.value);
        found.extend(same.filter(|value| (&value.file, value.line) != (&won.value.file, won.value.line)));
    }
    found
}

/// The disk path of a chain's file.
pub(crate) fn disk_path(root: &Path, document: &Document) -> PathBuf {
    root.join(document.path.workspace_relative())
}

/// One manifest, and its remarks.
pub(crate) struct FlatManifest {
    pub root: Node,
    /// Its differences from its chain, one sentence each.
    pub remarks: Vec<String>,
}

impl Resolution {
    /// The merged manifest as a root, without the keys that bind it to a parent or a consumer.
    ///
    /// # Errors
    /// If one manifest cannot lock all locked traits of the chain.
    pub(crate) fn flatten(&self) -> Result<FlatManifest, Error> {
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
    fn flatten_traits(&self, traits: &mut Node, remarks: &mut Vec<String>) -> Result<(), Error> {
        let Kind::Seq(items) = &mut traits.kind else { return Ok(()) };
        for (item, declared) in items.iter_mut().zip(&self.resolved.locked_traits) {
            let locked = &declared.locked;
            match (self.resolved.match_mode, locked.declared) {
                (MatchMode::Regex, MatchMode::Substring) => {
                    let escaped = regex::escape(&locked.text);
                    remarks.push(format!(
                        "`{}` is text in {}, and a pattern here: it no longer matches lookalike letters",
                        locked.text,
                        self.document_name(declared.document)
                    ));
                    item.kind = Kind::Str(escaped);
                }
                (MatchMode::Semantic, MatchMode::Regex) => {
                    let body = Body::new(format!(
                        "cannot flatten: `{}` is a pattern in {}, but other traits are matched by meaning, and a manifest has one match mode",
                        locked.text,
                        self.document_name(declared.document)
                    ));
                    let help = "use the chain; `--format json` shows the merged manifest";
                    return Err(Error::new(ErrorKind::Refused, codes::MATCH_MODE_LOOSENED, body.help(help)));
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
