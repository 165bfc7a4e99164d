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

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct JobPoll {
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
    type Output = JobStatus;

    async fn call(self, server: &Arc<ServerState>, caller: &Caller) -> Result<JobStatus, Failure> {
        server.jobs.poll(&self.job, self.wait_ms.duration(caller), caller).await
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct JobCancel {
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
    type Output = Cancelled;

    async fn call(self, server: &Arc<ServerState>, _: &Caller) -> Result<Cancelled, Failure> {
        let cancelled = server.jobs.cancel(&self.job).await?;
        Ok(Cancelled { job: self.job, cancelled })
    }
}
