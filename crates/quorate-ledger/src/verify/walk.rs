//! The walk over all records in order. Checks each record, its place in its run's chain, and its place in the tree.
//! Also collects what the ledger's own stream records about runs: holds, imports and erasures.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use quorate_kernel::clock::parse_rfc3339;
use quorate_kernel::entropy::{hex, unhex};
use quorate_kernel::ports::ledger::{Kind, PlaybookEvent};
use quorate_kernel::record::{self, Imported, PlaybookEventData, RecordRange, RunOpened};
use quorate_protocol::Json;
use serde_json::Map;

use super::checkpoints::{Checkpoints, Rollback};
use super::divergence::{Divergence, DivergenceKind, Findings, LedgerPart};
use super::key_changes::LedgerRecord;
use super::pages::{MAX_GAP, Page, StoredRecord};
use super::record_check::{self, CheckedHead, Mismatch, object};
use super::runs::{Bodiless, Phase, StreamState};
use super::signatures::Jobs;
use super::tree::TreeCheck;
use super::walk_start::WalkStart;
use super::{VerifyOptions, signatures};
use crate::checkpoint::STREAM;
use crate::merkle::{self, Hash};
use crate::retention::{self, Erasure, hashes_in};
use crate::signing::run::RunKeyring;
use crate::store::index::Change;

/// The record of a composed prompt, whose text is kept with those of its shadows.
const COMPOSED: &str = PlaybookEvent::Composed.as_str();

/// Results for the report.
pub(super) struct Walk {
    pub(super) options: Arc<VerifyOptions>,
    pub(super) runs: HashMap<Box<str>, StreamState>,
    pub(super) tree: TreeCheck,
    pub(super) checkpoints: Checkpoints,
    pub(super) jobs: Jobs,
    pub(super) findings: Findings,
    /// Roots that a witness names, by size.
    pub(super) roots: BTreeMap<u64, BTreeSet<Hash>>,
    pub(super) counts: Counts,
    /// The content of the ledger's own stream about runs.
    pub(super) ledger_facts: LedgerFacts,
    /// The records of the ledger's own stream that are not checkpoints.
    pub(super) ledger_records: Vec<LedgerRecord>,
    /// Rollbacks that a person accepted.
    pub(super) rollbacks: Vec<Rollback>,
    /// Required texts, and the records that name each.
    pub(super) texts: HashMap<Hash, Vec<(Box<str>, u64)>>,
    /// The stored texts, and whether a record names each.
    pub(super) text_names: HashMap<Hash, bool>,
    /// The number of records before the start.
    pub(super) started_after: u64,
    /// Whether a record could not be read, so that the tables cannot be rebuilt.
    pub(super) stopped: bool,
    /// The last passed position.
    seq: u64,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) records: u64,
    pub(super) erased: u64,
    pub(super) signed_runs: u64,
    /// The number of unsigned records other than checkpoints.
    pub(super) unsigned: u64,
    /// Those after the last signed checkpoint: their number, and the position of the first.
    pub(super) unproven: u64,
    pub(super) unproven_from: u64,
}

impl Counts {
    fn count(&mut self, stored: &StoredRecord, place: u64) {
        self.records += 1;
        if stored.signatures.is_empty() && stored.kind != Kind::Checkpoint.as_str() {
            self.unsigned += 1;
            self.unproven += 1;
            if self.unproven == 1 {
                self.unproven_from = place;
            }
        }
    }
}

/// The content of the ledger's own stream about runs.
#[derive(Default)]
pub(super) struct LedgerFacts {
    pub(super) held: BTreeSet<String>,
    pub(super) imported: BTreeSet<String>,
    /// Records whose bodies were erased, by run.
    erased: BTreeMap<String, Vec<Range<u64>>>,
    /// Erased texts, by SHA-256.
    pub(super) erased_texts: BTreeSet<String>,
    /// Runs with erasures from before their import.
    pub(super) erased_elsewhere: BTreeSet<String>,
}

