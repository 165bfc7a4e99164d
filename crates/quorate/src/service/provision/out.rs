//! What an uninstall does with a file: what was there comes back; where it was edited since, what the profile brought is
//! taken out and the rest stays.

use std::sync::Arc;

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::provisioning::Strategy;

use super::change::{Action, Cannot, Change, Write};
use super::files::{Access, Found};
use super::setup::{Error, Fact, Part, Store};
use super::standing::{added, text_of};
use super::{Force, append, merge};

/// What is to be done so that a file is as it would be without the profile.
pub fn take(
    store: &Store<'_>,
    dest: &str,
    fact: &Fact,
    found: Option<Found>,
    force: Force,
) -> Result<Change, Cannot> {
    let base = match &fact.base {
        Some(held) => Some(Found { bytes: store.content(Part::Before, &held.sha256)?, mode: held.mode }),
        None => None,
    };
    let Some(there) = &found else {
        return Ok(match base {
            Some(base) => restore(dest, fact, None, base),
            None => Change::nothing(dest, fact.strategy, None, Action::Leave).note("it was gone already"),
        });
    };
    let as_before = base.as_ref().is_some_and(|base| base.bytes == there.bytes);
    if as_before && sha256_hex(&there.bytes) != fact.text {
        return Ok(Change::nothing(dest, fact.strategy, found, Action::Leave).note("it is as it was before"));
    }
    if sha256_hex(&there.bytes) == fact.text {
        return Ok(back(dest, fact, found, base));
    }
    match apart(store, dest, fact, there, force)? {
        Some(Apart { write, notes, lost }) => {
            let mut change = reduced(dest, fact, found.clone(), write, notes);
            if lost && change.write != Write::Nothing {
                set_aside(store, &mut change, &there.bytes);
            }
            Ok(change)
        }
        None if force == Force::Yes => {
            let mut change = back(dest, fact, found.clone(), base);
            set_aside(store, &mut change, &there.bytes);
            Ok(change)
        }
        None => {
            let mut change = Change::nothing(dest, fact.strategy, found, Action::Edited);
            change.expected = Some(store.content(Part::Installed, &fact.text)?);
            Ok(change)
        }
    }
}

/// Keeps what is there, as some of it would be lost.
fn set_aside(store: &Store<'_>, change: &mut Change, bytes: &[u8]) {
    let aside = store.aside(&change.dest, bytes);
    change.notes.push(format!("what was there is kept as {aside}"));
    change.aside = Some(aside);
}

/// A file that was edited since, with what the profile brought taken out of it.
struct Apart {
    write: Write,
    /// What stays although the profile brought it, and what goes although somebody has changed it, each a sentence.
    notes: Vec<String>,
    /// Whether something goes that somebody has changed.
    lost: bool,
}

impl Apart {
    fn of(write: Write) -> Self {
        Apart { write, notes: Vec::new(), lost: false }
    }

    fn stays(why: &str) -> Self {
        Apart { notes: vec![why.to_owned()], ..Apart::of(Write::Nothing) }
    }
}

/// What can be told apart in a file that was edited since; nothing where the file is the profile's as a whole. Force
/// reaches what the profile brought and nothing else: what others have put there stays.
fn apart(
    store: &Store<'_>,
    dest: &str,
    fact: &Fact,
    found: &Found,
    force: Force,
) -> Result<Option<Apart>, Cannot> {
    let put = |text: String| Write::Put(Arc::from(text.into_bytes()), Access::Exactly(found.mode));
    Ok(Some(match (fact.strategy, std::str::from_utf8(&found.bytes)) {
        (Strategy::Overwrite, _) => return Ok(None),
        (Strategy::Append, Ok(text)) => {
            let without = added(store, fact, text)?.and_then(|added| append::take_out(text, &added));
            match without {
                Some(without) if without.is_empty() && fact.base.is_none() => Apart::of(Write::Remove),
                Some(without) => Apart::of(put(without)),
                None if force == Force::Yes => lines_apart(store, fact, text, put)?,
                None => Apart::stays("what was appended was edited since and stays"),
            }
        }
        (Strategy::MergeJsonDeep, Ok(text)) => {
            let base = match &fact.base {
                Some(held) => Some(text_of(store, Part::Before, &held.sha256)?),
                None => None,
            };
            let installed = text_of(store, Part::Installed, &fact.text)?;
            match merge::take_out(text, base.as_deref(), &installed, force) {
                Ok(taken) => {
                    let lost = !taken.lost.is_empty();
                    let notes = [taken.lost, taken.left].concat();
                    Apart { write: taken.text.map_or(Write::Remove, put), notes, lost }
                }
                Err(merge::Bad::Target(_)) => Apart::stays("it is not JSON any more and stays"),
                Err(merge::Bad::Profile(problem)) => {
                    let what = format!("was kept of {dest} and is not JSON: {}", problem.message);
                    return Err(Cannot::Setup(Error::Corrupt { path: fact.text.clone(), what }));
                }
            }
        }
        _ => Apart::stays("it was edited since and stays"),
    }))
}

/// Takes out what still stands, line by line, of what was appended and edited since.
fn lines_apart(
    store: &Store<'_>,
    fact: &Fact,
    text: &str,
    put: impl Fn(String) -> Write,
) -> Result<Apart, Cannot> {
    let installed = text_of(store, Part::Installed, &fact.text)?;
    let without = match added(store, fact, &installed)? {
        Some(added) => append::take_lines_out(text, &installed, &added),
        None => None,
    };
    Ok(match without {
        Some(without) => {
            let gone = without.is_empty() && fact.base.is_none();
            let note =
                "what was appended was edited since: the lines of it that still stand go, the rest stays";
            let write = if gone { Write::Remove } else { put(without) };
            Apart { write, notes: vec![note.to_owned()], lost: true }
        }
        None => Apart::stays("what was appended was edited since and stays"),
    })
}

/// What was there before.
fn back(dest: &str, fact: &Fact, found: Option<Found>, base: Option<Found>) -> Change {
    match base {
        Some(base) => restore(dest, fact, found, base),
        None => gone(dest, fact, found),
    }
}

fn restore(dest: &str, fact: &Fact, found: Option<Found>, base: Found) -> Change {
    let same = found.as_ref() == Some(&base);
    let action = if same { Action::Leave } else { Action::Restore };
    let mut change = Change::nothing(dest, fact.strategy, found, action);
    if !same {
        change.write = Write::Put(Arc::from(base.bytes), Access::Exactly(base.mode));
    }
    change
}

fn gone(dest: &str, fact: &Fact, found: Option<Found>) -> Change {
    let mut change = Change::nothing(dest, fact.strategy, found, Action::Delete);
    change.write = Write::Remove;
    change
}

/// The file without what the profile brought.
fn reduced(dest: &str, fact: &Fact, found: Option<Found>, write: Write, left: Vec<String>) -> Change {
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
