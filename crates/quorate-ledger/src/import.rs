//! Imports runs from another ledger's export: verifies everything first, then merges missing records in one transaction,
//! byte for byte.
//!
//! A run that was imported before gets the records after its last one. A run that this ledger recorded itself gets none
//! from elsewhere: a longer copy refuses the whole file, and so does a contradicting one. Streams that are not runs
//! (overlays, playbooks, conversations, the ledger's own) belong to their ledger and are not merged.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::sync::Arc;

use quorate_kernel::ports::ledger::{Durability, Entry, Kind, LedgerError};
use quorate_kernel::record::{Imported, RecordRange};
use quorate_protocol::storable;
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::Store;
use crate::checkpoint::STREAM;
use crate::export::jsonl::{ExportEntry, ExportHeader, ExportReader, ExportTotals, InvalidExport};
use crate::prove::{CheckedRecord, ProvableRecord, TrustedKey};
use crate::signing::{PublicKey, SecretKey};
use crate::store::engine::{Engine, record_head};
use crate::store::merge;

/// Whom an import trusts, and its time.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Trusted keys: at least one must have signed the export's checkpoint.
    pub trusted: Vec<TrustedKey>,
    /// Each signed record must be signed by one of these keys; empty accepts any.
    pub signers: Vec<PublicKey>,
    /// The ledger's key, which signs the record of what was merged.
    pub key: Option<Arc<SecretKey>>,
    /// The current time, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Whether to report without writing.
    pub dry_run: bool,
}

/// An export that was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifiedExport {
    /// The first line: the exporting ledger and its tree.
    #[serde(flatten, serialize_with = "as_tree")]
    pub header: ExportHeader,
    /// The number of lines of each kind.
    #[serde(skip)]
    pub totals: ExportTotals,
    /// The trusted key that signed the checkpoint.
    pub key: String,
    /// SHA-256 of the file.
    pub file_sha256: String,
}