impl LedgerFacts {
    /// Applies a hold, a release or an import.
    pub(super) fn apply(&mut self, kind: &str, data: &Map<String, Json>) {
        match Change::from_record(kind, 0, data) {
            Some(Change::Held { run }) => drop(self.held.insert(run)),
            Some(Change::Released { run }) => drop(self.held.remove(&run)),
            Some(Change::Imported { runs }) => {
                self.imported.extend(runs);
                // Imported records may have been erased in their ledger.
                let imported: Imported = record::read(data).unwrap_or_default();
                for (run, records) in imported.erased {
                    let records = records.into_iter().filter_map(RecordRange::range);
                    self.erased.entry(run.clone()).or_default().extend(records);
                    self.erased_elsewhere.insert(run);
                }
            }
            _ => {}
        }
    }

    pub(super) fn erase(&mut self, Erasure { run, records, texts, .. }: Erasure) {
        self.erased.entry(run).or_default().extend(records);
        self.erased_texts.extend(texts);
    }

    pub(super) fn is_erased(&self, run: &str, n: u64) -> bool {
        self.erased.get(run).is_some_and(|erased| erased.iter().any(|range| range.contains(&n)))
    }
}

impl Walk {
    /// Begins a walk.
    pub(super) fn new(options: Arc<VerifyOptions>, start: WalkStart) -> Self {
        let WalkStart { tree, seals: checkpoints, runs, .. } = start;
        Walk {
            options,
            runs,
            started_after: tree.size(),
            stopped: false,
            seq: tree.size(),
            tree,
            checkpoints,
            jobs: Jobs::default(),
            findings: Findings::default(),
            roots: BTreeMap::new(),
            counts: Counts::default(),
            ledger_facts: LedgerFacts::default(),
            ledger_records: Vec::new(),
            rollbacks: Vec::new(),
            texts: HashMap::new(),
            text_names: HashMap::new(),
        }
    }

    /// Starts after this number of records without checking their tree.
    pub(super) fn starting_at(self, place: u64) -> Self {
        Walk { started_after: place, seq: place, ..self }
    }

    /// The last passed position.
    pub(super) fn seq(&self) -> u64 {
        self.seq
    }

    /// Walks over a page.
    pub(super) fn page(&mut self, page: &Page) {
        for stored in &page.records {
            self.record(stored, page);
        }
        if let Some(why) = &page.error {
            self.stopped = true;
            let what = format!("cannot read any records from here on: {why}");
            self.findings.add(Divergence::changed(LedgerPart::Record, what).at_seq(self.seq + 1));
        }
        self.jobs.run_if_full(&mut self.findings);
    }

    /// Passes the empty positions before a row; `None` if the row's position is not positive.
    fn advance_to(&mut self, seq: i64, page: &Page) -> Option<u64> {
        let Some(seq) = u64::try_from(seq).ok().filter(|seq| *seq > self.seq) else {
            let what = format!("a row is at the impossible position {seq}");
            self.findings.add(Divergence::inserted(LedgerPart::Record, what).at_seq(0));
            return None;
        };
        let missing = self.seq + 1..seq;
        if !missing.is_empty() {
            let what = match missing.end - missing.start {
                1 => "the record at this place is missing".to_owned(),
                many => format!("the records at {many} places are missing"),
            };
            let divergence = Divergence::removed(LedgerPart::Record, what).at_seq(missing.start);
            self.findings.add(divergence.up_to_seq(missing.end - 1));
            for place in missing.take(usize::try_from(MAX_GAP).unwrap_or(usize::MAX)) {
                self.check_witness_roots();
                self.tree.push_missing(page.leaf(place));
            }
            if seq - self.seq > MAX_GAP {
                self.tree.push_missing(None);
            }
        }
        Some(seq)
    }

    /// Compares the tree with a witness's root of the same size.
    fn check_witness_roots(&mut self) {
        if let Some(roots) = self.roots.remove(&self.tree.size()) {
            let subject = format!("the witness's checkpoint of {} records", self.tree.size());
            for root in roots {
                self.tree.check_root(&root, LedgerPart::Witness, &subject, &mut self.findings);
            }
        }
    }

