//! Carrying out: contents are kept, the setup says what is intended, files are written, the setup says that it is done.
//! Whatever of it a process that dies has done, the next one finds out what and goes on ([`Setup::settle`]).

use std::collections::BTreeSet;

use quorate_diagnostics::{Body, codes};

use super::change::{Change, Write};
use super::files::{Access, Files, Trouble};
use super::setup::{self, Error, OWN, Setup, Store};
use super::share::Others;
use crate::service::stop::{ExitClass, ServiceError};

/// Installs: `begun` is written before the files, `done` after them.
///
/// # Errors
/// When the disk refuses. What was done until then is known to the setup.
pub fn out(
    files: &dyn Files,
    store: &Store<'_>,
    mut begun: Setup,
    mut done: Setup,
    changes: &[Change],
    others: &Others<'_>,
) -> Result<(), ServiceError> {
    let writes = changes.iter().filter(|change| matches!(change.write, Write::Put(..)));
    let mut made = Vec::new();
    for path in writes.map(|change| change.dest.as_str()).chain([".quorate/provisioned"]) {
        for folder in above(path) {
            let there = files.has_folder(folder).map_err(|trouble| stopped(folder, trouble))?;
            if !there && !made.iter().any(|one| one == folder) {
                made.push(folder.to_owned());
            }
        }
    }
    writable(files, changes)?;
    for setup in [&mut begun, &mut done] {
        setup.folders.extend(made.iter().cloned());
        setup.folders.sort();
        setup.folders.dedup();
    }
    store.make().map_err(|trouble| stopped(OWN, trouble))?;
    keep(files, store, changes)?;
    let own = |trouble| stopped(".quorate/provisioned", trouble);
    store.save(&begun).map_err(own)?;
    others.begin().map_err(own)?;
    for folder in made.iter().filter(|folder| *folder != OWN) {
        files.make_folder(folder, Access::Program).map_err(|trouble| stopped(folder, trouble))?;
    }
    write(files, changes)?;
    others.end().map_err(own)?;
    remove_folders(files, &mut done.folders, Own::Stays)?;
    store.save(&done).map_err(own)?;
    store.tidy(&done).map_err(own)
}

/// Uninstalls: `begun` is written before the files, and at the end the setup goes.
///
/// # Errors
/// When the disk refuses. What was done until then is known to the setup.
pub fn back(
    files: &dyn Files,
    store: &Store<'_>,
    mut begun: Setup,
    changes: &[Change],
    others: &Others<'_>,
) -> Result<(), ServiceError> {
    writable(files, changes)?;
    let own = |trouble| stopped(".quorate/provisioned", trouble);
    store.make().map_err(own)?;
    keep(files, store, changes)?;
    store.save(&begun).map_err(own)?;
    others.begin().map_err(own)?;
    // A folder that somebody has removed with a file that comes back.
    let writes = changes.iter().filter(|change| matches!(change.write, Write::Put(..)));
    for folder in writes.flat_map(|change| above(&change.dest)) {
        files.make_folder(folder, Access::Program).map_err(|trouble| stopped(folder, trouble))?;
    }
    write(files, changes)?;
    others.end().map_err(own)?;
    let ours = begun.folders.clone();
    remove_folders(files, &mut begun.folders, Own::Stays)?;
    store.forget().map_err(own)?;
    begun.folders = ours;
    remove_folders(files, &mut begun.folders, Own::Goes)
}

/// The folders that a path lies in, the outer ones first.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// Finds out before anything is begun whether files can be written where they have to be.
fn writable(files: &dyn Files, changes: &[Change]) -> Result<(), ServiceError> {
    let mut asked: Vec<&str> = Vec::new();
    for change in changes.iter().filter(|change| change.write != Write::Nothing) {
        let mut nearest = "";
        for folder in above(&change.dest) {
            if files.has_folder(folder).map_err(|trouble| stopped(folder, trouble))? {
                nearest = folder;
            }
        }
        if !asked.contains(&nearest) {
            let shown = if nearest.is_empty() { "the folder" } else { nearest };
            files
                .can_write(nearest)
                .map_err(|trouble| refused(&format!("cannot write into {shown}: {trouble}")))?;
            asked.push(nearest);
        }
    }
    Ok(())
}

