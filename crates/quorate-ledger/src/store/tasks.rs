//! The task queue: tables on the server beside the ledger. A task is a run that a worker is to execute. Decisions are
//! in the ledger; the queue only contains what to do, for which worker, and since when. Tenants have shares and limits,
//! and all workers together respect the limits of pools of model services.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_kernel::clock::as_rfc3339;
use quorate_kernel::entropy;
use quorate_kernel::ports::ledger::LedgerError;
use quorate_protocol::Name;
use serde::Serialize;
use sqlx::Row as _;

use super::engine::Column::{Int, Text};
use super::engine::{Row, Statement, sql, sql_rows};
use super::lease::{RunGuard, server};
use super::leases::now;
use super::postgres::machine_id;
use super::{Store, unavailable};
use crate::store::postgres::server::{Server, WriteCall, last_place};

/// The aging of priorities, in milliseconds: each step of a lower priority makes a task count as queued this much
/// later, so that old tasks of a low priority still get their turn.
pub const AGING_MS: i64 = 15 * 60 * 1000;

/// The tenant that stands for all when the whole queue is paused.
const EVERY_TENANT: &str = "*";

/// The longest error text stored with a task, in characters.
const MAX_ERROR_CHARS: usize = 2_000;

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// It waits for a worker.
    Ready,
    /// A worker has leased it.
    Leased,
    /// Its run has ended.
    Done,
    /// It failed too often or cannot be executed. A person can retry it.
    Dead,
    /// A person cancelled it.
    Cancelled,
}

impl TaskState {
    /// All states, in the order of a task's life.
    pub const ALL: [TaskState; 5] =
        [TaskState::Ready, TaskState::Leased, TaskState::Done, TaskState::Dead, TaskState::Cancelled];

    /// The word in JSON and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskState::Ready => "ready",
            TaskState::Leased => "leased",
            TaskState::Done => "done",
            TaskState::Dead => "dead",
            TaskState::Cancelled => "cancelled",
        }
    }

    /// Whether the state changes no more by itself.
    pub fn is_final(self) -> bool {
        !matches!(self, TaskState::Ready | TaskState::Leased)
    }

    fn parse(text: &str) -> TaskState {
        TaskState::ALL.into_iter().find(|state| state.as_str() == text).unwrap_or(TaskState::Dead)
    }
}

/// The properties that tasks share if they are queued together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub id: String,
    pub tenant: String,
    /// The class of workers that lease them.
    pub class: String,
    /// From 0, the most urgent, to 2.
    pub priority: u8,
    /// The log that their verdicts are appended to.
    pub log: Option<String>,
}

/// A task to queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    /// A hash that is equal for the same text before the same council.
    pub content: String,
    /// The number of repeated requests for the same content.
    pub generation: u64,
    /// Its run, derived from content and generation.
    pub run: Name,
    pub subject: String,
    /// The worker's input, as JSON.
    pub body: String,
    /// The texts that it uses, by hash.
    pub texts: BTreeMap<String, String>,
}

/// The state of a task that a caller asked to queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedTask {
    pub run: Name,
    pub state: TaskState,
    /// Whether the call queued it.
    pub is_new: bool,
}

/// The result of queueing tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnqueueResult {
    /// One for each task, in their order.
    Queued(Vec<QueuedTask>),
    /// Nothing was queued: the tenant's limit would be exceeded.
    OverLimit(String),
}

/// A task that this process has leased.
#[derive(Debug)]
pub struct ClaimedTask {
    pub run: Name,
    pub tenant: String,
    pub subject: String,
    pub body: String,
    /// The number of the attempt, from 1.
    pub attempt: u64,
    pub guard: RunGuard,
}

/// How a leased task is returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GiveBack {
    /// It was not executed, or not completely, for a reason outside of the task.
    Uncounted,
    /// Retry it after this number of milliseconds.
    Later { wait_ms: u64, why: String },
    /// Do not retry it automatically.
    Dead { why: String },
}

/// The number of tasks of a tenant in a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskCount {
    /// The tenant that queued them.
    pub tenant: String,
    /// The state that they share.
    pub state: TaskState,
    /// How many there are; at least 1.
    pub tasks: u64,
    /// The time since the oldest one was queued, in milliseconds.
    pub oldest_ms: u64,
}

