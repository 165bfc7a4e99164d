//! Records of the ledger's own stream: checkpoints, holds, erasures, imports, accepted rollbacks.

use quorate_kernel::ports::ledger::Kind as Word;
use quorate_kernel::record::{self, Imported, RecordRange};
use quorate_protocol::Json;
use serde_json::Map;

use super::super::divergence::{Divergence, Kind, Part};
use super::super::rollback::Rollback;
use super::super::runs::{Phase, StreamState};
use super::Walk;
use crate::checkpoint::STREAM;
use crate::retention::rules::{self, Erasure};
use crate::store::index::Change;

impl Walk {
    pub(super) fn ledger_record(
        &mut self,
        kind: &str,
        n: u64,
        at_ms: i64,
        place: u64,
        data: &Map<String, Json>,
    ) {
        if kind == Word::Checkpoint.as_str() {
            let tree = self.checkpoints.add((n, at_ms, place), data, &mut self.jobs, &mut self.findings);
            if self.checkpoints.signed_size + 1 == place {
                self.counts.unproven = 0;
            }
            let keys = self.checkpoints.keys();
            if !keys.is_empty() {
                self.ledger_signatures.enqueue_pending(&keys, &mut self.jobs, &mut self.findings);
            }
            if let Some(tree) = tree.filter(|tree| tree.size == self.tree.size()) {
                let subject = format!("the checkpoint {STREAM}/{n} of {} records", tree.size);
                self.tree.check_root(&tree.root, Part::Record, &subject, &mut self.findings);
            }
        } else if kind == Word::RolledBack.as_str() {
            self.rollbacks.push(Rollback::from_data(n, data));
        } else if kind == Word::Erased.as_str() {
            let erased = Erasure::from_data(data).and_then(|erasure| self.apply_erasure(erasure, at_ms));
            if let Err(what) = erased {
                let what = format!("nothing may be erased by it: {what}");
                self.findings.add(
                    Divergence::new(Kind::Inserted, Part::Record, what).at_record(STREAM, n).at_seq(place),
                );
            }
        } else {
            // Imported records may have been erased in their ledger.
            let imported = Some(data).filter(|_| kind == Word::Imported.as_str());
            let imported: Option<Imported> = imported.and_then(|data| record::read(data).ok());
            for (run, records) in imported.into_iter().flat_map(|imported| imported.erased) {
                let records = records.into_iter().filter_map(RecordRange::range);
                self.ledger_facts.erased.entry(run.clone()).or_default().extend(records);
                self.ledger_facts.erased_elsewhere.insert(run);
            }
            match Change::from_record(kind, at_ms, data) {
                Some(Change::Held { run }) => drop(self.ledger_facts.held.insert(run)),
                Some(Change::Released { run }) => drop(self.ledger_facts.held.remove(&run)),
                Some(Change::Imported { runs }) => self.ledger_facts.imported.extend(runs),
                _ => {}
            }
        }
    }

    /// Takes an erasure: what it names counts as erased if hold, retention and time allowed that when it was recorded.
    fn apply_erasure(&mut self, erasure: Erasure, at_ms: i64) -> Result<(), String> {
        let Erasure { run, records, texts, .. } = &erasure;
        let about = |walk: &Walk, run: &str| {
            let state = walk.runs.get(run)?;
            let (held, imported) =
                (walk.ledger_facts.held.contains(run), walk.ledger_facts.imported.contains(run));
            Some((state.erasure_target(held, imported), state.phase))
        };
        match about(self, run) {
            // The state of a run that began before the walk is unknown.
            Some((_, Phase::Unknown)) => {}
            None if self.started_after > 0 => {}
            None => return Err(format!("there is no run {run}")),
            Some((subject, phase)) => {
                rules::check_allowed(&erasure, &subject, at_ms)?;
                let state = &self.runs[run.as_str()];
                if let Some(past) = records.iter().find(|range| range.end > state.next) {
                    return Err(format!("there is no record {run}/{}", past.end - 1));
                }
                if phase == Phase::Stream {
                    check_age(state, run, &erasure, at_ms)?;
                }
            }
        }
        for name in texts.iter().filter_map(|text| quorate_kernel::entropy::unhex(text)) {
            let needed = self.texts.get(&name).into_iter().flatten().find(|(other, _)| {
                let known = about(self, other).filter(|(_, phase)| *phase != Phase::Unknown);
                **other != **run
                    && known.is_some_and(|(other, _)| !rules::may_free_text(&erasure, &other, at_ms))
            });
            if let Some((other, _)) = needed {
                return Err(format!("the text {} is needed by {other}", quorate_kernel::entropy::hex(&name)));
            }
            self.texts.remove(&name);
        }
        self.ledger_facts.erased.entry(erasure.run).or_default().extend(erasure.records);
        Ok(())
    }
}

/// Whether the records of a conversation that an erasure names were settled and of age when it was recorded.
fn check_age(state: &StreamState, run: &str, erasure: &Erasure, at_ms: i64) -> Result<(), String> {
    let Some(days) = erasure.days else { return Ok(()) };
    let named = |n: u64| erasure.records.iter().any(|range| range.contains(&n));
    let young = |(n, said_ms): &&(u64, i64)| {
        named(*n) && (*n >= state.last_settled || !rules::is_old_enough(days, *said_ms, at_ms))
    };
    match state.bodiless_times.iter().find(young) {
        Some((n, _)) => Err(format!("{run}/{n} was not settled, or not {days} days old")),
        None => Ok(()),
    }
}
