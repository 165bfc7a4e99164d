//! `job_cancel`: ends a job.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ServerState;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};

pub(super) struct JobCancel;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
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
    type Arguments = Arguments;
    type Output = Cancelled;

    async fn call(server: &Arc<ServerState>, arguments: Arguments, _: &Caller) -> Result<Cancelled, Failure> {
        let cancelled = server.jobs.cancel(&arguments.job).await?;
        Ok(Cancelled { job: arguments.job, cancelled })
    }
}
