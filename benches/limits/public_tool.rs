//! The public Agent Council tool (Python), if `--peer DIR` names a checkout of it: the same work in
//! the same run, with its mocked runtime.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Failure;
use crate::log_lines::artifact_type;
use crate::process::{Took, command, median, run};

/// A checkout and who runs it.
pub(super) struct PublicTool {
    checkout: PathBuf,
    python: PathBuf,
}

/// The Python that `python3` stands for; `None` where it is missing. What is on the path may be a script that looks
/// for it, which would be measured too.
pub(super) fn interpreter() -> Option<PathBuf> {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_file().then_some(path)
}

const LOOKUP: &str = "\
import sys, time
from agent_council.log import CouncilLog
log = CouncilLog(sys.argv[1])
start = time.perf_counter_ns()
found = log.read_prior_verdicts(sys.argv[2])
print(time.perf_counter_ns() - start)
assert len(found) == 5
";

impl PublicTool {
    /// Takes a checkout.
    pub(super) fn new(checkout: &Path) -> Result<PublicTool, Failure> {
        let checkout = std::path::absolute(checkout)?;
        if !checkout.join("src/agent_council/cli.py").is_file() {
            return Err(format!("{} is no checkout of the public tool", checkout.display()).into());
        }
        let python = interpreter().ok_or("there is no python3 to run the public tool with")?;
        Ok(PublicTool { checkout, python })
    }

    fn command(&self, dir: &Path, arguments: &[&str]) -> Command {
        let mut command = command(&self.python, dir, arguments);
        command.env("PYTHONPATH", self.checkout.join("src"));
        command
    }

    fn council(&self, dir: &Path) -> Result<PathBuf, Failure> {
        let path = dir.join("public.yaml");
        let prompts = self.checkout.join("prompts");
        let entry =
            |id: &str| format!("  - id: {id}\n    prompt: {}\n", prompts.join(format!("{id}.md")).display());
        let deliberators: String =
            ["skeptic", "voice_identity", "evidence", "strategy"].into_iter().map(entry).collect();
        let text = format!(
            "runtime:\n  type: mock_cli\ndeliberators:\n{deliberators}adjudicator:\n  prompt: {}\nprotocol:\n  rounds: 2\n\
             tier_rules:\n  tier_1:\n    type_01: [\"*\"]\nlogging:\n  log_path: ./council_log.jsonl\nwatch:\n  paths: [./drafts/]\n",
            prompts.join("adjudicator.md").display()
        );
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Its review of an artifact, on an empty log.
    pub(super) fn review(&self, dir: &Path, artifact: &Path, times: usize) -> Result<Took, Failure> {
        let council = self.council(dir)?.display().to_string();
        let artifact = artifact.display().to_string();
        let arguments = ["-m", "agent_council", "review", &artifact, "--tier", "1", "--config", &council];
        median(times, &[0, 1, 2], || {
            let _ = std::fs::remove_file(dir.join("council_log.jsonl"));
            Ok(self.command(dir, &arguments))
        })
    }

    /// Its lookup of earlier verdicts, inside its process.
    pub(super) fn lookup(&self, log: &Path) -> Result<Duration, Failure> {
        let log = log.display().to_string();
        let mut all = Vec::new();
        for _ in 0..3 {
            let output = self.command(Path::new("/"), &["-c", LOOKUP, &log, &artifact_type(1)]).output()?;
            all.push(Duration::from_nanos(String::from_utf8(output.stdout)?.trim().parse()?));
        }
        Ok(crate::process::middle(all))
    }

    /// Its audit of a log.
    pub(super) fn audit(&self, log: &Path, arguments: &[&str]) -> Result<Took, Failure> {
        let log = log.display().to_string();
        let since = arguments.last().filter(|_| arguments.len() > 1).copied().unwrap_or("all");
        median(3, &[0], || {
            Ok(self
                .command(Path::new("/"), &["-m", "agent_council", "audit", "--log", &log, "--since", since]))
        })
    }

    /// Its sweep.
    pub(super) fn sweep(&self, dir: &Path, log: &Path) -> Result<Took, Failure> {
        let council = self.council(dir)?.display().to_string();
        let length = std::fs::metadata(log)?.len();
        let took =
            run(&mut self
                .command(dir, &["-m", "agent_council", "sweep", "--since", "52w", "--config", &council]))?;
        if took.code != 0 || std::fs::metadata(log)?.len() == length {
            return Err("the public tool did not sweep".into());
        }
        Ok(took)
    }
}
