//! Compares the runs that a view shows with their records, and the records with the tree of the last checkpoint (D13).
//! The comparisons are those of `verify`, for some runs instead of all.
//!
//! Records after the last checkpoint are compared with their chain only, and of all signatures only the checkpoint's is
//! verified. `verify` checks the rest.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use quorate_kernel::clock::{parse_rfc3339, rfc3339};
use quorate_kernel::entropy::hex;
use quorate_kernel::ports::ledger::{Kind, LedgerError};
use quorate_kernel::record::{self, Override, RunEnded, RunOpened};
use quorate_protocol::Name;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::key_changes::public_keys;
use super::pages::{StoredRecord, record_from_row, signatures};
use super::record_check::{self, CheckedHead, object};
use super::runs::{StreamState, affects_row};
use super::tables::differing_column;
use super::walk::LedgerFacts;
use crate::Store;
use crate::checkpoint::{CheckpointRecord, STREAM};
use crate::merkle::{self, Hash, TreeHead};
use crate::prove::SignedCheckpoint;
use crate::retention::Erasure;
use crate::signing::{KeyId, PublicKey, Signature, SigningContext};
use crate::store::engine::{Column, Engine, Row, Statement, Value, sql, sql_rows};
use crate::store::index::Change;
use crate::store::tiles::{self, HASHES_PER_ROW};

/// The most records that are counted individually.
const FEW_RECORDS: u64 = 5000;

/// The number of runs per read.
const RUNS_PER_READ: usize = 500;

/// The columns of a run that a view shows, of `run LEFT JOIN run_origin USING (run)`. Those that are compared come
/// first.
macro_rules! shown_columns {
    () => {
        "seq, run, opened_ms, subject, artifact_type, artifact_sha256, council, log_path, verdict, decided_ms, override, \
         ended, mode, producer, (SELECT COUNT(*) FROM imported WHERE imported.run = run.run) AS imports, \
         (SELECT record.seq FROM record WHERE record.run = run.run ORDER BY n DESC LIMIT 1) AS last_seq"
    };
}
pub(crate) use shown_columns;

/// The types of [`shown_columns`].
pub(crate) const SHOWN_COLUMNS: [Column; 16] = {
    use Column::{Int, Text};
    [Int, Text, Int, Text, Text, Text, Text, Text, Text, Int, Text, Int, Text, Text, Int, Int]
};

/// Why a view does not show the content of a run's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunFinding {
    /// The body of its outcome was erased, and a record of the ledger proves that.
    Erased,
    /// A body is missing without a record of its erasure.
    Damaged(String),
    /// Row, records and tree differ.
    Altered(String),
}

impl RunFinding {
    /// The word that replaces the verdict.
    pub fn word(&self) -> &'static str {
        match self {
            RunFinding::Erased => "erased",
            RunFinding::Damaged(_) => "damaged",
            RunFinding::Altered(_) => "altered",
        }
    }

    /// The difference; `None` if bodies were erased and nothing differs.
    pub fn difference(&self) -> Option<&str> {
        match self {
            RunFinding::Erased => None,
            RunFinding::Damaged(what) | RunFinding::Altered(what) => Some(what),
        }
    }
}

/// How much of a run is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The records that its row is derived from.
    Row,
    /// All its records.
    Whole,
}

/// The result of comparing a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Compared {
    pub(crate) finding: Option<RunFinding>,
    /// Whether the last checkpoint covers all its records.
    pub(crate) sealed: bool,
    /// The body of its last outcome.
    pub(crate) outcome: Option<String>,
    /// The log lines derived from its records.
    pub(crate) logged: LoggedFacts,
    /// The texts that it names, by SHA-256, if all of it is compared.
    texts: Vec<String>,
}

/// The log lines that follow from a run's records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LoggedFacts {
    /// Its verdicts with their times, in order. A resumed run has more than one.
    pub(crate) verdicts: Vec<(String, i64)>,
    /// People's decisions, with their times, in order.
    pub(crate) overrides: Vec<(String, i64)>,
    /// Whether its last end records that its lines are in the log named by its first record.
    pub(crate) is_logged: bool,
}

