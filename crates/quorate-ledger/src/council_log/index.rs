//! The index of the log: updated with appended lines, rebuilt if the log was replaced.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::Path;

use futures::TryStreamExt as _;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::LedgerError;
use sqlx::sqlite::SqliteRow;
use sqlx::{Connection as _, QueryBuilder, Row as _, Sqlite, SqliteConnection, Transaction};
use tokio::sync::mpsc;

use super::line::{LogEvent, LogLine};
use crate::store::connection::{Connection, Writer};
use crate::store::engine;
use crate::{Store, files};

/// The number of bytes at either end of the indexed part that identify the log.
const EDGE_BYTES: u64 = 4096;
/// The number of lines per insert. A SQLite statement takes at most 32 766 values.
const BATCH: usize = 1000;

/// A log whose index is up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedLog {
    /// The log's row in the index; `None` without a log.
    pub(super) id: Option<i64>,
    /// The number of unreadable lines.
    pub corrupt: u64,
    /// The number of unreadable lines that are new.
    pub newly_corrupt: u64,
    /// The size of its complete lines in bytes.
    pub bytes: u64,
    /// Whether an incomplete line follows, which is not counted.
    pub is_cut: bool,
}

struct IndexRow {
    id: i64,
    bytes: u64,
    corrupt: u64,
    ends_sha256: String,
}

/// The state of a log compared with its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogState {
    /// All of it is indexed.
    Unchanged,
    Grown,
    /// It is not the log that was indexed.
    Replaced,
}

/// Drops the index of a log. The next use rebuilds it.
///
/// # Errors
/// When the store cannot be written.
#[crate::boxed]
pub async fn forget_index(store: &Store, log: &Path) -> Result<(), LedgerError> {
    let forgotten = async {
        let mut connection = index_writer(store).await?;
        let mut transaction = connection.begin_log_index().await?;
        if let Some(known) = find_row(&mut transaction, &key(log)).await? {
            delete_log(&mut transaction, known.id).await?;
        }
        transaction.commit().await
    };
    explain(store, log, forgotten.await)
}

/// The largest log, in bytes, whose whole index is compared before each count. Reading a larger one takes longer than
/// counting it: `verify` compares it, and [`forget_index`] makes the next use rebuild its index.
pub const MAX_COMPARED_BYTES: u64 = 16 << 20;

/// Compares the index of a log with its lines, and drops it if they differ (D13). Returns the difference.
///
/// # Errors
/// When log or store cannot be read.
#[crate::boxed]
pub async fn rebuild_if_altered(
    store: &Store,
    log: &Path,
    indexed: IndexedLog,
) -> Result<Option<(String, IndexedLog)>, LedgerError> {
    if indexed.bytes > MAX_COMPARED_BYTES {
        return Ok(None);
    }
    let Some(what) = find_index_diff(store, log).await? else { return Ok(None) };
    forget_index(store, log).await?;
    Ok(Some((what, sync(store, log).await?)))
}

/// Updates the index of a log.
///
/// # Errors
/// When log or store cannot be read.
#[crate::boxed]
pub async fn sync(store: &Store, log: &Path) -> Result<IndexedLog, LedgerError> {
    let synced = async {
        let Some(mut file) = open(log)? else {
            return Ok(IndexedLog { id: None, corrupt: 0, newly_corrupt: 0, bytes: 0, is_cut: false });
        };
        let key = key(log);
        let mut connection = index_writer(store).await?;
        let known = find_row(connection.log_index(), &key).await?;
        if let Some(known) = known
            && known.compare(&mut file)? == LogState::Unchanged
        {
            let IndexRow { id, corrupt, bytes, .. } = known;
            return Ok(IndexedLog { id: Some(id), corrupt, newly_corrupt: 0, bytes, is_cut: false });
        }
        extend(&mut connection, &key, file).await
    };
    explain(store, log, synced.await)
}

