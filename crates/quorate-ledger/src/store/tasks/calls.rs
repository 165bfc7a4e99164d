//! The functions of the schema that change the queue.

use quorate_protocol::Name;
use sqlx::Row as _;

use super::{AGING_MS, Batch, NewTask, TaskState};
use crate::store::postgres::call::{WriteCall, last_place};
use crate::store::postgres::server::Server;

/// `quorate_enqueue`.
pub(super) struct EnqueueCall<'a> {
    pub(super) batch: &'a Batch,
    pub(super) tasks: &'a [NewTask],
}

impl WriteCall for EnqueueCall<'_> {
    type Output = Vec<(Name, TaskState, bool)>;

    async fn call(
        &self,
        server: &mut Server,
        known: Option<i64>,
    ) -> Result<(Self::Output, i64), sqlx::Error> {
        const CALL: &str = "SELECT place, task_run, task_state, added FROM quorate_enqueue(\
            $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
        let Batch { id, tenant, class, priority, log } = self.batch;
        let of_each = |value: fn(&NewTask) -> String| self.tasks.iter().map(value).collect::<Vec<_>>();
        let mut texts = std::collections::BTreeMap::new();
        let (mut used_by, mut used) = (Vec::new(), Vec::new());
        for (task, at) in self.tasks.iter().zip(1_i64..) {
            texts.extend(task.texts.iter());
            for hash in task.texts.keys() {
                used_by.push(at);
                used.push(hash.clone());
            }
        }
        let (hashes, texts): (Vec<&String>, Vec<&String>) = texts.into_iter().unzip();
        let call = sqlx::query(CALL).bind(known).bind(tenant).bind(id).bind(class);
        let call = call.bind(i64::from(*priority)).bind(AGING_MS).bind(log);
        let call = call.bind(of_each(|task| task.content.clone()));
        let call = call.bind(self.tasks.iter().map(|task| task.generation.cast_signed()).collect::<Vec<_>>());
        let call = call.bind(of_each(|task| task.run.to_string())).bind(of_each(|task| task.subject.clone()));
        let call = call.bind(of_each(|task| task.body.clone()));
        let call = call.bind(hashes).bind(texts).bind(used_by).bind(used);
        let rows = server.all_rows(call).await?;
        let mut added = Vec::with_capacity(rows.len());
        for row in &rows {
            let (run, state) = (row.try_get::<&str, _>("task_run")?, row.try_get::<&str, _>("task_state")?);
            added.push((run.into(), TaskState::parse(state), row.try_get::<i64, _>("added")? == 1));
        }
        Ok((added, last_place(&rows)?))
    }
}

/// Why a tenant's tasks were refused, where that is what happened.
pub(super) fn over_limit(error: &sqlx::Error) -> Option<String> {
    let error = error.as_database_error().filter(|error| error.code().as_deref() == Some("QU003"))?;
    Some(error.message().to_owned())
}

/// A task as it was leased.
pub(super) struct LeasedTask {
    pub(super) run: Name,
    pub(super) tenant: String,
    pub(super) subject: String,
    pub(super) body: String,
    pub(super) attempt: u64,
}

/// `quorate_claim`.
pub(super) struct ClaimCall<'a> {
    pub(super) classes: &'a [String],
    pub(super) slots: u64,
    pub(super) owner: &'a str,
    pub(super) place: &'a str,
    pub(super) duration_ms: i64,
}

impl WriteCall for ClaimCall<'_> {
    type Output = Vec<LeasedTask>;

    async fn call(
        &self,
        server: &mut Server,
        known: Option<i64>,
    ) -> Result<(Self::Output, i64), sqlx::Error> {
        const CALL: &str = "SELECT place, task_run, task_tenant, task_subject, task_body, task_attempts \
            FROM quorate_claim($1, $2, $3, $4, $5, $6)";
        let call = sqlx::query(CALL).bind(known).bind(self.classes).bind(self.slots.cast_signed());
        let rows = server.all_rows(call.bind(self.owner).bind(self.place).bind(self.duration_ms)).await?;
        let mut leased = Vec::new();
        for row in &rows {
            let Some(run) = row.try_get::<Option<&str>, _>("task_run")? else { continue };
            leased.push(LeasedTask {
                run: run.into(),
                tenant: row.try_get("task_tenant")?,
                subject: row.try_get("task_subject")?,
                body: row.try_get("task_body")?,
                attempt: row.try_get::<i64, _>("task_attempts")?.unsigned_abs(),
            });
        }
        Ok((leased, last_place(&rows)?))
    }
}

/// `quorate_give_back`.
pub(super) struct GiveBackCall<'a> {
    pub(super) run: &'a Name,
    pub(super) owner: &'a str,
    pub(super) state: TaskState,
    pub(super) wait_ms: u64,
    pub(super) uncounted: i64,
    pub(super) why: Option<String>,
}

impl WriteCall for GiveBackCall<'_> {
    /// Whether this process had it.
    type Output = bool;

    async fn call(
        &self,
        server: &mut Server,
        known: Option<i64>,
    ) -> Result<(Self::Output, i64), sqlx::Error> {
        const CALL: &str = "SELECT place, given FROM quorate_give_back($1, $2, $3, $4, $5, $6, $7)";
        let call = sqlx::query(CALL).bind(known).bind(&**self.run).bind(self.owner);
        let call = call.bind(self.state.as_str()).bind(self.wait_ms.cast_signed());
        let rows = server.all_rows(call.bind(self.uncounted).bind(&self.why)).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok((row.try_get::<i64, _>("given")? == 1, last_place(&rows)?))
    }
}