/// Which runs a view shows.
pub(crate) struct ShownQuery {
    /// Statements that each select [`shown_columns`]. Each run is in one of them.
    pub(crate) statements: Vec<Statement>,
    pub(crate) limit: usize,
    pub(crate) extent: Extent,
    /// Whether to look for runs without a row.
    pub(crate) unlisted: bool,
}

/// Runs as a view shows them.
#[derive(Debug, Default)]
pub(crate) struct ShownRuns {
    /// Rows of [`shown_columns`].
    pub(crate) runs: Vec<(Row, Compared)>,
    /// Runs with records and without a row.
    pub(crate) unlisted: Vec<ListedRun>,
}

impl Store {
    /// Reads runs for a view and compares them, in one snapshot.
    pub(crate) async fn shown(&self, query: &ShownQuery) -> Result<ShownRuns, LedgerError> {
        let mut connection = self.writer().await;
        let began = tokio::time::Instant::now();
        loop {
            let read = match connection.begin_snapshot().await {
                Ok(engine) => read(engine, query).await,
                Err(error) => Err(error),
            };
            let again = connection.end_snapshot(read.as_ref().err(), began).await;
            if !again.map_err(|error| self.error(error))? {
                return read.map_err(|error| self.error(error));
            }
        }
    }
}

/// Reads runs and compares them. The caller has begun a snapshot, because rows and records would differ while others
/// write.
async fn read(engine: &mut Engine, query: &ShownQuery) -> Result<ShownRuns, sqlx::Error> {
    let mut rows = Vec::new();
    for statement in &query.statements {
        if rows.len() < query.limit {
            rows.extend(statement.clone().rows(engine, &SHOWN_COLUMNS).await?);
        }
    }
    rows.truncate(query.limit);
    let compared = compare(engine, &rows, query.extent).await?;
    let unlisted = match query.unlisted {
        true => unlisted(engine).await?,
        false => Vec::new(),
    };
    Ok(ShownRuns { runs: rows.into_iter().zip(compared).collect(), unlisted })
}

async fn compare(engine: &mut Engine, rows: &[Row], extent: Extent) -> Result<Vec<Compared>, sqlx::Error> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut sealed = Sealed::read(engine).await?;
    // The chain of a run that no checkpoint covers is checked from its start.
    let sealed_size = sealed.size();
    let is_whole = |row: &Row| extent == Extent::Whole || row.count(15) > sealed_size;
    let (whole, indexed): (Vec<_>, Vec<_>) = rows.iter().partition(|row| is_whole(row));
    let mut records = read_records(engine, &indexed, Extent::Row).await?;
    records.extend(read_records(engine, &whole, Extent::Whole).await?);
    sealed.prove(engine, records.values().flatten()).await?;
    let newest = rows.iter().map(|row| row.count(15)).max().unwrap_or_default();
    let oldest = rows.iter().map(|row| row.count(15)).min().unwrap_or_default();
    let from = if newest > sealed_size { 0 } else { oldest };
    let gap = last_gap(engine, from, sealed_size).await?;
    let mut facts = None;
    let mut compared = Vec::with_capacity(rows.len());
    for row in rows {
        let records = records.remove(row.text(1)).unwrap_or_default();
        let mut state = StreamState::default();
        let mut shown = match compare_run(row, is_whole(row), &sealed, &records, &mut state) {
            Ok(shown) => shown,
            Err(what) => Compared { finding: Some(RunFinding::Altered(what)), ..Compared::default() },
        };
        let bodiless: Vec<&StoredRecord> = records.iter().filter(|record| record.data.is_none()).collect();
        let gone = missing_texts(engine, &shown.texts).await?;
        if shown.finding.is_none() && (!bodiless.is_empty() || !gone.is_empty() || row.int(14) != 0) {
            if facts.is_none() {
                facts = Some(read_facts(engine, &mut sealed).await?);
            }
            shown.finding = facts.as_ref().and_then(|facts| finding(facts, row, &bodiless, &gone));
        }
        // A record that no checkpoint covers may be a replacement for a missing one.
        if shown.finding.is_none() && gap.is_some_and(|gap| !shown.sealed || gap > row.count(15)) {
            let what = "records are missing from the ledger, and they may include one of this run";
            shown.finding = Some(RunFinding::Altered(what.to_owned()));
        }
        shown.sealed &= shown.finding.is_none();
        compared.push(shown);
    }
    Ok(compared)
}

