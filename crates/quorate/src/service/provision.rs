//! Provisioning: a package's files into a folder, and out of it again. This file owns what a caller says and gets;
//! `install.rs`, `uninstall.rs` and `status.rs` are the use cases, `plan.rs` and `out.rs` say what becomes of one file,
//! `share.rs` what becomes of one that others share, `carry.rs` does it in an order that a crash cannot hurt, and `setup.rs`
//! owns what is remembered.
//!
//! What is installed comes from any adapter of the provisioning port; how it is installed is the same for all.

pub mod append;
pub mod apply;
pub mod change;
pub mod drift;
pub mod files;
pub mod install;
pub mod install_plan;
pub mod merge;
pub mod setup;
pub mod share;
pub mod status;
pub mod uninstall;
pub mod uninstall_plan;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_adapters::provisioning::profile;
use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::provisioning::{Failure, Provisioning};

use super::diff;
use super::environment::Environment;
use super::error::{self, ExitClass, ServiceError};
use super::guard;
use super::host::Host;
use super::manifests::find_root;
use super::paths::{absolute, display_path};
use super::runtime;
use super::workspace::PathOverrides;
use change::{Action, Change, ChangeError};
use files::{FileError, TargetDir};
use setup::Error;

/// Whether anything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    Apply,
    /// It is only said.
    DryRun,
}

/// Whether what was edited since may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    Yes,
    No,
}

/// How a use case is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether anything is written.
    pub run: WriteMode,
    /// Whether what was edited since may be replaced.
    pub force: Force,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    pub slug: String,
    pub version: String,
    /// The version that was installed before, if another was.
    pub previous: Option<String>,
    /// Whether a process that died had begun with it.
    pub resumed: bool,
    /// Where it went, as the user would name it.
    pub target: String,
    /// Whether anything was written.
    pub run: WriteMode,
    /// Whether there was nothing to do, not even to remember.
    pub idle: bool,
    /// What became of each file, or would.
    pub files: Vec<FileReport>,
    /// Refusals and warnings. With a refusal, nothing was written.
    pub report: Report,
}

/// What became of a file, or would.
#[derive(Debug)]
pub struct FileReport {
    pub dest: String,
    /// How it goes together with what was there.
    pub strategy: &'static str,
    pub action: Action,
    /// What else is to be said.
    pub notes: Vec<String>,
    /// For a file that was edited: from what was installed to what is there. In a dry run: from what is there to what
    /// would be. Else empty.
    pub diff: String,
}

impl FileReport {
    fn of(change: &Change, run: WriteMode) -> FileReport {
        let found = change.found.as_ref().map(|found| &*found.bytes);
        let diff = match (&change.expected, run) {
            (Some(expected), _) => diff::unified(&change.dest, Some(expected), found),
            (None, WriteMode::DryRun) => diff::unified(&change.dest, found, change.result()),
            (None, WriteMode::Apply) => String::new(),
        };
        FileReport {
            dest: change.dest.clone(),
            strategy: change.strategy.as_str(),
            action: change.action,
            notes: change.notes.clone(),
            diff,
        }
    }
}

/// The folder that is installed into: what was said, else the workspace's root.
pub struct Target {
    files: TargetDir,
    path: PathBuf,
    shown: String,
}

impl Target {
    /// Opens it.
    ///
    /// # Errors
    /// When it is not there, or is no folder.
    pub fn open(environment: &Environment, into: Option<&Path>) -> Result<Target, ServiceError> {
        let path: PathBuf = match into {
            Some(into) => absolute(&environment.directory, into),
            None => find_root(environment, None, &environment.directory),
        };
        let named = match display_path(environment, &path) {
            here if here.is_empty() => ".".to_owned(),
            there => there,
        };
        let files = TargetDir::open(&path).map_err(|error| {
            let class = match error.kind() {
                std::io::ErrorKind::NotFound => ExitClass::NotFound,
                _ => ExitClass::Configuration,
            };
            let body = Body::new(format!("cannot open the folder {named}: {error}"));
            ServiceError::new(class, codes::PROFILE_TARGET, body.help("install into a folder that is there"))
        })?;
        Ok(Target { files, path, shown: named })
    }

    /// Keeps other processes out while something is written.
    fn lock(&self, run: WriteMode) -> Result<Option<std::fs::File>, ServiceError> {
        match run {
            WriteMode::DryRun => Ok(None),
            WriteMode::Apply => self.files.lock().map(Some).map_err(|error| {
                let body = Body::new(format!("cannot lock the folder {}: {error}", self.shown));
                ServiceError::configuration(codes::PROFILE_TARGET, body)
            }),
        }
    }
}

