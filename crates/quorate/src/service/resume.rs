//! Go on with a run that a crash, an interruption or a missing answer stopped.

use std::path::PathBuf;
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy;
use quorate_kernel::history::History;
use quorate_kernel::observer::Observer;
use quorate_kernel::ports::ledger::Error;
use quorate_protocol::modes::council::Council;
use quorate_protocol::policy::Policy;
use quorate_protocol::{Json, Name};

use super::artifact::{self, Subject};
use super::error::ServiceError;
use super::fingerprint::Fingerprint;
use super::report::Report;
use super::run_spec::{Options, RunSpec};
use super::session::LedgerSession;
use super::signer::KeySource;

/// What a resumed run needs to know of how it was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartOptions {
    /// The council's file; `None` for the built-in one.
    pub config: Option<PathBuf>,
    /// `quorate.toml`; `None` where there was none.
    pub host: Option<PathBuf>,
    pub executor: Option<String>,
    pub policy: Option<Policy>,
}

/// How a run was started, from its first record.
pub fn start_options(history: &History) -> StartOptions {
    let text = |key: &str| history.opened.get(key).and_then(Json::as_str);
    let executors = history.opened.get("executors").and_then(Json::as_array);
    let name = executors.and_then(|all| all.first()).and_then(|one| one["name"].as_str());
    let policy = history.opened.get("setup").and_then(|setup| setup.get("policy")).and_then(Json::as_str);
    StartOptions {
        config: text("config").map(PathBuf::from),
        host: text("host").map(PathBuf::from),
        executor: name.map(str::to_owned),
        policy: policy
            .and_then(|name| Policy::ALL.into_iter().find(|one| one.id().split('/').next() == Some(name))),
    }
}

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
    let seed = seed(&history)?;
    let superseded = match history.outcome() {
        Some(_) => history.reopen(inputs.clone(), &mut Council::new(spec.setup.clone())),
        None => Vec::new(),
    };
    let convening = spec.run_config(session, run.clone(), seed, observer);
    convening.resume(&history, inputs, superseded).await?;
    session.finalize(run).await?;
    session.report(run).await
}

fn run_spec(session: &LedgerSession, history: &History, options: &Options) -> Result<RunSpec, ServiceError> {
    let start = start_options(history);
    let runtime = session.workspace.council.runtime.as_ref().and_then(|table| table.kind.as_ref());
    // A council's own runtime goes by its type, which names no executor of quorate.toml.
    let named = start.executor.filter(|name| runtime.is_none_or(|(kind, _)| kind != name));
    let options = Options {
        executor: options.executor.clone().or(named),
        model: options.model.clone().or(model(history)),
        policy: options.policy.or(start.policy),
        max_calls: options.max_calls.or(max_calls(history)),
        ..options.clone()
    };
    RunSpec::new(session, &options)
}

/// The cap on calls that a run was opened with, which holds until another is said (X8).
pub(super) fn max_calls(history: &History) -> Option<u32> {
    history.opened.get("max_calls").and_then(Json::as_u64).map(|cap| u32::try_from(cap).unwrap_or(u32::MAX))
}

/// What the command that goes on with a run has to say besides its id: a larger cap, where the one that holds is spent. A
/// resumed run keeps the cap that it was opened with, so that without it nobody would be asked.
pub(super) fn larger_cap(history: &History, calls: u32) -> String {
    match max_calls(history) {
        Some(cap) if calls >= cap => format!(" --max-calls {}", calls.saturating_mul(2)),
        _ => String::new(),
    }
}

/// The model that was named when a run was opened.
pub(super) fn model(history: &History) -> Option<String> {
    history.opened.get("model").and_then(Json::as_str).map(str::to_owned)
}

/// A run's seed.
///
/// # Errors
/// When its first record has none.
pub(super) fn seed(history: &History) -> Result<[u8; 32], ServiceError> {
    let seed = history.opened.get("seed").and_then(Json::as_str).and_then(entropy::unhex);
    seed.ok_or_else(|| {
        ServiceError::configuration(
            codes::LEDGER_CORRUPT,
            Body::new(format!("run {} has no seed", history.run)),
        )
    })
}

fn ensure_same_input(session: &LedgerSession, history: &History, spec: &RunSpec) -> Result<(), ServiceError> {
    let recorded = recorded_fingerprint(history);
    let artifact_sha256 = match history.opened.get("artifact_path").and_then(Json::as_str) {
        Some(path) => {
            artifact::read(&Subject::File(PathBuf::from(path)), &session.environment.directory)?.sha256
        }
        // Standard input is gone, and a path that had to be redacted is not kept; the ledger's copy is what there is.
        None => recorded_input(history),
    };
    ensure_unchanged(&history.run, &spec.fingerprint(session, &artifact_sha256), &recorded)
}

/// The fingerprint that a run was opened with.
pub(super) fn recorded_fingerprint(history: &History) -> Json {
    history.opened.get("fingerprint").cloned().unwrap_or(Json::Null)
}

/// The hash of what a run was opened on.
pub(super) fn recorded_input(history: &History) -> String {
    recorded_fingerprint(history)["input"].as_str().unwrap_or_default().to_owned()
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
