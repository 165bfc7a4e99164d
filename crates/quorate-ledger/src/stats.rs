//! Statistics of a ledger, and its costs, read from consultations and from comparisons by meaning.

use quorate_kernel::clock::{as_optional_rfc3339, parse_rfc3339, rfc3339};
use quorate_kernel::ports::executor::Usage;
use quorate_kernel::ports::ledger::{Kind, LedgerError};
use quorate_kernel::record::Spent;
use serde::{Deserialize, Serialize};

use crate::Store;
use crate::record::Head;
use crate::store::engine::{Column, sql};
use crate::store::{CheckpointRecord, STREAM};

/// The contents of a ledger, in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LedgerCounts {
    /// The number of records.
    pub records: u64,
    /// The size of their heads and bodies, in bytes.
    pub record_bytes: u64,
    /// The size of the bodies, in bytes.
    #[serde(skip)]
    pub data_bytes: u64,
    /// The number of records with erased bodies.
    pub erased: u64,
    /// The number of runs.
    pub runs: u64,
    /// The number of open runs.
    pub open: u64,
    /// The number of conversations of runtimes.
    pub conversations: u64,
    /// The number of their records.
    pub conversation_records: u64,
    /// The number of runs with signed records.
    pub signed: u64,
    /// The number of runs on hold.
    pub held: u64,
    /// The number of imported runs.
    pub imported: u64,
    /// The number of texts that records name by hash.
    pub bodies: u64,
    /// The size of these texts, in bytes.
    pub body_bytes: u64,
    /// Additions in the last days.
    pub recent: Recent,
    /// The last checkpoint.
    pub checkpoint: Option<CheckpointRecord>,
    /// Its time, in milliseconds since the Unix epoch.
    #[serde(rename = "checkpoint_at", serialize_with = "as_optional_rfc3339")]
    pub checkpoint_at_ms: Option<i64>,
    /// The number of records after it.
    pub unsealed: u64,
}

/// The number of days that count as recent.
pub const RECENT_DAYS: i64 = 30;

/// Additions in the last days, for runs, conversations and all other records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Recent {
    /// The number of days.
    pub days: i64,
    /// The number of runs that were opened.
    pub runs: u64,
    /// The number of records.
    pub records: u64,
    /// The size of these records in bytes.
    pub bytes: u64,
}

/// Totals, one integer per column.
const COUNTS: &str = "SELECT \
    (SELECT COUNT(*) FROM record), \
    (SELECT CAST(COALESCE(SUM(LENGTH(head) + COALESCE(LENGTH(data), 0)), 0) AS BIGINT) FROM record), \
    (SELECT COUNT(*) FROM record WHERE data IS NULL), \
    (SELECT COUNT(*) FROM run), \
    (SELECT COUNT(*) FROM run WHERE ended = 0), \
    (SELECT COUNT(*) FROM signature WHERE n = 0), \
    (SELECT COUNT(*) FROM held), \
    (SELECT COUNT(*) FROM imported), \
    (SELECT COUNT(*) FROM body), \
    (SELECT CAST(COALESCE(SUM(LENGTH(text)), 0) AS BIGINT) FROM body), \
    (SELECT CAST(COALESCE(SUM(LENGTH(data)), 0) AS BIGINT) FROM record), \
    (SELECT COUNT(DISTINCT run) FROM record WHERE run LIKE 'turns/%'), \
    (SELECT COUNT(*) FROM record WHERE run LIKE 'turns/%')";

/// Additions since a time. A head is canonical JSON, so it begins with `{"at":"` and a time in a fixed format.
const RECENT: &str = "SELECT \
    (SELECT COUNT(*) FROM run WHERE opened_ms >= $1), \
    COUNT(*), \
    CAST(COALESCE(SUM(LENGTH(head) + COALESCE(LENGTH(data), 0)), 0) AS BIGINT) \
    FROM record WHERE SUBSTR(head, 8, 24) >= $2";

