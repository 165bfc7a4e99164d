//! A worker: claims tasks for its free slots, executes their runs, and gives back the tasks that it cannot finish. All
//! workers share a quota for each pool of calls: a worker takes permits for the next second from the database, and a wait
//! that the model service asks of one worker holds for all.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use quorate_adapters::executor::{Quota, share_quota};
use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::budget::Caps;
use quorate_kernel::entropy;
use quorate_kernel::history::History;
use quorate_kernel::observer::NoopObserver;
use quorate_kernel::ports::ledger::Ledger as _;
use quorate_kernel::record::{HiddenText, Outcome, Queued, RunOpened, Spent};
use quorate_ledger::Store;
use quorate_ledger::store::tasks::{ClaimedTask, GiveBack, Permits};
use quorate_protocol::assembly::{self, subject_kind};
use quorate_protocol::modes::council;
use quorate_protocol::{Json, Name, Part, PartKind};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::bundle::{Bundle, BundleKind};
use super::{TaskBody, metrics, verified_body};
use crate::error::{Error, ErrorKind};
use crate::service::artifact::Artifact;
use crate::service::finalize::finalize;
use crate::service::ledger::gc;
use crate::service::overlays;
use crate::service::run_opened::ensure_shown_artifact;
use crate::service::run_spec::{NewRun, ProtocolSetup, RunSpec, ensure_unchanged};
use crate::service::session::LedgerSession;
use crate::service::signer::{KeySource, Signer};
use crate::worker_thread::run_on_own_thread;

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// How many tasks the worker executes at once.
    pub slots: usize,
    /// The classes of the tasks that the worker claims.
    pub classes: Vec<String>,
    /// How long tasks may continue after the worker was told to stop.
    pub grace: Duration,
    /// Whether the worker ends when the queue has no more tasks for it.
    pub until_empty: bool,
}

/// What a worker reports.
#[derive(Debug, Clone)]
pub enum WorkerEvent {
    /// It claims tasks from a ledger.
    Started {
        /// The ledger's address.
        ledger: String,
        /// The warnings of the workspace.
        warnings: Report,
    },
    /// It has ended an attempt at a task.
    Ended(Attempt),
    /// The ledger did not answer, for this reason. The worker tries again.
    Unavailable(String),
}

/// An attempt at a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// The task's run.
    pub run: Name,
    /// The tenant that queued it.
    pub tenant: String,
    /// The text that the task is about.
    pub subject: String,
    /// The number of the attempt, from 1.
    pub attempt: u64,
    /// `done`, `later`, `dead`, `lost` or `released`.
    pub end: &'static str,
    /// The verdict or outcome of a run that is done.
    pub outcome: Option<String>,
    /// Why the task is dead or tried later.
    pub why: Option<String>,
    /// When the queue tries the task again, in milliseconds.
    pub wait_ms: Option<u64>,
}

impl Attempt {
    fn of(task: &ClaimedTask) -> Attempt {
        Attempt {
            run: task.run.clone(),
            tenant: task.tenant.clone(),
            subject: task.subject.clone(),
            attempt: task.attempt,
            end: "lost",
            outcome: None,
            why: None,
            wait_ms: None,
        }
    }

    /// Gives the task back to the queue. Another worker has it if the lease of this one has expired.
    async fn give_back(self, session: &LedgerSession, how: GiveBack) -> Result<Attempt, Error> {
        if !session.store.give_back(&self.run, &how).await? {
            return Ok(self);
        }
        Ok(match how {
            GiveBack::Uncounted => Attempt { end: "released", ..self },
            GiveBack::Later { wait_ms, why } => {
                Attempt { end: "later", why: Some(why), wait_ms: Some(wait_ms), ..self }
            }
            GiveBack::Dead { why } => Attempt { end: "dead", why: Some(why), ..self },
        })
    }
}

/// The number of attempts of a worker, by end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerSummary {
    /// Tasks whose run has ended.
    pub done: u64,
    /// Tasks that the queue retries.
    pub later: u64,
    /// Tasks that a person has to retry.
    pub dead: u64,
    /// Tasks that another worker took over.
    pub lost: u64,
    /// Tasks that were given back.
    pub released: u64,
}

impl WorkerSummary {
    fn add(&mut self, end: &str) {
        let count = match end {
            "done" => &mut self.done,
            "later" => &mut self.later,
            "dead" => &mut self.dead,
            "released" => &mut self.released,
            _ => &mut self.lost,
        };
        *count += 1;
    }
}

/// An attempt as it began, and as it ended.
type Ended = (Attempt, Result<Attempt, Error>);

