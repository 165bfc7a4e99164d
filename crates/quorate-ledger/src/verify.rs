//! Verifies that the ledger is unchanged since it was recorded (D2, D3), in two passes. The first walks over the records:
//! heads, chains, tree, checkpoints and signatures. The second compares the derived tables with the rows that follow from
//! the walked records. Writes nothing.
//!
//! Every single change is detected elsewhere: a record's text by its successor and the tree, the tree by the checkpoints,
//! these by their keys and by the witness. Only records cut off behind the last checkpoint that another party has seen are
//! undetectable.

mod checkpoints;
mod divergence;
mod key_changes;
mod log;
mod outside_checkpoints;
mod pages;
mod record_check;
mod runs;
pub(crate) mod shown_runs;
mod signatures;
mod tables;
mod tree;
mod walk;
mod walk_start;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::entropy::hex;
use quorate_kernel::ports::ledger::LedgerError;
use quorate_protocol::Name;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::Store;
use crate::local_checkpoints::{self as checkpoint_files, LocalCheckpoints};
use crate::merkle::TreeHead;
use crate::note::Cosigner;
use crate::signing::{ExternalKeys, PublicKey};
use crate::store::engine::Engine;
use crate::store::{CheckpointRecord, refusal};
use crate::witness::Witness;
use checkpoints::Checkpoints;
use key_changes::{check_ledger_signatures, public_keys};
use pages::{Page, Reader};
use walk::Walk;
use walk_start::WalkStart;

pub use checkpoints::Rollback;
pub use divergence::{Divergence, DivergenceKind, LedgerPart};
pub use key_changes::{AcceptedKey, KeyChangeReport};
pub(crate) use log::is_altered_line;
pub use log::{LogCheck, OtherLogs, UnknownLine};
pub use outside_checkpoints::{Cosignature, KeptCheckpoints, WitnessCheck};
pub use shown_runs::RunFinding;
pub use walk_start::CheckpointNotFound;

/// How many pages are read ahead.
const READ_AHEAD_PAGES: usize = 2;
/// How many open runs are named.
const MAX_NAMED_RUNS: usize = 20;

/// Everything that the ledger is checked against.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// The ledger's own keys: the current one and its predecessors.
    pub ledger_keys: Vec<PublicKey>,
    /// Trusted keys: each must have signed a checkpoint.
    pub trusted_keys: Vec<PublicKey>,
    /// Keys that a person is about to accept. The report lists those without a voucher instead of reporting a
    /// divergence.
    pub candidate_keys: Vec<PublicKey>,
    /// The keys that are known to sign runs.
    pub outside: ExternalKeys,
    /// A trusted checkpoint: only records after it are verified.
    pub since: Option<StartPoint>,
    /// Checkpoints kept by a witness.
    pub witness: Option<Witness>,
    /// The local copies of the last checkpoint that the ledger's own key signed; `None` if they were not read.
    pub local_checkpoints: Option<LocalCheckpoints>,
    /// A witness with an HTTP interface, and the saved copy of the last checkpoint that it signed.
    pub remote_witness: Option<(Cosigner, Option<checkpoint_files::CheckpointCopy>)>,
    /// Whether missing local checkpoints and unproven records are divergences.
    pub strict: bool,
    /// Whether the ledger is on a server. A standby that took over, or a backup, may lack the newest records.
    pub is_on_server: bool,
    /// The log whose lines are checked against the runs.
    pub log: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartPoint {
    /// The checkpoint of this size.
    Size(u64),
    /// The checkpoint with this number in the ledger's stream.
    Number(u64),
    /// A checkpoint from another party.
    Tree(TreeHead),
}

/// The version of the JSON of a [`VerifyReport`].
pub const SCHEMA: &str = "quorate.verify/v1";