/// A task as users see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskRow {
    /// The run that a worker opens for it.
    pub run: Name,
    /// The tenant that queued it.
    pub tenant: String,
    /// The batch of the call that queued it.
    pub batch: String,
    /// The class of workers that claim it.
    pub class: String,
    /// From 0, the most urgent, to 2.
    pub priority: u64,
    /// The redacted name of the text.
    pub subject: String,
    /// The state of the task.
    pub state: TaskState,
    /// How often a worker has begun it.
    pub attempts: u64,
    /// When it was queued, in milliseconds since the Unix epoch.
    #[serde(rename = "queued", serialize_with = "as_rfc3339")]
    pub queued_ms: i64,
    /// Why the last attempt failed, at most 2,000 characters.
    pub error: Option<String>,
}

/// Selects tasks. A field that is `None` selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Only tasks in this state.
    pub state: Option<TaskState>,
    /// Only tasks of this tenant.
    pub tenant: Option<String>,
    /// Only tasks of this batch.
    pub batch: Option<String>,
}

impl Store {
    /// The state of the last queued task of each content, and the number of repeated requests for the content.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn queued_tasks(
        &self,
        contents: &[String],
    ) -> Result<BTreeMap<String, (TaskState, u64)>, LedgerError> {
        if contents.is_empty() {
            return Ok(BTreeMap::new());
        }
        let wanted = contents.iter().map(|content| vec![content.as_str().into()]);
        const HEAD: &str = "SELECT DISTINCT ON (content) content, generation, state FROM task JOIN (VALUES ";
        const TAIL: &str = ") AS wanted (wanted) ON content = wanted ORDER BY content, generation DESC";
        let rows = self.rows(sql_rows(HEAD, wanted, TAIL), &[Text, Int, Text]).await?;
        let task = |row: &Row| (row.text(0).to_owned(), (TaskState::parse(row.text(2)), row.count(1)));
        Ok(rows.iter().map(task).collect())
    }

    /// Queues the tasks of a batch, all or none. Skips a content whose generation is queued already. Returns the state
    /// of each.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn enqueue(&self, batch: &Batch, tasks: &[NewTask]) -> Result<EnqueueResult, LedgerError> {
        let call = EnqueueCall { batch, tasks };
        let called = self.writer().await.write_call(&call).await;
        match called {
            Ok(added) => Ok(EnqueueResult::Queued(added.unwrap_or_default().0)),
            Err(error) => match over_limit(&error) {
                Some(why) => Ok(EnqueueResult::OverLimit(why)),
                None => Err(self.error(error)),
            },
        }
    }

    /// A text of a task, by its hash.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn task_text(&self, sha256: &str) -> Result<Option<String>, LedgerError> {
        let statement = sql("SELECT text FROM task_text WHERE sha256 = $1").bind(sha256);
        let rows = self.rows(statement, &[Text]).await?;
        Ok(rows.first().map(|row| row.text(0).to_owned()))
    }

    /// Leases up to `limit` tasks of some classes, with their runs. Each lease counts as an attempt.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn claim_tasks(&self, classes: &[String], slots: u64) -> Result<Vec<ClaimedTask>, LedgerError> {
        let owner = entropy::run_id().to_string();
        let call = ClaimCall {
            classes,
            slots,
            owner: &owner,
            place: &machine_id(self.dir()),
            duration_ms: super::lease::DURATION_MS,
        };
        let mut connection = self.writer().await;
        let since = server::now();
        let called = connection.write_call(&call).await;
        drop(connection);
        let (leased, _) = called.map_err(|error| self.error(error))?.unwrap_or_default();
        let mut claimed = Vec::with_capacity(leased.len());
        for task in leased {
            let guard = self.adopt_lease(&task.run, &owner, since).await?;
            claimed.push(ClaimedTask {
                run: task.run,
                tenant: task.tenant,
                subject: task.subject,
                body: task.body,
                attempt: task.attempt,
                guard,
            });
        }
        Ok(claimed)
    }

    /// Returns a task that this process has leased; `false` if the lease is lost.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn give_back(&self, run: &Name, how: &GiveBack) -> Result<bool, LedgerError> {
        let Some(owner) = self.writer().await.leases.owner(run) else { return Ok(false) };
        let called = self.writer().await.write_call(&GiveBackCall { run, owner: &owner, how }).await;
        let (given, _) = called.map_err(|error| self.error(error))?.unwrap_or_default();
        Ok(given)
    }

    /// Marks a task that this process has leased as done, if its run ended before: no later record would do so.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn settle_task(&self, run: &Name) -> Result<(), LedgerError> {
        const SETTLE: &str = concat!(
            "WITH settled AS (UPDATE task SET state = 'done', error = NULL, changed_ms = ",
            now!(),
            " WHERE task.run = $1 AND state = 'leased' \
             AND EXISTS (SELECT FROM lease WHERE lease.run = task.run AND owner = $2) RETURNING task.run), \
             released AS (DELETE FROM lease USING settled WHERE lease.run = settled.run) \
             SELECT CAST(quorate_forget_texts(run) AS TEXT) FROM settled"
        );
        let Some(owner) = self.writer().await.leases.owner(run) else { return Ok(()) };
        self.rows(sql(SETTLE).bind(&**run).bind(owner), &[Text]).await.map(drop)
    }

    /// The states of tasks, by run. Runs without a task are missing.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn task_states(
        &self,
        runs: &[Name],
    ) -> Result<BTreeMap<Name, (TaskState, Option<String>)>, LedgerError> {
        if runs.is_empty() {
            return Ok(BTreeMap::new());
        }
        let wanted = runs.iter().map(|run| vec![(&**run).into()]);
        let statement = sql_rows(
            "SELECT run, state, error FROM task JOIN (VALUES ",
            wanted,
            ") AS wanted (wanted) ON run = wanted",
        );
        let rows = self.rows(statement, &[Text; 3]).await?;
        let state = |row: &Row| {
            (row.text(0).into(), (TaskState::parse(row.text(1)), row.opt_text(2).map(str::to_owned)))
        };
        Ok(rows.iter().map(state).collect())
    }

    /// Whether tasks of some classes are running, or are waiting and not paused.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn has_open_tasks(&self, classes: &[String]) -> Result<bool, LedgerError> {
        let wanted = classes.iter().map(|class| vec![class.as_str().into()]);
        const HEAD: &str = "SELECT id FROM task JOIN (VALUES ";
        let statement = sql_rows(
            HEAD,
            wanted,
            ") AS wanted (wanted) ON class = wanted WHERE state = 'leased' OR (state = 'ready' AND NOT EXISTS \
             (SELECT 1 FROM tenant WHERE paused = 1 AND name IN (task.tenant, '*'))) LIMIT 1",
        );
        Ok(!self.rows(statement, &[Int]).await?.is_empty())
    }

    /// The number of tasks by tenant and state.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn count_tasks(&self) -> Result<Vec<TaskCount>, LedgerError> {
        const COUNT: &str = concat!(
            "SELECT tenant, state, COUNT(*), ",
            now!(),
            " - MIN(queued_ms) FROM task GROUP BY tenant, state ORDER BY tenant, state"
        );
        let columns = [Text, Text, Int, Int];
        let count = |row: &Row| TaskCount {
            tenant: row.text(0).to_owned(),
            state: TaskState::parse(row.text(1)),
            tasks: row.count(2),
            oldest_ms: u64::try_from(row.int(3)).unwrap_or_default(),
        };
        Ok(self.rows(sql(COUNT), &columns).await?.iter().map(count).collect())
    }

    /// Up to `limit` tasks, oldest first.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn tasks(&self, filter: &TaskFilter, limit: u32) -> Result<Vec<TaskRow>, LedgerError> {
        const SELECT: &str = "SELECT run, tenant, batch, class, priority, subject, state, attempts, queued_ms, error \
            FROM task WHERE state = COALESCE($1, state) AND tenant = COALESCE($2, tenant) AND batch = COALESCE($3, batch) \
            ORDER BY id LIMIT $4";
        let columns = [Text, Text, Text, Text, Int, Text, Text, Int, Int, Text];
        let task = |row: &Row| TaskRow {
            run: row.text(0).into(),
            tenant: row.text(1).to_owned(),
            batch: row.text(2).to_owned(),
            class: row.text(3).to_owned(),
            priority: row.count(4),
            subject: row.text(5).to_owned(),
            state: TaskState::parse(row.text(6)),
            attempts: row.count(7),
            queued_ms: row.int(8),
            error: row.opt_text(9).map(str::to_owned),
        };
        let statement = filter.bind(sql(SELECT)).bind(i64::from(limit));
        Ok(self.rows(statement, &columns).await?.iter().map(task).collect())
    }

    /// Runs of tasks whose id starts with a prefix, at most three.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn find_tasks(&self, prefix: &str) -> Result<Vec<Name>, LedgerError> {
        let statement =
            sql("SELECT run FROM task WHERE starts_with(run, $1) ORDER BY run LIMIT 3").bind(prefix);
        let rows = self.rows(statement, &[Text]).await?;
        Ok(rows.iter().map(|row| row.text(0).into()).collect())
    }

    /// Retries dead tasks. Returns their number.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn retry_tasks(&self, filter: &TaskFilter, run: Option<&Name>) -> Result<u64, LedgerError> {
        const RETRY: &str = "UPDATE task SET state = 'ready', attempts = 0, not_before_ms = 0, \
            logged = CASE WHEN task.log IS NULL THEN 1 ELSE 0 END WHERE state = 'dead' \
            AND state = COALESCE($1, state) AND tenant = COALESCE($2, tenant) AND batch = COALESCE($3, batch) \
            AND run = COALESCE($4, run)";
        let statement = filter.bind(sql(RETRY)).bind(run.map(ToString::to_string));
        self.execute_on_server(statement).await
    }

    /// Cancels a task; `false` if a worker holds it or it has ended.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn cancel_task(&self, run: &Name) -> Result<bool, LedgerError> {
        let rows = self.rows(sql("SELECT quorate_cancel($1)").bind(&**run), &[Int]).await?;
        Ok(rows.first().is_some_and(|row| row.int(0) > 0))
    }

    /// Pauses or resumes a tenant, or without one the whole queue. Workers lease no paused tasks.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn pause_queue(&self, tenant: Option<&str>, paused: bool) -> Result<(), LedgerError> {
        const PAUSE: &str = "INSERT INTO tenant (name, weight, paused, served) VALUES ($1, 1, $2, 0) \
            ON CONFLICT (name) DO UPDATE SET paused = excluded.paused";
        let pause = sql(PAUSE).bind(tenant.unwrap_or(EVERY_TENANT)).bind(i64::from(paused));
        self.execute_on_server(pause).await.map(drop)
    }

    /// The paused tenants. [`None`] among them stands for all.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn paused_tenants(&self) -> Result<Vec<Option<String>>, LedgerError> {
        let rows = self.rows(sql("SELECT name FROM tenant WHERE paused = 1 ORDER BY name"), &[Text]).await?;
        let name = |row: &Row| Some(row.text(0).to_owned()).filter(|name| name != EVERY_TENANT);
        Ok(rows.iter().map(name).collect())
    }

    /// Runs of ended tasks that have no line in this log yet, oldest first.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn unlogged_tasks(&self, log: &str) -> Result<Vec<Name>, LedgerError> {
        let statement =
            sql("SELECT run FROM task WHERE task.log = $1 AND logged = 0 AND state IN ('done', 'dead') ORDER BY changed_ms, id").bind(log);
        let rows = self.rows(statement, &[Text]).await?;
        Ok(rows.iter().map(|row| row.text(0).into()).collect())
    }

    /// Records that the log contains a task's line.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn mark_task_logged(&self, run: &Name) -> Result<(), LedgerError> {
        let logged = sql("UPDATE task SET logged = 1 WHERE run = $1").bind(&**run);
        self.execute_on_server(logged).await.map(drop)
    }

    async fn execute_on_server(&self, statement: Statement) -> Result<u64, LedgerError> {
        if let Some(why) = self.read_only_reason() {
            let what = format!("cannot change the queue of {}: {why}", self.address());
            return Err(unavailable(what, std::io::Error::other("it is only read")));
        }
        self.writer().await.execute_again(&statement).await.map_err(|error| self.error(error))
    }
}