/// The log, if it exists.
fn open(log: &Path) -> std::io::Result<Option<File>> {
    match files::open(log) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Says whether log or index cannot be read. The index is a file, so that the operating system's errors are those of the
/// log.
fn explain<T>(store: &Store, log: &Path, done: Result<T, sqlx::Error>) -> Result<T, LedgerError> {
    done.map_err(|error| match error {
        sqlx::Error::Io(error) => LedgerError::Unavailable {
            what: format!("cannot read {}", log.display()),
            source: Some(Box::new(error)),
        },
        error => store.error(error),
    })
}

/// The connection with the index: in memory if the ledger is read-only.
async fn index_writer(store: &Store) -> Result<Writer, sqlx::Error> {
    let mut connection = store.writer().await;
    if store.read_only_reason().is_some() {
        connection.keep_log_index_in_memory().await?;
    }
    Ok(connection)
}

impl IndexRow {
    /// Compares the log with its index. Reads the log's length after the index: with an earlier length, a log that
    /// another process has just appended to and indexed would look replaced.
    fn compare(&self, file: &mut File) -> std::io::Result<LogState> {
        let bytes = file.metadata()?.len();
        if bytes < self.bytes || edge_hash(file, self.bytes)? != self.ends_sha256 {
            return Ok(LogState::Replaced);
        }
        Ok(if bytes == self.bytes { LogState::Unchanged } else { LogState::Grown })
    }
}

pub(super) fn key(log: &Path) -> String {
    std::path::absolute(log).unwrap_or_else(|_| log.to_owned()).to_string_lossy().into_owned()
}

async fn find_row(connection: &mut SqliteConnection, key: &str) -> Result<Option<IndexRow>, sqlx::Error> {
    let row = sqlx::query("SELECT id, bytes, corrupt, ends_sha256 FROM log WHERE path = ?")
        .bind(key)
        .fetch_optional(connection)
        .await?;
    Ok(row.map(|row| IndexRow {
        id: row.get(0),
        bytes: row.get::<i64, _>(1).unsigned_abs(),
        corrupt: u64::try_from(row.get::<i64, _>(2)).unwrap_or(u64::MAX),
        ends_sha256: row.get(3),
    }))
}

/// Indexes the lines after the indexed part. Looks up its end again inside the transaction, because another process may
/// have been faster. Reading and parsing run beside the store's own thread.
async fn extend(connection: &mut Connection, key: &str, mut file: File) -> Result<IndexedLog, sqlx::Error> {
    let mut transaction = connection.begin_log_index().await?;
    let mut known = find_row(&mut transaction, key).await?;
    if let Some(replaced) = &known
        && replaced.compare(&mut file)? == LogState::Replaced
    {
        delete_log(&mut transaction, replaced.id).await?;
        known = None;
    }
    let (from, corrupt_before) = known.as_ref().map_or((0, 0), |known| (known.bytes, known.corrupt));
    let mut again = file.try_clone()?;
    let mut batches = Batches::read(file, from..u64::MAX);
    let id = log_id(&mut transaction, key, known.as_ref()).await?;
    let row = sqlx::query("SELECT COALESCE(MAX(id), 0) FROM log_line").fetch_one(&mut *transaction).await?;
    let (mut next, mut end, mut corrupt, mut is_cut) = (row.get::<i64, _>(0) + 1, from, 0, false);
    while let Some(batch) = batches.next().await? {
        next = insert(&mut transaction, id, next, &batch).await?;
        (end, corrupt, is_cut) = (batch.end, corrupt + batch.corrupt, batch.is_cut);
    }
    let total = corrupt_before + corrupt;
    sqlx::query("UPDATE log SET bytes = ?, corrupt = ?, ends_sha256 = ? WHERE id = ?")
        .bind(to_i64(end))
        .bind(to_i64(total))
        .bind(edge_hash(&mut again, end)?)
        .bind(id)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(IndexedLog { id: Some(id), corrupt: total, newly_corrupt: corrupt, bytes: end, is_cut })
}

async fn delete_log(transaction: &mut Transaction<'_, Sqlite>, log: i64) -> Result<(), sqlx::Error> {
    delete_lines(transaction, log).await?;
    sqlx::query("DELETE FROM log WHERE id = ?").bind(log).execute(&mut **transaction).await.map(|_| ())
}

async fn delete_lines(transaction: &mut Transaction<'_, Sqlite>, log: i64) -> Result<(), sqlx::Error> {
    for statement in ["DELETE FROM log_seat WHERE log = ?", "DELETE FROM log_line WHERE log = ?"] {
        sqlx::query(statement).bind(log).execute(&mut **transaction).await?;
    }
    Ok(())
}

async fn log_id(
    transaction: &mut Transaction<'_, Sqlite>,
    key: &str,
    known: Option<&IndexRow>,
) -> Result<i64, sqlx::Error> {
    if let Some(known) = known {
        return Ok(known.id);
    }
    let inserted = sqlx::query("INSERT INTO log (path, bytes, corrupt, ends_sha256) VALUES (?, 0, 0, '')")
        .bind(key)
        .execute(&mut **transaction)
        .await?;
    let id = inserted.last_insert_rowid();
    delete_lines(transaction, id).await?;
    Ok(id)
}

/// Parsed lines.
struct Batch {
    lines: Vec<(u64, u64, LogLine)>,
    corrupt: u64,
    /// The offset of the next line.
    end: u64,
    /// Whether the rest of the file has no complete line.
    is_cut: bool,
}

/// The lines of a part of the log, which a thread reads and parses ahead.
struct Batches(mpsc::Receiver<std::io::Result<Batch>>);

impl Batches {
    fn read(file: File, part: Range<u64>) -> Self {
        let (send, receive) = mpsc::channel(2);
        std::thread::spawn(move || {
            if let Err(error) = parse(file, part, &send) {
                let _ = send.blocking_send(Err(error));
            }
        });
        Batches(receive)
    }

    async fn next(&mut self) -> std::io::Result<Option<Batch>> {
        self.0.recv().await.transpose()
    }
}

fn parse(
    mut file: File,
    part: Range<u64>,
    send: &mpsc::Sender<std::io::Result<Batch>>,
) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(part.start))?;
    let mut reader = BufReader::with_capacity(256 * 1024, file.take(part.end - part.start));
    let mut at = part.start;
    let mut text = Vec::new();
    loop {
        let mut batch = Batch { lines: Vec::with_capacity(BATCH), corrupt: 0, end: at, is_cut: false };
        while batch.lines.len() < BATCH {
            text.clear();
            let length = reader.read_until(b'\n', &mut text)? as u64;
            // A last line without line end may not be complete yet.
            if text.last() != Some(&b'\n') {
                batch.is_cut = !text.is_empty();
                let _ = send.blocking_send(Ok(batch));
                return Ok(());
            }
            match LogLine::parse(&text) {
                Some(line) if line.event == LogEvent::Other => {}
                Some(line) => batch.lines.push((at, length, line)),
                None if text.iter().all(u8::is_ascii_whitespace) => {}
                None => batch.corrupt += 1,
            }
            at += length;
            batch.end = at;
        }
        if send.blocking_send(Ok(batch)).is_err() {
            return Ok(());
        }
    }
}

