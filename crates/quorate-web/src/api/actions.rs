//! Routes below `/api/v1` that start or change something: reviews and convenings, `resume`, `override` and `cancel` of a run,
//! and the jobs that such requests start. An answer names the job, and its run as soon as the ledger has it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use quorate::convene::{ConveneRequest, Inputs};
use quorate::jobs::Reporter;
use quorate::jobs::{JobStatus, Patient, Residue};
use quorate::runs::{LiveState, OverrideRequest, ResumeRequest};
use quorate::service::run_spec::RunOptions;
use quorate::service::runs::{self, Recorded};
use quorate::service::time_text::Whole;
use quorate::service::{budget, resume};
use quorate::{Draft, ReviewRequest, Tier};
use quorate_diagnostics::codes;
use quorate_kernel::budget::Caps;
use quorate_manifest::config::{Configuration, parse_money};
use quorate_protocol::Name;
use quorate_protocol::policy::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::runs::load_live;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;
use crate::{Server, openapi};

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
    /// These limits; those of `host` where it has some; else a number of calls.
    pub(crate) fn caps(&self, config: &Configuration) -> Result<Caps, Failure> {
        self.caps_within(budget::configured(config))
    }

    /// These limits as options of a run.
    fn options(&self) -> Result<RunOptions, Failure> {
        Ok(RunOptions { caps: self.given()?, default_calls: Some(DEFAULT_CALLS), ..RunOptions::default() })
    }

    /// These limits; those that are configured where there are some; else a number of calls.
    pub(crate) fn caps_within(&self, configured: Caps) -> Result<Caps, Failure> {
        let caps = self.given()?;
        let bounded = caps != Caps::default() || configured != Caps::default();
        Ok(if bounded { caps } else { Caps { calls: Some(DEFAULT_CALLS), ..caps } })
    }

    fn given(&self) -> Result<Caps, Failure> {
        let money = self.money.as_deref().map(parse_money).transpose();
        let usd_nanos = money.map_err(|error| {
            Failure::usage(format!("`budget.money`: {error}"), "write an amount and USD, for example 5 USD")
        })?;
        let calls = self.calls.and_then(|calls| calls.get().try_into().ok());
        Ok(Caps { calls, tokens: self.tokens.map(Whole::get), usd_nanos })
    }
}

/// Starts work, unless a request with the same key has started it before.
pub(crate) async fn start<E: Endpoint, W>(
    server: &Arc<Server>,
    call: &Call<E>,
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
    let route = format!("{} {path}", E::METHOD.word());
    let (status, started) = server.answered.once(&route, &call.headers, &call.bytes, started).await?;
    Ok((status, Json(started)).into_response())
}

/// A review that is asked for. Who is asked is configured in quorate.toml and council.yaml.
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
            options: self.budget.options()?,
            ..ReviewRequest::default()
        })
    }
}

pub(crate) struct PostReviews;

impl Endpoint for PostReviews {
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/api/v1/reviews";
    const ABOUT: &'static str = "Has a council review a text: a job, whose result is the run's report";
    type Query = Nothing;
    type Body = ReviewBody;

    fn answer() -> Answer {
        Answer::accepted::<Started>("The job that reviews it")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let reviewing = server.quorate.review(call.body.draft()?).request(call.body.request()?).load()?;
        let work = |observer: Arc<Reporter<Failure>>| async move {
            Ok(reviewing.start().finish_with(&*observer).await?.to_json())
        };
        start(&server, &call, Self::PATH, work).await
    }
}

/// What an assembly is asked for. Who its members are, and who answers for them, is configured in its files.
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
            options: self.budget.options()?,
            ..ConveneRequest::default()
        })
    }
}

pub(crate) struct PostConvenings;

impl Endpoint for PostConvenings {
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/api/v1/convenings";
    const ABOUT: &'static str = "Convenes an assembly: a job, whose result is the run's report";
    type Query = Nothing;
    type Body = ConveneBody;