/// Works until `stop`, or until the queue is empty. Then the worker stops claiming, waits for its tasks for the grace
/// period, and gives the rest back without counting the attempt.
///
/// # Errors
/// If the ledger has no queue, or the keyring is refused. If the server does not answer, the worker tries again.
pub(super) async fn work(
    session: &Arc<LedgerSession>,
    options: &WorkerOptions,
    show: &dyn Fn(WorkerEvent),
    stop: impl Future<Output = ()>,
) -> Result<WorkerSummary, Error> {
    // A keyring that cannot be read would make every task dead.
    session.keys().trusted_keys()?;
    share_quota(Arc::new(StoreQuota::new(&session.store)));
    let worker = Worker { session: session.clone(), show };
    let mut stop = pin!(stop);
    // Ends when this call returns.
    let mut counting = JoinSet::new();
    if session.environment.is_metered {
        counting.spawn(metrics::count(session.store.clone()));
    }
    let mut summary = WorkerSummary::default();
    let mut running: JoinSet<Ended> = JoinSet::new();
    let (abandon, abandoned) = watch::channel(false);
    let mut new_tasks = session.environment.commit_events.reader(super::poll_interval());
    loop {
        let free = options.slots.saturating_sub(running.len());
        let claimed = match free {
            0 => Ok(Vec::new()),
            free => session.store.claim_tasks(&options.classes, free as u64).await,
        };
        let claimed = claimed.unwrap_or_else(|error| {
            show(WorkerEvent::Unavailable(Error::from(error).first_message()));
            Vec::new()
        });
        let is_empty = free > 0 && claimed.is_empty();
        for task in claimed {
            worker.start(&mut running, task, abandoned.clone());
        }
        if options.until_empty && is_empty && running.is_empty() {
            // Tasks that other workers have, or that wait for another attempt, may become claimable.
            let open = session.store.has_open_tasks(&options.classes).await;
            if !open.unwrap_or(true) {
                break;
            }
        }
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(ended) = running.join_next() => worker.ended(ended, &mut summary),
            () = new_tasks.wait_for_tasks() => {}
        }
        // Collects every ended task, so that all free slots are filled at once.
        while let Some(ended) = running.try_join_next() {
            worker.ended(ended, &mut summary);
        }
    }
    let until = Instant::now() + options.grace;
    while let Ok(Some(ended)) = timeout_at(until, running.join_next()).await {
        worker.ended(ended, &mut summary);
    }
    let _ = abandon.send(true);
    while let Some(ended) = running.join_next().await {
        worker.ended(ended, &mut summary);
    }
    Ok(summary)
}

struct Worker<'a> {
    session: Arc<LedgerSession>,
    show: &'a dyn Fn(WorkerEvent),
}

