//! Profiles: folders with files that are installed into another folder, checked there, and uninstalled again.
//!
//! `provision/install.rs` plans an install or an uninstall as a list of steps, which survives a crash between any two of
//! them. `provision/change.rs` plans the change of a file, and `provision/text.rs` edits its text. `provision/setup.rs` owns
//! the record of the installed files and their backups, `provision/status.rs` compares it with the existing files, and
//! `provision/target.rs` reads and writes beneath the target folder.
//!
//! Packages come from any adapter of the provisioning port; installing works the same for all.

mod change;
mod install;
mod setup;
mod status;
mod target;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_adapters::provisioning::profile;
use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::provisioning::{Failure, Provisioning};

use serde::{Serialize, Serializer};

use super::builder::Quorate;
use super::error::{Error, ErrorKind};
use super::service::disk::{absolute, display_path};
use super::service::error::error_chain;
use super::service::workspace::{PathOverrides, find_root};
use super::service::{diff, guard, runtime};
use change::FileChange;
use setup::Setups;
use target::Target;

pub use change::{Drift, FileAction};
pub use setup::State;
pub use status::{FileStatus, ProfileStatus, ProfilesStatus};

/// How to install or uninstall a profile.
#[derive(Debug, Clone, Default)]
pub struct ProvisionRequest {
    /// The folder; `None` is the workspace's root.
    pub into: Option<PathBuf>,
    /// Plan the changes without writing.
    pub dry_run: bool,
    /// Replace or remove files that were edited since, and keep a copy of each.
    pub force: bool,
}

impl Quorate {
    /// Installs a profile: a folder with a `profile.json`, or the `provisioning` of a runtime's manifest. A repetition
    /// changes nothing, and a repetition after a crash completes the work.
    ///
    /// # Errors
    /// If the profile is missing, or the folder is unusable. Refused files are in the outcome.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::{ErrorKind, Quorate};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let missing = quorate.install_profile("profiles/standard".as_ref(), Default::default()).await;
    /// assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn install_profile(
        &self,
        profile: &Path,
        request: ProvisionRequest,
    ) -> Result<ProvisionOutcome, Error> {
        let target = self.open_target(request.into.clone())?;
        let provisioning = self.package_source(&self.named_path(profile.to_owned())?)?;
        guard::ensure_folder_free(&target.path, &target.shown)?;
        let package = provisioning.package().await.map_err(package_error)?;
        let _lock = target.lock(request.dry_run)?;
        let at = quorate_kernel::clock::rfc3339(self.environment.clock.now_ms());
        let from = provisioning.about().from;
        let goal = install::Goal::Install { package: &package, from: &from, at: &at };
        install::run(&target.files, &target.shown, goal, &request)
    }

    /// Uninstalls a profile, and restores the files that it replaced.
    ///
    /// # Errors
    /// If no profile of that name is installed, or the folder is unusable.
    ///
    /// ```
    /// use quorate::{ErrorKind, Quorate};
    ///
    /// let dir = tempfile::tempdir()?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let missing = quorate.uninstall_profile("runtime-profile/standard", Default::default());
    /// assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn uninstall_profile(
        &self,
        slug: &str,
        request: ProvisionRequest,
    ) -> Result<ProvisionOutcome, Error> {
        let target = self.open_target(request.into.clone())?;
        let _lock = target.lock(request.dry_run)?;
        install::run(&target.files, &target.shown, install::Goal::Uninstall { slug }, &request)
    }

    /// The states of one installed profile, or of all, in a folder; `None` is the workspace's root.
    ///
    /// # Errors
    /// If the named profile is not installed, or the records of the installation cannot be read.
    ///
    /// ```
    /// use quorate::Quorate;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// assert!(quorate.profiles(None, None)?.profiles.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn profiles(&self, into: Option<PathBuf>, slug: Option<&str>) -> Result<ProfilesStatus, Error> {
        let target = self.open_target(into)?;
        status::status(&target.files, &target.shown, slug)
    }

    /// Opens the target folder: the one given, else the workspace's root.
    fn open_target(&self, into: Option<PathBuf>) -> Result<ProvisionTarget, Error> {
        let environment = &self.environment;
        let path = match into {
            Some(into) => absolute(&environment.directory, &self.named_path(into)?),
            None => find_root(environment, None, &environment.directory),
        };
        let shown = match display_path(environment, &path) {
            here if here.is_empty() => ".".to_owned(),
            there => there,
        };
        let files = Target::open(&path).map_err(|error| {
            let class = match error.kind() {
                std::io::ErrorKind::NotFound => ErrorKind::NotFound,
                _ => ErrorKind::Configuration,
            };
            let body = Body::new(format!("cannot open the folder {shown}: {error}"));
            Error::new(class, codes::PROFILE_TARGET, body.help("name an existing folder with `--into`"))
        })?;
        Ok(ProvisionTarget { files, path, shown })
    }

    /// The package that a path names: a profile, or the `provisioning` of a runtime's manifest. The adapters of the
    /// provisioning port deliver packages.
    fn package_source(&self, path: &Path) -> Result<Arc<dyn Provisioning>, Error> {
        let environment = &self.environment;
        let is_manifest = path.extension().is_some_and(|end| MANIFESTS.iter().any(|known| end == *known));
        if !is_manifest {
            let named = path.display().to_string();
            return Ok(Arc::new(profile::from_path(absolute(&environment.directory, path), named)));
        }
        let request = runtime::RuntimeRequest { path: path.to_owned(), ..runtime::RuntimeRequest::default() };
        let opened = runtime::open(environment, &PathOverrides::default(), &request)?;
        opened.provisioning.ok_or_else(|| {
            let body = Body::new(format!("`{}` does not configure provisioning", path.display()));
            let help = "add `provisioning: {kind: profile, path: …}`";
            Error::configuration(codes::PROFILE_UNKNOWN, body.help(help))
        })
    }
}

