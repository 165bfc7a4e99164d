//! Plans the change of a file by an install, from its strategy, the existing file and the earlier installation.

use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::provisioning::{PackageFile, Strategy};

use super::change::{Action, Change, ChangeError, DesiredFile};
use super::drift::{Drift, appended_text, stored_text};
use super::files::{FileContent, TargetFiles};
use super::merge::{self, InvalidJson};
use super::options::Force;
use super::setup::{ContentKind, InstallRecord, Store, StoredContent, read_file};
use super::{append, uninstall_plan};

/// Plans the change that installs a file of a profile. `fact` is its earlier installation, if any.
pub fn install_file(
    files: &dyn TargetFiles,
    store: &Store<'_>,
    piece: &PackageFile,
    fact: Option<&InstallRecord>,
    force: Force,
) -> Result<Change, ChangeError> {
    let dest = piece.dest.as_str();
    let found = read_file(files, dest)?;
    let Some(fact) = fact else {
        return Ok(first_install(piece, found.as_ref())?.into_change(piece, found, None));
    };
    let drift = Drift::of(store, fact, found.as_ref())?;
    match (drift, &found) {
        (Drift::Missing, _) => return put_back(store, piece, fact),
        (Drift::Edited, Some(there)) => {
            if fact.strategy == Strategy::MergeJsonDeep {
                // An unreadable file is reported at its place, whatever else is wrong.
                merge_json(dest, &utf8(dest, &there.bytes)?, piece)?;
            }
            if force == Force::No && there.bytes != *piece.bytes {
                let mut change = Change::nothing(dest, piece.strategy, found, Action::Edited);
                change.expected = Some(store.load_content(ContentKind::Installed, &fact.text)?);
                change.fact = Some(fact.clone());
                return Ok(change);
            }
        }
        _ => {}
    }
    let Some(there) = &found else { return put_back(store, piece, fact) };
    let mut next = if fact.strategy == piece.strategy {
        reinstall(store, piece, fact, there, drift)?
    } else {
        // Removes the file's content by the earlier strategy first.
        let removal = uninstall_plan::plan_removal(store, dest, fact, found.clone(), Force::Yes)?;
        let mode = fact.base.as_ref().map_or(there.mode, |base| base.mode);
        let without = removal.result().map(|bytes| FileContent { bytes: bytes.to_vec(), mode });
        let next = first_install(piece, without.as_ref())?;
        match next.bytes {
            Some(_) => next,
            None => DesiredFile { bytes: without.map(|found| found.bytes.into()), ..next },
        }
    };
    let mut aside_path = None;
    if drift == Drift::Edited && next.bytes.as_ref().is_some_and(|bytes| **bytes != *there.bytes) {
        let path = store.aside_path(dest, &there.bytes);
        next.notes.push(format!("the earlier content is kept as {path}"));
        aside_path = Some(path);
    }
    let mut change = next.into_change(piece, found, None);
    change.aside = aside_path;
    Ok(change)
}

/// Recreates an installed file that the user removed, over its content without the profile.
fn put_back(store: &Store<'_>, piece: &PackageFile, fact: &InstallRecord) -> Result<Change, ChangeError> {
    let base = base_content(store, fact)?;
    let mut next = first_install(piece, base.as_ref())?;
    if next.bytes.is_none() {
        next.bytes = base.as_ref().map(|base| Arc::from(&*base.bytes));
    }
    let mut change = next.into_change(piece, None, base.map(|base| base.mode));
    change.action = Action::PutBack;
    Ok(change)
}

/// The content that the file would have without the profile.
fn base_content(store: &Store<'_>, fact: &InstallRecord) -> Result<Option<FileContent>, ChangeError> {
    let Some(StoredContent { sha256, mode }) = &fact.base else { return Ok(None) };
    Ok(Some(FileContent { bytes: store.load_content(ContentKind::Before, sha256)?, mode: *mode }))
}

/// The first installation of a file, over content that the profile has no part in.
fn first_install(piece: &PackageFile, found: Option<&FileContent>) -> Result<DesiredFile, ChangeError> {
    let dest = piece.dest.as_str();
    match (piece.strategy, found) {
        (Strategy::Preserve, Some(_)) => Ok(DesiredFile {
            notes: vec!["it already exists and is preserved".to_owned()],
            ..DesiredFile::default()
        }),
        (Strategy::MergeJsonDeep, Some(found)) => {
            let text = merge_json(dest, &utf8(dest, &found.bytes)?, piece)?;
            Ok(DesiredFile::of(piece, text.into_bytes().into(), Some(found)))
        }
        (Strategy::Append, found) => {
            let text = found.map_or(Ok(String::new()), |found| utf8(dest, &found.bytes))?;
            let block = piece_text(piece)?;
            // A desired file is created even if it is empty.
            let new = found.is_none().then(|| block.clone());
            let Some(added) = new.or_else(|| append::addition(&text, &block)) else {
                let notes = vec!["it already contains the text".to_owned()];
                return Ok(DesiredFile { notes, ..DesiredFile::default() });
            };
            Ok(with_added(
                DesiredFile::of(piece, format!("{text}{added}").into_bytes().into(), found),
                &added,
            ))
        }
        (Strategy::MergeJsonDeep, None) => {
            // Refuses invalid JSON, which could not be merged the next time.
            merge_json(dest, "{}", piece)?;
            Ok(DesiredFile::of(piece, Arc::clone(&piece.bytes), None))
        }
        (Strategy::Overwrite | Strategy::Preserve, found) => {
            Ok(DesiredFile::of(piece, Arc::clone(&piece.bytes), found))
        }
    }
}

