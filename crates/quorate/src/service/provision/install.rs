//! Install: what a package brings is held against what is there and what was installed before. Unless all of it can be
//! done, nothing is.

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::provisioning::{Package, Piece, Strategy};

use super::change::{Action, Change};
use super::files::Files;
use super::setup::{self, Entry, Intent, Setup, State, Store, look};
use super::share::Others;
use super::{FileReport, Force, Options, Outcome, WriteMode, carry, plan, refuse, refuse_edited};
use crate::service::stop::ServiceError;

/// Where a package comes from, and when.
#[derive(Debug, Clone)]
pub struct Origin {
    /// As the user named it.
    pub from: String,
    /// RFC 3339.
    pub at: String,
}

/// Installs a package.
///
/// # Errors
/// When what is there or what is kept cannot be read, or the disk refuses.
pub fn install(
    files: &dyn Files,
    target: &str,
    package: &Package,
    origin: &Origin,
    how: Options,
) -> Result<Outcome, ServiceError> {
    if how.run == WriteMode::Apply {
        carry::sweep(files, package.pieces().iter().map(|piece| piece.dest.as_str()))?;
    }
    let store = Store::new(files, &package.slug);
    let others = setup::all(files)?;
    let mut sharing = Others::of(files, &package.slug)?;
    let mut setup = store.load()?.unwrap_or_else(|| Setup::new(&package.slug));
    let resumed = setup.state != State::Installed;
    let previous = Some(setup.version.clone()).filter(|old| !old.is_empty() && *old != package.version);
    setup.settle(files)?;

    let mut report = Report::new();
    report.absorb(package.report.clone());
    let mut changes = Vec::new();
    for piece in package.pieces() {
        if let Some(body) = taken(&others, package, piece) {
            report.refuse(codes::PROFILE_TARGET, body);
            continue;
        }
        match plan::put(files, &store, piece, setup.fact(piece.dest.as_str()), how.force) {
            Ok(change) => changes.push(change),
            Err(cannot) => refuse(&mut report, cannot)?,
        }
    }
    let mut dropping = Dropping { files, store: &store, setup: &setup, others: &mut sharing };
    changes.extend(dropping.dropped(package, how.force, &mut report)?);
    refuse_edited(
        &mut report,
        &changes,
        "see what differs above; `--force` replaces it and keeps what was there",
    );

    let begun = intended(&setup, package, origin, &changes);
    let done = installed(&begun, &changes);
    let idle = !resumed && unchanged(&setup, &done, &changes);
    if how.run == WriteMode::Apply && !report.refused() && !idle {
        carry::out(files, &store, begun, done, &changes, &sharing)?;
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

/// Why another profile's file cannot be installed over, if it is one. Files that are merged or appended to can be shared.
fn taken(others: &[Setup], package: &Package, piece: &Piece) -> Option<Body> {
    let whole = |strategy| strategy == Strategy::Overwrite;
    others.iter().filter(|other| other.slug != package.slug).find_map(|other| {
        let entry = other.files.get(piece.dest.as_str())?;
        let fact = match &entry.intent {
            Some(Intent::Put { fact, .. }) => fact,
            _ => entry.installed.as_ref()?,
        };
        let alone = whole(piece.strategy) || (whole(fact.strategy) && piece.strategy != Strategy::Preserve);
        alone.then(|| {
            Body::new(format!("{} is installed by `{}` already", piece.dest, other.slug))
                .help(format!("`quorate provision uninstall {}` takes that out", other.slug))
        })
    })
}

/// What dropping files needs.
struct Dropping<'d, 'f> {
    files: &'d dyn Files,
    store: &'d Store<'f>,
    setup: &'d Setup,
    others: &'d mut Others<'f>,
}

impl Dropping<'_, '_> {
    /// What becomes of files that this version does not bring any more: they go as they would when uninstalled.
    fn dropped(
        &mut self,
        package: &Package,
        force: Force,
        report: &mut Report,
    ) -> Result<Vec<Change>, ServiceError> {
        let mut changes = Vec::new();
        for (dest, entry) in &self.setup.files {
            let brought = package.pieces().iter().any(|piece| piece.dest.as_str() == dest);
            let Some(fact) = entry.installed.as_ref().filter(|_| !brought) else { continue };
            let taken = look(self.files, dest).map_err(Into::into);
            let take = |found| self.others.take(self.store, &self.setup.at, dest, fact, found, force);
            match taken.and_then(take) {
                Ok(change) => changes.push(change.note("this version does not bring it any more")),
                Err(cannot) => refuse(report, cannot)?,
            }
        }
        Ok(changes)
    }
}

/// The setup that is written before anything is done.
fn intended(setup: &Setup, package: &Package, origin: &Origin, changes: &[Change]) -> Setup {
    let mut begun = setup.clone();
    begun.version = package.version.clone();
    (begun.from, begun.at) = (origin.from.clone(), origin.at.clone());
    begun.state = State::Installing;
    for change in changes {
        let installed = setup.fact(&change.dest).cloned();
        let intent = match &change.fact {
            Some(fact) => Intent::Put { from: change.from(), fact: fact.clone() },
            None if installed.is_none() => continue,
            None => Intent::Out { leaves: change.leaves() },
        };
        begun.files.insert(change.dest.clone(), Entry { installed, intent: Some(intent) });
    }
    begun
}

/// The setup that is written when all is done.
fn installed(begun: &Setup, changes: &[Change]) -> Setup {
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

/// Whether nothing has to be written, not even what is remembered.
fn unchanged(setup: &Setup, done: &Setup, changes: &[Change]) -> bool {
    let still = |change: &Change| matches!(change.action, Action::Keep | Action::Leave);
    changes.iter().all(still) && setup.files == done.files && setup.version == done.version
}
