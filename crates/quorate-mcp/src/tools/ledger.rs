//! The tools on the ledger: `ledger_verify` verifies it, `ledger_prove` proves a record or a run to a party without the
//! ledger, `run_show` shows the outcome of a run and its reasons.

use std::sync::Arc;

use quorate::service::ledger::{prove, verify};
use quorate::service::runs;
use quorate::service::time_text::Whole;
use quorate_ledger::note::Verifier;
use quorate_ledger::signing::PublicKey;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::Object;
use crate::conversations::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};
use crate::{ServerState, resources};

pub(super) struct LedgerVerify;

fn is_key(text: &str) -> bool {
    Verifier::from_text(text).is_ok() || PublicKey::from_text(text).is_ok()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VerifyArguments {
    /// Trust the checkpoint over this many records, and verify only the records after it
    since: Option<Whole<0, { u64::MAX }>>,
    /// Keys that must have signed a checkpoint, as received from the ledger's owner: verifiers' lines
    keys: Option<Vec<String>>,
}

impl Tool for LedgerVerify {
    const NAME: &'static str = "ledger_verify";
    const TITLE: &'static str = "Verify the ledger";
    const ABOUT: &'static str = "Holds the ledger against its hashes, signatures, checkpoints, witness and log; says what was \
                                 changed, removed, reordered, cut or inserted, the first place first.";
    const EFFECT: Effect = Effect::Reads;
    type Arguments = VerifyArguments;
    type Output = Object;

    async fn call(
        server: &Arc<ServerState>,
        arguments: VerifyArguments,
        _: &Caller,
    ) -> Result<Object, Failure> {
        let within = server.clone();
        server.run_computation(Box::pin(async move { run_verify(&within, arguments).await })).await
    }
}

async fn run_verify(server: &ServerState, arguments: VerifyArguments) -> Result<Object, Failure> {
    let keys = arguments.keys.unwrap_or_default();
    // The command line also accepts a file; here no path outside the root may be named.
    if let Some(invalid) = keys.iter().find(|key| !is_key(key)) {
        return Err(Failure::usage(
            format!("`keys` has `{invalid}`, which is not a key"),
            "give a verifier's line, as `quorate keys export ledger --format note` prints it, or a public key",
        ));
    }
    let request = verify::VerifyRequest {
        since: arguments.since.map(|size| size.get().to_string()),
        witness: None,
        keys,
        strict: false,
        places: server.places.clone(),
    };
    let verified = verify::verify(&server.environment, &request).await?;
    Ok(Object::from_json_text(&verify::json(&verified)))
}

pub(super) struct LedgerProve;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProveArguments {
    /// A record (`<run>/<n>`), or a run: its id, the beginning of it, or `latest`
    what: String,
}

impl Tool for LedgerProve {
    const NAME: &'static str = "ledger_prove";
    const TITLE: &'static str = "Prove what was decided";
    const ABOUT: &'static str = "Proves, without access to the ledger, that a record, or a run, is in it: the object that \
                                 `quorate ledger check-proof` checks when it is written to a file as canonical JSON.";
    const EFFECT: Effect = Effect::Reads;
    type Arguments = ProveArguments;
    type Output = Object;

    async fn call(
        server: &Arc<ServerState>,
        arguments: ProveArguments,
        _: &Caller,
    ) -> Result<Object, Failure> {
        let within = server.clone();
        server.run_computation(Box::pin(async move { run_prove(&within, arguments).await })).await
    }
}

async fn run_prove(server: &ServerState, arguments: ProveArguments) -> Result<Object, Failure> {
    let session = runs::open_read_only(&server.environment, &server.places).await?;
    let proved = prove::prove(&session, &arguments.what).await;
    session.close().await;
    let text = serde_json::to_string(&proved?).expect("a proof is JSON");
    Ok(Object::from_json_text(&text))
}

pub(super) struct RunShow;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShowArguments {
    /// The run's id, the beginning of it, or `latest`
    run: String,
}

impl Tool for RunShow {
    const NAME: &'static str = "run_show";
    const TITLE: &'static str = "Show a run";
    const ABOUT: &'static str = "The outcome of a recorded run of a council or an assembly, and the reasons.";
    const EFFECT: Effect = Effect::Reads;
    type Arguments = ShowArguments;
    type Output = Object;

    async fn call(
        server: &Arc<ServerState>,
        arguments: ShowArguments,
        _: &Caller,
    ) -> Result<Object, Failure> {
        let within = server.clone();
        server.run_computation(Box::pin(async move { load_run(&within, arguments).await })).await
    }
}

async fn load_run(server: &ServerState, arguments: ShowArguments) -> Result<Object, Failure> {
    match resources::json(&resources::load(server, &arguments.run).await?) {
        Value::Object(object) => Ok(Object(object)),
        other => unreachable!("a report is an object: {other}"),
    }
}
