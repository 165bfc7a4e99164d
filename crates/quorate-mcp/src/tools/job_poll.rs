//! `job_poll`: waits for a job.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Wait;
use crate::ServerState;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::jobs::Standing;
use crate::tool::{Effect, Tool};

pub(super) struct JobPoll;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The job
    job: String,
    /// How long to wait for its end, in milliseconds: 20000 unless said, 50000 at most
    #[serde(default)]
    wait_ms: Wait,
}

impl Tool for JobPoll {
    const NAME: &'static str = "job_poll";
    const TITLE: &'static str = "Wait for a job";
    const ABOUT: &'static str = "Waits for a job's end and gives its result, or says how far it is.";
    // It looks, but where nothing may be changed there are no jobs.
    const EFFECT: Effect = Effect::Adds;
    type Arguments = Arguments;
    type Output = Standing;

    async fn call(served: &Arc<ServerState>, given: Arguments, caller: &Caller) -> Result<Standing, Failure> {
        served.jobs.poll(&given.job, given.wait_ms.duration(), caller).await
    }
}
