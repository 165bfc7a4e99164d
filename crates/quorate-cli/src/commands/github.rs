//! `quorate github`: reviews the changes of a pull request, in workflows of GitHub Actions. The texts come from the pull
//! request, their configuration always from its base.
//!
//! `quorate github review` prints annotations, and writes the step's summary and reports for a checked out commit. The event
//! that started a job is read here as well.

mod api;
mod changes;
mod comment;
mod git;

use std::path::{Path, PathBuf};

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use quorate::service::disk;
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::report::Review;
use quorate::service::report_file::ReportScope;
use quorate_diagnostics::{Body, codes};
use serde::Deserialize;
use tempfile::TempDir;

use crate::arguments::{FailOnArguments, ReviewArguments};
use crate::commands::report;
use crate::commands::review::{Outcome, ReviewSettings, all_json, worst};
use crate::environment::{path, variable};
use crate::exit::{Exit, exit_with_error};
use crate::interrupt::{self, until_interrupted};
use crate::render::{self, Extent, Format};
use crate::terminal;
use crate::terminal::Terminal;
use changes::{Change, Interrupted, MAX_TEXTS, Reviewed};
use changes::{Patterns, ensure_readable};
use git::{Becomes, GitRepository};

/// Review the changes of a pull request, in workflows of GitHub Actions
///
/// The texts come from the pull request; quorate.toml, council.yaml and prompts come from its target branch.
/// `quorate init wiring github` writes the workflows.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate init wiring github\n  quorate github review 'drafts/**/*.md' --fail-on hold --reports reports"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print annotations for the texts that a checked out commit changes
    ///
    /// Verdicts come first, since GitHub shows few annotations of a step. The summary is added to the file that
    /// GITHUB_STEP_SUMMARY names. The worst verdict sets the exit code, as with `quorate review`. Caps given as options apply
    /// to all texts together, caps in quorate.toml to each text.
    Review {
        /// Which changed texts: paths from the repository's root, as patterns such as 'drafts/**/*.md'
        #[arg(value_name = "PATTERN", required = true)]
        patterns: Vec<String>,
        /// The commit that provides the configuration and that changes are compared with; by default the base of a pull request's merge
        #[arg(long, value_name = "REV", value_parser = NonEmptyStringValueParser::new())]
        base: Option<String>,
        /// Write a report of each review into this directory, and reviews.json
        #[arg(long, value_name = "DIR")]
        reports: Option<PathBuf>,
        #[command(flatten)]
        fail: FailOnArguments,
        #[command(flatten)]
        review: ReviewArguments,
    },
    /// Keep one comment on a pull request with its verdicts up to date
    ///
    /// For a workflow that `workflow_run` starts, in a checkout of the base. The command fetches the texts from GitHub and
    /// reviews them here; it uses no artifact of the pull request's own workflow. Caps given as options apply to all texts
    /// together. Needs GITHUB_TOKEN.
    ///
    /// Exits with 0 for every verdict, with 5 if a text could not be reviewed or the comment could not be written, and with
    /// 130 if interrupted.
    Comment {
        /// Which changed texts: paths from the repository's root, as patterns such as 'drafts/**/*.md'
        #[arg(value_name = "PATTERN", required = true)]
        patterns: Vec<String>,
        /// The label with which a maintainer lets a model review a pull request from a fork, once
        #[arg(long, value_name = "NAME", default_value = "quorate", value_parser = label)]
        label: String,
        /// The user that owns the token's comments
        #[arg(long, value_name = "LOGIN", default_value = "github-actions[bot]")]
        author: String,
        #[command(flatten)]
        review: ReviewArguments,
    },
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    match arguments.action {
        Action::Review { patterns, base, reports, fail, review } => {
            let task = ReviewTask { patterns, base, reports };
            Box::pin(run_review(&task, changes::settings(fail, &review), environment, terminal)).await
        }
        Action::Comment { patterns, label, author, review } => {
            let task = comment::CommentTask { patterns, label, author };
            let settings = changes::settings(FailOnArguments::default(), &review);
            Box::pin(comment::run(&task, &settings, environment, terminal)).await
        }
    }
}

/// A label's name. An empty name or a dot segment would change the address of the API request.
fn label(text: &str) -> Result<String, String> {
    match text.trim() {
        "" | "." | ".." => Err("not a label's name".to_owned()),
        name => Ok(name.to_owned()),
    }
}

/// How errors are printed: as annotations, where a runner reads them.
fn error_format() -> Format {
    if terminal::is_read_by_runner() { Format::Github } else { Format::Human }
}

/// The largest file of an event, in bytes.
const MAX_BYTES: u64 = 8 << 20;

