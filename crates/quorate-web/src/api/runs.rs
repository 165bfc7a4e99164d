//! Routes below `/api/v1` that read runs: the list, a run's report, artifact, records and live state, streams of its events,
//! the comparison of two runs, and the audit of all.
//!
//! The id of a record's event is the record's number. A client that lost the connection sends the last id that it saw as
//! `Last-Event-ID`, as browsers do, and continues after it, also with another server of the same ledger.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{self, Stream};
use quorate::audit::{Audit, AuditRequest, ReviewFilter};
use quorate::input::parse_since;
use quorate::reader::Follower;
use quorate::runs::{
    self, CompareRequest, Comparison, ListedRun, Live, Recorded, RunFilter, RunList, RunRecord, RunRecords,
    RunsRequest,
};
use quorate::{Error, ErrorKind};
use quorate_diagnostics::{Body, codes};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::endpoint::{Answer, Call, Method, Route};
use crate::failure::Failure;
use crate::{Server, openapi};

/// The routes.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::Get,
            "/api/v1/runs",
            "Lists the runs of the ledger: open ones first, in each part the newest first",
            Answer::json::<Runs>("The runs"),
            get_runs,
        ),
        Route::new(
            Method::Get,
            "/api/v1/runs/{run}",
            "What a run of a council or an assembly came to, and why",
            Answer { schema: openapi::report_schema, ..Answer::json::<()>("The report") },
            get_run,
        ),
        Route::new(
            Method::Get,
            "/api/v1/runs/{run}/records",
            "What is recorded of a run, in order, at most 1,000 records at once",
            Answer::json::<RunRecords>("The records"),
            get_records,
        ),
        Route::new(
            Method::Get,
            "/api/v1/compare",
            "Compares two runs on one artifact: findings kept, new and gone, and who changed position",
            Answer::json::<Comparison>("The comparison"),
            get_compare,
        ),
        Route::new(
            Method::Get,
            "/api/v1/runs/{run}/events",
            "The records of a run as server-sent events, `record` for each and `end` after the last",
            Answer {
                content_type: "text/event-stream",
                schema: record_event,
                ..Answer::json::<()>(
                    "A stream of events: the data of `record` is a record as `records` gives it",
                )
            },
            get_events,
        ),
        Route::new(
            Method::Get,
            "/api/v1/runs/{run}/live",
            "How far a run is: each member's questions, and what was spent of the budget",
            Answer::json::<Live>("The run as it is now"),
            get_live,
        ),
        Route::new(
            Method::Get,
            "/api/v1/runs/{run}/live/events",
            "How far a run is, as server-sent events: `state` whenever that changes, and `end` once no record follows",
            Answer {
                content_type: "text/event-stream",
                schema: openapi::event,
                ..Answer::json::<()>("A stream of events: the data of `state` is what `live` gives")
            },
            get_live_events,
        ),
        Route::new(
            Method::Get,
            "/api/v1/audit",
            "Verdicts, members' behaviour and agreement, producers, drift, overrides and cost of a period",
            Answer::json::<Audit>("The audit"),
            get_audit,
        ),
        Route::new(
            Method::Get,
            "/api/v1/runs/{run}/artifact",
            "The text that a council reviewed, as it is kept: secrets are redacted",
            Answer { content_type: TEXT, ..Answer::json::<String>("The text") },
            get_artifact,
        ),
    ]
}

/// The most runs of one answer.
const MAX_LIMIT: u32 = 1_000;

/// The runs of an answer, unless the request says otherwise.
const DEFAULT_LIMIT: u32 = 50;

/// Which runs are listed.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    /// Only this verdict or outcome, for example hold or pass; open for undecided runs
    #[schemars(schema_with = "openapi::verdict")]
    pub(crate) verdict: Option<String>,
    /// Only this type of artifact
    #[serde(rename = "type")]
    pub(crate) artifact_type: Option<String>,
    /// Only reviews (council), or assemblies of this mode: advisory, voting, peer, hierarchy
    #[schemars(schema_with = "openapi::mode")]
    pub(crate) mode: Option<String>,
    /// Only runs on what this operator made
    pub(crate) producer: Option<String>,
    /// Only runs opened since then: 24h, 7d, a date, or all
    #[schemars(schema_with = "openapi::since")]
    pub(crate) since: Option<String>,
    /// Where the page begins: the `next` of the answer before
    pub(crate) before: Option<String>,
    /// The most runs: default 50
    #[schemars(range(min = 1, max = 1_000))]
    pub(crate) limit: Option<u32>,
}

