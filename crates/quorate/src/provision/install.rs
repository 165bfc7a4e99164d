//! Install and uninstall. An install compares a package with the existing files and the earlier installation; an uninstall
//! is an install of no files that also removes the setup. If the plan refuses one file, none is written.
//!
//! A plan is a list of steps: store the backups, record the plan in the setup, write the files, and record completion. After
//! a crash between any two steps the next install or uninstall completes the work: the setup knows the content of each file
//! before and after the change.

use std::collections::BTreeSet;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::provisioning::{Package, PackageFile};

use super::change::{FileAction, FileChange, FileWrite, Planner};
use super::setup::{ASIDE_DIR, ContentKind, Entry, PROGRAM_DIR, Record, SETUPS_DIR, Setup, Setups, State};
use super::target::{Access, Step, TEMP_NAME, Target};
use super::{FileReport, ProvisionOutcome, ProvisionRequest, not_installed};
use crate::error::{Error, ErrorKind};

/// What happens to a profile.
#[derive(Debug, Clone, Copy)]
pub(super) enum Goal<'g> {
    Install {
        package: &'g Package,
        /// The source, as the user named it.
        from: &'g str,
        /// The time, in RFC 3339.
        at: &'g str,
    },
    Uninstall {
        slug: &'g str,
    },
}

/// Installs or uninstalls a profile in `target`, which users know as `shown`.
///
/// # Errors
/// If the profile to uninstall is not installed, a file or a setup cannot be read, or the disk refuses a write.
pub(super) fn run(
    target: &Target,
    shown: &str,
    goal: Goal<'_>,
    how: &ProvisionRequest,
) -> Result<ProvisionOutcome, Error> {
    let (outcome, steps) = plan(target, shown, goal, how)?;
    steps.iter().try_for_each(|step| target.perform(step))?;
    Ok(outcome)
}

/// Plans an install or an uninstall: its outcome, and the steps to it.
///
/// # Errors
/// If the profile to uninstall is not installed, or a file or a setup cannot be read.
pub(super) fn plan(
    target: &Target,
    shown: &str,
    goal: Goal<'_>,
    how: &ProvisionRequest,
) -> Result<(ProvisionOutcome, Vec<Step>), Error> {
    let setups = Setups::load(target)?;
    let setup = match goal {
        Goal::Install { package, .. } => {
            setups.get(&package.slug).cloned().unwrap_or_else(|| Setup::new(&package.slug))
        }
        Goal::Uninstall { slug } => {
            setups.get(slug).cloned().ok_or_else(|| not_installed(slug, shown, &setups))?
        }
    };
    let mut report = Report::new();
    if let Goal::Install { package, .. } = goal {
        report.absorb(package.report.clone());
    }
    let planner = Planner { setups: &setups, setup: &setup, force: how.force };
    let changes = plan_files(&planner, goal, &mut report)?;
    let (begun, done) = setups_after(&setup, goal, &changes);
    let resumed = setup.state != State::Installed;
    let uninstalls = matches!(goal, Goal::Uninstall { .. });
    let is_kept = |change: &FileChange| matches!(change.action, FileAction::Keep | FileAction::Leave);
    let is_unchanged =
        setup.files == done.files && setup.version == done.version && changes.iter().all(is_kept);
    let idle = is_unchanged && !resumed && !uninstalls;
    let written = !how.dry_run && !report.has_refusals() && !idle;
    let steps = match written {
        true => steps(target, resumed, begun, done, &changes)?,
        false => Vec::new(),
    };
    let version = match goal {
        Goal::Install { package, .. } => package.version.clone(),
        Goal::Uninstall { .. } => setup.version.clone(),
    };
    let is_previous = |old: &String| !old.is_empty() && *old != version;
    let outcome = ProvisionOutcome {
        slug: setup.slug.clone(),
        previous: Some(setup.version.clone()).filter(is_previous),
        version,
        resumed,
        target: shown.to_owned(),
        dry_run: how.dry_run,
        written,
        idle,
        uninstalls,
        files: changes.iter().map(|change| FileReport::of(change, how.dry_run)).collect(),
        report,
    };
    Ok((outcome, steps))
}