/// Which of some texts the ledger lacks.
async fn missing_texts(engine: &mut Engine, texts: &[String]) -> Result<Vec<String>, sqlx::Error> {
    let mut missing = Vec::new();
    for text in texts {
        let there = sql("SELECT sha256 FROM body WHERE sha256 = $1").bind(text.as_str());
        if there.row(engine, &[Column::Text]).await?.is_none() {
            missing.push(text.clone());
        }
    }
    Ok(missing)
}

/// The last empty position after `from`, up to the last record and to the last position that a checkpoint covers. A
/// record that continues a run, such as a person's decision, leaves no other trace when it is removed.
async fn last_gap(engine: &mut Engine, from: u64, sealed: u64) -> Result<Option<u64>, sqlx::Error> {
    let last = sql("SELECT COALESCE(MAX(seq), 0) FROM record").number(engine).await?;
    if last < sealed {
        return Ok(Some(sealed));
    }
    // Counting all records reads only an index; counting some reads the records.
    let from = if last.saturating_sub(from) > FEW_RECORDS { 0 } else { from };
    let counted = match from {
        0 => sql("SELECT COUNT(*) FROM record"),
        from => {
            sql("SELECT COUNT(*) FROM record WHERE seq > $1").bind(i64::try_from(from).unwrap_or(i64::MAX))
        }
    };
    if counted.number(engine).await? == last.saturating_sub(from) {
        return Ok(None);
    }
    let after_gap = "SELECT COALESCE(MAX(seq), 1) FROM record \
                     WHERE seq > 1 AND NOT EXISTS (SELECT 1 FROM record AS prior WHERE prior.seq = record.seq - 1)";
    Ok(sql(after_gap).row(engine, &[Column::Int]).await?.map(|row| row.count(0).saturating_sub(1)))
}

/// The records of some runs, by run, in order.
async fn read_records(
    engine: &mut Engine,
    rows: &[&Row],
    extent: Extent,
) -> Result<HashMap<String, Vec<StoredRecord>>, sqlx::Error> {
    const SELECT: &str = "SELECT seq, run, n, kind, head, data FROM record WHERE run IN (VALUES ";
    const OF_ROW: &str =
        ") AND kind IN ('run.opened', 'run.intent', 'outcome', 'override', 'run.ended') ORDER BY run, n";
    let mut records: HashMap<String, Vec<StoredRecord>> = HashMap::with_capacity(rows.len());
    for some in rows.chunks(RUNS_PER_READ) {
        let runs = some.iter().map(|row| vec![Value::from(row.text(1))]);
        let tail = match extent {
            Extent::Row => OF_ROW,
            Extent::Whole => ") ORDER BY run, n",
        };
        for record in read_stored(engine, sql_rows(SELECT, runs, tail)).await? {
            records.entry(record.run.clone()).or_default().push(record);
        }
    }
    Ok(records)
}

async fn read_stored(engine: &mut Engine, statement: Statement) -> Result<Vec<StoredRecord>, sqlx::Error> {
    use Column::{Int, Text};
    let rows = statement.rows(engine, &[Int, Text, Int, Text, Text, Text]).await?;
    Ok(rows.into_iter().map(record_from_row).collect())
}

/// The records that the last checkpoint covers, and the stored leaves that lead to its root.
struct Sealed {
    tree: TreeHead,
    keys: Vec<PublicKey>,
    /// Why the checkpoint cannot be used.
    problem: Option<String>,
    /// The number of stored leaves, all of which a checkpoint covered.
    stored: u64,
    leaves: BTreeMap<u64, Vec<u8>>,
    looked_up: BTreeSet<u64>,
}

