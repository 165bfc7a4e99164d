//! Status: compares the installation with the existing files.

use quorate_diagnostics::{Body, Report, codes};
use serde::Serialize;

use super::change::Drift;
use super::files::{FileContent, FileError, TargetFiles};
use super::setup::{self, ContentKind, InstallRecord, Setup, SetupError, State, Store, read_file};
use super::share::OtherProfiles;
use super::{non_empty, not_installed};
use crate::service::diff;
use crate::service::error::Error;

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

impl ProfileStatus {
    /// Adds the differences from the installation, as refusals.
    fn refuse(&self, report: &mut Report) {
        let again = format!("install it again from {}", self.from);
        if self.state != State::Installed {
            let what = if self.state == State::Installing { "install" } else { "uninstall" };
            let body = Body::new(format!("an {what} of {} was interrupted", self.slug));
            report.refuse(
                codes::PROFILE_DRIFT,
                body.help("run install or uninstall again; either completes it"),
            );
        }
        for file in &self.files {
            let what = match (file.stands, &file.note) {
                (_, Some(note)) => format!("{} {note}", file.dest),
                (Drift::Edited, None) => format!("{} was edited since it was installed", file.dest),
                (Drift::Missing, None) => format!("{} is missing", file.dest),
                (Drift::InPlace | Drift::EditedAround, None) => continue,
            };
            let help = match file.stands {
                Drift::Edited => format!("{again} with `--force`, which keeps a copy of the edited file"),
                _ => again.clone(),
            };
            report.refuse(codes::PROFILE_DRIFT, Body::new(what).help(help));
        }
    }
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
pub(super) fn status(
    files: &dyn TargetFiles,
    target: &str,
    slug: Option<&str>,
) -> Result<ProfilesStatus, Error> {
    let setups = setup::load_all(files)?;
    if let Some(slug) = slug.filter(|slug| setups.iter().all(|setup| setup.slug != **slug)) {
        let installed: Vec<String> = setups.into_iter().map(|setup| setup.slug).collect();
        return Err(not_installed(slug, target, &installed));
    }
    let selected = setups.into_iter().filter(|setup| slug.is_none_or(|slug| setup.slug == slug));
    let profiles = selected.map(|setup| profile_status(files, setup)).collect::<Result<Vec<_>, _>>()?;
    let mut report = Report::new();
    profiles.iter().for_each(|profile| profile.refuse(&mut report));
    Ok(ProfilesStatus { profiles, report })
}

fn profile_status(files: &dyn TargetFiles, mut setup: Setup) -> Result<ProfileStatus, SetupError> {
    let store = Store::new(files, &setup.slug);
    let state = setup.state;
    setup.recover(files)?;
    let others = OtherProfiles::of(files, &setup.slug)?;
    let mut reports = Vec::new();
    for (dest, entry) in &setup.files {
        let Some(fact) = &entry.installed else { continue };
        reports.push(file_status(files, &store, &others, (dest, &setup.at), fact)?);
    }
    let Setup { slug, version, from, at, .. } = setup;
    let is_whole = |file: &FileStatus| matches!(file.stands, Drift::InPlace | Drift::EditedAround);
    let holds = state == State::Installed && reports.iter().all(is_whole);
    Ok(ProfileStatus { slug, version, from, at, state, holds, files: reports })
}

fn file_status(
    files: &dyn TargetFiles,
    store: &Store<'_>,
    others: &OtherProfiles<'_>,
    (dest, at): (&str, &str),
    fact: &InstallRecord,
) -> Result<FileStatus, SetupError> {
    let (found, note) = match read_file(files, dest) {
        Ok(found) => (found, None),
        Err(SetupError::Target { file_error: FileError::Obstructed(why), .. }) => {
            (None, Some(why.to_owned()))
        }
        Err(error) => return Err(error),
    };
    let stands = match note {
        Some(_) => Drift::Edited,
        None => Drift::of(store, fact, found.as_ref())?,
    };
    let shared = others.profiles_sharing(dest);
    // A value that another profile has set since does not count as an edit.
    let below = match (stands, &found) {
        (Drift::Edited, Some(found)) if !shared.is_empty() => {
            others.without_layers_above(store, at, dest, fact, found)?
        }
        _ => None,
    };
    let stands = match below {
        Some(below) => match Drift::of(store, fact, Some(&below))? {
            Drift::InPlace => Drift::EditedAround,
            other => other,
        },
        None => stands,
    };
    let diff = match (stands, &found) {
        (Drift::Edited | Drift::EditedAround, Some(FileContent { bytes, .. })) => {
            diff::unified(dest, Some(&store.load_content(ContentKind::Installed, &fact.text)?), Some(bytes))
        }
        _ => String::new(),
    };
    Ok(FileStatus { dest: dest.to_owned(), strategy: fact.strategy.as_str(), stands, shared, note, diff })
}