/// An open target folder.
struct ProvisionTarget {
    files: Target,
    path: PathBuf,
    shown: String,
}

impl ProvisionTarget {
    /// Locks out other processes while files are written.
    fn lock(&self, dry_run: bool) -> Result<Option<std::fs::File>, Error> {
        if dry_run {
            return Ok(None);
        }
        self.files.0.lock().map(Some).map_err(|error| {
            let body = Body::new(format!("cannot lock the folder {}: {error}", self.shown));
            Error::configuration(codes::PROFILE_TARGET, body)
        })
    }
}

/// File endings of runtime manifests.
const MANIFESTS: [&str; 4] = ["yaml", "yml", "md", "mdx"];

fn package_error(failure: Failure) -> Error {
    match failure {
        Failure::Missing { message } => {
            let help = "name a folder with a profile.json";
            Error::not_found(codes::PROFILE_UNKNOWN, Body::new(message).help(help))
        }
        Failure::Refused(report) => Error::from_report(ErrorKind::Configuration, *report),
        unavailable @ Failure::Unavailable { .. } => {
            Error::configuration(codes::PROFILE_INVALID, Body::new(error_chain(&unavailable)))
        }
    }
}

/// The result of an install or an uninstall.
#[derive(Debug, Serialize)]
pub struct ProvisionOutcome {
    /// The profile's name.
    pub slug: String,
    /// Its version.
    pub version: String,
    /// The version that was installed before, if another was.
    pub previous: Option<String>,
    /// Whether this continued the work of a crashed process.
    pub resumed: bool,
    /// The target folder, as shown to the user.
    pub target: String,
    /// Whether the changes were only planned.
    pub dry_run: bool,
    /// Whether anything was written.
    pub written: bool,
    /// Whether neither a file nor the setup changed.
    #[serde(skip)]
    pub idle: bool,
    /// Whether the operation is an uninstall.
    #[serde(skip)]
    pub uninstalls: bool,
    /// The change of each file.
    pub files: Vec<FileReport>,
    /// Refusals and warnings. With a refusal, nothing was written.
    #[serde(rename = "diagnostics")]
    pub report: Report,
}

/// The change of a file; in a dry run, the planned change.
#[derive(Debug, Serialize)]
pub struct FileReport {
    /// Its path below the folder.
    pub dest: String,
    /// How it combined with the earlier file.
    pub strategy: &'static str,
    /// The change.
    pub action: FileAction,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// For an edited file, the difference between the installed and the existing content. In a dry run, the difference
    /// between the existing and the planned content. Otherwise empty.
    #[serde(serialize_with = "non_empty")]
    pub diff: String,
}

fn non_empty<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    Some(text).filter(|text| !text.is_empty()).serialize(serializer)
}

impl FileReport {
    fn of(change: &FileChange, dry_run: bool) -> FileReport {
        let found = change.found.as_ref().map(|found| &*found.bytes);
        let diff = match &change.expected {
            Some(expected) => diff::unified(&change.dest, Some(&**expected), found),
            None if dry_run => diff::unified(&change.dest, found, change.result()),
            None => String::new(),
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

/// The refusal of a profile that is not installed.
fn not_installed(slug: &str, target: &str, setups: &Setups<'_>) -> Error {
    let place = if target == "." { "here".to_owned() } else { format!("in {target}") };
    let body = Body::new(format!("no profile `{slug}` is installed {place}"));
    let installed: Vec<&str> = setups.all.iter().map(|setup| setup.slug.as_str()).collect();
    let help = match installed[..] {
        [] => "name another folder with `--into`: no profile is installed".to_owned(),
        _ => format!("the installed profiles are {}", installed.join(", ")),
    };
    Error::not_found(codes::PROFILE_UNKNOWN, body.help(help))
}

#[cfg(test)]
mod tests;
