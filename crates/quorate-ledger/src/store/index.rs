//! The index of runs: typed columns that follow from the records, written in the same transaction.

use quorate_kernel::ports::ledger::{Entry, Kind};
use quorate_protocol::Json;
use serde_json::Map;
use sqlx::sqlite::SqliteConnection;

/// What a record changes in the index.
pub(super) enum Change {
    Opened { at_ms: i64, columns: [String; 5] },
    Decided { at_ms: i64, verdict: String },
    Reopened,
    Overridden { verdict: String },
    Ended,
}

impl Change {
    /// What this record changes, if anything.
    pub(super) fn of(entry: &Entry) -> Option<Change> {
        let text = |key: &str| string(&entry.data, key);
        match entry.kind {
            Kind::RunOpened => {
                let council =
                    entry.data.get("fingerprint").and_then(Json::as_object).map(|all| string(all, "council"));
                let columns = [
                    text("subject"),
                    text("artifact_type"),
                    text("artifact_sha256"),
                    council.unwrap_or_default(),
                    text("log_path"),
                ];
                Some(Change::Opened { at_ms: entry.at_ms, columns })
            }
            Kind::RunIntent => entry.data.contains_key("supersedes").then_some(Change::Reopened),
            Kind::Outcome => Some(Change::Decided { at_ms: entry.at_ms, verdict: text("verdict") }),
            Kind::Override => Some(Change::Overridden { verdict: text("verdict") }),
            Kind::RunEnded => Some(Change::Ended),
            Kind::Attempt
            | Kind::Consultation
            | Kind::Gathered
            | Kind::Match
            | Kind::Rule
            | Kind::LockCheck
            | Kind::Violation
            | Kind::OverlayAdded
            | Kind::OverlayEvicted
            | Kind::Turn
            | Kind::Playbook(_) => None,
        }
    }

    pub(super) async fn apply(self, sqlite: &mut SqliteConnection, run: &str) -> Result<(), sqlx::Error> {
        let query = match self {
            Change::Opened { at_ms, columns } => {
                let [subject, artifact_type, artifact_sha256, council, log_path] = columns;
                sqlx::query(
                    "INSERT INTO run (run, opened_ms, subject, artifact_type, artifact_sha256, council, log_path, ended) \
                     VALUES (?8, ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )
                .bind(at_ms)
                .bind(subject)
                .bind(artifact_type)
                .bind(artifact_sha256)
                .bind(council)
                .bind(log_path)
                .bind(0)
                .bind(run)
            }
            Change::Decided { at_ms, verdict } => {
                sqlx::query("UPDATE run SET verdict = ?, decided_ms = ? WHERE run = ?")
                    .bind(verdict)
                    .bind(at_ms)
                    .bind(run)
            }
            Change::Reopened => {
                sqlx::query("UPDATE run SET verdict = NULL, decided_ms = NULL, ended = 0 WHERE run = ?")
                    .bind(run)
            }
            Change::Overridden { verdict } => {
                sqlx::query("UPDATE run SET override = ? WHERE run = ?").bind(verdict).bind(run)
            }
            Change::Ended => sqlx::query("UPDATE run SET ended = 1 WHERE run = ?").bind(run),
        };
        query.execute(sqlite).await.map(|_| ())
    }
}

fn string(data: &Map<String, Json>, key: &str) -> String {
    data.get(key).and_then(Json::as_str).unwrap_or_default().to_owned()
}
