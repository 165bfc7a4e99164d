//! The change of one file by an uninstall: earlier content is restored; in an edited file the profile's content is
//! removed and the rest stays.

use std::sync::Arc;

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::provisioning::Strategy;

use super::change::{Action, Change, ChangeError, Write};
use super::drift::{appended_text, stored_text};
use super::files::{Access, FileContent};
use super::options::Force;
use super::setup::{ContentKind, Error, InstallRecord, Store};
use super::{append, merge};

/// Plans the change that removes the profile's part of a file.
pub fn plan_removal(
    store: &Store<'_>,
    dest: &str,
    fact: &InstallRecord,
    found: Option<FileContent>,
    force: Force,
) -> Result<Change, ChangeError> {
    let base = match &fact.base {
        Some(held) => Some(FileContent {
            bytes: store.load_content(ContentKind::Before, &held.sha256)?,
            mode: held.mode,
        }),
        None => None,
    };
    let Some(there) = &found else {
        return Ok(match base {
            Some(base) => restore(dest, fact, None, base),
            None => {
                Change::nothing(dest, fact.strategy, None, Action::Leave).with_note("it was already removed")
            }
        });
    };
    let as_before = base.as_ref().is_some_and(|base| base.bytes == there.bytes);
    if as_before && sha256_hex(&there.bytes) != fact.text {
        return Ok(Change::nothing(dest, fact.strategy, found, Action::Leave)
            .with_note("it already has its earlier content"));
    }
    if sha256_hex(&there.bytes) == fact.text {
        return Ok(restore_or_delete(dest, fact, found, base));
    }
    match plan_partial(store, dest, fact, there, force)? {
        Some(PartialRemoval { write, notes, lost }) => {
            let mut change = change_to(dest, fact, found.clone(), write, notes);
            if lost && change.write != Write::Nothing {
                set_aside(store, &mut change, &there.bytes);
            }
            Ok(change)
        }
        None if force == Force::Yes => {
            let mut change = restore_or_delete(dest, fact, found.clone(), base);
            set_aside(store, &mut change, &there.bytes);
            Ok(change)
        }
        None => {
            let mut change = Change::nothing(dest, fact.strategy, found, Action::Edited);
            change.expected = Some(store.load_content(ContentKind::Installed, &fact.text)?);
            Ok(change)
        }
    }
}

/// Plans a backup of the existing content, part of which would be lost.
fn set_aside(store: &Store<'_>, change: &mut Change, bytes: &[u8]) {
    let aside_path = store.aside_path(&change.dest, bytes);
    change.notes.push(format!("the earlier content is kept as {aside_path}"));
    change.aside = Some(aside_path);
}

/// The removal of the profile's content from an edited file.
struct PartialRemoval {
    write: Write,
    /// A sentence for each installed part that stays and each changed part that is removed.
    notes: Vec<String>,
    /// Whether it removes a part that the user has changed.
    lost: bool,
}

impl PartialRemoval {
    fn of(write: Write) -> Self {
        PartialRemoval { write, notes: Vec::new(), lost: false }
    }

    fn keep(why: &str) -> Self {
        PartialRemoval { notes: vec![why.to_owned()], ..PartialRemoval::of(Write::Nothing) }
    }
}

