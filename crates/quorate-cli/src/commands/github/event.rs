//! Reads the event that started a job of GitHub Actions.

use std::path::Path;

use quorate_diagnostics::{Body, codes};
use serde::Deserialize;

use crate::environment::{path, variable};
use quorate::service::disk;
use quorate::service::error::ServiceError;

/// The largest file of an event, in bytes.
const MAX_BYTES: u64 = 8 << 20;

#[derive(Deserialize)]
struct Event {
    workflow_run: WorkflowRun,
}

/// The run of a workflow that has ended.
#[derive(Deserialize)]
pub(super) struct WorkflowRun {
    /// The event that started it.
    pub(super) event: String,
    pub(super) head_sha: String,
    pub(super) head_branch: Option<String>,
    /// `None` once a fork is deleted.
    pub(super) head_repository: Option<Repository>,
}

#[derive(Deserialize)]
pub(super) struct Repository {
    pub(super) full_name: String,
}

/// The run that started this job's workflow.
///
/// # Errors
/// When another event started it.
pub(super) fn workflow_run() -> Result<WorkflowRun, ServiceError> {
    let event = variable("GITHUB_EVENT_NAME").unwrap_or_default();
    let file = path("GITHUB_EVENT_PATH").filter(|_| event == "workflow_run");
    let Some(file) = file else {
        return Err(unusable("this job's workflow was not started by `workflow_run`".to_owned()));
    };
    let unreadable = |why: String| unusable(format!("cannot read the event {}: {why}", file.display()));
    let bytes =
        disk::read_up_to(Path::new(&file), MAX_BYTES).map_err(|error| unreadable(error.to_string()))?;
    let event: Event = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    Ok(event.workflow_run)
}

pub(super) fn unusable(what: String) -> ServiceError {
    let help = "run `quorate init wiring github` to write the workflows";
    ServiceError::configuration(codes::GITHUB_UNUSABLE, Body::new(what).help(help))
}