impl Store {
    /// Counts all records, and those of the last [`RECENT_DAYS`] days before a time in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn stats(&self, now_ms: i64) -> Result<LedgerCounts, LedgerError> {
        let since_ms = now_ms.saturating_sub(RECENT_DAYS * 24 * 3_600_000);
        let rows = self.rows(sql(COUNTS), &[Column::Int; 13]).await?;
        let recent = self.rows(sql(RECENT).bind(since_ms).bind(rfc3339(since_ms)), &[Column::Int; 3]).await?;
        let count = |at| rows.first().map_or(0, |row| row.count(at));
        let came = |at| recent.first().map_or(0, |row| row.count(at));
        let checkpoint = self.last_checkpoint().await?;
        let checkpoint_at_ms = match &checkpoint {
            Some(sealed) => Some(self.checkpoint_time_ms(sealed.n).await?),
            None => None,
        };
        Ok(LedgerCounts {
            records: count(0),
            record_bytes: count(1),
            erased: count(2),
            runs: count(3),
            open: count(4),
            conversations: count(11),
            conversation_records: count(12),
            signed: count(5),
            held: count(6),
            imported: count(7),
            bodies: count(8),
            body_bytes: count(9),
            data_bytes: count(10),
            recent: Recent { days: RECENT_DAYS, runs: came(0), records: came(1), bytes: came(2) },
            checkpoint,
            checkpoint_at_ms,
            unsealed: self.unsealed_records().await?,
        })
    }

    /// The time of a checkpoint, by its number in the ledger's stream.
    async fn checkpoint_time_ms(&self, n: u64) -> Result<i64, LedgerError> {
        let statement = sql("SELECT head FROM record WHERE run = $1 AND n = $2").bind(STREAM).bind(n);
        let rows = self.rows(statement, &[Column::Text]).await?;
        let head: Option<crate::record::Head> =
            rows.first().and_then(|row| serde_json::from_str(row.text(0)).ok());
        Ok(head.and_then(|head| parse_rfc3339(&head.at)).unwrap_or_default())
    }
}

/// The member and executor of a comparison of vectors: the configuration's table of the embedder.
const EMBEDDER: &str = "[embedder]";
/// The member of a comparison by question.
const MEANING: &str = "[meaning]";

/// The number of records per read.
const PAGE: i64 = 1_000;

/// Selects reviews, and with them the consultations that count. A field that is `None` selects all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReviewFilter {
    /// Opened or logged at or after this time, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
    /// The verdict, in upper case.
    pub verdict: Option<String>,
    /// The type of the artifact.
    pub artifact_type: Option<String>,
}

/// The cost of one question to a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberCost {
    /// The type of the run's artifact, or the name of the stream for a question outside of runs.
    pub artifact_type: String,
    /// The end of the call: RFC 3339, UTC.
    pub at: String,
    pub member: String,
    pub executor: String,
    /// The kind of the executor; empty for comparisons by meaning.
    pub kind: String,
    /// The model that answered, or the requested model.
    pub model: Option<String>,
    pub calls: u64,
    pub usage: Usage,
}

/// The fields of a consultation or comparison that costs need.
#[derive(Deserialize)]
struct Consulted {
    #[serde(default)]
    member: Option<String>,
    /// How a comparison by question was made.
    #[serde(default)]
    way: Option<String>,
    #[serde(default = "embedder")]
    executor: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    spent: Spent,
}

fn embedder() -> String {
    EMBEDDER.to_owned()
}

impl Store {
    /// Passes on the cost of each consultation that made a call, and of each comparison with paid requests, in the
    /// order of the ledger. Skips imported runs, which were paid for elsewhere, and erased consultations.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn member_costs(
        &self,
        filter: &ReviewFilter,
        mut each: impl FnMut(MemberCost),
    ) -> Result<(), LedgerError> {
        use Column::{Int, Text};
        let mut after = 0;
        loop {
            let page = sql(
                "SELECT record.seq, record.head, record.data, COALESCE(run.artifact_type, record.run) FROM record \
                 LEFT JOIN run ON run.run = record.run \
                 WHERE record.kind IN ($1, $7) AND record.seq > $2 AND record.data IS NOT NULL \
                   AND record.run NOT IN (SELECT run FROM imported) \
                   AND ($3 < 0 OR run.opened_ms >= $3) AND ($4 = '' OR run.verdict = $4) \
                   AND ($5 = '' OR run.artifact_type = $5) \
                 ORDER BY record.seq LIMIT $6",
            );
            let page = page
                .bind(Kind::Consultation.as_str())
                .bind(after)
                .bind(filter.since_ms.unwrap_or(-1))
                .bind(filter.verdict.as_deref().unwrap_or_default())
                .bind(filter.artifact_type.as_deref().unwrap_or_default())
                .bind(PAGE)
                .bind(Kind::Match.as_str());
            let rows = self.rows(page, &[Int, Text, Text, Text]).await?;
            for row in &rows {
                after = row.int(0);
                let head: Option<Head<&str>> = serde_json::from_str(row.text(1)).ok();
                let consulted: Option<Consulted> = serde_json::from_str(row.text(2)).ok();
                // Unreadable data is skipped here; `ledger verify` reports it.
                let Some((head, consulted)) = head.zip(consulted) else { continue };
                let calls = consulted.spent.calls.unwrap_or(0);
                if calls > 0 {
                    each(MemberCost {
                        artifact_type: row.text(3).to_owned(),
                        at: head.at.to_owned(),
                        member: consulted
                            .member
                            .unwrap_or_else(|| consulted.way.map_or(EMBEDDER, |_| MEANING).to_owned()),
                        executor: consulted.executor,
                        kind: consulted.kind,
                        model: consulted.model,
                        calls,
                        usage: consulted.spent.usage(),
                    });
                }
            }
            if rows.is_empty() {
                return Ok(());
            }
        }
    }
}
