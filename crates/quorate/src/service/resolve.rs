//! Resolve: merges an assembly's chain, and shows the origin of each field.

pub mod flatten;

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, Report, codes};
use quorate_manifest::assembly::{self, Resolved};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::document::Document;
use quorate_manifest::loader::{Chain, ReadResult, Refs};
use quorate_manifest::tree::{Kind, Node};
use quorate_manifest::{Capabilities, tree};

use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::manifests::{Manifests, file_not_found, find_root, search_start};
use super::paths::absolute;

#[derive(Debug, Clone, Default)]
pub struct Request {
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
    pub resolved: Resolved,
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
    request: &Request,
    host: &dyn Capabilities,
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
    let loader = manifests.loader(host);
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
