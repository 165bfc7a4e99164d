//! Commands that get one text and print one answer: hooks, commands that print a key, and a CLI's `--version`, which is
//! asked once for each installed program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use quorate_kernel::ports::executor::{ConfigError, Failure, SideEffect};
use tokio::sync::OnceCell;

use super::call::{self, Termination};
use super::command::{self, Launch};
use super::environment::{BaseVariables, Environment};
use super::monotonic_now;
use super::output::describe_failure;
use super::presets::OutputFormat;
use super::running_process::STDOUT_CAP;

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
            program: command::find_command(&self.command, &self.dir)
                .map_err(|failure| failure.to_string())?,
            arguments: self.args.iter().map(Into::into).collect(),
            variables: self.environment.variables(),
            cwd: self.dir.clone(),
            sandbox: None,
            _private_dir: None,
        };
        let fail = |problem: &str| Err(format!("`{}` {problem}", self.command));
        let late = format!("did not end within {} ms", timeout.as_millis());
        let ended = match call::run(Arc::new(launch), text, monotonic_now() + timeout).await {
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

const VERSION_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest line that counts as a version, in bytes.
const MAX_VERSION_BYTES: usize = 64;

type VersionKey = (PathBuf, u64, Option<SystemTime>);
type VersionCell = Arc<OnceCell<Option<String>>>;

static VERSIONS: Mutex<BTreeMap<VersionKey, VersionCell>> = Mutex::new(BTreeMap::new());

/// The known version of a program.
pub(super) fn cached_version(program: &Path) -> Option<String> {
    version_cell(program)?.get()?.clone()
}

/// Asks for the version unless it is known.
pub(super) async fn probe_version(launch: Launch) {
    let Some(cell) = version_cell(&launch.program) else { return };
    let ask = async {
        let launch = Launch { arguments: vec!["--version".into()], ..launch };
        let ended =
            call::run(Arc::new(launch), Arc::from(""), monotonic_now() + VERSION_TIMEOUT).await.ok()?;
        match ended.termination {
            Termination::Exited(status) if status.success() => {
                parse_version(&String::from_utf8_lossy(&ended.stdout))
            }
            _ => None,
        }
    };
    cell.get_or_init(|| ask).await;
}

fn version_cell(program: &Path) -> Option<VersionCell> {
    let file = program.metadata().ok()?;
    let key = (program.to_owned(), file.len(), file.modified().ok());
    let mut known = VERSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    Some(Arc::clone(known.entry(key).or_default()))
}

/// The version in an output: one short line that holds a number with a dot. A program that does not know the flag may
/// print anything.
fn parse_version(printed: &str) -> Option<String> {
    let line = printed.trim();
    let plain = |character: char| character.is_ascii_graphic() && !"{}[]\"<>".contains(character);
    let numbered = line
        .split(|character: char| !(character.is_ascii_digit() || character == '.'))
        .any(|word| word.contains('.') && word.starts_with(|first: char| first.is_ascii_digit()));
    let fits =
        line.len() <= MAX_VERSION_BYTES && line.chars().all(|character| character == ' ' || plain(character));
    (fits && numbered).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse_version;

    #[test]
    fn a_version_is_one_short_line_with_a_number() {
        for (printed, expected) in [
            ("2.1.197 (Claude Code)\n", Some("2.1.197 (Claude Code)")),
            ("codex-cli 0.169.0", Some("codex-cli 0.169.0")),
            ("0.61.0\n", Some("0.61.0")),
            ("", None),
            ("unknown option", None),
            ("{\"score\": 1.5}", None),
            ("1.0\n2.0", None),
            ("1.0 \u{202e}", None),
        ] {
            assert_eq!(parse_version(printed).as_deref(), expected, "{printed}");
        }
        assert_eq!(parse_version(&format!("1.0 {}", "x".repeat(80))), None);
    }
}
