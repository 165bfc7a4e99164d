//! The walk over all records in order. Checks each record, its place in its run's chain, and its place in the tree.
//! Also collects what the ledger's own stream records about runs: holds, imports and erasures.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use quorate_kernel::ports::ledger::{Kind, PlaybookEvent};
use quorate_kernel::record::{self, Imported, PlaybookEventData, RecordRange, RunOpened};
use quorate_protocol::Json;
use serde_json::Map;

use super::checkpoints::{Checkpoints, Rollback};
use super::divergence::{Divergence, DivergenceKind, Findings, LedgerPart};
use super::key_changes::LedgerSignatures;
use super::pages::{Page, PageRow, StoredRecord};
use super::record_check::{self, HeadMatcher};
use super::runs::{Phase, StreamState, affects_row};
use super::signatures::Jobs;
use super::tree::TreeCheck;
use super::{VerifyOptions, signatures};
use crate::checkpoint::STREAM;
use crate::merkle::{self, Hash};
use crate::retention::{self, Erasure};
use crate::signing::run::RunKeyring;
use crate::store::index::Change;

/// The longest range of empty positions that the stored tree is searched for.
const MAX_GAP: u64 = 1 << 16;
/// The most breaks in the chains of runs, and the most ranges without records, that are investigated.
const MAX_EXAMINED: usize = 1000;

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
    /// The signatures of the ledger's own stream.
    pub(super) ledger_signatures: LedgerSignatures,
    /// Rollbacks that a person accepted.
    pub(super) rollbacks: Vec<Rollback>,
    /// Required texts, and the records that name each.
    pub(super) texts: HashMap<Hash, Vec<(Box<str>, u64)>>,
    /// The number of records before the start.
    pub(super) started_after: u64,
    head_matcher: HeadMatcher,
    /// The last passed position.
    seq: u64,
    gaps: Vec<Range<u64>>,
    jumps: Vec<ChainJump>,
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
    pub(super) erased: BTreeMap<String, Vec<Range<u64>>>,
    /// Runs with erasures from before their import.
    pub(super) erased_elsewhere: BTreeSet<String>,
}

/// A record that does not follow the preceding one of its run.
struct ChainJump {
    run: Box<str>,
    missing: Range<u64>,
    seq: u64,
    late: bool,
}

