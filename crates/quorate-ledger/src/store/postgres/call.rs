//! What is written on a server as one statement: a function of the schema has the writers' lock, checks and writes in one
//! round trip.

use sqlx::Row as _;
use sqlx::postgres::PgRow;

use super::server::Server;

/// Everything that one statement appends.
#[derive(Debug, Default)]
pub(in crate::store) struct AppendCall {
    /// Whether it is on the disk when it is acknowledged.
    pub(in crate::store) synced: bool,
    /// Of each append: its run, the number of its first record, the leaf of the one before it, the name in this process's
    /// lease, its number of records.
    pub(in crate::store) runs: Vec<String>,
    pub(in crate::store) firsts: Vec<i64>,
    pub(in crate::store) ends: Vec<Option<String>>,
    pub(in crate::store) owners: Vec<Option<String>>,
    pub(in crate::store) counts: Vec<i64>,
    /// Of each record.
    pub(in crate::store) kinds: Vec<String>,
    pub(in crate::store) heads: Vec<String>,
    pub(in crate::store) datas: Vec<String>,
    /// Of each body, with the place of its append, counted from 1.
    pub(in crate::store) hashes: Vec<String>,
    pub(in crate::store) texts: Vec<String>,
    pub(in crate::store) body_of: Vec<i64>,
    /// What changes in the index, as JSON.
    pub(in crate::store) changes: String,
}

/// A run's lease that is asked for.
#[derive(Debug)]
pub(in crate::store) struct LeaseCall {
    pub(in crate::store) run: String,
    pub(in crate::store) owner: String,
    pub(in crate::store) place: String,
    pub(in crate::store) duration_ms: i64,
}

/// The lease of a run after it was asked for.
#[derive(Debug)]
pub(in crate::store) struct LeaseRow {
    pub(in crate::store) was_taken: bool,
    /// Whose it is, and until when, in milliseconds since the Unix epoch; `None` if it is no one's.
    pub(in crate::store) held: Option<(String, i64)>,
}

/// A function of the schema that writes.
pub(in crate::store) trait WriteCall {
    type Output;

    /// Calls it. `known` is the place up to which no gap was found; gives what it found out, and the place of the last
    /// record.
    fn call(
        &self,
        server: &mut Server,
        known: Option<i64>,
    ) -> impl Future<Output = Result<(Self::Output, i64), sqlx::Error>> + Send;
}

impl WriteCall for AppendCall {
    /// Whether each append fits its run. Those that do not are not written.
    type Output = Vec<bool>;

    async fn call(
        &self,
        server: &mut Server,
        known: Option<i64>,
    ) -> Result<(Self::Output, i64), sqlx::Error> {
        const CALL: &str = "SELECT fits, place FROM \
            quorate_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
        let call = sqlx::query(CALL).bind(self.synced).bind(known);
        let call = call.bind(&self.runs).bind(&self.firsts).bind(&self.ends);
        let call =
            call.bind(&self.owners).bind(&self.counts).bind(&self.kinds).bind(&self.heads).bind(&self.datas);
        let call = call.bind(&self.hashes).bind(&self.texts).bind(&self.body_of).bind(&self.changes);
        let rows = server.all_rows(call).await?;
        let fits = rows.iter().map(|row| Ok(row.try_get::<i64, _>("fits")? == 1));
        Ok((fits.collect::<Result<_, sqlx::Error>>()?, last_place(&rows)?))
    }
}

impl WriteCall for LeaseCall {
    type Output = LeaseRow;

    async fn call(
        &self,
        server: &mut Server,
        known: Option<i64>,
    ) -> Result<(Self::Output, i64), sqlx::Error> {
        const CALL: &str = "SELECT place, taken, holder, until FROM quorate_take_lease($1, $2, $3, $4, $5)";
        let call = sqlx::query(CALL).bind(known).bind(&self.run).bind(&self.owner);
        let rows = server.all_rows(call.bind(&self.place).bind(self.duration_ms)).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let holder: Option<String> = row.try_get("holder")?;
        let until: Option<i64> = row.try_get("until")?;
        let lease = LeaseRow { was_taken: row.try_get::<i64, _>("taken")? == 1, held: holder.zip(until) };
        Ok((lease, last_place(&rows)?))
    }
}

/// The place of the last record, which each row of an answer has.
pub(in crate::store) fn last_place(rows: &[PgRow]) -> Result<i64, sqlx::Error> {
    rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get("place")
}

/// Whether a function refused to write behind a gap.
pub(in crate::store) fn is_gap(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.code().as_deref() == Some("QU001"))
}