/// Origin, size and root of the exporting ledger.
fn as_tree<S: Serializer>(header: &ExportHeader, serializer: S) -> Result<S::Ok, S::Error> {
    let ExportHeader { origin, size, root, .. } = header;
    json!({"origin": origin, "size": size, "root": root}).serialize(serializer)
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportSummary {
    /// The export.
    #[serde(flatten)]
    pub verified: VerifiedExport,
    /// The number of new records of each run.
    pub runs: BTreeMap<String, u64>,
    /// The number of runs that existed here unchanged.
    #[serde(rename = "known")]
    pub unchanged_runs: u64,
    /// The streams that were skipped because they are not runs.
    #[serde(rename = "passed_over")]
    pub skipped_streams: BTreeSet<String>,
}

/// Why an import was refused.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The export is invalid.
    #[error(transparent)]
    InvalidExport(#[from] InvalidExport),
    /// It is valid, but no trusted key signed it.
    #[error("the key that signed it is not trusted")]
    UntrustedKey {
        /// The keys that signed it, if any.
        keys: Vec<String>,
    },
    /// It contradicts this ledger's records.
    #[error("{id}: {what}")]
    Conflict { id: String, what: String },
    /// The ledger does not answer.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Verifies an export as a whole.
///
/// # Errors
/// [`ImportError`], never [`ImportError::Conflict`].
pub fn verify(input: impl BufRead, terms: &ImportOptions) -> Result<VerifiedExport, ImportError> {
    let mut reader = ExportReader::open(input, &terms.signers)?;
    while reader.next_entry()?.is_some() {}
    verified_export(&reader, terms)
}

/// The reader's totals at the end of the file.
fn verified_export<R: BufRead>(
    reader: &ExportReader<R>,
    terms: &ImportOptions,
) -> Result<VerifiedExport, ImportError> {
    let unvouched = || ImportError::UntrustedKey { keys: reader.header.keys.clone() };
    let key = reader.trusted_key(&terms.trusted).ok_or_else(unvouched)?;
    let file_sha256 = reader.file_sha256.clone().ok_or_else(unvouched)?;
    Ok(VerifiedExport { header: reader.header.clone(), totals: reader.totals.clone(), key, file_sha256 })
}

/// What [`Store::import`] would merge into a new ledger. Creates nothing.
///
/// # Errors
/// [`ImportError`], never [`ImportError::Ledger`].
pub async fn preview(input: impl BufRead, terms: &ImportOptions) -> Result<ImportSummary, ImportError> {
    let mut reader = ExportReader::open(input, &terms.signers)?;
    let mut merging = Merge::default();
    merging.merge_all(None, &mut reader, true).await.map_err(|error| match error {
        MergeError::Refused(refused) => refused,
        MergeError::Store(error) => {
            ImportError::Ledger(LedgerError::Unavailable { what: error.to_string(), source: None })
        }
    })?;
    merging.finish(&reader, terms)
}

impl Store {
    /// Verifies an export and then merges it. `open` is called twice: the merge verifies the file again while it reads
    /// it, so a file that changes in between cannot change the ledger.
    ///
    /// # Errors
    /// [`ImportError`]; then nothing was written.
    pub async fn import<R: BufRead + Send>(
        &self,
        open: impl Fn() -> std::io::Result<R>,
        terms: &ImportOptions,
    ) -> Result<ImportSummary, ImportError> {
        verify(open().map_err(InvalidExport::Io)?, terms)?;
        let mut reader = ExportReader::open(open().map_err(InvalidExport::Io)?, &terms.signers)?;
        let mut connection = self.writer().await;
        let mut merging = Merge::default();
        let work = async {
            if terms.dry_run {
                merging.merge_all(Some(connection.engine().await?), &mut reader, true).await?;
                return Ok(merging.finish(&reader, terms)?);
            }
            let mut transaction = connection.begin(Durability::Synced).await?;
            merging.merge_all(Some(transaction.engine()), &mut reader, false).await?;
            let imported = merging.finish(&reader, terms)?;
            if !imported.runs.is_empty() {
                let entry = imported_entry(&imported, &merging.erased, terms.at_ms);
                let missing = || ImportError::Ledger(LedgerError::NoSigningKey { run: STREAM.into() });
                transaction.forget_tails();
                let key = terms.key.as_deref().ok_or_else(missing)?;
                transaction.append_ledger_records(vec![entry], key).await?;
                transaction.commit().await?;
            }
            Ok(imported)
        };
        work.await.map_err(|error| match error {
            MergeError::Refused(refused) => refused,
            MergeError::Store(error) => ImportError::Ledger(self.error(error)),
        })
    }
}

/// The record of an import.
fn imported_entry(imported: &ImportSummary, erased: &BTreeMap<String, Vec<u64>>, at_ms: i64) -> Entry {
    let VerifiedExport { header, key, file_sha256, .. } = &imported.verified;
    let numbers = |records: &Vec<u64>| records.iter().copied().map(RecordRange::One).collect();
    let data = Imported {
        runs: imported.runs.keys().cloned().collect(),
        records: imported.runs.values().sum(),
        erased: erased.iter().map(|(run, records)| (run.clone(), numbers(records))).collect(),
        origin: header.origin.clone(),
        size: header.size,
        root: header.root.clone(),
        note: header.note.clone(),
        keys: json!(header.keys),
        vouched: json!(key),
        file_sha256: file_sha256.clone(),
    };
    Entry::of(&data, at_ms)
}

#[derive(Debug, thiserror::Error)]
enum MergeError {
    #[error(transparent)]
    Refused(#[from] ImportError),
    #[error(transparent)]
    Store(#[from] sqlx::Error),
}

/// State of a merge.
#[derive(Default)]
struct Merge {
    /// The runs in the file.
    runs: BTreeMap<String, LocalRun>,
    /// Records whose bodies their ledger had erased, by run.
    erased: BTreeMap<String, Vec<u64>>,
    /// The run of the last record, if the texts that it names must be stored.
    keep_texts: bool,
    /// Records and texts that are not written yet.
    pending: merge::PendingRows,
}

/// The state of a run in this ledger.
enum LocalRun {
    /// The stream is not a run and is skipped.
    Stream,
    Run {
        /// The last record here; `None` for a new run. An import never extends a run that this ledger recorded itself.
        last: Option<merge::StreamTail>,
        /// The number of new records.
        new: u64,
    },
}

impl Merge {
    /// Merges a whole file. Without an engine no ledger exists yet, so every record is new.
    async fn merge_all<R: BufRead>(
        &mut self,
        mut engine: Option<&mut Engine>,
        reader: &mut ExportReader<R>,
        dry: bool,
    ) -> Result<(), MergeError> {
        while let Some(entry) = reader.next_entry().map_err(ImportError::from)? {
            match entry {
                ExportEntry::Record(item, checked) => {
                    self.merge_record(engine.as_deref_mut(), &item, &checked, dry).await?;
                }
                ExportEntry::Body { sha256, text } => {
                    if let Some(engine) = engine.as_deref_mut()
                        && self.keep_texts
                        && !dry
                    {
                        merge::insert_body(engine, &sha256, &text).await?;
                    }
                }
            }
        }
        if let Some(engine) = engine {
            self.pending.flush(engine).await?;
        }
        Ok(())
    }

    async fn merge_record(
        &mut self,
        mut engine: Option<&mut Engine>,
        item: &ProvableRecord,
        record: &CheckedRecord,
        dry: bool,
    ) -> Result<(), MergeError> {
        let head = &record.head;
        let contradicts = |what: String| {
            let id = format!("{}/{}", head.run, head.n);
            MergeError::Refused(ImportError::Conflict { id, what })
        };
        self.keep_texts = false;
        if !self.runs.contains_key(&head.run) {
            let local = LocalRun::look_up(engine.as_deref_mut(), record).await?;
            self.runs.insert(head.run.clone(), local);
        }
        let Some(LocalRun::Run { last, new }) = self.runs.get_mut(&head.run) else { return Ok(()) };
        let existing = last.as_ref().map_or(0, |last| last.next);
        if head.n < existing {
            let ours = match engine {
                Some(engine) => record_head(engine, &head.run, head.n).await?,
                None => None,
            };
            return match ours {
                Some(ours) if ours == item.head => Ok(()),
                _ => Err(contradicts("this ledger has another record under this number".into())),
            };
        }
        if last.as_ref().is_some_and(|last| !last.imported) {
            let what = format!(
                "this ledger recorded the run itself and has {existing} records of it; only this ledger may append to it"
            );
            return Err(contradicts(what));
        }
        if head.n != existing + *new {
            let what = format!(
                "this ledger has {existing} records of the run, and record {} is not in the file",
                existing + *new
            );
            return Err(contradicts(what));
        }
        check_record(record).map_err(contradicts)?;
        if let Some(end) = last
            && *new == 0
        {
            if head.prev.as_deref() != Some(&end.leaf) {
                return Err(contradicts(
                    "it does not follow the last record that this ledger has of the run".into(),
                ));
            }
            if end.signed == record.signers.is_empty() {
                return Err(contradicts("the run is signed in only one of the two ledgers".into()));
            }
        }
        *new += 1;
        self.keep_texts = true;
        if item.data.is_none() {
            self.erased.entry(head.run.clone()).or_default().push(head.n);
        }
        if let Some(engine) = engine
            && !dry
        {
            self.pending.add(engine, item, record).await?;
        }
        Ok(())
    }

    fn finish<R: BufRead>(
        &self,
        reader: &ExportReader<R>,
        terms: &ImportOptions,
    ) -> Result<ImportSummary, ImportError> {
        let verified = verified_export(reader, terms)?;
        let (mut runs, mut passed_over, mut known) = (BTreeMap::new(), BTreeSet::new(), 0);
        for (run, here) in &self.runs {
            match here {
                LocalRun::Stream => drop(passed_over.insert(run.clone())),
                LocalRun::Run { new: 0, .. } => known += 1,
                LocalRun::Run { new, .. } => drop(runs.insert(run.clone(), *new)),
            }
        }
        Ok(ImportSummary { verified, runs, unchanged_runs: known, skipped_streams: passed_over })
    }
}

impl LocalRun {
    async fn look_up(engine: Option<&mut Engine>, first: &CheckedRecord) -> Result<LocalRun, sqlx::Error> {
        let head = &first.head;
        // A stream of the host's has a name of its own; a run's is an id, which names files as well.
        let letters = |letter: u8| {
            letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, b'-' | b'_')
        };
        let is_id = head.run != STREAM && head.run.len() <= 64 && head.run.bytes().all(letters);
        let begins = head.kind == Kind::RunOpened.as_str();
        let last = match engine.filter(|_| is_id) {
            Some(engine) => merge::stream_tail(engine, &head.run).await?,
            None => None,
        };
        let is_run = match (&last, head.n) {
            (Some(last), _) => last.is_run,
            (None, 0) => begins,
            // The file lacks the start of a run that is new here. The gap check refuses it.
            (None, _) => {
                head.run.len() == quorate_kernel::entropy::run_id().len() && head.run.starts_with('r')
            }
        };
        Ok(match is_id && is_run {
            true => LocalRun::Run { last, new: 0 },
            false => LocalRun::Stream,
        })
    }
}

/// Checks that a record may be in a run, and returns its data for the index of runs.
fn check_record(record: &CheckedRecord) -> Result<(), String> {
    let is = |kind: Kind| record.head.kind == kind.as_str();
    if is(Kind::RunOpened) != (record.head.n == 0) {
        return Err("only the first record of a run may open it".into());
    }
    if [Kind::Checkpoint, Kind::Held, Kind::Released, Kind::Erased, Kind::Imported, Kind::RolledBack]
        .into_iter()
        .any(is)
    {
        return Err(format!("a run cannot contain a record of kind {}", record.head.kind));
    }
    if let Some(data) = &record.data {
        storable::check_object(data, storable::MAX_RECORD_DEPTH)
            .map_err(|error| format!("its data cannot be stored: {error}"))?;
    }
    let needed = [Kind::RunOpened, Kind::RunIntent, Kind::Outcome, Kind::Override].into_iter().any(is);
    if needed && record.data.is_none() {
        return Err(format!(
            "its data is missing, although records of kind {} are never erased",
            record.head.kind
        ));
    }
    Ok(())
}
