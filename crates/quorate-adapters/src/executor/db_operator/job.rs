//! Servers whose operators take long give a job in place of the result, and the result to whoever asks for it later:
//! `{job, done, result?}`. A job that nobody waits for any more is taken back.

use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::Json;
use serde_json::json;
use tokio::time::Instant;

use crate::mcp::{Arguments, CallDeadline, CallError, Connection, Retry, ServerTools};

const POLL_TOOL: &str = "job_poll";
const CANCEL_TOOL: &str = "job_cancel";

/// What a server calls the time that it is to wait, in milliseconds.
const WAIT_PARAMETERS: &[&str] = &["waitMs", "wait_ms"];

/// How long taking a job back may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// How long before the deadline a server is asked to answer.
const DEADLINE_MARGIN: Duration = Duration::from_millis(250);

/// A pause before a server is asked again that answered at once.
const POLL_DELAY: Duration = Duration::from_millis(100);

/// Asks the server to wait as long as it may for a result.
pub(super) fn set_wait_parameter(
    arguments: &mut Arguments,
    offer: &ServerTools,
    tool: &str,
    deadline: Instant,
) {
    let left = deadline.saturating_duration_since(Instant::now()).saturating_sub(DEADLINE_MARGIN);
    let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
    if let Some(name) = WAIT_PARAMETERS.iter().find(|name| offer.accepts(tool, name)) {
        let wait = left.min(offer.maximum(tool, name).unwrap_or(u64::MAX));
        arguments.insert((*name).to_owned(), json!(wait));
    }
}

/// The result itself: the one that is there, or the one of its job.
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
        let asked = Instant::now();
        let polled = connection.call(POLL_TOOL, arguments, Retry::Safe, CallDeadline::At(deadline)).await;
        if let Err(CallError::Failed { .. }) = &polled {
            job.as_mut().map(Job::mark_finished);
        }
        result = polled?;
        if asked.elapsed() < POLL_DELAY {
            tokio::time::sleep_until(deadline.min(asked + POLL_DELAY)).await;
        }
    }
}

/// A job that is waited for.
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
            // A server that cannot take it back goes on for nothing.
            let _ = connection.call(CANCEL_TOOL, arguments, Retry::Never, until).await;
        });
    }
}