impl TaskFilter {
    fn bind(&self, statement: Statement) -> Statement {
        let state = self.state.map(|state| state.as_str().to_owned());
        statement.bind(state).bind(self.tenant.clone()).bind(self.batch.clone())
    }
}

/// `quorate_enqueue`.
struct EnqueueCall<'a> {
    batch: &'a Batch,
    tasks: &'a [NewTask],
}

impl WriteCall for EnqueueCall<'_> {
    type Output = Vec<QueuedTask>;

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
            let is_new = row.try_get::<i64, _>("added")? == 1;
            added.push(QueuedTask { run: run.into(), state: TaskState::parse(state), is_new });
        }
        Ok((added, last_place(&rows)?))
    }
}

/// Why a tenant's tasks were refused, if `error` is such a refusal.
fn over_limit(error: &sqlx::Error) -> Option<String> {
    let error = error.as_database_error().filter(|error| error.code().as_deref() == Some("QU003"))?;
    Some(error.message().to_owned())
}

/// Parses a leased task.
struct LeasedTask {
    run: Name,
    tenant: String,
    subject: String,
    body: String,
    attempt: u64,
}

/// `quorate_claim`.
struct ClaimCall<'a> {
    classes: &'a [String],
    slots: u64,
    owner: &'a str,
    place: &'a str,
    duration_ms: i64,
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
struct GiveBackCall<'a> {
    run: &'a Name,
    owner: &'a str,
    how: &'a GiveBack,
}

