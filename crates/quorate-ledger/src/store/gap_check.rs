//! Checks that the records' positions have no gap. A process that can write the tables can put a row anywhere, and records
//! appended after it would be acknowledged behind a gap, so the check runs before any append.

use quorate_kernel::ports::ledger::Error;

use super::engine::{Column, Engine, sql};

/// The position up to which no gap was found; at first that of the last checkpoint.
#[derive(Debug, Default)]
pub(super) struct GapCheck(Option<u64>);

/// Records after an empty position.
#[derive(Debug, thiserror::Error)]
#[error("there are {before} records before the last one ({run}/{n}), which is at place {place}")]
pub(super) struct Gap {
    run: String,
    n: u64,
    place: u64,
    before: u64,
}

impl GapCheck {
    /// Refuses to append behind a gap.
    ///
    /// # Errors
    /// If there is a gap ([`GapCheck::refusal`] recognizes the error), or the store does not answer.
    pub(super) async fn check(&mut self, engine: &mut Engine) -> Result<(), sqlx::Error> {
        let since = match self.0 {
            Some(since) => since,
            None => checkpointed_records(engine).await?,
        };
        let behind = match since {
            // Counted in an index: a ledger that was never sealed would be read whole by each process.
            0 => sql("SELECT (SELECT COUNT(*) FROM record), (SELECT COALESCE(MAX(seq), 0) FROM record)"),
            _ => sql("SELECT COUNT(*), COALESCE(MAX(seq), $1) FROM record WHERE seq > $2")
                .bind(since)
                .bind(since),
        };
        let behind = behind.row(engine, &[Column::Int; 2]).await?;
        let (count, last) = behind.map_or((0, since), |row| (row.count(0), row.count(1)));
        if last - since == count {
            self.0 = Some(last);
            return Ok(());
        }
        let last = sql("SELECT run, n, seq FROM record ORDER BY seq DESC LIMIT 1");
        let last = last.row(engine, &[Column::Text, Column::Int, Column::Int]).await?;
        let before = since + count.saturating_sub(1);
        Err(match last {
            Some(row) => {
                let gap = Gap { run: row.text(0).to_owned(), n: row.count(1), place: row.count(2), before };
                sqlx::Error::Configuration(Box::new(gap))
            }
            None => sqlx::Error::RowNotFound,
        })
    }

    /// The position, where it is known.
    #[cfg(feature = "postgres")]
    pub(super) fn known(&self) -> Option<i64> {
        self.0.and_then(|known| i64::try_from(known).ok())
    }

    /// The server has checked up to its last record.
    #[cfg(feature = "postgres")]
    pub(super) fn set_known(&mut self, last: i64) {
        self.0 = u64::try_from(last).ok();
    }

    /// Forgets the position: what was seen may be gone with the connection.
    pub(super) fn reset(&mut self) {
        self.0 = None;
    }
}

impl Gap {
    /// The refusal of an append, if the error is one.
    pub(super) fn refusal(error: &sqlx::Error) -> Option<Error> {
        let sqlx::Error::Configuration(error) = error else { return None };
        let gap = error.downcast_ref::<Gap>()?;
        let what = format!(
            "it is at place {}, and there are {} records before it, so nothing is appended; `quorate ledger verify` says \
             what differs",
            gap.place, gap.before
        );
        Some(Error::Corrupt { run: gap.run.as_str().into(), n: gap.n, what })
    }
}

/// The size of the last checkpoint that enough records exist for.
async fn checkpointed_records(engine: &mut Engine) -> Result<u64, sqlx::Error> {
    let row =
        sql("SELECT COALESCE(MAX(size), 0) FROM checkpoint WHERE size <= (SELECT MAX(seq) FROM record)");
    Ok(row.row(engine, &[Column::Int]).await?.map_or(0, |row| row.count(0)))
}
