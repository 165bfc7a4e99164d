//! Loads a persona: resolves its chain, merges the keys (AIP-25), checks its refs, and selects its prompt's text.

use std::sync::Arc;

use quorate_diagnostics::codes::{self, WarningCode};
use quorate_diagnostics::text::shell_quoted;
use quorate_diagnostics::{Body, Report};

use super::Persona;
use crate::Loaded;
use crate::doctype::Doctype;
use crate::document::Document;
use crate::loader::{
    self, Chain, ChainOutcome, FoundPersona, Loader, PersonaLookup, PersonaLookupError, ReadResult,
    Reference, Refs,
};
use crate::merge::Strategy::{ById, Deep, Fields, Local, Union};
use crate::merge::Table;
use crate::tree::Node;
use crate::workspace::{Scope, WorkspaceError, WorkspacePath};

/// AIP-25's table. A child's value of a key that is not listed overrides, and so does a non-blank body.
const TABLE: Table = &[
    ("extends", Local),
    ("backstory", Fields(&[("archetypes", Union)])),
    ("voice", Fields(&[("signaturePhrases", Union), ("tonality", Union)])),
    ("boundaries", Fields(&[("refuses", Union), ("defers", Union), ("redirects", ById("topic"))])),
    ("multilingual", Union),
    ("relationships", ById("persona")),
    ("appliesTo", Local),
    ("tags", Union),
    ("metadata", Deep),
];

const CHAIN_RULES: loader::ChainRules = loader::ChainRules {
    doctype: Doctype::Persona,
    table: TABLE,
    cycle: codes::PERSONA_EXTENDS_CYCLE,
    missing: codes::PERSONA_EXTENDS_MISSING,
    depth: codes::PERSONA_EXTENDS_DEPTH_EXCEEDED,
};

/// A persona merged along its chain.
#[derive(Debug, Clone)]
pub struct ResolvedPersona {
    pub persona: Persona,
    /// The prompt's text: the non-blank body nearest to the leaf.
    pub body: String,
    pub chain: Arc<Chain>,
}

/// Loads a persona from its document.
pub fn load_persona(loader: &Loader<'_>, leaf: &Arc<Document>) -> Loaded<ResolvedPersona> {
    let mut report = Report::new();
    let ChainOutcome { chain, report: chain_report, visited, .. } = loader.chain(leaf, &CHAIN_RULES);
    visited.iter().for_each(|document| report.absorb(document.report.clone()));
    report.absorb(chain_report);
    let Some(chain) = chain else { return Loaded { value: None, report } };
    for document in &chain.documents {
        report.add_source(Arc::clone(&document.shown), Arc::clone(&document.text));
    }
    if loader.options.refs == Refs::Followed {
        check_references(loader, &chain, &mut report);
    }
    let persona: Option<Persona> = leaf.deserialize(&chain.merged, &mut report);
    let body =
        chain.documents.iter().rev().map(|document| document.body()).find(|body| !body.trim().is_empty());
    let body = body.unwrap_or_default().to_owned();
    let value = persona.map(|persona| ResolvedPersona { persona, body, chain });
    Loaded { value: value.filter(|_| !report.has_refusals()), report }
}

