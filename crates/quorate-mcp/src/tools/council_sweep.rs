//! `council_sweep`: reviews what is due below `watch.paths`.

use std::sync::Arc;

use globset::GlobBuilder;
use schemars::JsonSchema;
use serde::Deserialize;

use super::options::{PolicyName, caps, executor, since, timeout};
use super::{MaxCalls, MaxTokens, Object, Wait};
use crate::ServerState;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};
use quorate::service::jobs::progress::Reporter;
use quorate::service::jobs::{JobStatus, Residue};
use quorate::service::run_options::RunOptions;
use quorate::service::runs;
use quorate::service::sweep::{self, FileFilter, JudgedPolicy, Mode, Request};
use quorate::service::whole::Whole;

/// The number of concurrent reviews: default and maximum.
const DEFAULT_JOBS: u64 = 4;
const MAX_JOBS: u64 = 64;

pub(super) struct CouncilSweep;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Only files whose path from the root matches, for example drafts/**/*.md
    pattern: Option<String>,
    /// Only files changed since then: 24h, 7d, a date, or all; default 24h
    since: Option<String>,
    /// Review again what was judged before
    #[serde(default)]
    force: bool,
    /// Only list what would be reviewed
    #[serde(default)]
    dry_run: bool,
    /// The number of concurrent reviews; default 4
    jobs: Option<Whole<1, MAX_JOBS>>,
    /// The executor: a table of quorate.toml, rubric, claude, codex, anthropic, openai, gemini, ollama …, each with `:MODEL`
    executor: Option<String>,
    /// The verdict policy; by default council.yaml's, else seed
    policy: Option<PolicyName>,
    /// The most calls of each review
    max_calls: Option<MaxCalls>,
    /// The most tokens of each review, prompts and answers
    max_tokens: Option<MaxTokens>,
    /// The most money of each review, for example 5 USD or 0.50 USD
    max_money: Option<String>,
    /// The timeout of each member, for example 90s or 5m
    timeout: Option<String>,
    /// How long to wait for the end, in milliseconds: default 20000, at most 50000
    #[serde(default)]
    wait_ms: Wait,
}

impl Tool for CouncilSweep {
    const NAME: &'static str = "council_sweep";
    const TITLE: &'static str = "Review what is due";
    const ABOUT: &'static str = "Reviews everything below the council's watch.paths that is due and not judged yet, and \
        says what became of every file. A job: without a result after `wait_ms`, go on with `job_poll`.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = Arguments;
    type Output = JobStatus;

    async fn call(
        server: &Arc<ServerState>,
        arguments: Arguments,
        caller: &Caller,
    ) -> Result<JobStatus, Failure> {
        let pattern = arguments.pattern.as_deref().map(|pattern| {
            let glob = GlobBuilder::new(pattern).literal_separator(true).build();
            glob.map(|glob| glob.compile_matcher())
                .map_err(|error| Failure::usage(format!("`pattern`: {error}"), "write drafts/**/*.md"))
        });
        let now_ms = server.environment.clock.now_ms();
        let request = Request {
            since_ms: since(arguments.since.as_deref().unwrap_or("24h"), now_ms)?,
            judged: if arguments.force { JudgedPolicy::Repeat } else { JudgedPolicy::Skip },
            mode: if arguments.dry_run { Mode::DryRun } else { Mode::Run },
            filter: FileFilter { below: Some(server.root.dir().to_owned()), pattern: pattern.transpose()? },
            jobs: arguments.jobs.map_or(DEFAULT_JOBS, Whole::get) as usize,
            policy: arguments.policy.map(Into::into),
            options: RunOptions {
                executor: executor(arguments.executor)?,
                model: None,
                caps: caps(arguments.max_calls, arguments.max_tokens, arguments.max_money.as_deref())?,
                timeout: timeout(arguments.timeout.as_deref())?,
                producer: None,
            },
        };
        let (wait, within) = (arguments.wait_ms.duration(), server.clone());
        let work = |watcher: Arc<Reporter<Failure>>| async move {
            let session = Arc::new(runs::open_for_writing(&within.environment, &within.places).await?);
            let result = sweep::sweep(&session, &request, watcher).await;
            if let Some(session) = Arc::into_inner(session) {
                session.close().await;
            }
            Ok(Object::from_json_text(&sweep::json::json(&result?)).0.into())
        };
        server.jobs.start(wait, caller, Residue::Runs, work).await
    }
}
