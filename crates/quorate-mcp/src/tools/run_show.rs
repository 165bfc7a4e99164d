//! `run_show`: the outcome of a run and its reasons.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::Object;
use crate::ServerState;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::resources;
use crate::tool::{Effect, Tool};

pub(super) struct RunShow;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The run's id, the beginning of it, or `latest`
    run: String,
}

impl Tool for RunShow {
    const NAME: &'static str = "run_show";
    const TITLE: &'static str = "Show a run";
    const ABOUT: &'static str = "The outcome of a recorded run of a council or an assembly, and the reasons.";
    const EFFECT: Effect = Effect::Reads;
    type Arguments = Arguments;
    type Output = Object;

    async fn call(server: &Arc<ServerState>, arguments: Arguments, _: &Caller) -> Result<Object, Failure> {
        let within = server.clone();
        server.run_computation(Box::pin(async move { load_run(&within, arguments).await })).await
    }
}

async fn load_run(server: &ServerState, arguments: Arguments) -> Result<Object, Failure> {
    match resources::json(&resources::load(server, &arguments.run).await?) {
        Value::Object(object) => Ok(Object(object)),
        other => unreachable!("a report is an object: {other}"),
    }
}
