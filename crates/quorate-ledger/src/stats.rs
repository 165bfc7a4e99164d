//! Statistics of a ledger.

use quorate_kernel::clock::{parse_rfc3339, rfc3339};
use quorate_kernel::ports::ledger::Error;

use crate::Store;
use crate::store::engine::{Column, sql};
use crate::store::{CheckpointRecord, STREAM};

/// What a ledger holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    pub records: u64,
    /// How many bytes their heads and bodies have.
    pub record_bytes: u64,
    /// How many of these the bodies have.
    pub data_bytes: u64,
    /// How many of them have no body any more.
    pub erased: u64,
    pub runs: u64,
    /// How many of them are not ended.
    pub open: u64,
    /// How many conversations of runtimes.
    pub conversations: u64,
    /// How many of the records are of these.
    pub conversation_records: u64,
    /// How many of the runs have signed records.
    pub signed: u64,
    /// How many nothing may be erased of.
    pub held: u64,
    /// How many came from other ledgers.
    pub imported: u64,
    /// How many texts records name by hash.
    pub bodies: u64,
    /// How many bytes these have.
    pub body_bytes: u64,
    /// What came since the time that was asked for.
    pub recent: Recent,
    /// The last checkpoint, and when it was made, in milliseconds since the Unix epoch.
    pub last_checkpoint: Option<(CheckpointRecord, i64)>,
    /// How many records are after it.
    pub since_checkpoint: u64,
}

/// What came since some time, of runs, conversations and everything else that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recent {
    pub runs: u64,
    pub records: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// What is counted over all of it. Each is an integer.
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

/// What came since a time. A head is canonical JSON, so that it begins with `{"at":"` and a time of one form.
const RECENT: &str = "SELECT \
    (SELECT COUNT(*) FROM run WHERE opened_ms >= $1), \
    COUNT(*), \
    CAST(COALESCE(SUM(LENGTH(head) + COALESCE(LENGTH(data), 0)), 0) AS BIGINT) \
    FROM record WHERE SUBSTR(head, 8, 24) >= $2";

impl Store {
    /// Counts everything, and what is newer than a time (in milliseconds since the Unix epoch).
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn stats(&self, since_ms: i64) -> Result<Stats, Error> {
        let rows = self.rows(sql(COUNTS), &[Column::Int; 13]).await?;
        let recent = self.rows(sql(RECENT).bind(since_ms).bind(rfc3339(since_ms)), &[Column::Int; 3]).await?;
        let count = |at| rows.first().map_or(0, |row| row.count(at));
        let came = |at| recent.first().map_or(0, |row| row.count(at));
        let last_checkpoint = match self.last_checkpoint().await? {
            Some(sealed) => {
                let at_ms = self.checkpoint_time_ms(sealed.n).await?;
                Some((sealed, at_ms))
            }
            None => None,
        };
        Ok(Stats {
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
            recent: Recent { runs: came(0), records: came(1), bytes: came(2) },
            last_checkpoint,
            since_checkpoint: self.unsealed_records().await?,
        })
    }

    /// When a checkpoint was made, by its number in the ledger's stream.
    async fn checkpoint_time_ms(&self, n: u64) -> Result<i64, Error> {
        let statement = sql("SELECT head FROM record WHERE run = $1 AND n = $2").bind(STREAM).bind(n);
        let rows = self.rows(statement, &[Column::Text]).await?;
        let head: Option<crate::record::Head> =
            rows.first().and_then(|row| serde_json::from_str(row.text(0)).ok());
        Ok(head.and_then(|head| parse_rfc3339(&head.at)).unwrap_or_default())
    }
}
