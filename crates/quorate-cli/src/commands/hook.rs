//! `quorate hook`: reviews for the hooks of other tools, in the exit codes that each of them understands.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use quorate::hook::{Passing, Tool, WrittenOutcome, WrittenRequest, WrittenScope};
use quorate::{Error, ErrorKind, Quorate, Review, ReviewRequest};
use serde_json::json;

use crate::arguments::{FailOnArguments, PathArguments, ReviewArguments};
use crate::exit::{Ended, Exit, exit_with_error, warn};
use crate::progress::Progress;
use crate::render::Format;
use crate::render::layout::one_line;
use crate::terminal::{Terminal, read_stdin};

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

pub(super) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    match arguments.host {
        Host::PreCommit { files, settings } => {
            Ok(Box::pin(pre_commit(&files, &settings, quorate, terminal)).await)
        }
        Host::Claude(settings) => answer(Tool::ClaudeCode, &settings, quorate, terminal).await,
        Host::Cursor(settings) => answer(Tool::Cursor, &settings, quorate, terminal).await,
    }
}

/// Reviews the file that a tool's event names, and answers as the tool's hooks do.
async fn answer(tool: Tool, settings: &Settings, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let event = read_stdin(Tool::MAX_EVENT_BYTES)?;
    let Some(path) = tool.written_file(&event)? else { return Ok(Exit::DONE) };
    let reviewed = Box::pin(review(&path, WrittenScope::Watched, settings, quorate, terminal)).await?;
    let Some(review) = reviewed else { return Ok(Exit::DONE) };
    let brief = brief(&review);
    Ok(match (review.passing(), tool) {
        (Passing::Passes, _) => Exit::DONE,
        (Passing::Fails, Tool::Cursor) => {
            terminal.data(&format!("{}\n", json!({"additional_context": brief})));
            Exit::DONE
        }
        (passing, _) => {
            terminal.status(brief.trim_end());
            if passing == Passing::Fails { Exit::BLOCKED } else { Exit::CHECK_FAILED }
        }
    })
}

/// Reviews named files; the worst of them decides.
async fn pre_commit(files: &[PathBuf], settings: &Settings, quorate: &Quorate, terminal: &Terminal) -> Exit {
    let mut worst = Passing::Passes;
    for file in files {
        let passing = match review(file, WrittenScope::Named, settings, quorate, terminal).await {
            Ok(Some(review)) => {
                let passing = review.passing();
                terminal.data(&match passing {
                    Passing::Passes => {
                        format!("{} {}\n", one_line(&review.decided()), one_line(&review.artifact))
                    }
                    _ => brief(&review),
                });
                passing
            }
            Ok(None) => Passing::Passes,
            Err(error) => {
                let exit = exit_with_error(&error, Format::Human, terminal);
                if error.kind() == ErrorKind::Interrupted {
                    return exit;
                }
                Passing::Undecided
            }
        };
        worst = worst.max(passing);
    }
    if worst == Passing::Passes { Exit::DONE } else { Exit::CHECK_FAILED }
}

/// The most issues that a hook prints.
const MAX_ISSUES: usize = 10;

/// A line for each issue, the verdict and the command that shows all issues with their fixes. A person's decision comes first.
fn brief(review: &Review) -> String {
    let person = match &review.overridden {
        Some(decision) => format!("{}: {}\n", one_line(&review.decided()), one_line(&decision.reason)),
        None => String::new(),
    };
    let command = review.show_command();
    format!("{person}{}Fixes: `{command} --full`\n", review.short(MAX_ISSUES))
}

/// Reviews one file; `None` if it is not due.
async fn review(
    file: &Path,
    scope: WrittenScope,
    settings: &Settings,
    quorate: &Quorate,
    terminal: &Terminal,
) -> Result<Option<Review>, Error> {
    let review = ReviewRequest {
        policy: settings.review.policy,
        options: settings.review.answers.options(),
        fail_on: settings.fail.fail_on,
        ..ReviewRequest::default()
    };
    let quorate = settings.places.clone().apply(quorate);
    let reviewing = quorate.review_written(WrittenRequest { file: file.to_owned(), scope, review });
    let progress = Progress::new(terminal.progress);
    let reviewed = progress.follow(reviewing).await;
    let reviewed = reviewed?;
    warn(&reviewed.warnings, terminal);
    Ok(match reviewed.value {
        WrittenOutcome::Judged(review) => Some(*review),
        WrittenOutcome::NotDue(why) => {
            terminal.hint(&format!("{}: {why}", one_line(&file.display().to_string())));
            None
        }
    })
}