async fn insert(
    transaction: &mut Transaction<'_, Sqlite>,
    log: i64,
    first: i64,
    batch: &Batch,
) -> Result<i64, sqlx::Error> {
    if batch.lines.is_empty() {
        return Ok(first);
    }
    let numbered = || (first..).zip(&batch.lines);
    let mut query: QueryBuilder<Sqlite> = QueryBuilder::new(
        "INSERT INTO log_line (id, log, at_byte, bytes, event, prior, span, artifact_type, verdict, at_ms, elapsed_ms, \
         calls, tokens, producer, positions, positioned, blocking, scored, scores) ",
    );
    query.push_values(numbered(), |mut row, (id, (at, bytes, line))| {
        let (positions, [positioned, blocking, scored, scores]) = derived(line);
        row.push_bind(id)
            .push_bind(log)
            .push_bind(to_i64(*at))
            .push_bind(to_i64(*bytes))
            .push_bind(line.event.as_str())
            .push_bind(i64::from(line.is_prior()))
            .push_bind(&*line.span)
            .push_bind(&*line.artifact_type)
            .push_bind(&*line.verdict)
            .push_bind(line.at_ms)
            .push_bind(line.elapsed_ms)
            .push_bind(line.calls)
            .push_bind(line.tokens)
            .push_bind(&*line.producer)
            .push_bind(positions)
            .push_bind(positioned)
            .push_bind(blocking)
            .push_bind(scored)
            .push_bind(scores);
    });
    query.build().execute(&mut **transaction).await?;
    let deliberators: Vec<_> = numbered()
        .flat_map(|(id, (_, _, line))| line.deliberators.iter().map(move |deliberator| (id, deliberator)))
        .collect();
    for some in deliberators.chunks(BATCH * 2) {
        let mut query: QueryBuilder<Sqlite> = QueryBuilder::new(
            "INSERT OR IGNORE INTO log_seat (log, member, blocks, irreducible, flipped, schema_failed, timed_out, \
             first_score, last_score, reprompts, line) ",
        );
        query.push_values(some, |mut row, (id, (member, marks))| {
            row.push_bind(log).push_bind(&**member);
            for mark in marks.to_columns() {
                row.push_bind(mark);
            }
            row.push_bind(*id);
        });
        query.build().execute(&mut **transaction).await?;
    }
    Ok(first + i64::try_from(batch.lines.len()).unwrap_or(0))
}

