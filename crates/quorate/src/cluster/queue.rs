//! The queue of reviews and convenings in a Postgres ledger, which workers on any machine decide.
//! [`Quorate::enqueue_sweep`] and [`Queue::convene`] fill it, and [`Queue::work`] empties it.
//!
//! `enqueue.rs` adds tasks, `lines.rs` logs their verdicts in the workspace that queued them, and `worker.rs` claims and
//! executes them. A task refers to its council by the hash of a `bundle.rs`.

mod bundle;
pub(crate) mod enqueue;
pub(crate) mod lines;
pub(super) mod metrics;
mod task_body;
mod worker;

use std::time::Duration;

use quorate_diagnostics::render::TextOptions;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy;
use quorate_ledger::store::address::StoreAddress;
use quorate_protocol::Name;
use serde::Serialize;
use tokio::time::Instant;

use crate::builder::Quorate;
use crate::error::{Error, ErrorKind};
use crate::events::Run;
use crate::service::commit_events::DEFAULT_TENANT;
use crate::service::convene::{self, ConveneRequest};
use crate::service::disk::display_ledger;
use crate::service::environment::Environment;
use crate::service::open_session;
use crate::service::session::LedgerSession;
use crate::service::workspace::{self, Workspace};
use crate::session::{OpenSession, Outcome};
use crate::sweep::JudgedPolicy;
use crate::view::layout::{self, one_line};
use crate::view::wording::{amount, duration, minute};
use crate::view::{Doc, Table, Text, Tone};
use task_body::{TaskBody, sign_task, signing_key, verified_body};

pub use enqueue::QueuedSubject;
pub use quorate_ledger::store::tasks::{
    PoolQuota, TaskCount, TaskFilter, TaskRow, TaskState, Tenant, TenantChange,
};
pub use worker::{Attempt, WorkerEvent, WorkerOptions, WorkerSummary};

/// The queue of a workspace's ledger. Each call fails if the ledger is a file, which has no queue, or does not answer.
#[derive(Debug, Clone)]
pub struct Queue(pub(super) Quorate);

/// How many tasks are in the queue, and what is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueStatus {
    /// The number of tasks, by tenant and state.
    #[serde(rename = "tasks")]
    pub counts: Vec<TaskCount>,
    /// Whether the whole queue is paused.
    #[serde(rename = "paused")]
    pub is_paused: bool,
    /// The paused tenants.
    #[serde(rename = "paused_tenants")]
    pub paused: Vec<String>,
}

/// Tasks, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tasks {
    /// The tasks.
    pub tasks: Vec<TaskRow>,
}

/// The number of tasks that a call has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Changed {
    /// Dead tasks that are tried again.
    Retried(u64),
    /// Tasks that were taken out of the queue.
    Cancelled(u64),
}

/// Whether workers claim tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pause {
    /// Whose tasks; `None` is all.
    pub tenant: Option<String>,
    /// Whether workers claim none of them.
    pub paused: bool,
    /// Whether no worker has a task of them.
    #[serde(skip)]
    pub is_drained: bool,
}

/// The call rates of the pools of model services.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pools {
    /// The pools that a worker has asked.
    pub pools: Vec<PoolQuota>,
}

/// The convenings that a call has queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueuedConvenings {
    /// One for each subject.
    pub queued: Vec<QueuedSubject>,
    /// Whether the call has waited for their outcomes.
    #[serde(skip)]
    pub waited: bool,
    /// Whether the caller interrupted the wait.
    #[serde(skip)]
    pub is_interrupted: bool,
}

impl Queue {
    /// Does `work` with the open ledger, if it has a queue.
    async fn with<T: Send>(
        &self,
        work: impl AsyncFnOnce(&LedgerSession) -> Result<T, Error>,
    ) -> Result<Outcome<T>, Error> {
        let session = self.open(open_session::open).await?;
        let done = work(&session).await;
        session.finish(done).await
    }

    /// Opens the ledger for a command that adds tasks or executes them.
    ///
    /// # Errors
    /// As [`ensure_queue`], and if configuration, ledger or log are unusable.
    #[crate::boxed]
    pub(crate) async fn open_for_writing(&self) -> Result<OpenSession, Error> {
        self.open(open_session::open_for_writing).await
    }

