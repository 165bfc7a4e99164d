//! `council_audit`: statistics of a council over time, from the log.

use std::sync::Arc;

use quorate_ledger::council_log::stats::LogFilter;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Object;
use super::options::since;
use crate::ServerState;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};
use quorate::service::audit::{self, Request};
use quorate::service::runs;

pub(super) struct CouncilAudit;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Start of the period: 24h, 7d, 2w, a date, or all; default all
    since: Option<String>,
    /// Only this verdict
    verdict: Option<Verdict>,
    /// Only this type of artifact
    #[serde(rename = "type")]
    artifact_type: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Verdict {
    Ship,
    Revise,
    Hold,
    Incomplete,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Ship => "SHIP",
            Verdict::Revise => "REVISE",
            Verdict::Hold => "HOLD",
            Verdict::Incomplete => "INCOMPLETE",
        }
    }
}

impl Tool for CouncilAudit {
    const NAME: &'static str = "council_audit";
    const TITLE: &'static str = "Audit the council";
    const ABOUT: &'static str =
        "What the log tells of the council: verdicts, how its members behave, drift, overrides.";
    const EFFECT: Effect = Effect::Reads;
    type Arguments = Arguments;
    type Output = Object;

    async fn call(server: &Arc<ServerState>, arguments: Arguments, _: &Caller) -> Result<Object, Failure> {
        let within = server.clone();
        server.run_computation(Box::pin(async move { run_audit(&within, arguments).await })).await
    }
}

async fn run_audit(server: &ServerState, arguments: Arguments) -> Result<Object, Failure> {
    let (environment, places) = (&server.environment, &server.places);
    let since_ms = since(arguments.since.as_deref().unwrap_or("all"), environment.clock.now_ms())?;
    let verdict = arguments.verdict.map(|verdict| verdict.word().to_owned());
    let filter = LogFilter { since_ms, verdict, artifact_type: arguments.artifact_type };
    let request = Request { filter, reindex: false };
    if let Some(empty) = audit::empty(environment, places, &request)? {
        return Ok(Object::from_json_text(&audit::json::json(&empty)));
    }
    let session = runs::open(environment, places).await?;
    let audited = audit::audit(&session, request).await;
    session.close().await;
    Ok(Object::from_json_text(&audit::json::json(&audited?)))
}