/// The changes of the package's files, and of the installed files that it lacks.
fn plan_files(planner: &Planner<'_>, goal: Goal<'_>, report: &mut Report) -> Result<Vec<FileChange>, Error> {
    let (pieces, verb): (&[PackageFile], _) = match goal {
        Goal::Install { package, .. } => (package.files(), "replace"),
        Goal::Uninstall { .. } => (&[], "remove"),
    };
    let mut plans: Vec<_> = pieces.iter().map(|piece| planner.install(piece)).collect();
    for (dest, entry) in &planner.setup.files {
        if pieces.iter().all(|piece| piece.dest.as_str() != dest) {
            let plan = planner.remove(dest, &entry.installed);
            plans.push(match goal {
                Goal::Install { .. } => plan.map(|change| change.with_note("this version no longer has it")),
                Goal::Uninstall { .. } => plan,
            });
        }
    }
    let mut changes = Vec::new();
    for plan in plans {
        match plan {
            Ok(change) => changes.push(change),
            Err(error) if error.kind() == ErrorKind::Refused => report.absorb(*error.report),
            Err(error) => return Err(error),
        }
    }
    for change in changes.iter().filter(|change| change.action == FileAction::Edited) {
        let body = Body::new(format!("{} was edited since it was installed", change.dest));
        let help = format!("see the differences above; use `--force` to {verb} it and keep a copy");
        report.refuse(codes::PROFILE_DRIFT, body.help(help));
    }
    Ok(changes)
}

/// The setups that are written before the first change and after the last one.
fn setups_after(setup: &Setup, goal: Goal<'_>, changes: &[FileChange]) -> (Setup, Setup) {
    let mut begun = setup.clone();
    begun.state = State::Removing;
    if let Goal::Install { package, from, at } = goal {
        begun.state = State::Installing;
        begun.version = package.version.clone();
        (begun.from, begun.at) = (from.to_owned(), at.to_owned());
    }
    let mut done = begun.clone();
    done.files.clear();
    for change in changes {
        if let Some(record) = &change.record {
            begun.files.insert(change.dest.clone(), Entry { installed: record.clone() });
            let installed = Record { found: None, ..record.clone() };
            done.files.insert(change.dest.clone(), Entry { installed });
        }
    }
    if let Goal::Install { .. } = goal {
        done.state = State::Installed;
    }
    (begun, done)
}

/// The steps that make the changes. `resumed`: a crashed process may have left a temporary file.
fn steps(
    target: &Target,
    resumed: bool,
    mut begun: Setup,
    mut done: Setup,
    changes: &[FileChange],
) -> Result<Vec<Step>, Error> {
    let uninstalls = done.state == State::Removing;
    let puts = changes.iter().filter(|change| matches!(change.write, FileWrite::Put(..)));
    let needed: BTreeSet<&str> =
        puts.map(|change| change.dest.as_str()).chain([SETUPS_DIR]).flat_map(parents).collect();
    let mut created = Vec::new();
    for folder in needed {
        if !target.has_folder(folder)? {
            created.push(folder.to_owned());
        }
    }
    // An uninstall makes only folders that the user has removed.
    if !uninstalls {
        begun.folders.extend(created.iter().cloned());
    }
    begun.folders.sort();
    begun.folders.dedup();
    let is_needed = |folder: &String| {
        folder == PROGRAM_DIR || done.files.keys().any(|dest| parents(dest).any(|parent| parent == folder))
    };
    done.folders = begun.folders.iter().filter(|folder| is_needed(folder)).cloned().collect();

    let mut steps = prepare(target, &begun, changes)?;
    steps.push(begun.save());
    let folder_of =
        |dest: &String| dest.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let written: BTreeSet<String> = begun.files.keys().filter(|_| resumed).map(folder_of).collect();
    steps.extend(written.into_iter().map(|folder| Step::Remove(format!("{folder}{TEMP_NAME}"))));
    steps.extend(created.into_iter().map(|folder| Step::MakeFolder(folder, Access::Program)));
    for change in changes {
        match &change.write {
            FileWrite::Nothing => {}
            FileWrite::Put(bytes, access) => {
                steps.push(Step::Write(change.dest.clone(), bytes.clone(), *access));
            }
            FileWrite::Remove => steps.push(Step::Remove(change.dest.clone())),
        }
    }
    let obsolete = begun.folders.iter().rev().filter(|folder| !done.folders.contains(folder));
    steps.extend(obsolete.cloned().map(Step::RemoveFolder));
    steps.push(done.save());
    steps.extend(clean_up(target, &done, &steps)?);
    Ok(steps)
}

