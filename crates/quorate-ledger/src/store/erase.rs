//! Erases bodies physically (D4): from their rows, from the file's free space and from its log.
//!
//! SQLite overwrites erased content, and content that it moves from page to page (`secure_delete`). Its log keeps
//! copies until it is emptied. A file by an older version may contain more copies, which are removed when the file is
//! rewritten. A mark beside the ledger remains until all of that is done, so that the next process completes unfinished
//! work.

use std::path::PathBuf;
use std::time::Duration;

use quorate_kernel::ports::ledger::{Durability, Entry, LedgerError};
use quorate_kernel::record::{Erased, RecordRange};
use quorate_protocol::Name;
use sqlx::{AssertSqlSafe, Row as _};

use super::connection::Transaction;
use super::engine::{Column, Engine, Statement, sql};
use super::open::LOCK_TIMEOUT;
use super::{Store, queue, unavailable};
use crate::checkpoint::STREAM;
use crate::retention::{ErasurePlan, PlannedErasure};
use crate::signing::SecretKey;
use crate::{files, retention};

/// The timeout for readers to finish.
const READERS_TIMEOUT: Duration = Duration::from_secs(3);

/// How thoroughly erased content is removed from the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WipeMode {
    /// Rewrite the file, which frees its unused space and takes time in proportion to its size.
    Rebuild,
    /// Overwrite in place.
    InPlace,
}

#[derive(Debug, Default)]
pub struct ErasureReport {
    pub runs: Vec<PlannedErasure>,
    /// Why traces of erased content may remain in the ledger's files; `None` if all of it is gone.
    pub residue: Option<String>,
    /// Other places that may still contain it.
    pub server_residue: Option<&'static str>,
}

impl Store {
    /// Erases the bodies in a plan, except those that a new run references meanwhile, and records the erasure, signed
    /// by the ledger's key, all or nothing. Then cleans the files. An empty plan only completes the unfinished cleaning
    /// of an earlier erasure.
    ///
    /// # Errors
    /// If the store does not answer. In that case nothing is erased.
    #[crate::boxed]
    pub async fn erase(
        &self,
        mut plan: ErasurePlan,
        at_ms: i64,
        rewrite: WipeMode,
        key: Option<&SecretKey>,
    ) -> Result<ErasureReport, LedgerError> {
        if plan.erasures.is_empty() {
            return Ok(match self.has_pending_wipe() {
                true => self.wipe(rewrite, rewrite == WipeMode::Rebuild).await,
                false => ErasureReport::default(),
            });
        }
        if let Some(why) = self.read_only_reason() {
            let what = format!("cannot erase from the ledger {}: {why}", self.address());
            return Err(LedgerError::Unavailable { what, source: None });
        }
        let key = key.ok_or_else(|| LedgerError::NoSigningKey { run: STREAM.into() })?;
        // An earlier erasure may have left unfinished work.
        let is_all = rewrite == WipeMode::Rebuild || !self.has_pending_wipe();
        self.mark_pending_wipe()?;
        let erase = async |transaction: &mut Transaction<'_>| {
            erase_in_transaction(transaction, &mut plan, at_ms, key).await
        };
        self.write(Durability::Synced, erase).await?;
        self.mark_appended();
        Ok(ErasureReport { runs: plan.erasures, ..self.wipe(rewrite, is_all).await })
    }

    /// Cleans the files. Returns the places where erased content may remain. `is_all` means that this erasure was the
    /// last unfinished one.
    async fn wipe(&self, rewrite: WipeMode, is_all: bool) -> ErasureReport {
        let mut connection = self.writer().await;
        let wiping = async { connection.engine().await?.wipe(rewrite).await };
        let remaining = wiping.await.unwrap_or_else(|error: sqlx::Error| ErasureReport {
            residue: Some(super::error_text(&error)),
            ..ErasureReport::default()
        });
        if is_all && remaining.residue.is_none() {
            // A remaining mark makes the next erasure clean the files again.
            let _ = files::remove(&self.pending_wipe_path());
        }
        remaining
    }

    /// Whether an earlier erasure may have left traces.
    pub fn has_pending_wipe(&self) -> bool {
        self.pending_wipe_path().exists()
    }

    fn pending_wipe_path(&self) -> PathBuf {
        match self.address.file() {
            Some(file) => files::with_suffix(file, "-unwiped"),
            None => self.dir().join("ledger-unwiped"),
        }
    }

    fn mark_pending_wipe(&self) -> Result<(), LedgerError> {
        let path = self.pending_wipe_path();
        let begun = files::open_append(&path).and_then(|file| file.sync_all());
        let begun = begun.and_then(|()| files::sync_dir_of(&path));
        begun.map_err(|error| unavailable(format!("cannot make {}", path.display()), error))
    }
}

