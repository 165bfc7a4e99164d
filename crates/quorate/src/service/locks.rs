//! Locks: shows where an assembly's locked traits hit a text, for authors who tune them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::text::LineIndex;
use quorate_diagnostics::{Body, Report, codes};
use quorate_manifest::Capabilities;
use quorate_manifest::assembly::MatchMode;
use quorate_manifest::assembly::load::Resolved;
use quorate_manifest::loader::Refs;
use quorate_manifest::tree::Node;
use quorate_playbook::lock as playbook;
use quorate_protocol::locks::{Hit, Locks, Trait};

use super::artifact::{self, Subject};
use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::manifests;
use super::manifests::Manifests;
use super::operators;
use super::playbook::exceptions::Exceptions;
use super::playbook::known_operator::KnownOperator as Operator;
use super::resolve;
use super::workspace::{self, PathOverrides};

#[derive(Debug, Clone)]
pub struct Request {
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
pub fn test(
    environment: &Environment,
    request: &Request,
    host: &dyn Capabilities,
) -> Result<LockTest, ServiceError> {
    let asked =
        resolve::Request { path: request.path.clone(), root: request.root.clone(), refs: Refs::ShapeOnly };
    let view = resolve::resolve(environment, &asked, host).map_err(refused_as_configuration)?;
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
    host: &dyn Capabilities,
) -> Result<Vec<Arc<playbook::Trait>>, ServiceError> {
    let (root, scope) = manifests::root_and_scope(environment, root);
    let workspace = workspace::load(environment, places, &root)?;
    let manifests = Manifests::open(environment, &root, Refs::Followed)?;
    let loader = manifests.loader(host);
    let operating = operators::load_operator(&loader, &scope, &operators::full_ref(operator, "operators"))?;
    Ok(Operator::new(operating, &workspace.host, &Exceptions::default()).traits)
}

/// A refused assembly is unusable input here: with exit code 1 it would look like an answer about the text.
fn refused_as_configuration(error: ServiceError) -> ServiceError {
    match error.class {
        ExitClass::Refused => ServiceError { class: ExitClass::Configuration, ..error },
        _ => error,
    }
}

/// The traits, with the places that declare them.
fn trait_declarations(resolved: &Resolved) -> Vec<TraitHits> {
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
