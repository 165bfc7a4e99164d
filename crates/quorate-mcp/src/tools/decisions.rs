//! The tools that decide: `council_review` reviews one text, `council_sweep` reviews the due files below `watch.paths`,
//! `assembly_convene` convenes an assembly. `council_audit` gives the statistics of a council from its log, and
//! `council_override` records what a person decides in the card.

use std::path::PathBuf;
use std::sync::Arc;

use quorate::audit::{AuditRequest, ReviewFilter};
use quorate::convene::{ConveneRequest, Inputs};
use quorate::input::Whole;
use quorate::jobs::{JobStatus, Reporter, Residue};
use quorate::runs::OverrideRequest;
use quorate::sweep::{FileFilter, JudgedPolicy, SweepEvent, SweepMode, SweepRequest};
use quorate::{Draft, Producer, ReviewRequest, RunOptions, Tier, Trigger, Verdict, VerdictPolicy};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::json;

use super::{MaxCalls, MaxTokens, Object, Wait, parse_since, run_options};
use crate::ServerState;
use crate::card::{self, CardUse};
use crate::conversations::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CouncilReview {
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
    /// The verdict policy; by default council.yaml's, else seed (lenient)
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
    const CARD: CardUse = CardUse::Shown;
    const ABOUT: &'static str = "A council reviews one text: SHIP, REVISE, HOLD or INCOMPLETE, with a brief that says \
        what to change where. A job: without a result after `wait_ms`, go on with `job_poll`.";
    const EFFECT: Effect = Effect::Adds;
    const IS_LONG: bool = true;
    type Output = JobStatus;

    async fn call(self, server: &Arc<ServerState>, caller: &Caller) -> Result<JobStatus, Failure> {
        let draft = draft(self.path, self.text, self.name)?;
        let reviewing = server.quorate.review(draft).load()?;
        let options = run_options(
            self.executor,
            self.max_calls,
            self.max_tokens,
            self.max_money.as_deref(),
            self.timeout.as_deref(),
        )?;
        let request = ReviewRequest {
            artifact_type: self.artifact_type,
            tier: self.tier.and_then(|number| Tier::from_number(number.get())),
            policy: self.policy,
            options: RunOptions {
                producer: Producer::from_flags(self.made_by.as_deref(), &self.trying),
                ..options
            },
            ..ReviewRequest::default()
        };
        let reviewing = reviewing.request(request);
        let work = |reporter: Arc<Reporter<Failure>>| async move {
            Ok(json!(*reviewing.start().finish_with(reporter).await?))
        };
        server.jobs.start(self.wait_ms.duration(caller), caller, Residue::Runs, work).await
    }
}

