//! Answers the open turns of a conversation for front ends without a terminal, as `quorate run` does.

use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::codes;
use quorate_kernel::ports::telemetry::Telemetry;
use quorate_kernel::turn::Begin;
use quorate_protocol::Json;
use serde_json::json;

use crate::service::error::ServiceError;
use crate::service::runtime::OpenRuntime;
use crate::service::runtime::drive::{Step, Until, drive};
use crate::service::runtime::summary::{Retention, RunSummary};

/// How long hooks and records may take at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Answers open turns until none is left, and returns the JSON of `quorate run --format json`. If another process runs the
/// conversation, that process answers, and the JSON has `elsewhere`. Calls `on_cycle` after each cycle.
///
/// # Errors
/// If a participant's executor is not trusted or not installed, or if the substrate or the ledger fails.
pub async fn answer(
    ready: &OpenRuntime,
    telemetry: Arc<dyn Telemetry>,
    mut on_cycle: impl FnMut(),
) -> Result<Json, ServiceError> {
    let (mut runner, _guard) = match ready.runner(Begin::First, telemetry).await {
        Ok(running) => running,
        Err(error) if error.report.refusals.iter().any(|refusal| refusal.code == codes::RUNTIME_BUSY) => {
            return Ok(json!({"runtime": ready.runtime.id, "elsewhere": true}));
        }
        Err(error) => return Err(error),
    };
    let mut summary = RunSummary::new(Retention::All);
    let driven = drive(&mut runner, Until::Idle, ready.runtime.wall, |step| match step {
        Step::Cycled(cycled) => {
            summary.take(cycled);
            on_cycle();
        }
        Step::TimeUp => summary.out_of_time = true,
        Step::Waiting | Step::Retrying(..) => {}
    })
    .await;
    runner.settle_hooks().await;
    let unfinished = runner.close(SHUTDOWN_TIMEOUT).await;
    driven?;
    if let Some(unfinished) = unfinished? {
        summary.take_unfinished(unfinished);
    }
    Ok(summary.json(&ready.runtime.id))
}
