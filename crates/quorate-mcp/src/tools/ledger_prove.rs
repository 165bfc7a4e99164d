//! `ledger_prove`: a proof of a record or a run for a party without the ledger.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Object;
use crate::ServerState;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};
use quorate::service::ledger::prove;
use quorate::service::runs;

pub(super) struct LedgerProve;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// A record (`<run>/<n>`), or a run: its id, the beginning of it, or `latest`
    what: String,
}

impl Tool for LedgerProve {
    const NAME: &'static str = "ledger_prove";
    const TITLE: &'static str = "Prove what was decided";
    const ABOUT: &'static str = "Proves, without access to the ledger, that a record, or a run, is in it: the object that \
                                 `quorate ledger check-proof` checks when it is written to a file as canonical JSON.";
    const EFFECT: Effect = Effect::Reads;
    type Arguments = Arguments;
    type Output = Object;

    async fn call(server: &Arc<ServerState>, arguments: Arguments, _: &Caller) -> Result<Object, Failure> {
        let within = server.clone();
        server.run_computation(Box::pin(async move { run_prove(&within, arguments).await })).await
    }
}

async fn run_prove(server: &ServerState, arguments: Arguments) -> Result<Object, Failure> {
    let session = runs::open_read_only(&server.environment, &server.places).await?;
    let proved = prove::prove(&session, &arguments.what).await;
    session.close().await;
    let text = serde_json::to_string(&proved?).expect("a proof is JSON");
    Ok(Object::from_json_text(&text))
}
