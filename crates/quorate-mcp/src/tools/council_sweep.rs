//! `council_sweep`: reviews what is due below `watch.paths`.

use std::sync::Arc;

use globset::GlobBuilder;
use schemars::JsonSchema;
use serde::Deserialize;

use super::options::{PolicyName, since, timeout};
use super::{MaxCalls, Object, Wait};
use crate::ServerState;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::jobs::{Residue, Standing};
use crate::progress::Reporter;
use crate::tool::{Effect, Tool};
use crate::whole::Whole;
use quorate::service::run_options::RunOptions;
use quorate::service::runs;
use quorate::service::sweep::{self, FileFilter, JudgedPolicy, Mode, Request};

/// How many reviews are held at once, unless said and at most.
const DEFAULT_JOBS: u64 = 4;
const MAX_JOBS: u64 = 64;

pub(super) struct CouncilSweep;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Only files whose path from the root matches, for example drafts/**/*.md
    pattern: Option<String>,
    /// Only files changed since then: 24h, 7d, a date, or all; 24h unless said
    since: Option<String>,
    /// Review again what was judged already
    #[serde(default)]
    force: bool,
    /// Only say what would be reviewed
    #[serde(default)]
    dry_run: bool,
    /// How many reviews are held at once; 4 unless said
    jobs: Option<Whole<1, MAX_JOBS>>,
    /// Who answers: a table of quorate.toml, claude, codex, gemini, ollama, or rubric
    executor: Option<String>,
    /// The verdict policy; without it the one that council.yaml names, else seed
    policy: Option<PolicyName>,
    /// How many calls each review may make
    max_calls: Option<MaxCalls>,
    /// How long each member may take, for example 90s or 5m
    timeout: Option<String>,
    /// How long to wait for the end, in milliseconds: 20000 unless said, 50000 at most
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
    type Output = Standing;

    async fn call(served: &Arc<ServerState>, given: Arguments, caller: &Caller) -> Result<Standing, Failure> {
        let pattern = given.pattern.as_deref().map(|pattern| {
            let glob = GlobBuilder::new(pattern).literal_separator(true).build();
            glob.map(|glob| glob.compile_matcher())
                .map_err(|error| Failure::usage(format!("`pattern`: {error}"), "write drafts/**/*.md"))
        });
        let now_ms = served.environment.clock.now_ms();
        let request = Request {
            since_ms: since(given.since.as_deref().unwrap_or("24h"), now_ms)?,
            judged: if given.force { JudgedPolicy::Repeat } else { JudgedPolicy::Skip },
            mode: if given.dry_run { Mode::DryRun } else { Mode::Run },
            filter: FileFilter { below: Some(served.root.dir().to_owned()), pattern: pattern.transpose()? },
            jobs: given.jobs.map_or(DEFAULT_JOBS, Whole::get) as usize,
            policy: given.policy.map(Into::into),
            options: RunOptions {
                executor: given.executor,
                model: None,
                max_calls: given.max_calls.map(|calls| calls.get() as u32),
                timeout: timeout(given.timeout.as_deref())?,
                producer: None,
            },
        };
        let (wait, within) = (given.wait_ms.duration(), served.clone());
        let work = |watcher: Arc<Reporter>| async move {
            let session = Arc::new(runs::open_for_writing(&within.environment, &within.places).await?);
            let swept = sweep::sweep(&session, &request, watcher).await;
            if let Some(session) = Arc::into_inner(session) {
                session.close().await;
            }
            Ok(Object::from_json_text(&sweep::json::json(&swept?)).0.into())
        };
        served.jobs.start(wait, caller, Residue::Runs, work).await
    }
}