/// Plans the removal of the profile's parts from an edited file; `None` if the whole file is the profile's. `force` applies
/// only to the profile's own content.
fn plan_partial(
    store: &Store<'_>,
    dest: &str,
    fact: &InstallRecord,
    found: &FileContent,
    force: Force,
) -> Result<Option<PartialRemoval>, ChangeError> {
    let put = |text: String| Write::Put(Arc::from(text.into_bytes()), Access::Exactly(found.mode));
    Ok(Some(match (fact.strategy, std::str::from_utf8(&found.bytes)) {
        (Strategy::Overwrite, _) => return Ok(None),
        (Strategy::Append, Ok(text)) => {
            let without = appended_text(store, fact, text)?.and_then(|added| append::take_out(text, &added));
            match without {
                Some(without) if without.is_empty() && fact.base.is_none() => {
                    PartialRemoval::of(Write::Remove)
                }
                Some(without) => PartialRemoval::of(put(without)),
                None if force == Force::Yes => plan_partial_lines(store, fact, text, put)?,
                None => PartialRemoval::keep("the appended text was edited since and stays"),
            }
        }
        (Strategy::MergeJsonDeep, Ok(text)) => {
            let base = match &fact.base {
                Some(held) => Some(stored_text(store, ContentKind::Before, &held.sha256)?),
                None => None,
            };
            let installed = stored_text(store, ContentKind::Installed, &fact.text)?;
            match merge::take_out(text, base.as_deref(), &installed, force) {
                Ok(taken) => {
                    let lost = !taken.lost.is_empty();
                    let notes = [taken.lost, taken.left].concat();
                    PartialRemoval { write: taken.text.map_or(Write::Remove, put), notes, lost }
                }
                Err(merge::InvalidJson::Target(_)) => PartialRemoval::keep("it is no longer JSON and stays"),
                Err(merge::InvalidJson::Profile(problem)) => {
                    let what = format!("is a stored content of {dest} and is not JSON: {}", problem.message);
                    return Err(ChangeError::Setup(Error::Corrupt { path: fact.text.clone(), what }));
                }
            }
        }
        _ => PartialRemoval::keep("it was edited since and stays"),
    }))
}

/// Removes the remaining appended lines from a text that was edited since.
fn plan_partial_lines(
    store: &Store<'_>,
    fact: &InstallRecord,
    text: &str,
    put: impl Fn(String) -> Write,
) -> Result<PartialRemoval, ChangeError> {
    let installed = stored_text(store, ContentKind::Installed, &fact.text)?;
    let without = match appended_text(store, fact, &installed)? {
        Some(added) => append::take_lines_out(text, &installed, &added),
        None => None,
    };
    Ok(match without {
        Some(without) => {
            let becomes_empty = without.is_empty() && fact.base.is_none();
            let note = "the appended lines were edited since: the unchanged ones are removed, the rest stays";
            let write = if becomes_empty { Write::Remove } else { put(without) };
            PartialRemoval { write, notes: vec![note.to_owned()], lost: true }
        }
        None => PartialRemoval::keep("the appended text was edited since and stays"),
    })
}

/// The earlier content.
fn restore_or_delete(
    dest: &str,
    fact: &InstallRecord,
    found: Option<FileContent>,
    base: Option<FileContent>,
) -> Change {
    match base {
        Some(base) => restore(dest, fact, found, base),
        None => delete(dest, fact, found),
    }
}

fn restore(dest: &str, fact: &InstallRecord, found: Option<FileContent>, base: FileContent) -> Change {
    let same = found.as_ref() == Some(&base);
    let action = if same { Action::Leave } else { Action::Restore };
    let mut change = Change::nothing(dest, fact.strategy, found, action);
    if !same {
        change.write = Write::Put(Arc::from(base.bytes), Access::Exactly(base.mode));
    }
    change
}

fn delete(dest: &str, fact: &InstallRecord, found: Option<FileContent>) -> Change {
    let mut change = Change::nothing(dest, fact.strategy, found, Action::Delete);
    change.write = Write::Remove;
    change
}

/// The change of an edited file to its content without the profile's.
fn change_to(
    dest: &str,
    fact: &InstallRecord,
    found: Option<FileContent>,
    write: Write,
    left: Vec<String>,
) -> Change {
    let same = match (&write, &found) {
        (Write::Put(bytes, _), Some(found)) => **bytes == *found.bytes,
        (write, _) => *write == Write::Nothing,
    };
    let action = match (&write, same) {
        (_, true) => Action::Leave,
        (Write::Remove, _) => Action::Delete,
        _ => Action::Change,
    };
    let mut change = Change::nothing(dest, fact.strategy, found, action);
    (change.write, change.notes) = (if same { Write::Nothing } else { write }, left);
    change
}
