//! Routes below `/api/v1` that start or change something: reviews and convenings, `resume`, `override` and `cancel` of a run,
//! and the jobs that such requests start. An answer names the job, and its run as soon as the ledger has it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use quorate::convene::{ConveneRequest, Inputs};
use quorate::input::Whole;
use quorate::jobs::Reporter;
use quorate::jobs::{JobStatus, Patient, Residue};
use quorate::runs::{LiveState, OverrideRequest, ResumeRequest};
use quorate::{Caps, Draft, Money, Name, ReviewRequest, RunOptions, Tier, Verdict};
use quorate_diagnostics::codes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::runs::load_live;
use crate::endpoint::{Answer, Call, Method, Nothing, Route};
use crate::failure::Failure;
use crate::{Server, openapi};

/// The routes.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::Post,
            "/api/v1/reviews",
            "Has a council review a text: a job, whose result is the run's report",
            Answer::accepted::<Started>("The job that reviews it"),
            post_reviews,
        ),
        Route::new(
            Method::Post,
            "/api/v1/convenings",
            "Convenes an assembly: a job, whose result is the run's report",
            Answer::accepted::<Started>("The job that convenes it"),
            post_convenings,
        ),
        Route::new(
            Method::Post,
            "/api/v1/runs/{run}/resume",
            "Continues a run that a crash, an interruption or a missing answer stopped: a job",
            Answer::accepted::<Started>("The job that continues it"),
            post_resume,
        ),
        Route::new(
            Method::Post,
            "/api/v1/runs/{run}/override",
            "Records a person's decision beside the council's verdict, with its reason",
            Answer { schema: openapi::report_schema, ..Answer::json::<()>("The report, with the decision") },
            post_override,
        ),
        Route::new(
            Method::Get,
            "/api/v1/jobs/{job}",
            "How far a job is, or its result; a job that failed answers with its failure",
            Answer::json::<JobStatus>("The job"),
            get_job,
        ),
        Route::new(
            Method::Delete,
            "/api/v1/jobs/{job}",
            "Ends a job, with its members; a run that was recorded can be resumed",
            Answer::json::<CancelledJob>("Whether it was ended"),
            delete_job,
        ),
        Route::new(
            Method::Post,
            "/api/v1/runs/{run}/cancel",
            "Ends the work on a run that this server started, with its members; the run can be resumed",
            Answer::json::<CancelledRun>("Whether it was ended"),
            post_cancel,
        ),
    ]
}

/// How long an answer waits for the run to be recorded.
const RUN_TIMEOUT: Duration = Duration::from_secs(5);

/// How often it looks.
const INTERVAL: Duration = Duration::from_millis(20);

/// The most calls of work that neither the request nor `quorate.toml` bounds.
const DEFAULT_CALLS: u32 = 50;

/// A job that was started.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Started {
    /// The job, for `GET /api/v1/jobs/{job}`
    job: String,
    /// The run, if it is recorded already
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
}

/// The most that the work may take. Without any of them and without `[budget]` in quorate.toml it is 50 calls
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    /// The most calls
    calls: Option<Whole<1, { u32::MAX as u64 }>>,
    /// The most tokens, prompts and answers
    tokens: Option<Whole<1, { u64::MAX }>>,
    /// The most money, for example "5 USD"
    #[schemars(regex(pattern = "^([1-9][0-9]{0,8}(\\.[0-9]{1,9})?|0\\.[0-9]{0,4}[1-9][0-9]{0,4}) USD$"))]
    money: Option<String>,
}

impl Limits {
    /// These limits as options of a run that asks through `executor`.
    fn options(&self, executor: Option<&String>) -> Result<RunOptions, Failure> {
        Ok(RunOptions {
            caps: self.given()?,
            executor: executor.cloned(),
            offered_only: true,
            default_calls: Some(DEFAULT_CALLS),
            ..RunOptions::default()
        })
    }

    /// These limits; those that are configured where there are some; else a number of calls.
    pub(crate) fn caps_within(&self, configured: Caps) -> Result<Caps, Failure> {
        let caps = self.given()?;
        let bounded = caps != Caps::default() || configured != Caps::default();
        Ok(if bounded { caps } else { Caps { calls: Some(DEFAULT_CALLS), ..caps } })
    }

