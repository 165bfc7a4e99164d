//! The copies of the last checkpoint that the ledger's own key signed, and the rollbacks that a person accepted. The roots of
//! the copies are held against the tree on the way.

use quorate_protocol::Json;
use serde_json::Map;

use super::finding::{Divergence, Kind, Part};
use super::walk::Walk;
use super::witnessed::{Witnessed, cut, note_of};
use crate::kept::Kept;

/// A rollback that a person accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollback {
    /// The number of its record in the ledger's stream.
    pub n: u64,
    /// Who accepted it.
    pub by: String,
    /// Why.
    pub reason: String,
}

impl Rollback {
    /// Reads the body of the record that says so.
    pub(super) fn of(n: u64, data: &Map<String, Json>) -> Self {
        let text = |key: &str| data.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
        Rollback { n, by: text("by"), reason: text("reason") }
    }
}

/// Holds the copies against what was walked over.
pub(super) fn check(walk: &mut Walk, kept: &Kept) -> Witnessed {
    let mut held = Witnessed::default();
    // What was kept of the one that was here says nothing of records that are another's.
    let replaced = kept.replaced.as_ref().filter(|replaced| walk.seals.origin.as_ref() != Some(replaced));
    let is_another = replaced.is_some() && walk.seals.origin.is_none();
    for copy in kept.copies.iter().filter(|_| !is_another) {
        let name = format!("the copy {}", copy.path.display());
        match &copy.note {
            Ok(note) => {
                let Some(size) = note_of(walk, note, Part::Kept, &name) else { continue };
                held.checkpoints += 1;
                held.size = held.size.max(size);
                cut(walk, size, Part::Kept, &name);
            }
            Err(why) => {
                held.torn += 1;
                let what = format!("{name} is no checkpoint that the ledger's key signed: {why}");
                walk.findings.add(Divergence::of(Kind::Changed, Part::Kept, what));
            }
        }
    }
    if let Some(origin) = replaced {
        let what = format!("the ledger {origin} was kept here, and another one is in its place");
        walk.findings.add(Divergence::of(Kind::Changed, Part::Kept, what));
    }
    if walk.options.strict && kept.copies.is_empty() {
        let what = "no checkpoint of this ledger is kept on this machine, and --strict asks for one";
        walk.findings.add(Divergence::of(Kind::Removed, Part::Kept, what));
    }
    held
}
