//! `ledger_verify`: verifies the ledger.

use std::sync::Arc;

use quorate_ledger::note::Verifier;
use quorate_ledger::signing::PublicKey;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Object;
use crate::ServerState;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};
use quorate::service::ledger::verify::{self, Request};
use quorate::service::whole::Whole;

pub(super) struct LedgerVerify;

fn is_key(text: &str) -> bool {
    Verifier::from_text(text).is_ok() || PublicKey::from_text(text).is_ok()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
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
    type Arguments = Arguments;
    type Output = Object;

    async fn call(server: &Arc<ServerState>, arguments: Arguments, _: &Caller) -> Result<Object, Failure> {
        let within = server.clone();
        server.run_computation(Box::pin(async move { run_verify(&within, arguments).await })).await
    }
}

async fn run_verify(server: &ServerState, arguments: Arguments) -> Result<Object, Failure> {
    let keys = arguments.keys.unwrap_or_default();
    // The command line also accepts a file; here no path outside the root may be named.
    if let Some(invalid) = keys.iter().find(|key| !is_key(key)) {
        return Err(Failure::usage(
            format!("`keys` has `{invalid}`, which is not a key"),
            "give a verifier's line, as `quorate keys export ledger --format note` prints it, or a public key",
        ));
    }
    let request = Request {
        since: arguments.since.map(|size| size.get().to_string()),
        witness: None,
        keys,
        strict: false,
        places: server.places.clone(),
    };
    let verified = verify::verify(&server.environment, &request).await?;
    Ok(Object::from_json_text(&verify::json::json(&verified)))
}
