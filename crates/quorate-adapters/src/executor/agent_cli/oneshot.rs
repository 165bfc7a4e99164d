//! A command such as a hook or a scorer: it is started, given one text on stdin, watched and ended as a member is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::ports::executor::{ConfigError, Failure, SideEffect};

use super::call::{self, Termination};
use super::clock;
use super::command;
use super::environment::{BaseVariables, Environment};
use super::output::describe_failure;
use super::output_format::OutputFormat;
use super::pipes::STDOUT_CAP;
use super::spawn::Launch;

#[derive(Debug)]
pub(crate) struct OneshotCommand {
    command: String,
    args: Vec<String>,
    environment: Environment,
    dir: PathBuf,
}

impl OneshotCommand {
    /// A command, found as an executor's is; it runs in `dir`, and sees the variables of `env` besides the base set.
    ///
    /// # Errors
    /// When an entry of `env` is not a name.
    pub(crate) fn new(
        command: &str,
        args: Vec<String>,
        env: Vec<String>,
        dir: &Path,
    ) -> Result<Self, ConfigError> {
        command::check_no_nul(command, &args)?;
        let environment = Environment::new(env, BaseVariables::Inherited)?;
        Ok(OneshotCommand { command: command.to_owned(), args, environment, dir: dir.to_owned() })
    }

    /// The side effect that a user trusts.
    pub(crate) fn side_effect(&self) -> SideEffect {
        super::side_effect::of_command(&self.command, &self.args, self.environment.names(), &self.dir)
    }

    /// Runs the command with a text on stdin. Dropping the future ends it.
    ///
    /// # Errors
    /// When it does not succeed within `timeout`; the text is meant for a person.
    pub(crate) async fn run(&self, text: Arc<str>, timeout: Duration) -> Result<(), String> {
        self.run_for_output(text, timeout).await.map(drop)
    }

    /// As [`Self::run`], and returns its stdout.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(crate) async fn run_for_output(&self, text: Arc<str>, timeout: Duration) -> Result<String, String> {
        self.run_quoting(text, timeout, true).await
    }

    /// As [`Self::run_for_output`], without a text, for a command that prints a secret: no message quotes its stdout.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(crate) async fn run_for_secret(&self, timeout: Duration) -> Result<String, String> {
        self.run_quoting("".into(), timeout, false).await
    }

    async fn run_quoting(
        &self,
        text: Arc<str>,
        timeout: Duration,
        quotes_stdout: bool,
    ) -> Result<String, String> {
        let launch = Launch {
            program: command::find(&self.command, &self.dir).map_err(|failure| failure.to_string())?,
            arguments: self.args.iter().map(Into::into).collect(),
            variables: self.environment.variables(),
            cwd: self.dir.clone(),
            sandbox: None,
            _private_dir: None,
        };
        let fail = |problem: &str| Err(format!("`{}` {problem}", self.command));
        let late = format!("did not end within {} ms", timeout.as_millis());
        let ended = match call::run(Arc::new(launch), text, clock::now() + timeout).await {
            Ok(ended) => ended,
            Err(Failure::TimedOut) => return fail(&late),
            Err(Failure::Failed { message, .. }) => return Err(message),
        };
        match ended.termination {
            Termination::Exited(status) if status.success() => {
                Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
            }
            Termination::Exited(status) => {
                let stdout = if quotes_stdout { &*ended.stdout } else { &[] };
                fail(&describe_failure(OutputFormat::Text, status, stdout, &ended.stderr))
            }
            Termination::DeadlinePassed => fail(&late),
            Termination::Overflowed => {
                fail(&format!("printed more than {} MiB and was ended", STDOUT_CAP >> 20))
            }
        }
    }
}