/// What a path that a user named gives: a profile, or what the `provisioning` of a runtime's manifest says.
///
/// # Errors
/// When it is a manifest that is refused, or that says nothing of provisioning.
pub fn source(
    environment: &Environment,
    path: &Path,
    host: &Host,
) -> Result<Arc<dyn Provisioning>, ServiceError> {
    let is_manifest = path.extension().is_some_and(|end| MANIFESTS.iter().any(|one| end == *one));
    if !is_manifest {
        let named = path.display().to_string();
        return Ok(Arc::new(profile::from_path(absolute(&environment.directory, path), named)));
    }
    let request = runtime::Request { path: path.to_owned(), ..runtime::Request::default() };
    let opened = runtime::open(environment, &PathOverrides::default(), &request, host)?;
    opened.provisioning.ok_or_else(|| {
        let body = Body::new(format!("`{}` says nothing of provisioning", path.display()));
        ServiceError::configuration(
            codes::PROFILE_UNKNOWN,
            body.help("add `provisioning: {kind: profile, path: …}`"),
        )
    })
}

/// What manifests of runtimes end in.
const MANIFESTS: [&str; 4] = ["yaml", "yml", "md", "mdx"];

/// Installs what an adapter gives.
///
/// # Errors
/// When there is no package, or the folder or what is kept in it cannot be used. What is only refused is in the outcome.
pub async fn install(
    environment: &Environment,
    provisioning: &dyn Provisioning,
    target: &Target,
    how: Options,
) -> Result<Outcome, ServiceError> {
    guard::ensure_folder_free(&target.path, &target.shown)?;
    let package = provisioning.package().await.map_err(package_error)?;
    let _lock = target.lock(how.run)?;
    let about = provisioning.about();
    let at = quorate_kernel::clock::rfc3339(environment.clock.now_ms());
    install::install(&target.files, &target.shown, &package, &install::Origin { from: about.from, at }, how)
}

/// Takes out what was installed.
///
/// # Errors
/// When nothing of that name is installed, or the folder or what is kept in it cannot be used.
pub fn uninstall(target: &Target, slug: &str, how: Options) -> Result<Outcome, ServiceError> {
    let _lock = target.lock(how.run)?;
    uninstall::uninstall(&target.files, &target.shown, slug, how)
}

/// How installed profiles stand: one, or all.
///
/// # Errors
/// When the one that was named is not installed, or what is kept cannot be read.
pub fn status(target: &Target, slug: Option<&str>) -> Result<Vec<status::ProfileStatus>, ServiceError> {
    status::status(&target.files, &target.shown, slug)
}

fn package_error(failure: Failure) -> ServiceError {
    match failure {
        Failure::Missing { message } => {
            let help = "name a folder with a profile.json";
            ServiceError::not_found(codes::PROFILE_UNKNOWN, Body::new(message).help(help))
        }
        Failure::Refused(report) => ServiceError::from_report(ExitClass::Configuration, *report),
        unavailable @ Failure::Unavailable { .. } => {
            ServiceError::configuration(codes::PROFILE_INVALID, Body::new(error::error_chain(&unavailable)))
        }
    }
}

/// Nothing of that name is installed.
fn not_installed(slug: &str, target: &str, installed: &[String]) -> ServiceError {
    let place = if target == "." { "here".to_owned() } else { format!("in {target}") };
    let body = Body::new(format!("no profile `{slug}` is installed {place}"));
    let help = match installed {
        [] => "none is; `--into` names another folder".to_owned(),
        some => format!("installed are: {}", some.join(", ")),
    };
    ServiceError::not_found(codes::PROFILE_UNKNOWN, body.help(help))
}

impl From<Error> for ServiceError {
    fn from(error: Error) -> ServiceError {
        match &error {
            Error::Corrupt { .. } => {
                let help =
                    "put the file back from a copy; `quorate explain setup_corrupt` says what it is for";
                ServiceError::configuration(codes::SETUP_CORRUPT, Body::new(error.to_string()).help(help))
            }
            Error::Target { trouble: FileError::Obstructed(_), .. } => {
                ServiceError::new(ExitClass::Refused, codes::PROFILE_TARGET, Body::new(error.to_string()))
            }
            Error::Target { .. } => {
                ServiceError::configuration(codes::PROFILE_TARGET, Body::new(format!("cannot use {error}")))
            }
        }
    }
}

/// Takes what is refused into a report; what cannot be read at all stops.
fn refuse(report: &mut Report, cannot: ChangeError) -> Result<(), ServiceError> {
    match cannot {
        ChangeError::Refused { code, body, text } => {
            if let (Some(text), Some(place)) = (text, &body.place) {
                report.add_source(place.file.clone(), text);
            }
            report.refuse(code, *body);
            Ok(())
        }
        ChangeError::Setup(error) => Err(error.into()),
    }
}

/// Refuses what was edited since.
fn refuse_edited(report: &mut Report, changes: &[Change], help: &str) {
    for change in changes.iter().filter(|change| change.action == Action::Edited) {
        let body = Body::new(format!("{} was edited since it was installed", change.dest));
        report.refuse(codes::PROFILE_DRIFT, body.help(help));
    }
}

#[cfg(test)]
mod tests;