impl Sealed {
    async fn read(engine: &mut Engine) -> Result<Sealed, sqlx::Error> {
        use Column::{Int, Text};
        let last = sql("SELECT record.seq, record.run, record.n, record.kind, record.head, record.data, \
             checkpoint.size, checkpoint.root FROM checkpoint LEFT JOIN record ON record.run = $1 AND record.n = checkpoint.n \
             ORDER BY checkpoint.size DESC LIMIT 1")
        .bind(STREAM)
        .row(engine, &[Int, Text, Int, Text, Text, Text, Int, Text])
        .await?;
        let mut sealed = Sealed {
            tree: TreeHead { size: last.as_ref().map_or(0, |row| row.count(6)), root: merkle::EMPTY },
            keys: Vec::new(),
            problem: None,
            stored: tiles::stored_leaves(engine).await?,
            leaves: BTreeMap::new(),
            looked_up: BTreeSet::new(),
        };
        if let Some(row) = last {
            match checkpoint_of(row) {
                Ok((tree, keys)) => (sealed.tree, sealed.keys) = (tree, keys),
                Err(what) => sealed.problem = Some(format!("the last checkpoint is altered: {what}")),
            }
        }
        Ok(sealed)
    }

    fn size(&self) -> u64 {
        self.tree.size
    }

    /// Looks up the leaves of records.
    async fn prove<'r>(
        &mut self,
        engine: &mut Engine,
        records: impl Iterator<Item = &'r StoredRecord>,
    ) -> Result<(), sqlx::Error> {
        let places = records.filter_map(|record| u64::try_from(record.seq).ok()?.checked_sub(1));
        let rows = places.filter(|index| *index < self.tree.size).map(|index| index / HASHES_PER_ROW);
        let rows: BTreeSet<u64> = rows.filter(|row| !self.looked_up.contains(row)).collect();
        if self.problem.is_none() && !rows.is_empty() {
            self.looked_up.extend(&rows);
            self.leaves.extend(tiles::proven_leaves(engine, &self.tree, rows).await?);
        }
        Ok(())
    }

    /// Whether the tree covers a record.
    ///
    /// # Errors
    /// The difference, if the tree should cover a record and has another leaf.
    fn covers(&self, record: &StoredRecord) -> Result<bool, String> {
        let StoredRecord { run, n, .. } = record;
        let index = u64::try_from(record.seq).ok().and_then(|seq| seq.checked_sub(1));
        let index = index.ok_or_else(|| format!("record {run}/{n} is at an impossible position"))?;
        if index >= self.tree.size {
            return match index < self.stored {
                true => Err(format!("record {run}/{n} was sealed, but its checkpoint is missing")),
                false => Ok(false),
            };
        }
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        match tiles::hash_at(&self.leaves, index) {
            Some(leaf) if leaf == merkle::leaf(record.head.as_bytes()) => Ok(true),
            Some(_) => {
                Err(format!("record {run}/{n} differs from the record that was sealed at its position"))
            }
            None => Err("the stored tree does not lead to the last checkpoint".to_owned()),
        }
    }
}

/// The tree and the keys of a checkpoint whose row, record and note agree.
fn checkpoint_of(row: Row) -> Result<(TreeHead, Vec<PublicKey>), &'static str> {
    let (size, root) = (row.count(6), row.text(7).to_owned());
    let stored = record_from_row(row);
    if record_check::check(&stored).is_err() {
        return Err("its record was changed");
    }
    let data = stored.data.as_deref().and_then(|data| object(data).ok());
    let checkpoint = data.and_then(|data| CheckpointRecord::from_data(stored.n.unsigned_abs(), &data));
    let checkpoint = checkpoint.ok_or("its record cannot be read")?;
    let tree = checkpoint.tree;
    if (tree.size, hex(&tree.root)) != (size, root) {
        return Err("its row does not match its record");
    }
    let Some(note) = &checkpoint.note else { return Ok((tree, Vec::new())) };
    let signed = SignedCheckpoint::open(note, &checkpoint.keys).ok().filter(|signed| signed.tree == tree);
    let signed = signed.ok_or("its key did not sign its note")?;
    Ok((tree, public_keys(&signed.keys).collect()))
}

