//! `council_review`: reviews one text.

use std::path::PathBuf;
use std::sync::Arc;

use quorate_manifest::council::tiers::Tier;
use schemars::JsonSchema;
use serde::Deserialize;

use super::options::{PolicyName, timeout};
use super::{MaxCalls, Wait};
use crate::ServerState;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::jobs::{Residue, Standing};
use crate::progress::Reporter;
use crate::tool::{Effect, Tool};
use crate::whole::Whole;
use quorate::service::artifact::{self, Artifact};
use quorate::service::producer::Producer;
use quorate::service::review::{self, Request, ReviewOutcome, TierPolicy};
use quorate::service::run_options::RunOptions;

pub(super) struct CouncilReview;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, from the workspace's root; or `text`
    path: Option<PathBuf>,
    /// The text itself; or `path`
    text: Option<String>,
    /// What the text is called; its end, for example .md, says what it is
    name: Option<String>,
    /// Its type, under which verdicts are remembered; without it what the tier rules say
    #[serde(rename = "type")]
    artifact_type: Option<String>,
    /// Its tier, in place of what the tier rules say
    tier: Option<Whole<1, 3>>,
    /// Who answers: a table of quorate.toml, claude, codex, gemini, ollama, or rubric
    executor: Option<String>,
    /// The verdict policy; without it the one that council.yaml names, else seed
    policy: Option<PolicyName>,
    /// How many calls the run may make
    max_calls: Option<MaxCalls>,
    /// How long each member may take, for example 90s or 5m
    timeout: Option<String>,
    /// The operator that has made what it is about, for `quorate playbook` to learn from; nobody who judges is told
    made_by: Option<String>,
    /// The playbooks in shadow that were in its prompt then
    #[serde(default)]
    trying: Vec<String>,
    /// How long to wait for the verdict, in milliseconds: 20000 unless said, 50000 at most
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
    type Output = Standing;

    async fn call(served: &Arc<ServerState>, given: Arguments, caller: &Caller) -> Result<Standing, Failure> {
        let artifact = artifact(served, &given)?;
        let request = Request {
            artifact_type: given.artifact_type,
            tier: given.tier.and_then(|number| Tier::from_number(number.get())),
            tier_policy: TierPolicy::Ignore,
            policy: given.policy.map(Into::into),
            options: RunOptions {
                executor: given.executor,
                model: None,
                max_calls: given.max_calls.map(|calls| calls.get() as u32),
                timeout: timeout(given.timeout.as_deref())?,
                producer: Producer::from_flags(given.made_by.as_deref(), &given.trying),
            },
        };
        let (wait, served) = (given.wait_ms.duration(), served.clone());
        let jobs = served.clone();
        let work = |observer: Arc<Reporter>| async move {
            let session = review::open_session(&served.environment, &served.places, &artifact).await?;
            let reviewed = review::review(&session, artifact, &request, observer).await;
            session.close().await;
            match reviewed? {
                ReviewOutcome::Judged(report) => Ok(report.json()),
                ReviewOutcome::Skipped { .. } => {
                    unreachable!("a text that is named is reviewed whatever its tier")
                }
            }
        };
        jobs.jobs.start(wait, caller, Residue::Runs, work).await
    }
}

fn artifact(served: &ServerState, given: &Arguments) -> Result<Artifact, Failure> {
    match (&given.path, &given.text) {
        (Some(path), None) => Ok(served.root.artifact(path)?),
        (None, Some(text)) => {
            let name = given.name.clone().unwrap_or_else(|| "-".to_owned());
            Ok(artifact::from_bytes(name, None, Ok(text.clone().into_bytes()))?)
        }
        (Some(_), Some(_)) => Err(Failure::malformed("there are both `path` and `text`", "leave one out")),
        (None, None) => Err(Failure::malformed("there is nothing to review", "say `path` or `text`")),
    }
}
