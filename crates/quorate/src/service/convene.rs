//! Convene: an assembly from its ASSEMBLY.md to a recorded outcome.

pub mod due;
pub mod inputs;
pub mod members;
pub mod plan;
pub mod rehearse;
pub mod report;
pub mod run_spec;

use std::path::PathBuf;
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_kernel::observer::Observer;
use quorate_kernel::ports::ledger::Error;
use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::{HostOptions, Setup};
use quorate_protocol::{Json, Name, assembly};

use super::artifact::{self, Artifact, Subject};
use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::finalize::finalize;
use super::host::Host;
use super::ledger::gc;
use super::producer::Producer;
use super::resolve::{self, Resolution};
use super::run_opened;
use super::session::LedgerSession;
use super::signer::{self, KeySource};
use super::workspace::{self, PathOverrides, Workspace};
use super::{replay, resume};
use inputs::Inputs;
use report::Report;
use run_spec::RunSpec;

/// What is to be convened, and how.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The manifest, or the directory that holds it.
    pub path: PathBuf,
    /// The workspace's root, where it is not to be found by itself.
    pub root: Option<PathBuf>,
    /// What it is asked for.
    pub inputs: Inputs,
    pub options: Options,
}

/// How members are asked.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `--executor`: for all members.
    pub executor: Option<String>,
    /// `--model`: for all members.
    pub model: Option<String>,
    /// `--max-calls`.
    pub max_calls: Option<u32>,
    /// `--timeout`: each member's deadline.
    pub timeout: Option<std::time::Duration>,
    /// `--made-by`: who has made what it is about.
    pub producer: Option<Producer>,
}

/// An assembly that can be convened: resolved, with what it is about.
pub struct ConveneInput {
    pub resolution: Resolution,
    /// What it is asked for.
    pub request: assembly::Request,
    /// What it is about.
    pub subject: Artifact,
}

/// Reads everything that a convening needs, and asks nobody. The workspace's report has the manifest's warnings too.
///
/// # Errors
/// When manifest, subject or configuration are unusable, or what is asked for does not fit the mode.
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

/// As [`prepare`], with another way to read what it is about.
///
/// # Errors
/// As [`prepare`], and what `read` refuses.
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
        let body = Body::new(format!("`{}` has no members: there is nobody to ask", view.resolved.name));
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
/// When the ledger fails. What was recorded stays, and the run can be resumed.
pub async fn convene(
    session: &LedgerSession,
    input: &ConveneInput,
    spec: &RunSpec,
    observer: Arc<dyn Observer>,
) -> Result<Report, ServiceError> {
    let run = spec.run(session, input, observer).await?;
    final_report(session, &run).await
}

/// The report of a run that was just held, which has its answers even where they are not kept.
async fn final_report(session: &LedgerSession, run: &Name) -> Result<Report, ServiceError> {
    let report = report::load(session, &session.partial_history(run).await?).await;
    gc::after_run(session, run).await?;
    report
}

/// Goes on with a run at an opened session.
///
/// # Errors
/// When the run has come to something, is not as it was, or the ledger fails.
pub async fn resume(
    session: &LedgerSession,
    run: &Name,
    options: &Options,
    host: &Host,
    observer: Arc<dyn Observer>,
) -> Result<Report, ServiceError> {
    let held = session.acquire_run(run).await?;
    let mut history = session.partial_history(run).await?;
    let verdict = history.outcome().and_then(|outcome| outcome.get("verdict")?.as_str());
    if let Some(verdict) = verdict.filter(|verdict| *verdict != "incomplete") {
        let body = Body::new(format!("run {run} has come to {verdict}"))
            .help(format!("`quorate show {run}` shows it"));
        return Err(ServiceError::configuration(codes::RUN_DECIDED, body));
    }
    history.ensure_not_erased()?;
    let input = reload_input(session, &history, host)?;
    let text = |key: &str| history.opened.get(key).and_then(Json::as_str).map(str::to_owned);
    let options = Options {
        executor: options.executor.clone().or(text("executor")),
        model: options.model.clone().or(run_opened::model(&history)),
        max_calls: options.max_calls.or(run_opened::max_calls(&history)),
        ..options.clone()
    };
    let spec = RunSpec::new(&session.environment, &session.workspace, &input, &options, host)?;
    resume::ensure_unchanged(
        run,
        &spec.fingerprint(&input.subject.sha256),
        &run_opened::fingerprint(&history),
    )?;
    let admitted = spec.admit(&session.environment)?;
    let resolved = &input.resolution.resolved;
    signer::ensure_no_approvals(resolved)?;
    if !session.resume_signing(&mut history, KeySource::Resolved(resolved.policies.effective_keys())).await? {
        return Err(Error::Conflict { run: run.clone() }.into());
    }
    let inputs = session.load_inputs(&history).await?;
    let seed = run_opened::seed(&history)?;
    let superseded = match history.outcome() {
        Some(_) => history.reopen(inputs.clone(), &mut spec.protocol()?),
        None => Vec::new(),
    };
    let convening = spec.run_config(session, run.clone(), seed, admitted, observer)?;
    convening.resume(&history, inputs, superseded).await?;
    finalize(session, run).await?;
    drop(held);
    final_report(session, run).await
}

/// What a run was called with, as it is now.
fn reload_input(
    session: &LedgerSession,
    history: &History,
    host: &Host,
) -> Result<ConveneInput, ServiceError> {
    let path = |key: &str| history.opened.get(key).and_then(Json::as_str).map(PathBuf::from);
    let setup = run_opened::assembly_setup(history).ok_or_else(|| replay::unknown_version(history))?;
    let resolving = resolve::Request {
        path: path("manifest").unwrap_or_default(),
        root: path("root"),
        ..resolve::Request::default()
    };
    let view = resolve::resolve(&session.environment, &resolving, host).map_err(refused_as_configuration)?;
    let subject = match path("artifact_path") {
        Some(path) => artifact::read(&Subject::File(path), &session.environment.directory)?,
        // Standard input is gone; the ledger's copy is what there is.
        None => Artifact {
            display_name: history.opened.get("subject").and_then(Json::as_str).unwrap_or("-").to_owned(),
            path: None,
            text: "".into(),
            sha256: run_opened::input_sha256(history),
        },
    };
    Ok(ConveneInput { resolution: view, request: setup.request, subject })
}

/// Of a convening, 1 is the verdict fail: a manifest that is refused is unusable input.
fn refused_as_configuration(error: ServiceError) -> ServiceError {
    match error.class {
        ExitClass::Refused => ServiceError { class: ExitClass::Configuration, ..error },
        _ => error,
    }
}