/// Runs, open ones first, in each part the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Runs {
    pub(crate) runs: Vec<ListedRun>,
    /// The `before` that lists the next ones, if there may be more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl Query {
    fn filter(&self, server: &Server) -> Result<RunFilter, Failure> {
        let since_ms = since_ms(server, &self.since)?;
        let verdict = one_of("verdict", given(&self.verdict), &runs::VERDICTS)?;
        let mode = one_of("mode", given(&self.mode), &runs::MODES)?;
        Ok(RunFilter {
            since_ms,
            verdict,
            artifact_type: given(&self.artifact_type),
            mode,
            producer: given(&self.producer),
            after: given(&self.before).map(|cursor| cursor.as_str().into()),
        })
    }
}

/// A value of a query. Forms send what is not filled in as empty texts.
fn given(value: &Option<String>) -> Option<String> {
    value.clone().filter(|value| !value.is_empty())
}

fn since_ms(server: &Server, since: &Option<String>) -> Result<Option<i64>, Failure> {
    let Some(text) = given(since) else { return Ok(None) };
    parse_since(&text, server.quorate.now_ms())
        .map_err(|error| Failure::usage(format!("`since`: {error}"), "write 24h, 7d, a date, or all"))
}

/// A word of a list, in small letters.
fn one_of(name: &str, given: Option<String>, words: &[&str]) -> Result<Option<String>, Failure> {
    let word = given.map(|word| word.to_lowercase());
    match word {
        Some(word) if !words.contains(&&*word) => {
            Err(Failure::usage(format!("`{name}` is {word}"), format!("it is one of {}", words.join(", "))))
        }
        word => Ok(word),
    }
}

/// The runs that a query names.
pub(crate) async fn list(server: &Server, query: &Query) -> Result<RunList, Failure> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Failure::usage(format!("`limit` is {limit}"), format!("it is 1 to {MAX_LIMIT}")));
    }
    let filter = query.filter(server)?;
    match server.reading().await {
        Ok(quorate) => Ok(quorate.runs(RunsRequest { filter, limit }).await?.value),
        // A workspace without a ledger has no runs.
        Err(error) if error.code() == codes::RUN_UNKNOWN.as_str() && filter.after.is_none() => {
            Ok(RunList::default())
        }
        Err(error) => Err(error.into()),
    }
}

async fn get_runs(server: Arc<Server>, call: Call<Query>) -> Result<Response, Failure> {
    let page = list(&server, &call.query).await?;
    let next = page.next.map(|cursor| cursor.to_string());
    Ok(Json(Runs { runs: page.runs, next }).into_response())
}

/// The report of a run that an id, the beginning of one, or `latest` names.
pub(crate) async fn load_report(server: &Arc<Server>, run: String) -> Result<Recorded, Failure> {
    let quorate = server.reading().await?;
    Ok(server.jobs.compute(async move { quorate.show(&run).await }).await?.value)
}

async fn get_run(server: Arc<Server>, call: Call) -> Result<Response, Failure> {
    let report = load_report(&server, call.part("run").to_owned()).await?;
    Ok(Json(json!(report)).into_response())
}

/// Which records are given.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RecordsQuery {
    /// Only records after the one with this number
    after: Option<u64>,
}

async fn get_records(server: Arc<Server>, call: Call<RecordsQuery>) -> Result<Response, Failure> {
    let quorate = server.reading().await?;
    let (run, after) = (call.part("run").to_owned(), call.query.after);
    let read = async move { quorate.records(&run, after).await };
    Ok(Json(server.jobs.compute(read).await?.value).into_response())
}

/// The comparison that a query asks for.
pub(crate) async fn load_comparison(
    server: &Arc<Server>,
    request: CompareRequest,
) -> Result<Comparison, Failure> {
    let quorate = server.reading().await?;
    Ok(server.jobs.compute(async move { quorate.compare(request).await }).await?.value)
}

async fn get_compare(server: Arc<Server>, call: Call<CompareRequest>) -> Result<Response, Failure> {
    Ok(Json(load_comparison(&server, call.query).await?).into_response())
}

/// An event of a stream of records.
fn record_event(schemas: &mut SchemaGenerator) -> Schema {
    let record = schemas.subschema_for::<RunRecord>();
    json_schema!({
        "type": "object",
        "required": ["event", "data"],
        "properties": {
            "event": {"enum": ["record", "end"]},
            "id": {"description": "The record's number", "type": "string"},
            "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": record},
        },
    })
}

