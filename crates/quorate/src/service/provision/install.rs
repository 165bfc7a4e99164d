//! Install: compares a package with the existing files and the earlier installation. If one file is refused, none is
//! written.

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::provisioning::{Package, PackageFile, Strategy};

use super::change::{Action, Change};
use super::files::TargetFiles;
use super::options::{Force, Options, WriteMode};
use super::outcome::{FileReport, Outcome, refuse, refuse_edited};
use super::setup::{self, Entry, Intent, Setup, State, Store, read_file};
use super::share::OtherProfiles;
use super::{apply, install_plan};
use crate::service::error::ServiceError;

/// The source of a package, and the time of its installation.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The source, as the user named it.
    pub from: String,
    /// The time, in RFC 3339.
    pub at: String,
}

/// Installs a package.
///
/// # Errors
/// If an existing file or the setup ledger cannot be read, or the disk refuses a write.
pub fn install(
    files: &dyn TargetFiles,
    target: &str,
    package: &Package,
    origin: &Origin,
    how: Options,
) -> Result<Outcome, ServiceError> {
    if how.run == WriteMode::Apply {
        apply::remove_leftovers(files, package.files().iter().map(|piece| piece.dest.as_str()))?;
    }
    let store = Store::new(files, &package.slug);
    let others = setup::load_all(files)?;
    let mut sharing = OtherProfiles::of(files, &package.slug)?;
    let mut setup = store.load()?.unwrap_or_else(|| Setup::new(&package.slug));
    let resumed = setup.state != State::Installed;
    let previous = Some(setup.version.clone()).filter(|old| !old.is_empty() && *old != package.version);
    setup.recover(files)?;

    let mut report = Report::new();
    report.absorb(package.report.clone());
    let mut changes = Vec::new();
    for piece in package.files() {
        if let Some(body) = claimed_by_other(&others, package, piece) {
            report.refuse(codes::PROFILE_TARGET, body);
            continue;
        }
        match install_plan::install_file(
            files,
            &store,
            piece,
            setup.install_record(piece.dest.as_str()),
            how.force,
        ) {
            Ok(change) => changes.push(change),
            Err(cannot) => refuse(&mut report, cannot)?,
        }
    }
    let mut dropping = ObsoleteFiles { files, store: &store, setup: &setup, others: &mut sharing };
    changes.extend(dropping.removals(package, how.force, &mut report)?);
    refuse_edited(
        &mut report,
        &changes,
        "see the differences above; use `--force` to replace it and keep a copy",
    );

    let begun = begun_setup(&setup, package, origin, &changes);
    let done = completed_setup(&begun, &changes);
    let idle = !resumed && is_unchanged(&setup, &done, &changes);
    if how.run == WriteMode::Apply && !report.has_refusals() && !idle {
        apply::install(files, &store, begun, done, &changes, &sharing)?;
    }
    Ok(Outcome {
        slug: package.slug.clone(),
        version: package.version.clone(),
        previous,
        resumed,
        target: target.to_owned(),
        run: how.run,
        idle,
        files: changes.iter().map(|change| FileReport::of(change, how.run)).collect(),
        report,
    })
}

/// The refusal of a file that another profile has installed. Merged files and files with appended text can be shared.
fn claimed_by_other(others: &[Setup], package: &Package, piece: &PackageFile) -> Option<Body> {
    let whole = |strategy| strategy == Strategy::Overwrite;
    others.iter().filter(|other| other.slug != package.slug).find_map(|other| {
        let entry = other.files.get(piece.dest.as_str())?;
        let fact = match &entry.intent {
            Some(Intent::Put { fact, .. }) => fact,
            _ => entry.installed.as_ref()?,
        };
        let alone = whole(piece.strategy) || (whole(fact.strategy) && piece.strategy != Strategy::Preserve);
        alone.then(|| {
            Body::new(format!("`{}` has already installed {}", other.slug, piece.dest))
                .help(format!("run `quorate provision uninstall {}` first", other.slug))
        })
    })
}

/// The installed files of the earlier version.
struct ObsoleteFiles<'d, 'f> {
    files: &'d dyn TargetFiles,
    store: &'d Store<'f>,
    setup: &'d Setup,
    others: &'d mut OtherProfiles<'f>,
}

impl ObsoleteFiles<'_, '_> {
    /// Plans the removal of the files that the new version lacks, as an uninstall does.
    fn removals(
        &mut self,
        package: &Package,
        force: Force,
        report: &mut Report,
    ) -> Result<Vec<Change>, ServiceError> {
        let mut changes = Vec::new();
        for (dest, entry) in &self.setup.files {
            let brought = package.files().iter().any(|piece| piece.dest.as_str() == dest);
            let Some(fact) = entry.installed.as_ref().filter(|_| !brought) else { continue };
            let installed = read_file(self.files, dest).map_err(Into::into);
            let take = |found| self.others.plan_removal(self.store, &self.setup.at, dest, fact, found, force);
            match installed.and_then(take) {
                Ok(change) => changes.push(change.with_note("this version no longer has it")),
                Err(cannot) => refuse(report, cannot)?,
            }
        }
        Ok(changes)
    }
}

/// The setup that is written before the first change.
fn begun_setup(setup: &Setup, package: &Package, origin: &Origin, changes: &[Change]) -> Setup {
    let mut begun = setup.clone();
    begun.version = package.version.clone();
    (begun.from, begun.at) = (origin.from.clone(), origin.at.clone());
    begun.state = State::Installing;
    for change in changes {
        let installed = setup.install_record(&change.dest).cloned();
        let intent = match &change.fact {
            Some(fact) => Intent::Put { from: change.current_hash(), fact: fact.clone() },
            None if installed.is_none() => continue,
            None => Intent::Out { leaves: change.resulting_hash() },
        };
        begun.files.insert(change.dest.clone(), Entry { installed, intent: Some(intent) });
    }
    begun
}

/// The setup that is written after the last change.
fn completed_setup(begun: &Setup, changes: &[Change]) -> Setup {
    let mut done = begun.clone();
    done.state = State::Installed;
    for change in changes {
        match &change.fact {
            Some(fact) => {
                let entry = Entry { installed: Some(fact.clone()), intent: None };
                done.files.insert(change.dest.clone(), entry);
            }
            None => {
                done.files.remove(&change.dest);
            }
        }
    }
    done
}

/// Whether neither a file nor the setup changes.
fn is_unchanged(setup: &Setup, done: &Setup, changes: &[Change]) -> bool {
    let still = |change: &Change| matches!(change.action, Action::Keep | Action::Leave);
    changes.iter().all(still) && setup.files == done.files && setup.version == done.version
}