    async fn open<F: Future<Output = Result<LedgerSession, Error>> + Send>(
        &self,
        open: impl FnOnce(Environment, Workspace) -> F + Send,
    ) -> Result<OpenSession, Error> {
        let Quorate { environment, places, .. } = &self.0;
        let opening = async {
            let workspace = workspace::load(environment, places, &environment.directory)?;
            // Before the ledger is opened, since opening a file creates it.
            ensure_queue(environment, &workspace.ledger)?;
            open(environment.clone(), workspace).await
        };
        let session = self.0.open(opening).await?;
        ensure_queue(environment, session.store.address())?;
        Ok(session)
    }

    /// Queues a run of an assembly about each file of a folder, or about one subject, and with `wait` waits for the outcomes.
    /// [`JudgedPolicy::Repeat`] queues it although an earlier run has ended.
    #[must_use = "nothing happens until it is polled"]
    pub fn convene(
        &self,
        request: ConveneRequest,
        options: QueueOptions,
        judged: JudgedPolicy,
        wait: bool,
    ) -> Run<Outcome<QueuedConvenings>> {
        let quorate = self.0.clone();
        Run::new(move |_, interruption| async move {
            let environment = &quorate.environment;
            let (inputs, setup, workspace) =
                enqueue::prepare_convenings(environment, &quorate.places, &request)?;
            ensure_queue(environment, &workspace.ledger)?;
            let spec = convene::spec::build(environment, &workspace, &inputs[0], setup, &request.options)?;
            let session = quorate.open(open_session::open(environment.clone(), workspace)).await?;
            let queued = async {
                let queued = enqueue::enqueue_convenings(&session, &inputs, &spec, &options, judged).await?;
                let mut all = QueuedConvenings { queued, waited: wait, is_interrupted: false };
                if wait {
                    all.is_interrupted = tokio::select! {
                        biased;
                        waited = enqueue::wait_for_convenings(&session, &mut all.queued) => waited.map(|()| false)?,
                        () = interruption.requested() => true,
                    };
                }
                Ok(all)
            };
            let queued = queued.await;
            session.finish(queued).await
        })
    }

    /// The number of tasks, and what is paused.
    ///
    /// # Errors
    /// See [`Queue`].
    pub async fn status(&self) -> Result<Outcome<QueueStatus>, Error> {
        let status = async |session: &LedgerSession| {
            let counts = session.store.count_tasks().await?;
            let paused = session.store.paused_tenants().await?;
            let is_paused = paused.contains(&None);
            Ok(QueueStatus { counts, is_paused, paused: paused.into_iter().flatten().collect() })
        };
        self.with(status).await
    }

    /// The tasks that match a filter, at most `limit`.
    ///
    /// # Errors
    /// See [`Queue`].
    pub async fn tasks(&self, filter: &TaskFilter, limit: u32) -> Result<Outcome<Tasks>, Error> {
        self.with(async |session| Ok(Tasks { tasks: session.store.tasks(filter, limit).await? })).await
    }

    /// Has the dead tasks of these runs, given by id or the beginning of one, tried again; without runs, all dead tasks of
    /// a tenant, or of all.
    ///
    /// # Errors
    /// See [`Queue`]; and if the task of a run is not dead.
    pub async fn retry(&self, runs: &[String], tenant: Option<String>) -> Result<Outcome<Changed>, Error> {
        let filter = TaskFilter { tenant, ..TaskFilter::default() };
        let retry = async |session: &LedgerSession| {
            session.ensure_writable()?;
            if runs.is_empty() {
                return Ok(Changed::Retried(session.store.retry_tasks(&filter, None).await?));
            }
            let mut retried = 0;
            for prefix in runs {
                let run = find(session, prefix).await?;
                match session.store.retry_tasks(&TaskFilter::default(), Some(&run)).await? {
                    0 => {
                        let why = "only a dead task can be retried";
                        return Err(in_other_state(session, &run, "retry", why).await?);
                    }
                    count => retried += count,
                }
            }
            Ok(Changed::Retried(retried))
        };
        self.with(retry).await
    }

