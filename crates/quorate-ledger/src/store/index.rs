//! The index of runs: typed columns derived from the records, written in the same transaction.

use quorate_kernel::ports::ledger::Kind;
use quorate_kernel::record::{self, Held, Imported, Override, Released, RunIntent, RunOpened};
use quorate_protocol::Json;
use serde::Serialize;
use serde_json::Map;
use sqlx::Error as StoreError;

use super::engine::{Column, Engine, Value, sql};

/// The change of the index that a record causes.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "what", rename_all = "lowercase")]
pub(crate) enum Change {
    Opened { at_ms: i64, columns: [String; 7] },
    Decided { at_ms: i64, verdict: String },
    Reopened,
    Overridden { verdict: String, unlogged: bool },
    Ended,
    Held { run: String },
    Released { run: String },
    Imported { runs: Vec<String> },
}

/// A run's row, derived from its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunRow {
    pub(crate) opened_ms: i64,
    /// Subject, artifact type, artifact's hash, council's fingerprint, log; and mode and producer in the table of
    /// origins.
    pub(crate) columns: [String; 7],
    pub(crate) verdict: Option<String>,
    pub(crate) decided_ms: Option<i64>,
    pub(crate) overridden: Option<String>,
    pub(crate) ended: bool,
}

impl Change {
    /// The change that this record causes, if any. An unreadable record causes none.
    pub(crate) fn from_record(kind: &str, at_ms: i64, data: &Map<String, Json>) -> Option<Change> {
        let text = |key: &str| string(data, key);
        let is = |one: Kind| kind == one.as_str();
        if is(Kind::RunOpened) {
            record::read(data).ok().map(|opened| Change::from_opened(opened, at_ms))
        } else if is(Kind::RunIntent) {
            let intent: RunIntent = record::read(data).ok()?;
            (!intent.supersedes.is_empty()).then_some(Change::Reopened)
        } else if is(Kind::Outcome) {
            Some(Change::Decided { at_ms, verdict: text("verdict") })
        } else if is(Kind::Override) {
            let decision: Override = record::read(data).ok()?;
            Some(Change::Overridden { unlogged: decision.is_unlogged(), verdict: decision.verdict })
        } else if is(Kind::RunEnded) {
            Some(Change::Ended)
        } else if is(Kind::Held) {
            Some(Change::Held { run: record::read::<Held>(data).ok()?.run })
        } else if is(Kind::Released) {
            Some(Change::Released { run: record::read::<Released>(data).ok()?.run })
        } else if is(Kind::Imported) {
            Some(Change::Imported { runs: record::read::<Imported>(data).ok()?.runs })
        } else {
            None
        }
    }

    /// The change that a run's first record causes.
    pub(crate) fn from_opened(opened: RunOpened, at_ms: i64) -> Change {
        let council = opened.fingerprint_of("council").map(str::to_owned);
        let mode = opened.protocol.split('/').next().map(str::to_owned);
        let producer = opened.producer.map(|producer| producer.operator);
        let RunOpened { subject, artifact_type, artifact_sha256, log_path, .. } = opened;
        let columns = [subject, artifact_type, artifact_sha256, council, log_path, mode, producer];
        Change::Opened { at_ms, columns: columns.map(Option::unwrap_or_default) }
    }

    /// Applies the change to a run's row.
    pub(crate) fn fold(self, row: Option<RunRow>) -> Option<RunRow> {
        let before = row.clone();
        let mut row = match self {
            Change::Opened { at_ms, columns } => {
                return Some(RunRow {
                    opened_ms: at_ms,
                    columns,
                    verdict: None,
                    decided_ms: None,
                    overridden: None,
                    ended: false,
                });
            }
            _ => row?,
        };
        match self {
            Change::Decided { at_ms, verdict } => {
                (row.verdict, row.decided_ms) = (Some(verdict), Some(at_ms));
            }
            Change::Reopened => (row.verdict, row.decided_ms, row.ended) = (None, None, false),
            Change::Overridden { verdict, unlogged } => {
                row.overridden = Some(verdict);
                row.ended &= !unlogged;
            }
            Change::Ended => row.ended = true,
            _ => return before,
        }
        Some(row)
    }