    fn given(&self) -> Result<Caps, Failure> {
        let money = self.money.as_deref().map(Money::parse_cap).transpose();
        let money = money.map_err(|error| {
            Failure::usage(format!("`budget.money`: {error}"), "write an amount and USD, for example 5 USD")
        })?;
        let calls = self.calls.and_then(|calls| calls.get().try_into().ok());
        Ok(Caps { calls, tokens: self.tokens.map(Whole::get), money })
    }
}

/// Starts work, unless a request with the same key has started it before.
pub(crate) async fn start<B, W>(
    server: &Arc<Server>,
    call: &Call<Nothing, B>,
    path: &str,
    work: impl FnOnce(Arc<Reporter<Failure>>) -> W,
) -> Result<Response, Failure>
where
    W: Future<Output = Result<Value, Failure>> + Send + 'static,
{
    let started = async {
        let mut status = server.jobs.start(Duration::ZERO, &Patient, Residue::Runs, work).await?;
        let until = tokio::time::Instant::now() + RUN_TIMEOUT;
        let mut run = None;
        while run.is_none() && !status.done && tokio::time::Instant::now() < until {
            run = status.progress.as_ref().and_then(|progress| progress.run.clone());
            tokio::time::sleep(INTERVAL).await;
            // A job that failed before its run was recorded fails the request.
            status = match server.jobs.poll(&status.job, Duration::ZERO, &Patient).await {
                Err(failure) if run.is_none() => return Err(failure),
                Err(_) => break,
                Ok(status) => status,
            };
        }
        let of_result = || status.result.as_ref()?["run"].as_str().map(str::to_owned);
        let started = Started { job: status.job.clone(), run: run.or_else(of_result) };
        Ok((StatusCode::ACCEPTED, json!(started)))
    };
    let route = format!("post {path}");
    let (status, started) = server.answered.once(&route, &call.headers, &call.bytes, started).await?;
    Ok((status, Json(started)).into_response())
}

/// A review that is asked for. By default quorate.toml and council.yaml say who is asked.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"required": ["path"], "properties": {"path": {"type": "string"}, "text": {"type": "null"}}},
    {"required": ["text"], "properties": {"text": {"type": "string"}, "path": {"type": "null"}}},
]))]
pub(crate) struct ReviewBody {
    /// The file, from the workspace's root; or `text`
    path: Option<PathBuf>,
    /// The text itself; or `path`
    text: Option<String>,
    /// The text's name; the extension, for example .md, determines the format. By default its first heading or line
    name: Option<String>,
    /// Its type, under which verdicts are remembered; by default from the tier rules
    #[serde(rename = "type")]
    artifact_type: Option<String>,
    /// Its tier, in place of the tier rules
    tier: Option<Whole<1, 3>>,
    /// The council's file, from the workspace's root, in place of the configured one
    council: Option<PathBuf>,
    /// The executor of all members, in place of the configured ones: a table of quorate.toml, or rubric
    executor: Option<String>,
    #[serde(default)]
    budget: Limits,
}

impl ReviewBody {
    fn draft(&self) -> Result<Draft, Failure> {
        match (&self.path, &self.text) {
            (Some(path), None) => Ok(Draft::from(path)),
            (None, Some(text)) => Ok(Draft::of_text(text.clone(), self.name.clone())),
            (Some(_), Some(_)) => Err(Failure::usage("there are both `path` and `text`", "leave one out")),
            (None, None) => Err(Failure::usage("there is nothing to review", "send `path` or `text`")),
        }
    }

    fn request(&self) -> Result<ReviewRequest, Failure> {
        Ok(ReviewRequest {
            artifact_type: self.artifact_type.clone(),
            tier: self.tier.and_then(|number| Tier::from_number(number.get())),
            options: self.budget.options(self.executor.as_ref())?,
            ..ReviewRequest::default()
        })
    }
}

async fn post_reviews(server: Arc<Server>, call: Call<Nothing, ReviewBody>) -> Result<Response, Failure> {
    let council = call.body.council.clone().map(|path| server.quorate.named_path(path)).transpose()?;
    let quorate = server.quorate.with_paths(council, None);
    let reviewing = quorate.review(call.body.draft()?).request(call.body.request()?).load()?;
    let work = |observer: Arc<Reporter<Failure>>| async move {
        Ok(json!(*reviewing.start().finish_with(observer).await?))
    };
    start(&server, &call, "/api/v1/reviews", work).await
}

