//! Status: compares the installation with the existing files.

use quorate_diagnostics::{Body, Report, codes};
use serde::Serialize;

use super::change::{Drift, Planner};
use super::setup::{Record, Setup, Setups, State};
use super::target::Target;
use super::{non_empty, not_installed};
use crate::error::{Error, ErrorKind};
use crate::service::diff;

/// The state of a profile.
#[derive(Debug, Serialize)]
pub struct ProfileStatus {
    /// Its name.
    pub slug: String,
    /// Its version.
    pub version: String,
    /// The source of the profile, as the user named it.
    pub from: String,
    /// The time of the installation.
    pub at: String,
    /// Whether an install or uninstall is unfinished.
    pub state: State,
    /// Whether all of its content is intact.
    pub holds: bool,
    /// Its files.
    pub files: Vec<FileStatus>,
}

/// The state of a file.
#[derive(Debug, Serialize)]
pub struct FileStatus {
    /// Its path below the folder.
    pub dest: String,
    /// How it combined with the earlier file.
    pub strategy: &'static str,
    /// How it differs from its installed content.
    pub stands: Drift,
    /// The other profiles with a part in the file.
    #[serde(skip)]
    pub shared: Vec<String>,
    /// Why the file cannot be read, if so.
    pub note: Option<String>,
    /// The difference between the installed and the existing content.
    #[serde(serialize_with = "non_empty")]
    pub diff: String,
}

/// The states of installed profiles.
#[derive(Debug, Serialize)]
pub struct ProfilesStatus {
    /// The profiles.
    pub profiles: Vec<ProfileStatus>,
    /// The differences from the installations, as refusals.
    #[serde(rename = "diagnostics")]
    pub report: Report,
}

/// The status of a profile, or of all.
///
/// # Errors
/// If the profile is not installed, or a setup cannot be read.
pub(super) fn status(target: &Target, shown: &str, slug: Option<&str>) -> Result<ProfilesStatus, Error> {
    let setups = Setups::load(target)?;
    if let Some(slug) = slug.filter(|slug| setups.get(slug).is_none()) {
        return Err(not_installed(slug, shown, &setups));
    }
    let selected = setups.all.iter().filter(|setup| slug.is_none_or(|slug| setup.slug == slug));
    let profiles = selected.map(|setup| profile_status(&setups, setup)).collect::<Result<Vec<_>, _>>()?;
    let mut report = Report::new();
    profiles.iter().for_each(|profile| profile.refuse(&mut report));
    Ok(ProfilesStatus { profiles, report })
}

fn profile_status(setups: &Setups<'_>, setup: &Setup) -> Result<ProfileStatus, Error> {
    let planner = Planner { setups, setup, force: false };
    let status = |(dest, entry): (&String, _)| file_status(&planner, dest, entry);
    let records = setup.files.iter().map(|(dest, entry)| (dest, &entry.installed));
    let files = records.map(status).collect::<Result<Vec<_>, _>>()?;
    let is_whole = |file: &FileStatus| matches!(file.stands, Drift::InPlace | Drift::EditedAround);
    Ok(ProfileStatus {
        slug: setup.slug.clone(),
        version: setup.version.clone(),
        from: setup.from.clone(),
        at: setup.at.clone(),
        state: setup.state,
        holds: setup.state == State::Installed && files.iter().all(is_whole),
        files,
    })
}

fn file_status(planner: &Planner<'_>, dest: &str, record: &Record) -> Result<FileStatus, Error> {
    let (found, note) = match planner.setups.target.read(dest) {
        Ok(found) => (found, None),
        Err(error) if error.kind() == ErrorKind::Refused => (None, Some(error.first_message())),
        Err(error) => return Err(error),
    };
    let stands = match note {
        Some(_) => Drift::Edited,
        None => planner.drift(dest, record, found.as_ref())?,
    };
    let diff = match (stands, &found) {
        (Drift::Edited | Drift::EditedAround, Some(found)) => {
            let installed = planner.setups.installed(planner.setup, record)?;
            diff::unified(dest, Some(&installed), Some(&found.bytes))
        }
        _ => String::new(),
    };
    let others = planner.setups.others(&planner.setup.slug, dest);
    Ok(FileStatus {
        dest: dest.to_owned(),
        strategy: record.strategy.as_str(),
        stands,
        shared: others.map(|(other, _)| other.slug.clone()).collect(),
        note,
        diff,
    })
}

impl ProfileStatus {
    /// Adds the differences from the installation, as refusals.
    fn refuse(&self, report: &mut Report) {
        let what = match self.state {
            State::Installed => None,
            State::Installing => Some("install"),
            State::Removing => Some("uninstall"),
        };
        if let Some(what) = what {
            let body = Body::new(format!("an {what} of {} was interrupted", self.slug));
            let help = "run install or uninstall again; either completes it";
            report.refuse(codes::PROFILE_DRIFT, body.help(help));
            return;
        }
        let again = format!("install it again from {}", self.from);
        for file in &self.files {
            let dest = &file.dest;
            let (what, help) = match (file.stands, &file.note) {
                (_, Some(note)) => (note.clone(), again.clone()),
                (Drift::Edited, None) => (
                    format!("{dest} was edited since it was installed"),
                    format!("{again} with `--force`, which keeps a copy of the edited file"),
                ),
                (Drift::Missing, None) => (format!("{dest} is missing"), again.clone()),
                (Drift::InPlace | Drift::EditedAround, None) => continue,
            };
            report.refuse(codes::PROFILE_DRIFT, Body::new(what).help(help));
        }
    }
}
