//! `quorate github review`: annotations, the summary of the step, and reports, for what a checked out commit changes.

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use tempfile::TempDir;

use super::changes::{self, Change, Interrupted, MAX_TEXTS, Patterns, Reviewed};
use super::git::Repository;
use super::{FIRST_PARENT, error_format};
use crate::commands::report;
use crate::commands::review::batch::{json, worst};
use crate::commands::review::{Outcome, ReviewSettings};
use crate::environment::{path, variable};
use crate::exit::{Exit, exit_with_error};
use crate::terminal::Terminal;
use crate::{interrupt, render};
use quorate::service::disk;
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::report::Report;
use quorate::service::report_file::Scope;

/// The most characters of a step's summary. GitHub shows one of up to 1 MiB.
const MAX_SUMMARY_CHARS: usize = 250_000;

/// What to review, and where to write.
pub(super) struct ReviewTask {
    pub(super) patterns: Vec<String>,
    pub(super) base: String,
    pub(super) reports: Option<PathBuf>,
}

pub(super) async fn run(
    task: &ReviewTask,
    settings: ReviewSettings,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let reviewed = match review(task, settings, environment, terminal).await {
        Ok(Ok(reviewed)) => reviewed,
        Ok(Err(Interrupted)) => return Exit::INTERRUPTED,
        Err(error) => return exit_with_error(&error, error_format(), terminal),
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
    let repository = Repository::open(&environment.directory, &task.base).await?;
    if task.base == FIRST_PARENT && variable("GITHUB_EVENT_NAME").is_some_and(|event| event == "pull_request")
    {
        repository.ensure_merge().await?;
    }
    let mut changed = Vec::new();
    for file in repository.changed_files().await? {
        if !patterns.choose(&file.path) {
            continue;
        }
        if changed.len() == MAX_TEXTS {
            return Err(changes::too_many_texts());
        }
        let bytes = if file.is_file { Some(repository.content(&file).await?) } else { None };
        changed.push(Change { bytes, path: file.path });
    }
    // Directories are removed when they are dropped, also where a signal interrupts.
    let _postponed = interrupt::postpone_signals();
    // A ledger within the base would come from the repository.
    let (base, ledger) = (temporary_directory()?, temporary_directory()?);
    repository.write_base(base.path()).await?;
    let in_base = Environment { directory: base.path().to_owned(), ..environment.clone() };
    settings.places.ledger = Some(ledger.path().join("ledger.db"));
    let keep_report = async |session: &_, report: &Report| {
        let Some(dir) = &task.reports else { return Ok(()) };
        let html = report::draw(session, &report.run, Scope::Everything).await?;
        write(environment, dir, &format!("{}.html", report.run), html.as_bytes())
    };
    Ok(changes::review_all(changed, settings, &in_base, terminal, keep_report).await)
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

/// Prints the annotations of all verdicts, then those of findings.
fn print(reviewed: &[Reviewed], terminal: &Terminal) {
    let reports: Vec<&Report> = reviewed.iter().filter_map(Reviewed::report).collect();
    for review in reviewed {
        if let Outcome::Failed(error) = &review.outcome {
            exit_with_error(error, error_format(), terminal);
        }
    }
    terminal.annotations(&render::github_of(&reports));
    if reviewed.is_empty() {
        terminal.hint("no text that the patterns choose is changed");
    }
}

/// Adds to the summary of the step, and writes what machines read.
fn save(
    task: &ReviewTask,
    reviewed: &[Reviewed],
    exit: Exit,
    environment: &Environment,
) -> Result<(), ServiceError> {
    if let Some(file) = path("GITHUB_STEP_SUMMARY") {
        let text = changes::digest(reviewed, "", MAX_SUMMARY_CHARS, &environment.redactor);
        disk::append_below(file.parent().unwrap_or(Path::new(".")), &file, text.as_bytes())
            .map_err(|error| unwritable(&file, &error))?;
    }
    let Some(dir) = &task.reports else { return Ok(()) };
    let reviews = reviewed.iter().map(|review| (&*review.path, &review.outcome));
    let text = environment.redactor.redact_text(&format!("{:#}\n", json(reviews, exit)));
    write(environment, dir, "reviews.json", text.as_bytes())
}

/// Writes a report. A directory of the checkout may be a link that the pull request brings.
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
        body.help(
            "its directory must be one that this user can write to, within the checkout or outside of it",
        ),
    )
}
