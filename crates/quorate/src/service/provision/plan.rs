//! What an install does with a file: one function for each strategy, over what is there and what was installed before.

use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::provisioning::{Piece, Strategy};

use super::change::{Action, Cannot, Change, Next};
use super::files::{Files, Found};
use super::merge::{self, Bad};
use super::setup::{Fact, Held, Part, Store, look};
use super::standing::{Standing, added, text_of};
use super::{Force, append, out};

/// What is to be done so that a file of a profile is in place. `fact` is how it was installed before, if it was.
pub fn put(
    files: &dyn Files,
    store: &Store<'_>,
    piece: &Piece,
    fact: Option<&Fact>,
    force: Force,
) -> Result<Change, Cannot> {
    let dest = piece.dest.as_str();
    let found = look(files, dest)?;
    let Some(fact) = fact else { return Ok(fresh(piece, found.as_ref())?.change(piece, found, None)) };
    let standing = Standing::of(store, fact, found.as_ref())?;
    match (standing, &found) {
        (Standing::Missing, _) => return put_back(store, piece, fact),
        (Standing::Edited, Some(there)) => {
            if fact.strategy == Strategy::MergeJsonDeep {
                // What cannot be read is told at its place, whatever else is wrong.
                merged(dest, &utf8(dest, &there.bytes)?, piece)?;
            }
            if force == Force::No && there.bytes != *piece.bytes {
                let mut change = Change::nothing(dest, piece.strategy, found, Action::Edited);
                change.expected = Some(store.content(Part::Installed, &fact.text)?);
                change.fact = Some(fact.clone());
                return Ok(change);
            }
        }
        _ => {}
    }
    let Some(there) = &found else { return put_back(store, piece, fact) };
    let mut next = if fact.strategy == piece.strategy {
        again(store, piece, fact, there, standing)?
    } else {
        // As if it had been taken out the old way first.
        let taken = out::take(store, dest, fact, found.clone(), Force::Yes)?;
        let mode = fact.base.as_ref().map_or(there.mode, |base| base.mode);
        let without = taken.result().map(|bytes| Found { bytes: bytes.to_vec(), mode });
        let next = fresh(piece, without.as_ref())?;
        match next.bytes {
            Some(_) => next,
            None => Next { bytes: without.map(|found| found.bytes.into()), ..next },
        }
    };
    let mut aside = None;
    if standing == Standing::Edited && next.bytes.as_ref().is_some_and(|bytes| **bytes != *there.bytes) {
        let path = store.aside(dest, &there.bytes);
        next.notes.push(format!("what was there is kept as {path}"));
        aside = Some(path);
    }
    let mut change = next.change(piece, found, None);
    change.aside = aside;
    Ok(change)
}

/// A file that was installed and is gone is made again of what would be there without the profile.
fn put_back(store: &Store<'_>, piece: &Piece, fact: &Fact) -> Result<Change, Cannot> {
    let base = based(store, fact)?;
    let mut next = fresh(piece, base.as_ref())?;
    if next.bytes.is_none() {
        next.bytes = base.as_ref().map(|base| Arc::from(&*base.bytes));
    }
    let mut change = next.change(piece, None, base.map(|base| base.mode));
    change.action = Action::PutBack;
    Ok(change)
}

/// What would be there without the profile.
fn based(store: &Store<'_>, fact: &Fact) -> Result<Option<Found>, Cannot> {
    let Some(Held { sha256, mode }) = &fact.base else { return Ok(None) };
    Ok(Some(Found { bytes: store.content(Part::Before, sha256)?, mode: *mode }))
}

/// A file over something that the profile has no part in.
fn fresh(piece: &Piece, found: Option<&Found>) -> Result<Next, Cannot> {
    let dest = piece.dest.as_str();
    match (piece.strategy, found) {
        (Strategy::Preserve, Some(_)) => {
            Ok(Next { notes: vec!["it was there and is preserved".to_owned()], ..Next::default() })
        }
        (Strategy::MergeJsonDeep, Some(found)) => {
            let text = merged(dest, &utf8(dest, &found.bytes)?, piece)?;
            Ok(Next::of(piece, text.into_bytes().into(), Some(found)))
        }
        (Strategy::Append, found) => {
            let text = found.map_or(Ok(String::new()), |found| utf8(dest, &found.bytes))?;
            let block = block(piece)?;
            // A file that is to be there is made, even of nothing.
            let new = found.is_none().then(|| block.clone());
            let Some(added) = new.or_else(|| append::addition(&text, &block)) else {
                let notes = vec!["its text was there already".to_owned()];
                return Ok(Next { notes, ..Next::default() });
            };
            Ok(with_added(Next::of(piece, format!("{text}{added}").into_bytes().into(), found), &added))
        }
        (Strategy::MergeJsonDeep, None) => {
            // It has to be JSON, or it could not be merged the next time.
            merged(dest, "{}", piece)?;
            Ok(Next::of(piece, Arc::clone(&piece.bytes), None))
        }
        (Strategy::Overwrite | Strategy::Preserve, found) => {
            Ok(Next::of(piece, Arc::clone(&piece.bytes), found))
        }
    }
}