/// How often a comment is sent, so that dead connections are noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Server-sent events.
pub(super) fn event_response(
    events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> Response {
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

async fn get_events(server: Arc<Server>, call: Call) -> Result<Response, Failure> {
    let follower = server.reader.follow(call.part("run")).await?;
    let next = next_record(&call.headers)?;
    Ok(event_response(record_events(follower, next)))
}

/// The first record that the client has not seen.
fn next_record(headers: &HeaderMap) -> Result<u64, Failure> {
    let Some(last) = headers.get("last-event-id") else { return Ok(0) };
    let last = last.to_str().ok().and_then(|text| text.parse::<u64>().ok()).and_then(|n| n.checked_add(1));
    last.ok_or_else(|| {
        Failure::usage("`Last-Event-ID` is not a record's number", "send the id of the last event")
    })
}

fn record_events(follower: Follower, next: u64) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(Some((follower, next)), |state| async move {
        let (mut follower, next) = state?;
        loop {
            let seen = follower.seen();
            if let Some(record) = seen.record(next) {
                let event = Event::default().event("record").id(record.n.to_string());
                let event = event.json_data(record).expect("a record is JSON");
                return Some((Ok(event), Some((follower, next + 1))));
            }
            if seen.has_ended() {
                // Browsers drop an event without data.
                return Some((Ok(Event::default().event("end").data("{}")), None));
            }
            if seen.is_lost() || !follower.changed().await {
                return None;
            }
        }
    })
}

/// How far a run is that an id, the beginning of one, or `latest` names.
pub(crate) async fn load_live(server: &Arc<Server>, run: String) -> Result<Live, Failure> {
    let quorate = server.reading().await?;
    let live = server.jobs.compute(async move { quorate.live(&run).await }).await?.value;
    Ok(live_with_job(server, live))
}

/// With what the job says that holds the run, if one of this server does.
pub(crate) fn live_with_job(server: &Server, live: Live) -> Live {
    match server.jobs.find_by_run(&live.run) {
        Some((job, state)) => live.with_job(&job, &state.borrow().progress),
        None => live,
    }
}

async fn get_live(server: Arc<Server>, call: Call) -> Result<Response, Failure> {
    Ok(Json(load_live(&server, call.part("run").to_owned()).await?).into_response())
}

/// How often the progress of a job is looked at; it changes with every piece of an answer.
const INTERVAL: Duration = Duration::from_millis(250);

async fn get_live_events(server: Arc<Server>, call: Call) -> Result<Response, Failure> {
    let follower = server.reader.follow(call.part("run")).await?;
    Ok(event_response(live_events(server, follower)))
}

fn live_events(server: Arc<Server>, follower: Follower) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(Some((server, follower, None::<Live>)), |state| async move {
        let (server, mut follower, last) = state?;
        loop {
            let seen = follower.seen();
            if let Some(live) = seen.live() {
                let live = live_with_job(&server, live);
                if last.as_ref() != Some(&live) {
                    let event = Event::default().event("state").json_data(&live).expect("it is JSON");
                    return Some((Ok(event), Some((server, follower, Some(live)))));
                }
                if live.ended {
                    // Browsers drop an event without data.
                    return Some((Ok(Event::default().event("end").data("{}")), None));
                }
            }
            if seen.is_lost() {
                return None;
            }
            tokio::select! {
                is_changed = follower.changed() => if !is_changed { return None },
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    })
}

/// What is counted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuditQuery {
    /// Start of the period: 24h, 7d, 2w, a date, or all
    #[schemars(schema_with = "openapi::since")]
    pub(crate) since: Option<String>,
    /// Only this type of artifact
    #[serde(rename = "type")]
    pub(crate) artifact_type: Option<String>,
}

/// The audit of the workspace's log and ledger.
pub(crate) async fn load_audit(server: &Arc<Server>, query: AuditQuery) -> Result<Audit, Failure> {
    let since_ms = since_ms(server, &query.since)?;
    let filter = ReviewFilter { since_ms, verdict: None, artifact_type: given(&query.artifact_type) };
    let request = AuditRequest { filter, read_only: true, ..AuditRequest::default() };
    // A workspace without log and ledger has an empty audit.
    let quorate = server.reader.open_if_present().await?;
    Ok(server.jobs.compute(async move { quorate.audit(request).await }).await?.value)
}

async fn get_audit(server: Arc<Server>, call: Call<AuditQuery>) -> Result<Response, Failure> {
    Ok(Json(load_audit(&server, call.query).await?).into_response())
}

const TEXT: &str = "text/plain; charset=utf-8";

async fn get_artifact(server: Arc<Server>, call: Call) -> Result<Response, Failure> {
    let Recorded::Review(report) = load_report(&server, call.part("run").to_owned()).await? else {
        let message = "the run is an assembly's; only a review has a text";
        return Err(Failure::new(
            StatusCode::NOT_FOUND,
            codes::ARTIFACT_MISSING,
            message,
            "its records have what its members were shown",
        ));
    };
    let Some(text) = &report.text else {
        let body = Body::new(format!("the text of run {} is no longer kept", report.run));
        return Err(Error::new(ErrorKind::NotFound, codes::BODY_EVICTED, body).into());
    };
    let kind = [(CONTENT_TYPE, HeaderValue::from_static(TEXT))];
    Ok((kind, text.to_string()).into_response())
}