    /// Removes the tasks of these runs, given by id or the beginning of one.
    ///
    /// # Errors
    /// See [`Queue`]; and if a worker executes one of the tasks, or it has ended.
    pub async fn cancel(&self, runs: &[String]) -> Result<Outcome<Changed>, Error> {
        let cancel = async |session: &LedgerSession| {
            session.ensure_writable()?;
            for prefix in runs {
                let run = find(session, prefix).await?;
                if !session.store.cancel_task(&run).await? {
                    let why = "only a ready or dead task can be cancelled";
                    return Err(in_other_state(session, &run, "cancel", why).await?);
                }
            }
            Ok(Changed::Cancelled(runs.len() as u64))
        };
        self.with(cancel).await
    }

    /// Stops workers from claiming tasks of a tenant, or of all; with `paused` false, lets them continue.
    ///
    /// # Errors
    /// See [`Queue`]; and if the tenant's name is invalid.
    pub async fn pause(&self, tenant: Option<String>, paused: bool) -> Result<Outcome<Pause>, Error> {
        self.with(async |session| pause(session, tenant, paused).await).await
    }

    /// Pauses, and waits until workers have finished their tasks. Calls `progress` with the number of tasks left.
    ///
    /// # Errors
    /// See [`Queue`]; and if the wait takes longer than `patience`.
    pub async fn drain(
        &self,
        tenant: Option<String>,
        patience: Option<Duration>,
        progress: impl Fn(u64),
    ) -> Result<Outcome<Pause>, Error> {
        let until = patience.map(|patience| Instant::now() + patience);
        let drain = async |session: &LedgerSession| {
            let paused = pause(session, tenant, true).await?;
            loop {
                let counts = session.store.count_tasks().await?;
                let is_meant = |count: &&TaskCount| {
                    let tenant = paused.tenant.as_ref();
                    count.state == TaskState::Leased && tenant.is_none_or(|tenant| *tenant == count.tenant)
                };
                let leased: u64 = counts.iter().filter(is_meant).map(|count| count.tasks).sum();
                progress(leased);
                if leased == 0 {
                    return Ok(Pause { is_drained: true, ..paused });
                }
                if until.is_some_and(|until| Instant::now() >= until) {
                    let body = Body::new(format!("workers still execute {leased} tasks"));
                    let help = "repeat the command to wait longer, or run `quorate queue pause --off`: the queue is paused";
                    return Err(Error::new(ErrorKind::Refused, codes::QUEUE_BUSY, body.help(help)));
                }
                pause_poll().await;
            }
        };
        self.with(drain).await
    }

    /// Changes a tenant's share and limits, and returns them.
    ///
    /// # Errors
    /// See [`Queue`]; and if the tenant's name is invalid.
    pub async fn tenant(&self, name: &str, change: &TenantChange) -> Result<Outcome<Tenant>, Error> {
        let tenant = async |session: &LedgerSession| {
            check_name("tenant", name)?;
            if *change != TenantChange::default() {
                session.ensure_writable()?;
            }
            Ok(session.store.change_tenant(name, change).await?)
        };
        self.with(tenant).await
    }

    /// Changes the limit of a pool, if given: calls in an hour, and how many may be saved up. Returns all pools.
    ///
    /// # Errors
    /// See [`Queue`].
    pub async fn pools(&self, change: Option<(&str, Option<(u64, u64)>)>) -> Result<Outcome<Pools>, Error> {
        let pools = async |session: &LedgerSession| {
            if let Some((pool, limit)) = change {
                session.ensure_writable()?;
                session.store.set_quota(pool, limit).await?;
            }
            Ok(Pools { pools: session.store.quotas().await? })
        };
        self.with(pools).await
    }