/// A verification of the ledger, as `quorate ledger verify --format json` prints it
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyReport {
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// Whether nothing differs.
    pub holds: bool,
    /// The ledger's address as shown to the user.
    pub ledger: String,
    /// The ledger's origin; null before its first checkpoint.
    pub origin: Option<String>,
    /// The number of verified records.
    pub records: u64,
    /// The number of verified records with an erased body.
    pub erased: u64,
    /// The number of their runs and other streams.
    pub streams: u64,
    /// The number of texts that they name.
    pub texts: u64,
    /// The number of records of the ledger; null if a record is missing.
    pub size: Option<u64>,
    /// The root over them, in hexadecimal digits.
    pub root: Option<String>,
    /// The number of records before the start of the verification.
    pub since: u64,
    pub checkpoints: CheckpointCounts,
    pub keys: KeyChecks,
    pub signatures: SignatureCounts,
    /// The number of records that the last signed checkpoint kept on this machine covers.
    pub last_signed: Option<u64>,
    /// The local copies of the last checkpoint that the ledger's own key signed; null if they were not read.
    pub kept: Option<KeptCheckpoints>,
    /// Rollbacks that a person accepted, oldest first.
    pub rollbacks: Vec<Rollback>,
    /// The keys of the ledger that follow without a voucher.
    #[serde(rename = "accepted_keys", serialize_with = "as_accepted")]
    #[schemars(with = "Vec<AcceptedKey>")]
    pub key_changes: KeyChangeReport,
    /// The result for the witness.
    pub witness: Option<WitnessCheck>,
    /// The last checkpoint that the HTTP witness signed.
    #[serde(rename = "cosigned")]
    pub cosignature: Option<Cosignature>,
    /// The result for the log.
    pub log: Option<LogCheck>,
    pub open: OpenRuns,
    /// The number of divergences.
    #[serde(rename = "found")]
    pub divergence_count: u64,
    /// Divergences, ordered by position in the ledger; at most a hundred.
    pub divergences: Vec<Divergence>,
    /// The duration of checking records, without signatures.
    #[serde(skip)]
    pub records_duration: Duration,
    /// The duration of checking signatures.
    #[serde(skip)]
    pub signatures_duration: Duration,
}

/// The checkpoints of the ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct CheckpointCounts {
    pub count: u64,
    /// The number of unsigned checkpoints.
    pub unsigned: u64,
    /// The number of records that the last checkpoint covers.
    pub sealed: u64,
    /// The number of records that the last signed checkpoint covers.
    pub signed: u64,
    /// The number of records after the last checkpoint, excluding its own record.
    pub unsealed: u64,
    /// The number of unsigned records other than checkpoints after the last signed checkpoint. Any user who can write to
    /// the ledger may have added them.
    pub unproven: u64,
}

/// The keys that signed checkpoints.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct KeyChecks {
    /// Whether the ledger's own key signed the last signed checkpoint; null without such a key or checkpoint.
    pub own: Option<bool>,
    /// Whether each of the given keys signed a checkpoint.
    pub given: Vec<bool>,
}

/// The signatures over records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct SignatureCounts {
    /// The number of signed runs.
    pub runs: u64,
    /// The number of signatures.
    pub count: u64,
    /// The number of signed runs whose keys only their own first record names.
    pub self_vouched: u64,
    /// The number of unsigned records in the ledger's own stream, as long as no key is known that should have signed
    /// them.
    pub unsigned_own: u64,
    /// The number of unsigned records other than checkpoints.
    pub unsigned_records: u64,
}

/// Runs that are not decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct OpenRuns {
    pub count: u64,
    /// Some of them, first opened first.
    pub runs: Vec<Name>,
}

fn as_accepted<S: Serializer>(changes: &KeyChangeReport, serializer: S) -> Result<S::Ok, S::Error> {
    changes.accepted.serialize(serializer)
}

impl VerifyReport {
    /// Adds divergences that were found outside of the ledger.
    pub fn add(&mut self, divergences: Vec<Divergence>) {
        self.divergence_count += divergences.len() as u64;
        self.divergences.extend(divergences);
        self.holds = self.divergence_count == 0;
    }
}

/// Why a verification cannot run.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] LedgerError),
    /// The checkpoint to start from does not exist.
    #[error(transparent)]
    Since(#[from] CheckpointNotFound),
}

