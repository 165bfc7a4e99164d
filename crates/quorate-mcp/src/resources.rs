//! Resources: what a client can put into a model's context without a tool: recorded runs, their briefs, and the schemas of
//! what tools give.

use std::fmt::Write as _;
use std::sync::Arc;

use quorate_diagnostics::invisible::escape_invisible;
use rmcp::ErrorData;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;

use super::ServerState;
use super::failure::Failure;
use quorate::service::runs::{self, RunReport};
use quorate::service::schemas::{self, ANSWERS, Output};
use quorate_ledger::runs::{ListedRun, RunFilter};

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
    let newest = state.run_computation(Box::pin(async move { newest(&within).await })).await;
    let schema = |name: &str, about: String| {
        Resource::new(format!("{SCHEMAS}{name}"), format!("schema {name}"))
            .with_description(about)
            .with_mime_type(JSON)
    };
    let outputs = Output::ALL.map(|output| {
        schema(output.word(), format!("The JSON Schema of what has `schema: {}`", output.id()))
    });
    let answers =
        ANSWERS.map(|(name, _, about)| schema(name, format!("The JSON Schema of an answer: {about}")));
    newest.into_iter().chain(outputs).chain(answers).collect()
}

/// The newest runs; empty without a ledger.
async fn newest(state: &ServerState) -> Vec<Resource> {
    let Ok(session) = runs::open_read_only(&state.environment, &state.places).await else {
        return Vec::new();
    };
    let runs = runs::list(&session, &RunFilter::default(), MAX_LISTED).await.unwrap_or_default().runs;
    session.close().await;
    let redacted = &state.environment.redactor;
    let resource = |ListedRun { run, .. }: ListedRun| {
        let verdict = run.verdict.as_deref().unwrap_or("undecided");
        let about =
            escape_invisible(&redacted.redact_text(&format!("{verdict}: {}", run.subject))).into_owned();
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
    if let Some(name) = uri.strip_prefix(SCHEMAS) {
        let output = Output::ALL.into_iter().find(|output| output.word() == name).map(Output::json);
        let schema = output.or_else(|| schemas::answer(name)).ok_or_else(|| unknown(uri))?;
        return Ok(ResourceContents::text(format!("{schema:#}"), uri).with_mime_type(JSON));
    }
    let run = uri.strip_prefix(RUNS).filter(|run| !run.is_empty()).ok_or_else(|| unknown(uri))?.to_owned();
    let within = state.clone();
    let text = async move {
        let (run, is_brief) = match run.strip_suffix(BRIEF) {
            Some(run) => (run, true),
            None => (&*run, false),
        };
        let report = load(&within, run).await?;
        let redacted = &within.environment.redactor;
        Ok::<_, Failure>(match is_brief {
            true => (redacted.redact_text(&brief(&report)), TEXT),
            false => (format!("{:#}", redacted.redact_json(json(&report))), JSON),
        })
    };
    let done = state.run_computation(Box::pin(text)).await;
    let (text, kind) = done.map_err(|failure| failure.resource_error(&state.environment.redactor))?;
    Ok(ResourceContents::text(text, uri).with_mime_type(kind))
}

/// The address of a run.
pub(super) fn run_uri(run: &str) -> String {
    format!("{RUNS}{run}")
}

fn unknown(uri: &str) -> ErrorData {
    let known = templates().into_iter().map(|template| template.uri_template).collect::<Vec<_>>().join(", ");
    ErrorData::resource_not_found(format!("unknown resource `{uri}`; the resources are {known}"), None)
}

/// The report of a run.
pub(super) async fn load(state: &ServerState, run: &str) -> Result<RunReport, Failure> {
    let (session, run) = runs::open_run(&state.environment, &state.places, run).await?;
    let report = runs::load_report(&session, &run).await;
    session.close().await;
    Ok(report?)
}

/// As `--format json` prints it.
pub(super) fn json(report: &RunReport) -> Value {
    match report {
        RunReport::Review(report) => report.json(),
        RunReport::Assembly(report) => report.json(),
    }
}

fn brief(report: &RunReport) -> String {
    let report = match report {
        RunReport::Review(report) => report,
        RunReport::Assembly(report) => {
            let verdict = report.verdict.as_deref().unwrap_or("undecided");
            let because =
                report.because.as_deref().map_or_else(String::new, |because| format!(": {because}"));
            return format!("{verdict}{because}\n");
        }
    };
    let mut text = format!("{} {}\n", report.verdict_word(), report.artifact);
    if let Some(decision) = &report.overridden {
        let _ =
            writeln!(text, "A person ({}) decided {}: {}", decision.by, decision.verdict, decision.reason);
    }
    for part in
        [Some(&report.because), Some(&report.reasoning), report.revision_brief.as_ref()].into_iter().flatten()
    {
        if !part.is_empty() && !text.contains(part.as_str()) {
            let _ = write!(text, "\n{}\n", part.trim_end());
        }
    }
    text
}