    /// Decides queued runs with the executors of this workspace, and reports to `show`. When `stop` completes, claims no
    /// more tasks, waits for its runs for the grace period, and gives the rest back without counting the attempt.
    ///
    /// # Errors
    /// If the ledger has no queue, or configuration or keyring are refused. If the server does not answer, the worker
    /// tries again.
    pub async fn work(
        &self,
        options: &WorkerOptions,
        show: impl Fn(WorkerEvent),
        stop: impl Future<Output = ()>,
    ) -> Result<Outcome<WorkerSummary>, Error> {
        let session = self.open_for_writing().await?;
        let (ledger, warnings) = (session.store.address().to_string(), session.take_warnings());
        show(WorkerEvent::Started { ledger, warnings });
        let done = worker::work(&session, options, &show, stop).await;
        session.finish(done).await
    }
}

async fn pause(session: &LedgerSession, tenant: Option<String>, paused: bool) -> Result<Pause, Error> {
    session.ensure_writable()?;
    tenant.as_ref().map_or(Ok(()), |tenant| check_name("tenant", tenant))?;
    session.store.pause_queue(tenant.as_deref(), paused).await?;
    Ok(Pause { tenant, paused, is_drained: false })
}

async fn find(session: &LedgerSession, prefix: &str) -> Result<Name, Error> {
    let found = session.store.find_tasks(prefix).await?;
    let (code, message, help) = match found.as_slice() {
        [run] => return Ok(run.clone()),
        [] => (
            codes::RUN_UNKNOWN,
            format!("the queue has no task `{prefix}`"),
            "run `quorate queue list` to see the tasks",
        ),
        [_, ..] => (
            codes::RUN_AMBIGUOUS,
            format!("several tasks have an id that starts with `{prefix}`"),
            "give more characters",
        ),
    };
    Err(Error::not_found(code, Body::new(message).help(help)))
}

async fn in_other_state(session: &LedgerSession, run: &Name, what: &str, why: &str) -> Result<Error, Error> {
    let states = session.store.task_states(std::slice::from_ref(run)).await?;
    let state = states.get(run).map_or("gone", |(state, _)| state.as_str());
    let body = Body::new(format!("cannot {what} the task {run}: it is {state}, and {why}"));
    let help = "run `quorate queue list` to see the state of each task";
    Ok(Error::configuration(codes::QUEUE_BUSY, body.help(help)))
}

impl QueueStatus {
    /// The tasks by tenant, a column for each state.
    pub fn doc(&self) -> Doc {
        let mut tenants: Vec<&str> = self.counts.iter().map(|count| &*count.tenant).collect();
        tenants.dedup();
        let mut table = Table::new(
            ["tenant"].into_iter().chain(TaskState::ALL.map(TaskState::as_str)).chain(["oldest", ""]),
        );
        for tenant in tenants {
            let of = |state| self.counts.iter().find(|count| count.tenant == tenant && count.state == state);
            let oldest = of(TaskState::Ready)
                .map_or_else(String::new, |count| duration(Duration::from_millis(count.oldest_ms)));
            let paused = if self.paused.iter().any(|paused| paused == tenant) { "paused" } else { "" };
            let number = |state| of(state).map_or_else(String::new, |count| count.tasks.to_string());
            let cells = TaskState::ALL.map(number).into_iter().chain([oldest, paused.to_owned()]);
            table.row([tenant.to_owned()].into_iter().chain(cells));
        }
        let mut doc = Doc::of_table(table, "The queue is empty: `quorate sweep --enqueue` fills it.");
        if self.is_paused {
            doc.line("The queue is paused: `quorate queue pause --off` lets workers claim again.");
        }
        doc
    }
}

impl Tasks {
    /// The tasks, with the reasons of those that failed.
    pub fn doc(&self) -> Doc {
        let mut table = Table::new(["run", "state", "tenant", "tries", "queued (UTC)", "subject", "error"]);
        for task in &self.tasks {
            table.row([
                Text::from(task.run.to_string()),
                state(task.state),
                Text::from(&task.tenant),
                Text::from(task.attempts.to_string()),
                Text::from(minute(task.queued_ms)),
                Text::from(&task.subject),
                Text::from(task.error.as_deref().unwrap_or_default()),
            ]);
        }
        Doc::of_table(table, "No task fits.")
    }
}

fn state(state: TaskState) -> Text {
    let tone = if state == TaskState::Dead { Tone::Absent } else { Tone::Faint };
    Text::toned(tone, state.as_str())
}

