//! Weave: composes the prompt of an operator or a persona with its active playbooks and overlays.

use std::path::PathBuf;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_ledger::Store;
use quorate_manifest::loader::{Loader, Refs};
use quorate_manifest::playbook::{FOLDER, Status};
use quorate_manifest::workspace::Scope;
use quorate_playbook::bind::{RUNTIME, SKILL};
use quorate_playbook::log::NEVER_GATED;
use quorate_playbook::persona::BasePrompt;
use quorate_playbook::weave::{Candidate, Composition, ShadowPrompt, WovenOverlay};
use quorate_protocol::Json;
use serde::Serialize;

use super::compose::{self, Sources};
use super::diff::unified;
use super::environment::Environment;
use super::error::Error;
use super::manifests::{Manifests, root_and_scope};
use super::overlays;
use super::workspace::{self, PathOverrides, Workspace};
use crate::playbook::change::pending_change;
use crate::playbook::library::{
    Catalogue, KnownOperator, LoadedOperator, full_ref, load_operator, operators_of, persona_prompt,
};
use crate::playbook::traits::Exceptions;
use crate::view::Doc;

/// Whose prompt to compose, and in which circumstances
///
/// ```
/// use quorate::playbook::{WeaveRequest, WeaveTarget};
///
/// let target = WeaveTarget::Operator("alice".to_owned());
/// let request = WeaveRequest { trying: Some("cite".to_owned()), ..WeaveRequest::new(target) };
/// assert_eq!(request.root, None, "it searches for the workspace");
/// ```
#[derive(Debug, Clone)]
pub struct WeaveRequest {
    /// The operator or the persona, as a slug or a `ws://` ref
    pub target: WeaveTarget,
    /// Weaves only the overlays of this assembly, whatever operator they are for
    pub assembly: Option<String>,
    /// The skill in use; `None` for every skill of the operator
    pub skill: Option<String>,
    /// The runtime in which the operator works; `None` for the runtime of its manifest
    pub runtime: Option<String>,
    /// A shadow playbook to weave as if it were active
    pub trying: Option<String>,
    /// The workspace's root; `None` searches for it
    pub root: Option<PathBuf>,
}

impl WeaveRequest {
    /// The prompt of an operator or a persona, with all of its active playbooks and overlays.
    pub fn new(target: WeaveTarget) -> Self {
        WeaveRequest { target, assembly: None, skill: None, runtime: None, trying: None, root: None }
    }
}

/// The operator or the persona of a prompt
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WeaveTarget {
    /// An operator, which playbooks can target
    Operator(String),
    /// A persona, with the overlays of all operators that have it
    Persona(String),
}

/// A composed prompt and its parts
#[derive(Debug, Clone, Serialize)]
pub struct ComposedPrompt {
    /// The operator or the persona, as a ref
    #[serde(flatten)]
    pub target: WeaveTarget,
    /// An estimate of the prompt's tokens: a fourth of its characters
    pub tokens: usize,
    /// The prompt
    pub prompt: String,
    /// SHA-256 of the prompt, in hexadecimal
    pub sha256: String,
    /// The woven playbooks and overlays, in the order of the prompt
    pub woven: Vec<WovenPart>,
    /// The playbooks and overlays that were not woven
    pub skipped: Vec<SkippedPart>,
    /// The shadow playbook that was requested
    pub trying: Option<String>,
    /// The hash of the prompt with each playbook in shadow, or why there is none
    pub shadows: Json,
    /// The prompt before weaving
    #[serde(skip)]
    pub base: String,
}

/// A playbook or an overlay in a prompt
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WovenPart {
    /// The playbook or overlay
    #[serde(flatten)]
    pub source: PartSource,
    /// The priority that it was woven with
    pub priority: u8,
    /// The block that it replaces
    pub block: Option<String>,
    /// Whether a playbook is active although no gate passed its text
    #[serde(skip_serializing_if = "Option::is_none")]
    pub never_gated: Option<bool>,
    /// The run of an overlay, and the author of its words
    #[serde(skip)]
    pub origin: Option<(String, String)>,
}

/// Where a part of a prompt comes from
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PartSource {
    /// A playbook, by its slug
    Playbook(String),
    /// An overlay of an advisory run, by its id
    Overlay(String),
}

/// A playbook or an overlay that is not in the prompt
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedPart {
    /// The playbook's slug, or the overlay's id
    pub id: String,
    /// The reason
    pub why: String,
}

impl ComposedPrompt {
    /// The playbooks and overlays that were woven, and those that were not.
    pub fn summary(&self) -> Doc {
        self.doc_with(Vec::new())
    }

