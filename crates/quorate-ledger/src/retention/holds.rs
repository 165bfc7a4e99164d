//! Legal holds: texts of a run on hold are not erased, whatever its age. Each hold and each release is a record.

use quorate_kernel::clock::parse_rfc3339;
use quorate_kernel::ports::ledger::{Durability, Entry, Error, Kind};
use quorate_kernel::record::Held;
use quorate_protocol::Name;

use crate::record::Head;
use crate::signing::SecretKey;
use crate::store::engine::{Column, sql};
use crate::store::{STREAM, Store};

/// A run on hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegalHold {
    pub run: Name,
    /// Since when, in milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// Why, where that was said.
    pub reason: Option<String>,
    pub by: String,
}

impl Store {
    /// Whether nothing is erased of a run, whatever its age.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn is_on_hold(&self, run: &Name) -> Result<bool, Error> {
        let statement = sql("SELECT run FROM held WHERE run = $1").bind(&**run);
        Ok(!self.rows(statement, &[Column::Text]).await?.is_empty())
    }

    /// The runs on hold, the oldest hold first.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn holds(&self) -> Result<Vec<LegalHold>, Error> {
        let held = self.rows(sql("SELECT run FROM held"), &[Column::Text]).await?;
        let statement = sql("SELECT head, data FROM record WHERE run = $1 AND kind = $2 ORDER BY n DESC");
        let statement = statement.bind(STREAM).bind(Kind::Held.as_str());
        let rows = self.rows(statement, &[Column::Text, Column::Text]).await?;
        let records: Vec<(i64, Held)> = rows
            .iter()
            .filter_map(|row| {
                let head: Head = serde_json::from_str(row.text(0)).ok()?;
                Some((parse_rfc3339(&head.at)?, serde_json::from_str(row.opt_text(1)?).ok()?))
            })
            .collect();
        let mut holds: Vec<LegalHold> = held
            .iter()
            .map(|row| {
                let run: Name = row.text(0).into();
                let last = records.iter().find(|(_, held)| *held.run == *run);
                LegalHold {
                    since_ms: last.map_or(0, |(at_ms, _)| *at_ms),
                    reason: last.and_then(|(_, held)| held.reason.clone()),
                    by: last.map(|(_, held)| held.by.clone()).unwrap_or_default(),
                    run,
                }
            })
            .collect();
        holds.sort_by(|a, b| (a.since_ms, &a.run).cmp(&(b.since_ms, &b.run)));
        Ok(holds)
    }

    /// Appends a record of the ledger's own, about what was done to it: [`Kind::Held`] and [`Kind::Released`]. The ledger's
    /// key signs it. It is durable when this returns.
    ///
    /// # Errors
    /// When the store does not take it.
    #[crate::boxed]
    pub async fn append_ledger_record(&self, entry: Entry, key: &SecretKey) -> Result<(), Error> {
        let mut connection = self.writer().await;
        let appending = async {
            let mut transaction = connection.begin(Durability::Synced).await?;
            let appended = transaction.append_ledger_records(vec![entry], key).await?;
            if appended.is_ok() {
                transaction.commit().await?;
            }
            Ok(appended)
        };
        let appended = appending.await;
        if let Err(error) = &appended {
            connection.record_failure(error);
        }
        appended.map_err(|error| self.error(error))??;
        self.mark_appended();
        Ok(())
    }
}