impl Changed {
    /// The number in a sentence.
    pub fn doc(&self) -> Doc {
        let (count, what) = match self {
            Changed::Retried(count) => (*count, "tried again"),
            Changed::Cancelled(count) => (*count, "taken out of the queue"),
        };
        let tasks = if count == 1 { "task is" } else { "tasks are" };
        Doc::of_lines([format!("{count} {tasks} {what}.")], "")
    }
}

impl Pause {
    /// What is paused, in a sentence.
    pub fn doc(&self) -> Doc {
        let tenant = self.tenant.as_deref();
        let whose = tenant.map_or_else(|| "The queue".to_owned(), |tenant| format!("The tenant `{tenant}`"));
        let off = tenant.map_or_else(String::new, |tenant| format!(" --tenant {tenant}"));
        let drained = if self.is_drained { "Workers have nothing left. " } else { "" };
        let line = match self.paused {
            true => format!(
                "{drained}{whose} is paused: `quorate queue pause --off{off}` lets workers claim again."
            ),
            false => format!("{whose} goes on."),
        };
        Doc::of_lines([line], "")
    }
}

/// A tenant's share and limits.
pub fn tenant_doc(tenant: &Tenant) -> Doc {
    let limit = |limit: Option<u64>| limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
    let mut table = Table::new(["tenant", "weight", "running at most", "waiting at most"]);
    let (running, waiting) = (limit(tenant.max_running), limit(tenant.max_waiting));
    table.row([tenant.name.clone(), tenant.weight.to_string(), running, waiting]);
    Doc::of_table(table, "")
}

impl Pools {
    /// The call rates of pools.
    pub fn doc(&self) -> Doc {
        let mut table = Table::new(["pool", "calls", ""]);
        for PoolQuota { pool, calls_per_hour, burst, blocked_ms } in &self.pools {
            // A rate in the unit in which it is a whole number.
            let limit = match (calls_per_hour, burst.unwrap_or_default()) {
                (None, _) => "no limit".to_owned(),
                (Some(rate), burst) if rate % 3_600 == 0 => {
                    format!("{} a second, {burst} saved up", rate / 3_600)
                }
                (Some(rate), burst) if rate % 60 == 0 => {
                    format!("{} a minute, {burst} saved up", rate / 60)
                }
                (Some(rate), burst) => format!("{rate} an hour, {burst} saved up"),
            };
            let wait = match blocked_ms {
                0 => String::new(),
                wait => format!("waits {} more", duration(Duration::from_millis(*wait))),
            };
            table.row([pool.clone(), limit, wait]);
        }
        Doc::of_table(table, "No worker has asked a model service yet.")
    }
}

impl QueuedConvenings {
    /// The convenings, with their outcomes where they were waited for.
    pub fn doc(&self) -> Doc {
        let mut table = Table::new(["outcome", "subject", "run", "error"]);
        for subject in &self.queued {
            let word = match &subject.outcome {
                Some(outcome) => Text::toned(Tone::of_word(outcome), outcome),
                None => state(subject.state),
            };
            let error = subject.error.as_deref().unwrap_or_default();
            table.row([word, (&subject.path).into(), subject.run.to_string().into(), error.into()]);
        }
        let mut doc = Doc::of_table(table, "");
        let new = self.queued.iter().filter(|subject| subject.is_new).count();
        let before = self.queued.len() - new;
        let known = if before == 0 { String::new() } else { format!(", {before} queued before") };
        doc.line(format!("{}: {new} queued{known}.", amount(self.queued.len() as u64, "subject")));
        doc
    }

    /// The exit code of a command with these: 3 if one that was waited for ended without an outcome.
    pub fn exit_code(&self) -> u8 {
        let has_failed = self.waited && self.queued.iter().any(|subject| subject.outcome.is_none());
        match self.is_interrupted {
            true => ErrorKind::Interrupted.code(),
            false if has_failed => 3,
            false => 0,
        }
    }
}