impl WriteCall for GiveBackCall<'_> {
    /// Whether this process had leased it.
    type Output = bool;

    async fn call(
        &self,
        server: &mut Server,
        known: Option<i64>,
    ) -> Result<(Self::Output, i64), sqlx::Error> {
        const CALL: &str = "SELECT place, given FROM quorate_give_back($1, $2, $3, $4, $5, $6, $7)";
        let short = |why: &String| why.chars().take(MAX_ERROR_CHARS).collect::<String>();
        let (state, wait_ms, uncounted, why) = match self.how {
            GiveBack::Uncounted => (TaskState::Ready, 0, 1_i64, None),
            GiveBack::Later { wait_ms, why } => (TaskState::Ready, *wait_ms, 0, Some(short(why))),
            GiveBack::Dead { why } => (TaskState::Dead, 0, 0, Some(short(why))),
        };
        let call = sqlx::query(CALL).bind(known).bind(&**self.run).bind(self.owner);
        let call = call.bind(state.as_str()).bind(wait_ms.cast_signed()).bind(uncounted).bind(why);
        let rows = server.all_rows(call).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok((row.try_get::<i64, _>("given")? == 1, last_place(&rows)?))
    }
}

/// A tenant's share and limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// Its share of the workers, relative to the other tenants' shares; 1 unless it was changed.
    pub weight: u64,
    /// The most of its tasks that may run at once; `None` means unlimited.
    pub max_running: Option<u64>,
    /// The most of its tasks that may wait; `None` means unlimited.
    pub max_waiting: Option<u64>,
}