/// Verifies a ledger.
///
/// # Errors
/// [`VerifyError`]. Divergences of the ledger's content are in the report.
#[crate::boxed]
pub async fn verify(store: &Store, options: VerifyOptions) -> Result<VerifyReport, VerifyError> {
    let options = Arc::new(options);
    let (mut report, mut walk) = {
        let mut connection = store.writer().await;
        let engine = connection.engine().await.map_err(|error| store.error(error))?;
        engine.begin_read().await.map_err(|error| store.error(error))?;
        let verified = verify_snapshot(engine, &options).await;
        // Nothing was written: an open transaction ends with the connection.
        let _ = engine.execute_raw("ROLLBACK").await;
        verified.map_err(|error| store.error(error))??
    };
    if let Some(path) = &options.log {
        report.log = Some(log::check(store, path, &mut walk).await?);
    }
    (report.divergences, report.divergence_count) = std::mem::take(&mut walk.findings).into_parts();
    report.holds = report.divergence_count == 0;
    Ok(report)
}

async fn verify_snapshot(
    engine: &mut Engine,
    options: &Arc<VerifyOptions>,
) -> Result<Result<(VerifyReport, Walk), CheckpointNotFound>, sqlx::Error> {
    let began = Instant::now();
    let begin = match &options.since {
        None => WalkStart::default(),
        Some(since) => match walk_start::after_checkpoint(engine, options, since).await? {
            Ok(begin) => begin,
            Err(not_found) => return Ok(Err(not_found)),
        },
    };
    let (mut options, trusted) = (Arc::clone(options), options.since);
    if begin.mismatch.is_some() {
        options = Arc::new(VerifyOptions { since: None, ..VerifyOptions::clone(&options) });
    }
    let (since, mismatch) = (begin.tree.size(), begin.mismatch.clone());
    let mut walk = Walk::new(Arc::clone(&options), begin);
    let origin = walk_start::read_origin(engine).await;
    let trusted = trusted.iter().filter_map(|since| match since {
        StartPoint::Tree(tree) => Some(*tree),
        StartPoint::Size(_) | StartPoint::Number(_) => None,
    });
    let elsewhere = walk_start::witness_trees(&options, origin.as_deref()).chain(trusted);
    for tree in elsewhere.filter(|tree| tree.size >= since) {
        walk.roots.entry(tree.size).or_default().insert(tree.root);
    }
    mismatch.into_iter().for_each(|mismatch| walk.findings.add(mismatch));
    if options.since.is_none() {
        walk.text_names = tables::read_text_names(engine).await;
    }
    let after = options.since.map(|_| since);
    let mut walk = walk_records(engine, Reader::after(after, true), walk).await?;
    walk.finish_records();
    let texts = match walk.stopped {
        true => 0,
        false => check_tables(engine, &mut walk).await,
    };
    let report = finish_report(&mut walk, since, texts);
    let records_duration = began.elapsed().saturating_sub(walk.jobs.duration);
    Ok(Ok((VerifyReport { records_duration, ..report }, walk)))
}

/// Checks all records: this task reads them, and another thread checks them.
async fn walk_records(engine: &mut Engine, mut reader: Reader, mut walk: Walk) -> Result<Walk, sqlx::Error> {
    let (send, mut pages) = mpsc::channel::<Page>(READ_AHEAD_PAGES);
    let walking = tokio::task::spawn_blocking(move || {
        while let Some(page) = pages.blocking_recv() {
            walk.page(&page);
        }
        walk
    });
    while let Some(page) = reader.next(engine).await {
        let last = page.error.is_some();
        if send.send(page).await.is_err() || last {
            break;
        }
    }
    drop(send);
    walking.await.map_err(|_| {
        let what = "the verification stopped unexpectedly".to_owned();
        refusal(LedgerError::Unavailable { what, source: None })
    })
}

/// Compares the tables with the walked records. An unreadable table is reported as differing.
async fn check_tables(engine: &mut Engine, walk: &mut Walk) -> u64 {
    let runs = tables::check_runs(engine, walk).await;
    unwrap_or_report(walk, "run", LedgerPart::Index, runs);
    let tables = tables::check_ledger_stream(engine, walk).await;
    unwrap_or_report(walk, "checkpoint", LedgerPart::Index, tables);
    let tree = tables::check_stored_tree(engine, walk).await;
    unwrap_or_report(walk, "tile", LedgerPart::Tree, tree);
    let strays = tables::check_stray_signatures(engine, walk).await;
    unwrap_or_report(walk, "signature", LedgerPart::Signature, strays);
    let texts = tables::check_texts(engine, walk).await;
    let texts = unwrap_or_report(walk, "body", LedgerPart::Body, texts);
    tables::check_bodies(walk);
    texts
}