#[derive(Deserialize)]
struct Event {
    workflow_run: WorkflowRun,
}

/// The run of a workflow that has ended.
#[derive(Deserialize)]
struct WorkflowRun {
    /// The event that started it.
    event: String,
    head_sha: String,
    head_branch: Option<String>,
    /// `None` once a fork is deleted.
    head_repository: Option<Repository>,
}

#[derive(Deserialize)]
struct Repository {
    full_name: String,
}

/// The run that started this job's workflow.
///
/// # Errors
/// When another event started it.
fn workflow_run() -> Result<WorkflowRun, ServiceError> {
    let event = variable("GITHUB_EVENT_NAME").unwrap_or_default();
    let file = path("GITHUB_EVENT_PATH").filter(|_| event == "workflow_run");
    let Some(file) = file else {
        return Err(event_unusable("this job's workflow was not started by `workflow_run`".to_owned()));
    };
    let unreadable = |why: String| event_unusable(format!("cannot read the event {}: {why}", file.display()));
    let bytes =
        disk::read_up_to(Path::new(&file), MAX_BYTES).map_err(|error| unreadable(error.to_string()))?;
    let event: Event = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    Ok(event.workflow_run)
}

fn event_unusable(what: String) -> ServiceError {
    let help = "run `quorate init wiring github` to write the workflows";
    ServiceError::configuration(codes::GITHUB_UNUSABLE, Body::new(what).help(help))
}

/// The most characters of a step's summary. GitHub shows one of up to 1 MiB.
const MAX_SUMMARY_CHARS: usize = 250_000;

/// What to review, and where to write.
struct ReviewTask {
    patterns: Vec<String>,
    base: Option<String>,
    reports: Option<PathBuf>,
}

async fn run_review(
    task: &ReviewTask,
    settings: ReviewSettings,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let reviewed = match review(task, settings, environment, terminal).await {
        Ok(Ok(reviewed)) => reviewed,
        Ok(Err(Interrupted)) => return Exit::INTERRUPTED,
        Err(error) => {
            let why = environment.redactor.redact_text(&error.first_message());
            return match summarize(&changes::not_reviewed("", &why)) {
                Ok(()) => exit_with_error(&error, error_format(), terminal),
                Err(unwritable) => exit_with_error(&unwritable, error_format(), terminal),
            };
        }
    };
    print(&reviewed, terminal);
    let exit = worst(reviewed.iter().map(Reviewed::exit));
    match save(task, &reviewed, exit, environment) {
        Ok(()) => exit,
        Err(error) => exit_with_error(&error, error_format(), terminal),
    }
}

async fn review(
    task: &ReviewTask,
    mut settings: ReviewSettings,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Result<Vec<Reviewed>, Interrupted>, ServiceError> {
    let patterns = Patterns::new(&task.patterns)?;
    // Dropping the directories removes them, also after a signal.
    let _postponed = interrupt::postpone_signals();
    let Ok(prepared) = until_interrupted(prepare(task, &patterns, environment)).await else {
        terminal.status("interrupted before anything was asked");
        return Ok(Err(Interrupted));
    };
    let prepared = prepared?;
    changes::warn_of_unmatched(&prepared.unmatched, terminal);
    settings.places.ledger = Some(prepared.ledger.path().join("ledger.db"));
    let keep_report = async |session: &_, report: &Review| {
        let Some(dir) = &task.reports else { return Ok(()) };
        let html = report::draw(session, &report.run, ReportScope::Everything).await?;
        write(environment, dir, &format!("{}.html", report.run), html.as_bytes())
    };
    Ok(changes::review_all(prepared.changes, settings, &prepared.environment, terminal, keep_report).await)
}

/// The changes to review, and the directories of the review.
struct Prepared<'p> {
    changes: Vec<Change>,
    /// Patterns that match nothing.
    unmatched: Vec<&'p str>,
    /// That of the base's files.
    environment: Environment,
    /// The base's files.
    _base: TempDir,
    /// Its own directory: a ledger within the base would come from the repository.
    ledger: TempDir,
}

