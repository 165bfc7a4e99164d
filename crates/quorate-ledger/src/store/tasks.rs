//! The task queue: tables on the server beside the ledger. A task is a run that a worker is to execute. Decisions are
//! in the ledger; the queue only contains what to do, for which worker, and since when. Tenants have shares and limits,
//! and all workers together respect the limits of pools of model services.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_kernel::clock::as_rfc3339;
use quorate_kernel::entropy;
use quorate_kernel::ports::ledger::LedgerError;
use quorate_protocol::Name;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use super::Store;
use super::engine::Column::{Int, Text};
use super::engine::{Statement, sql, sql_rows};
use super::lease::{RunGuard, server};
use super::leases::now;
use super::postgres::machine_id;

/// The aging of priorities, in milliseconds: each step of a lower priority makes a task count as queued this much
/// later, so that old tasks of a low priority still get their turn.
pub const AGING_MS: i64 = 15 * 60 * 1000;

/// The tenant that stands for all when the whole queue is paused.
const EVERY_TENANT: &str = "*";

/// The longest error text stored with a task, in characters.
const MAX_ERROR_CHARS: usize = 2_000;

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct QueuedTask {
    pub run: Name,
    pub state: TaskState,
    /// Whether the call queued it.
    pub is_new: bool,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
        const HEAD: &str = "SELECT DISTINCT ON (content) \
            CAST(json_build_array(content, json_build_array(state, generation)) AS TEXT) FROM task JOIN (VALUES ";
        const TAIL: &str = ") AS wanted (wanted) ON content = wanted ORDER BY content, generation DESC";
        let wanted = contents.iter().map(|content| vec![content.as_str().into()]);
        Ok(self.objects(sql_rows(HEAD, wanted, TAIL)).await?.into_iter().collect())
    }

    /// Queues the tasks of a batch, all or none. Skips a content whose generation is queued already. Returns the state
    /// of each, in their order, or why nothing was queued: the tenant's limit would be exceeded.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn enqueue(
        &self,
        batch: &Batch,
        tasks: &[NewTask],
    ) -> Result<Result<Vec<QueuedTask>, String>, LedgerError> {
        const CALL: &str = "SELECT CAST(json_build_object('run', task_run, 'state', task_state, 'is_new', added = 1) AS TEXT), \
            place FROM quorate_enqueue($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
        let Batch { id, tenant, class, priority, log } = batch;
        let of_each = |value: fn(&NewTask) -> &str| tasks.iter().map(value).collect::<Vec<_>>();
        let (contents, runs) = (of_each(|task| &task.content), of_each(|task| &task.run));
        let (subjects, bodies) = (of_each(|task| &task.subject), of_each(|task| &task.body));
        let generations: Vec<i64> = tasks.iter().map(|task| task.generation.cast_signed()).collect();
        let texts: BTreeMap<&String, &String> = tasks.iter().flat_map(|task| &task.texts).collect();
        let (hashes, texts): (Vec<_>, Vec<_>) = texts.into_iter().unzip();
        // The function counts tasks from 1.
        let uses = (1_i64..).zip(tasks).flat_map(|(at, task)| task.texts.keys().map(move |hash| (at, hash)));
        let (used_by, used): (Vec<_>, Vec<_>) = uses.unzip();
        let call = |known: Option<i64>| {
            let call = sqlx::query(CALL).bind(known).bind(tenant).bind(id).bind(class);
            let call = call.bind(i64::from(*priority)).bind(AGING_MS).bind(log).bind(&contents);
            let call = call.bind(&generations).bind(&runs).bind(&subjects).bind(&bodies);
            call.bind(&hashes).bind(&texts).bind(&used_by).bind(&used)
        };
        let called = self.writer().await.write_call(call).await;
        match called.and_then(|(rows, _)| objects_in(&rows)) {
            Ok(queued) => Ok(Ok(queued)),
            Err(error) => match error.as_database_error() {
                Some(refused) if refused.code().as_deref() == Some("QU003") => {
                    Ok(Err(refused.message().to_owned()))
                }
                _ => Err(self.error(error)),
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
        const CALL: &str = "SELECT CASE WHEN task_run IS NOT NULL THEN CAST(json_build_array(\
            task_run, task_tenant, task_subject, task_body, task_attempts) AS TEXT) END, place \
            FROM quorate_claim($1, $2, $3, $4, $5, $6)";
        let (owner, place) = (entropy::run_id().to_string(), machine_id(self.dir()));
        let call = |known: Option<i64>| {
            let call = sqlx::query(CALL).bind(known).bind(classes).bind(slots.cast_signed());
            call.bind(&owner).bind(&place).bind(super::lease::DURATION_MS)
        };
        let mut connection = self.writer().await;
        let since = server::uptime();
        let called = connection.write_call(call).await;
        drop(connection);
        let claimed = called.and_then(|(rows, _)| objects_in(&rows)).map_err(|error| self.error(error))?;
        let mut tasks = Vec::with_capacity(claimed.len());
        for (run, tenant, subject, body, attempt) in claimed {
            let guard = self.adopt_lease(&run, &owner, since).await?;
            tasks.push(ClaimedTask { run, tenant, subject, body, attempt, guard });
        }
        Ok(tasks)
    }

    /// Returns a task that this process has leased; `false` if the lease is lost.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn give_back(&self, run: &Name, how: &GiveBack) -> Result<bool, LedgerError> {
        const CALL: &str = "SELECT given, place FROM quorate_give_back($1, $2, $3, $4, $5, $6, $7)";
        let short = |why: &String| why.chars().take(MAX_ERROR_CHARS).collect::<String>();
        let (state, wait_ms, uncounted, why) = match how {
            GiveBack::Uncounted => (TaskState::Ready, 0, 1_i64, None),
            GiveBack::Later { wait_ms, why } => (TaskState::Ready, *wait_ms, 0, Some(short(why))),
            GiveBack::Dead { why } => (TaskState::Dead, 0, 0, Some(short(why))),
        };
        let mut connection = self.writer().await;
        let Some(owner) = connection.leases.owner(run) else { return Ok(false) };
        let call = |known: Option<i64>| {
            let call = sqlx::query(CALL).bind(known).bind(&**run).bind(&owner).bind(state.as_str());
            call.bind(wait_ms.cast_signed()).bind(uncounted).bind(&why)
        };
        let called = connection.write_call(call).await;
        let given = called.and_then(|(rows, _)| rows.first().map_or(Ok(0), |row| row.try_get::<i64, _>(0)));
        Ok(given.map_err(|error| self.error(error))? == 1)
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
        const HEAD: &str = "SELECT CAST(json_build_array(run, json_build_array(state, error)) AS TEXT) FROM task JOIN (VALUES ";
        let wanted = runs.iter().map(|run| vec![(&**run).into()]);
        let statement = sql_rows(HEAD, wanted, ") AS wanted (wanted) ON run = wanted");
        Ok(self.objects(statement).await?.into_iter().collect())
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
            "SELECT CAST(row_to_json(counts) AS TEXT) FROM (SELECT tenant, state, COUNT(*) AS tasks, GREATEST(",
            now!(),
            " - MIN(queued_ms), 0) AS oldest_ms FROM task GROUP BY tenant, state ORDER BY tenant, state) AS counts"
        );
        self.objects(sql(COUNT)).await
    }

    /// Up to `limit` tasks, oldest first.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn tasks(&self, filter: &TaskFilter, limit: u32) -> Result<Vec<TaskRow>, LedgerError> {
        const SELECT: &str = "SELECT CAST(row_to_json(tasks) AS TEXT) FROM (SELECT \
            run, tenant, batch, class, priority, subject, state, attempts, queued_ms AS queued, error \
            FROM task WHERE state = COALESCE($1, state) AND tenant = COALESCE($2, tenant) AND batch = COALESCE($3, batch) \
            ORDER BY id LIMIT $4) AS tasks";
        self.objects(filter.bind(sql(SELECT)).bind(i64::from(limit))).await
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
            AND run = COALESCE($4, run) RETURNING run";
        let statement = filter.bind(sql(RETRY)).bind(run.map(ToString::to_string));
        Ok(self.rows(statement, &[Text]).await?.len() as u64)
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
        self.rows(pause, &[]).await.map(drop)
    }

    /// The paused tenants. [`None`] among them stands for all.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn paused_tenants(&self) -> Result<Vec<Option<String>>, LedgerError> {
        let rows = self.rows(sql("SELECT name FROM tenant WHERE paused = 1 ORDER BY name"), &[Text]).await?;
        let name = |row: &super::Row| Some(row.text(0).to_owned()).filter(|name| name != EVERY_TENANT);
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
        self.rows(logged, &[]).await.map(drop)
    }

    /// The JSON values that a statement selects, one in each row.
    async fn objects<T: DeserializeOwned>(&self, statement: Statement) -> Result<Vec<T>, LedgerError> {
        let rows = self.rows(statement, &[Text]).await?;
        let values: Result<Vec<T>, _> = rows.iter().map(|row| serde_json::from_str(row.text(0))).collect();
        values.map_err(|error| self.error(sqlx::Error::Decode(error.into())))
    }
}