/// Compares a run's records with each other, with the tree and with its row. Records without a body are checked later.
/// `is_whole`: the records are all of the run, and not only those that its row is derived from.
fn compare_run(
    row: &Row,
    is_whole: bool,
    sealed: &Sealed,
    records: &[StoredRecord],
    state: &mut StreamState,
) -> Result<Compared, String> {
    let run = row.text(1);
    let mut shown = Compared { sealed: row.count(15) <= sealed.size(), ..Compared::default() };
    let (mut prev, mut next) = (None::<Hash>, 0);
    for stored in records {
        let n = stored.n;
        let CheckedHead { at_ms, prev: stated } =
            record_check::check(stored).map_err(|mismatch| format!("record {run}/{n}: {}", mismatch.what))?;
        if is_whole && n != next {
            return Err(format!("record {run}/{next} is missing"));
        }
        if is_whole && stated != prev {
            return Err(format!("record {run}/{n} does not name its predecessor's hash"));
        }
        prev = Some(merkle::leaf(stored.head.as_bytes()));
        next = n.saturating_add(1);
        let is_covered = sealed.covers(stored)?;
        shown.sealed &= is_covered;
        let data = match &stored.data {
            Some(data) if affects_row(&stored.kind) => {
                // Its form was checked before it was sealed.
                let data = match is_covered {
                    true => record_check::read_row_data(data),
                    false => object(data).ok(),
                };
                Some(data.ok_or_else(|| format!("record {run}/{n}: its data is not canonical JSON"))?)
            }
            _ => None,
        };
        let applied = match affects_row(&stored.kind) || n == 0 {
            true => state.apply(run, n.unsigned_abs(), &stored.kind, at_ms, data.as_ref()),
            false => Ok(()),
        };
        applied.map_err(|what| format!("record {run}/{n}: {what}"))?;
        if let Some(data) = data.as_ref().filter(|_| is_whole && n == 0) {
            let opened: RunOpened = record::read(data).unwrap_or_default();
            shown.texts = opened.inputs.into_iter().map(|input| input.sha256).collect();
        }
        shown.logged.note(&stored.kind, at_ms, data.as_ref());
        if stored.kind == Kind::Outcome.as_str() {
            shown.outcome.clone_from(&stored.data);
        }
    }
    if records.is_empty() {
        return Err("it has a row, but no record opens it".to_owned());
    }
    if state.row.is_none() && !state.row_unknown {
        return Err("it has a row in the table of runs, but no record opens it".to_owned());
    }
    match differing_column(row, state) {
        Some(column) if !state.row_unknown => {
            Err(format!("its row in the table of runs does not match its records: {column} differs"))
        }
        _ => Ok(shown),
    }
}

impl LoggedFacts {
    fn note(&mut self, kind: &str, at_ms: i64, data: Option<&serde_json::Map<String, serde_json::Value>>) {
        let is = |word: Kind| kind == word.as_str();
        let Some(data) = data else { return };
        if is(Kind::Outcome) {
            let verdict = data.get("verdict").and_then(serde_json::Value::as_str);
            self.verdicts.push((verdict.unwrap_or_default().to_owned(), at_ms));
        } else if is(Kind::Override) {
            let decision: Override = record::read(data).unwrap_or_default();
            self.overrides.push((decision.verdict, at_ms));
        } else if is(Kind::RunEnded) {
            let ended: RunEnded = record::read(data).unwrap_or_default();
            self.is_logged = ended.logged && ended.log_path.is_none();
        }
    }
}

