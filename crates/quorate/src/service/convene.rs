//! Convene: an assembly from its ASSEMBLY.md to a recorded outcome.

pub mod due;
pub mod inputs;
pub mod members;
pub mod plan;
pub mod rehearse;
pub mod report;
pub mod spec;

use std::path::PathBuf;
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_kernel::observer::Observer;
use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::{HostOptions, Setup};

use super::artifact::{self, Artifact, Subject};
use super::budget;
use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::host::Host;
use super::ledger::gc;
use super::resolve::{self};
use super::run_opened;
use super::run_options::RunOptions;
use super::run_spec::RunSpec;
use super::session::LedgerSession;
use super::signer::{self, KeySource};
use super::workspace::{self, PathOverrides, Workspace};
pub use inputs::ConveneInput;
use inputs::Inputs;
use report::Report;

/// An assembly to convene, and its settings.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The manifest, or the directory that holds it.
    pub path: PathBuf,
    /// The workspace's root; `None` searches for it.
    pub root: Option<PathBuf>,
    /// The inputs of the run.
    pub inputs: Inputs,
    pub options: RunOptions,
}

/// Reads everything that a run needs, and asks no member. The workspace's report includes the manifest's warnings.
///
/// # Errors
/// If manifest, subject or configuration are unusable, or the inputs do not fit the mode.
pub fn prepare(
    environment: &Environment,
    places: &PathOverrides,
    request: &Request,
    host: &Host,
) -> Result<(ConveneInput, Workspace), ServiceError> {
    prepare_with(environment, places, request, host, |subject| {
        artifact::read(subject, &environment.directory)
    })
}

/// As [`prepare`], with another way to read the subject.
///
/// # Errors
/// As [`prepare`], and as `read`.
pub fn prepare_with(
    environment: &Environment,
    places: &PathOverrides,
    request: &Request,
    host: &Host,
    read: impl FnOnce(&Subject) -> Result<Artifact, ServiceError>,
) -> Result<(ConveneInput, Workspace), ServiceError> {
    let resolving = resolve::Request {
        path: request.path.clone(),
        root: request.root.clone(),
        ..resolve::Request::default()
    };
    let mut view = resolve::resolve(environment, &resolving, host).map_err(refused_as_configuration)?;
    let (asks, subject) = request.inputs.request_for(view.resolved.mode)?;
    if matches!(view.resolved.mode, Mode::Peer | Mode::Hierarchy) && view.resolved.members.is_empty() {
        let body = Body::new(format!("`{}` has no members to ask", view.resolved.name));
        let help = "list them under `members`, or convene a view that does";
        return Err(ServiceError::configuration(codes::ASSEMBLY_EMPTY, body.help(help)));
    }
    let setup = Setup::from_resolved(&view.resolved, asks.clone(), HostOptions::default());
    inputs::ensure_known_class(&setup)?;
    inputs::ensure_known_phase(request.inputs.phase.as_deref(), &setup)?;
    let subject = read(&subject)?;
    inputs::ensure_conversation(&asks, &subject)?;
    inputs::ensure_proposal(&asks, &subject)?;
    let start = resolve::disk_path(&view.root, view.resolved.chain.leaf());
    let start = start.parent().unwrap_or(&environment.directory).to_owned();
    let mut workspace = workspace::load(environment, places, &start)?;
    workspace.guard.ensure_unrecorded(&subject)?;
    workspace.report.absorb(std::mem::take(&mut view.report));
    Ok((ConveneInput { resolution: view, request: asks, subject }, workspace))
}

/// Convenes at an opened session.
///
/// # Errors
/// If the ledger fails. Everything recorded until then stays, and the run can be resumed.
#[crate::boxed]
pub async fn convene(
    session: &LedgerSession,
    input: &ConveneInput,
    spec: &RunSpec<Setup>,
    observer: Arc<dyn Observer>,
) -> Result<Report, ServiceError> {
    let history = spec::start(spec, session, input, observer).await?;
    let report = report::load(session, &history).await;
    // The report has the answers even if the run erases them at its end.
    gc::after_run(session, &history.run).await?;
    report
}

/// The assembly of a resumed run, from its present files.
///
/// # Errors
/// If the assembly has changed since the run was opened, or a file is missing.
pub(super) fn resumed_spec(
    session: &LedgerSession,
    history: &History,
    options: &RunOptions,
) -> Result<(RunSpec<Setup>, KeySource), ServiceError> {
    let input = reload_input(session, history)?;
    let recorded = history.opened.executor.clone().flatten();
    let options = RunOptions {
        executor: options.executor.clone().or(recorded),
        model: options.model.clone().or(history.opened.model.clone()),
        caps: options.caps.or(budget::recorded(&history.opened)),
        ..options.clone()
    };
    let spec = spec::build(&session.environment, &session.workspace, &input, &options)?;
    run_opened::ensure_unchanged(history, &spec.fingerprint(&input.subject.sha256))?;
    let resolved = &input.resolution.resolved;
    signer::ensure_no_approvals(resolved)?;
    Ok((spec, KeySource::Resolved(resolved.policies.effective_keys())))
}

/// The inputs of a run, with the present state of its files.
fn reload_input(session: &LedgerSession, history: &History) -> Result<ConveneInput, ServiceError> {
    let opened = &history.opened;
    let setup = run_opened::assembly_setup(history).ok_or_else(|| run_opened::unknown_version(history))?;
    let resolving = resolve::Request {
        path: opened.manifest.as_ref().map(PathBuf::from).unwrap_or_default(),
        root: opened.root.as_ref().map(PathBuf::from),
        ..resolve::Request::default()
    };
    let view = resolve::resolve(&session.environment, &resolving, &*session.environment.host)
        .map_err(refused_as_configuration)?;
    let subject = match &opened.artifact_path {
        Some(path) => artifact::read(&Subject::File(PathBuf::from(path)), &session.environment.directory)?,
        // Standard input is consumed; only the ledger has its text.
        None => Artifact {
            display_name: opened.subject.clone().unwrap_or_else(|| "-".to_owned()),
            path: None,
            text: "".into(),
            sha256: run_opened::input_sha256(history),
        },
    };
    Ok(ConveneInput { resolution: view, request: setup.request, subject })
}

/// For `convene`, exit code 1 is the verdict fail: a refused manifest is unusable input.
fn refused_as_configuration(error: ServiceError) -> ServiceError {
    match error.class {
        ExitClass::Refused => ServiceError { class: ExitClass::Configuration, ..error },
        _ => error,
    }
}
