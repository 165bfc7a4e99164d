//! Resume: continues a run that was stopped by a crash, an interruption or a missing answer.

use std::path::PathBuf;
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_kernel::observer::Observer;
use quorate_protocol::Name;
use quorate_protocol::modes::council::Setup;
use quorate_protocol::policy::Policy;

use super::artifact::{self, Subject};
use super::budget;
use super::convene;
use super::error::{ExitClass, ServiceError};
use super::ledger::gc;
use super::review::spec;
use super::run_opened::{self, is_assembly};
use super::run_options::RunOptions;
use super::run_spec::RunSpec;
use super::runs::{self, RunReport};
use super::session::LedgerSession;
use super::signer::KeySource;

/// Resumes a run and returns its report. Refuses a run with a verdict, unless only its log line was missing, which opening the
/// session has written.
///
/// # Errors
/// If the run has a verdict, was altered, or the ledger fails; or if a policy is given for an assembly's run.
#[crate::boxed]
pub async fn resume(
    session: &LedgerSession,
    run: &Name,
    options: &RunOptions,
    policy: Option<Policy>,
    observer: Arc<dyn Observer>,
) -> Result<RunReport, ServiceError> {
    let guard = session.acquire_run(run).await?;
    let history = session.partial_history(run).await?;
    let decided = history.outcome().filter(|outcome| !outcome.is_incomplete());
    if let Some(verdict) = decided.and_then(|outcome| outcome.verdict) {
        let body = Body::new(format!("run {run} already has the verdict {verdict}"))
            .help(format!("`quorate show {run}` shows it"));
        return Err(ServiceError::configuration(codes::RUN_DECIDED, body));
    }
    history.ensure_not_erased()?;
    if history.opened.queued.is_some() {
        let body = Body::new(format!("run {run} is a task of the queue, which its workers continue"));
        let help =
            format!("`quorate queue list` shows it; run `quorate queue retry {run}` to try a dead task again");
        return Err(ServiceError::configuration(codes::RUN_QUEUED, body.help(help)));
    }
    if is_assembly(&history) {
        if policy.is_some() {
            let body = Body::new(format!("{run} is an assembly's run, and --policy is for reviews"));
            return Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body));
        }
        let (spec, keys) = convene::resumed_spec(session, &history, options)?;
        let permit = spec.admit(&session.environment)?;
        spec.resume(session, history, keys, permit, observer).await?;
    } else {
        let spec = resumed_review(session, &history, options, policy)?;
        let permit = spec.admit(&session.environment)?;
        ensure_same_input(session, &history, &spec)?;
        spec.resume(session, history, KeySource::Recorded, permit, observer).await?;
    }
    drop(guard);
    let report = runs::load_report(session, run).await;
    // The report has the answers even if the run erases them at its end.
    gc::after_run(session, run).await?;
    report
}

fn resumed_review(
    session: &LedgerSession,
    history: &History,
    options: &RunOptions,
    policy: Option<Policy>,
) -> Result<RunSpec<Setup>, ServiceError> {
    let start = run_opened::start_options(history);
    let options = RunOptions {
        executor: options.executor.clone().or(start.executor),
        model: options.model.clone().or(history.opened.model.clone()),
        caps: options.caps.or(budget::recorded(&history.opened)),
        ..options.clone()
    };
    spec::build(&session.environment, &session.workspace, &options, policy.or(start.policy))
}

fn ensure_same_input(
    session: &LedgerSession,
    history: &History,
    spec: &RunSpec<Setup>,
) -> Result<(), ServiceError> {
    let input_sha256 = match &history.opened.artifact_path {
        Some(path) => {
            artifact::read(&Subject::File(PathBuf::from(path)), &session.environment.directory)?.sha256
        }
        // Standard input is consumed and a redacted path was not stored; only the ledger has the text.
        None => run_opened::input_sha256(history),
    };
    run_opened::ensure_unchanged(history, &spec.fingerprint(&input_sha256))
}