/// Warns of unresolved refs; refuses refs that lead out of the tenant.
fn check_references(loader: &Loader<'_>, chain: &Chain, report: &mut Report) {
    let root = &chain.merged;
    let mut check = |node: &Node, path: String, code: WarningCode| {
        let Some(text) = node.as_str() else { return };
        let Err(unresolved) = loader.resolve(&chain.document_of(node).path, text) else { return };
        let body =
            Body::new(format!("`{path}` is `{text}`, which cannot be resolved: {}", unresolved.reason));
        let body = body.at(chain.place(node, path));
        if unresolved.outside_scope {
            let help = "name something of the same tenant or workspace";
            report.refuse(codes::PERSONA_XREF_CROSS_TENANT, body.help(help));
        } else {
            report.warn(code, body.help(unresolved.help("correct the ref, or create its target")));
        }
    };
    if let Some(node) = root.key("identity") {
        check(node, "identity".to_owned(), codes::PERSONA_IDENTITY_UNRESOLVABLE);
    }
    let items = |keys: &[&str]| root.items_at(keys);
    for (at, node) in items(&["appliesTo"]).iter().enumerate() {
        check(node, format!("appliesTo[{at}]"), codes::PERSONA_APPLIESTO_UNRESOLVABLE);
    }
    for (at, item) in items(&["relationships"]).iter().enumerate() {
        if let Some(node) = item.key("persona") {
            check(node, format!("relationships[{at}].persona"), codes::PERSONA_RELATIONSHIP_UNRESOLVABLE);
        }
    }
    for (at, item) in items(&["boundaries", "redirects"]).iter().enumerate() {
        if let Some(node) = item.key("to") {
            check(node, format!("boundaries.redirects[{at}].to"), codes::PERSONA_REDIRECT_UNRESOLVABLE);
        }
    }
}

fn lookup_error(reason: String) -> Box<PersonaLookupError> {
    Box::new(PersonaLookupError { reason, help: None, related: None })
}

impl Loader<'_> {
    /// The persona that a ref leads to from a file, in that file's scope (M10).
    pub fn find_persona(&self, from: &WorkspacePath, reference: &str) -> Arc<PersonaLookup> {
        let path = Reference::parse(reference)
            .filter(|reference| reference.collection == "personas")
            .ok_or_else(|| "it is not a ref to a persona".to_owned())
            .and_then(|reference| reference.path(from.scope()).map_err(|unresolved| unresolved.reason));
        let path = match path {
            Ok(location) => location,
            Err(reason) => return Arc::new(Err(lookup_error(reason))),
        };
        if let Some(found) = self.personas.borrow().get(&path) {
            return Arc::clone(found);
        }
        let found = Arc::new(self.load_persona(from, reference, &path));
        self.personas.borrow_mut().insert(path, Arc::clone(&found));
        found
    }

    fn load_persona(&self, from: &WorkspacePath, reference: &str, location: &WorkspacePath) -> PersonaLookup {
        if let Err(unresolved) = self.resolve(from, reference) {
            // Tenants do not share the workspace's personas.
            let above =
                Reference::parse(reference).and_then(|reference| reference.path(&Scope::Workspace).ok());
            let above = above.filter(|_| *from.scope() != Scope::Workspace);
            let help =
                above.filter(|above| matches!(self.presence(above), loader::Presence::File)).map(|above| {
                    format!(
                        "`{}` exists, but a tenant cannot use the workspace's personas",
                        self.display_name(&above)
                    )
                });
            let near = unresolved.suggestion.map(|near| format!("did you mean `{near}`?"));
            return Err(Box::new(PersonaLookupError {
                reason: unresolved.reason,
                help: help.or(near),
                related: None,
            }));
        }
        let document = match self.read(location, Doctype::Persona) {
            ReadResult::Document(document) => document,
            ReadResult::Missing => return Err(lookup_error("it does not exist".to_owned())),
            ReadResult::Outside => return Err(lookup_error(WorkspaceError::Outside.to_string())),
            ReadResult::Unreadable(why) => {
                return Err(lookup_error(format!("`{}` cannot be read: {why}", self.display_name(location))));
            }
        };
        let loaded = load_persona(self, &document);
        match loaded.value {
            Some(resolved) => Ok(FoundPersona { path: location.clone(), title: resolved.persona.title }),
            None => {
                let first = loaded.report.refusals.first();
                let related = first
                    .and_then(|refusal| Some((refusal.body.place.clone()?, refusal.body.message.clone())));
                let shown = shell_quoted(&self.display_name(location));
                let help = Some(format!("correct it first: `quorate check {shown}`"));
                Err(Box::new(PersonaLookupError {
                    reason: format!("`{}` is refused", self.display_name(location)),
                    help,
                    related,
                }))
            }
        }
    }
}
