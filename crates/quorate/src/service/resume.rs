//! Go on with a run that a crash, an interruption or a missing answer stopped.

use std::path::PathBuf;
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_kernel::observer::Observer;
use quorate_kernel::ports::ledger::Error;
use quorate_protocol::modes::council::Council;
use quorate_protocol::{Json, Name};

use super::artifact::{self, Subject};
use super::error::ServiceError;
use super::finalize::finalize;
use super::fingerprint::Fingerprint;
use super::report::{self, Report};
use super::run_opened;
use super::run_spec::{Options, RunSpec};
use super::session::LedgerSession;
use super::signer::KeySource;

/// Resumes a run at an opened session and returns its report. A run with a verdict is refused, except that one that only
/// lacks its log line was made good when the session was opened.
///
/// # Errors
/// When the run has a verdict, is not as it was, or the ledger fails.
pub async fn resume(
    session: &LedgerSession,
    run: &Name,
    options: &Options,
    observer: Arc<dyn Observer>,
) -> Result<Report, ServiceError> {
    let _held = session.acquire_run(run).await?;
    let mut history = session.partial_history(run).await?;
    let verdict = history
        .outcome()
        .and_then(|outcome| outcome.get("verdict"))
        .and_then(Json::as_str)
        .map(str::to_owned);
    if let Some(verdict) = verdict.filter(|verdict| verdict != "INCOMPLETE") {
        let body = Body::new(format!("run {run} has come to {verdict}"))
            .help(format!("`quorate show {run}` shows it"));
        return Err(ServiceError::configuration(codes::RUN_DECIDED, body));
    }
    history.ensure_not_erased()?;
    let spec = run_spec(session, &history, options)?;
    ensure_same_input(session, &history, &spec)?;
    if !session.resume_signing(&mut history, KeySource::Recorded).await? {
        return Err(Error::Conflict { run: run.clone() }.into());
    }
    let inputs = session.load_inputs(&history).await?;
    let seed = run_opened::seed(&history)?;
    let superseded = match history.outcome() {
        Some(_) => history.reopen(inputs.clone(), &mut Council::new(spec.setup.clone())),
        None => Vec::new(),
    };
    let convening = spec.run_config(session, run.clone(), seed, observer);
    convening.resume(&history, inputs, superseded).await?;
    finalize(session, run).await?;
    report::load(session, run).await
}

fn run_spec(session: &LedgerSession, history: &History, options: &Options) -> Result<RunSpec, ServiceError> {
    let start = run_opened::start_options(history);
    let runtime = session.workspace.council.runtime.as_ref().and_then(|table| table.kind.as_ref());
    // A council's own runtime goes by its type, which names no executor of quorate.toml.
    let named = start.executor.filter(|name| runtime.is_none_or(|(kind, _)| kind != name));
    let options = Options {
        executor: options.executor.clone().or(named),
        model: options.model.clone().or(run_opened::model(history)),
        policy: options.policy.or(start.policy),
        max_calls: options.max_calls.or(run_opened::max_calls(history)),
        ..options.clone()
    };
    RunSpec::new(session, &options)
}

fn ensure_same_input(session: &LedgerSession, history: &History, spec: &RunSpec) -> Result<(), ServiceError> {
    let recorded = run_opened::fingerprint(history);
    let artifact_sha256 = match history.opened.get("artifact_path").and_then(Json::as_str) {
        Some(path) => {
            artifact::read(&Subject::File(PathBuf::from(path)), &session.environment.directory)?.sha256
        }
        // Standard input is gone, and a path that had to be redacted is not kept; the ledger's copy is what there is.
        None => run_opened::input_sha256(history),
    };
    ensure_unchanged(&history.run, &spec.fingerprint(session, &artifact_sha256), &recorded)
}

/// X7: whoever resumes must ask the same members about the same text.
///
/// # Errors
/// What has changed since the run was opened.
pub(super) fn ensure_unchanged(run: &Name, now: &Fingerprint, recorded: &Json) -> Result<(), ServiceError> {
    let changed = now.changed_components(recorded);
    if changed.is_empty() {
        return Ok(());
    }
    let body =
        Body::new(format!("run {run} cannot go on: changed since it was opened: {}", changed.join(", ")));
    Err(ServiceError::configuration(
        codes::FINGERPRINT_CHANGED,
        body.help("put it back as it was, or start a new run"),
    ))
}
