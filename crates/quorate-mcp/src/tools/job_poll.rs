//! `job_poll`: waits for a job.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Wait;
use crate::ServerState;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};
use quorate::service::jobs::JobStatus;

pub(super) struct JobPoll;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
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
    type Arguments = Arguments;
    type Output = JobStatus;

    async fn call(
        server: &Arc<ServerState>,
        arguments: Arguments,
        caller: &Caller,
    ) -> Result<JobStatus, Failure> {
        server.jobs.poll(&arguments.job, arguments.wait_ms.duration(), caller).await
    }
}