/// Erases bodies inside of a transaction, and records it.
async fn erase_in_transaction(
    transaction: &mut Transaction<'_>,
    plan: &mut ErasurePlan,
    at_ms: i64,
    key: &SecretKey,
) -> Result<(), sqlx::Error> {
    let engine = transaction.engine();
    // The plan may be outdated by the time the write lock is acquired.
    let open = sql("SELECT run FROM run WHERE ended = 0").rows(engine, &[Column::Text]).await?;
    let on_hold = crate::retention::runs_on_hold(engine).await?;
    let mut spared = on_hold.clone();
    spared.extend(open.iter().map(|row| Name::from(row.text(0))));
    if let Some(ending) = plan.ending.as_ref().filter(|ending| !on_hold.contains(*ending)) {
        spared.remove(ending);
    }
    // Refuses an erasure that `verify` would not accept.
    for due in &plan.erasures {
        let subject = crate::retention::erasure_target(engine, &due.run, &on_hold).await?;
        if retention::check_allowed(&due.to_erasure(), &subject, at_ms).is_err() {
            spared.insert(due.run.clone());
        }
    }
    plan.expired.retain(|run| !spared.contains(run));
    plan.erasures.retain(|due| !spared.contains(&due.run));
    plan.references.scan_on(engine, &plan.texts).await?;
    plan.assign_texts();
    let mut done = Vec::new();
    for due in std::mem::take(&mut plan.erasures) {
        let mut touched = 0;
        for (first, last) in &due.records {
            let erase =
                "UPDATE record SET data = NULL WHERE run = $1 AND n >= $2 AND n <= $3 AND data IS NOT NULL";
            touched += sql(erase).bind(&*due.run).bind(*first).bind(*last).execute(engine).await?;
            let kept =
                "SELECT n FROM record WHERE run = $1 AND n >= $2 AND n <= $3 AND data IS NOT NULL LIMIT 1";
            ensure_erased(engine, "record", sql(kept).bind(&*due.run).bind(*first).bind(*last)).await?;
        }
        for text in &due.texts {
            touched += sql("DELETE FROM body WHERE sha256 = $1").bind(&**text).execute(engine).await?;
            let kept = sql("SELECT CAST(1 AS BIGINT) FROM body WHERE sha256 = $1");
            ensure_erased(engine, "body", kept.bind(&**text)).await?;
        }
        // If no row was affected, another process was faster, and has recorded it.
        if touched > 0 {
            done.push(due);
        }
    }
    plan.erasures = done;
    let entries = plan.erasures.iter().map(|due| erased_entry(due, at_ms)).collect();
    transaction.append_ledger_records(entries, key).await
}

/// Checks that the database erased the rows, because a rule or a trigger may have kept them.
async fn ensure_erased(engine: &mut Engine, table: &str, kept: Statement) -> Result<(), sqlx::Error> {
    match kept.row(engine, &[Column::Int]).await? {
        None => Ok(()),
        Some(_) => {
            let what = format!(
                "the table `{table}` still contains the erased rows: a rule or a trigger blocks the erasure"
            );
            Err(sqlx::Error::Configuration(what.into()))
        }
    }
}

/// The record of a run's erasure.
fn erased_entry(due: &PlannedErasure, at_ms: i64) -> Entry {
    let ranges = due.records.iter().map(|(first, last)| RecordRange::FirstToLast([*first, *last]));
    let data = Erased {
        run: Some(due.run.to_string()),
        records: Some(ranges.collect()),
        bodies: Some(due.texts.iter().cloned().collect()),
        reason: Some(due.period.reason().to_owned()),
        days: due.period.days(),
    };
    Entry::of(&data, at_ms)
}

impl Transaction<'_> {
    /// Appends records to the ledger's own stream, signed by its key.
    pub(crate) async fn append_ledger_records(
        &mut self,
        entries: Vec<Entry>,
        key: &SecretKey,
    ) -> Result<(), sqlx::Error> {
        let stream: Name = STREAM.into();
        let (engine, tails) = self.engine_and_tails();
        tails.remove(&stream);
        let next = sql("SELECT COALESCE(MAX(n), -1) + 1 FROM record WHERE run = $1").bind(STREAM);
        let next = next.number(engine).await?;
        for (n, entry) in (next..).zip(entries) {
            queue::append_in_transaction(engine, &stream, n, entry, Some(key)).await?;
        }
        Ok(())
    }
}

fn busy_timeout(time: Duration) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!("PRAGMA busy_timeout = {}", time.as_millis()))
}

impl Engine {
    /// Cleans the files of erased content.
    async fn wipe(&mut self, rewrite: WipeMode) -> Result<ErasureReport, sqlx::Error> {
        match self {
            Engine::Sqlite(sqlite) => {
                if rewrite == WipeMode::Rebuild {
                    sqlx::raw_sql("VACUUM").execute(&mut *sqlite).await?;
                }
                // Waiting for readers blocks writers.
                sqlx::raw_sql(busy_timeout(READERS_TIMEOUT)).execute(&mut *sqlite).await?;
                let checkpoint = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut *sqlite).await;
                sqlx::raw_sql(busy_timeout(LOCK_TIMEOUT)).execute(&mut *sqlite).await?;
                let busy: i64 = checkpoint?.get(0);
                let residue = (busy != 0).then(|| "another process is reading it".to_owned());
                Ok(ErasureReport { residue, ..ErasureReport::default() })
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => {
                // If this user may not rewrite a table, the server skips it with a warning.
                let may = sql(super::postgres::REWRITABLE_TABLES).row(self, &[Column::Int]).await?;
                if may.is_none_or(|row| row.int(0) < 2) {
                    let residue = "this user may not rewrite the tables; their owner may".to_owned();
                    return Ok(ErasureReport { residue: Some(residue), ..ErasureReport::default() });
                }
                match rewrite {
                    WipeMode::Rebuild => {
                        self.execute_raw("VACUUM (FULL) record").await?;
                        self.execute_raw("VACUUM (FULL) body").await?;
                    }
                    WipeMode::InPlace => self.execute_raw("VACUUM record, body").await?,
                }
                let server_residue = Some(
                    "in the server's write-ahead log, copies and backups, until the server's administrator removes them",
                );
                Ok(ErasureReport { server_residue, ..ErasureReport::default() })
            }
        }
    }
}
