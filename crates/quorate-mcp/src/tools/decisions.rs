//! The tools that decide: `council_review` reviews one text, `council_sweep` reviews the due files below `watch.paths`,
//! `assembly_convene` convenes an assembly. `council_audit` gives the statistics of a council from its log.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobBuilder;
use quorate::service::artifact::{self, Artifact};
use quorate::service::convene::{self, Inputs, spec};
use quorate::service::jobs::{JobStatus, Reporter, Residue};
use quorate::service::review::{self, ReviewOutcome, TierPolicy};
use quorate::service::run_spec::{Producer, RunOptions};
use quorate::service::sweep::{self, FileFilter, JudgedPolicy, SweepMode};
use quorate::service::time_text::Whole;
use quorate::service::{audit, open_session, runs};
use quorate_ledger::stats::ReviewFilter;
use quorate_manifest::assembly;
use quorate_manifest::council::VerdictPolicy;
use quorate_manifest::council::tiers::Tier;
use quorate_protocol::policy::Verdict;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{MaxCalls, MaxTokens, Object, Wait, named_executor, parse_since, parse_timeout, run_caps};
use crate::ServerState;
use crate::conversations::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};

pub(super) struct CouncilReview;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewArguments {
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
    policy: Option<VerdictPolicy>,
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
    type Arguments = ReviewArguments;
    type Output = JobStatus;