impl Worker<'_> {
    fn start(&self, running: &mut JoinSet<Ended>, task: ClaimedTask, mut abandoned: watch::Receiver<bool>) {
        let attempt = Attempt::of(&task);
        let session = self.session.clone();
        let events = session.environment.commit_events.clone();
        events.set_tenant(&attempt.run, Some(&attempt.tenant));
        metrics::claimed(&attempt.tenant, attempt.attempt);
        // One thread for each task, so that runs use all cores without blocking each other.
        running.spawn(async move {
            let mine = session.clone();
            // Dropped only after the task was given back; by then the lease refuses further appends.
            let mut work = pin!(run_on_own_thread(async move { execute(&mine, task).await }));
            let end = tokio::select! {
                end = &mut work => end,
                // Another worker continues it at once. An error means that the worker was dropped.
                () = async { drop(abandoned.wait_for(|abandoned| *abandoned).await) } => {
                    attempt.clone().give_back(&session, GiveBack::Uncounted).await
                }
            };
            events.set_tenant(&attempt.run, None);
            (attempt, end)
        });
    }

    fn ended(&self, ended: Result<Ended, tokio::task::JoinError>, summary: &mut WorkerSummary) {
        match ended {
            Ok((attempt, end)) => {
                // Without an answer the lease expires, and another worker takes the task over.
                let ended = end.unwrap_or_else(|error| {
                    (self.show)(WorkerEvent::Unavailable(error.first_message()));
                    attempt
                });
                summary.add(ended.end);
                metrics::ended(&ended.tenant, ended.end);
                (self.show)(WorkerEvent::Ended(ended));
            }
            Err(gone) => {
                if let Ok(panic) = gone.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
}

/// The most attempts of a task.
const MAX_ATTEMPTS: u64 = 3;
/// The delay after the first failure, in milliseconds. Each further failure multiplies it by four.
const FIRST_WAIT_MS: u64 = 10_000;
/// Executes a task's run to its end, or gives the task back.
///
/// # Errors
/// If the ledger does not answer. The lease then expires, and another worker takes the task over.
async fn execute(session: &LedgerSession, task: ClaimedTask) -> Result<Attempt, Error> {
    let attempt = Attempt::of(&task);
    // Every earlier worker died during this task: close its run without asking a member again.
    let is_last = task.attempt > MAX_ATTEMPTS;
    let how = match hold_run(session, &task, is_last).await {
        Ok(outcome) if outcome.as_ref().is_some_and(|outcome| !outcome.is_incomplete()) => {
            let word = outcome.and_then(|outcome| outcome.word().map(str::to_owned));
            // Erasing answers at the end of the run needs the lease that `task` holds.
            let history = session.partial_history(&task.run).await?;
            drop(task);
            gc::after_run(session, history).await?;
            return Ok(Attempt { end: "done", outcome: Some(word.unwrap_or_default()), ..attempt });
        }
        Ok(outcome) if !is_last => temporary_failure(&task, why_incomplete(outcome.as_ref())),
        Ok(_) => GiveBack::Dead { why: format!("{MAX_ATTEMPTS} workers stopped while they executed it") },
        Err(error) if error.kind() == ErrorKind::Moved => return Ok(attempt),
        Err(error) if error.is_ledger_unavailable() => temporary_failure(&task, error_text(&error)),
        Err(error) => GiveBack::Dead { why: error_text(&error) },
    };
    attempt.give_back(session, how).await
}

/// The end of an attempt with a temporary failure.
fn temporary_failure(task: &ClaimedTask, why: String) -> GiveBack {
    if task.attempt >= MAX_ATTEMPTS {
        return GiveBack::Dead { why };
    }
    let [random] = entropy::bytes::<1>();
    let wait_ms = FIRST_WAIT_MS * 4_u64.pow(u32::try_from(task.attempt - 1).unwrap_or(u32::MAX).min(5));
    // Random, so that tasks that failed together are not retried together.
    GiveBack::Later { wait_ms: wait_ms * 3 / 4 + wait_ms / 2 * u64::from(random) / 255, why }
}

fn why_incomplete(outcome: Option<&Outcome>) -> String {
    let because = outcome.and_then(|outcome| outcome.because.clone().or_else(|| outcome.reasoning.clone()));
    because.unwrap_or_else(|| "its run ended without an outcome".to_owned())
}

/// The text of an error that the queue stores with the task.
fn error_text(error: &Error) -> String {
    let first = error.report.refusals.first();
    first.map_or_else(String::new, |refusal| format!("{}: {}", refusal.code.as_str(), refusal.body.message))
}

async fn task_text(session: &LedgerSession, hash: &str) -> Result<String, Error> {
    match session.store.task_text(hash).await? {
        Some(text) if entropy::sha256_hex(text.as_bytes()) == hash => Ok(text),
        found => {
            let is = if found.is_some() { "differs from the queued text" } else { "is missing in the queue" };
            Err(super::invalid(format!("a text of the task {is}"), super::REQUEUE))
        }
    }
}

/// Starts or continues the task's run, and returns its outcome. With `is_last`, no member is asked.
async fn hold_run(
    session: &LedgerSession,
    task: &ClaimedTask,
    is_last: bool,
) -> Result<Option<Outcome>, Error> {
    let body = verified_body(session.keys(), task).await?;
    if let Some(outcome) = settle_ended(session, task, &body).await? {
        return Ok(Some(outcome));
    }
    let bundle = Bundle::parse(&task_text(session, &body.bundle).await?)?;
    let (environment, workspace) = (&session.environment, &session.workspace);
    let work = Work { session, task, body: &body, bundle: &bundle, is_last };
    match bundle.kind {
        BundleKind::Council => {
            let spec: RunSpec<council::Setup> = bundle.spec(environment, workspace)?;
            work.hold(spec, PartKind::Artifact, None).await
        }
        BundleKind::Assembly => {
            let spec: RunSpec<assembly::Setup> = bundle.spec(environment, workspace)?;
            let now_ms = environment.clock.now_ms();
            let texts = overlays::active_texts(&session.store, &spec.setup, now_ms).await?;
            let (texts, _) = spec.redaction.redactor.redact_json(Json::Array(texts));
            let kind = subject_kind(spec.setup.mode);
            work.hold(spec, kind, Some(texts.as_array().cloned().unwrap_or_default())).await
        }
    }
}

/// Settles a task whose run has ended with a verdict, since the queue no longer has its texts. `None` if the run has not
/// ended.
async fn settle_ended(
    session: &LedgerSession,
    task: &ClaimedTask,
    body: &TaskBody,
) -> Result<Option<Outcome>, Error> {
    let run = &task.run;
    if session.store.tail(run, 1).await?.is_empty() {
        return Ok(None);
    }
    let history = session.partial_history(run).await?;
    ensure_own(task, body, &history)?;
    let outcome = history.outcome().filter(|outcome| history.ended.is_some() && !outcome.is_incomplete());
    if outcome.is_some() {
        drop(finalize(session, run).await?);
        session.store.settle_task(run).await?;
    }
    Ok(outcome)
}

/// Refuses a run that another task started, or whose members saw another text.
fn ensure_own(task: &ClaimedTask, body: &TaskBody, history: &History) -> Result<(), Error> {
    let opened = &history.opened;
    let is_queued_so = opened
        .queued
        .as_ref()
        .is_some_and(|queued| queued.tenant == task.tenant && queued.batch == body.batch);
    let is_same_text =
        opened.artifact_sha256.as_ref() == Some(&body.artifact_sha256) && opened.hidden == body.hidden;
    if is_queued_so && is_same_text {
        return ensure_shown_artifact(history);
    }
    Err(super::invalid(format!("run {} was started for another task", task.run), super::REQUEUE))
}

struct Work<'a> {
    session: &'a LedgerSession,
    task: &'a ClaimedTask,
    body: &'a TaskBody,
    bundle: &'a Bundle,
    is_last: bool,
}

impl Work<'_> {
    async fn hold<S: ProtocolSetup>(
        &self,
        mut spec: RunSpec<S>,
        kind: PartKind,
        overlays: Option<Vec<Json>>,
    ) -> Result<Option<Outcome>, Error> {
        let Work { session, task, body, .. } = *self;
        let run: &Name = &task.run;
        let permit = spec.admit(&session.environment)?;
        let observer = Arc::new(NoopObserver);
        if self.is_last {
            spec.caps = Caps { calls: Some(0), ..spec.caps };
        }
        if session.store.tail(run, 1).await?.is_empty() {
            if self.is_last {
                return Ok(None);
            }
            let new = self.new_run(&spec, kind, overlays).await?;
            Box::pin(spec.start_as(run, session, new, permit, observer)).await?;
        } else {
            let history = session.partial_history(run).await?;
            match history.outcome() {
                Some(outcome) if !outcome.is_incomplete() || self.is_last => {
                    drop(finalize(session, run).await?);
                }
                _ => {
                    ensure_unchanged(&history, &spec.fingerprint(&body.artifact_sha256))?;
                    let keys = match self.bundle.audit() {
                        Some(audit) => KeySource::Resolved(audit.keys.clone()),
                        None => KeySource::Recorded,
                    };
                    Box::pin(spec.resume(session, history, keys, permit, observer)).await?;
                }
            }
        }
        Ok(session.partial_history(run).await?.outcome())
    }

    async fn new_run<S: ProtocolSetup>(
        &self,
        spec: &RunSpec<S>,
        kind: PartKind,
        overlays: Option<Vec<Json>>,
    ) -> Result<NewRun<'_>, Error> {
        let Work { session, task, body, bundle, .. } = *self;
        let keys = session.keys();
        let (signer, audit) = match bundle.audit() {
            Some(audit) => {
                let signer = Signer::new(keys, audit.signing, audit.keys.clone()).await?;
                let recorded = signer.audit(audit.retention_days, audit.keep_consultations);
                (signer, Some(recorded))
            }
            None => {
                let signer = Signer::new(keys, keys.signing_mode(), None).await?;
                let recorded = signer.run_audit();
                (signer, recorded)
            }
        };
        // This machine may know secrets that the queueing machine did not know.
        let redactor = &spec.redaction.redactor;
        let queued = task_text(session, &body.text).await?;
        let visible = HiddenText::visible_sha256(body.hidden.as_ref(), &body.artifact_sha256);
        if body.redactions == 0 && body.text != visible {
            let what = format!(
                "cannot judge {}: the queued text is not the artifact {}, although nothing was redacted",
                task.subject, body.artifact_sha256
            );
            let help = "cancel the task and queue the text again";
            return Err(Error::configuration(codes::INPUT_NOT_ARTIFACT, Body::new(what).help(help)));
        }
        // A JSON escape can hide a secret from a pattern but not from a member, so lines are redacted as JSON.
        let lines =
            bundle.kind == BundleKind::Assembly && task.subject.to_ascii_lowercase().ends_with(".jsonl");
        let (text, in_text) = spec.redaction.redact_subject(&task.subject, &queued.into(), lines).await?;
        let (subject, in_subject) = redactor.redact(&task.subject);
        let priors = match &body.priors {
            Some(hash) => serde_json::from_str(&task_text(session, hash).await?).unwrap_or_default(),
            None => Vec::new(),
        };
        let part = Part::new(kind, subject.as_str(), text);
        let sorting = body.tier_source.as_ref().and_then(|source| source.spent.clone());
        let is_review = bundle.kind == BundleKind::Council;
        let opened = RunOpened {
            artifact_type: body.artifact_type.clone().or_else(|| bundle.opened.artifact_type.clone()),
            tier: body.tier.map(u64::from),
            tier_source: body.tier_source.clone(),
            priors: is_review.then_some(priors),
            log_path: body.log.as_ref().map(|(path, _)| path.clone()),
            log_bytes: body.log.as_ref().map(|(_, bytes)| *bytes),
            audit,
            overlays,
            messages: body.messages,
            producer: body.producer.clone(),
            queued: Some(Queued { tenant: task.tenant.clone(), batch: body.batch.clone() }),
            ..bundle.opened.clone()
        };
        Ok(NewRun {
            spent_before: sorting.unwrap_or_else(Spent::default),
            artifact: Cow::Owned(Artifact {
                display_name: subject,
                path: None,
                text: part.text.clone(),
                sha256: body.artifact_sha256.clone(),
                hidden: body.hidden.clone().unwrap_or_default(),
            }),
            part,
            redactions: body.redactions as usize + in_text + in_subject,
            signer,
            opened,
            seed: None,
        })
    }
}