async fn prepare<'p>(
    task: &ReviewTask,
    patterns: &'p Patterns,
    environment: &Environment,
) -> Result<Prepared<'p>, ServiceError> {
    let repository = GitRepository::open(&environment.directory, task.base.as_deref()).await?;
    let (base, ledger) = (temporary_directory()?, temporary_directory()?);
    let in_base =
        Environment { directory: base.path().to_owned(), keeps_ledgers: false, ..environment.clone() };
    let files = repository.changed_files().await?;
    let mut changes = Vec::new();
    for file in &files {
        let is_chosen = patterns.choose(&file.path);
        let is_reviewed = match file.becomes {
            Becomes::File => is_chosen,
            Becomes::LinkOrRepository => is_chosen || patterns.choose_below(&file.path),
            Becomes::Nothing => false,
        };
        if !is_reviewed {
            continue;
        }
        if changes.len() == MAX_TEXTS {
            return Err(changes::too_many_texts());
        }
        let bytes = match file.becomes {
            Becomes::File => Some(repository.content(file).await?),
            Becomes::LinkOrRepository | Becomes::Nothing => None,
        };
        changes.push(Change::new(&file.path, bytes, &in_base));
    }
    let mut unmatched = patterns.unmatched(files.iter().map(|file| &*file.path));
    if !unmatched.is_empty() {
        let paths = repository.paths().await?;
        let among_all = patterns.unmatched(paths.iter().map(String::as_str));
        unmatched.retain(|pattern| among_all.contains(pattern));
    }
    ensure_readable(&unmatched)?;
    repository.write_base(base.path()).await?;
    // Fails before any member is asked if the file cannot be written. An interruption leaves this content.
    save_json(task, &[], Exit::INTERRUPTED, environment)?;
    Ok(Prepared { changes, unmatched, environment: in_base, _base: base, ledger })
}

fn temporary_directory() -> Result<TempDir, ServiceError> {
    tempfile::Builder::new().prefix("quorate-base-").tempdir().map_err(|error| {
        let body = Body::new(format!("cannot make a temporary directory: {error}"));
        ServiceError::configuration(
            codes::GITHUB_UNUSABLE,
            body.help("set TMPDIR to a directory that exists"),
        )
    })
}

/// Prints the annotations of all verdicts, then those of findings; without a runner, prints the reviews as text.
fn print(reviewed: &[Reviewed], terminal: &Terminal) {
    let reports: Vec<&Review> = reviewed.iter().filter_map(Reviewed::report).collect();
    for review in reviewed {
        let failure = match &review.outcome {
            Outcome::Failed(error) => Some(error),
            Outcome::Judged(_) | Outcome::Skipped { .. } | Outcome::Interrupted => review.unkept.as_ref(),
        };
        if let Some(error) = failure {
            exit_with_error(error, error_format(), terminal);
        }
    }
    match error_format() {
        Format::Github => terminal.annotations(&render::github(&reports)),
        format => {
            let shown =
                reports.iter().map(|report| render::report(report, format, Extent::Screen, terminal.stdout));
            terminal.data(&shown.collect::<Vec<_>>().join("\n"));
        }
    }
    changes::hint_at_nothing(reviewed, terminal);
}

/// Adds to the step's summary, and writes reviews.json.
fn save(
    task: &ReviewTask,
    reviewed: &[Reviewed],
    exit: Exit,
    environment: &Environment,
) -> Result<(), ServiceError> {
    summarize(&changes::digest(reviewed, "", MAX_SUMMARY_CHARS, &environment.redactor))?;
    save_json(task, reviewed, exit, environment)
}

fn save_json(
    task: &ReviewTask,
    reviewed: &[Reviewed],
    exit: Exit,
    environment: &Environment,
) -> Result<(), ServiceError> {
    let Some(dir) = &task.reports else { return Ok(()) };
    let reviews = reviewed.iter().map(|review| (&*review.path, &review.outcome));
    let text = environment.redactor.redact_text(&format!("{:#}\n", all_json(reviews, exit)));
    write(environment, dir, "reviews.json", text.as_bytes())
}

/// Adds to the step's summary, if the runner provides one.
fn summarize(text: &str) -> Result<(), ServiceError> {
    let Some(file) = path("GITHUB_STEP_SUMMARY") else { return Ok(()) };
    disk::append_below(file.parent().unwrap_or(Path::new(".")), &file, text.as_bytes())
        .map_err(|error| unwritable(&file, &error))
}

/// Writes a report, following no links: a directory of the checkout may be a link from the pull request.
fn write(environment: &Environment, dir: &Path, name: &str, bytes: &[u8]) -> Result<(), ServiceError> {
    let dir = environment.directory.join(dir);
    let is_inside = dir.starts_with(&environment.directory);
    let folder = match is_inside {
        true => Some(&*environment.directory),
        false => dir.ancestors().find(|above| above.is_dir()),
    };
    let path = dir.join(name);
    disk::write_below(folder.unwrap_or(&dir), &path, bytes).map_err(|error| unwritable(&path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> ServiceError {
    let body = Body::new(format!("cannot write {}: {error}", path.display()));
    ServiceError::configuration(
        codes::ARTIFACT_UNREADABLE,
        body.help("name a directory that this user can write to"),
    )
}