fn draft(path: Option<PathBuf>, text: Option<String>, name: Option<String>) -> Result<Draft, Failure> {
    match (path, text) {
        (Some(path), None) => Ok(Draft::File(path)),
        (None, Some(text)) => Ok(Draft::Text { name: name.unwrap_or_else(|| "-".to_owned()), text }),
        (Some(_), Some(_)) => Err(Failure::malformed("there are both `path` and `text`", "leave one out")),
        (None, None) => Err(Failure::malformed("there is nothing to review", "say `path` or `text`")),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CouncilAudit {
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
    type Output = Object;

    async fn call(self, server: &Arc<ServerState>, _: &Caller) -> Result<Object, Failure> {
        let quorate = server.quorate.clone();
        let since_ms = parse_since(self.since.as_deref().unwrap_or("all"), quorate.now_ms())?;
        let verdict = self.verdict.map(|verdict| verdict.as_str().to_owned());
        let filter = ReviewFilter { since_ms, verdict, artifact_type: self.artifact_type };
        let audit = async move { quorate.audit(AuditRequest { filter, ..AuditRequest::default() }).await };
        let audit = server.jobs.compute(audit).await?.value;
        Ok(serde_json::to_value(audit).expect("an audit is JSON").into())
    }
}

/// The number of concurrent reviews: default and maximum.
const DEFAULT_JOBS: u64 = 4;
const MAX_JOBS: u64 = 64;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CouncilSweep {
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
    /// The verdict policy; by default council.yaml's, else seed (lenient)
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
    const IS_LONG: bool = true;
    type Output = JobStatus;

    async fn call(self, server: &Arc<ServerState>, caller: &Caller) -> Result<JobStatus, Failure> {
        let filter = self.pattern.as_deref().map(FileFilter::matching).transpose()?;
        let since = self.since.as_deref().unwrap_or("24h");
        let request = SweepRequest {
            since_ms: parse_since(since, server.quorate.now_ms())?,
            judged: if self.force { JudgedPolicy::Repeat } else { JudgedPolicy::Skip },
            mode: if self.dry_run { SweepMode::DryRun } else { SweepMode::Run },
            filter: filter.unwrap_or_default(),
            jobs: self.jobs.map_or(DEFAULT_JOBS, Whole::get) as usize,
            policy: self.policy,
            options: run_options(
                self.executor,
                self.max_calls,
                self.max_tokens,
                self.max_money.as_deref(),
                self.timeout.as_deref(),
            )?,
        };
        let quorate = server.quorate.clone();
        let work = |reporter: Arc<Reporter<Failure>>| async move {
            let observer = Arc::new(move |event: SweepEvent<'_>| reporter.swept(&event));
            Ok(quorate.sweep(request, observer).finish().await?.to_json())
        };
        server.jobs.start(self.wait_ms.duration(caller), caller, Residue::Runs, work).await
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AssemblyConvene {
    /// The ASSEMBLY.md, or the directory that holds it, from the workspace's root
    assembly: PathBuf,
    /// Advisory: the conversation, as .jsonl or .md
    conversation: Option<Subject>,
    /// Advisory: which members to ask, by phase; default session
    phase: Option<String>,
    /// Advisory: the reason for asking; default manual
    #[serde(default)]
    #[schemars(schema_with = "triggers")]
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

impl From<Subject> for Draft {
    fn from(subject: Subject) -> Draft {
        match subject {
            Subject::Path(path) => Draft::File(path),
            Subject::Text { text, name } => {
                Draft::Text { name: name.unwrap_or_else(|| "-".to_owned()), text }
            }
        }
    }
}

fn triggers(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": Trigger::ALL.map(Trigger::as_str)})
}

impl Tool for AssemblyConvene {
    const NAME: &'static str = "assembly_convene";
    const TITLE: &'static str = "Convene an assembly";
    const CARD: CardUse = CardUse::Shown;
    const ABOUT: &'static str = "Convenes an assembly: guidance (`conversation`), a vote (`proposal`), a talk among \
        equals (`topic`), or an assessment that is rolled up (`request`); its ASSEMBLY.md says which. A job: without a \
        result after `wait_ms`, go on with `job_poll`.";
    const EFFECT: Effect = Effect::Adds;
    const IS_LONG: bool = true;
    type Output = JobStatus;

    async fn call(self, server: &Arc<ServerState>, caller: &Caller) -> Result<JobStatus, Failure> {
        let options = run_options(
            self.executor,
            self.max_calls,
            self.max_tokens,
            self.max_money.as_deref(),
            self.timeout.as_deref(),
        )?;
        let producer = Producer::from_flags(self.made_by.as_deref(), &self.trying);
        let request = ConveneRequest {
            path: self.assembly,
            inputs: Inputs {
                conversation: self.conversation.map(Draft::from),
                phase: self.phase,
                trigger: self.trigger,
                sentinel_first: self.sentinel_first,
                proposal: self.proposal.map(Draft::from),
                class: self.class,
                topic: self.topic.map(Draft::from),
                rounds: self.rounds.and_then(|rounds| rounds.get().try_into().ok()),
                request: self.request.map(Draft::from),
            },
            options: RunOptions { producer, ..options },
            ..ConveneRequest::default()
        };
        let convening = server.quorate.convening(request).locate()?;
        let work = |reporter: Arc<Reporter<Failure>>| async move {
            Ok(json!(*convening.start().finish_with(reporter).await?))
        };
        server.jobs.start(self.wait_ms.duration(caller), caller, Residue::Runs, work).await
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CouncilOverride {
    /// The run's id
    run: String,
    /// The decision: SHIP, REVISE or HOLD
    verdict: Verdict,
    /// The reason: the next review learns from it
    reason: String,
    /// The name of the person who decides
    by: String,
    /// The key of the run's card
    key: String,
}

impl Tool for CouncilOverride {
    const NAME: &'static str = "council_override";
    const TITLE: &'static str = "Decide otherwise";
    const CARD: CardUse = CardUse::Calls;
    const ABOUT: &'static str =
        "Records a person's decision beside the verdict of a review. Only the card calls it.";
    const EFFECT: Effect = Effect::Adds;
    type Output = Object;

    async fn call(self, server: &Arc<ServerState>, caller: &Caller) -> Result<Object, Failure> {
        let CouncilOverride { run, verdict, reason, by, key } = self;
        if !card::is_key(server, &run, &key) {
            let help =
                "a person decides in the card that this server made for the run, or with `quorate override`";
            return Err(Failure::usage("`key` is not the one of the run's card", help));
        }
        if verdict == Verdict::Incomplete {
            return Err(Failure::usage("`verdict` is INCOMPLETE", "a person decides SHIP, REVISE or HOLD"));
        }
        if by.trim().is_empty() {
            return Err(Failure::usage("`by` is empty", "give the name of the person who decides"));
        }
        // Nothing proves the name: the record says where it was typed.
        let by = Some(format!("{} (typed in {})", by.trim(), caller.client()));
        let quorate = server.quorate.clone();
        let request = OverrideRequest { run, verdict, reason, by };
        let decided = async move { quorate.override_verdict(request).await };
        Ok(json!(*server.jobs.compute(decided).await?).into())
    }
}
