//! Commands that get one text and print one answer: hooks, commands that print a key, and a CLI's `--version`, which is
//! asked once for each installed program.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use quorate_kernel::ports::executor::Failure;
use tokio::sync::OnceCell;

use super::command::{Launch, Program};
use super::monotonic_now;
use super::running_process::{CallOutput, STDOUT_CAP, Termination, run};

impl Program {
    /// Runs the command with a text on stdin, and returns its stdout. Dropping the future ends it.
    ///
    /// # Errors
    /// When it does not succeed within `timeout`; the text is meant for a person.
    pub(crate) async fn run(&self, text: &str, timeout: Duration) -> Result<String, String> {
        self.run_quoting(text, timeout, StdoutKind::Public).await
    }

    /// As [`Self::run`], without a text, for a command that prints a secret: no message quotes its stdout.
    ///
    /// # Errors
    /// As [`Self::run`].
    #[cfg(feature = "llm")]
    pub(crate) async fn run_for_secret(&self, timeout: Duration) -> Result<String, String> {
        self.run_quoting("", timeout, StdoutKind::Secret).await
    }

    async fn run_quoting(&self, text: &str, timeout: Duration, stdout: StdoutKind) -> Result<String, String> {
        let late = format!("did not end within {} ms", timeout.as_millis());
        let ended = match run(&Arc::new(self.launch()?), text, monotonic_now() + timeout).await {
            Ok(ended) => ended.into_stdout(&late, stdout),
            Err(Failure::TimedOut) => Err(late),
            Err(Failure::Failed { message, .. }) => return Err(message),
        };
        ended.map_err(|problem| format!("`{}` {problem}", self.command))
    }
}

/// Whether messages may quote the stdout of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StdoutKind {
    Public,
    #[cfg_attr(not(feature = "llm"), expect(dead_code, reason = "services alone have keys"))]
    Secret,
}

impl CallOutput {
    /// The stdout of a command that succeeded.
    ///
    /// # Errors
    /// How it ended instead, as a predicate; `late` where the deadline passed.
    pub(super) fn into_stdout(self, late: &str, kind: StdoutKind) -> Result<String, String> {
        match self.termination {
            Termination::Exited(status) if status.success() => {
                Ok(String::from_utf8_lossy(&self.stdout).into_owned())
            }
            Termination::Exited(status) => {
                let stdout = if kind == StdoutKind::Public { &*self.stdout } else { &[] };
                Err(describe_exit(status, stdout, &self.stderr))
            }
            Termination::DeadlinePassed => Err(late.to_owned()),
            Termination::Overflowed => Err(overflow()),
        }
    }
}

/// What a command did that printed too much, as a predicate.
pub(super) fn overflow() -> String {
    format!("printed more than {} MiB and was ended", STDOUT_CAP >> 20)
}

/// How an unsuccessful command ended, with the last lines of its standard error or output.
pub(super) fn describe_exit(status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> String {
    let (stdout, stderr) = (String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
    with_excerpt(&describe_status(status), if stderr.trim().is_empty() { &stdout } else { &stderr })
}

/// How an unsuccessful command ended.
pub(super) fn describe_status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

/// A message with the last lines of an output.
pub(super) fn with_excerpt(message: &str, printed: &str) -> String {
    let excerpt = excerpt(printed);
    if excerpt.is_empty() { message.to_owned() } else { format!("{message}: {excerpt}") }
}

/// The last lines of a text, on one line, without control characters, capped: fit for a message.
pub(super) fn excerpt(printed: &str) -> String {
    const LINES: usize = 5;
    const CHARACTERS: usize = 500;
    let plain = |line| without_escapes(line).chars().filter(|c| !c.is_control()).collect::<String>();
    let lines: Vec<String> = printed.lines().map(|line| plain(line).trim().to_owned()).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join(" | ");
    let Some(cut) = last.chars().count().checked_sub(CHARACTERS + 1) else { return last };
    // Not within a word, unless there is no other place: the rest of a secret would no longer be recognized.
    let rest: String = last.chars().skip(cut).collect();
    let words = rest.trim_start_matches(|c: char| c.is_ascii_graphic()).trim_start();
    format!("\u{2026}{}", if words.is_empty() { rest[1..].trim_start() } else { words })
}

/// A line without the escape sequences that colour it or move the cursor.
pub(super) fn without_escapes(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' && characters.next_if_eq(&'[').is_some() {
            characters.by_ref().find(|character| ('\u{40}'..='\u{7e}').contains(character));
        } else {
            plain.push(character);
        }
    }
    plain
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
        let ended = run(&Arc::new(launch), "", monotonic_now() + VERSION_TIMEOUT).await.ok()?;
        parse_version(&ended.into_stdout("", StdoutKind::Public).ok()?)
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
