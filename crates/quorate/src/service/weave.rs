//! Weave: the prompt of an operator or a persona, with the playbooks and overlays that hold.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_ledger::Store;
use quorate_manifest::doctype::Doctype;
use quorate_manifest::layer::Layer;
use quorate_manifest::operator::{self, Operator};
use quorate_manifest::persona;
use quorate_manifest::playbook::Status;
use quorate_manifest::playbook::shelf::{self, Shelf};
use quorate_manifest::round::{Read, Reference, Refs, Round};
use quorate_manifest::workspace::{Scope, Spot};
use quorate_playbook::base::Base;
use quorate_playbook::bind::{RUNTIME, SKILL, Subject};
use quorate_playbook::weave::{Origin, Overlay, Place, Woven, weave as into};
use quorate_protocol::{assembly, overlay};

use super::environment::Environment;
use super::host::Host;
use super::manifests::{Manifests, missing, root_of};
use super::stop::{Class, Stop};
use super::workspace::{self, Places, absolute};
use super::{overlays, playbooks};

/// What is to be woven.
#[derive(Debug, Clone)]
pub struct Request {
    /// Into whose prompt.
    pub who: Who,
    /// Only the overlays of this assembly, whoever they are for.
    pub assembly: Option<String>,
    /// The skill that is used; without it every one that the operator has.
    pub skill: Option<String>,
    /// The runtime that it works in; without it the operator's.
    pub runtime: Option<String>,
    /// The workspace's root, where it is not to be found by itself.
    pub root: Option<PathBuf>,
}

/// Whose prompt it is: a slug, or a `ws://` ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// An operator's: playbooks are for operators.
    Operator(String),
    /// A persona's, whoever it is: with the overlays of all operators that are this persona.
    Persona(String),
}

