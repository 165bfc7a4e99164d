//! The executor: asks a command, as a judge where it is one, and reads its reply.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use quorate_kernel::ports::executor::{
    About, Admission, ConfigError, Executor, Failure, Inspection, Invocation, Reply, Settings, SideEffect,
};
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;
use tokio::sync::OnceCell;

use super::config::{Config, PreparedCall};
use super::judge::Judge;
use super::oneshot::StdoutKind;
use super::running_process::{Termination, run};
use super::sandbox::Sandbox;
use super::{KIND, oneshot, output, presets};

/// Builds the executor from its table.
///
/// # Errors
/// When the block has an unknown key, a value of the wrong type, or neither `command` nor `preset`.
pub fn new(settings: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    Ok(Arc::new(AgentCli { config: Config::parse(settings)?, preflight_output: OnceCell::new() }))
}

struct AgentCli {
    config: Config,
    /// The output of the call before a judge's first one.
    preflight_output: OnceCell<String>,
}

impl AgentCli {
    /// Asks the CLI for something about itself, such as its version.
    async fn query_cli(
        &self,
        judge: &Judge,
        arguments: &[&str],
        deadline: Instant,
    ) -> Result<String, Failure> {
        let launch = Arc::new(self.config.query_launch(arguments)?);
        let ended = run(&launch, "", deadline).await?;
        if matches!(ended.termination, Termination::DeadlinePassed) {
            return Err(Failure::TimedOut);
        }
        ended.into_stdout("", StdoutKind::Public).map_err(|why| {
            let why = format!("`{}` {why}", arguments.join(" "));
            judge.unsupported_version(&self.config.command_name(), &why)
        })
    }

    /// The output that a judge's arguments are computed from, asked for once.
    async fn preflight(&self, judge: &Judge, deadline: Instant) -> Result<Option<&str>, Failure> {
        let Some(arguments) = judge.preflight else { return Ok(None) };
        self.preflight_output
            .get_or_try_init(|| self.query_cli(judge, arguments, deadline))
            .await
            .map(|printed| Some(&**printed))
    }

    async fn inspect_judge(&self, judge: &Judge, deadline: Instant) -> Result<Inspection, Failure> {
        let version = self.query_cli(judge, &["--version"], deadline).await?;
        let mut lists = String::new();
        for arguments in judge.flag_listings {
            lists.push_str(&self.query_cli(judge, arguments, deadline).await?);
            lists.push('\n');
        }
        judge.inspect(&self.config.command_name(), &version, &lists, self.config.tools().unwrap_or_default())
    }
}

#[async_trait]
impl Executor for AgentCli {
    fn about(&self) -> About {
        About { kind: KIND, asks_a_model: true, model: self.config.model.clone() }
    }

    fn fingerprint(&self) -> Json {
        self.config.fingerprint()
    }

    fn turn_schema(&self) -> Schema {
        self.config.turn_schema
    }

    fn forwards_mcp_servers(&self) -> bool {
        self.config.forwards_mcp_servers()
    }

    fn side_effects(&self) -> Vec<SideEffect> {
        vec![self.config.side_effect()]
    }

    async fn admit(&self) -> Admission {
        let admission = self.config.concurrency.acquire().await;
        self.config.learn_version().await;
        admission
    }

    fn tools(&self) -> Option<Vec<String>> {
        self.config.tools().map(<[String]>::to_vec)
    }

    fn check_installed(&self) -> Result<(), ConfigError> {
        self.config.check_installed()
    }

    async fn inspect(&self, deadline: tokio::time::Instant) -> Option<Result<Inspection, Failure>> {
        let judge = self.config.judge()?;
        Some(self.inspect_judge(judge, deadline.into_std()).await)
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let deadline = invocation.deadline.into_std();
        let judge = self.config.judge().filter(|_| invocation.conversation.is_none());
        let preflight_output = match judge {
            Some(judge) => self.preflight(judge, deadline).await?,
            None => None,
        };
        let PreparedCall { launch, files } = self.config.prepare(&invocation, preflight_output)?;
        let (form, notes) = (invocation.answer_schema, invocation.notes);
        notes.note(|noted| noted.version = oneshot::cached_version(&launch.program));
        let launch = Arc::new(launch);
        let ended = run(&launch, &invocation.prompt, deadline).await?;
        let format = self.config.output;
        let values = format.values(&ended.stdout);
        let (model, usage) = format.model_and_usage(&values);
        let refused_tools = presets::envelope::refused_tools(&values);
        let last_words = oneshot::excerpt(&String::from_utf8_lossy(&ended.stderr));
        notes.note(|noted| {
            noted.usage = Some(usage);
            noted.refused_tools = refused_tools;
            noted.model.clone_from(&model);
            noted.last_words = Some(last_words).filter(|words| !words.is_empty());
        });
        if let (Some(judge), Termination::Exited(status)) = (judge, &ended.termination)
            && !status.success()
            && let Some(line) = Judge::unknown_flag_line(&ended.stderr)
        {
            return Err(judge.unsupported_version(
                &self.config.command_name(),
                &format!("it does not know an argument ({line})"),
            ));
        }
        let command = self.config.command_name();
        match output::read_reply(format, form, &command, ended, &values, files.as_ref(), &notes) {
            Ok(reply) => Ok(Reply { model, usage, ..reply }),
            Err(failure) => Err(with_sandbox_hint(failure, launch.sandbox.as_ref())),
        }
    }
}

/// Adds to a failure the hint that the sandbox may have caused it.
fn with_sandbox_hint(failure: Failure, sandbox: Option<&Sandbox>) -> Failure {
    let Failure::Failed { message, retry } = failure else { return failure };
    let why = sandbox.and_then(|sandbox| sandbox.failure_hint(&message));
    let message = why.map_or_else(|| message.clone(), |why| format!("{message}; {why}"));
    Failure::Failed { message, retry }
}
