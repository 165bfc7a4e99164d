//! A directory of its own for a test, and the binary run in it with nothing of the surroundings but PATH.

#![allow(dead_code, unreachable_pub, reason = "not every set of features uses all of it")]

pub mod assembly;
pub mod console;
pub mod council;
pub mod http;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(all(feature = "nats", feature = "postgres"))]
pub mod own_postgres;
pub mod playbooks;
#[cfg(feature = "postgres")]
#[path = "../../../../quorate-ledger/tests/it/postgres/support.rs"]
pub mod postgres;
#[cfg(feature = "postgres")]
#[path = "../../../../quorate-ledger/tests/it/postgres/proxy.rs"]
pub mod proxy;
pub mod public;
pub mod records;
pub mod reports;
#[cfg(any(feature = "nats", feature = "postgres"))]
pub mod said;
#[cfg(feature = "serve")]
pub mod serve;
pub mod shell;
pub mod shim;
#[cfg(any(feature = "nats", feature = "postgres"))]
pub mod swarm;
pub mod transcript;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// The binary under test.
pub const QUORATE: &str = env!("CARGO_BIN_EXE_quorate");

/// A text that the rubric sends back for two claims without a source.
pub const REVISED: &str = "The meeting moved to Tuesday at ten, in the fastest hall of the town. It is 40% cheaper than the old \
                           one, so please come on time and bring the list.\n";

/// Nothing that is tested takes so long.
const HANG_LIMIT: Duration = Duration::from_secs(60);

/// A directory that a test has to itself.
pub struct TestDir {
    dir: TempDir,
}

/// What a run of the binary came to.
#[derive(Debug)]
pub struct CommandOutput {
    /// The exit code; 128 and the signal's number where a signal ended it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl TestDir {
    pub fn new() -> TestDir {
        TestDir { dir: TempDir::with_prefix("quorate-").expect("a directory") }
    }

    /// With a file already in it.
    pub fn with(name: &str, text: impl AsRef<[u8]>) -> TestDir {
        let place = TestDir::new();
        place.write(name, text);
        place
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file and the directories above it.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        if let Some(above) = path.parent() {
            std::fs::create_dir_all(above).expect("directories");
        }
        std::fs::write(&path, text).expect("a file that can be written");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The lines of the log beside the ledger; empty without a log.
    pub fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(".quorate/council_log.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_in("", arguments)
    }

    /// The binary with the arguments, about to be started in a directory below.
    pub fn command_in(&self, below: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(QUORATE);
        command
            .args(arguments)
            .current_dir(self.path(below))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root())
            .env("USER", "ada")
            .env("NO_COLOR", "1")
            // Tests trust their own files; `trust.rs` removes this variable.
            .env("QUORATE_TRUST", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        finish(self.start(arguments))
    }

    pub fn run_in(&self, below: &str, arguments: &[&str]) -> CommandOutput {
        finish(self.command_in(below, arguments).spawn().expect("the binary runs"))
    }

    /// With bytes on standard input.
    pub fn run_with_stdin(&self, arguments: &[&str], stdin: &[u8]) -> CommandOutput {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().expect("the binary runs");
        let mut pipe = child.stdin.take().expect("it is piped");
        // A binary that refuses before it has read everything closes the pipe.
        let _ = pipe.write_all(stdin);
        drop(pipe);
        finish(child)
    }

    pub fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().expect("the binary runs")
    }

    /// A review's JSON, whatever its verdict.
    pub fn review(&self, arguments: &[&str]) -> Value {
        let arguments: Vec<&str> =
            ["review"].iter().chain(arguments).chain(&["--format", "json"]).copied().collect();
        self.run(&arguments).json()
    }

    /// Runs `run` with these arguments and asserts that it finds no new turn and asks no participant.
    #[track_caller]
    pub fn assert_no_new_turns(&self, arguments: &[&str]) {
        let ran = self.run(&[&["run"], arguments, &["--format", "json"]].concat()).assert_code(0).json();
        assert!(ran["idle"] == 0 && ran["asked"] == 0 && ran["interrupted"].is_null(), "{ran}");
        for list in ["appended", "failed", "passed"] {
            assert_eq!(ran[list].as_array().map(Vec::len), Some(0), "{ran}");
        }
    }

    /// The runs of the ledger here, newest first.
    pub fn runs(&self) -> Vec<Value> {
        let listed = self.run(&["runs", "--limit", "1000", "--format", "json"]).assert_code(0).json();
        let mut runs = listed["runs"].as_array().expect("a list").clone();
        // The command lists open ones first.
        runs.sort_by(|one, other| other["opened"].as_str().cmp(&one["opened"].as_str()));
        runs
    }

    /// The id of the one run of the ledger here.
    pub fn only_run(&self) -> String {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs[0]["run"].as_str().expect("an id").to_owned()
    }
}

impl CommandOutput {
    pub fn from_output(output: Output) -> CommandOutput {
        use std::os::unix::process::ExitStatusExt as _;
        let signalled = || 128 + output.status.signal().unwrap_or(0);
        CommandOutput {
            code: output.status.code().unwrap_or_else(signalled),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }

    /// Holds it against an exit code.
    #[track_caller]
    pub fn assert_code(self, code: i32) -> CommandOutput {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Asserts that the command was refused: its exit code, and the code of a refusal on stderr.
    #[track_caller]
    pub fn assert_refused(self, exit: i32, code: &str) -> CommandOutput {
        let refused = self.assert_code(exit);
        refused.assert_stderr_contains(&format!("refusal[{code}]"));
        refused
    }

    /// Standard output as one JSON object, with nothing beside it.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}\nstdout: {}\nstderr: {}", self.stdout, self.stderr))
    }

    #[track_caller]
    pub fn assert_stderr_contains(&self, text: &str) -> &CommandOutput {
        assert!(
            self.stderr.contains(text),
            "`{text}` is not said\nstdout: {}\nstderr: {}",
            self.stdout,
            self.stderr
        );
        self
    }

    #[track_caller]
    pub fn assert_stdout_contains(&self, text: &str) -> &CommandOutput {
        assert!(
            self.stdout.contains(text),
            "`{text}` is not said\nstdout: {}\nstderr: {}",
            self.stdout,
            self.stderr
        );
        self
    }
}

/// All files below a directory with their bytes.
pub fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push((path.clone(), std::fs::read(&path).expect("readable"))),
        }
    }
    all.sort();
    all
}

/// The output of a child that was started here. One that hangs is killed, and that shows in its code.
pub fn finish(child: Child) -> CommandOutput {
    let id = Pid::from_child(&child);
    let (ended, watch) = std::sync::mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if watch.recv_timeout(HANG_LIMIT) == Err(RecvTimeoutError::Timeout) {
            let _ = kill_process(id, Signal::KILL);
        }
    });
    let output = child.wait_with_output().expect("it ends");
    drop(ended);
    watchdog.join().expect("the watchdog ends");
    CommandOutput::from_output(output)
}

/// Whether a program is on PATH. A test that needs a missing program reports that and passes.
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    if !is_there {
        eprintln!("SKIPPED: there is no `{name}`");
    }
    is_there
}

/// Waits until something holds, which is soon.
#[track_caller]
pub fn wait_until(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let stop = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < stop, "{what} did not come about within {limit:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
