//! What the first record of a run says of how it was started, for whoever shows or resumes it.

use std::path::PathBuf;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_kernel::{canonical, entropy};
use quorate_manifest::assembly::Mode;
use quorate_protocol::Json;
use quorate_protocol::assembly::Setup;
use quorate_protocol::modes::assembly::version;
use quorate_protocol::modes::council::VERSION;
use quorate_protocol::policy::Policy;
use serde_json::Map;

use super::error::ServiceError;
use super::fingerprint::Fingerprint;

/// Whether a run is an assembly's.
pub fn is_assembly(history: &History) -> bool {
    is_assembly_opening(&history.opened)
}

/// Whether a run with this `run.opened` is an assembly's.
pub fn is_assembly_opening(opened: &Map<String, Json>) -> bool {
    let protocol = opened.get("protocol").and_then(Json::as_str).unwrap_or_default();
    Mode::ALL.into_iter().any(|mode| protocol.split('/').next() == Some(mode.as_str()))
}

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

/// The setup of an assembly's run; `None` for other runs.
pub fn assembly_setup(history: &History) -> Option<Setup> {
    serde_json::from_value(canonical::normalize(history.opened.get("setup")?.clone())).ok()
}

/// The cap on calls that a run was opened with, which holds until another is said (X8).
pub fn max_calls(history: &History) -> Option<u32> {
    history.opened.get("max_calls").and_then(Json::as_u64).map(|cap| u32::try_from(cap).unwrap_or(u32::MAX))
}

/// What the command that goes on with a run has to say besides its id: a larger cap, where the one that holds is spent. A
/// resumed run keeps the cap that it was opened with, so that without it nobody would be asked.
pub fn larger_cap(history: &History, calls: u32) -> String {
    match max_calls(history) {
        Some(cap) if calls >= cap => format!(" --max-calls {}", calls.saturating_mul(2)),
        _ => String::new(),
    }
}

/// The model that was named when a run was opened.
pub fn model(history: &History) -> Option<String> {
    history.opened.get("model").and_then(Json::as_str).map(str::to_owned)
}

/// A run's seed.
///
/// # Errors
/// When its first record has none.
pub fn seed(history: &History) -> Result<[u8; 32], ServiceError> {
    let seed = history.opened.get("seed").and_then(Json::as_str).and_then(entropy::unhex);
    seed.ok_or_else(|| {
        ServiceError::configuration(
            codes::LEDGER_CORRUPT,
            Body::new(format!("run {} has no seed", history.run)),
        )
    })
}

/// The fingerprint that a run was opened with.
pub fn fingerprint(history: &History) -> Json {
    history.opened.get("fingerprint").cloned().unwrap_or(Json::Null)
}

/// The hash of what a run was opened on.
pub fn input_sha256(history: &History) -> String {
    fingerprint(history)["input"].as_str().unwrap_or_default().to_owned()
}

/// X7: whoever resumes must ask the same members about the same text.
///
/// # Errors
/// [`codes::FINGERPRINT_CHANGED`], with what changed since the run was opened.
pub fn ensure_unchanged(history: &History, now: &Fingerprint) -> Result<(), ServiceError> {
    let changed = now.changed_components(&fingerprint(history));
    if changed.is_empty() {
        return Ok(());
    }
    let message =
        format!("run {} cannot go on: changed since it was opened: {}", history.run, changed.join(", "));
    let body = Body::new(message).help("put it back as it was, or start a new run");
    Err(ServiceError::configuration(codes::FINGERPRINT_CHANGED, body))
}

/// A run was held by another version.
pub fn unknown_version(history: &History) -> ServiceError {
    let recorded = history.opened.get("protocol").and_then(Json::as_str).unwrap_or_default();
    let known: Vec<&str> = Mode::ALL.into_iter().map(version).chain([VERSION]).collect();
    let body = Body::new(format!(
        "run {} was held by `{recorded}`; this program knows {}",
        history.run,
        known.join(", ")
    ));
    ServiceError::configuration(codes::FINGERPRINT_CHANGED, body)
}
