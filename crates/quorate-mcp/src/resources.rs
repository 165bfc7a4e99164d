//! Resources: what a client can put into a model's context without a tool: recorded runs, their briefs, and the schemas of
//! what tools give.

use std::sync::Arc;

use quorate_diagnostics::invisible::escape_invisible;
use rmcp::ErrorData;
use rmcp::model::{ErrorCode, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use super::failure::Failure;
use super::{ServerState, card};
use quorate::runs::{ListedRun, RunsRequest};
use quorate::schemas::{self, PublishedSchema};

const RUNS: &str = "quorate://runs/";
const SCHEMAS: &str = "quorate://schemas/";
/// The suffix of a brief's address, after the run.
const BRIEF: &str = "/brief";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
/// The number of listed runs, the newest first; older runs are readable as well.
const MAX_LISTED: u32 = 50;

/// The newest runs, and all schemas.
pub(super) async fn list(state: &Arc<ServerState>) -> Vec<Resource> {
    let within = state.clone();
    let newest = state.jobs.compute(async move { newest(&within).await }).await;
    let schema = |PublishedSchema { name, about, .. }: PublishedSchema| {
        Resource::new(format!("{SCHEMAS}{name}"), format!("schema {name}"))
            .with_description(about)
            .with_mime_type(JSON)
    };
    newest.into_iter().chain(schemas::list().into_iter().map(schema)).collect()
}

/// The newest runs; empty without a ledger.
async fn newest(state: &ServerState) -> Vec<Resource> {
    let request = RunsRequest { limit: MAX_LISTED, ..RunsRequest::default() };
    let runs = state.quorate.runs(request).await.unwrap_or_default().value.runs;
    let resource = |run: ListedRun| {
        let verdict = run.verdict.as_deref().unwrap_or("undecided");
        let about = escape_invisible(&state.quorate.redact_text(&format!("{verdict}: {}", run.artifact)))
            .into_owned();
        Resource::new(format!("{RUNS}{}", run.run), run.run.to_string())
            .with_title(about)
            .with_description("The outcome of a run and its reasons, as `run_show` gives it")
            .with_mime_type(JSON)
    };
    runs.into_iter().map(resource).collect()
}

/// The addresses of what is not listed.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{RUNS}{{run}}"), "run")
            .with_description("A run by its id, the beginning of it, or `latest`, as `run_show` gives it")
            .with_mime_type(JSON),
        ResourceTemplate::new(format!("{RUNS}{{run}}{BRIEF}"), "brief")
            .with_description("What a review asks for: the verdict, why, and the revision brief")
            .with_mime_type(TEXT),
        ResourceTemplate::new(format!("{SCHEMAS}{{name}}"), "schema")
            .with_description("A JSON Schema, as `quorate schema NAME` prints it")
            .with_mime_type(JSON),
    ]
}

/// Reads one.
pub(super) async fn read(state: &Arc<ServerState>, uri: &str) -> Result<ResourceContents, ErrorData> {
    if uri == card::URI {
        return Ok(card::page());
    }
    if let Some(name) = uri.strip_prefix(SCHEMAS) {
        let schema = schemas::find(name).ok_or_else(|| unknown(uri))?;
        return Ok(ResourceContents::text(format!("{schema:#}"), uri).with_mime_type(JSON));
    }
    let run = uri.strip_prefix(RUNS).filter(|run| !run.is_empty()).ok_or_else(|| unknown(uri))?.to_owned();
    let quorate = state.quorate.clone();
    let text = async move {
        let (run, is_brief) = match run.strip_suffix(BRIEF) {
            Some(run) => (run, true),
            None => (&*run, false),
        };
        let recorded = quorate.show(run).await?;
        Ok::<_, Failure>(match is_brief {
            true => (quorate.redact_text(&recorded.brief()), TEXT),
            false => (format!("{:#}", quorate.redact_json(json!(*recorded))), JSON),
        })
    };
    let done = state.jobs.compute(text).await;
    let (text, kind) = done.map_err(|failure| ErrorData {
        code: ErrorCode::RESOURCE_NOT_FOUND,
        ..failure.error(&state.quorate)
    })?;
    Ok(ResourceContents::text(text, uri).with_mime_type(kind))
}

/// The address of a run.
pub(super) fn run_uri(run: &str) -> String {
    format!("{RUNS}{run}")
}

fn unknown(uri: &str) -> ErrorData {
    let known = templates().into_iter().map(|template| template.uri_template).collect::<Vec<_>>().join(", ");
    let message = format!("unknown resource `{uri}`; the resources are {known}");
    ErrorData::resource_not_found(message, Some(json!({"uri": uri})))
}