impl Attempt {
    /// The attempt, on one line of a terminal.
    pub fn line(&self, options: TextOptions) -> String {
        let wait = duration(Duration::from_millis(self.wait_ms.unwrap_or_default()));
        let why = self.why.as_deref().unwrap_or_default();
        let (word, more) = match (self.end, &self.outcome) {
            (_, Some(outcome)) => (Tone::of_word(outcome).on(outcome), String::new()),
            ("later", _) => (Tone::Absent.on("later"), format!(" (in {wait}: {})", one_line(why))),
            ("dead", _) => (Tone::Absent.on("dead"), format!(" ({})", one_line(why))),
            ("lost", _) => (Tone::Faint.on("lost"), " (another worker has it)".to_owned()),
            (end, _) => (Tone::Faint.on(end), String::new()),
        };
        // Programs read the lines, so a long one is not wrapped.
        layout::finish(&format!("{word}  {}  {}{more}\n", one_line(&self.subject), self.run), options)
    }
}

impl WorkerSummary {
    /// What the worker did, in words.
    pub fn text(&self) -> String {
        let parts = [
            (self.later, "to be tried again"),
            (self.dead, "dead"),
            (self.lost, "taken over by others"),
            (self.released, "given back"),
        ];
        let more = parts.into_iter().filter(|(count, _)| *count > 0);
        let more: String = more.map(|(count, what)| format!(", {count} {what}")).collect();
        format!("{} done{more}", amount(self.done, "task"))
    }
}

/// The class of tasks that name none.
const DEFAULT_CLASS: &str = "default";

/// The tenant, the class and the priority of queued tasks.
///
/// ```
/// use quorate::cluster::queue::QueueOptions;
///
/// let urgent = QueueOptions { tenant: "blog".to_owned(), priority: 0, ..QueueOptions::default() };
/// assert_eq!((&*urgent.class, urgent.priority), ("default", 0));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueOptions {
    /// The tenant that owns the tasks: 1 to 64 lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or a digit.
    pub tenant: String,
    /// Workers claim only the tasks of their classes. In the form of a tenant.
    pub class: String,
    /// 0 to 2; 0 is the most urgent.
    pub priority: u8,
}

impl Default for QueueOptions {
    fn default() -> Self {
        QueueOptions { tenant: DEFAULT_TENANT.to_owned(), class: DEFAULT_CLASS.to_owned(), priority: 1 }
    }
}

/// Refuses a ledger without a queue.
///
/// # Errors
/// [`codes::QUEUE_UNAVAILABLE`] for a ledger in a file.
fn ensure_queue(environment: &Environment, address: &StoreAddress) -> Result<(), Error> {
    if address.file().is_none() {
        return Ok(());
    }
    let ledger = display_ledger(environment, address);
    let body = Body::new(format!("the ledger {ledger} is a file, and a queue needs a Postgres database"));
    let help = "name a database with `--ledger postgres://user@host/database`, or `ledger` in quorate.toml";
    Err(Error::configuration(codes::QUEUE_UNAVAILABLE, body.help(help)))
}

/// What to do about most invalid tasks.
const REQUEUE: &str = "cancel the task and queue it again";

/// The refusal of a task that cannot be queued, or that a worker cannot execute.
fn invalid(message: impl Into<String>, help: &str) -> Error {
    Error::configuration(codes::QUEUE_INVALID, Body::new(message).help(help))
}

/// Checks the name of a tenant or a class.
///
/// # Errors
/// If it is not 1 to 64 lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or digit.
fn check_name(what: &str, name: &str) -> Result<(), Error> {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if !name.is_empty()
        && name.len() <= 64
        && name.chars().all(is_fine)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
    {
        return Ok(());
    }
    let body = Body::new(format!("`{name}` cannot be the name of a {what}"))
        .help("use 1 to 64 lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or a digit");
    Err(Error::new(ErrorKind::InvalidRequest, codes::USAGE, body))
}

/// The poll interval in milliseconds, before a random change of up to a quarter.
const POLL_MS: u64 = 1_000;

/// About a second, at random, so that processes that start together do not poll together.
fn poll_interval() -> Duration {
    let [random] = entropy::bytes::<1>();
    Duration::from_millis(POLL_MS * 3 / 4 + POLL_MS / 2 * u64::from(random) / 255)
}

/// Waits about a second.
async fn pause_poll() {
    tokio::time::sleep(poll_interval()).await;
}