/// The question for an assembly. Its files configure its members and, by default, their executors.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConveneBody {
    /// The ASSEMBLY.md, or the directory that holds it, from the workspace's root
    assembly: PathBuf,
    /// Advisory: the conversation, as .jsonl or .md
    conversation: Option<Subject>,
    /// Advisory: which members to ask, by phase; default session
    phase: Option<String>,
    /// Voting: the proposal
    proposal: Option<Subject>,
    /// Voting: the proposal's class; without it only members without classes vote
    class: Option<String>,
    /// Peer: the topic
    topic: Option<Subject>,
    /// Peer: the most rounds, in place of the manifest's
    rounds: Option<Whole<1, 100>>,
    /// Hierarchy: the matter to assess
    request: Option<Subject>,
    /// The executor of all members, in place of the configured ones: a table of quorate.toml, or rubric
    executor: Option<String>,
    #[serde(default)]
    budget: Limits,
}

/// What an assembly decides about: a file, by its path from the workspace's root, or a text
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a path, or an object {text, name}")]
enum Subject {
    Path(PathBuf),
    Text {
        /// The text
        text: String,
        /// Its name; the extension, for example .jsonl, determines the format. By default its first heading or line
        name: Option<String>,
    },
}

impl From<Subject> for Draft {
    fn from(subject: Subject) -> Draft {
        match subject {
            Subject::Path(path) => Draft::File(path),
            Subject::Text { text, name } => Draft::of_text(text, name),
        }
    }
}

impl ConveneBody {
    fn request(self) -> Result<ConveneRequest, Failure> {
        Ok(ConveneRequest {
            path: self.assembly,
            inputs: Inputs {
                conversation: self.conversation.map(Draft::from),
                phase: self.phase,
                proposal: self.proposal.map(Draft::from),
                class: self.class,
                topic: self.topic.map(Draft::from),
                rounds: self.rounds.and_then(|rounds| rounds.get().try_into().ok()),
                request: self.request.map(Draft::from),
                ..Inputs::default()
            },
            options: self.budget.options(self.executor.as_ref())?,
            ..ConveneRequest::default()
        })
    }
}

async fn post_convenings(server: Arc<Server>, call: Call<Nothing, ConveneBody>) -> Result<Response, Failure> {
    let convening = server.quorate.convening(call.body.clone().request()?);
    let work = |observer: Arc<Reporter<Failure>>| async move {
        Ok(json!(*convening.start().finish_with(observer).await?))
    };
    start(&server, &call, "/api/v1/convenings", work).await
}

/// How a run is continued. The answers that it has are kept.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeBody {
    /// In place of the run's own
    budget: Option<Limits>,
}

async fn post_resume(server: Arc<Server>, call: Call<Nothing, ResumeBody>) -> Result<Response, Failure> {
    let run = server.reading().await?.find_run(call.part("run")).await?;
    let (within, body, path) = (server.clone(), call.body.clone(), format!("/api/v1/runs/{run}/resume"));
    let work = |observer: Arc<Reporter<Failure>>| async move {
        if let Some((job, _)) = within.jobs.find_by_run(&run) {
            return Err(Failure::new(
                StatusCode::CONFLICT,
                codes::RUN_MOVED,
                format!("this server works on run {run} already, in the job {job}"),
                format!(
                    "wait for it with `GET /api/v1/jobs/{job}`, or end it with `POST /api/v1/runs/{run}/cancel`"
                ),
            ));
        }
        observer.continues(&run);
        let options = body.budget.map(|budget| budget.options(None)).transpose()?.unwrap_or_default();
        let request = ResumeRequest { run: run.to_string(), options, ..ResumeRequest::default() };
        Ok(json!(*within.quorate.resume(request).finish_with(observer).await?))
    };
    start(&server, &call, &path, work).await
}

