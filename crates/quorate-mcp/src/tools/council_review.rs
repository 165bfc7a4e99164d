//! `council_review`: reviews one text.

use std::path::PathBuf;
use std::sync::Arc;

use quorate_manifest::council::tiers::Tier;
use schemars::JsonSchema;
use serde::Deserialize;

use super::options::{PolicyName, caps, executor, timeout};
use super::{MaxCalls, MaxTokens, Wait};
use crate::ServerState;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};
use quorate::service::artifact::{self, Artifact};
use quorate::service::jobs::progress::Reporter;
use quorate::service::jobs::{JobStatus, Residue};
use quorate::service::producer::Producer;
use quorate::service::review::{self, Request, ReviewOutcome, TierPolicy};
use quorate::service::run_options::RunOptions;
use quorate::service::whole::Whole;

pub(super) struct CouncilReview;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, from the workspace's root; or `text`
    path: Option<PathBuf>,
    /// The text itself; or `path`
    text: Option<String>,
    /// The text's name; the extension, for example .md, determines the format
    name: Option<String>,
    /// Its type, under which verdicts are remembered; by default from the tier rules
    #[serde(rename = "type")]
    artifact_type: Option<String>,
    /// Its tier, in place of the tier rules
    tier: Option<Whole<1, 3>>,
    /// The executor: a table of quorate.toml, rubric, claude, codex, anthropic, openai, gemini, ollama …, each with `:MODEL`
    executor: Option<String>,
    /// The verdict policy; by default council.yaml's, else seed
    policy: Option<PolicyName>,
    /// The most calls of the run
    max_calls: Option<MaxCalls>,
    /// The most tokens of the run, prompts and answers
    max_tokens: Option<MaxTokens>,
    /// The most money of the run, for example 5 USD or 0.50 USD
    max_money: Option<String>,
    /// The timeout of each member, for example 90s or 5m
    timeout: Option<String>,
    /// The operator that produced it; `quorate playbook` learns from it, and it is hidden from the judges
    made_by: Option<String>,
    /// The shadow playbooks that were in its prompt
    #[serde(default)]
    trying: Vec<String>,
    /// How long to wait for the verdict, in milliseconds: default 20000, at most 50000
    #[serde(default)]
    wait_ms: Wait,
}

impl Tool for CouncilReview {
    const NAME: &'static str = "council_review";
    const TITLE: &'static str = "Review a text";
    const ABOUT: &'static str = "A council reviews one text: SHIP, REVISE, HOLD or INCOMPLETE, with a brief that says \
        what to change where. A job: without a result after `wait_ms`, go on with `job_poll`.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = Arguments;
    type Output = JobStatus;

    async fn call(
        server: &Arc<ServerState>,
        arguments: Arguments,
        caller: &Caller,
    ) -> Result<JobStatus, Failure> {
        let artifact = artifact(server, &arguments)?;
        let request = Request {
            artifact_type: arguments.artifact_type,
            tier: arguments.tier.and_then(|number| Tier::from_number(number.get())),
            tier_policy: TierPolicy::Ignore,
            policy: arguments.policy.map(Into::into),
            options: RunOptions {
                executor: executor(arguments.executor)?,
                model: None,
                caps: caps(arguments.max_calls, arguments.max_tokens, arguments.max_money.as_deref())?,
                timeout: timeout(arguments.timeout.as_deref())?,
                producer: Producer::from_flags(arguments.made_by.as_deref(), &arguments.trying),
            },
        };
        let (wait, server) = (arguments.wait_ms.duration(), server.clone());
        let jobs = server.clone();
        let work = |observer: Arc<Reporter<Failure>>| async move {
            let session = review::open_session(&server.environment, &server.places, &artifact).await?;
            let reviewed = review::review(&session, artifact, &request, observer).await;
            session.close().await;
            match reviewed? {
                ReviewOutcome::Judged(report) => Ok(report.json()),
                ReviewOutcome::Skipped { .. } => {
                    unreachable!("a text that is named is reviewed in any tier")
                }
            }
        };
        jobs.jobs.start(wait, caller, Residue::Runs, work).await
    }
}

fn artifact(server: &ServerState, arguments: &Arguments) -> Result<Artifact, Failure> {
    match (&arguments.path, &arguments.text) {
        (Some(path), None) => Ok(server.root.artifact(path)?),
        (None, Some(text)) => {
            let name = arguments.name.clone().unwrap_or_else(|| "-".to_owned());
            Ok(artifact::from_bytes(name, None, Ok(text.clone().into_bytes()))?)
        }
        (Some(_), Some(_)) => Err(Failure::malformed("there are both `path` and `text`", "leave one out")),
        (None, None) => Err(Failure::malformed("there is nothing to review", "say `path` or `text`")),
    }
}