/// Imports and erasures that the ledger's own stream records. A record counts if a checkpoint covers it, if the ledger's
/// key signed it, or if the ledger has no key.
async fn read_facts(engine: &mut Engine, sealed: &mut Sealed) -> Result<LedgerFacts, sqlx::Error> {
    let statement = sql(
        "SELECT seq, run, n, kind, head, data FROM record WHERE run = $1 AND kind IN ($2, $3) ORDER BY n",
    );
    let statement = statement.bind(STREAM).bind(Kind::Erased.as_str()).bind(Kind::Imported.as_str());
    let records = read_stored(engine, statement).await?;
    sealed.prove(engine, records.iter()).await?;
    let mut facts = LedgerFacts::default();
    for stored in &records {
        let counts = match sealed.covers(stored) {
            Ok(true) => true,
            Ok(false) => sealed.keys.is_empty() || is_signed(engine, stored, &sealed.keys).await?,
            Err(_) => false,
        };
        let data = stored.data.as_deref().filter(|_| counts && record_check::check(stored).is_ok());
        let Some(data) = data.and_then(|data| object(data).ok()) else { continue };
        match stored.kind == Kind::Erased.as_str() {
            true => Erasure::from_data(&data).into_iter().for_each(|erasure| facts.erase(erasure)),
            false => facts.apply(&stored.kind, &data),
        }
    }
    Ok(facts)
}

/// Checks missing bodies and texts of a run, and its row in the table of imported runs.
fn finding(
    facts: &LedgerFacts,
    row: &Row,
    bodiless: &[&StoredRecord],
    gone: &[String],
) -> Option<RunFinding> {
    let run = row.text(1);
    let is_imported = facts.imported.contains(run);
    if row.int(14) != 0 && !is_imported {
        let what = "it has a row in the table of imported runs, but no record imports it";
        return Some(RunFinding::Altered(what.to_owned()));
    }
    let is_erased = |record: &&&StoredRecord| u64::try_from(record.n).is_ok_and(|n| facts.is_erased(run, n));
    if let Some(record) = bodiless.iter().find(|record| !is_erased(record)) {
        let what =
            format!("the body of record {run}/{} is missing without a record of its erasure", record.n);
        return Some(RunFinding::Damaged(what));
    }
    // An export may omit texts.
    if let Some(text) = gone.iter().find(|text| !is_imported && !facts.erased_texts.contains(*text)) {
        let what = format!("the text {text} is missing without a record of its erasure");
        return Some(RunFinding::Damaged(what));
    }
    bodiless.iter().any(|record| affects_row(&record.kind)).then_some(RunFinding::Erased)
}

/// Whether one of these keys signed a record of the ledger's own stream.
async fn is_signed(
    engine: &mut Engine,
    stored: &StoredRecord,
    keys: &[PublicKey],
) -> Result<bool, sqlx::Error> {
    let leaf = merkle::leaf(stored.head.as_bytes());
    let signatures = signatures(engine, stored.seq, stored.seq).await?;
    Ok(signatures.iter().any(|(_, key, signature)| {
        let key = KeyId::from_text(key).ok().and_then(|id| keys.iter().find(|key| key.id() == id));
        let signature = Signature::from_text(signature).ok();
        key.zip(signature)
            .is_some_and(|(key, signature)| key.verify(SigningContext::RECORD, &leaf, &signature).is_ok())
    }))
}

/// The difference reported for a run with records but without a row.
pub(crate) const UNLISTED: &str = "its records exist, but it has no row in the table of runs";

/// A position in the list. A run that is decided between two pages appears on none or both of them; every other run
/// appears once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCursor {
    /// The run at this position.
    pub run: Name,
    /// Whether it is in the open part of the list.
    pub open: bool,
}

/// The prefix of a cursor's text in the open part of the list.
const OPEN_MARK: &str = "open:";

impl From<&str> for RunCursor {
    fn from(text: &str) -> Self {
        match text.strip_prefix(OPEN_MARK) {
            Some(run) => RunCursor { run: run.into(), open: true },
            None => RunCursor { run: text.into(), open: false },
        }
    }
}

impl fmt::Display for RunCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.open { OPEN_MARK } else { "" };
        write!(f, "{mark}{}", self.run)
    }
}

