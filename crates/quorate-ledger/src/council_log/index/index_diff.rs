//! Compares the index of the log with the log: whether its counts match the lines.

use std::collections::BTreeSet;
use std::path::Path;

use futures::TryStreamExt as _;
use quorate_kernel::ports::ledger::Error;
use sha2::{Digest as _, Sha256};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};
use tokio::sync::mpsc;

use super::{Batch, IndexRow, LogState, derived, find_row, key, parse, to_i64, unreadable};
use crate::Store;
use crate::council_log::line::Line;
use crate::files;

/// Where the index of a log does not follow from its lines, in words. `None` where it does, and where the log is another
/// than the one that was indexed: then its index is rebuilt before anything is counted.
///
/// # Errors
/// When log or store cannot be read.
pub(crate) async fn find_index_diff(store: &Store, log: &Path) -> Result<Option<String>, Error> {
    let mut file = match files::open(log) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(log, error)),
    };
    let mut connection = store.writer().await;
    let index = connection.log_index();
    if has_older_schema(index).await.map_err(|error| store.error(error))? {
        return Ok(None);
    }
    if has_orphan_lines(index).await.map_err(|error| store.error(error))? {
        return Ok(Some("it has lines of a log that it does not know".to_owned()));
    }
    let Some(known) = find_row(index, &key(log)).await.map_err(|error| store.error(error))? else {
        return Ok(None);
    };
    if known.compare(&mut file).map_err(|error| unreadable(log, error))? == LogState::Replaced {
        return Ok(None);
    }
    let (send, mut batches) = mpsc::channel(2);
    let part = 0..known.bytes;
    let reader = std::thread::spawn(move || parse(file, part, &send));
    let compared = compare_lines(index, &known, &mut batches).await;
    drop(batches);
    let read =
        reader.join().unwrap_or_else(|_| Err(std::io::Error::other("the log's reader stopped unexpectedly")));
    read.map_err(|error| unreadable(log, error))?;
    compared.map_err(|error| store.error(error))
}

async fn compare_lines(
    index: &mut SqliteConnection,
    known: &IndexRow,
    batches: &mut mpsc::Receiver<Batch>,
) -> Result<Option<String>, sqlx::Error> {
    let (mut after, mut corrupt) = (i64::MIN, 0);
    let mut sum = DeliberatorSum::default();
    while let Some(batch) = batches.recv().await {
        corrupt += batch.corrupt;
        let rows = lines(index, known.id, after, batch.lines.len()).await?;
        for (at, (start, length, line)) in batch.lines.iter().enumerate() {
            let Some(row) = rows.get(at).filter(|row| row_matches(row, *start, *length, line)) else {
                return Ok(Some(format!("its line at byte {start} differs from the log")));
            };
            after = row.get(0);
            // One that a line names twice in the same words is indexed once.
            let distinct: BTreeSet<_> =
                line.deliberators.iter().map(|(member, marks)| (member, marks.to_columns())).collect();
            distinct.into_iter().for_each(|(member, marks)| sum.add(after, member, marks));
        }
    }
    if !lines(index, known.id, after, 1).await?.is_empty() {
        return Ok(Some("it has lines that are not in the log".to_owned()));
    }
    if corrupt != known.corrupt {
        let had = known.corrupt;
        return Ok(Some(format!("it has {had} lines that cannot be read, and the log {corrupt}")));
    }
    let indexed = DeliberatorSum::from_index(index, known.id).await?;
    Ok((indexed != sum).then(|| "how deliberators behaved is not what the lines say".to_owned()))
}

/// Whether the file was last written by an earlier version, whose index is rebuilt before anything is counted.
async fn has_older_schema(index: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let select = "SELECT 1 FROM pragma_table_info('log_line') WHERE name = 'positions'";
    Ok(sqlx::query(select).fetch_optional(index).await?.is_none())
}

/// Whether there are rows that belong to no log.
async fn has_orphan_lines(index: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let select = "SELECT 1 FROM log_line WHERE log NOT IN (SELECT id FROM log) \
         UNION ALL SELECT 1 FROM log_seat WHERE log NOT IN (SELECT id FROM log) LIMIT 1";
    Ok(sqlx::query(select).fetch_optional(index).await?.is_some())
}

async fn lines(
    index: &mut SqliteConnection,
    log: i64,
    after: i64,
    count: usize,
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    let select = "SELECT id, at_byte, bytes, event, prior, span, artifact_type, verdict, at_ms, elapsed_ms, calls, tokens, \
         producer, positions, positioned, blocking, scored, scores FROM log_line WHERE log = ? AND id > ? ORDER BY id LIMIT ?";
    sqlx::query(select)
        .bind(log)
        .bind(after)
        .bind(i64::try_from(count).unwrap_or(i64::MAX))
        .fetch_all(index)
        .await
}

/// Values of different types differ.
fn row_matches(row: &SqliteRow, start: u64, length: u64, line: &Line) -> bool {
    let number = |at: usize, wanted: i64| row.try_get::<i64, _>(at).is_ok_and(|had| had == wanted);
    let text = |at: usize, wanted: &str| row.try_get::<&str, _>(at).is_ok_and(|had| had == wanted);
    let (positions, counts) = derived(line);
    number(1, to_i64(start))
        && number(2, to_i64(length))
        && text(3, line.event.as_str())
        && number(4, i64::from(line.is_prior()))
        && text(5, &line.span)
        && text(6, &line.artifact_type)
        && text(7, &line.verdict)
        && number(8, line.at_ms)
        && number(9, line.elapsed_ms)
        && number(10, line.calls)
        && number(11, line.tokens)
        && text(12, &line.producer)
        && text(13, &positions)
        && (14..).zip(counts).all(|(at, wanted)| number(at, wanted))
}

/// Rows of deliberators in any order: how many, and their hashes added up.
#[derive(Debug, Default, PartialEq, Eq)]
struct DeliberatorSum {
    count: u64,
    sum: u128,
}

impl DeliberatorSum {
    async fn from_index(index: &mut SqliteConnection, log: i64) -> Result<Self, sqlx::Error> {
        let select = "SELECT line, member, blocks, irreducible, flipped, schema_failed, timed_out, first_score, \
             last_score, reprompts FROM log_seat WHERE log = ?";
        let mut sum = DeliberatorSum::default();
        let mut rows = sqlx::query(select).bind(log).fetch(index);
        while let Some(row) = rows.try_next().await? {
            let mut marks = [0; 8];
            for (mark, at) in marks.iter_mut().zip(2..) {
                *mark = row.try_get::<i64, usize>(at)?;
            }
            sum.add(row.try_get(0)?, row.try_get(1)?, marks);
        }
        Ok(sum)
    }

    fn add(&mut self, line: i64, member: &str, marks: [i64; 8]) {
        let mut hash = Sha256::new();
        hash.update(line.to_be_bytes());
        marks.iter().for_each(|mark| hash.update(mark.to_be_bytes()));
        hash.update(member.as_bytes());
        let hash: [u8; 32] = hash.finalize().into();
        self.count += 1;
        self.sum = self.sum.wrapping_add(u128::from_be_bytes(hash[..16].try_into().unwrap_or_default()));
    }
}
