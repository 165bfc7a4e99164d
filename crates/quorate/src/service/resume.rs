//! Go on with a run that a crash, an interruption or a missing answer stopped.

use std::path::PathBuf;
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy;
use quorate_kernel::history::History;
use quorate_kernel::observe::Observer;
use quorate_kernel::ports::ledger::Error;
use quorate_protocol::modes::council::Council;
use quorate_protocol::policy::Policy;
use quorate_protocol::{Json, Name};

use super::artifact::{self, Subject};
use super::desk::Desk;
use super::fingerprint::Fingerprint;
use super::report::Report;
use super::signer::Whose;
use super::sitting::{Options, Sitting};
use super::stop::Stop;

/// What a resumed run needs to know of how it was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The council's file; `None` for the built-in one.
    pub config: Option<PathBuf>,
    /// `quorate.toml`; `None` where there was none.
    pub host: Option<PathBuf>,
    /// The executor's name.
    pub executor: Option<String>,
    /// The policy.
    pub policy: Option<Policy>,
}

/// How a run was started, from its first record.
pub fn start(history: &History) -> Start {
    let text = |key: &str| history.opened.get(key).and_then(Json::as_str);
    let executors = history.opened.get("executors").and_then(Json::as_array);
    let name = executors.and_then(|all| all.first()).and_then(|one| one["name"].as_str());
    let policy = history.opened.get("setup").and_then(|setup| setup.get("policy")).and_then(Json::as_str);
    Start {
        config: text("config").map(PathBuf::from),
        host: text("host").map(PathBuf::from),
        executor: name.map(str::to_owned),
        policy: policy
            .and_then(|name| Policy::ALL.into_iter().find(|one| one.id().split('/').next() == Some(name))),
    }
}

/// Resumes a run at an opened desk and returns its report. A run with a verdict is refused, except that one that only
/// lacks its log line was made good when the desk was opened.
///
/// # Errors
/// When the run has a verdict, is not as it was, or the ledger fails.
pub async fn resume(
    desk: &Desk,
    run: &Name,
    options: &Options,
    observer: Arc<dyn Observer>,
) -> Result<Report, Stop> {
    let _held = desk.hold(run).await?;
    let mut history = desk.history_left(run).await?;
    let verdict = history
        .outcome()
        .and_then(|outcome| outcome.get("verdict"))
        .and_then(Json::as_str)
        .map(str::to_owned);
    if let Some(verdict) = verdict.filter(|verdict| verdict != "INCOMPLETE") {
        let body = Body::new(format!("run {run} has come to {verdict}"))
            .help(format!("`quorate show {run}` shows it"));
        return Err(Stop::configuration(codes::RUN_DECIDED, body));
    }
    history.whole()?;
    let sitting = sitting(desk, &history, options)?;
    same(desk, &history, &sitting)?;
    if !desk.sign_again(&mut history, Whose::Recorded).await? {
        return Err(Error::Moved { run: run.clone() }.into());
    }
    let inputs = desk.inputs(&history).await?;
    let seed = seed(&history)?;
    let superseded = match history.outcome() {
        Some(_) => history.reopen(inputs.clone(), &mut Council::new(sitting.setup.clone())),
        None => Vec::new(),
    };
    let convening = sitting.convening(desk, run.clone(), seed, observer);
    convening.resume(&history, inputs, superseded).await?;
    desk.conclude(run).await?;
    desk.report(run).await
}

fn sitting(desk: &Desk, history: &History, options: &Options) -> Result<Sitting, Stop> {
    let start = start(history);
    let runtime = desk.workspace.council.runtime.as_ref().and_then(|table| table.kind.as_ref());
    // A council's own runtime goes by its type, which names no executor of quorate.toml.
    let named = start.executor.filter(|name| runtime.is_none_or(|(kind, _)| kind != name));
    let options = Options {
        executor: options.executor.clone().or(named),
        model: options.model.clone().or(model(history)),
        policy: options.policy.or(start.policy),
        max_calls: options.max_calls.or(max_calls(history)),
        ..options.clone()
    };
    Sitting::new(desk, &options)
}

/// The cap on calls that a run was opened with, which holds until another is said (X8).
pub(super) fn max_calls(history: &History) -> Option<u32> {
    history.opened.get("max_calls").and_then(Json::as_u64).map(|cap| u32::try_from(cap).unwrap_or(u32::MAX))
}

/// The model that was named when a run was opened.
pub(super) fn model(history: &History) -> Option<String> {
    history.opened.get("model").and_then(Json::as_str).map(str::to_owned)
}

/// A run's seed.
///
/// # Errors
/// When its first record has none.
pub(super) fn seed(history: &History) -> Result<[u8; 32], Stop> {
    let seed = history.opened.get("seed").and_then(Json::as_str).and_then(entropy::unhex);
    seed.ok_or_else(|| {
        Stop::configuration(codes::LEDGER_CORRUPT, Body::new(format!("run {} has no seed", history.run)))
    })
}

fn same(desk: &Desk, history: &History, sitting: &Sitting) -> Result<(), Stop> {
    let recorded = recorded(history);
    let artifact_sha256 = match history.opened.get("artifact_path").and_then(Json::as_str) {
        Some(path) => {
            artifact::read(&Subject::File(PathBuf::from(path)), &desk.environment.directory)?.sha256
        }
        // Standard input is gone, and a path that had to be redacted is not kept; the ledger's copy is what there is.
        None => input_of(history),
    };
    unchanged(&history.run, &sitting.fingerprint(desk, &artifact_sha256), &recorded)
}

/// The fingerprint that a run was opened with.
pub(super) fn recorded(history: &History) -> Json {
    history.opened.get("fingerprint").cloned().unwrap_or(Json::Null)
}

/// The hash of what a run was opened on.
pub(super) fn input_of(history: &History) -> String {
    recorded(history)["input"].as_str().unwrap_or_default().to_owned()
}

/// X7: whoever resumes must ask the same members about the same text.
///
/// # Errors
/// What has changed since the run was opened.
pub(super) fn unchanged(run: &Name, now: &Fingerprint, recorded: &Json) -> Result<(), Stop> {
    let changed = now.differs_from(recorded);
    if changed.is_empty() {
        return Ok(());
    }
    let body =
        Body::new(format!("run {run} cannot go on: changed since it was opened: {}", changed.join(", ")));
    Err(Stop::configuration(
        codes::FINGERPRINT_CHANGED,
        body.help("put it back as it was, or start a new run"),
    ))
}