/// The indexed data of a line's deliberators: `positions`, then `positioned`, `blocking`, `scored` and `scores`.
fn derived(line: &LogLine) -> (String, [i64; 4]) {
    let positions = line.positions();
    let count = |all: usize| i64::try_from(all).unwrap_or(i64::MAX);
    let blocks = positions.values().filter(|block| **block).count();
    let (scored, scores) = line.last_scores();
    let text = match positions.is_empty() {
        true => String::new(),
        // Names and flags always have a JSON form.
        false => serde_json::to_string(&positions).unwrap_or_default(),
    };
    (text, [count(positions.len()), count(blocks), scored, scores])
}

/// The hash of the first and the last bytes of a log's indexed part. Changing a line in between moves the last bytes,
/// unless its length stays the same, in which case every offset in the index remains valid.
fn edge_hash(file: &mut File, bytes: u64) -> std::io::Result<String> {
    let mut text = Vec::new();
    for start in [0, bytes.saturating_sub(EDGE_BYTES)] {
        file.seek(SeekFrom::Start(start))?;
        file.take(EDGE_BYTES.min(bytes - start)).read_to_end(&mut text)?;
    }
    Ok(sha256_hex(&text))
}

fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The difference between the index of a log and its lines, in words. `None` if they agree, and if the log was
/// replaced: in that case the index is rebuilt before the next count.
///
/// # Errors
/// When log or store cannot be read.
pub(crate) async fn find_index_diff(store: &Store, log: &Path) -> Result<Option<String>, LedgerError> {
    let compared = async {
        let Some(mut file) = open(log)? else { return Ok(None) };
        let mut connection = store.writer().await;
        let index = connection.log_index();
        if has_orphan_lines(index).await? {
            return Ok(Some("it has lines of an unknown log".to_owned()));
        }
        let Some(known) = find_row(index, &key(log)).await? else { return Ok(None) };
        match known.compare(&mut file)? {
            LogState::Replaced => Ok(None),
            _ => compare_rebuilt(index, &known, Batches::read(file, 0..known.bytes)).await,
        }
    };
    explain(store, log, compared.await)
}

