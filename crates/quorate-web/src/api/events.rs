//! `GET /api/v1/runs/{run}/events`: the records of a run as server-sent events, first the existing and then the new ones.
//!
//! The id of an event is the record's number. A client that lost the connection sends the last one it saw as
//! `Last-Event-ID`, as browsers do, and goes on after it, also with another server of the same ledger.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{self, Stream};
use quorate_kernel::ports::ledger::Kind;

use super::records::ShownRecord;
use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;
use crate::follow::Followed;
use crate::openapi;

/// How often a comment is sent, so that dead connections are noticed.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(crate) struct GetEvents;

impl Endpoint for GetEvents {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/runs/{run}/events";
    const ABOUT: &'static str =
        "The records of a run as server-sent events, `record` for each and `end` after the last";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        let about = "A stream of events: the data of `record` is a record as `records` gives it";
        Answer {
            content_type: "text/event-stream",
            schema: openapi::record_event,
            ..Answer::json::<()>(about)
        }
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let session = server.ledger().await?;
        let run = session.find_run(call.part("run")).await?.run;
        let next = next_record(&call.headers)?;
        let followed = server.followers.follow(&session, &run);
        Ok(Sse::new(events(followed, next)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
    }
}

/// The first record that the client has not seen.
fn next_record(headers: &HeaderMap) -> Result<u64, Failure> {
    let Some(last) = headers.get("last-event-id") else { return Ok(0) };
    let last = last.to_str().ok().and_then(|text| text.parse::<u64>().ok()).and_then(|n| n.checked_add(1));
    last.ok_or_else(|| {
        Failure::usage("`Last-Event-ID` is not a record's number", "send the id of the last event")
    })
}

fn events(followed: Arc<Followed>, next: u64) -> impl Stream<Item = Result<Event, Infallible>> {
    let records = followed.records();
    stream::unfold(Some((followed, records, next)), |state| async move {
        let (followed, mut records, next) = state?;
        loop {
            let seen = records.borrow_and_update().clone();
            let at = usize::try_from(next).unwrap_or(usize::MAX);
            if let Some(record) = seen.records.get(at) {
                let event = Event::default().event("record").id(record.n.to_string());
                let event = event.json_data(ShownRecord::from(&**record)).expect("a record is JSON");
                return Some((Ok(event), Some((followed, records, next + 1))));
            }
            if seen.records.last().is_some_and(|last| last.is(Kind::RunEnded)) {
                // Browsers drop an event without data.
                return Some((Ok(Event::default().event("end").data("{}")), None));
            }
            if seen.is_lost || records.changed().await.is_err() {
                return None;
            }
        }
    })
}
