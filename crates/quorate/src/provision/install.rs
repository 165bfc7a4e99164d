//! Install and uninstall. An install compares a package with the existing files and the earlier installation; an uninstall
//! restores the earlier files. If one file is refused, none is written.
//!
//! To apply a plan, it stores contents, records the intent in the setup, writes the files, and records completion. After a
//! crash the next process continues from any step ([`Setup::recover`]).

use std::collections::BTreeSet;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::provisioning::{Package, PackageFile, Strategy};

use super::change::{self, FileAction, FileChange, FileWrite};
use super::files::{Access, FileError, TargetFiles};
use super::setup::{self, Entry, Intent, PROGRAM_DIR, Setup, SetupError, State, Store, read_file};
use super::share::OtherProfiles;
use super::{
    EditPolicy, FileReport, ProvisionOutcome, ProvisionRequest, not_installed, refuse, refuse_edited,
};
use crate::service::disk::shell_quoted;
use crate::service::error::{Error, ErrorKind};

/// The source of a package, and the time of its installation.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// The source, as the user named it.
    pub from: String,
    /// The time, in RFC 3339.
    pub at: String,
}

/// Installs a package.
///
/// # Errors
/// If an existing file or the setup ledger cannot be read, or the disk refuses a write.
pub(super) fn install(
    files: &dyn TargetFiles,
    target: &str,
    package: &Package,
    origin: &Origin,
    how: &ProvisionRequest,
) -> Result<ProvisionOutcome, Error> {
    if !how.dry_run {
        remove_leftovers(files, package.files().iter().map(|piece| piece.dest.as_str()))?;
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
        match change::install_file(
            files,
            &store,
            piece,
            setup.install_record(piece.dest.as_str()),
            how.policy(),
        ) {
            Ok(change) => changes.push(change),
            Err(cannot) => refuse(&mut report, cannot)?,
        }
    }
    let mut dropping = ObsoleteFiles { files, store: &store, setup: &setup, others: &mut sharing };
    changes.extend(dropping.removals(package, how.policy(), &mut report)?);
    refuse_edited(
        &mut report,
        &changes,
        "see the differences above; use `--force` to replace it and keep a copy",
    );

    let begun = begun_setup(&setup, package, origin, &changes);
    let done = completed_setup(&begun, &changes);
    let idle = !resumed && is_unchanged(&setup, &done, &changes);
    let written = !how.dry_run && !report.has_refusals() && !idle;
    if written {
        write_install(files, &store, begun, done, &changes, &sharing)?;
    }
    Ok(ProvisionOutcome {
        slug: package.slug.clone(),
        version: package.version.clone(),
        previous,
        resumed,
        target: target.to_owned(),
        dry_run: how.dry_run,
        written,
        idle,
        uninstalls: false,
        files: changes.iter().map(|change| FileReport::of(change, how.dry_run)).collect(),
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
                .help(format!("run `quorate provision uninstall {}` first", shell_quoted(&other.slug)))
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
        policy: EditPolicy,
        report: &mut Report,
    ) -> Result<Vec<FileChange>, Error> {
        let mut changes = Vec::new();
        for (dest, entry) in &self.setup.files {
            let brought = package.files().iter().any(|piece| piece.dest.as_str() == dest);
            let Some(fact) = entry.installed.as_ref().filter(|_| !brought) else { continue };
            let installed = read_file(self.files, dest).map_err(Into::into);
            let take =
                |found| self.others.plan_removal(self.store, &self.setup.at, dest, fact, found, policy);
            match installed.and_then(take) {
                Ok(change) => changes.push(change.with_note("this version no longer has it")),
                Err(cannot) => refuse(report, cannot)?,
            }
        }
        Ok(changes)
    }
}

/// The setup that is written before the first change.
fn begun_setup(setup: &Setup, package: &Package, origin: &Origin, changes: &[FileChange]) -> Setup {
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
fn completed_setup(begun: &Setup, changes: &[FileChange]) -> Setup {
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
fn is_unchanged(setup: &Setup, done: &Setup, changes: &[FileChange]) -> bool {
    let still = |change: &FileChange| matches!(change.action, FileAction::Keep | FileAction::Leave);
    changes.iter().all(still) && setup.files == done.files && setup.version == done.version
}

/// Installs: writes `begun` before the files and `done` after them.
///
/// # Errors
/// If a write fails. The setup records the intent, so a repeated install continues.
pub(super) fn write_install(
    files: &dyn TargetFiles,
    store: &Store<'_>,
    mut begun: Setup,
    mut done: Setup,
    changes: &[FileChange],
    others: &OtherProfiles<'_>,
) -> Result<(), Error> {
    let writes = changes.iter().filter(|change| matches!(change.write, FileWrite::Put(..)));
    let mut created = Vec::new();
    for path in writes.map(|change| change.dest.as_str()).chain([".quorate/provisioned"]) {
        for folder in parent_folders(path) {
            let exists = files.has_folder(folder).map_err(|file_error| disk_error(folder, file_error))?;
            if !exists && !created.iter().any(|made_folder| made_folder == folder) {
                created.push(folder.to_owned());
            }
        }
    }
    ensure_writable(files, changes)?;
    for setup in [&mut begun, &mut done] {
        setup.folders.extend(created.iter().cloned());
        setup.folders.sort();
        setup.folders.dedup();
    }
    store.create_folders().map_err(|file_error| disk_error(PROGRAM_DIR, file_error))?;
    store_contents(files, store, changes)?;
    let store_error = |file_error| disk_error(".quorate/provisioned", file_error);
    store.save(&begun).map_err(store_error)?;
    others.write_intents().map_err(store_error)?;
    for folder in created.iter().filter(|folder| *folder != PROGRAM_DIR) {
        files.make_folder(folder, Access::Program).map_err(|file_error| disk_error(folder, file_error))?;
    }
    write_files(files, changes)?;
    others.write_results().map_err(store_error)?;
    remove_folders(files, &mut done.folders, ProgramFolder::Keep)?;
    store.save(&done).map_err(store_error)?;
    store.remove_unreferenced(&done).map_err(store_error)
}

/// Uninstalls: writes `begun` before the files, and removes the setup at the end.
///
/// # Errors
/// If a write fails. The setup records the intent, so a repeated uninstall continues.
pub(super) fn write_uninstall(
    files: &dyn TargetFiles,
    store: &Store<'_>,
    mut begun: Setup,
    changes: &[FileChange],
    others: &OtherProfiles<'_>,
) -> Result<(), Error> {
    ensure_writable(files, changes)?;
    let store_error = |file_error| disk_error(".quorate/provisioned", file_error);
    store.create_folders().map_err(store_error)?;
    store_contents(files, store, changes)?;
    store.save(&begun).map_err(store_error)?;
    others.write_intents().map_err(store_error)?;
    // The user may have removed the folder of a restored file.
    let writes = changes.iter().filter(|change| matches!(change.write, FileWrite::Put(..)));
    for folder in writes.flat_map(|change| parent_folders(&change.dest)) {
        files.make_folder(folder, Access::Program).map_err(|file_error| disk_error(folder, file_error))?;
    }
    write_files(files, changes)?;
    others.write_results().map_err(store_error)?;
    let ours = begun.folders.clone();
    remove_folders(files, &mut begun.folders, ProgramFolder::Keep)?;
    store.remove_all().map_err(store_error)?;
    begun.folders = ours;
    remove_folders(files, &mut begun.folders, ProgramFolder::Remove)
}

/// A path's parent folders, outermost first.
fn parent_folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// Checks that all files can be written, before any write.
fn ensure_writable(files: &dyn TargetFiles, changes: &[FileChange]) -> Result<(), Error> {
    let mut asked: Vec<&str> = Vec::new();
    for change in changes.iter().filter(|change| change.write != FileWrite::Nothing) {
        let mut nearest = "";
        for folder in parent_folders(&change.dest) {
            if files.has_folder(folder).map_err(|file_error| disk_error(folder, file_error))? {
                nearest = folder;
            }
        }
        if !asked.contains(&nearest) {
            let shown = if nearest.is_empty() { "the folder" } else { nearest };
            files
                .can_write(nearest)
                .map_err(|file_error| target_error(&format!("cannot write into {shown}: {file_error}")))?;
            asked.push(nearest);
        }
    }
    Ok(())
}

/// Removes temporary files of a crashed process from the folders of all installed files and of `dests`.
///
/// # Errors
/// If a setup cannot be read. A temporary file that cannot be removed is ignored.
pub(super) fn remove_leftovers<'d>(
    files: &dyn TargetFiles,
    dests: impl Iterator<Item = &'d str>,
) -> Result<(), SetupError> {
    let setups = setup::load_all(files)?;
    let mut folders: BTreeSet<String> = setup::folders(files)?.into_iter().collect();
    folders.extend(dests.flat_map(parent_folders).map(str::to_owned));
    for dest in setups.iter().flat_map(|setup| setup.files.keys()) {
        folders.extend(parent_folders(dest).map(str::to_owned));
    }
    folders.insert(String::new());
    for folder in folders {
        let _ = files.remove_temp(&folder);
    }
    Ok(())
}

/// Stores the contents that the setup names, and copies of contents that would be lost.
fn store_contents(files: &dyn TargetFiles, store: &Store<'_>, changes: &[FileChange]) -> Result<(), Error> {
    for change in changes {
        for (part, bytes) in &change.contents {
            store.store_content(*part, bytes).map_err(|file_error| disk_error(&change.dest, file_error))?;
        }
        if let (Some(aside), Some(found)) = (&change.aside, &change.found) {
            let folder = ".quorate/aside";
            files
                .make_folder(folder, Access::Private)
                .map_err(|file_error| disk_error(folder, file_error))?;
            files
                .replace(aside, &found.bytes, Access::Private)
                .map_err(|file_error| disk_error(aside, file_error))?;
        }
    }
    Ok(())
}

fn write_files(files: &dyn TargetFiles, changes: &[FileChange]) -> Result<(), Error> {
    for change in changes {
        let done = match &change.write {
            FileWrite::Nothing => Ok(()),
            FileWrite::Put(bytes, access) => files.replace(&change.dest, bytes, *access),
            FileWrite::Remove => files.remove(&change.dest),
        };
        done.map_err(|file_error| disk_error(&change.dest, file_error))?;
    }
    Ok(())
}

/// Whether the program's own folder may be removed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProgramFolder {
    Keep,
    Remove,
}

/// Removes created folders that are empty, and forgets them.
fn remove_folders(
    files: &dyn TargetFiles,
    folders: &mut Vec<String>,
    own: ProgramFolder,
) -> Result<(), Error> {
    // Inner folders sort after their parents.
    folders.sort();
    for folder in folders.iter().rev() {
        let removed = match (folder == PROGRAM_DIR, own) {
            (true, ProgramFolder::Keep) => Ok(()),
            (true, ProgramFolder::Remove) => remove_own(files),
            (false, _) => files.remove_folder(folder),
        };
        match removed {
            // The folder has other files.
            Ok(()) | Err(FileError::Obstructed(_)) => {}
            Err(file_error) => return Err(disk_error(folder, file_error)),
        }
    }
    let mut existing = Vec::new();
    for folder in folders.drain(..) {
        if folder == PROGRAM_DIR || files.has_folder(&folder).unwrap_or(false) {
            existing.push(folder);
        }
    }
    *folders = existing;
    Ok(())
}

/// Removes the program's own folder if its only file is the one that excludes it from version control.
fn remove_own(files: &dyn TargetFiles) -> Result<(), FileError> {
    let ignore = ".gitignore";
    files.can_write(PROGRAM_DIR)?;
    if files.names(PROGRAM_DIR)? == [ignore] {
        files.remove(&format!("{PROGRAM_DIR}/{ignore}"))?;
        files.remove_folder(PROGRAM_DIR)?;
    }
    Ok(())
}

fn disk_error(path: &str, file_error: FileError) -> Error {
    match file_error {
        FileError::Obstructed(why) => Error::new(
            ErrorKind::Refused,
            codes::PROFILE_TARGET,
            Body::new(format!("{path} {why}")).help("move it away and run the same command again"),
        ),
        FileError::Io(error) => target_error(&format!("cannot write {path}: {error}")),
    }
}

fn target_error(message: &str) -> Error {
    let help = "fix this and run the same command again: it continues where it stopped";
    Error::configuration(codes::PROFILE_TARGET, Body::new(message).help(help))
}

/// Uninstalls a profile.
///
/// # Errors
/// If it is not installed, an existing file or the setup ledger cannot be read, or the disk refuses a write.
pub(super) fn uninstall(
    files: &dyn TargetFiles,
    target: &str,
    slug: &str,
    how: &ProvisionRequest,
) -> Result<ProvisionOutcome, Error> {
    if !how.dry_run {
        remove_leftovers(files, std::iter::empty())?;
    }
    let store = Store::new(files, slug);
    let Some(mut setup) = store.load()? else {
        let installed: Vec<String> = setup::load_all(files)?.into_iter().map(|setup| setup.slug).collect();
        return Err(not_installed(slug, target, &installed));
    };
    let resumed = setup.state != State::Installed;
    setup.recover(files)?;
    let mut others = OtherProfiles::of(files, slug)?;

    let mut report = Report::new();
    let mut changes = Vec::new();
    for (dest, entry) in &setup.files {
        let Some(fact) = &entry.installed else { continue };
        let installed = read_file(files, dest).map_err(Into::into);
        match installed
            .and_then(|found| others.plan_removal(&store, &setup.at, dest, fact, found, how.policy()))
        {
            Ok(change) => changes.push(change),
            Err(cannot) => refuse(&mut report, cannot)?,
        }
    }
    refuse_edited(
        &mut report,
        &changes,
        "see the differences above; use `--force` to remove it and keep a copy",
    );

    let written = !how.dry_run && !report.has_refusals();
    if written {
        let mut begun = setup.clone();
        begun.state = State::Removing;
        for change in &changes {
            if let Some(entry) = begun.files.get_mut(&change.dest) {
                entry.intent = Some(Intent::Out { leaves: change.resulting_hash() });
            }
        }
        write_uninstall(files, &store, begun, &changes, &others)?;
    }
    Ok(ProvisionOutcome {
        slug: setup.slug,
        version: setup.version,
        previous: None,
        resumed,
        target: target.to_owned(),
        dry_run: how.dry_run,
        written,
        idle: false,
        uninstalls: true,
        files: changes.iter().map(|change| FileReport::of(change, how.dry_run)).collect(),
        report,
    })
}
