//! `assembly_convene`: convenes an assembly.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_manifest::assembly::members;
use schemars::JsonSchema;
use serde::Deserialize;

use super::options::{caps, executor, timeout};
use super::{MaxCalls, MaxTokens, Wait};
use crate::ServerState;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};
use quorate::service::artifact;
use quorate::service::convene::inputs::Inputs;
use quorate::service::convene::spec;
use quorate::service::convene::{self, Request};
use quorate::service::jobs::progress::Reporter;
use quorate::service::jobs::{JobStatus, Residue};
use quorate::service::open_session;
use quorate::service::producer::Producer;
use quorate::service::run_options::RunOptions;
use quorate::service::whole::Whole;

pub(super) struct AssemblyConvene;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
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
struct Trigger(members::Trigger);

impl TryFrom<String> for Trigger {
    type Error = String;

    fn try_from(word: String) -> Result<Trigger, String> {
        let found = members::Trigger::ALL.into_iter().find(|trigger| trigger.as_str() == word);
        let words = || members::Trigger::ALL.map(members::Trigger::as_str).join(", ");
        found.map(Trigger).ok_or_else(|| format!("`{word}` is not one of {}", words()))
    }
}

impl JsonSchema for Trigger {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Trigger".into()
    }

    fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "enum": members::Trigger::ALL.map(members::Trigger::as_str)})
    }
}

impl Tool for AssemblyConvene {
    const NAME: &'static str = "assembly_convene";
    const TITLE: &'static str = "Convene an assembly";
    const ABOUT: &'static str = "Convenes an assembly: guidance (`conversation`), a vote (`proposal`), a talk among \
        equals (`topic`), or an assessment that is rolled up (`request`); its ASSEMBLY.md says which. A job: without a \
        result after `wait_ms`, go on with `job_poll`.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = Arguments;
    type Output = JobStatus;

    async fn call(
        server: &Arc<ServerState>,
        arguments: Arguments,
        caller: &Caller,
    ) -> Result<JobStatus, Failure> {
        let (wait, within) = (arguments.wait_ms.duration(), server.clone());
        let options = RunOptions {
            executor: executor(arguments.executor.clone())?,
            model: None,
            caps: caps(arguments.max_calls, arguments.max_tokens, arguments.max_money.as_deref())?,
            timeout: timeout(arguments.timeout.as_deref())?,
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
    arguments: Arguments,
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
    let request = Request {
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
        convene::prepare_with(&server.environment, &server.places, &request, &server.host, read)?;
    Ok((input, workspace, request.options))
}
