//! `/`: the runs of the ledger.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use quorate::service::runs::{MODES, VERDICTS};
use quorate_ledger::runs::Listed;

use super::wording::{Mark, instant, minute, plain};
use super::{Frame, query, respond};
use crate::Server;
use crate::api::runs::{Query, list};
use crate::failure::Failure;

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    frame: Frame,
    filter: Query,
    verdicts: Vec<(&'static str, bool)>,
    modes: Vec<(&'static str, bool)>,
    rows: Vec<Row>,
    is_filtered: bool,
    /// The address of the next page.
    next: Option<String>,
}

struct Row {
    run: String,
    opened: String,
    instant: String,
    subject: String,
    artifact_type: String,
    mark: Mark,
    overridden: Option<Mark>,
    blockers: String,
    missing: String,
    producer: String,
    /// What differs between the run's row and its records.
    difference: Option<String>,
    is_sealed: bool,
    is_imported: bool,
}

/// The page.
pub(super) async fn show(server: &Arc<Server>, text: &str) -> Response {
    respond(server, page(server, text).await)
}

async fn page(server: &Arc<Server>, text: &str) -> Result<RunsPage, Failure> {
    let filter: Query = query(text)?;
    let listed = list(server, &filter).await?;
    let chosen = |chosen: &Option<String>| chosen.as_deref().unwrap_or_default().to_lowercase();
    let (verdict, mode) = (chosen(&filter.verdict), chosen(&filter.mode));
    let pairs = [
        ("verdict", &filter.verdict),
        ("type", &filter.artifact_type),
        ("mode", &filter.mode),
        ("producer", &filter.producer),
        ("since", &filter.since),
    ];
    let given: Vec<(&str, &str)> = pairs
        .iter()
        .filter_map(|(key, value)| Some((*key, value.as_deref()?)))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let next = listed.next.map(|cursor| {
        let before = cursor.to_string();
        let limit = filter.limit.map(|limit| limit.to_string());
        let limit = limit.as_deref().map(|limit| ("limit", limit));
        let pairs = given.iter().copied().chain(limit).chain([("before", &*before)]).collect::<Vec<_>>();
        format!("/?{}", serde_urlencoded::to_string(pairs).unwrap_or_default())
    });
    let flags: String = given.iter().map(|(key, value)| format!(" --{key} {value}")).collect();
    let frame = Frame::new(server, "Runs", "runs", format!("quorate runs{flags}"));
    Ok(RunsPage {
        frame: frame.with_json(format!("/api/v1/runs?{}", text)),
        is_filtered: !given.is_empty() || filter.before.is_some(),
        verdicts: VERDICTS.iter().map(|word| (*word, *word == verdict)).collect(),
        modes: MODES.iter().map(|word| (*word, *word == mode)).collect(),
        filter,
        rows: listed.runs.into_iter().map(row).collect(),
        next,
    })
}

fn row(listed: Listed) -> Row {
    let difference = listed.difference().map(str::to_owned);
    let run = listed.run;
    Row {
        difference,
        opened: minute(run.opened_ms),
        instant: instant(run.opened_ms),
        mark: Mark::of(run.verdict.as_deref()),
        overridden: run.overridden.as_deref().map(|word| Mark::of(Some(word))),
        run: run.run.to_string(),
        subject: run.subject,
        artifact_type: plain(&run.artifact_type),
        blockers: listed.blockers.join(", "),
        missing: listed.missing.join(", "),
        producer: listed.producer,
        is_sealed: listed.sealed,
        is_imported: run.imported,
    }
}
