//! The queue: tasks, which are runs that workers are to hold, in tables of the server beside the ledger. What was decided
//! is in the ledger; the queue only says what is to be done, by whom, and since when.

mod calls;
pub mod limits;

use std::collections::BTreeMap;

use quorate_kernel::entropy;
use quorate_kernel::ports::ledger::Error;
use quorate_protocol::Name;

use super::Store;
use super::engine::{Column, Row, Statement, sql, sql_rows};
use super::lease::{RunGuard, clock};
use super::leases::now;
use super::machine_id::machine_id;
use super::unavailable;
use calls::{ClaimCall, EnqueueCall, GiveBackCall};

/// How much later a task counts as queued for each step of its priority, in milliseconds: so old tasks of a low priority
/// are not passed by for ever.
pub const AGING_MS: i64 = 15 * 60 * 1000;

/// The tenant that stands for all where the queue is paused.
const EVERY_TENANT: &str = "*";

/// The most characters of an error that are kept with a task.
const MAX_ERROR_CHARS: usize = 2_000;

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskState {
    /// It waits for a worker.
    Ready,
    /// A worker has it.
    Leased,
    /// Its run has ended.
    Done,
    /// It failed too often, or cannot be done; a person can have it tried again.
    Dead,
    /// A person took it out.
    Cancelled,
}

impl TaskState {
    pub const ALL: [TaskState; 5] =
        [TaskState::Ready, TaskState::Leased, TaskState::Done, TaskState::Dead, TaskState::Cancelled];

    pub fn as_str(self) -> &'static str {
        match self {
            TaskState::Ready => "ready",
            TaskState::Leased => "leased",
            TaskState::Done => "done",
            TaskState::Dead => "dead",
            TaskState::Cancelled => "cancelled",
        }
    }

    /// Whether nothing more happens to it by itself.
    pub fn is_final(self) -> bool {
        !matches!(self, TaskState::Ready | TaskState::Leased)
    }

    fn parse(text: &str) -> TaskState {
        TaskState::ALL.into_iter().find(|state| state.as_str() == text).unwrap_or(TaskState::Dead)
    }
}

/// What tasks that are queued together have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub id: String,
    pub tenant: String,
    /// Which workers take them.
    pub class: String,
    /// From 0, the most urgent, to 2.
    pub priority: u8,
    /// The log that gets the lines of their verdicts.
    pub log: Option<String>,
}

/// A task to queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    /// Hash of what is the same for the same text before the same council.
    pub content: String,
    /// How often that was asked for again.
    pub generation: u64,
    /// Its run, which follows from both.
    pub run: Name,
    pub subject: String,
    /// What a worker needs, as JSON.
    pub body: String,
    /// The texts that it uses, by their hash.
    pub texts: BTreeMap<String, String>,
}

/// What there is of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedTask {
    pub run: Name,
    pub state: TaskState,
    /// How often its content was asked for again.
    pub generation: u64,
}

/// What became of tasks that were to be queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnqueueResult {
    /// What there is of each: its run, its state, and whether it is new.
    Queued(Vec<(Name, TaskState, bool)>),
    /// Nothing was queued: the tenant's tasks would be over its limit.
    OverLimit(String),
}

/// A task that this process has leased.
#[derive(Debug)]
pub struct ClaimedTask {
    pub run: Name,
    pub tenant: String,
    pub subject: String,
    pub body: String,
    /// Which attempt this is, from 1.
    pub attempt: u64,
    pub guard: RunGuard,
}

/// How a leased task is given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GiveBack {
    /// It was not worked on, or not to its end, and that is not its fault.
    Uncounted,
    /// It is tried again, so many milliseconds later.
    Later { wait_ms: u64, why: String },
    /// It is not tried again by itself.
    Dead { why: String },
}

/// How many tasks of a tenant are in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCount {
    pub tenant: String,
    pub state: TaskState,
    pub tasks: u64,
    /// How long the oldest has been in the queue, in milliseconds.
    pub oldest_ms: u64,
}

/// A task as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    pub run: Name,
    pub tenant: String,
    pub batch: String,
    pub class: String,
    pub priority: u64,
    pub subject: String,
    pub state: TaskState,
    pub attempts: u64,
    /// Milliseconds since the Unix epoch.
    pub queued_ms: i64,
    pub error: Option<String>,
}

/// Which tasks are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    pub state: Option<TaskState>,
    pub tenant: Option<String>,
    pub batch: Option<String>,
}