impl Walk {
    /// The position before the first walked record, which follow those of `tree`.
    pub(super) fn new(
        options: Arc<VerifyOptions>,
        tree: TreeCheck,
        seals: Checkpoints,
        runs: HashMap<Box<str>, StreamState>,
    ) -> Self {
        let checkpoints = seals.with_options(&options);
        Walk {
            options,
            runs,
            started_after: tree.size(),
            seq: tree.size(),
            tree,
            checkpoints,
            jobs: Jobs::default(),
            findings: Findings::default(),
            roots: BTreeMap::new(),
            counts: Counts::default(),
            ledger_facts: LedgerFacts::default(),
            ledger_signatures: LedgerSignatures::default(),
            rollbacks: Vec::new(),
            texts: HashMap::new(),
            head_matcher: HeadMatcher::default(),
            gaps: Vec::new(),
            jumps: Vec::new(),
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
        for line in &page.rows {
            match line {
                PageRow::Record(stored) => self.record(stored, page),
                PageRow::Unreadable { seq, why } => {
                    if let Some(place) = self.advance_to(*seq, page) {
                        let what = format!("it cannot be read: {why}");
                        self.findings.add(Divergence::changed(LedgerPart::Record, what).at_seq(place));
                        self.check_witness_roots();
                        self.seq = place;
                        self.tree.push_missing(page.leaf(place), &mut self.findings);
                    }
                }
            }
        }
        if let Some(why) = &page.error {
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
            if self.gaps.len() < MAX_EXAMINED {
                self.gaps.push(missing.clone());
            }
            for place in missing.take(usize::try_from(MAX_GAP).unwrap_or(usize::MAX)) {
                self.check_witness_roots();
                self.tree.push_missing(page.leaf(place), &mut self.findings);
            }
            if seq - self.seq > MAX_GAP {
                self.tree.push_missing(None, &mut self.findings);
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
        let sound = in_tree == Some(leaf);
        let fits = match self.runs.get(&*stored.run) {
            Some(state) if i64::try_from(state.next) == Ok(stored.n) => {
                self.head_matcher.matched_time(stored, state.leaf.as_ref())
            }
            None if stored.n == 0 => self.head_matcher.matched_time(stored, None),
            _ => None,
        };
        match fits {
            Some(at_ms) => {
                let n = stored.n.unsigned_abs();
                self.state(&stored.run).advance(n, leaf, place, sound);
                self.check_signatures(stored, &stored.run, n, at_ms, leaf, place);
                self.interpret(stored, n, at_ms, place);
            }
            None => self.irregular_record(stored, leaf, place, sound),
        }
        self.seq = place;
        self.tree.push(&stored.run, stored.n.unsigned_abs(), leaf, in_tree, &mut self.findings);
    }

    fn state(&mut self, run: &str) -> &mut StreamState {
        if !self.runs.contains_key(run) {
            self.runs.insert(run.into(), StreamState::new());
        }
        // It was inserted by the line above.
        self.runs.entry(run.into()).or_insert_with(StreamState::new)
    }

    /// Reports a record that does not follow in its run, and continues after it.
    fn irregular_record(&mut self, stored: &StoredRecord, leaf: Hash, place: u64, sound: bool) {
        let mismatch = record_check::explain_mismatch(stored);
        let next = |run: &str| self.runs.get(run).map_or(0, |state| state.next);
        let row_fits = i64::try_from(next(&stored.run)) == Ok(stored.n);
        let (run, n) = match &mismatch.head {
            Some(head) if !row_fits => (head.run.clone(), head.n),
            _ => (stored.run.clone(), stored.n.unsigned_abs()),
        };
        let say = |kind, what: String| Divergence::new(kind, LedgerPart::Record, what).at(&run, n, place);
        let next = next(&run);
        let late = n < next && self.runs.get_mut(&*run).is_some_and(|state| state.take_late(n));
        if late {
            // The divergence at its expected position covers it.
            for jump in self.jumps.iter_mut().filter(|jump| *jump.run == run && jump.missing.contains(&n)) {
                jump.late = true;
            }
            let what = format!("it is after {run}/{}", next - 1);
            self.findings.add(say(DivergenceKind::Reordered, what));
        } else if n < next {
            let what = format!("a record {run}/{n} precedes it");
            self.findings.add(say(DivergenceKind::Inserted, what));
        } else {
            if let Some(what) = &mismatch.what {
                self.findings.add(say(DivergenceKind::Changed, what.clone()));
            } else if n == next {
                self.broken_link(&run, n, place, sound);
            }
            if n > next && self.jumps.len() < MAX_EXAMINED {
                self.jumps.push(ChainJump {
                    run: run.as_str().into(),
                    missing: next..n,
                    seq: place,
                    late: false,
                });
            }
            self.state(&run).advance(n, leaf, place, sound);
        }
        let at_ms = mismatch.head.as_ref().and_then(|head| quorate_kernel::clock::parse_rfc3339(&head.at));
        if let Some(at_ms) = at_ms {
            self.check_signatures(stored, &run, n, at_ms, leaf, place);
        }
        let whole = mismatch.what.is_none() && at_ms.is_some();
        match (whole, at_ms) {
            (true, Some(at_ms)) => self.interpret(stored, n, at_ms, place),
            _ => self.state(&run).row_unknown = true,
        }
    }

    /// Investigates a record that does not name the hash of the preceding one: one of the two was changed.
    fn broken_link(&mut self, run: &str, n: u64, place: u64, sound: bool) {
        let Some(state) = self.runs.get(run) else {
            let what = "the first record of a run names a predecessor";
            self.findings.add(Divergence::changed(LedgerPart::Record, what).at(run, n, place));
            return;
        };
        if self.findings.has_record_at(state.seq) {
            return;
        }
        let before_is_sealed = state.matches_tree && !sound;
        let divergence = if before_is_sealed || state.seq == 0 {
            let what = "it does not name its predecessor's hash";
            Divergence::changed(LedgerPart::Record, what).at(run, n, place)
        } else {
            let what = format!("the record after it ({run}/{n}) names another hash than its own");
            Divergence::changed(LedgerPart::Record, what).at(run, n - 1, state.seq)
        };
        self.findings.add(divergence);
    }

    fn check_signatures(
        &mut self,
        stored: &StoredRecord,
        run: &str,
        n: u64,
        at_ms: i64,
        leaf: Hash,
        place: u64,
    ) {
        if run == STREAM {
            if stored.kind != Kind::Checkpoint.as_str() {
                let keys = self.checkpoints.keys();
                self.ledger_signatures.add_record(
                    stored,
                    (n, place, leaf),
                    &keys,
                    &mut self.jobs,
                    &mut self.findings,
                );
            } else if let Some((key, _)) = stored.signatures.first() {
                let what = format!(
                    "a checkpoint must be signed by its note only, but its record has a signature of `{key}`"
                );
                self.findings.add(Divergence::inserted(LedgerPart::Signature, what).at(run, n, place));
            }
            return;
        }
        let is = |kind: Kind| stored.kind == kind.as_str();
        let opens = n == 0 && is(Kind::RunOpened);
        let data = match opens || is(Kind::Keyring) {
            true => stored.data.as_deref().and_then(object),
            false => None,
        };
        let audit = opens.then(|| data.as_ref().and_then(RunKeyring::from_opened).map(Arc::new));
        let signed = !stored.signatures.is_empty();
        let state = self.state(run);
        if n == 0 {
            (state.signed, state.keyring) = (signed, audit.flatten());
            self.counts.signed_runs += u64::from(signed);
        }
        let Some(state) = self.runs.get_mut(run) else { return };
        if is(Kind::Keyring) {
            signatures::extend_run_keys(
                state,
                (run, n, place),
                data.as_ref(),
                &self.options,
                &mut self.findings,
            );
        }
        let sealed_ms = self.checkpoints.signed_ms;
        let about = signatures::Record { run, n, at_ms, leaf, seq: place, sealed_ms };
        signatures::check(
            state,
            &about,
            &stored.signatures,
            &self.options,
            &mut self.jobs,
            &mut self.findings,
        );
    }

    /// Applies a record to its run and to the ledger.
    fn interpret(&mut self, stored: &StoredRecord, n: u64, at_ms: i64, place: u64) {
        let StoredRecord { run, kind, .. } = stored;
        let ours = run == STREAM;
        let data = match &stored.data {
            Some(data) if ours || affects_row(kind) || kind == COMPOSED => {
                let data = object(data);
                if data.is_none() {
                    let what = "its data is not a canonical JSON object".to_owned();
                    self.findings.add(Divergence::changed(LedgerPart::Record, what).at(run, n, place));
                }
                data
            }
            Some(data) => {
                if let Err(error) = record_check::check_object(data) {
                    self.findings.add(
                        Divergence::changed(LedgerPart::Record, format!("its data cannot be read: {error}"))
                            .at(run, n, place),
                    );
                }
                None
            }
            None => None,
        };
        let state = self.state(run);
        if stored.data.is_none() {
            state.note_bodiless(kind, n, at_ms, place);
        }
        if n == 0 {
            state.opened = Some(place);
        }
        let unexpected = state.apply(run, n, kind, at_ms, data.as_ref()).err();
        let erased = u64::from(stored.data.is_none());
        self.counts.erased += erased;
        if let Some(what) = unexpected {
            let kind = if n == 0 { DivergenceKind::Changed } else { DivergenceKind::Inserted };
            self.findings.add(Divergence::new(kind, LedgerPart::Record, what).at(run, n, place));
        }
        let Some(data) = data else { return };
        if kind == Kind::RunOpened.as_str() {
            let opened: RunOpened = record::read(&data).unwrap_or_default();
            self.note_texts(run, n, opened.inputs.iter().map(|input| &*input.sha256));
            if let Some(what) = opened.input_mismatch() {
                self.findings.add(Divergence::changed(LedgerPart::Input, what).at(run, n, place));
            }
        } else if kind == COMPOSED {
            let composed: PlaybookEventData = record::read(&data).unwrap_or_default();
            let shadows = composed.shadows.iter().flat_map(Map::values);
            let shadows = shadows.filter_map(|shadow| shadow["sha256"].as_str());
            self.note_texts(run, n, shadows.chain(composed.sha256.as_deref()));
        }
        if ours {
            self.ledger_record(kind, n, at_ms, place, &data);
        }
    }

    /// Collects the texts that a record requires: a run's subject, and composed prompts.
    fn note_texts<'a>(&mut self, run: &str, n: u64, texts: impl Iterator<Item = &'a str>) {
        for name in texts.filter_map(quorate_kernel::entropy::unhex) {
            self.texts.entry(name).or_default().push((run.into(), n));
        }
    }

    /// Reports missing records after the last one, as far as they are known.
    pub(super) fn finish_records(&mut self, index: &[MissingRecord]) {
        self.check_witness_roots();
        self.jobs.run(&mut self.findings);
        let mut jumps = std::mem::take(&mut self.jumps);
        let mut others = index.iter();
        for gap in std::mem::take(&mut self.gaps) {
            let what = match gap.end - gap.start {
                1 => "the record at this place is missing".to_owned(),
                many => format!("the records at {many} places are missing"),
            };
            let divergence =
                Divergence::removed(LedgerPart::Record, what).at_seq(gap.start).up_to_seq(gap.end - 1);
            // The next record of a run names a missing one. The index names a missing last record or a missing run.
            let jump = jumps.iter().position(|jump| !jump.late && jump.seq >= gap.end);
            let divergence = match jump {
                Some(at) => {
                    let ChainJump { run, missing, seq: place, late } = jumps.swap_remove(at);
                    let explained = missing.start + (gap.end - gap.start);
                    if explained < missing.end {
                        jumps.push(ChainJump {
                            run: run.clone(),
                            missing: explained..missing.end,
                            seq: place,
                            late,
                        });
                    }
                    divergence.at_record(&run, missing.start)
                }
                None => match others.next() {
                    Some(MissingRecord { run, n }) => divergence.at_record(run, *n),
                    None => divergence,
                },
            };
            self.findings.add(divergence);
        }
        for jump in jumps {
            let ChainJump { run, missing, seq: place, late } = jump;
            let (first, next) = (missing.start, missing.end);
            let what = format!("{run}/{next} exists, but {run}/{first} is missing before it");
            let kind = if late { DivergenceKind::Reordered } else { DivergenceKind::Removed };
            self.findings.add(Divergence::new(kind, LedgerPart::Record, what).at(&run, first, place));
        }
    }

    /// Open runs, in the order in which they were opened.
    pub(super) fn open_runs(&self) -> Vec<&str> {
        let open = self.runs.iter().filter(|(_, state)| matches!(state.phase, Phase::Open | Phase::Decided));
        let open: BTreeSet<_> = open.map(|(run, state)| (state.opened, &**run)).collect();
        open.into_iter().map(|(_, run)| run).collect()
    }
}

/// Reports a missing record that the index names.
pub(super) struct MissingRecord {
    pub(super) run: String,
    pub(super) n: u64,
}

/// The data of a record; `None` if it has duplicate keys, because readers could take either value.
pub(super) fn object(data: &str) -> Option<Map<String, Json>> {
    record_check::check_object(data).ok()?;
    serde_json::from_str(data).ok()
}

impl Walk {
    fn ledger_record(&mut self, kind: &str, n: u64, at_ms: i64, place: u64, data: &Map<String, Json>) {
        if kind == Kind::Checkpoint.as_str() {
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
            // Imported records may have been erased in their ledger.
            let imported = Some(data).filter(|_| kind == Kind::Imported.as_str());
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
        for name in texts.iter().filter_map(|text| quorate_kernel::entropy::unhex(text)) {
            let needed = self.texts.get(&name).into_iter().flatten().find(|(other, _)| {
                let known = about(self, other).filter(|(_, phase)| *phase != Phase::Unknown);
                **other != **run
                    && known.is_some_and(|(other, _)| !retention::may_free_text(&erasure, &other, at_ms))
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

/// Whether an erasure's records of a conversation were settled and old enough when it was recorded.
fn check_age(state: &StreamState, run: &str, erasure: &Erasure, at_ms: i64) -> Result<(), String> {
    let Some(days) = erasure.days else { return Ok(()) };
    let named = |n: u64| erasure.records.iter().any(|range| range.contains(&n));
    let young = |(n, said_ms): &&(u64, i64)| {
        named(*n) && (*n >= state.last_settled || !retention::is_old_enough(days, *said_ms, at_ms))
    };
    match state.bodiless_times.iter().find(young) {
        Some((n, _)) => Err(format!("{run}/{n} was not settled, or not {days} days old")),
        None => Ok(()),
    }
}
