//! The tools on jobs: `job_poll` waits for one, `job_cancel` ends one.

use std::sync::Arc;

use quorate::jobs::JobStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Wait;
use crate::ServerState;
use crate::conversations::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};

pub(super) struct JobPoll;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PollArguments {
    /// The job
    job: String,
    /// How long to wait for its end, in milliseconds: default 20000, at most 50000
    #[serde(default)]
    wait_ms: Wait,
}

impl Tool for JobPoll {
    const NAME: &'static str = "job_poll";
    const TITLE: &'static str = "Wait for a job";
    const ABOUT: &'static str = "Waits for a job's end and gives its result, or says how far it is.";
    // It only reads, but a read-only server has no jobs.
    const EFFECT: Effect = Effect::Adds;
    type Arguments = PollArguments;
    type Output = JobStatus;

    async fn call(
        server: &Arc<ServerState>,
        arguments: PollArguments,
        caller: &Caller,
    ) -> Result<JobStatus, Failure> {
        server.jobs.poll(&arguments.job, arguments.wait_ms.duration(), caller).await
    }
}

pub(super) struct JobCancel;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelArguments {
    /// The job
    job: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Cancelled {
    /// The job.
    job: String,
    /// False if the job had ended before.
    cancelled: bool,
}

impl Tool for JobCancel {
    const NAME: &'static str = "job_cancel";
    const TITLE: &'static str = "Cancel a job";
    const ABOUT: &'static str = "Ends a job and the members that it has asked. What was recorded stays.";
    const EFFECT: Effect = Effect::Replaces;
    type Arguments = CancelArguments;
    type Output = Cancelled;

    async fn call(
        server: &Arc<ServerState>,
        arguments: CancelArguments,
        _: &Caller,
    ) -> Result<Cancelled, Failure> {
        let cancelled = server.jobs.cancel(&arguments.job).await?;
        Ok(Cancelled { job: arguments.job, cancelled })
    }
}
