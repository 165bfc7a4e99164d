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
    let gentle = gently(store, dest, fact, there)?;
    match (gentle, force) {
        // What can be taken out alone is, even when forced: the rest is somebody else's.
        (Gentle::Whole(write), _) => Ok(reduced(dest, fact, found, write, Vec::new())),
        (Gentle::Part(write, left), Force::No) => Ok(reduced(dest, fact, found, write, left)),
        (Gentle::Not, Force::No) => {
            let mut change = Change::nothing(dest, fact.strategy, found, Action::Edited);
            change.expected = Some(store.content(Part::Installed, &fact.text)?);
            Ok(change)
        }
        (Gentle::Part(..) | Gentle::Not, Force::Yes) => {
            let aside = store.aside(dest, &there.bytes);
            let note = format!("what was there is kept as {aside}");
            let mut change = back(dest, fact, found, base).note(note);
            change.aside = Some(aside);
            Ok(change)
        }
    }
}

/// What can be taken out of a file that was edited since.
enum Gentle {
    /// All that the profile brought.
    Whole(Write),
    /// Some of it, and what stays, each a sentence.
    Part(Write, Vec<String>),
    /// Nothing, since the file is the profile's as a whole.
    Not,
}

fn gently(store: &Store<'_>, dest: &str, fact: &Fact, found: &Found) -> Result<Gentle, Cannot> {
    let stays = |why: &str| Ok(Gentle::Part(Write::Nothing, vec![why.to_owned()]));
    let put = |text: String| Write::Put(Arc::from(text.into_bytes()), Access::Exactly(found.mode));
    match (fact.strategy, std::str::from_utf8(&found.bytes)) {
        (Strategy::Overwrite, _) => Ok(Gentle::Not),
        (Strategy::Append, Ok(text)) => {
            let added = added(store, fact, text)?;
            match added.and_then(|added| append::take_out(text, &added)) {
                None => stays("what was appended was edited since and stays"),
                Some(without) if without.is_empty() && fact.base.is_none() => {
                    Ok(Gentle::Whole(Write::Remove))
                }
                Some(without) => Ok(Gentle::Whole(put(without))),
            }
        }
        (Strategy::MergeJsonDeep, Ok(text)) => {
            let base = match &fact.base {
                Some(held) => Some(text_of(store, Part::Before, &held.sha256)?),
                None => None,
            };
            let installed = text_of(store, Part::Installed, &fact.text)?;
            match merge::take_out(text, base.as_deref(), &installed) {
                Ok(taken) => {
                    let write = taken.text.map_or(Write::Remove, put);
                    let whole = taken.left.is_empty();
                    Ok(if whole { Gentle::Whole(write) } else { Gentle::Part(write, taken.left) })
                }
                Err(merge::Bad::Target(_)) => stays("it is not JSON any more and stays"),
                Err(merge::Bad::Profile(problem)) => {
                    let what = format!("was kept of {dest} and is not JSON: {}", problem.message);
                    Err(Cannot::Setup(Error::Corrupt { path: fact.text.clone(), what }))
                }
            }
        }
        _ => stays("it was edited since and stays"),
    }
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