/// A file that is there and was installed by the same strategy; where it was edited, it may be replaced.
fn again(
    store: &Store<'_>,
    piece: &Piece,
    fact: &Fact,
    found: &Found,
    standing: Standing,
) -> Result<Next, Cannot> {
    let same = fact.source == sha256_hex(&piece.bytes);
    match (piece.strategy, standing) {
        (Strategy::Overwrite, _) => {
            let base = based(store, fact)?;
            Ok(Next::of(piece, Arc::clone(&piece.bytes), base.as_ref()))
        }
        (_, Standing::InPlace) if same => Ok(Next::kept(piece, fact)),
        (Strategy::Preserve, Standing::InPlace) => Ok(Next::kept(piece, fact)),
        (Strategy::Preserve, _) => Ok(noted(Next::kept(piece, fact), "it was edited since and is preserved")),
        (_, Standing::Beside) if same => Ok(noted(
            Next::kept(piece, fact),
            "it was edited since, and what the profile brought is in place",
        )),
        (Strategy::MergeJsonDeep, Standing::InPlace) => fresh_over(piece, based(store, fact)?),
        (Strategy::MergeJsonDeep, _) => {
            let base = based(store, fact)?.map(|base| utf8(&piece.source, &base.bytes)).transpose()?;
            let installed = text_of(store, Part::Installed, &fact.text)?;
            let dest = piece.dest.as_str();
            let text = utf8(dest, &found.bytes)?;
            let taken = merge::take_out(&text, base.as_deref(), &installed, Force::No)
                .map_err(|bad| no_json(dest, &text, piece, bad))?;
            let without = taken.text.map(|text| Found { bytes: text.into_bytes(), mode: found.mode });
            fresh_over(piece, without)
        }
        (Strategy::Append, _) => append_again(store, piece, fact, found),
    }
}

/// [`fresh`], over a text that is not the one on the disk.
fn fresh_over(piece: &Piece, base: Option<Found>) -> Result<Next, Cannot> {
    fresh(piece, base.as_ref())
}

fn append_again(store: &Store<'_>, piece: &Piece, fact: &Fact, found: &Found) -> Result<Next, Cannot> {
    let dest = piece.dest.as_str();
    let text = utf8(dest, &found.bytes)?;
    let Some(there) = added(store, fact, &text)? else { return fresh(piece, Some(found)) };
    let old = text_of(store, Part::Installed, &fact.source)?;
    let block = block(piece)?;
    let Some((new, added)) = append::exchange(&text, &there, &old, &block) else {
        return fresh(piece, Some(found));
    };
    let without = append::take_out(&text, &there).unwrap_or_default();
    let base = match &fact.base {
        _ if sha256_hex(&found.bytes) == fact.text => based(store, fact)?,
        None if without.is_empty() => None,
        _ => Some(Found { bytes: without.into_bytes(), mode: found.mode }),
    };
    Ok(with_added(Next::of(piece, new.into_bytes().into(), base.as_ref()), &added))
}

fn with_added(mut next: Next, added: &str) -> Next {
    if let Some(fact) = &mut next.fact {
        fact.added = Some(sha256_hex(added.as_bytes()));
        next.contents.push((Part::Installed, Arc::from(added.as_bytes())));
    }
    next
}

fn noted(mut next: Next, note: &str) -> Next {
    next.notes.push(note.to_owned());
    next
}

fn merged(dest: &str, text: &str, piece: &Piece) -> Result<String, Cannot> {
    let profile = block(piece)?;
    merge::merge(text, &profile).map_err(|bad| no_json(dest, text, piece, bad))
}

/// One of two texts is not JSON.
fn no_json(dest: &str, text: &str, piece: &Piece, bad: Bad) -> Cannot {
    match bad {
        Bad::Target(problem) => Cannot::no_json(codes::PROFILE_TARGET, dest, text, problem),
        Bad::Profile(problem) => {
            let text = String::from_utf8_lossy(&piece.bytes);
            Cannot::no_json(codes::PROFILE_INVALID, &piece.source, &text, problem)
        }
    }
}

/// The text of a piece.
fn block(piece: &Piece) -> Result<String, Cannot> {
    String::from_utf8(piece.bytes.to_vec()).map_err(|_| {
        let strategy = piece.strategy.word();
        Cannot::profile(Body::new(format!("{} is not UTF-8, which {strategy} needs", piece.source)))
    })
}

fn utf8(path: &str, bytes: &[u8]) -> Result<String, Cannot> {
    String::from_utf8(bytes.to_vec()).map_err(|_| {
        Cannot::target(Body::new(format!("{path} is not UTF-8, so that nothing can be put into it")))
    })
}
