//! A server whose operators take long returns a job in place of the result: `{job, done, result?}`. The caller polls it,
//! and cancels a job that it no longer waits for.

use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::Json;
use serde_json::json;
use tokio::time::Instant;

use crate::mcp::{Arguments, CallDeadline, CallError, Connection, Retry, ServerTools};

const POLL_TOOL: &str = "job_poll";
const CANCEL_TOOL: &str = "job_cancel";

/// The names that servers use for the wait time, in milliseconds.
const WAIT_PARAMETERS: &[&str] = &["waitMs", "wait_ms"];

const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// How long before the deadline a server is asked to answer.
const DEADLINE_MARGIN: Duration = Duration::from_millis(250);

/// The pause before the next poll if a server answered at once.
const POLL_DELAY: Duration = Duration::from_millis(100);

/// Asks the server to wait for a result as long as the deadline allows.
pub(super) fn set_wait_parameter(
    arguments: &mut Arguments,
    offer: &ServerTools,
    tool: &str,
    deadline: Instant,
) {
    let remaining = deadline.saturating_duration_since(Instant::now()).saturating_sub(DEADLINE_MARGIN);
    let remaining = u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX);
    if let Some(name) = WAIT_PARAMETERS.iter().find(|name| offer.accepts(tool, name)) {
        let wait = remaining.min(offer.maximum(tool, name).unwrap_or(u64::MAX));
        arguments.insert((*name).to_owned(), json!(wait));
    }
}

/// The result in a reply, or that of the job in it.
pub(super) async fn await_result(
    connection: &Arc<Connection>,
    offer: &ServerTools,
    mut result: Json,
    deadline: Instant,
) -> Result<Json, CallError> {
    let mut job = None;
    loop {
        let done = result.get("done").and_then(Json::as_bool);
        let (Some(id), Some(done)) = (result.get("job").and_then(Json::as_str), done) else {
            return Ok(result);
        };
        if done {
            job.as_mut().map(Job::mark_finished);
            return Ok(result.get("result").cloned().unwrap_or_default());
        }
        let id = id.to_owned();
        job.get_or_insert_with(|| Job::new(connection, &id));
        let mut arguments = Arguments::from_iter([("job".to_owned(), json!(id))]);
        set_wait_parameter(&mut arguments, offer, POLL_TOOL, deadline);
        let polled_at = Instant::now();
        let polled = connection.call(POLL_TOOL, arguments, Retry::Safe, CallDeadline::At(deadline)).await;
        if let Err(CallError::Failed { .. }) = &polled {
            job.as_mut().map(Job::mark_finished);
        }
        result = polled?;
        if polled_at.elapsed() < POLL_DELAY {
            tokio::time::sleep_until(deadline.min(polled_at + POLL_DELAY)).await;
        }
    }
}

/// A pending job; dropping it cancels it on the server.
struct Job {
    connection: Arc<Connection>,
    id: String,
    running: bool,
}

impl Job {
    fn new(connection: &Arc<Connection>, id: &str) -> Self {
        Job { connection: Arc::clone(connection), id: id.to_owned(), running: true }
    }

    fn mark_finished(&mut self) {
        self.running = false;
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if !self.running {
            return;
        }
        let connection = Arc::clone(&self.connection);
        let arguments = Arguments::from_iter([("job".to_owned(), json!(self.id))]);
        runtime.spawn(async move {
            let until = CallDeadline::At(Instant::now() + CANCEL_TIMEOUT);
            // A server that cannot cancel it finishes it without effect.
            let _ = connection.call(CANCEL_TOOL, arguments, Retry::Never, until).await;
        });
    }
}