/// The steps that make the program's folders, and store the contents that the setup names and copies of contents that
/// would be lost.
fn prepare(target: &Target, begun: &Setup, changes: &[FileChange]) -> Result<Vec<Step>, Error> {
    let mut steps = vec![Step::MakeFolder(PROGRAM_DIR.to_owned(), Access::Private)];
    let ignore = format!("{PROGRAM_DIR}/.gitignore");
    if !target.names(PROGRAM_DIR)?.contains(&".gitignore".to_owned()) {
        steps.push(Step::Write(ignore, b"*\n"[..].into(), Access::Data));
    }
    let contents = begun.contents_dir();
    let folders = ContentKind::ALL.map(|kind| format!("{contents}/{}", kind.folder()));
    for folder in [SETUPS_DIR.to_owned(), contents].into_iter().chain(folders) {
        steps.push(Step::MakeFolder(folder, Access::Private));
    }
    for change in changes {
        steps.extend(change.contents.iter().map(|(kind, bytes)| begun.store(*kind, bytes)));
        if let (Some(aside), Some(found)) = (&change.aside, &change.found) {
            steps.push(Step::MakeFolder(ASIDE_DIR.to_owned(), Access::Private));
            steps.push(Step::Write(aside.clone(), found.bytes.clone(), Access::Private));
        }
    }
    Ok(steps)
}

/// The steps that remove unneeded contents, and at the end of an uninstall the setup and the program's own folder.
/// `earlier` are the steps before them.
fn clean_up(target: &Target, done: &Setup, earlier: &[Step]) -> Result<Vec<Step>, Error> {
    let mut steps = Vec::new();
    let needed = done.contents();
    let contents = done.contents_dir();
    let folders = ContentKind::ALL.map(|kind| format!("{contents}/{}", kind.folder()));
    for folder in &folders {
        let paths = target.names(folder)?.into_iter().map(|name| format!("{folder}/{name}"));
        steps.extend(paths.filter(|path| !needed.contains(path)).map(Step::Remove));
    }
    if done.state == State::Removing {
        steps.extend(folders.into_iter().chain([contents]).map(Step::RemoveFolder));
        steps.extend([Step::Remove(done.path()), Step::RemoveFolder(SETUPS_DIR.to_owned())]);
        let keeps_aside = earlier.contains(&Step::MakeFolder(ASIDE_DIR.to_owned(), Access::Private));
        let is_own = |name: &String| [".gitignore", "provisioned"].contains(&name.as_str());
        let is_last = target.names(SETUPS_DIR)?.iter().filter(|name| name.ends_with(".json")).count() == 1;
        let is_only = is_last && !keeps_aside && target.names(PROGRAM_DIR)?.iter().all(is_own);
        if is_only && done.folders.iter().any(|folder| folder == PROGRAM_DIR) {
            steps.push(Step::Remove(format!("{PROGRAM_DIR}/.gitignore")));
            steps.push(Step::RemoveFolder(PROGRAM_DIR.to_owned()));
        }
    }
    Ok(steps)
}

/// A path's parent folders, outermost first.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}
