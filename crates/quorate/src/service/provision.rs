//! Provisioning: installs a package's files into a folder, and removes them. `install.rs`, `uninstall.rs` and `status.rs`
//! are the use cases. `install_plan.rs` and `uninstall_plan.rs` plan the change of a file, and `share.rs` plans it for a
//! file of several profiles. `apply.rs` writes in an order that survives a crash, and `setup.rs` owns the record of the
//! installed files.
//!
//! Packages come from any adapter of the provisioning port; installing works the same for all.

pub mod append;
pub mod apply;
pub mod change;
pub mod drift;
pub mod files;
pub mod install;
pub mod install_plan;
pub mod merge;
pub mod options;
pub mod outcome;
pub mod setup;
pub mod share;
pub mod status;
pub mod uninstall;
pub mod uninstall_plan;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_adapters::provisioning::profile;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::ports::provisioning::{Failure, Provisioning};

use super::environment::Environment;
use super::error::{self, ExitClass, ServiceError};
use super::guard;
use super::host::Host;
use super::manifests::find_root;
use super::paths::{absolute, display_path};
use super::runtime;
use super::workspace::PathOverrides;
use files::TargetDir;
pub use options::{Force, Options, WriteMode};
pub use outcome::{FileReport, Outcome};

/// The target folder: the one given, else the workspace's root.
pub struct Target {
    files: TargetDir,
    path: PathBuf,
    shown: String,
}

impl Target {
    /// Opens the folder.
    ///
    /// # Errors
    /// If it does not exist or is not a folder.
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
            ServiceError::new(
                class,
                codes::PROFILE_TARGET,
                body.help("name an existing folder with `--into`"),
            )
        })?;
        Ok(Target { files, path, shown: named })
    }

    /// Locks out other processes while files are written.
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

/// The package that a user's path names: a profile, or the `provisioning` of a runtime's manifest.
///
/// # Errors
/// If the manifest is refused or has no `provisioning`.
pub fn source(
    environment: &Environment,
    path: &Path,
    host: &Host,
) -> Result<Arc<dyn Provisioning>, ServiceError> {
    let is_manifest = path.extension().is_some_and(|end| MANIFESTS.iter().any(|known| end == *known));
    if !is_manifest {
        let named = path.display().to_string();
        return Ok(Arc::new(profile::from_path(absolute(&environment.directory, path), named)));
    }
    let request = runtime::Request { path: path.to_owned(), ..runtime::Request::default() };
    let opened = runtime::open(environment, &PathOverrides::default(), &request, host)?;
    opened.provisioning.ok_or_else(|| {
        let body = Body::new(format!("`{}` does not configure provisioning", path.display()));
        ServiceError::configuration(
            codes::PROFILE_UNKNOWN,
            body.help("add `provisioning: {kind: profile, path: …}`"),
        )
    })
}

/// File endings of runtime manifests.
const MANIFESTS: [&str; 4] = ["yaml", "yml", "md", "mdx"];

/// Installs a package.
///
/// # Errors
/// If the package is missing, or the folder or its store is unusable. Refused files are in the outcome.
#[crate::boxed]
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

/// Removes an installed package.
///
/// # Errors
/// If no package of that name is installed, or the folder or its store is unusable.
pub fn uninstall(target: &Target, slug: &str, how: Options) -> Result<Outcome, ServiceError> {
    let _lock = target.lock(how.run)?;
    uninstall::uninstall(&target.files, &target.shown, slug, how)
}

/// The state of one installed profile, or of all.
///
/// # Errors
/// If the named profile is not installed, or the store cannot be read.
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

#[cfg(test)]
mod tests;
