//! `quorate hook`: reviews for the hooks of other tools, in the exit codes that each of them understands.
//!
//! Tools send their events on standard input; this module reads the path of the written file from them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::report::{FailOn, Review};
use quorate::service::review::{ReviewRequest, TierPolicy, WrittenOutcome, WrittenScope};
use quorate::service::{disk, review};
use quorate_diagnostics::{Body, codes};
use quorate_protocol::policy::Verdict;
use serde_json::{Value, json};

use crate::arguments::{FailOnArguments, PathArguments, ReviewArguments};
use crate::exit::print_warnings;
use crate::exit::{Exit, exit_with_error};
use crate::interrupt::{Interrupted, until_interrupted};
use crate::progress::Progress;
use crate::render::layout::one_line;
use crate::render::{self, Extent, Format};
use crate::terminal::Terminal;

/// Review what a tool has just written, and answer as its hooks do
///
/// Files that a tool reports are reviewed if a sweep would review them; named files are always reviewed. If this council has
/// judged the same content, the earlier verdict counts. A person's `quorate override` replaces the council's verdict.
/// `quorate init wiring` writes the configuration that calls these commands.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate init wiring claude\n  quorate hook pre-commit drafts/post.md\n  echo '{\"tool_input\": {\"file_path\": \"drafts/post.md\"}}' | quorate hook claude"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    host: Host,
}

#[derive(Debug, Subcommand)]
enum Host {
    /// Claude Code, after its tools Write and Edit: standard input is the event
    ///
    /// Reviews a file below a folder of `watch.paths`. Exits with 2 if it does not pass: Claude Code then shows the model the
    /// brief on standard error. Exits with 1 without a verdict, with 4, 5 or 64 on errors; Claude Code shows these to the user
    /// only.
    Claude(Settings),
    /// Cursor, after an edit (afterFileEdit): standard input is the event
    ///
    /// Reviews a file below a folder of `watch.paths`. If it does not pass, prints the brief as JSON for the agent. Exits with
    /// 0, with 1 without a verdict, with 4, 5 or 64 on errors.
    Cursor(Settings),
    /// pre-commit or prek: the files are named
    ///
    /// Exits with 0 if all pass, else with 1.
    PreCommit {
        /// The files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        settings: Settings,
    },
}

#[derive(Debug, Args)]
struct Settings {
    #[command(flatten)]
    fail: FailOnArguments,
    #[command(flatten)]
    review: ReviewArguments,
    #[command(flatten)]
    places: PathArguments,
}

/// Whether a file passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Passing {
    Passes,
    /// The verdict fails.
    Fails,
    /// The review has no verdict.
    Undecided,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let (event, settings) = match arguments.host {
        Host::PreCommit { files, settings } => {
            return Box::pin(pre_commit(&files, &settings, environment, terminal)).await;
        }
        Host::Claude(settings) => (claude(), settings),
        Host::Cursor(settings) => (cursor(), settings),
    };
    let is_claude = event.is_claude;
    let path = match event.read(&environment.directory) {
        Ok(Some(path)) => path,
        // The tool wrote no file.
        Ok(None) => return Exit::DONE,
        Err(error) => return exit_with_error(&error, Format::Human, terminal),
    };
    let ended = Box::pin(review(&path, WrittenScope::Watched, &settings, environment, terminal)).await;
    let report = match ended {
        Ok(Some(WrittenOutcome::Judged(report))) => report,
        Ok(Some(WrittenOutcome::NotDue { why })) => {
            terminal.hint(&format!("{}: {why}", one_line(&path.display().to_string())));
            return Exit::DONE;
        }
        Ok(None) => return Exit::INTERRUPTED,
        Err(error) => return exit_with_error(&error, Format::Human, terminal),
    };
    let mut brief = render::report(&report, Format::Markdown, Extent::Screen, terminal.stderr);
    if report.overridden.is_some() {
        // The brief comes from the council, not from an override.
        brief = format!("{}: {}\n\n{brief}", decided(&report), one_line(&why(&report)));
    }
    match (passing(&report), is_claude) {
        (Passing::Passes, _) => Exit::DONE,
        (Passing::Fails, true) => {
            terminal.status(brief.trim_end());
            Exit::BLOCKED
        }
        (Passing::Fails, false) => {
            terminal.data(&format!("{}\n", json!({"additional_context": brief})));
            Exit::DONE
        }
        (Passing::Undecided, _) => {
            terminal.status(brief.trim_end());
            Exit::CHECK_FAILED
        }
    }
}

/// Reviews named files; the worst of them decides.
async fn pre_commit(
    files: &[PathBuf],
    settings: &Settings,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let mut worst = Passing::Passes;
    for file in files {
        let path = environment.directory.join(file);
        let passing = match review(&path, WrittenScope::Named, settings, environment, terminal).await {
            Ok(Some(WrittenOutcome::Judged(report))) => {
                let passing = passing(&report);
                let mut line = format!("{} {}", decided(&report), one_line(&report.artifact));
                if passing != Passing::Passes {
                    let _ = write!(line, ": {}\n  quorate show {}", one_line(&why(&report)), report.run);
                }
                terminal.data(&format!("{line}\n"));
                passing
            }
            Ok(Some(WrittenOutcome::NotDue { why })) => {
                terminal.hint(&format!("{}: {why}", one_line(&file.display().to_string())));
                Passing::Passes
            }
            Ok(None) => return Exit::INTERRUPTED,
            Err(error) => {
                exit_with_error(&error, Format::Human, terminal);
                Passing::Undecided
            }
        };
        worst = worst.max(passing);
    }
    if worst == Passing::Passes { Exit::DONE } else { Exit::CHECK_FAILED }
}