/// The JSON values in the first column of the rows that have one.
fn objects_in<T: DeserializeOwned>(rows: &[PgRow]) -> Result<Vec<T>, sqlx::Error> {
    let mut values = Vec::with_capacity(rows.len());
    for row in rows {
        if let Some(text) = row.try_get::<Option<&str>, _>(0)? {
            values.push(serde_json::from_str(text).map_err(|error| sqlx::Error::Decode(error.into()))?);
        }
    }
    Ok(values)
}

impl TaskFilter {
    fn bind(&self, statement: Statement) -> Statement {
        let state = self.state.map(|state| state.as_str().to_owned());
        statement.bind(state).bind(self.tenant.clone()).bind(self.batch.clone())
    }
}

/// A tenant's share and limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
            self.rows(statement, &[]).await?;
        }
        let select = "SELECT CAST(json_build_object('name', name, 'weight', weight, 'max_running', max_leased, \
            'max_waiting', max_ready) AS TEXT) FROM tenant WHERE name = $1";
        let unchanged = || Tenant { name: name.to_owned(), weight: 1, max_running: None, max_waiting: None };
        Ok(self.objects(sql(select).bind(name)).await?.pop().unwrap_or_else(unchanged))
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
        self.rows(sql(BLOCK).bind(pool).bind(wait_ms), &[]).await.map(drop)
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
        self.rows(sql(SET).bind(pool).bind(rate).bind(burst), &[]).await.map(drop)
    }

    /// The pools that workers have called, and those with a limit.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn quotas(&self) -> Result<Vec<PoolQuota>, LedgerError> {
        const QUOTAS: &str = concat!(
            "SELECT CAST(json_build_object('pool', pool, 'calls_per_hour', rate, 'burst', burst, 'blocked_ms', \
                GREATEST(blocked_until_ms - ",
            now!(),
            ", 0)) AS TEXT) FROM quota ORDER BY pool"
        );
        self.objects(sql(QUOTAS)).await
    }
}
