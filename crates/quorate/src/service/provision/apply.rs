//! Applies a plan: stores contents, records the intent in the setup, writes files, records completion. After a crash the
//! next process continues from any step ([`Setup::recover`]).

use std::collections::BTreeSet;

use quorate_diagnostics::{Body, codes};

use super::change::{Change, Write};
use super::files::{Access, FileError, TargetFiles};
use super::setup::{self, Error, PROGRAM_DIR, Setup, Store};
use super::share::OtherProfiles;
use crate::service::error::{ExitClass, ServiceError};

/// Installs: writes `begun` before the files and `done` after them.
///
/// # Errors
/// If a write fails. The setup records the intent, so a repeated install continues.
pub fn install(
    files: &dyn TargetFiles,
    store: &Store<'_>,
    mut begun: Setup,
    mut done: Setup,
    changes: &[Change],
    others: &OtherProfiles<'_>,
) -> Result<(), ServiceError> {
    let writes = changes.iter().filter(|change| matches!(change.write, Write::Put(..)));
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
pub fn uninstall(
    files: &dyn TargetFiles,
    store: &Store<'_>,
    mut begun: Setup,
    changes: &[Change],
    others: &OtherProfiles<'_>,
) -> Result<(), ServiceError> {
    ensure_writable(files, changes)?;
    let store_error = |file_error| disk_error(".quorate/provisioned", file_error);
    store.create_folders().map_err(store_error)?;
    store_contents(files, store, changes)?;
    store.save(&begun).map_err(store_error)?;
    others.write_intents().map_err(store_error)?;
    // The user may have removed the folder of a restored file.
    let writes = changes.iter().filter(|change| matches!(change.write, Write::Put(..)));
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
fn ensure_writable(files: &dyn TargetFiles, changes: &[Change]) -> Result<(), ServiceError> {
    let mut asked: Vec<&str> = Vec::new();
    for change in changes.iter().filter(|change| change.write != Write::Nothing) {
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
pub fn remove_leftovers<'d>(
    files: &dyn TargetFiles,
    dests: impl Iterator<Item = &'d str>,
) -> Result<(), Error> {
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
fn store_contents(
    files: &dyn TargetFiles,
    store: &Store<'_>,
    changes: &[Change],
) -> Result<(), ServiceError> {
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

fn write_files(files: &dyn TargetFiles, changes: &[Change]) -> Result<(), ServiceError> {
    for change in changes {
        let done = match &change.write {
            Write::Nothing => Ok(()),
            Write::Put(bytes, access) => files.replace(&change.dest, bytes, *access),
            Write::Remove => files.remove(&change.dest),
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
) -> Result<(), ServiceError> {
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

fn disk_error(path: &str, file_error: FileError) -> ServiceError {
    match file_error {
        FileError::Obstructed(why) => ServiceError::new(
            ExitClass::Refused,
            codes::PROFILE_TARGET,
            Body::new(format!("{path} {why}")).help("move it away and run the same command again"),
        ),
        FileError::Io(error) => target_error(&format!("cannot write {path}: {error}")),
    }
}

fn target_error(message: &str) -> ServiceError {
    let help = "fix this and run the same command again: it continues where it stopped";
    ServiceError::configuration(codes::PROFILE_TARGET, Body::new(message).help(help))
}