/// Reviews one file if it is due; `None` after an interruption.
async fn review(
    path: &Path,
    scope: WrittenScope,
    settings: &Settings,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Option<WrittenOutcome>, ServiceError> {
    let request = ReviewRequest {
        artifact_type: None,
        tier: None,
        tier_policy: match scope {
            WrittenScope::Watched => TierPolicy::Obey,
            WrittenScope::Named => TierPolicy::Ignore,
        },
        policy: settings.review.policy(),
        options: settings.review.answers.options(),
    };
    let opened = review::open_written(environment, &settings.places.path_overrides(), path, scope).await?;
    let Some(opened) = opened else {
        return Ok(Some(WrittenOutcome::NotDue { why: "no folder of `watch.paths` has it".to_owned() }));
    };
    let progress = Arc::new(Progress::new(terminal.shows_progress));
    let reviewed = until_interrupted(Box::pin(opened.review(&request, progress.clone()))).await;
    progress.clear();
    let done = match reviewed {
        Err(Interrupted) => Ok(None),
        Ok(Err(error)) => {
            if error.is_ledger_unavailable() {
                opened.session.interrupt();
            }
            Err(error)
        }
        Ok(Ok(mut written)) => {
            if let WrittenOutcome::Judged(report) = &mut written {
                // By default every verdict but SHIP fails.
                report.fail_on = settings.fail.fail_on().or(Some(FailOn::Revise));
            }
            Ok(Some(written))
        }
    };
    print_warnings(&opened.session, terminal);
    opened.session.close().await;
    done
}

/// The verdict that counts: a person's, if there is one.
fn decided(report: &Review) -> String {
    match &report.overridden {
        Some(decision) => format!("{} (by {})", decision.verdict, one_line(&decision.by)),
        None => report.verdict_word().to_owned(),
    }
}

/// The most important reason of a failing verdict.
fn why(report: &Review) -> String {
    match &report.overridden {
        Some(decision) => decision.reason.clone(),
        None => report.first_fix().unwrap_or_else(|| report.because.clone()),
    }
}

fn passing(report: &Review) -> Passing {
    let mut counted = report.clone();
    if let Some(decision) = &report.overridden {
        counted.verdict = Verdict::read(&decision.verdict);
        // A person who overrides with SHIP has seen the blocks.
        if counted.verdict == Some(Verdict::Ship) {
            return Passing::Passes;
        }
    }
    match counted.verdict {
        None | Some(Verdict::Incomplete) => Passing::Undecided,
        _ if counted.exit_code() == 0 => Passing::Passes,
        _ => Passing::Fails,
    }
}

/// The largest event, in bytes: some contain the whole written text.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The tools that write a file.
const WRITING: [&str; 4] = ["Write", "Edit", "MultiEdit", "NotebookEdit"];

/// The format of a tool's event.
struct Event {
    is_claude: bool,
    tool: &'static str,
    /// JSON pointers to the file's path; the first existing one counts.
    paths: &'static [&'static str],
    /// A JSON pointer to the base directory of a relative path.
    directory: &'static str,
}

fn claude() -> Event {
    Event {
        is_claude: true,
        tool: "Claude Code",
        paths: &["/tool_input/file_path", "/tool_input/notebook_path"],
        directory: "/cwd",
    }
}

fn cursor() -> Event {
    Event {
        is_claude: false,
        tool: "Cursor",
        paths: &["/file_path", "/tool_input/file_path"],
        directory: "/workspace_roots/0",
    }
}

impl Event {
    /// Reads standard input and returns the path of the written file; `None` for an event without one.
    ///
    /// # Errors
    /// If standard input is not such an event.
    fn read(&self, directory: &Path) -> Result<Option<PathBuf>, ServiceError> {
        let no_event = |why: String| {
            let body = Body::new(format!("standard input is not an event of {}: {why}", self.tool));
            let help = "run `quorate init wiring` to configure the tool's hooks";
            ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help))
        };
        let bytes = disk::read_stdin(MAX_BYTES).map_err(|error| no_event(error.to_string()))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(no_event(format!("it has more than {} MiB", MAX_BYTES / (1024 * 1024))));
        }
        let event: Value = serde_json::from_slice(&bytes).map_err(|error| no_event(error.to_string()))?;
        if !event.is_object() {
            return Err(no_event("it is not a JSON object".to_owned()));
        }
        let Some(written) = self.paths.iter().find_map(|pointer| event.pointer(pointer)) else {
            // Tools that write no file have no path. Without the tool's name the event is invalid.
            return match event["tool_name"].as_str() {
                Some(tool) if !WRITING.contains(&tool) => Ok(None),
                _ => Err(no_event("it does not name the written file".to_owned())),
            };
        };
        let written = written.as_str().ok_or_else(|| no_event("the file's path is not text".to_owned()))?;
        let start = event.pointer(self.directory).and_then(Value::as_str).map_or(directory, Path::new);
        Ok(Some(directory.join(start).join(written)))
    }
}