/// Removes what a process that died has left of its writing, in every folder that any profile or this one's files lie in.
///
/// # Errors
/// When a setup cannot be read. What cannot be removed is in nobody's way.
pub fn sweep<'d>(files: &dyn Files, dests: impl Iterator<Item = &'d str>) -> Result<(), Error> {
    let setups = setup::all(files)?;
    let mut folders: BTreeSet<String> = setup::folders(files)?.into_iter().collect();
    folders.extend(dests.flat_map(above).map(str::to_owned));
    for dest in setups.iter().flat_map(|setup| setup.files.keys()) {
        folders.extend(above(dest).map(str::to_owned));
    }
    folders.insert(String::new());
    for folder in folders {
        let _ = files.remove_part(&folder);
    }
    Ok(())
}

/// Keeps what the setup names, and what would be lost.
fn keep(files: &dyn Files, store: &Store<'_>, changes: &[Change]) -> Result<(), ServiceError> {
    for change in changes {
        for (part, bytes) in &change.contents {
            store.keep(*part, bytes).map_err(|trouble| stopped(&change.dest, trouble))?;
        }
        if let (Some(aside), Some(found)) = (&change.aside, &change.found) {
            let folder = ".quorate/aside";
            files.make_folder(folder, Access::Private).map_err(|trouble| stopped(folder, trouble))?;
            files.replace(aside, &found.bytes, Access::Private).map_err(|trouble| stopped(aside, trouble))?;
        }
    }
    Ok(())
}

fn write(files: &dyn Files, changes: &[Change]) -> Result<(), ServiceError> {
    for change in changes {
        let done = match &change.write {
            Write::Nothing => Ok(()),
            Write::Put(bytes, access) => files.replace(&change.dest, bytes, *access),
            Write::Remove => files.remove(&change.dest),
        };
        done.map_err(|trouble| stopped(&change.dest, trouble))?;
    }
    Ok(())
}

/// Whether the program's own folder may go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Own {
    Stays,
    Goes,
}

/// Removes folders that were made and hold nothing, and forgets them.
fn remove_folders(files: &dyn Files, folders: &mut Vec<String>, own: Own) -> Result<(), ServiceError> {
    // The inner ones sort after those that they lie in.
    folders.sort();
    for folder in folders.iter().rev() {
        let gone = match (folder == OWN, own) {
            (true, Own::Stays) => Ok(()),
            (true, Own::Goes) => remove_own(files),
            (false, _) => files.remove_folder(folder),
        };
        match gone {
            // Somebody has put something else there, which is not ours.
            Ok(()) | Err(Trouble::Place(_)) => {}
            Err(trouble) => return Err(stopped(folder, trouble)),
        }
    }
    let mut there = Vec::new();
    for folder in folders.drain(..) {
        if folder == OWN || files.has_folder(&folder).unwrap_or(false) {
            there.push(folder);
        }
    }
    *folders = there;
    Ok(())
}

/// The program's own folder goes if there is nothing in it but what keeps version control out.
fn remove_own(files: &dyn Files) -> Result<(), Trouble> {
    let ignore = ".gitignore";
    files.can_write(OWN)?;
    if files.names(OWN)? == [ignore] {
        files.remove(&format!("{OWN}/{ignore}"))?;
        files.remove_folder(OWN)?;
    }
    Ok(())
}

fn stopped(path: &str, trouble: Trouble) -> ServiceError {
    match trouble {
        Trouble::Place(why) => ServiceError::new(
            ExitClass::Refused,
            codes::PROFILE_TARGET,
            Body::new(format!("{path} {why}")).help("clear the way and run the same command again"),
        ),
        Trouble::Disk(error) => refused(&format!("cannot write {path}: {error}")),
    }
}

fn refused(message: &str) -> ServiceError {
    let help = "what was begun is remembered: mend this and run the same command again";
    ServiceError::configuration(codes::PROFILE_TARGET, Body::new(message).help(help))
}