/// Indexes the lines again, in memory, and compares the rows.
async fn compare_rebuilt(
    index: &mut SqliteConnection,
    known: &IndexRow,
    mut batches: Batches,
) -> Result<Option<String>, sqlx::Error> {
    let mut scratch = engine::log_index_in_memory().await?;
    let mut transaction = scratch.begin().await?;
    let (mut next, mut corrupt) = (1, 0);
    while let Some(batch) = batches.next().await? {
        next = insert(&mut transaction, known.id, next, &batch).await?;
        corrupt += batch.corrupt;
    }
    transaction.commit().await?;
    if corrupt != known.corrupt {
        let had = known.corrupt;
        return Ok(Some(format!("it has {had} unreadable lines, but the log has {corrupt}")));
    }
    for select in [LINES, DELIBERATORS] {
        let mut stored = sqlx::query(select).bind(known.id).fetch(&mut *index);
        let mut rebuilt = sqlx::query(select).bind(known.id).fetch(&mut scratch);
        loop {
            let (stored, rebuilt) = (stored.try_next().await?, rebuilt.try_next().await?);
            let text = |row: &Option<SqliteRow>| row.as_ref()?.try_get::<String, _>(1).ok();
            match &rebuilt {
                None if stored.is_none() => break,
                None => return Ok(Some("it has lines that the log lacks".to_owned())),
                Some(_) if text(&stored).is_some() && text(&stored) == text(&rebuilt) => {}
                Some(row) => {
                    let start = row.try_get::<i64, _>(0)?;
                    return Ok(Some(format!("its line at byte {start} differs from the log")));
                }
            }
        }
    }
    Ok(None)
}

/// The rows of a log's lines, as text in which values of different types differ.
const LINES: &str = "SELECT at_byte, quote(at_byte) || ' ' || quote(bytes) || quote(event) || quote(prior) || quote(span) || \
     quote(artifact_type) || quote(verdict) || quote(at_ms) || ' ' || quote(elapsed_ms) || ' ' || quote(calls) || ' ' || \
     quote(tokens) || quote(producer) || quote(positions) || quote(positioned) || ' ' || quote(blocking) || ' ' || \
     quote(scored) || ' ' || quote(scores) FROM log_line WHERE log = ? ORDER BY id";

/// The rows of its deliberators. Row ids differ between an index that grew and a new one, but not their order.
const DELIBERATORS: &str = "SELECT at_byte, quote(member) || quote(at_byte) || ' ' || quote(blocks) || ' ' || \
     quote(irreducible) || ' ' || quote(flipped) || ' ' || quote(schema_failed) || ' ' || quote(timed_out) || ' ' || \
     quote(first_score) || ' ' || quote(last_score) || ' ' || quote(reprompts) \
     FROM log_seat LEFT JOIN log_line ON log_line.id = log_seat.line WHERE log_seat.log = ? \
     ORDER BY member, blocks, irreducible, flipped, schema_failed, timed_out, first_score, last_score, reprompts, line";

/// Whether there are rows without a log.
async fn has_orphan_lines(index: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let select = "SELECT 1 FROM log_line WHERE log NOT IN (SELECT id FROM log) \
         UNION ALL SELECT 1 FROM log_seat WHERE log NOT IN (SELECT id FROM log) LIMIT 1";
    Ok(sqlx::query(select).fetch_optional(index).await?.is_some())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test's own files")]
mod tests {
    use std::io::Write as _;
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn a_log_that_grows_under_several_readers_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("council_log.jsonl");
        std::fs::write(&log, "not a line\n").unwrap();
        let store = Arc::new(Store::open(&dir.path().join("ledger.db")).await.unwrap().store);
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let (store, log) = (Arc::clone(&store), log.clone());
                tokio::spawn(async move {
                    let mut newly_corrupt = 0;
                    for _ in 0..25 {
                        let mut file = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
                        file.write_all(b"{\"v\": 2, \"event\": \"verdict\"}\n").unwrap();
                        newly_corrupt += sync(&store, &log).await.unwrap().newly_corrupt;
                    }
                    newly_corrupt
                })
            })
            .collect();
        let mut newly_corrupt = 0;
        for reader in readers {
            newly_corrupt += reader.await.unwrap();
        }
        // A second read of the log would report its one bad line again.
        assert_eq!(newly_corrupt, 1);
    }
}
