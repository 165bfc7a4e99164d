//! `quorate github review`: annotations, the step's summary and reports for the changes of a checked out commit.

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use tempfile::TempDir;

use super::changes::{self, Change, Interrupted, MAX_TEXTS, Reviewed};
use super::error_format;
use super::git::{Becomes, Repository};
use super::patterns::{Patterns, ensure_readable};
use crate::commands::report;
use crate::commands::review::batch::{json, worst};
use crate::commands::review::{Outcome, ReviewSettings};
use crate::environment::path;
use crate::exit::{Exit, exit_with_error};
use crate::interrupt::{self, until_interrupted};
use crate::render::{self, Extent, Format};
use crate::terminal::Terminal;
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
    pub(super) base: Option<String>,
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
    let keep_report = async |session: &_, report: &Report| {
        let Some(dir) = &task.reports else { return Ok(()) };
        let html = report::draw(session, &report.run, Scope::Everything).await?;
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
    let repository = Repository::open(&environment.directory, task.base.as_deref()).await?;
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
    let reports: Vec<&Report> = reviewed.iter().filter_map(Reviewed::report).collect();
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
        Format::Github => terminal.annotations(&render::github_of(&reports)),
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
    let text = environment.redactor.redact_text(&format!("{:#}\n", json(reviews, exit)));
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