    async fn call(
        server: &Arc<ServerState>,
        arguments: ReviewArguments,
        caller: &Caller,
    ) -> Result<JobStatus, Failure> {
        let artifact = artifact(server, &arguments)?;
        let request = review::ReviewRequest {
            artifact_type: arguments.artifact_type,
            tier: arguments.tier.and_then(|number| Tier::from_number(number.get())),
            tier_policy: TierPolicy::Ignore,
            policy: arguments.policy,
            options: RunOptions {
                executor: named_executor(arguments.executor)?,
                model: None,
                caps: run_caps(arguments.max_calls, arguments.max_tokens, arguments.max_money.as_deref())?,
                timeout: parse_timeout(arguments.timeout.as_deref())?,
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

fn artifact(server: &ServerState, arguments: &ReviewArguments) -> Result<Artifact, Failure> {
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

pub(super) struct CouncilAudit;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditArguments {
    /// Start of the period: 24h, 7d, 2w, a date, or all; default all
    since: Option<String>,
    /// Only this verdict
    verdict: Option<Verdict>,
    /// Only this type of artifact
    #[serde(rename = "type")]
    artifact_type: Option<String>,
}

impl Tool for CouncilAudit {
    const NAME: &'static str = "council_audit";
    const TITLE: &'static str = "Audit the council";
    const ABOUT: &'static str =
        "What the log tells of the council: verdicts, how its members behave, drift, overrides.";
    const EFFECT: Effect = Effect::Reads;
    type Arguments = AuditArguments;
    type Output = Object;

    async fn call(
        server: &Arc<ServerState>,
        arguments: AuditArguments,
        _: &Caller,
    ) -> Result<Object, Failure> {
        let within = server.clone();
        server.run_computation(Box::pin(async move { run_audit(&within, arguments).await })).await
    }
}

async fn run_audit(server: &ServerState, arguments: AuditArguments) -> Result<Object, Failure> {
    let (environment, places) = (&server.environment, &server.places);
    let since_ms = parse_since(arguments.since.as_deref().unwrap_or("all"), environment.clock.now_ms())?;
    let verdict = arguments.verdict.map(|verdict| verdict.as_str().to_owned());
    let filter = ReviewFilter { since_ms, verdict, artifact_type: arguments.artifact_type };
    let request = audit::AuditRequest { filter, reindex: false };
    if let Some(empty) = audit::empty(environment, places, &request)? {
        return Ok(Object::from_json_text(&audit::json(&empty)));
    }
    let session = runs::open(environment, places).await?;
    let audited = audit::audit(&session, request).await;
    session.close().await;
    Ok(Object::from_json_text(&audit::json(&audited?)))
}

/// The number of concurrent reviews: default and maximum.
const DEFAULT_JOBS: u64 = 4;
const MAX_JOBS: u64 = 64;

pub(super) struct CouncilSweep;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SweepArguments {
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
    policy: Option<VerdictPolicy>,
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
    type Arguments = SweepArguments;
    type Output = JobStatus;

    async fn call(
        server: &Arc<ServerState>,
        arguments: SweepArguments,
        caller: &Caller,
    ) -> Result<JobStatus, Failure> {
        let pattern = arguments.pattern.as_deref().map(|pattern| {
            let glob = GlobBuilder::new(pattern).literal_separator(true).build();
            glob.map(|glob| glob.compile_matcher())
                .map_err(|error| Failure::usage(format!("`pattern`: {error}"), "write drafts/**/*.md"))
        });
        let now_ms = server.environment.clock.now_ms();
        let request = sweep::SweepRequest {
            since_ms: parse_since(arguments.since.as_deref().unwrap_or("24h"), now_ms)?,
            judged: if arguments.force { JudgedPolicy::Repeat } else { JudgedPolicy::Skip },
            mode: if arguments.dry_run { SweepMode::DryRun } else { SweepMode::Run },
            filter: FileFilter { below: Some(server.root.dir().to_owned()), pattern: pattern.transpose()? },
            jobs: arguments.jobs.map_or(DEFAULT_JOBS, Whole::get) as usize,
            policy: arguments.policy,
            options: RunOptions {
                executor: named_executor(arguments.executor)?,
                model: None,
                caps: run_caps(arguments.max_calls, arguments.max_tokens, arguments.max_money.as_deref())?,
                timeout: parse_timeout(arguments.timeout.as_deref())?,
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
            Ok(Object::from_json_text(&sweep::json(&result?)).0.into())
        };
        server.jobs.start(wait, caller, Residue::Runs, work).await
    }
}

pub(super) struct AssemblyConvene;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConveneArguments {
    /// The ASSEMBLY.md, or the directory that holds it, from the workspace's root
    assembly: PathBuf,
    /// Advisory: the conversation, as .jsonl or .md
    conversation: Option<Subject>,
    /// Advisory: which members to ask, by phase; default session
    phase: Option<String>,
    /// Advisory: the reason for asking; default manual
    trigger: Option<Trigger>,
    /// Advisory: ask the sentinels first; they can end it
    #[serde(default)]
    sentinel_first: bool,
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
    /// Who answers, for all members: a table of quorate.toml, rubric, claude, codex, anthropic, openai, gemini, ollama …, each with `:MODEL`
    executor: Option<String>,
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
    /// How long to wait for the outcome, in milliseconds: default 20000, at most 50000
    #[serde(default)]
    wait_ms: Wait,
}

/// The subject of an assembly: a file, by its path from the workspace's root, or a text.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a path, or an object {text, name}")]
enum Subject {
    Path(PathBuf),
    Text {
        /// The text
        text: String,
        /// Its name; the extension, for example .jsonl, determines the format
        name: Option<String>,
    },
}

impl Subject {
    fn name(&self) -> PathBuf {
        match self {
            Subject::Path(path) => path.clone(),
            Subject::Text { name, .. } => name.as_deref().unwrap_or("-").into(),
        }
    }
}

/// The reason for asking.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct Trigger(assembly::Trigger);

impl TryFrom<String> for Trigger {
    type Error = String;

    fn try_from(word: String) -> Result<Trigger, String> {
        let found = assembly::Trigger::ALL.into_iter().find(|trigger| trigger.as_str() == word);
        let words = || assembly::Trigger::ALL.map(assembly::Trigger::as_str).join(", ");
        found.map(Trigger).ok_or_else(|| format!("`{word}` is not one of {}", words()))
    }
}

impl JsonSchema for Trigger {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Trigger".into()
    }

    fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "enum": assembly::Trigger::ALL.map(assembly::Trigger::as_str)})
    }
}

impl Tool for AssemblyConvene {
    const NAME: &'static str = "assembly_convene";
    const TITLE: &'static str = "Convene an assembly";
    const ABOUT: &'static str = "Convenes an assembly: guidance (`conversation`), a vote (`proposal`), a talk among \
        equals (`topic`), or an assessment that is rolled up (`request`); its ASSEMBLY.md says which. A job: without a \
        result after `wait_ms`, go on with `job_poll`.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = ConveneArguments;
    type Output = JobStatus;

    async fn call(
        server: &Arc<ServerState>,
        arguments: ConveneArguments,
        caller: &Caller,
    ) -> Result<JobStatus, Failure> {
        let (wait, within) = (arguments.wait_ms.duration(), server.clone());
        let options = RunOptions {
            executor: named_executor(arguments.executor.clone())?,
            model: None,
            caps: run_caps(arguments.max_calls, arguments.max_tokens, arguments.max_money.as_deref())?,
            timeout: parse_timeout(arguments.timeout.as_deref())?,
            producer: Producer::from_flags(arguments.made_by.as_deref(), &arguments.trying),
        };
        let (path, root) = server.root.manifest(&server.environment, &arguments.assembly)?;
        let work = |observer: Arc<Reporter<Failure>>| async move {
            let environment = &within.environment;
            let (input, workspace, options) = prepare_input(&within, arguments, path, root, options)?;
            let spec = spec::build(environment, &workspace, &input, &options)?;
            let session = open_session::open(environment.clone(), workspace).await?;
            let convened = convene::convene(&session, &input, &spec, observer).await;
            session.close().await;
            Ok(convened?.json())
        };
        server.jobs.start(wait, caller, Residue::Runs, work).await
    }
}

/// Reads the inputs of an assembly from below the root.
fn prepare_input(
    server: &ServerState,
    arguments: ConveneArguments,
    path: PathBuf,
    root: PathBuf,
    options: RunOptions,
) -> Result<(convene::ConveneInput, quorate::service::workspace::Workspace, RunOptions), Failure> {
    let subjects = [&arguments.conversation, &arguments.proposal, &arguments.topic, &arguments.request];
    let inline = subjects.into_iter().flatten().find_map(|subject| match subject {
        Subject::Text { text, .. } => Some(text.clone()),
        Subject::Path(_) => None,
    });
    let name_of = |subject: &Option<Subject>| subject.as_ref().map(Subject::name);
    let request = convene::ConveneRequest {
        path,
        root: Some(root),
        inputs: Inputs {
            conversation: name_of(&arguments.conversation),
            phase: arguments.phase,
            trigger: arguments.trigger.map(|trigger| trigger.0),
            sentinel_first: arguments.sentinel_first,
            proposal: name_of(&arguments.proposal),
            class: arguments.class,
            topic: name_of(&arguments.topic),
            rounds: arguments.rounds.map(|rounds| rounds.get() as u32),
            request: name_of(&arguments.request),
        },
        options,
    };
    let read = |subject: &artifact::Subject| match (inline, subject) {
        // An assembly has one subject, so the given text is it.
        (Some(text), artifact::Subject::File(name)) => {
            artifact::from_bytes(name.display().to_string(), None, Ok(text.into_bytes()))
        }
        (Some(text), artifact::Subject::Stdin) => {
            artifact::from_bytes("-".to_owned(), None, Ok(text.into_bytes()))
        }
        (None, artifact::Subject::File(path)) => server.root.artifact(path),
        (None, artifact::Subject::Stdin) => server.root.artifact(Path::new("-")),
    };
    let (input, workspace) =
        convene::prepare_with(&server.environment, &server.places, &request, &server.registries, read)?;
    Ok((input, workspace, request.options))
}