fn unwrap_or_report<T: Default>(
    walk: &mut Walk,
    table: &str,
    part: LedgerPart,
    read: Result<T, sqlx::Error>,
) -> T {
    read.unwrap_or_else(|error| {
        let what = format!("the table `{table}` cannot be read: {error}");
        walk.findings.add(Divergence::changed(part, what));
        T::default()
    })
}

/// Makes the report after the walk.
fn finish_report(walk: &mut Walk, since: u64, texts: u64) -> VerifyReport {
    let options = Arc::clone(&walk.options);
    let self_vouched_runs = report_unlisted(walk);
    report_backdated(walk);
    let unsigned_ledger_records = finish_ledger_stream(walk);
    let witness = options
        .witness
        .as_ref()
        .map(|witness| outside_checkpoints::check_witness(walk, witness, "the witness"));
    let kept = options
        .local_checkpoints
        .as_ref()
        .map(|kept| outside_checkpoints::check_local_checkpoints(walk, kept));
    let cosignature = options
        .remote_witness
        .as_ref()
        .and_then(|(cosigner, copy)| outside_checkpoints::check_cosignature(walk, cosigner, copy.as_ref()?));
    if options.strict && walk.counts.unproven > 0 {
        let what = format!(
            "{} records after the last signed checkpoint are unsigned, so nothing proves who wrote them, which --strict requires; after a crash, run `quorate ledger checkpoint` to seal them",
            walk.counts.unproven
        );
        walk.findings.add(
            Divergence::inserted(LedgerPart::Checkpoint, what)
                .at_seq(walk.counts.unproven_from)
                .up_to_seq(walk.seq()),
        );
    }
    let ledger_key_signed = walk
        .checkpoints
        .last_is_signed_by_any(&options.ledger_keys)
        .filter(|_| !options.ledger_keys.is_empty());
    if ledger_key_signed == Some(false) {
        let what = "it is not signed by the ledger's own key".to_owned();
        walk.findings.add(walk.checkpoints.about_last(DivergenceKind::Changed, what));
    }
    let trusted_keys_signed: Vec<bool> =
        options.trusted_keys.iter().map(|key| walk.checkpoints.is_any_signed_by(key)).collect();
    for (key, _) in options.trusted_keys.iter().zip(&trusted_keys_signed).filter(|(_, signed)| !**signed) {
        let what = format!("no checkpoint is signed by the given key {}", key.id());
        walk.findings.add(walk.checkpoints.about_last(DivergenceKind::Changed, what));
    }
    let signed_size = walk.checkpoints.signed_size;
    let signers = public_keys(&walk.checkpoints.signers).collect();
    let key_changes = walk.checkpoints.key_changes.finish(&options, signed_size, signers, &mut walk.findings);
    let tree = walk.tree.tree_head();
    walk.tree.finish(&mut walk.findings);
    let rollbacks = std::mem::take(&mut walk.rollbacks);
    let open = walk.open_runs();
    let seals = &walk.checkpoints;
    let own_record = u64::from(seals.origin.is_some());
    VerifyReport {
        schema: SCHEMA,
        origin: seals.origin.clone(),
        records: walk.counts.records,
        erased: walk.counts.erased,
        streams: walk.runs.len() as u64,
        texts,
        size: tree.map(|tree| tree.size),
        root: tree.map(|tree| hex(&tree.root)),
        since,
        checkpoints: CheckpointCounts {
            count: seals.count,
            unsigned: seals.unsigned,
            sealed: seals.size,
            signed: seals.signed_size,
            unsealed: walk.seq().saturating_sub(seals.size + own_record),
            unproven: walk.counts.unproven,
        },
        keys: KeyChecks { own: ledger_key_signed, given: trusted_keys_signed },
        signatures: SignatureCounts {
            runs: walk.counts.signed_runs,
            count: walk.jobs.records,
            self_vouched: self_vouched_runs,
            unsigned_own: unsigned_ledger_records,
            unsigned_records: walk.counts.unsigned,
        },
        last_signed: kept.filter(|kept| kept.copies > 0).map(|kept| kept.size),
        kept,
        rollbacks,
        key_changes,
        witness,
        cosignature,
        open: OpenRuns {
            count: open.len() as u64,
            runs: open.iter().take(MAX_NAMED_RUNS).map(|run| Name::from(*run)).collect(),
        },
        signatures_duration: walk.jobs.duration,
        ..VerifyReport::default()
    }
}

