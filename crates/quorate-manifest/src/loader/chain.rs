//! `extends` chains: reads the ancestors of a manifest up to the root and merges them from the root down (M5, M6, M10).

use std::sync::Arc;

use quorate_diagnostics::codes::{RefusalCode, WarningCode};
use quorate_diagnostics::{Body, Place, Report, codes};

use super::{Loader, ReadResult};
use crate::doctype::Doctype;
use crate::document::Document;
use crate::merge::{Table, merge};
use crate::tree::Node;
use crate::workspace::Scope;

/// The most ancestors that a manifest may have.
const MAX_ANCESTORS: usize = 8;

/// A resolved chain.
#[derive(Debug)]
pub struct Chain {
    /// The documents, root first; the last is the manifest itself.
    pub documents: Vec<Arc<Document>>,
    /// The merged tree; each node has the index of its document.
    pub merged: Node,
}

/// Result of resolving a chain.
#[derive(Debug, Clone)]
pub struct ChainOutcome {
    /// `None` if one of its documents is refused.
    pub chain: Option<Arc<Chain>>,
    /// Set if the manifest names a parent but is loaded without it.
    pub broken: Option<BreakReason>,
    /// Diagnostics of the chain, without those of its documents.
    pub report: Report,
    /// The documents that the loader read, the manifest itself first.
    pub visited: Vec<Arc<Document>>,
}

/// Why a manifest is loaded without the parent that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakReason {
    Cycle,
    /// A parent does not exist.
    Missing,
    /// The chain has more than eight ancestors.
    TooDeep,
}

/// How chains of a doctype are merged, and the codes of their warnings.
pub(crate) struct ChainRules {
    pub(crate) doctype: Doctype,
    pub(crate) table: Table,
    pub(crate) cycle: WarningCode,
    pub(crate) missing: WarningCode,
    pub(crate) depth: WarningCode,
}

impl Chain {
    pub fn leaf(&self) -> &Arc<Document> {
        self.documents.last().expect("a chain has a layer")
    }

    /// The document that a value comes from.
    pub fn document_of(&self, node: &Node) -> &Arc<Document> {
        &self.documents[usize::from(node.document)]
    }

    /// The place of a value in the file that it comes from.
    pub fn place(&self, node: &Node, path: impl Into<String>) -> Place {
        self.document_of(node).place(node.span.clone(), path)
    }
}

