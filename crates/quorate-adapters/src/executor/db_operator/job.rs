//! Servers whose operators take long give a job in place of the result, and the result to whoever asks for it later:
//! `{job, done, result?}`. A job that nobody waits for any more is taken back.

use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::Json;
use serde_json::json;
use tokio::time::Instant;

use crate::mcp::{Arguments, Connection, Offer, Repeat, Trouble, Until};

const POLL: &str = "job_poll";
const CANCEL: &str = "job_cancel";

/// What a server calls the time that it is to wait, in milliseconds.
const WAITS: &[&str] = &["waitMs", "wait_ms"];

/// How long taking a job back may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long before the deadline a server is asked to answer.
const MARGIN: Duration = Duration::from_millis(250);

/// A pause before a server is asked again that answered at once.
const PAUSE: Duration = Duration::from_millis(100);

/// Asks the server to wait as long as it may for a result.
pub(super) fn patient(arguments: &mut Arguments, offer: &Offer, tool: &str, deadline: Instant) {
    let left = deadline.saturating_duration_since(Instant::now()).saturating_sub(MARGIN);
    let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
    if let Some(name) = WAITS.iter().find(|name| offer.takes(tool, name)) {
        let wait = left.min(offer.maximum(tool, name).unwrap_or(u64::MAX));
        arguments.insert((*name).to_owned(), json!(wait));
    }
}

/// The result itself: the one that is there, or the one of its job.
pub(super) async fn settled(
    connection: &Arc<Connection>,
    offer: &Offer,
    mut result: Json,
    deadline: Instant,
) -> Result<Json, Trouble> {
    let mut job = None;
    loop {
        let done = result.get("done").and_then(Json::as_bool);
        let (Some(id), Some(done)) = (result.get("job").and_then(Json::as_str), done) else {
            return Ok(result);
        };
        if done {
            job.as_mut().map(Job::ended);
            return Ok(result.get("result").cloned().unwrap_or_default());
        }
        let id = id.to_owned();
        job.get_or_insert_with(|| Job::new(connection, &id));
        let mut arguments = Arguments::from_iter([("job".to_owned(), json!(id))]);
        patient(&mut arguments, offer, POLL, deadline);
        let asked = Instant::now();
        let polled = connection.call(POLL, arguments, Repeat::Harmless, Until::Deadline(deadline)).await;
        if let Err(Trouble::Failed { .. }) = &polled {
            job.as_mut().map(Job::ended);
        }
        result = polled?;
        if asked.elapsed() < PAUSE {
            tokio::time::sleep_until(deadline.min(asked + PAUSE)).await;
        }
    }
}

/// A job that is waited for.
struct Job {
    connection: Arc<Connection>,
    id: String,
    runs: bool,
}

impl Job {
    fn new(connection: &Arc<Connection>, id: &str) -> Self {
        Job { connection: Arc::clone(connection), id: id.to_owned(), runs: true }
    }

    fn ended(&mut self) {
        self.runs = false;
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if !self.runs {
            return;
        }
        let connection = Arc::clone(&self.connection);
        let arguments = Arguments::from_iter([("job".to_owned(), json!(self.id))]);
        runtime.spawn(async move {
            let until = Until::Deadline(Instant::now() + FAREWELL);
            // A server that cannot take it back goes on for nothing.
            let _ = connection.call(CANCEL, arguments, Repeat::Never, until).await;
        });
    }
}
