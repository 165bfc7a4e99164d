//! Weave: composes the prompt of an operator or a persona with its active playbooks and overlays.

use std::path::PathBuf;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_ledger::Store;
use quorate_manifest::loader::{Loader, Refs};
use quorate_manifest::playbook::{FOLDER, Status};
use quorate_manifest::workspace::{Scope, WorkspacePath};
use quorate_playbook::bind::{RUNTIME, SKILL};
use quorate_playbook::persona::BasePrompt;
use quorate_playbook::weave::{Candidate, Composition, ShadowPrompt, WovenPrompt};
use quorate_protocol::overlay;

use super::compose::{self, Sources};
use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::manifests::{Manifests, root_and_scope};
use super::overlays;
use super::playbook::change::pending_change;
use super::playbook::library::{Catalogue, KnownOperator, full_ref, load_operator, persona_prompt};
use super::playbook::traits::Exceptions;
use super::registries::Registries;
use super::workspace::{self, PathOverrides, Workspace};

#[derive(Debug, Clone)]
pub struct WeaveRequest {
    pub target: WeaveTarget,
    /// Weaves only the overlays of this assembly, whatever operator they are for.
    pub assembly: Option<String>,
    /// The skill in use; `None` for every skill of the operator.
    pub skill: Option<String>,
    /// The runtime in which the operator works; `None` for the runtime of its manifest.
    pub runtime: Option<String>,
    /// A shadow playbook to weave as if it were active.
    pub trying: Option<String>,
    /// The workspace's root; `None` searches for it.
    pub root: Option<PathBuf>,
}

/// The owner of the prompt, as a slug or a `ws://` ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeaveTarget {
    /// An operator, which playbooks can target.
    Operator(String),
    /// A persona, with the overlays of all operators that have it.
    Persona(String),
}

/// A composed prompt and its parts.
#[derive(Debug)]
pub struct ComposedPrompt {
    /// The ref of the operator or persona.
    pub reference: String,
    /// Whether it is an operator's.
    pub is_operator: bool,
    /// The prompt before weaving.
    pub base: String,
    pub woven: WovenPrompt,
    /// Shadow playbooks, which are computed but not in the prompt.
    pub shadows: Vec<ShadowPrompt>,
    /// The shadow playbook that was requested.
    pub trying: Option<String>,
    /// The woven overlays of assemblies.
    pub overlays: Vec<overlay::Overlay>,
    /// Inactive playbooks that target the operator, with their status.
    pub resting: Vec<(String, &'static str)>,
    /// The active playbooks that passed no gate.
    pub never_gated: Vec<String>,
    /// SHA-256 of the prompt, in hexadecimal.
    pub sha256: String,
    /// Warnings, and problems of playbooks.
    pub report: Report,
}

impl ComposedPrompt {
    /// An estimate of the prompt's tokens: a fourth of its characters.
    pub fn tokens(&self) -> usize {
        self.woven.prompt.chars().count().div_ceil(4)
    }
}

/// Composes the prompt. Records shadow playbooks and the playbooks that a lock kept out.
///
/// # Errors
/// If the operator or persona does not exist or is refused, or the ledger cannot be read. Without a ledger there are no
/// overlays.
#[crate::boxed]
pub async fn weave(
    environment: &Environment,
    places: &PathOverrides,
    request: &WeaveRequest,
    registries: &Registries,
) -> Result<ComposedPrompt, ServiceError> {
    let (root, scope) = root_and_scope(environment, request.root.as_deref());
    let manifests = Manifests::open(environment, &root, Refs::Followed)?;
    let loader = manifests.loader(registries);
    let workspace = workspace::load(environment, places, &root)?;
    let (reference, base, known, mut report) = target_prompt(&loader, &scope, request, &workspace)?;
    report.absorb(workspace.report.clone());
    let catalogue = match request.target {
        WeaveTarget::Operator(_) => Catalogue::open(&loader, &scope, &workspace.ledger),
        WeaveTarget::Persona(_) => Catalogue::default(),
    };
    let known: Vec<&KnownOperator> = known.iter().collect();
    if let Some(body) = pending_change(environment, &root.join(scope.folder()).join(FOLDER)) {
        report.refuse(codes::PLAYBOOK_UNFINISHED, body);
    }
    let sources = Sources::new(environment, &root, &scope, &catalogue, base, &known, &mut report);
    let now_ms = environment.clock.now_ms();
    let must_record = sources.candidates().iter().any(|candidate| candidate.status == Status::Shadow)
        || sources.candidates().iter().any(|candidate| !candidate.violations.is_empty())
        || sources.has_pattern_matches();
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
    let status = |candidate: &Candidate| {
        Some((candidate.overlay.id.clone(), compose::inactive_label(candidate.status)?))
    };
    let resting = sources.candidates().iter().filter_map(status).collect();
    report.absorb(catalogue.report);
    let Composition { mut woven, shadows } = composed;
    if let Some(slug) = &request.trying {
        woven.prompt = trial_prompt(slug, &shadows)?;
    }
    let sha256 = sha256_hex(woven.prompt.as_bytes());
    let (is_operator, base) = (matches!(request.target, WeaveTarget::Operator(_)), sources.base().render());
    let (trying, overlays, never_gated) = (request.trying.clone(), advice, sources.never_gated().to_vec());
    Ok(ComposedPrompt {
        reference,
        is_operator,
        base,
        woven,
        shadows,
        trying,
        overlays,
        resting,
        never_gated,
        sha256,
        report,
    })
}

/// A failure to record is only a warning, because the prompt is for display.
fn unrecorded(why: &str) -> Body {
    Body::new(format!("cannot record the playbooks in shadow or kept out by a lock: {why}"))
        .help("name a writable ledger with `--ledger`")
}

/// The prompt with a shadow playbook woven in.
fn trial_prompt(slug: &str, shadows: &[ShadowPrompt]) -> Result<String, ServiceError> {
    let refused = |message: String, help: &str| {
        Err(ServiceError::new(ExitClass::Usage, codes::USAGE, Body::new(message).help(help)))
    };
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
type TargetPrompt = (String, BasePrompt, Vec<KnownOperator>, Report);

fn target_prompt(
    loader: &Loader<'_>,
    scope: &Scope,
    request: &WeaveRequest,
    workspace: &Workspace,
) -> Result<TargetPrompt, ServiceError> {
    match &request.target {
        WeaveTarget::Persona(written) => {
            let reference = full_ref(written, "personas");
            let (base, report, _) = persona_prompt(loader, scope, &reference)?;
            let known = operators_with_persona(loader, scope, &reference, workspace);
            Ok((reference, base, known, report))
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
            Ok((reference, base, vec![known], report))
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
    let folder = match scope.folder() {
        top if top.is_empty() => "operators".to_owned(),
        tenant => format!("{tenant}/operators"),
    };
    let Ok(location) = WorkspacePath::new(&folder) else { return Vec::new() };
    let is_it = |slug: &String| {
        let operating = load_operator(loader, scope, &format!("ws://operators/{slug}")).ok()?;
        let persona = operating.operator.persona.as_deref()?;
        (full_ref(persona, "personas") == reference)
            .then(|| KnownOperator::new(operating, &workspace.config, &exceptions))
    };
    loader.folder_names(&location).iter().filter_map(is_it).collect()
}