/// A run of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedRun {
    /// Its id
    #[schemars(with = "String")]
    pub run: Name,
    /// When it was opened, RFC 3339 in UTC
    pub opened: String,
    /// What it is about: a path, or `-`
    pub artifact: String,
    pub artifact_type: String,
    /// `council`, or the mode of an assembly
    pub mode: String,
    /// The operator that made what it is about; null where none is recorded
    pub producer: Option<String>,
    /// The verdict or outcome; null while nothing is decided; altered or damaged where the run's row differs from its records;
    /// erased where its outcome was
    pub verdict: Option<String>,
    /// The difference, if the verdict is altered or damaged
    #[serde(rename = "difference", serialize_with = "as_difference")]
    #[schemars(with = "Option<String>")]
    pub finding: Option<RunFinding>,
    /// A person's decision beside it
    #[serde(rename = "override")]
    pub overridden: Option<String>,
    /// Deliberators that block, voters that vote no, peers whose objection stands
    pub blockers: Vec<String>,
    /// Members without an answer
    pub missing: Vec<String>,
    /// Whether nothing is decided yet
    pub open: bool,
    /// Whether the last checkpoint covers all its records, and row, records and tree agree
    pub sealed: bool,
    /// Whether it was recorded in another ledger
    pub imported: bool,
    /// Its position in the list; `None` for a run without a row, which precedes the first page
    #[serde(skip)]
    pub place: Option<RunCursor>,
}

fn as_difference<S: Serializer>(finding: &Option<RunFinding>, serializer: S) -> Result<S::Ok, S::Error> {
    finding.as_ref().and_then(RunFinding::difference).serialize(serializer)
}

impl ListedRun {
    /// The difference between row, records and tree, if there is one.
    pub fn difference(&self) -> Option<&str> {
        self.finding.as_ref().and_then(RunFinding::difference)
    }

    /// When it was opened, to the minute, in UTC: `2026-03-04 05:05`.
    pub fn opened_minute(&self) -> String {
        self.opened.get(..16).unwrap_or(&self.opened).replace('T', " ")
    }
}

/// Runs that have records but no row in the table of runs. The rows are numbered without gaps in the order of the runs'
/// first records, so that the whole ledger is read only if a row is missing.
async fn unlisted(engine: &mut Engine) -> Result<Vec<ListedRun>, sqlx::Error> {
    use Column::{Int, Text};
    // As two subqueries, neither reads every row.
    let counted = sql("SELECT (SELECT COUNT(*) FROM run), (SELECT COALESCE(MAX(seq), 0) FROM run)");
    let counted = counted.row(engine, &[Int; 2]).await?;
    let is_whole = counted.is_none_or(|row| row.int(0) == row.int(1));
    let newest =
        sql("SELECT seq FROM record WHERE n = 0 AND run = (SELECT run FROM run ORDER BY seq DESC LIMIT 1)");
    let newest = newest.row(engine, &[Int]).await?.filter(|_| is_whole).map_or(0, |row| row.int(0));
    let statement = sql("SELECT run, head, data FROM record WHERE seq > $1 AND n = 0 AND kind = $2 \
                         AND run NOT IN (SELECT run FROM run) ORDER BY seq DESC");
    let rows = statement.bind(newest).bind(Kind::RunOpened.as_str()).rows(engine, &[Text; 3]).await?;
    Ok(rows.iter().map(unlisted_run).collect())
}

fn unlisted_run(row: &Row) -> ListedRun {
    let data = row.opt_text(2).and_then(|data| object(data).ok()).unwrap_or_default();
    let head: Option<crate::record::Head> = serde_json::from_str(row.text(1)).ok();
    let opened_ms = head.and_then(|head| parse_rfc3339(&head.at)).unwrap_or_default();
    let [artifact, artifact_type, _, _, _, mode, _] =
        match Change::from_record(Kind::RunOpened.as_str(), opened_ms, &data) {
            Some(Change::Opened { columns, .. }) => columns,
            _ => Default::default(),
        };
    let finding = RunFinding::Altered(UNLISTED.to_owned());
    ListedRun {
        run: row.text(0).into(),
        opened: rfc3339(opened_ms),
        artifact,
        artifact_type,
        mode,
        verdict: Some(finding.word().to_owned()),
        finding: Some(finding),
        ..ListedRun::default()
    }
}