    fn record(&mut self, stored: &StoredRecord, page: &Page) {
        let Some(place) = self.advance_to(stored.seq, page) else { return };
        self.check_witness_roots();
        self.counts.count(stored, place);
        let leaf = merkle::leaf(stored.head.as_bytes());
        let in_tree = page.leaf(place);
        let checked = record_check::check(stored);
        let next = |run: &str| self.runs.get(run).map_or(0, |state| state.next);
        let (run, n) = match &checked {
            // Its head is hashed, the columns beside it are not.
            Err(Mismatch { head: Some(head), .. }) if i64::try_from(next(&stored.run)) != Ok(stored.n) => {
                (head.run.clone(), head.n)
            }
            _ => (stored.run.clone(), stored.n.unsigned_abs()),
        };
        let next = next(&run);
        if let Some((kind, at, what)) = self.chain_break(&run, n, next, &checked) {
            // The tree tells best why a record is not the one that was sealed at its position.
            if checked.is_err() || !self.tree.differs(&leaf, in_tree.as_ref()) {
                self.findings.add(Divergence::new(kind, LedgerPart::Record, what).at(&run, at, place));
            }
        }
        if n >= next {
            self.state(&run).advance(n, leaf, place);
        }
        let at_ms = match &checked {
            Ok(head) => Some(head.at_ms),
            Err(mismatch) => mismatch.head.as_ref().and_then(|head| parse_rfc3339(&head.at)),
        };
        let data = stored.data.as_deref().map(object);
        if let Some(at_ms) = at_ms {
            let about = signatures::Record {
                run: &run,
                n,
                at_ms,
                leaf,
                seq: place,
                sealed_ms: self.checkpoints.signed_ms,
            };
            self.check_signatures(stored, &about, data.as_ref().and_then(|data| data.as_ref().ok()));
        }
        match checked {
            Ok(head) => self.interpret(stored, n, head.at_ms, place, data),
            Err(_) => self.state(&run).row_unknown = true,
        }
        self.seq = place;
        self.tree.push(&run, n, leaf, in_tree);
    }

    /// Why a record does not continue its run: kind, number of the record that it is about, and what is wrong.
    fn chain_break(
        &self,
        run: &str,
        n: u64,
        next: u64,
        checked: &Result<CheckedHead, Mismatch>,
    ) -> Option<(DivergenceKind, u64, String)> {
        let state = self.runs.get(run);
        match checked {
            _ if n < next => Some((DivergenceKind::Inserted, n, format!("a record {run}/{n} precedes it"))),
            Err(mismatch) => Some((DivergenceKind::Changed, n, mismatch.what.clone())),
            Ok(_) if n > next => {
                Some((DivergenceKind::Removed, next, format!("{run}/{next} is missing before {run}/{n}")))
            }
            Ok(head) if head.prev == state.and_then(|state| state.leaf) => None,
            // The preceding record was changed.
            Ok(_) if state.is_some_and(|state| self.findings.has_record_at(state.seq)) => None,
            Ok(_) => {
                let what = match n {
                    0 => "the first record of a run names a predecessor".to_owned(),
                    _ => format!(
                        "it does not name the hash of {run}/{} before it: one of the two was changed",
                        n - 1
                    ),
                };
                Some((DivergenceKind::Changed, n, what))
            }
        }
    }

    fn state(&mut self, run: &str) -> &mut StreamState {
        if !self.runs.contains_key(run) {
            self.runs.insert(run.into(), StreamState::default());
        }
        // It was inserted by the line above.
        self.runs.entry(run.into()).or_default()
    }