impl Store {
    /// The last task of each content that was queued before.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn queued_tasks(&self, contents: &[String]) -> Result<BTreeMap<String, QueuedTask>, Error> {
        if contents.is_empty() {
            return Ok(BTreeMap::new());
        }
        let wanted = contents.iter().map(|content| vec![content.as_str().into()]);
        const HEAD: &str = "SELECT DISTINCT ON (content) content, generation, run, state FROM task \
            JOIN (VALUES ";
        let statement = sql_rows(
            HEAD,
            wanted,
            ") AS wanted (wanted) ON content = wanted ORDER BY content, generation DESC",
        );
        let rows = self.rows(statement, &[Column::Text, Column::Int, Column::Text, Column::Text]).await?;
        Ok(rows
            .iter()
            .map(|row| {
                let task = QueuedTask {
                    run: row.text(2).into(),
                    state: TaskState::parse(row.text(3)),
                    generation: row.count(1),
                };
                (row.text(0).to_owned(), task)
            })
            .collect())
    }

    /// Queues tasks of a batch, all or none. A content whose generation is queued already is not queued twice. Gives what
    /// there is of each then.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn enqueue(&self, batch: &Batch, tasks: &[NewTask]) -> Result<EnqueueResult, Error> {
        let call = EnqueueCall { batch, tasks };
        let called = self.writer().await.write_call(&call).await;
        match called {
            Ok(added) => Ok(EnqueueResult::Queued(added.unwrap_or_default().0)),
            Err(error) => match calls::over_limit(&error) {
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
    pub async fn task_text(&self, sha256: &str) -> Result<Option<String>, Error> {
        let statement = sql("SELECT text FROM task_text WHERE sha256 = $1").bind(sha256);
        let rows = self.rows(statement, &[Column::Text]).await?;
        Ok(rows.first().map(|row| row.text(0).to_owned()))
    }

    /// Leases up to so many tasks of some classes, with their runs. Each counts as an attempt.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn claim_tasks(&self, classes: &[String], slots: u64) -> Result<Vec<ClaimedTask>, Error> {
        let owner = entropy::run_id().to_string();
        let call = ClaimCall {
            classes,
            slots,
            owner: &owner,
            place: &machine_id(self.dir()),
            duration_ms: super::lease::DURATION_MS,
        };
        let mut connection = self.writer().await;
        let since = clock::now();
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

    /// Gives back a task that this process has leased; `false` where it has not any more.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn give_back(&self, run: &Name, how: &GiveBack) -> Result<bool, Error> {
        let owner = self.writer().await.leases.owner(run);
        match owner {
            Some(owner) => self.give_back_as(run, &owner, how).await,
            None => Ok(false),
        }
    }

    async fn give_back_as(&self, run: &Name, owner: &str, how: &GiveBack) -> Result<bool, Error> {
        let short = |why: &String| why.chars().take(MAX_ERROR_CHARS).collect::<String>();
        let (state, wait_ms, uncounted, why) = match how {
            GiveBack::Uncounted => (TaskState::Ready, 0, 1, None),
            GiveBack::Later { wait_ms, why } => (TaskState::Ready, *wait_ms, 0, Some(short(why))),
            GiveBack::Dead { why } => (TaskState::Dead, 0, 0, Some(short(why))),
        };
        let call = GiveBackCall { run, owner, state, wait_ms, uncounted, why };
        let called = self.writer().await.write_call(&call).await;
        let (given, _) = called.map_err(|error| self.error(error))?.unwrap_or_default();
        Ok(given)
    }

    /// Marks a task that this process has leased as done, where its run had ended before: no end will be appended that
    /// would do so.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn settle_task(&self, run: &Name) -> Result<(), Error> {
        const SETTLE: &str = concat!(
            "WITH settled AS (UPDATE task SET state = 'done', error = NULL, changed_ms = ",
            now!(),
            " WHERE task.run = $1 AND state = 'leased' \
             AND EXISTS (SELECT FROM lease WHERE lease.run = task.run AND owner = $2) RETURNING task.run), \
             released AS (DELETE FROM lease USING settled WHERE lease.run = settled.run) \
             SELECT CAST(quorate_forget_texts(run) AS TEXT) FROM settled"
        );
        let Some(owner) = self.writer().await.leases.owner(run) else { return Ok(()) };
        self.rows(sql(SETTLE).bind(&**run).bind(owner), &[Column::Text]).await.map(drop)
    }

    /// The states of tasks, by their run; those that are not in the queue are missing.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn task_states(
        &self,
        runs: &[Name],
    ) -> Result<BTreeMap<Name, (TaskState, Option<String>)>, Error> {
        if runs.is_empty() {
            return Ok(BTreeMap::new());
        }
        let wanted = runs.iter().map(|run| vec![(&**run).into()]);
        let statement = sql_rows(
            "SELECT run, state, error FROM task JOIN (VALUES ",
            wanted,
            ") AS wanted (wanted) ON run = wanted",
        );
        let rows = self.rows(statement, &[Column::Text; 3]).await?;
        let state = |row: &Row| {
            (row.text(0).into(), (TaskState::parse(row.text(1)), row.opt_text(2).map(str::to_owned)))
        };
        Ok(rows.iter().map(state).collect())
    }

    /// Whether tasks of some classes are being worked on, or wait and are not paused.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn has_open_tasks(&self, classes: &[String]) -> Result<bool, Error> {
        let wanted = classes.iter().map(|class| vec![class.as_str().into()]);
        const HEAD: &str = "SELECT id FROM task JOIN (VALUES ";
        let statement = sql_rows(
            HEAD,
            wanted,
            ") AS wanted (wanted) ON class = wanted WHERE state = 'leased' OR (state = 'ready' AND NOT EXISTS \
             (SELECT 1 FROM tenant WHERE paused = 1 AND name IN (task.tenant, '*'))) LIMIT 1",
        );
        Ok(!self.rows(statement, &[Column::Int]).await?.is_empty())
    }

    /// How many tasks there are, by tenant and state.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn count_tasks(&self) -> Result<Vec<TaskCount>, Error> {
        const COUNT: &str = concat!(
            "SELECT tenant, state, COUNT(*), ",
            now!(),
            " - MIN(queued_ms) FROM task GROUP BY tenant, state ORDER BY tenant, state"
        );
        let columns = [Column::Text, Column::Text, Column::Int, Column::Int];
        let count = |row: &Row| TaskCount {
            tenant: row.text(0).to_owned(),
            state: TaskState::parse(row.text(1)),
            tasks: row.count(2),
            oldest_ms: u64::try_from(row.int(3)).unwrap_or_default(),
        };
        Ok(self.rows(sql(COUNT), &columns).await?.iter().map(count).collect())
    }

    /// Tasks, the oldest first, at most so many.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn tasks(&self, filter: &TaskFilter, limit: u32) -> Result<Vec<TaskRow>, Error> {
        const SELECT: &str = "SELECT run, tenant, batch, class, priority, subject, state, attempts, queued_ms, error \
            FROM task WHERE state = COALESCE($1, state) AND tenant = COALESCE($2, tenant) AND batch = COALESCE($3, batch) \
            ORDER BY id LIMIT $4";
        let columns = [
            Column::Text,
            Column::Text,
            Column::Text,
            Column::Text,
            Column::Int,
            Column::Text,
            Column::Text,
            Column::Int,
            Column::Int,
            Column::Text,
        ];
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

    /// Runs of tasks whose id begins so, at most three.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn find_tasks(&self, prefix: &str) -> Result<Vec<Name>, Error> {
        let statement =
            sql("SELECT run FROM task WHERE starts_with(run, $1) ORDER BY run LIMIT 3").bind(prefix);
        let rows = self.rows(statement, &[Column::Text]).await?;
        Ok(rows.iter().map(|row| row.text(0).into()).collect())
    }

    /// Has dead tasks tried again; says how many.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn retry_tasks(&self, filter: &TaskFilter, run: Option<&Name>) -> Result<u64, Error> {
        const RETRY: &str = "UPDATE task SET state = 'ready', attempts = 0, not_before_ms = 0, \
            logged = CASE WHEN task.log IS NULL THEN 1 ELSE 0 END WHERE state = 'dead' \
            AND state = COALESCE($1, state) AND tenant = COALESCE($2, tenant) AND batch = COALESCE($3, batch) \
            AND run = COALESCE($4, run)";
        let statement = filter.bind(sql(RETRY)).bind(run.map(ToString::to_string));
        self.execute_on_server(statement).await
    }

    /// Takes a task out of the queue; `false` where a worker has it, or where it has ended.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn cancel_task(&self, run: &Name) -> Result<bool, Error> {
        let rows = self.rows(sql("SELECT quorate_cancel($1)").bind(&**run), &[Column::Int]).await?;
        Ok(rows.first().is_some_and(|row| row.int(0) > 0))
    }

    /// Pauses a tenant, or without one the whole queue, or lets it go on: no task of it is claimed meanwhile.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn pause_queue(&self, tenant: Option<&str>, paused: bool) -> Result<(), Error> {
        const PAUSE: &str = "INSERT INTO tenant (name, weight, paused, served) VALUES ($1, 1, $2, 0) \
            ON CONFLICT (name) DO UPDATE SET paused = excluded.paused";
        let pause = sql(PAUSE).bind(tenant.unwrap_or(EVERY_TENANT)).bind(i64::from(paused));
        self.execute_on_server(pause).await.map(drop)
    }

    /// The tenants that are paused; [`None`] among them stands for all.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn paused_tenants(&self) -> Result<Vec<Option<String>>, Error> {
        let rows =
            self.rows(sql("SELECT name FROM tenant WHERE paused = 1 ORDER BY name"), &[Column::Text]).await?;
        let name = |row: &Row| Some(row.text(0).to_owned()).filter(|name| name != EVERY_TENANT);
        Ok(rows.iter().map(name).collect())
    }

    /// Runs of ended tasks whose line this log does not have yet, the oldest first.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn unlogged_tasks(&self, log: &str) -> Result<Vec<Name>, Error> {
        let statement =
            sql("SELECT run FROM task WHERE task.log = $1 AND logged = 0 AND state IN ('done', 'dead') ORDER BY changed_ms, id").bind(log);
        let rows = self.rows(statement, &[Column::Text]).await?;
        Ok(rows.iter().map(|row| row.text(0).into()).collect())
    }

    /// Notes that the log has the line of a task.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn mark_task_logged(&self, run: &Name) -> Result<(), Error> {
        let logged = sql("UPDATE task SET logged = 1 WHERE run = $1").bind(&**run);
        self.execute_on_server(logged).await.map(drop)
    }

    async fn execute_on_server(&self, statement: Statement) -> Result<u64, Error> {
        if let Some(why) = self.read_only_reason() {
            let what = format!("the queue of {} cannot be changed: {why}", self.address());
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