/// How long permits are valid, and how long a pool without a limit is not asked again.
const PERMIT_VALIDITY: Duration = Duration::from_secs(1);
/// How long to wait if the database does not answer.
const RETRY_WAIT: Duration = Duration::from_secs(1);
/// The most permits of one request.
const MAX_PERMITS: u64 = 256;

/// Takes permits from the queue's database.
struct StoreQuota {
    /// Weak, because the quota lives as long as the process and the ledger does not.
    store: Weak<Store>,
    pools: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Pool>>>>,
}

#[derive(Debug, Default)]
struct Pool {
    permits: u64,
    is_unlimited: bool,
    until: Option<Instant>,
    /// The number of calls since the last request for permits.
    asked: u64,
}

impl Pool {
    async fn ask(&mut self, store: &Store, pool: &str) -> Option<Duration> {
        self.asked += 1;
        // Permits expire after a second, so unused ones do not add up.
        if self.until.is_some_and(|until| until > Instant::now()) && (self.is_unlimited || self.permits > 0) {
            self.permits = self.permits.saturating_sub(1);
            return None;
        }
        let wanted = std::mem::take(&mut self.asked).clamp(1, MAX_PERMITS);
        let taken = store.take_permits(pool, wanted).await.unwrap_or(Permits::Wait(RETRY_WAIT));
        let until = Some(Instant::now() + PERMIT_VALIDITY);
        match taken {
            Permits::Unlimited => *self = Pool { is_unlimited: true, until, ..Pool::default() },
            Permits::Some(permits) => {
                *self = Pool { permits: permits.saturating_sub(1), until, ..Pool::default() };
            }
            Permits::Wait(wait) => {
                *self = Pool { asked: wanted, ..Pool::default() };
                return Some(wait.max(Duration::from_millis(1)));
            }
        }
        None
    }
}