/// A change of a tenant. `None` leaves a field unchanged; an inner `None` removes a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TenantChange {
    /// Its share of the workers, at least 1.
    pub weight: Option<u64>,
    /// The most of its tasks that may run at once.
    pub max_running: Option<Option<u64>>,
    /// The most of its tasks that may wait.
    pub max_waiting: Option<Option<u64>>,
}

/// The rate limit of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoolQuota {
    /// The pool's name.
    pub pool: String,
    /// The most calls of all workers in an hour; `None` means unlimited.
    pub calls_per_hour: Option<u64>,
    /// The most calls that may be saved up; `None` without a limit.
    pub burst: Option<u64>,
    /// How long the model service still makes all workers wait, in milliseconds.
    pub blocked_ms: u64,
}

/// Permits for calls of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permits {
    /// The pool has no limit.
    Unlimited,
    Some(u64),
    /// None. Ask again after this time.
    Wait(Duration),
}

impl Store {
    /// Changes a tenant and returns its new state.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn change_tenant(&self, name: &str, change: &TenantChange) -> Result<Tenant, LedgerError> {
        const CHANGE: &str = "INSERT INTO tenant (name, weight, max_leased, max_ready, paused, served) \
            VALUES ($1, COALESCE($2, 1), $4, $6, 0, 0) ON CONFLICT (name) DO UPDATE \
            SET weight = COALESCE($2, tenant.weight), \
                max_leased = CASE WHEN $3 = 1 THEN $4 ELSE tenant.max_leased END, \
                max_ready = CASE WHEN $5 = 1 THEN $6 ELSE tenant.max_ready END";
        let limit =
            |limit: Option<Option<u64>>| (i64::from(limit.is_some()), limit.flatten().map(u64::cast_signed));
        if *change != TenantChange::default() {
            let (running, waiting) = (limit(change.max_running), limit(change.max_waiting));
            let statement = sql(CHANGE).bind(name).bind(change.weight.map(u64::cast_signed));
            let statement = statement.bind(running.0).bind(running.1).bind(waiting.0).bind(waiting.1);
            self.execute_on_server(statement).await?;
        }
        let columns = [Int, Text, Text];
        let select =
            "SELECT weight, CAST(max_leased AS TEXT), CAST(max_ready AS TEXT) FROM tenant WHERE name = $1";
        let rows = self.rows(sql(select).bind(name), &columns).await?;
        let row = rows.first();
        let limit = |at| row.and_then(|row| row.opt_text(at)?.parse().ok());
        Ok(Tenant {
            name: name.to_owned(),
            weight: row.map_or(1, |row| row.count(0)),
            max_running: limit(1),
            max_waiting: limit(2),
        })
    }

    /// Takes permits for calls of a pool.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn take_permits(&self, pool: &str, wanted: u64) -> Result<Permits, LedgerError> {
        let statement =
            sql("SELECT granted, wait_ms FROM quorate_take_permits($1, $2)").bind(pool).bind(wanted);
        let rows = self.rows(statement, &[Int, Int]).await?;
        Ok(match rows.first().map(|row| (row.int(0), row.count(1))) {
            Some((0, wait_ms)) => Permits::Wait(Duration::from_millis(wait_ms)),
            Some((granted, _)) if granted > 0 => Permits::Some(granted.unsigned_abs()),
            _ => Permits::Unlimited,
        })
    }

    /// Makes all workers wait before they call a pool.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn block_pool(&self, pool: &str, wait: Duration) -> Result<(), LedgerError> {
        const BLOCK: &str = concat!(
            "INSERT INTO quota (pool, saved, at_ms, blocked_until_ms) VALUES ($1, 0, ",
            now!(),
            ", ",
            now!(),
            " + $2) \
             ON CONFLICT (pool) DO UPDATE SET blocked_until_ms = GREATEST(quota.blocked_until_ms, excluded.blocked_until_ms)"
        );
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.execute_on_server(sql(BLOCK).bind(pool).bind(wait_ms)).await.map(drop)
    }

    /// Limits the calls of all workers to a pool: calls per hour, and how many may accumulate.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn set_quota(&self, pool: &str, limit: Option<(u64, u64)>) -> Result<(), LedgerError> {
        const SET: &str = concat!(
            "INSERT INTO quota (pool, rate, burst, saved, at_ms, blocked_until_ms) VALUES ($1, $2, $3, 0, ",
            now!(),
            ", 0) \
             ON CONFLICT (pool) DO UPDATE SET rate = excluded.rate, burst = excluded.burst, saved = 0, at_ms = excluded.at_ms"
        );
        let rate = limit.map(|(rate, _)| rate.cast_signed());
        let burst = limit.map(|(_, burst)| burst.cast_signed());
        self.execute_on_server(sql(SET).bind(pool).bind(rate).bind(burst)).await.map(drop)
    }

    /// The pools that workers have called, and those with a limit.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn quotas(&self) -> Result<Vec<PoolQuota>, LedgerError> {
        const QUOTAS: &str = concat!(
            "SELECT pool, COALESCE(rate, 0), COALESCE(burst, 0), GREATEST(blocked_until_ms - ",
            now!(),
            ", 0) FROM quota ORDER BY pool"
        );
        let quota = |row: &Row| {
            let limit = Some((row.count(1), row.count(2))).filter(|(rate, _)| *rate > 0);
            let (calls_per_hour, burst) = limit.unzip();
            PoolQuota { pool: row.text(0).to_owned(), calls_per_hour, burst, blocked_ms: row.count(3) }
        };
        let columns = [Text, Int, Int, Int];
        Ok(self.rows(sql(QUOTAS), &columns).await?.iter().map(quota).collect())
    }
}
