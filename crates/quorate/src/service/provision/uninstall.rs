//! Uninstall: restores earlier files, and removes installed files and folders that are empty then.

use quorate_diagnostics::Report;

use super::apply;
use super::files::TargetFiles;
use super::options::{Options, WriteMode};
use super::outcome::{FileReport, Outcome, not_installed, refuse, refuse_edited};
use super::setup::{self, Intent, State, Store, read_file};
use super::share::OtherProfiles;
use crate::service::error::ServiceError;

/// Uninstalls a profile.
///
/// # Errors
/// If it is not installed, an existing file or the setup ledger cannot be read, or the disk refuses a write.
pub fn uninstall(
    files: &dyn TargetFiles,
    target: &str,
    slug: &str,
    how: Options,
) -> Result<Outcome, ServiceError> {
    if how.run == WriteMode::Apply {
        apply::remove_leftovers(files, std::iter::empty())?;
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
        match installed.and_then(|found| others.plan_removal(&store, &setup.at, dest, fact, found, how.force))
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

    if how.run == WriteMode::Apply && !report.has_refusals() {
        let mut begun = setup.clone();
        begun.state = State::Removing;
        for change in &changes {
            if let Some(entry) = begun.files.get_mut(&change.dest) {
                entry.intent = Some(Intent::Out { leaves: change.resulting_hash() });
            }
        }
        apply::uninstall(files, &store, begun, &changes, &others)?;
    }
    Ok(Outcome {
        slug: setup.slug,
        version: setup.version,
        previous: None,
        resumed,
        target: target.to_owned(),
        run: how.run,
        idle: false,
        files: changes.iter().map(|change| FileReport::of(change, how.run)).collect(),
        report,
    })
}