impl StoreQuota {
    fn new(store: &Arc<Store>) -> StoreQuota {
        StoreQuota { store: Arc::downgrade(store), pools: Mutex::default() }
    }
}

#[async_trait]
impl Quota for StoreQuota {
    async fn ask(&self, pool: &str) -> Option<Duration> {
        let state = {
            let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
            pools.entry(pool.to_owned()).or_default().clone()
        };
        let Some(store) = self.store.upgrade() else { return Some(RETRY_WAIT) };
        let (name, pool) = (pool.to_owned(), pool.to_owned());
        // In its own task: a run that is about to append does not poll its calls, and a call that is not polled must not
        // hold the connection.
        let asked = tokio::spawn(async move { state.lock().await.ask(&store, &pool).await });
        let wait = asked.await.unwrap_or(Some(RETRY_WAIT));
        if let Some(wait) = wait {
            metrics::waits_for_quota(&name, wait);
        }
        wait
    }

    fn limited(&self, pool: &str, wait: Duration) {
        let pool = pool.to_owned();
        let (Some(store), Ok(runtime)) = (self.store.upgrade(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        runtime.spawn(async move {
            if let Err(error) = store.block_pool(&pool, wait).await {
                tracing::debug!(%error, "cannot share a limit of the model service with other workers");
            }
        });
    }
}
