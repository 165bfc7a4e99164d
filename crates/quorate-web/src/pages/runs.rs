//! `/` with the runs of the ledger, and `/runs/{run}`: the page of an ended run by its mode, or of an open one.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use quorate::AssemblyVerdict;
use quorate::Verdict;
use quorate::runs::{ListedRun, MODES, Recorded, VERDICTS};

use super::live_run::LiveView;
use super::{Frame, Surroundings, assembly_run, query, respond, review_run};
use crate::Server;
use crate::api::runs::{Query, list, load_live, load_report};
use crate::failure::Failure;

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    frame: Frame,
    filter: Query,
    verdicts: Vec<(&'static str, bool)>,
    modes: Vec<(&'static str, bool)>,
    rows: Vec<ListedRun>,
    is_filtered: bool,
    /// The address of the next page.
    next: Option<String>,
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
        rows: listed.runs,
        next,
    })
}

/// The page.
pub(super) async fn show_run(server: &Arc<Server>, run: &str) -> Response {
    match load_run(server, run).await {
        Ok((Recorded::Review(report), around)) => {
            respond(server, Ok(review_run::page(server, *report, around)))
        }
        Ok((Recorded::Decision(report), around)) => {
            respond(server, Ok(assembly_run::page(server, *report, around)))
        }
        Err(failure) => respond(server, Err::<review_run::ReviewPage, _>(failure)),
    }
}

async fn load_run(server: &Arc<Server>, run: &str) -> Result<(Recorded, Surroundings), Failure> {
    let report = load_report(server, run.to_owned()).await?;
    let (run, is_open, is_incomplete) = match &report {
        Recorded::Review(report) => (
            report.run.clone(),
            report.verdict.is_none() && !report.is_superseded(),
            report.verdict == Some(Verdict::Incomplete),
        ),
        Recorded::Decision(report) => (
            report.run.clone(),
            report.verdict().is_none(),
            report.verdict() == Some(AssemblyVerdict::Incomplete),
        ),
    };
    let quorate = server.reading().await?;
    let live = match is_open {
        true => Some(LiveView::of(server, &load_live(server, run.clone()).await?)),
        false => None,
    };
    let is_driven = match &live {
        Some(live) => live.is_driven,
        None => is_incomplete && quorate.run_state(&run).await?.is_driven(),
    };
    let previous = quorate.previous_run(&run).await?.map(|previous| previous.to_string());
    Ok((report, Surroundings { live, is_driven, previous }))
}
