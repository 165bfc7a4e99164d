//! Weave: the prompt of a persona, with the overlays that hold.

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_ledger::Store;
use quorate_manifest::doctype::Doctype;
use quorate_manifest::operator;
use quorate_manifest::persona;
use quorate_manifest::round::{Read, Reference, Refs, Round};
use quorate_manifest::workspace::{Scope, Spot};
use quorate_playbook::persona::prompt;
use quorate_playbook::weave::{Overlay, Woven, weave as into};
use quorate_protocol::{assembly, overlay};

use super::environment::Environment;
use super::host::Host;
use super::manifests::{Manifests, missing, root_of};
use super::overlays;
use super::stop::{Class, Stop};
use super::workspace::{self, Places, absolute};

/// What is to be woven.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The persona: a slug, or a `ws://` ref.
    pub persona: String,
    /// Only the overlays of this assembly, whoever they are for.
    pub assembly: Option<String>,
    /// The workspace's root, where it is not to be found by itself.
    pub root: Option<PathBuf>,
}

/// A prompt, and what went into it.
#[derive(Debug)]
pub struct Prompt {
    /// The persona's ref.
    pub persona: String,
    /// The prompt.
    pub woven: Woven,
    /// The overlays that it was woven from, by id.
    pub overlays: Vec<overlay::Overlay>,
    /// SHA-256 of the prompt, hexadecimal.
    pub sha256: String,
    /// Warnings.
    pub report: Report,
}

/// Weaves.
///
/// # Errors
/// When the persona is not there or refused, or the ledger cannot be read. Without a ledger there are no overlays.
pub async fn weave(
    environment: &Environment,
    places: &Places,
    request: &Request,
    host: &Host,
) -> Result<Prompt, Stop> {
    let (root, scope) = place(environment, request.root.as_deref());
    let manifests = Manifests::open(environment, &root, Refs::Followed)?;
    let round = manifests.round(host);
    let written = &request.persona;
    let reference =
        if written.contains("://") { written.clone() } else { format!("ws://personas/{written}") };
    let (base, mut report) = base(&round, &scope, &reference)?;
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
    let for_it: Vec<overlay::Overlay> = match &request.assembly {
        Some(_) => standing,
        None => {
            let operators = operators(&round, &scope, &reference);
            standing.into_iter().filter(|one| operators.contains(&one.operator)).collect()
        }
    };
    let woven = woven(&base, &for_it, environment.clock.now_ms());
    let sha256 = sha256_hex(woven.prompt.as_bytes());
    Ok(Prompt { persona: reference, woven, overlays: for_it, sha256, report })
}

/// A base prompt with overlays of advisory runs in it.
pub(super) fn woven(base: &str, overlays: &[overlay::Overlay], now_ms: i64) -> Woven {
    let given = |one: &overlay::Overlay| Overlay {
        id: one.overlay.clone(),
        text: one.text.clone(),
        priority: one.priority,
        written_ms: one.added_ms,
        expires_ms: one.expires_ms,
    };
    let given: Vec<Overlay> = overlays.iter().map(given).collect();
    into(base, &given, now_ms)
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
pub(super) fn base(round: &Round<'_>, scope: &Scope, reference: &str) -> Result<(String, Report), Stop> {
    let spot = Reference::read(reference).and_then(|read| read.spot(scope).ok());
    let Some(spot) = spot else {
        let body = Body::new(format!("`{reference}` is no ref to a persona"));
        return Err(Stop::new(
            Class::Usage,
            codes::USAGE,
            body.help("write its slug, or ws://personas/<slug>"),
        ));
    };
    let layer = match round.read(&spot, Doctype::Persona) {
        Read::Layer(layer) => layer,
        Read::Missing | Read::Outside => return Err(missing(&round.shown(&spot))),
        Read::Unreadable(why) => {
            let body = Body::new(format!("`{}` cannot be read: {why}", round.shown(&spot)));
            return Err(Stop::configuration(codes::FILE_UNREADABLE, body));
        }
    };
    let loaded = persona::load::load(round, &layer);
    match loaded.value {
        Some(persona) => Ok((prompt(&persona), loaded.report)),
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
