//! Status: compares the installation with the existing files.

use quorate_diagnostics::{Report, codes};

use super::change::Drift;
use super::files::{FileContent, FileError, TargetFiles};
use super::not_installed;
use super::setup::{self, ContentKind, InstallRecord, Setup, SetupError, State, Store, read_file};
use super::share::OtherProfiles;
use crate::service::diff;
use crate::service::error::ServiceError;

/// The state of a profile.
#[derive(Debug)]
pub struct ProfileStatus {
    pub slug: String,
    pub version: String,
    /// The source of the profile, as the user named it.
    pub from: String,
    /// The time of the installation.
    pub at: String,
    pub state: State,
    pub files: Vec<FileStatus>,
}

/// The state of a file.
#[derive(Debug)]
pub struct FileStatus {
    pub dest: String,
    /// How it combined with the earlier file.
    pub strategy: &'static str,
    pub stands: Drift,
    /// The other profiles with a part in the file.
    pub shared: Vec<String>,
    /// Why the file cannot be read, if so.
    pub note: Option<String>,
    /// The difference between the installed and the existing content.
    pub diff: String,
}

impl ProfileStatus {
    /// Whether all of the profile's content is intact.
    pub fn is_intact(&self) -> bool {
        let whole = |file: &FileStatus| matches!(file.stands, Drift::InPlace | Drift::EditedAround);
        self.state == State::Installed && self.files.iter().all(whole)
    }

    /// The differences from the installation, as refusals.
    pub fn report(&self) -> Report {
        let mut report = Report::new();
        let again = format!("install it again from {}", self.from);
        if self.state != State::Installed {
            let what = if self.state == State::Installing { "install" } else { "uninstall" };
            let body = quorate_diagnostics::Body::new(format!("an {what} of {} was interrupted", self.slug));
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
            report.refuse(codes::PROFILE_DRIFT, quorate_diagnostics::Body::new(what).help(help));
        }
        report
    }
}

/// The status of a profile, or of all.
///
/// # Errors
/// If the profile is not installed, or a setup cannot be read.
pub fn status(
    files: &dyn TargetFiles,
    target: &str,
    slug: Option<&str>,
) -> Result<Vec<ProfileStatus>, ServiceError> {
    let setups = setup::load_all(files)?;
    if let Some(slug) = slug.filter(|slug| setups.iter().all(|setup| setup.slug != **slug)) {
        let installed: Vec<String> = setups.into_iter().map(|setup| setup.slug).collect();
        return Err(not_installed(slug, target, &installed));
    }
    let selected = setups.into_iter().filter(|setup| slug.is_none_or(|slug| setup.slug == slug));
    selected.map(|setup| Ok(profile_status(files, setup)?)).collect()
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
    Ok(ProfileStatus { slug, version, from, at, state, files: reports })
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