    fn check_signatures(
        &mut self,
        stored: &StoredRecord,
        about: &signatures::Record<'_>,
        data: Option<&Map<String, Json>>,
    ) {
        let signatures::Record { run, n, leaf, seq, .. } = *about;
        if run == STREAM {
            if stored.kind != Kind::Checkpoint.as_str() {
                let keys = self.checkpoints.keys(&self.options);
                let signatures = stored.signatures.clone();
                self.ledger_records.push(LedgerRecord { n, seq, leaf, signatures, keys });
            } else if let Some((key, _)) = stored.signatures.first() {
                let what = format!(
                    "a checkpoint must be signed by its note only, but its record has a signature of `{key}`"
                );
                self.findings.add(Divergence::inserted(LedgerPart::Signature, what).at(run, n, seq));
            }
            return;
        }
        let opened = data.filter(|_| n == 0 && stored.kind == Kind::RunOpened.as_str());
        let Walk { runs, options, jobs, findings, counts, .. } = self;
        let Some(state) = runs.get_mut(run) else { return };
        if n == 0 {
            state.signed = !stored.signatures.is_empty();
            state.keyring = opened.and_then(RunKeyring::from_opened).map(Arc::new);
            counts.signed_runs += u64::from(state.signed);
        }
        if stored.kind == Kind::Keyring.as_str() {
            signatures::extend_run_keys(state, (run, n, seq), data, options, findings);
        }
        signatures::check(state, about, &stored.signatures, options, jobs, findings);
    }

    /// Applies a record to its run and to the ledger.
    fn interpret(
        &mut self,
        stored: &StoredRecord,
        n: u64,
        at_ms: i64,
        place: u64,
        data: Option<Result<Map<String, Json>, String>>,
    ) {
        let StoredRecord { run, kind, .. } = stored;
        let data = data.transpose().unwrap_or_else(|what| {
            self.findings.add(Divergence::changed(LedgerPart::Record, what).at(run, n, place));
            None
        });
        if !self.text_names.is_empty() {
            for hash in stored.data.iter().flat_map(|data| hashes_in(data)).filter_map(unhex) {
                if let Some(is_named) = self.text_names.get_mut(&hash) {
                    *is_named = true;
                }
            }
        }
        let state = self.state(run);
        if stored.data.is_none() {
            state.note_bodiless(kind, n, at_ms, place);
        }
        if n == 0 {
            state.opened = Some(place);
        }
        let unexpected = state.apply(run, n, kind, at_ms, data.as_ref()).err();
        self.counts.erased += u64::from(stored.data.is_none());
        if let Some(what) = unexpected {
            let kind = if n == 0 { DivergenceKind::Changed } else { DivergenceKind::Inserted };
            self.findings.add(Divergence::new(kind, LedgerPart::Record, what).at(run, n, place));
        }
        let Some(data) = data else { return };
        if kind == Kind::RunOpened.as_str() {
            let opened: RunOpened = record::read(&data).unwrap_or_default();
            self.state(run).note_opened(&opened);
            self.note_texts(run, n, opened.inputs.iter().map(|input| &*input.sha256));
            if let Some(what) = opened.input_mismatch() {
                self.findings.add(Divergence::changed(LedgerPart::Input, what).at(run, n, place));
            }
        } else if kind == Kind::RunEnded.as_str() {
            if let Err(what) = self.state(run).check_restated(&data) {
                self.findings.add(Divergence::changed(LedgerPart::Record, what).at(run, n, place));
            }
        } else if kind == COMPOSED {
            let composed: PlaybookEventData = record::read(&data).unwrap_or_default();
            let shadows = composed.shadows.iter().flat_map(Map::values);
            let shadows = shadows.filter_map(|shadow| shadow["sha256"].as_str());
            self.note_texts(run, n, shadows.chain(composed.sha256.as_deref()));
        }
        if run == STREAM {
            self.ledger_record(kind, n, at_ms, place, &data);
        }
    }

    /// Collects the texts that a record requires: a run's subject, and composed prompts.
    fn note_texts<'a>(&mut self, run: &str, n: u64, texts: impl Iterator<Item = &'a str>) {
        for name in texts.filter_map(unhex) {
            self.texts.entry(name).or_default().push((run.into(), n));
        }
    }

    /// Ends the walk over the records.
    pub(super) fn finish_records(&mut self) {
        self.check_witness_roots();
        self.jobs.run(&mut self.findings);
    }

    /// Open runs, in the order in which they were opened.
    pub(super) fn open_runs(&self) -> Vec<&str> {
        let open = self.runs.iter().filter(|(_, state)| matches!(state.phase, Phase::Open | Phase::Decided));
        let open: BTreeSet<_> = open.map(|(run, state)| (state.opened, &**run)).collect();
        open.into_iter().map(|(_, run)| run).collect()
    }
}

