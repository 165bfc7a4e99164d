//! `GET /api/v1/runs/{run}/live/events`: how far a run is, as server-sent events: one whenever that changes.
//!
//! Each event holds everything, so a client that lost the connection misses nothing.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{self, Stream};
use quorate::service::live::Live;

use super::events::KEEP_ALIVE;
use super::live::with_job;
use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;
use crate::follow::Followed;
use crate::openapi;

/// How often the progress of a job is looked at; it changes with every piece of an answer.
const INTERVAL: Duration = Duration::from_millis(250);

pub(crate) struct GetLiveEvents;

impl Endpoint for GetLiveEvents {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/runs/{run}/live/events";
    const ABOUT: &'static str = "How far a run is, as server-sent events: `state` whenever that changes, and `end` once no record follows";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        let about = "A stream of events: the data of `state` is what `live` gives";
        Answer { content_type: "text/event-stream", schema: openapi::event, ..Answer::json::<()>(about) }
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let session = server.ledger().await?;
        let run = session.find_run(call.part("run")).await?.run;
        let followed = server.followers.follow(&session, &run);
        let events = events(server, followed);
        Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
    }
}

fn events(server: Arc<Server>, followed: Arc<Followed>) -> impl Stream<Item = Result<Event, Infallible>> {
    let records = followed.records();
    stream::unfold(Some((server, followed, records, None::<Live>)), |state| async move {
        let (server, followed, mut records, last) = state?;
        loop {
            let seen = records.borrow_and_update().clone();
            if let Some(live) = seen.live(followed.run()) {
                let live = with_job(&server, live);
                if last.as_ref() != Some(&live) {
                    let event = Event::default().event("state").json_data(&live).expect("it is JSON");
                    return Some((Ok(event), Some((server, followed, records, Some(live)))));
                }
                if live.ended {
                    // Browsers drop an event without data.
                    return Some((Ok(Event::default().event("end").data("{}")), None));
                }
            }
            if seen.is_lost {
                return None;
            }
            tokio::select! {
                changed = records.changed() => if changed.is_err() { return None },
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    })
}