    pub(crate) async fn apply(self, engine: &mut Engine, run: &str) -> Result<(), sqlx::Error> {
        let statement = match self {
            Change::Opened { at_ms, columns } => {
                let opened = "INSERT INTO run (seq, opened_ms, subject, artifact_type, artifact_sha256, council, log_path, ended, run) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
                let seq = engine.next_seq("SELECT MAX(seq) FROM run").await?;
                let [subject, artifact_type, artifact_sha256, council, log_path, mode, producer] = columns;
                let statement = sql(opened).bind(seq).bind(at_ms).bind(subject).bind(artifact_type);
                let statement = statement.bind(artifact_sha256).bind(council).bind(log_path);
                statement.bind(0_i64).bind(run).insert_exactly(engine, 1).await?;
                let origin = sql("INSERT INTO run_origin (run, mode, producer) VALUES ($1, $2, $3)");
                return origin.bind(run).bind(mode).bind(producer).insert_exactly(engine, 1).await;
            }
            Change::Decided { at_ms, verdict } => {
                let decided = sql("UPDATE run SET verdict = $1, decided_ms = $2 WHERE run = $3");
                decided.bind(verdict).bind(at_ms).bind(run)
            }
            Change::Reopened => {
                sql("UPDATE run SET verdict = NULL, decided_ms = NULL, ended = 0 WHERE run = $1").bind(run)
            }
            Change::Overridden { verdict, unlogged } => {
                let decided = sql("UPDATE run SET override = $1, ended = ended * $2 WHERE run = $3");
                decided.bind(verdict).bind(i64::from(!unlogged)).bind(run)
            }
            Change::Ended => sql("UPDATE run SET ended = 1 WHERE run = $1").bind(run),
            Change::Held { run } => {
                let hold = sql("INSERT INTO held (run) VALUES ($1) ON CONFLICT (run) DO NOTHING");
                let there = sql("SELECT CAST(1 AS BIGINT) FROM held WHERE run = $1").bind(run.as_str());
                return hold.bind(run).insert_if_absent(engine, there).await;
            }
            Change::Released { run } => sql("DELETE FROM held WHERE run = $1").bind(run),
            Change::Imported { runs } => {
                for run in runs {
                    let imported = sql("INSERT INTO imported (run) VALUES ($1) ON CONFLICT (run) DO NOTHING");
                    let there =
                        sql("SELECT CAST(1 AS BIGINT) FROM imported WHERE run = $1").bind(run.as_str());
                    imported.bind(run).insert_if_absent(engine, there).await?;
                }
                return Ok(());
            }
        };
        statement.execute(engine).await.map(|_| ())
    }
}

impl Engine {
    /// The number of the next row of an append-only table; empty if the engine assigns it.
    #[cfg_attr(not(feature = "postgres"), expect(clippy::unused_async, reason = "a server has to be asked"))]
    pub(super) async fn next_seq(&mut self, greatest: &'static str) -> Result<Value, sqlx::Error> {
        match self {
            Engine::Sqlite(_) => {
                let _ = greatest;
                Ok(Value::Int(None))
            }
            // No other writer can insert one: every writing transaction holds the lock.
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => {
                let row = sql(greatest).row(self, &[super::engine::Column::Int]).await?;
                let next = row.map_or(0, |row| row.int(0)).checked_add(1);
                let what = "a table has a row at the last of all places; see `quorate ledger verify`";
                next.map(Value::from).ok_or_else(|| sqlx::Error::Configuration(what.into()))
            }
        }
    }
}

fn string(data: &Map<String, Json>, key: &str) -> String {
    data.get(key).and_then(Json::as_str).unwrap_or_default().to_owned()
}

/// Whether a run was recorded in another ledger.
pub(crate) async fn is_imported(engine: &mut Engine, run: &str) -> Result<bool, StoreError> {
    let row = sql("SELECT run FROM imported WHERE run = $1").bind(run).row(engine, &[Column::Text]).await?;
    Ok(row.is_some())
}