impl Loader<'_> {
    /// Resolves the chain of a manifest; caches the result.
    pub(crate) fn chain(&self, leaf: &Arc<Document>, rules: &ChainRules) -> ChainOutcome {
        if let Some(outcome) = self.chains.borrow().get(&leaf.path)
            && outcome.visited.first().is_some_and(|document| Arc::ptr_eq(document, leaf))
        {
            return outcome.clone();
        }
        let outcome = self.resolve_chain(leaf, rules);
        self.chains.borrow_mut().insert(leaf.path.clone(), outcome.clone());
        outcome
    }

    fn resolve_chain(&self, leaf: &Arc<Document>, rules: &ChainRules) -> ChainOutcome {
        let mut report = Report::new();
        let mut visited = vec![Arc::clone(leaf)];
        let broken = match self.walk(leaf, rules, &mut visited, &mut report) {
            Ok(()) => None,
            Err(WalkError::Broken(broken)) => Some(broken),
            Err(WalkError::Refused) => {
                return ChainOutcome { chain: None, broken: None, report, visited };
            }
        };
        if report.has_refusals() || visited.iter().any(|document| document.refused()) {
            return ChainOutcome { chain: None, broken, report, visited };
        }
        let chain = match (broken, visited.get(1)) {
            (None, Some(parent)) => {
                self.chain(parent, rules).chain.map(|above| extend_chain(&above, leaf, rules.table))
            }
            _ => Some(single_document(leaf)),
        };
        ChainOutcome { chain: chain.map(Arc::new), broken, report, visited }
    }

    /// Reads the ancestors of a manifest into `read`, nearest first.
    fn walk(
        &self,
        leaf: &Arc<Document>,
        rules: &ChainRules,
        read: &mut Vec<Arc<Document>>,
        report: &mut Report,
    ) -> Result<(), WalkError> {
        let mut at = Arc::clone(leaf);
        while let Some(extends) = at.root.text_of("extends") {
            if !at.is_readable() || at.refuses("extends") {
                return Err(WalkError::Refused);
            }
            let Ok(location) = at.path.resolve_parent(extends) else {
                return Err(self.refuse_escape(leaf, &at, report));
            };
            if read.iter().any(|document| document.path == location) {
                let cycle: Vec<String> = read
                    .iter()
                    .map(|document| document.shown.to_string())
                    .chain([self.display_name(&location)])
                    .collect();
                let message = format!("the parents form a cycle: {}", cycle.join(" -> "));
                return Err(self.break_chain(leaf, &at, BreakReason::Cycle, rules.cycle, message, report));
            }
            if read.len() > MAX_ANCESTORS {
                let message = format!("there are more than {MAX_ANCESTORS} ancestors");
                return Err(self.break_chain(leaf, &at, BreakReason::TooDeep, rules.depth, message, report));
            }
            match self.read(&location, rules.doctype) {
                ReadResult::Document(document) => {
                    read.push(Arc::clone(&document));
                    at = document;
                }
                ReadResult::Missing => {
                    let message = format!("the parent `{}` does not exist", self.display_name(&location));
                    return Err(self.break_chain(
                        leaf,
                        &at,
                        BreakReason::Missing,
                        rules.missing,
                        message,
                        report,
                    ));
                }
                ReadResult::Outside => return Err(self.refuse_escape(leaf, &at, report)),
                ReadResult::Unreadable(why) => {
                    let message =
                        format!("the parent `{}` cannot be read: {why}", self.display_name(&location));
                    self.refuse(codes::FILE_UNREADABLE, leaf, &at, Body::new(message), report);
                    return Err(WalkError::Refused);
                }
            }
        }
        if read.iter().all(|document| document.is_readable()) { Ok(()) } else { Err(WalkError::Refused) }
    }

    fn refuse_escape(&self, leaf: &Document, at: &Document, report: &mut Report) -> WalkError {
        let extends = at.root.text_of("extends").unwrap_or_default();
        let help = match at.path.scope() {
            Scope::Workspace => {
                "move the parent into the workspace: below the outermost quorate.toml, or below --root without one"
            }
            Scope::Tenant(_) => "extend a file of the same tenant or of the workspace, not of another tenant",
        };
        let body =
            Body::new(format!("the parent `{extends}` lies outside the tenant or the workspace")).help(help);
        self.refuse(codes::EXTENDS_ESCAPE, leaf, at, body, report);
        WalkError::Refused
    }

    /// Reports a broken chain: a warning, or a refusal with `strict_chain`, since the parent's minimums are lost.
    fn break_chain(
        &self,
        leaf: &Document,
        at: &Document,
        broken: BreakReason,
        code: WarningCode,
        message: String,
        report: &mut Report,
    ) -> WalkError {
        if self.options.strict_chain {
            let body = Body::new(message)
                .help("strict_chain is on: without the parent, its minimums would not apply");
            self.refuse(codes::CHAIN_BROKEN, leaf, at, body, report);
            return WalkError::Refused;
        }
        let body = Body::new(format!("{message}; `{}` is loaded by itself", leaf.shown)).help(
            "the parents' rules do not apply; set `strict_chain = true` in quorate.toml to refuse this",
        );
        sources(at, leaf, report);
        report.warn(code, at_extends(body, leaf, at));
        WalkError::Broken(broken)
    }

    fn refuse(&self, code: RefusalCode, leaf: &Document, at: &Document, body: Body, report: &mut Report) {
        sources(at, leaf, report);
        report.refuse(code, at_extends(body, leaf, at));
    }
}

/// Places a diagnostic at the `extends` of the requested manifest, and relates the failing `extends` if it is another.
fn at_extends(body: Body, leaf: &Document, at: &Document) -> Body {
    let body = body.at(leaf.value_place("extends"));
    if leaf.path == at.path {
        body
    } else {
        body.related(at.value_place("extends"), "cannot load this parent")
    }
}

fn sources(at: &Document, leaf: &Document, report: &mut Report) {
    for document in [at, leaf] {
        report.add_source(Arc::clone(&document.shown), Arc::clone(&document.text));
    }
}

enum WalkError {
    Broken(BreakReason),
    Refused,
}

fn single_document(leaf: &Arc<Document>) -> Chain {
    Chain { documents: vec![Arc::clone(leaf)], merged: leaf.root.clone() }
}

fn extend_chain(above: &Chain, leaf: &Arc<Document>, table: Table) -> Chain {
    let mut root = leaf.root.clone();
    root.set_layer(u8::try_from(above.documents.len()).expect("a chain has at most nine layers"));
    let mut documents = above.documents.clone();
    documents.push(Arc::clone(leaf));
    Chain { merged: merge(&above.merged, &root, table), documents }
}
