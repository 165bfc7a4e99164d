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
    if force == Force::Yes {
        let aside = store.aside(dest, &there.bytes);
        let note = format!("what was there is kept as {aside}");
        let mut change = back(dest, fact, found, base).note(note);
        change.aside = Some(aside);
        return Ok(change);
    }
    let text = std::str::from_utf8(&there.bytes).ok();
    match (fact.strategy, text) {
        (Strategy::Overwrite, _) => {
            let mut change = Change::nothing(dest, fact.strategy, found, Action::Edited);
            change.expected = Some(store.content(Part::Installed, &fact.text)?);
            Ok(change)
        }
        (Strategy::Append, Some(text)) => {
            let without = match added(store, fact, text)? {
                Some(added) => append::take_out(text, &added),
                None => None,
            };
            Ok(match without {
                None => left(dest, fact, found, "what was appended was edited since and stays"),
                Some(without) if without.is_empty() && fact.base.is_none() => gone(dest, fact, found),
                Some(without) => reduced(dest, fact, found, without),
            })
        }
        (Strategy::MergeJsonDeep, Some(text)) => merged(store, dest, fact, &found, text),
        _ => Ok(left(dest, fact, found, "it was edited since and stays")),
    }
}

fn merged(
    store: &Store<'_>,
    dest: &str,
    fact: &Fact,
    found: &Option<Found>,
    text: &str,
) -> Result<Change, Cannot> {
    let base = match &fact.base {
        Some(held) => Some(text_of(store, Part::Before, &held.sha256)?),
        None => None,
    };
    let installed = text_of(store, Part::Installed, &fact.text)?;
    let taken = match merge::take_out(text, base.as_deref(), &installed) {
        Ok(taken) => taken,
        Err(merge::Bad::Target(_)) => {
            return Ok(left(dest, fact, found.clone(), "it is not JSON any more and stays"));
        }
        Err(merge::Bad::Profile(problem)) => {
            let what = format!("was kept of {dest} and is not JSON: {}", problem.message);
            return Err(Cannot::Setup(Error::Corrupt { path: fact.text.clone(), what }));
        }
    };
    let mut change = match taken.text {
        None => gone(dest, fact, found.clone()),
        Some(without) => reduced(dest, fact, found.clone(), without),
    };
    change.notes.extend(taken.left);
    Ok(change)
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
fn reduced(dest: &str, fact: &Fact, found: Option<Found>, without: String) -> Change {
    let mode = found.as_ref().map_or(0o644, |found| found.mode);
    let same = found.as_ref().is_some_and(|found| found.bytes == without.as_bytes());
    let action = if same { Action::Leave } else { Action::Change };
    let mut change = Change::nothing(dest, fact.strategy, found, action);
    if !same {
        change.write = Write::Put(Arc::from(without.into_bytes()), Access::Exactly(mode));
    }
    change
}

fn left(dest: &str, fact: &Fact, found: Option<Found>, note: &str) -> Change {
    Change::nothing(dest, fact.strategy, found, Action::Leave).note(note)
}