/// A person's decision.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverrideBody {
    verdict: DecidedVerdict,
    /// Why: the next review learns from it
    #[schemars(length(min = 1, max = quorate::runs::MAX_REASON_CHARS))]
    reason: String,
    /// Who decided; by default Git's `user.name <user.email>`
    #[schemars(length(max = quorate::runs::MAX_BY_CHARS))]
    by: Option<String>,
}

/// What a person can decide
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum DecidedVerdict {
    Ship,
    Revise,
    Hold,
}

async fn post_override(server: Arc<Server>, call: Call<Nothing, OverrideBody>) -> Result<Response, Failure> {
    let run = server.reading().await?.find_run(call.part("run")).await?;
    let OverrideBody { verdict, reason, by } = call.body.clone();
    let verdict = match verdict {
        DecidedVerdict::Ship => Verdict::Ship,
        DecidedVerdict::Revise => Verdict::Revise,
        DecidedVerdict::Hold => Verdict::Hold,
    };
    let request = OverrideRequest { run: run.to_string(), verdict, reason, by };
    let quorate = server.quorate.clone();
    let recorded = async {
        let decided = async move { quorate.override_verdict(request).await };
        let report = server.jobs.compute(decided).await?;
        Ok((StatusCode::OK, json!(*report)))
    };
    let route = format!("post /api/v1/runs/{run}/override");
    let (status, report) = server.answered.once(&route, &call.headers, &call.bytes, recorded).await?;
    Ok((status, Json(report)).into_response())
}

/// The longest wait.
const MAX_WAIT_MS: u64 = 50_000;

/// How long to wait.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct JobQuery {
    /// How long to wait for the job's end, in milliseconds: default 0
    #[schemars(range(max = 50_000))]
    wait_ms: Option<u64>,
}

async fn get_job(server: Arc<Server>, call: Call<JobQuery>) -> Result<Response, Failure> {
    let wait_ms = call.query.wait_ms.unwrap_or(0);
    if wait_ms > MAX_WAIT_MS {
        return Err(Failure::usage(
            format!("`wait_ms` is {wait_ms}"),
            format!("it is at most {MAX_WAIT_MS}"),
        ));
    }
    let status = server.jobs.poll(call.part("job"), Duration::from_millis(wait_ms), &Patient).await?;
    Ok(Json(status).into_response())
}

/// What became of a job.
#[derive(Debug, Serialize, JsonSchema)]
struct CancelledJob {
    /// Whether it was ended; false if it had ended before
    cancelled: bool,
}

async fn delete_job(server: Arc<Server>, call: Call) -> Result<Response, Failure> {
    Ok(Json(CancelledJob { cancelled: server.jobs.cancel(call.part("job")).await? }).into_response())
}

/// The job that held the run.
#[derive(Debug, Serialize, JsonSchema)]
struct CancelledRun {
    job: String,
    /// Whether it was ended; false if it had ended before
    cancelled: bool,
}

async fn post_cancel(server: Arc<Server>, call: Call) -> Result<Response, Failure> {
    let run = server.reading().await?.find_run(call.part("run")).await?;
    let Some((job, _)) = server.jobs.find_by_run(&run) else {
        return Err(not_held(&run, load_live(&server, run.to_string()).await?.state));
    };
    let cancelled = server.jobs.cancel(&job).await?;
    Ok(Json(CancelledRun { job, cancelled }).into_response())
}

/// The refusal for a run that no job of this server works on.
fn not_held(run: &Name, state: LiveState) -> Failure {
    let help = match state {
        LiveState::Elsewhere => "end it where it was started: Ctrl-C in that terminal".to_owned(),
        LiveState::Remote => "end it on that machine: Ctrl-C where it was started".to_owned(),
        LiveState::Interrupted => {
            format!(
                "there is nothing to end; `POST /api/v1/runs/{run}/resume` or `quorate resume {run}` continues it"
            )
        }
        LiveState::Imported => "end it where it was recorded".to_owned(),
        // A job of this server that ended a moment ago.
        LiveState::Here | LiveState::Ended => {
            format!("there is nothing to end; `GET /api/v1/runs/{run}` says what it came to")
        }
    };
    let message = format!("this server does not work on run {run}: {}", state.sentence());
    Failure::new(StatusCode::CONFLICT, codes::RUN_NOT_HELD, message, help)
}