/// A prompt, and what went into it.
#[derive(Debug)]
pub struct Prompt {
    /// The ref of the operator or persona.
    pub reference: String,
    /// Whether it is an operator's.
    pub is_operator: bool,
    /// The prompt without anything woven in.
    pub base: String,
    /// The prompt.
    pub woven: Woven,
    /// The overlays of assemblies that it was woven from, by id.
    pub overlays: Vec<overlay::Overlay>,
    /// The playbooks that are for it and not active, with their status.
    pub resting: Vec<(String, &'static str)>,
    /// SHA-256 of the prompt, hexadecimal.
    pub sha256: String,
    /// Warnings, and what is wrong with playbooks.
    pub report: Report,
}

impl Prompt {
    /// About how many tokens the prompt has: a fourth of its characters.
    pub fn tokens(&self) -> usize {
        self.woven.prompt.chars().count().div_ceil(4)
    }
}

/// Whose prompt it is, resolved.
struct Whose {
    reference: String,
    base: Base,
    /// Whose overlays are woven.
    operators: Vec<String>,
    /// Whom playbooks are held against.
    subject: Option<Subject>,
    report: Report,
}

/// Weaves.
///
/// # Errors
/// When the operator or the persona is not there or refused, or the ledger cannot be read. Without a ledger there are
/// no overlays.
pub async fn weave(
    environment: &Environment,
    places: &Places,
    request: &Request,
    host: &Host,
) -> Result<Prompt, Stop> {
    let (root, scope) = place(environment, request.root.as_deref());
    let manifests = Manifests::open(environment, &root, Refs::Followed)?;
    let round = manifests.round(host);
    let Whose { reference, base, operators, subject, mut report } = whose(&round, &scope, request)?;
    let shelf = match &subject {
        Some(_) => shelf::open(&round, &scope),
        None => Shelf::default(),
    };
    let books = subject.map(|subject| playbooks::bound(&shelf, &subject)).unwrap_or_default();
    let workspace = workspace::load(environment, places, &root)?;
    report.absorb(workspace.report);
    let standing = match workspace.ledger.is_file() {
        true => {
            let store = Store::open(&workspace.ledger).await?.store;
            let standing = overlays::holding(&store, request.assembly.as_deref()).await;
            store.close().await;
            standing?
        }
        false => Vec::new(),
    };
    let of_it = |one: &overlay::Overlay| request.assembly.is_some() || operators.contains(&one.operator);
    let for_it: Vec<overlay::Overlay> = standing.into_iter().filter(of_it).collect();
    let mut all = playbooks::overlays(&books);
    all.extend(for_it.iter().map(advised));
    let woven = into(&base, &all, environment.clock.now_ms());
    let resting = books.iter().filter_map(|book| match book.playbook.status {
        Status::Active => None,
        Status::Shadow => Some((book.playbook.slug.clone(), "in shadow")),
        Status::Archived => Some((book.playbook.slug.clone(), "archived")),
    });
    let resting = resting.collect();
    report.absorb(shelf.report);
    let (is_operator, base) = (matches!(request.who, Who::Operator(_)), base.prompt());
    let sha256 = sha256_hex(woven.prompt.as_bytes());
    Ok(Prompt { reference, is_operator, base, woven, overlays: for_it, resting, sha256, report })
}

fn whose(round: &Round<'_>, scope: &Scope, request: &Request) -> Result<Whose, Stop> {
    let full = |written: &str, collection: &str| match written.contains("://") {
        true => written.to_owned(),
        false => format!("ws://{collection}/{written}"),
    };
    match &request.who {
        Who::Persona(written) => {
            let reference = full(written, "personas");
            let (base, report) = base(round, scope, &reference)?;
            let operators = operators(round, scope, &reference);
            Ok(Whose { reference, base, operators, subject: None, report })
        }
        Who::Operator(written) => {
            let reference = full(written, "operators");
            let Operating { operator, base, report } = operating(round, scope, &reference)?;
            let mut subject = Subject::of(&operator);
            if let Some(skill) = &request.skill {
                subject = subject.only(SKILL, skill);
            }
            if let Some(runtime) = request.runtime.as_ref().or(operator.runtime.as_ref()) {
                subject = subject.only(RUNTIME, runtime);
            }
            let operators = vec![assembly::operator(scope, &operator.id)];
            Ok(Whose { reference, base, operators, subject: Some(subject), report })
        }
    }
}

/// An operator, and what it is told.
pub(super) struct Operating {
    /// Its manifest.
    pub(super) operator: Operator,
    /// Its prompt: its persona's, or for want of one its own body.
    pub(super) base: Base,
    /// Warnings.
    pub(super) report: Report,
}

/// Loads an operator by its ref.
pub(super) fn operating(round: &Round<'_>, scope: &Scope, reference: &str) -> Result<Operating, Stop> {
    let layer = layer(round, scope, reference, Doctype::Operator)?;
    let loaded = operator::load::load(round, &layer);
    let Some(operator) = loaded.value else { return Err(Stop::report(Class::Configuration, loaded.report)) };
    let mut report = loaded.report;
    let base = match &operator.persona {
        None => Base::body(layer.body().trim()),
        Some(persona) => {
            let full =
                if persona.contains("://") { persona.clone() } else { format!("ws://personas/{persona}") };
            let (base, more) = base(round, scope, &full)?;
            report.absorb(more);
            base
        }
    };
    Ok(Operating { operator, base, report })
}

/// The manifest that a ref leads to.
fn layer(round: &Round<'_>, scope: &Scope, reference: &str, doctype: Doctype) -> Result<Arc<Layer>, Stop> {
    let Some(spot) = Reference::read(reference).and_then(|read| read.spot(scope).ok()) else {
        let kind = doctype.word();
        let body = Body::new(format!("`{reference}` is no ref to a manifest of a kind `{kind}`"));
        let help = format!("write its slug, or ws://{kind}s/<slug>");
        return Err(Stop::new(Class::Usage, codes::USAGE, body.help(help)));
    };
    match round.read(&spot, doctype) {
        Read::Layer(layer) => Ok(layer),
        Read::Missing | Read::Outside => Err(missing(&round.shown(&spot))),
        Read::Unreadable(why) => {
            let body = Body::new(format!("`{}` cannot be read: {why}", round.shown(&spot)));
            Err(Stop::configuration(codes::FILE_UNREADABLE, body))
        }
    }
}

/// A base prompt with overlays of advisory runs in it.
pub(super) fn woven(base: &Base, overlays: &[overlay::Overlay], now_ms: i64) -> Woven {
    into(base, &overlays.iter().map(advised).collect::<Vec<_>>(), now_ms)
}

fn advised(one: &overlay::Overlay) -> Overlay {
    Overlay {
        id: one.overlay.clone(),
        origin: Origin::Advisory,
        text: one.text.clone(),
        place: Place::Added,
        priority: one.priority,
        written_ms: Some(one.added_ms),
        expires_ms: Some(one.expires_ms),
    }
}

/// The workspace and the scope in it that was said, or that the working directory lies in (M10): a tenant's folder is no
/// workspace of its own.
fn place(environment: &Environment, said: Option<&Path>) -> (PathBuf, Scope) {
    let start =
        said.map_or_else(|| environment.directory.clone(), |said| absolute(&environment.directory, said));
    let root = root_of(environment, None, &start);
    let below = start.strip_prefix(&root).ok().and_then(Path::to_str).unwrap_or_default();
    // A file there lies in the tenant's scope, the folder itself does not.
    let scope =
        Spot::new(&format!("{below}/PERSONA.md")).map_or(Scope::Workspace, |spot| spot.scope().clone());
    match (&scope, said) {
        (Scope::Workspace, Some(_)) => (start, scope),
        _ => (root, scope),
    }
}

/// The persona's own prompt.
pub(super) fn base(round: &Round<'_>, scope: &Scope, reference: &str) -> Result<(Base, Report), Stop> {
    let layer = layer(round, scope, reference, Doctype::Persona)?;
    let loaded = persona::load::load(round, &layer);
    match loaded.value {
        Some(persona) => Ok((Base::persona(&persona), loaded.report)),
        None => Err(Stop::report(Class::Configuration, loaded.report)),
    }
}

/// The operators of a scope that are this persona, as overlays name them.
pub(super) fn operators(round: &Round<'_>, scope: &Scope, reference: &str) -> Vec<String> {
    let folder = match scope.folder() {
        top if top.is_empty() => "operators".to_owned(),
        tenant => format!("{tenant}/operators"),
    };
    let Ok(spot) = Spot::new(&folder) else { return Vec::new() };
    let is_it = |slug: &String| {
        let spot = Spot::new(&format!("{folder}/{slug}/OPERATOR.md")).ok()?;
        let Read::Layer(layer) = round.read(&spot, Doctype::Operator) else { return None };
        let persona = operator::load::load(round, &layer).value?.persona?;
        let full = if persona.contains("://") { persona } else { format!("ws://personas/{persona}") };
        (full == reference).then(|| assembly::operator(scope, slug))
    };
    round.names(&spot).iter().filter_map(is_it).collect()
}