    /// The summary, and the length and hash of the prompt.
    pub fn doc(&self) -> Doc {
        let size = format!("{} characters, about {} tokens", self.prompt.chars().count(), self.tokens);
        self.doc_with(vec![("prompt", size), ("sha256", self.sha256.clone())])
    }

    fn doc_with(&self, more: Vec<(&'static str, String)>) -> Doc {
        let mut doc = Doc::new();
        if self.woven.is_empty() && self.trying.is_none() {
            doc.line("nothing is woven in");
        }
        doc.facts(self.facts().into_iter().chain(more));
        doc
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        for part in &self.woven {
            let (PartSource::Playbook(id) | PartSource::Overlay(id)) = &part.source;
            let mut text = format!("{id} at priority {}", part.priority);
            if let Some((run, member)) = &part.origin {
                text.push_str(&format!(" (run {run}, {member})"));
            }
            if let Some(block) = &part.block {
                text.push_str(&format!(" in place of `{block}`"));
            }
            if part.never_gated == Some(true) {
                text.push_str(&format!(", {NEVER_GATED}"));
            }
            facts.push(("woven", text));
        }
        if let Some(slug) = &self.trying {
            facts.push(("trying", format!("{slug}, in this prompt only")));
        }
        facts.extend(self.skipped.iter().map(|part| ("skipped", format!("{}: {}", part.id, part.why))));
        facts
    }

    /// What weaving changes, as a unified diff; empty without changes.
    pub fn diff(&self) -> String {
        let (WeaveTarget::Operator(reference) | WeaveTarget::Persona(reference)) = &self.target;
        unified(reference, Some(self.base.as_bytes()), Some(self.prompt.as_bytes()))
    }
}

/// Composes the prompt. Records shadow playbooks and the playbooks that a lock kept out.
///
/// # Errors
/// If the operator or persona does not exist or is refused, or the ledger cannot be read. Without a ledger there are no
/// overlays.
pub(crate) async fn weave(
    environment: &Environment,
    places: &PathOverrides,
    request: &WeaveRequest,
) -> Result<(ComposedPrompt, Report), Error> {
    let (root, scope) = root_and_scope(environment, request.root.as_deref());
    let manifests = Manifests::open(environment, &root, Refs::Followed)?;
    let loader = manifests.loader(&*environment.registries);
    let workspace = workspace::load(environment, places, &root)?;
    let (target, base, known, mut report) = target_prompt(&loader, &scope, request, &workspace)?;
    report.absorb(workspace.report.clone());
    let catalogue = match request.target {
        WeaveTarget::Operator(_) => Catalogue::open(&loader, &scope, &workspace.ledger),
        WeaveTarget::Persona(_) => Catalogue::default(),
    };
    let known: Vec<&KnownOperator> = known.iter().collect();
    if let Some(body) = pending_change(environment, &root.join(scope.folder()).join(FOLDER)) {
        report.refuse(codes::PLAYBOOK_UNFINISHED, body);
    }
    let redactor = &workspace.redaction.redactor;
    let place = (&*root, &scope);
    let sources = Sources::new(environment, redactor, place, &catalogue, base, &known, &mut report);
    let now_ms = environment.clock.now_ms();
    let is_noted = |one: &Candidate| one.status == Status::Shadow || !one.violations.is_empty();
    let must_record = sources.candidates().iter().any(is_noted) || !sources.matched.is_empty();
    let store = match (workspace.ledger.may_exist(), must_record) {
        (true, _) => Some(Box::pin(Store::open_at(&workspace.ledger)).await?.store),
        // If no ledger can be created, the prompt is the same.
        (false, true) => match Box::pin(Store::open_at(&workspace.ledger)).await {
            Ok(opened) => Some(opened.store),
            Err(error) => {
                report.warn(codes::WEAVE_UNRECORDED, unrecorded(&error.to_string()));
                None
            }
        },
        (false, false) => None,
    };
    let mut advice = Vec::new();
    if let Some(store) = &store {
        let holding = overlays::unevicted(store, request.assembly.as_deref()).await?;
        // A named assembly's overlays are woven for any operator.
        advice = if request.assembly.is_some() { holding } else { sources.overlays_for_operators(holding) };
    }
    let composed = sources.compose(&advice, now_ms);
    if let Some(store) = store {
        let noted = if must_record { sources.record(&store, &composed, now_ms).await } else { Ok(()) };
        store.close().await;
        if let Err(error) = noted {
            report.warn(codes::WEAVE_UNRECORDED, unrecorded(&error.first_message()));
        }
    }
    report.absorb(catalogue.report);
    let Composition { mut woven, shadows } = composed;
    if let Some(slug) = &request.trying {
        woven.prompt = trial_prompt(slug, &shadows)?;
    }
    let part = |piece: WovenOverlay| {
        let overlay = advice.iter().find(|overlay| overlay.overlay == piece.id);
        WovenPart {
            priority: piece.priority,
            block: piece.block,
            never_gated: overlay.is_none().then(|| sources.never_gated.contains(&piece.id)),
            origin: overlay.map(|overlay| (overlay.run.clone(), overlay.member.clone())),
            source: match overlay {
                Some(_) => PartSource::Overlay(piece.id),
                None => PartSource::Playbook(piece.id),
            },
        }
    };
    let skipped = woven.skipped.iter().map(|piece| (&piece.id, piece.reason.to_string()));
    let candidates = sources.candidates().iter();
    let inactive = candidates.filter(|candidate| request.trying.as_ref() != Some(&candidate.slug));
    let inactive = inactive.filter_map(|candidate| {
        let status = match candidate.status {
            Status::Active => return None,
            Status::Shadow => "in shadow",
            Status::Archived => "archived",
        };
        Some((&candidate.slug, format!("it is {status}")))
    });
    let skipped = skipped.chain(inactive).map(|(id, why)| SkippedPart { id: id.clone(), why });
    let composed = ComposedPrompt {
        target,
        tokens: woven.prompt.chars().count().div_ceil(4),
        sha256: sha256_hex(woven.prompt.as_bytes()),
        skipped: skipped.collect(),
        woven: woven.woven.into_iter().map(part).collect(),
        prompt: woven.prompt,
        trying: request.trying.clone(),
        shadows: compose::shadows(&shadows),
        base: sources.base.render(),
    };
    Ok((composed, report))
}

/// A failure to record is only a warning, because the prompt is for display.
fn unrecorded(why: &str) -> Body {
    Body::new(format!("cannot record the playbooks in shadow or kept out by a lock: {why}"))
        .help("name a writable ledger with `--ledger`")
}

/// The prompt with a shadow playbook woven in.
fn trial_prompt(slug: &str, shadows: &[ShadowPrompt]) -> Result<String, Error> {
    let refused = |message: String, help: &str| Err(Error::usage(Body::new(message).help(help)));
    match shadows.iter().find(|shadow| shadow.id == slug).map(|shadow| &shadow.prompt) {
        Some(Ok(prompt)) => Ok(prompt.clone()),
        Some(Err(why)) => refused(format!("`{slug}` would not be woven: {why}"), "correct it first"),
        None => refused(
            format!("this operator has no playbook `{slug}` in shadow"),
            "run `quorate playbook list` to see the available playbooks",
        ),
    }
}

/// The ref, the prompt, the operators whose overlays and playbooks are woven, and warnings.
type TargetPrompt = (WeaveTarget, BasePrompt, Vec<KnownOperator>, Report);

fn target_prompt(
    loader: &Loader<'_>,
    scope: &Scope,
    request: &WeaveRequest,
    workspace: &Workspace,
) -> Result<TargetPrompt, Error> {
    match &request.target {
        WeaveTarget::Persona(written) => {
            let reference = full_ref(written, "personas");
            let (base, report, _) = persona_prompt(loader, scope, &reference)?;
            let known = operators_with_persona(loader, scope, &reference, workspace);
            Ok((WeaveTarget::Persona(reference), base, known, report))
        }
        WeaveTarget::Operator(written) => {
            let reference = full_ref(written, "operators");
            let mut operating = load_operator(loader, scope, &reference)?;
            let (base, report) = (operating.base.clone(), std::mem::take(&mut operating.report));
            let exceptions = Exceptions::of(workspace, scope);
            let mut known = KnownOperator::new(operating, &workspace.config, &exceptions);
            let axes = [(SKILL, &request.skill), (RUNTIME, &request.runtime)];
            for (axis, value) in axes {
                if let Some(value) = value {
                    known.subject = known.subject.replace(axis, value);
                }
            }
            Ok((WeaveTarget::Operator(reference), base, vec![known], report))
        }
    }
}

/// The operators of a scope that have this persona.
pub(super) fn operators_with_persona(
    loader: &Loader<'_>,
    scope: &Scope,
    reference: &str,
    workspace: &Workspace,
) -> Vec<KnownOperator> {
    let exceptions = Exceptions::of(workspace, scope);
    let has_it = |loaded: &LoadedOperator| {
        loaded.operator.persona.as_deref().is_some_and(|persona| full_ref(persona, "personas") == reference)
    };
    let loaded = operators_of(loader, scope).flatten().filter(has_it);
    loaded.map(|loaded| KnownOperator::new(loaded, &workspace.config, &exceptions)).collect()
}
