//! The tools on the ledger: `ledger_verify` verifies it, `ledger_prove` proves a record or a run to a party without the
//! ledger, `run_show` shows the outcome of a run and its reasons.

use std::sync::Arc;

use quorate::input::Whole;
use quorate::ledger::VerifyRequest;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::Object;
use crate::ServerState;
use crate::conversations::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LedgerVerify {
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
    type Output = Object;

    async fn call(self, server: &Arc<ServerState>, _: &Caller) -> Result<Object, Failure> {
        let request = VerifyRequest {
            since: self.since.map(|size| size.get().to_string()),
            keys: self.keys.unwrap_or_default(),
            ..VerifyRequest::default()
        };
        let quorate = server.quorate.clone();
        let verified = server.jobs.compute(async move { quorate.verify(request).await }).await?;
        Ok(serde_json::to_value(&verified.value).expect("a verification is JSON").into())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LedgerProve {
    /// A record (`<run>/<n>`), or a run: its id, the beginning of it, or `latest`
    what: String,
}

impl Tool for LedgerProve {
    const NAME: &'static str = "ledger_prove";
    const TITLE: &'static str = "Prove what was decided";
    const ABOUT: &'static str = "Proves, without access to the ledger, that a record, or a run, is in it: the object that \
                                 `quorate ledger check-proof` checks when it is written to a file as canonical JSON.";
    const EFFECT: Effect = Effect::Reads;
    type Output = Object;

    async fn call(self, server: &Arc<ServerState>, _: &Caller) -> Result<Object, Failure> {
        let quorate = server.quorate.clone();
        let proof = async move { quorate.prove(&self.what).await };
        let proof = server.jobs.compute(proof).await?;
        Ok(serde_json::to_value(&proof.value).expect("a proof is JSON").into())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunShow {
    /// The run's id, the beginning of it, or `latest`
    run: String,
}

impl Tool for RunShow {
    const NAME: &'static str = "run_show";
    const TITLE: &'static str = "Show a run";
    const ABOUT: &'static str = "The outcome of a recorded run of a council or an assembly, and the reasons.";
    const EFFECT: Effect = Effect::Reads;
    type Output = Object;

    async fn call(self, server: &Arc<ServerState>, _: &Caller) -> Result<Object, Failure> {
        let quorate = server.quorate.clone();
        let recorded = async move { quorate.show(&self.run).await };
        Ok(json!(*server.jobs.compute(recorded).await?).into())
    }
}
