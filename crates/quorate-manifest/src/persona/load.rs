//! From a file to a resolved persona: its document, its chain, what its refs lead to, and its prompt's text.

use std::sync::Arc;

use quorate_diagnostics::codes::{self, WarningCode};
use quorate_diagnostics::{Body, Place, Report};

use super::{Persona, merge};
use crate::Loaded;
use crate::doctype::Doctype;
use crate::document::Document;
use crate::loader::{self, Chain, ChainOutcome, Loader, ReadResult, Reference, Refs};
use crate::tree::Node;
use crate::workspace::{Scope, WorkspacePath};

const CHAIN_RULES: loader::ChainRules = loader::ChainRules {
    doctype: Doctype::Persona,
    table: merge::TABLE,
    cycle: codes::PERSONA_EXTENDS_CYCLE,
    missing: codes::PERSONA_EXTENDS_MISSING,
    depth: codes::PERSONA_EXTENDS_DEPTH_EXCEEDED,
};

/// A persona as it speaks: merged along its chain.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub persona: Persona,
    /// The prompt's text: the body of the nearest document that has one.
    pub body: String,
    /// The chain that it was made of.
    pub chain: Arc<Chain>,
}

/// A persona that a ref leads to, or why it leads to none.
pub type Lookup = Result<FoundPersona, Box<LookupError>>;

/// What a ref to a persona leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPersona {
    pub path: WorkspacePath,
    /// What people call it.
    pub title: String,
}

/// Why a ref leads to no persona.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupError {
    /// Why, as the end of a sentence.
    pub reason: String,
    /// What to do, where it is known.
    pub help: Option<String>,
    /// What is wrong in the persona's own file.
    pub related: Option<(Place, String)>,
}

/// Loads a persona whose manifest was read.
pub fn load(loader: &Loader<'_>, leaf: &Arc<Document>) -> Loaded<Resolved> {
    let mut report = Report::new();
    let ChainOutcome { chain, report: said, visited: read, .. } = loader.chain(leaf, &CHAIN_RULES);
    read.iter().for_each(|document| report.absorb(document.report.clone()));
    report.absorb(said);
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
    let value = persona.map(|persona| Resolved { persona, body, chain });
    Loaded { value: value.filter(|_| !report.has_refusals()), report }
}

/// Refs of personas are warnings, but for those that lead out of the tenant.
fn check_references(loader: &Loader<'_>, chain: &Chain, report: &mut Report) {
    let root = &chain.merged;
    let mut look = |node: &Node, path: String, code: WarningCode| {
        let Some(text) = node.as_str() else { return };
        let Err(unresolved) = loader.resolve(&chain.document_of(node).path, text) else { return };
        let body = Body::new(format!("`{path}` is `{text}`, and cannot be resolved: {}", unresolved.reason));
        let body = body.at(chain.place(node, path));
        if unresolved.outside_scope {
            let help = "name something of the same tenant or workspace";
            report.refuse(codes::PERSONA_XREF_CROSS_TENANT, body.help(help));
        } else {
            report.warn(code, body.help(unresolved.help("correct the ref, or make what it names")));
        }
    };
    if let Some(node) = root.key("identity") {
        look(node, "identity".to_owned(), codes::PERSONA_IDENTITY_UNRESOLVABLE);
    }
    let items = |keys: &[&str]| root.at_path(keys).map_or(&[][..], Node::items);
    for (at, node) in items(&["appliesTo"]).iter().enumerate() {
        look(node, format!("appliesTo[{at}]"), codes::PERSONA_APPLIESTO_UNRESOLVABLE);
    }
    for (at, item) in items(&["relationships"]).iter().enumerate() {
        if let Some(node) = item.key("persona") {
            look(node, format!("relationships[{at}].persona"), codes::PERSONA_RELATIONSHIP_UNRESOLVABLE);
        }
    }
    for (at, item) in items(&["boundaries", "redirects"]).iter().enumerate() {
        if let Some(node) = item.key("to") {
            look(node, format!("boundaries.redirects[{at}].to"), codes::PERSONA_REDIRECT_UNRESOLVABLE);
        }
    }
}

impl Loader<'_> {
    /// The persona that a ref leads to from a file, in that file's scope (M10).
    pub fn find_persona(&self, from: &WorkspacePath, reference: &str) -> Arc<Lookup> {
        let path = Reference::parse(reference)
            .filter(|reference| reference.collection == "personas")
            .ok_or_else(|| "it is no ref to a persona".to_owned())
            .and_then(|read| read.path(from.scope()).map_err(|unresolved| unresolved.reason));
        let path = match path {
            Ok(location) => location,
            Err(why) => {
                return Arc::new(Err(Box::new(LookupError { reason: why, help: None, related: None })));
            }
        };
        if let Some(found) = self.personas.borrow().get(&path) {
            return Arc::clone(found);
        }
        let found = Arc::new(self.load_persona(from, reference, &path));
        self.personas.borrow_mut().insert(path, Arc::clone(&found));
        found
    }

    fn load_persona(&self, from: &WorkspacePath, reference: &str, location: &WorkspacePath) -> Lookup {
        let unmet = |why: String| Box::new(LookupError { reason: why, help: None, related: None });
        if let Err(unresolved) = self.resolve(from, reference) {
            // A persona of the workspace is not its tenants'.
            let above = Reference::parse(reference).and_then(|read| read.path(&Scope::Workspace).ok());
            let above = above.filter(|_| *from.scope() != Scope::Workspace);
            let help =
                above.filter(|above| matches!(self.presence(above), loader::Presence::File)).map(|above| {
                    format!("there is `{}`, but a tenant has personas of its own", self.display_name(&above))
                });
            let near = unresolved.suggestion.map(|near| format!("did you mean `{near}`?"));
            return Err(Box::new(LookupError {
                reason: unresolved.reason,
                help: help.or(near),
                related: None,
            }));
        }
        let document = match self.read(location, Doctype::Persona) {
            ReadResult::Document(document) => document,
            ReadResult::Missing => return Err(unmet("it is not there".to_owned())),
            ReadResult::Outside => {
                return Err(unmet(
                    "it leads out of its workspace or tenant; `--root` names a wider workspace".to_owned(),
                ));
            }
            ReadResult::Unreadable(why) => {
                return Err(unmet(format!("`{}` cannot be read: {why}", self.display_name(location))));
            }
        };
        let loaded = load(self, &document);
        match loaded.value {
            Some(resolved) => Ok(FoundPersona { path: location.clone(), title: resolved.persona.title }),
            None => {
                let first = loaded.report.refusals.first();
                let related = first.and_then(|one| Some((one.body.place.clone()?, one.body.message.clone())));
                let help = Some(format!("correct it first: `quorate check {}`", self.display_name(location)));
                Err(Box::new(LookupError {
                    reason: format!("`{}` is refused", self.display_name(location)),
                    help,
                    related,
                }))
            }
        }
    }
}