/// Reports runs with records that claim a time before their key's revocation but follow a checkpoint from after it.
/// Imported runs arrived later and are exempt.
fn report_backdated(walk: &mut Walk) {
    for (run, state) in &walk.runs {
        let Some((what, n, place)) = &state.backdated else { continue };
        if !walk.ledger_facts.imported.contains(&**run) {
            walk.findings.add(Divergence::changed(LedgerPart::Signature, what.clone()).at(run, *n, *place));
        }
    }
}

/// Reports runs that only their own first record vouches for, unless governance bound their keys or they were imported.
/// With a keyring, any other such run was signed by an unknown key.
fn report_unlisted(walk: &mut Walk) -> u64 {
    let mut vouched = 0;
    for (run, state) in &walk.runs {
        let Some((id, n, place)) = state.unlisted_signer else { continue };
        let governed = state.keyring.as_ref().is_some_and(|audit| audit.governed);
        if walk.options.outside.keyring.is_none() || governed || walk.ledger_facts.imported.contains(&**run) {
            vouched += 1;
            continue;
        }
        let what = format!("it is signed by the key {id}, which is not in the workspace's keyring");
        walk.findings.add(Divergence::changed(LedgerPart::Signature, what).at(run, n, place));
    }
    vouched
}

/// Reports the result for the ledger's own stream.
fn finish_ledger_stream(walk: &mut Walk) -> u64 {
    let Walk { options, ledger_records, checkpoints: seals, jobs, findings, .. } = walk;
    let known: Vec<PublicKey> = options.ledger_keys.iter().chain(&options.trusted_keys).copied().collect();
    let records = std::mem::take(ledger_records);
    let unsigned = check_ledger_signatures(records, seals.signed_size, &known, jobs, findings);
    jobs.run(findings);
    unsigned
}

/// Verifies the records that a new signed checkpoint would cover first: those after the last signed one. Returns the
/// first divergence. Does not check tree, texts and tables.
pub(crate) async fn check_before_seal(
    engine: &mut Engine,
    options: VerifyOptions,
    last: Option<&CheckpointRecord>,
) -> Result<Option<Divergence>, sqlx::Error> {
    let size = last.map_or(0, |sealed| sealed.tree.size);
    let seals = last.map(Checkpoints::starting_after).unwrap_or_default();
    let runs = walk_start::run_states_at(engine, &options, size).await?;
    let begin = WalkStart { seals, runs, ..WalkStart::default() };
    let walk = Walk::new(Arc::new(options), begin).starting_at(size);
    let mut walk = walk_records(engine, Reader::after(last.map(|_| size), false), walk).await?;
    tables::check_bodies(&mut walk);
    walk.finish_records();
    report_unlisted(&mut walk);
    finish_ledger_stream(&mut walk);
    let (found, _) = std::mem::take(&mut walk.findings).into_parts();
    let looked_at = [LedgerPart::Record, LedgerPart::Signature, LedgerPart::Checkpoint];
    Ok(found.into_iter().find(|divergence| looked_at.contains(&divergence.part)))
}

/// Verifies the keys of a checkpoint before it is written, as for an existing one. Keys that the checkpoint declares
/// accepted count here, because this machine is about to save them.
pub(crate) fn check_keys_follow(
    last: Option<&CheckpointRecord>,
    sealed: &CheckpointRecord,
) -> Result<(), String> {
    let Some(note) = &sealed.note else { return Ok(()) };
    let accepted = sealed.verifiers().unwrap_or_default();
    let accepted = public_keys(&accepted).filter(|key| sealed.succession.accepts(key));
    let options = VerifyOptions { candidate_keys: accepted.collect(), ..VerifyOptions::default() };
    let mut seals = last.map(Checkpoints::starting_after).unwrap_or_default();
    seals.check_signed(&options, sealed, note, sealed.tree.size + 1)
}