    fn answer() -> Answer {
        Answer::accepted::<Started>("The job that convenes it")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let convening = server.quorate.convening(call.body.clone().request()?);
        let work = |observer: Arc<Reporter<Failure>>| async move {
            Ok(convening.start().finish_with(&*observer).await?.to_json())
        };
        start(&server, &call, Self::PATH, work).await
    }
}

/// How a run is continued. The answers that it has are kept.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeBody {
    /// In place of the run's own
    budget: Option<Limits>,
}

pub(crate) struct PostResume;

impl Endpoint for PostResume {
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/api/v1/runs/{run}/resume";
    const ABOUT: &'static str =
        "Continues a run that a crash, an interruption or a missing answer stopped: a job";
    type Query = Nothing;
    type Body = ResumeBody;

    fn answer() -> Answer {
        Answer::accepted::<Started>("The job that continues it")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
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
            let opened = runs::open_run_as_recorded(&within.environment, within.places.clone(), &run);
            let (session, run) = Box::pin(opened).await?;
            let caps = body.budget.map(|budget| budget.caps(&session.workspace.config)).transpose();
            let resumed = match caps {
                Ok(caps) => {
                    let options = RunOptions { caps: caps.unwrap_or_default(), ..RunOptions::default() };
                    let request = ResumeRequest { options, ..ResumeRequest::default() };
                    let resumed = resume::resume(&session, &run, &request, observer);
                    Box::pin(resumed).await.map_err(Failure::from)
                }
                Err(failure) => Err(failure),
            };
            session.close().await;
            Ok(resumed?.to_json())
        };
        start(&server, &call, &path, work).await
    }
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

pub(crate) struct PostOverride;

impl Endpoint for PostOverride {
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/api/v1/runs/{run}/override";
    const ABOUT: &'static str = "Records a person's decision beside the council's verdict, with its reason";
    type Query = Nothing;
    type Body = OverrideBody;

    fn answer() -> Answer {
        Answer { schema: openapi::report_schema, ..Answer::json::<()>("The report, with the decision") }
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
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
            let report = server.run_computation(Box::pin(decided)).await?;
            Ok((StatusCode::OK, report.to_json()))
        };
        let route = format!("post /api/v1/runs/{run}/override");
        let (status, report) = server.answered.once(&route, &call.headers, &call.bytes, recorded).await?;
        Ok((status, Json(report)).into_response())
    }
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

pub(crate) struct GetJob;

impl Endpoint for GetJob {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/jobs/{job}";
    const ABOUT: &'static str = "How far a job is, or its result; a job that failed answers with its failure";
    type Query = JobQuery;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<JobStatus>("The job")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
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
}

/// What became of a job.
#[derive(Debug, Serialize, JsonSchema)]
struct CancelledJob {
    /// Whether it was ended; false if it had ended before
    cancelled: bool,
}

pub(crate) struct DeleteJob;

impl Endpoint for DeleteJob {
    const METHOD: Method = Method::Delete;
    const PATH: &'static str = "/api/v1/jobs/{job}";
    const ABOUT: &'static str = "Ends a job, with its members; a run that was recorded can be resumed";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<CancelledJob>("Whether it was ended")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        Ok(Json(CancelledJob { cancelled: server.jobs.cancel(call.part("job")).await? }).into_response())
    }
}

/// The job that held the run.
#[derive(Debug, Serialize, JsonSchema)]
struct CancelledRun {
    job: String,
    /// Whether it was ended; false if it had ended before
    cancelled: bool,
}

pub(crate) struct PostCancel;

impl Endpoint for PostCancel {
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/api/v1/runs/{run}/cancel";
    const ABOUT: &'static str =
        "Ends the work on a run that this server started, with its members; the run can be resumed";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<CancelledRun>("Whether it was ended")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let run = server.reading().await?.find_run(call.part("run")).await?;
        let Some((job, _)) = server.jobs.find_by_run(&run) else {
            return Err(not_held(&run, load_live(&server, run.to_string()).await?.state));
        };
        let cancelled = server.jobs.cancel(&job).await?;
        Ok(Json(CancelledRun { job, cancelled }).into_response())
    }
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