impl Walk {
    fn ledger_record(&mut self, kind: &str, n: u64, at_ms: i64, place: u64, data: &Map<String, Json>) {
        if kind == Kind::Checkpoint.as_str() {
            let tree = self.checkpoints.add(&self.options, (n, at_ms, place), data, &mut self.findings);
            if self.checkpoints.signed_size + 1 == place {
                self.counts.unproven = 0;
            }
            let keys = self.checkpoints.keys(&self.options);
            self.ledger_records.iter_mut().filter(|record| record.keys.is_empty()).for_each(|record| {
                record.keys.clone_from(&keys);
            });
            if let Some(tree) = tree.filter(|tree| tree.size == self.tree.size()) {
                let subject = format!("the checkpoint {STREAM}/{n} of {} records", tree.size);
                self.tree.check_root(&tree.root, LedgerPart::Record, &subject, &mut self.findings);
            }
        } else if kind == Kind::RolledBack.as_str() {
            self.rollbacks.push(Rollback::from_data(n, data));
        } else if kind == Kind::Erased.as_str() {
            let erased = Erasure::from_data(data).and_then(|erasure| self.apply_erasure(erasure, at_ms));
            if let Err(what) = erased {
                let what = format!("the erasure is not allowed: {what}");
                self.findings.add(Divergence::inserted(LedgerPart::Record, what).at(STREAM, n, place));
            }
        } else {
            self.ledger_facts.apply(kind, data);
        }
    }

    /// Checks an erasure. The bodies that it names count as erased if hold, retention and time allowed that when it was
    /// recorded.
    fn apply_erasure(&mut self, erasure: Erasure, at_ms: i64) -> Result<(), String> {
        let Erasure { run, records, texts, .. } = &erasure;
        let about = |walk: &Walk, run: &str| {
            let state = walk.runs.get(run)?;
            let (held, imported) =
                (walk.ledger_facts.held.contains(run), walk.ledger_facts.imported.contains(run));
            Some((state.erasure_target(held, imported), state.phase))
        };
        match about(self, run) {
            // The state of a run that started before the walk is unknown.
            Some((_, Phase::Unknown)) => {}
            None if self.started_after > 0 => {}
            None => return Err(format!("the ledger has no run {run}")),
            Some((subject, phase)) => {
                retention::check_allowed(&erasure, &subject, at_ms)?;
                let state = &self.runs[run.as_str()];
                if let Some(past) = records.iter().find(|range| range.end > state.next) {
                    return Err(format!("the ledger has no record {run}/{}", past.end - 1));
                }
                if phase == Phase::Stream {
                    check_age(state, run, &erasure, at_ms)?;
                }
            }
        }
        for name in texts.iter().filter_map(|text| unhex(text)) {
            let needed = self.texts.get(&name).into_iter().flatten().find(|(other, _)| {
                let known = about(self, other).filter(|(_, phase)| *phase != Phase::Unknown);
                **other != **run
                    && known.is_some_and(|(other, _)| !retention::may_free_text(&erasure, &other, at_ms))
            });
            if let Some((other, _)) = needed {
                return Err(format!("the text {} is needed by {other}", hex(&name)));
            }
            self.texts.remove(&name);
        }
        self.ledger_facts.erase(erasure);
        Ok(())
    }
}

/// Whether an erasure's records of a conversation were settled and old enough when it was recorded.
fn check_age(state: &StreamState, run: &str, erasure: &Erasure, at_ms: i64) -> Result<(), String> {
    let Some(days) = erasure.days else { return Ok(()) };
    let named = |n: u64| erasure.records.iter().any(|range| range.contains(&n));
    let young = |record: &&Bodiless| {
        named(record.n)
            && (record.n >= state.last_settled || !retention::is_old_enough(days, record.at_ms, at_ms))
    };
    match state.bodiless.iter().find(young) {
        Some(Bodiless { n, .. }) => Err(format!("{run}/{n} was not settled, or not {days} days old")),
        None => Ok(()),
    }
}
