//! Profiles: folders with files that are installed into another folder, checked there, and uninstalled again.

use std::path::{Path, PathBuf};

pub use super::service::provision::change::{Drift, FileAction};
pub use super::service::provision::setup::State;
pub use super::service::provision::status::{FileStatus, ProfileStatus, ProfilesStatus};
pub use super::service::provision::{FileReport, ProvisionOutcome};

use super::builder::Quorate;
use super::error::Error;
use super::service::provision::{self, EditPolicy, ProvisionOptions, ProvisionTarget};

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

impl ProvisionRequest {
    fn options(&self) -> ProvisionOptions {
        let policy = if self.force { EditPolicy::Override } else { EditPolicy::Protect };
        ProvisionOptions { dry_run: self.dry_run, policy }
    }
}

impl Quorate {
    /// Installs a profile: a folder with a `profile.json`, or the `provisioning` of a runtime's manifest. A repetition
    /// changes nothing, and a repetition after a crash completes the work.
    ///
    /// # Errors
    /// If the profile is missing, or the folder is unusable. Refused files are in the outcome.
    #[crate::boxed]
    pub async fn install_profile(
        &self,
        profile: &Path,
        request: ProvisionRequest,
    ) -> Result<ProvisionOutcome, Error> {
        let target = self.provision_target(request.into.clone())?;
        let profile = self.named_path(profile.to_owned())?;
        let source = provision::source(&self.environment, &profile)?;
        provision::install(&self.environment, &*source, &target, request.options()).await
    }

    /// Uninstalls a profile, and restores the files that it replaced.
    ///
    /// # Errors
    /// If no profile of that name is installed, or the folder is unusable.
    pub fn uninstall_profile(
        &self,
        slug: &str,
        request: ProvisionRequest,
    ) -> Result<ProvisionOutcome, Error> {
        let target = self.provision_target(request.into.clone())?;
        provision::uninstall(&target, slug, request.options())
    }

    /// The states of one installed profile, or of all, in a folder; `None` is the workspace's root.
    ///
    /// # Errors
    /// If the named profile is not installed, or the records of the installation cannot be read.
    pub fn profiles(&self, into: Option<PathBuf>, slug: Option<&str>) -> Result<ProfilesStatus, Error> {
        provision::status(&self.provision_target(into)?, slug)
    }

    fn provision_target(&self, into: Option<PathBuf>) -> Result<ProvisionTarget, Error> {
        let into = into.map(|into| self.named_path(into)).transpose()?;
        ProvisionTarget::open(&self.environment, into.as_deref())
    }
}