/// Installs over a file that was installed by the same strategy. The caller has checked that an edited one may be replaced.
fn reinstall(
    store: &Store<'_>,
    piece: &PackageFile,
    fact: &InstallRecord,
    found: &FileContent,
    standing: Drift,
) -> Result<DesiredFile, ChangeError> {
    let same = fact.source == sha256_hex(&piece.bytes);
    match (piece.strategy, standing) {
        (Strategy::Overwrite, _) => {
            let base = base_content(store, fact)?;
            Ok(DesiredFile::of(piece, Arc::clone(&piece.bytes), base.as_ref()))
        }
        (_, Drift::InPlace) if same => Ok(DesiredFile::unchanged(piece, fact)),
        (Strategy::Preserve, Drift::InPlace) => Ok(DesiredFile::unchanged(piece, fact)),
        (Strategy::Preserve, _) => {
            Ok(with_note(DesiredFile::unchanged(piece, fact), "it was edited since and is preserved"))
        }
        (_, Drift::EditedAround) if same => Ok(with_note(
            DesiredFile::unchanged(piece, fact),
            "it was edited since, and the profile's content is intact",
        )),
        (Strategy::MergeJsonDeep, Drift::InPlace) => first_install_over(piece, base_content(store, fact)?),
        (Strategy::MergeJsonDeep, _) => {
            let base = base_content(store, fact)?.map(|base| utf8(&piece.source, &base.bytes)).transpose()?;
            let installed = stored_text(store, ContentKind::Installed, &fact.text)?;
            let dest = piece.dest.as_str();
            let text = utf8(dest, &found.bytes)?;
            let removed = merge::take_out(&text, base.as_deref(), &installed, Force::No)
                .map_err(|bad| invalid_json(dest, &text, piece, bad))?;
            let without = removed.text.map(|text| FileContent { bytes: text.into_bytes(), mode: found.mode });
            first_install_over(piece, without)
        }
        (Strategy::Append, _) => append_again(store, piece, fact, found),
    }
}

/// [`first_install`] over a content other than that on the disk.
fn first_install_over(piece: &PackageFile, base: Option<FileContent>) -> Result<DesiredFile, ChangeError> {
    first_install(piece, base.as_ref())
}

fn append_again(
    store: &Store<'_>,
    piece: &PackageFile,
    fact: &InstallRecord,
    found: &FileContent,
) -> Result<DesiredFile, ChangeError> {
    let dest = piece.dest.as_str();
    let text = utf8(dest, &found.bytes)?;
    let Some(there) = appended_text(store, fact, &text)? else { return first_install(piece, Some(found)) };
    let old = stored_text(store, ContentKind::Installed, &fact.source)?;
    let block = piece_text(piece)?;
    let Some((new, added)) = append::exchange(&text, &there, &old, &block) else {
        return first_install(piece, Some(found));
    };
    let without = append::take_out(&text, &there).unwrap_or_default();
    let base = match &fact.base {
        _ if sha256_hex(&found.bytes) == fact.text => base_content(store, fact)?,
        None if without.is_empty() => None,
        _ => Some(FileContent { bytes: without.into_bytes(), mode: found.mode }),
    };
    Ok(with_added(DesiredFile::of(piece, new.into_bytes().into(), base.as_ref()), &added))
}

fn with_added(mut next: DesiredFile, added: &str) -> DesiredFile {
    if let Some(fact) = &mut next.fact {
        fact.added = Some(sha256_hex(added.as_bytes()));
        next.contents.push((ContentKind::Installed, Arc::from(added.as_bytes())));
    }
    next
}

fn with_note(mut next: DesiredFile, note: &str) -> DesiredFile {
    next.notes.push(note.to_owned());
    next
}

fn merge_json(dest: &str, text: &str, piece: &PackageFile) -> Result<String, ChangeError> {
    let profile = piece_text(piece)?;
    merge::merge(text, &profile).map_err(|bad| invalid_json(dest, text, piece, bad))
}

/// One of two texts is not JSON.
fn invalid_json(dest: &str, text: &str, piece: &PackageFile, bad: InvalidJson) -> ChangeError {
    match bad {
        InvalidJson::Target(problem) => ChangeError::invalid_json(codes::PROFILE_TARGET, dest, text, problem),
        InvalidJson::Profile(problem) => {
            let text = String::from_utf8_lossy(&piece.bytes);
            ChangeError::invalid_json(codes::PROFILE_INVALID, &piece.source, &text, problem)
        }
    }
}

/// The text of a piece.
fn piece_text(piece: &PackageFile) -> Result<String, ChangeError> {
    String::from_utf8(piece.bytes.to_vec()).map_err(|_| {
        let strategy = piece.strategy.as_str();
        ChangeError::profile(Body::new(format!("{} is not UTF-8, which `{strategy}` requires", piece.source)))
    })
}

fn utf8(path: &str, bytes: &[u8]) -> Result<String, ChangeError> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| ChangeError::target(Body::new(format!("{path} is not UTF-8, so it cannot be edited"))))
}
