//! What a server says of itself, for those who check that a ledger is kept as it should be.

use quorate_kernel::ports::ledger::Error;

use super::Store;
use super::engine::{Column, sql};

/// A server, as this connection finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// As `server_version_num` has it: 150004 for 15.4.
    pub version: u64,
    /// Its clock, in milliseconds since the Unix epoch.
    pub clock_ms: i64,
    /// The settings that lose synced records when the machine crashes, where they are off.
    pub unsafe_settings: Vec<&'static str>,
    /// Whether this user may queue and work.
    pub may_queue: bool,
}

impl Store {
    /// What the server says; `None` for a file.
    ///
    /// # Errors
    /// When the server does not answer.
    #[crate::boxed]
    pub async fn server_facts(&self) -> Result<Option<ServerFacts>, Error> {
        if !self.is_shared() {
            return Ok(None);
        }
        let ask = sql("SELECT CAST(current_setting('server_version_num') AS BIGINT), \
             CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT), \
             current_setting('fsync'), current_setting('full_page_writes'), \
             (SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('task') \
                 AND has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE'))");
        let columns = [Column::Int, Column::Int, Column::Text, Column::Text, Column::Int];
        let rows = self.rows(ask, &columns).await?;
        Ok(rows.first().map(|row| ServerFacts {
            version: row.count(0),
            clock_ms: row.int(1),
            unsafe_settings: [("fsync", 2), ("full_page_writes", 3)]
                .into_iter()
                .filter(|(_, at)| row.text(*at) == "off")
                .map(|(name, _)| name)
                .collect(),
            may_queue: row.count(4) > 0,
        }))
    }
}
