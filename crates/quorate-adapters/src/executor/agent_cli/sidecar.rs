//! A program that runs beside us for longer than one invocation and is spoken to over its pipes, such as an MCP
//! server. It is started, marked, bound to our life and ended with everything it started, as a member is.

use std::io::PipeWriter;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorate_kernel::ports::executor::ConfigError;
use tokio::sync::oneshot;

use super::call::LiveAttempt;
use super::clock;
use super::command;
use super::environment::{BaseVariables, Environment};
use super::process_tag::CallTag;
use super::running_process::RunningProcess;
use super::spawn::Launch;

/// How long one look at a companion lasts at most; it ends earlier when anything happens.
const MAX_POLL: Duration = Duration::from_secs(3_600);

/// How a companion is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    command: String,
    args: Vec<String>,
    environment: Environment,
    dir: PathBuf,
    cwd: PathBuf,
}

/// A companion that runs, for as long as this is kept.
#[derive(Debug)]
pub(crate) struct Sidecar {
    /// Closing it is how the thread learns that nobody needs the companion any more.
    hangup: Option<PipeWriter>,
    /// Filled while the companion is being ended, so that the program waits for it before it exits.
    stopping: Arc<Mutex<Option<LiveAttempt>>>,
    last_words: Option<oneshot::Receiver<Vec<u8>>>,
}

/// The pipes of a companion.
pub(crate) struct StdioPipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

impl Program {
    /// A command, looked for as an executor's is; `env` names what it gets to see beside the base set.
    ///
    /// # Errors
    /// When an entry of `env` is not a name, or `cwd` is not a directory.
    pub(crate) fn new(
        command: &str,
        args: Vec<String>,
        env: Vec<String>,
        cwd: Option<&str>,
        dir: &Path,
    ) -> Result<Self, ConfigError> {
        let environment = Environment::new(env, BaseVariables::Inherited)?;
        let into = cwd.map_or_else(|| dir.to_owned(), |cwd| dir.join(cwd));
        if cwd.is_some() && !into.is_dir() {
            return Err(ConfigError::for_key("cwd", format!("`{}` is not a directory", into.display()))
                .with_help("a relative path is relative to the file that names the server"));
        }
        Ok(Program { command: command.to_owned(), args, environment, dir: dir.to_owned(), cwd: into })
    }

    /// Starts it.
    ///
    /// # Errors
    /// Why it does not start, for a person.
    pub(crate) async fn start(&self) -> Result<(Sidecar, StdioPipes), String> {
        let launch = Launch {
            program: command::find(&self.command, &self.dir).map_err(|failure| failure.to_string())?,
            arguments: self.args.iter().map(Into::into).collect(),
            variables: self.environment.variables(),
            cwd: self.cwd.clone(),
            sandbox: None,
            _private_dir: None,
        };
        let program = launch.program.clone();
        let no_room = |error: std::io::Error| command::start_failure(&program, &error).to_string();
        let (mut hangup, held) = std::io::pipe().map_err(no_room)?;
        let (started, ends) = oneshot::channel();
        let (say, last_words) = oneshot::channel();
        let stopping = Arc::new(Mutex::new(None));
        let until_gone = Arc::clone(&stopping);
        std::thread::Builder::new()
            .name("companion".into())
            .spawn(move || {
                supervise(&launch, &mut hangup, started, say);
                drop(until_gone.lock().unwrap_or_else(PoisonError::into_inner).take());
            })
            .map_err(no_room)?;
        // Made before the answer is awaited: whoever gives up waiting ends the companion by dropping it.
        let companion = Sidecar { hangup: Some(held), stopping, last_words: Some(last_words) };
        let ends =
            ends.await.unwrap_or_else(|_| Err("the thread that watched the command is gone".to_owned()))?;
        Ok((companion, ends))
    }
}

impl Sidecar {
    /// The end of what it printed on stderr, if it ends by itself within `patience`. It is told once.
    pub(crate) async fn stderr_tail(&mut self, patience: Duration) -> Option<String> {
        let words = tokio::time::timeout(patience, self.last_words.take()?).await.ok()?.ok()?;
        let words = String::from_utf8_lossy(&words);
        let words = words.trim();
        (!words.is_empty()).then(|| words.to_owned())
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        *self.stopping.lock().unwrap_or_else(PoisonError::into_inner) = Some(LiveAttempt::enter());
        self.hangup = None;
    }
}

/// Starts the companion and stays with it until it has ended: by itself, or because nobody needs it any more.
fn supervise(
    launch: &Launch,
    hangup: &mut std::io::PipeReader,
    started: oneshot::Sender<Result<StdioPipes, String>>,
    say: oneshot::Sender<Vec<u8>>,
) {
    let mark = CallTag::next();
    let mut child = match launch.spawn(mark) {
        Ok(child) => child,
        Err(error) => {
            // Nobody listens when the start was given up.
            let _ = started.send(Err(command::start_failure(&launch.program, &error).to_string()));
            return;
        }
    };
    let ends = child.stdin.take().zip(child.stdout.take());
    let mut member = match RunningProcess::new(child, mark, Arc::from("")) {
        Ok(member) => member,
        Err(error) => {
            let _ = started.send(Err(format!("cannot use the command's pipes: {error}")));
            return;
        }
    };
    let Some((stdin, stdout)) = ends else { return drop(member.terminate()) };
    let _ = started.send(Ok(StdioPipes { stdin, stdout }));
    loop {
        match member.poll(clock::now() + MAX_POLL, Some(hangup.as_fd())) {
            Ok(false) if member.has_exited() => {
                if let Ok((_, pipes)) = member.finish() {
                    let _ = say.send(pipes.into_output().1);
                }
                return;
            }
            Ok(false) => {}
            Ok(true) | Err(_) => return drop(member.terminate()),
        }
    }
}
