//! Queues tasks: their redacted texts and one shared bundle. The run id is a hash of both, so a text that is queued twice
//! runs once. The tasks are the due files of a sweep, or one convening for each subject.
//!
//! A worker has another log, so the workspace that queued a review logs its verdict.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::attempts;
use quorate_kernel::entropy::{self, sha256_hex};
use quorate_kernel::record::{HiddenText, RunOpened};
use quorate_ledger::signing::SecretKey;
use quorate_ledger::store::tasks::{Batch, NewTask, QueuedTask, TaskState};
use quorate_manifest::council::tiers::UNCLASSIFIED;
use quorate_protocol::assembly::Setup;
use quorate_protocol::{Json, Name, Part, PartKind};
use serde::Serialize;
use serde_json::json;

use super::bundle::{Audit, Bundle, BundleKind};
use super::lines::{QueueingLog, write_log_lines};
use super::task_body::Covered;
use super::{QueueOptions, TaskBody, check_name, ensure_queue, pause_poll, sign_task, signing_key};
use crate::builder::Quorate;
use crate::error::Error;
use crate::events::Run;
use crate::service::artifact::{self, Draft};
use crate::service::convene::{self, ConveneInput, ConveneRequest, Inputs};
use crate::service::environment::Environment;
use crate::service::run_spec::RunSpec;
use crate::service::session::LedgerSession;
use crate::service::workspace::{PathOverrides, Workspace};
use crate::service::{disk, report, review, signer};
use crate::session::Outcome;
use crate::sweep::{
    DueFile, Ended, Found, JudgedPolicy, Sweep, SweepEvent, SweepObserver, SweepRequest, SweptFile,
    SweptOutcome, find,
};

/// The largest request to the server: tasks, and bytes of texts.
const MAX_TASKS: usize = 1_000;

const MAX_BYTES: usize = 4 * 1024 * 1024;

impl Quorate {
    /// As [`Quorate::sweep`], but queues the reviews for workers, and with `wait` waits until they have ended. The ledger
    /// is in a Postgres database.
    ///
    /// ```no_run
    /// # async fn queue() -> Result<(), quorate::Error> {
    /// use std::sync::Arc;
    ///
    /// use quorate::Quorate;
    ///
    /// let quorate = Quorate::builder().workspace("editorial").ledger("postgres://quorate@db/editorial").build()?;
    /// let queueing = quorate.enqueue_sweep(Default::default(), Default::default(), false, Arc::new(|_| {}));
    /// println!("{} files", queueing.finish().await?.files.len());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "nothing happens until it is polled"]
    pub fn enqueue_sweep(
        &self,
        mut request: SweepRequest,
        queue: QueueOptions,
        wait: bool,
        observer: SweepObserver,
    ) -> Run<Outcome<Sweep>> {
        request.filter.below = self.root.as_ref().map(|root| root.dir().to_owned()).or(request.filter.below);
        let quorate = self.clone();
        Run::new(move |_, interruption| async move {
            let session = quorate.queue().open_for_writing().await?;
            let ended = Ended::new(observer);
            let sweeping = async {
                let mut swept = enqueue_sweep(&session, &request, &queue).await?;
                if wait {
                    wait_for_sweep(&session, &mut swept, &ended).await?;
                }
                Ok(swept)
            };
            let swept = ended.until_interrupted(&session, &interruption, sweeping).await;
            session.finish(swept).await
        })
    }
}

/// A text to queue.
#[derive(Debug, Clone)]
struct Item {
    /// The redacted text that members see.
    part: Part,
    /// Earlier verdicts, newest first.
    priors: Vec<Json>,
    /// The body of its task, without the hashes of texts and what the whole batch shares.
    body: TaskBody,
}

/// Queues the texts of one batch.
struct Enqueuer<'a> {
    session: &'a LedgerSession,
    batch: Batch,
    /// The bundle's text, and what identifies it.
    bundle: String,
    identity: String,
    judged: JudgedPolicy,
    log: Option<QueueingLog>,
    /// The key that signs the tasks, if keys are configured.
    key: Option<Arc<SecretKey>>,
}

impl<'a> Enqueuer<'a> {
    /// Creates a batch of tasks for a council or assembly. [`JudgedPolicy::Repeat`] queues a text again if its last run has
    /// ended; a text with an open task is never queued twice.
    ///
    /// # Errors
    /// If the ledger has no queue, a name is malformed, or keys are configured and none of them may sign.
    async fn new(
        session: &'a LedgerSession,
        bundle: &Bundle,
        options: &QueueOptions,
        judged: JudgedPolicy,
        log: Option<QueueingLog>,
    ) -> Result<Self, Error> {
        ensure_queue(&session.environment, session.store.address())?;
        session.ensure_writable()?;
        check_name("tenant", &options.tenant)?;
        check_name("class", &options.class)?;
        let batch = Batch {
            id: entropy::run_id().replacen('r', "b", 1),
            tenant: options.tenant.clone(),
            class: options.class.clone(),
            priority: options.priority,
            log: log.as_ref().map(|log| log.name.clone()),
        };
        let text = json!(bundle).to_string();
        let key = signing_key(session.keys()).await?;
        Ok(Enqueuer { session, batch, bundle: text, identity: bundle.identity(), judged, log, key })
    }

    /// Queues items, in their order.
    ///
    /// # Errors
    /// If the server does not answer, or the tenant has too many waiting tasks. The tasks that were queued before stay in
    /// the queue: repeating the call queues the rest.
    async fn add(&self, items: Vec<Item>) -> Result<Vec<QueuedTask>, Error> {
        let store = &self.session.store;
        let contents: Vec<String> = items.iter().map(|item| self.content(item)).collect();
        let there = store.queued_tasks(&contents).await?;
        let mut queued = Vec::with_capacity(items.len());
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        for (item, content) in items.into_iter().zip(contents) {
            let generation = match there.get(&content) {
                None => 0,
                Some((state, last)) if self.judged == JudgedPolicy::Repeat && state.is_final() => last + 1,
                Some((_, last)) => *last,
            };
            let task = self.task(item, content, generation);
            bytes += task.texts.values().map(String::len).sum::<usize>();
            chunk.push(task);
            if chunk.len() >= MAX_TASKS || bytes >= MAX_BYTES {
                queued.extend(self.queue(&std::mem::take(&mut chunk)).await?);
                bytes = 0;
            }
        }
        if !chunk.is_empty() {
            queued.extend(self.queue(&chunk).await?);
        }
        if queued.iter().any(|queued| queued.is_new) {
            self.tell_workers().await;
        }
        Ok(queued)
    }

    /// Wakes the workers over NATS, if it is configured. Workers also poll every second.
    #[cfg_attr(not(feature = "nats"), expect(clippy::unused_async, reason = "as with NATS"))]
    async fn tell_workers(&self) {
        #[cfg(feature = "nats")]
        if let Some(servers) = &self.session.environment.nats {
            crate::cluster::nats::tell_of_tasks(servers, &self.batch.tenant).await;
        }
    }

    async fn queue(&self, tasks: &[NewTask]) -> Result<Vec<QueuedTask>, Error> {
        match self.session.store.enqueue(&self.batch, tasks).await? {
            Ok(queued) => {
                // The verdict of another run would count for this text.
                match tasks.iter().zip(&queued).find(|(task, queued)| task.run != queued.run) {
                    None => Ok(queued),
                    Some((NewTask { run, subject, .. }, _)) => Err(super::invalid(
                        format!("the queue names another run than {run} for `{subject}`"),
                        "the table `task` was edited: remove the row, and queue the text again",
                    )),
                }
            }
            Err(why) => {
                let help = format!(
                    "repeat the command when workers have finished more tasks, or raise the limit with \
                     `quorate queue tenant {} --max-waiting N`",
                    self.batch.tenant
                );
                Err(Error::configuration(codes::QUEUE_FULL, Body::new(why).help(help)))
            }
        }
    }

    /// A hash of the tenant, the council, and the name and text of the item.
    fn content(&self, item: &Item) -> String {
        let parts = json!([self.batch.tenant, self.identity, &*item.part.name, item.body.artifact_sha256]);
        sha256_hex(parts.to_string().as_bytes())
    }

    fn task(&self, item: Item, content: String, generation: u64) -> NewTask {
        let mut texts = BTreeMap::new();
        let mut add = |text: String| {
            let hash = sha256_hex(text.as_bytes());
            texts.insert(hash.clone(), text);
            hash
        };
        let body = TaskBody {
            bundle: add(self.bundle.clone()),
            text: add(item.part.text.to_string()),
            priors: (!item.priors.is_empty()).then(|| add(Json::Array(item.priors).to_string())),
            batch: self.batch.id.clone(),
            log: self.log.as_ref().map(|log| (log.path.clone(), log.bytes)),
            ..item.body
        };
        let (run, subject) =
            (entropy::derived_run_id(&format!("{content}/{generation}")), item.part.name.to_string());
        let mut body = attempts::object(json!(body));
        if let Some(key) = &self.key {
            let covered = Covered { run: &run, tenant: &self.batch.tenant, subject: &subject };
            sign_task(&mut body, key, covered, self.session.environment.clock.now_ms());
        }
        NewTask { run, content, generation, subject, body: Json::Object(body).to_string(), texts }
    }
}

/// How many texts are read before they are queued, since all of them may exceed memory.
const SWEEP_CHUNK: usize = 256;

/// Queues every due file without asking a member. A model may be asked for tiers.
///
/// # Errors
/// If no folder can be read, the ledger has no queue, or the server does not answer. Files that were queued before stay in
/// the queue.
#[crate::boxed]
pub(crate) async fn enqueue_sweep(
    session: &LedgerSession,
    request: &SweepRequest,
    queue: &QueueOptions,
) -> Result<Sweep, Error> {
    let workspace = &session.workspace;
    let spec = review::build(&session.environment, workspace, &request.options, request.policy)?;
    let permit = match workspace.council.tiers.may_ask_model() {
        true => Some(spec.admit(&session.environment)?),
        false => None,
    };
    let opened = RunOpened { files: json!(workspace.council.files), ..RunOpened::default() };
    let bundle = Bundle::of(BundleKind::Council, &spec, workspace, opened, None)?;
    let indexed = session.sync_log_index().await?;
    let log = Some(QueueingLog::of(session, indexed.bytes)?);
    let enqueuer = Enqueuer::new(session, &bundle, queue, request.judged, log).await?;
    let Found { mut files, mut due, .. } = find(session, request, &spec, permit).await?;
    let mut known: BTreeMap<String, Vec<Json>> = BTreeMap::new();
    due.reverse();
    while !due.is_empty() {
        let (mut swept, mut items) = (Vec::new(), Vec::new());
        while swept.len() < SWEEP_CHUNK
            && let Some((mut file, draft)) = due.pop()
        {
            match sweep_item(session, &file, &draft).await {
                Ok(mut item) => {
                    // Unclassified files have nothing in common, so earlier verdicts do not apply.
                    if file.artifact_type != UNCLASSIFIED {
                        let priors = match known.get(&file.artifact_type) {
                            Some(priors) => priors.clone(),
                            None => {
                                let read = session.priors(indexed, &file.artifact_type).await?;
                                let (read, _) = spec.redaction.redactor.redact_json(Json::Array(read));
                                let read = read.as_array().cloned().unwrap_or_default();
                                known.insert(file.artifact_type.clone(), read.clone());
                                read
                            }
                        };
                        item.priors = priors;
                    }
                    swept.push(file);
                    items.push(item);
                }
                Err(error) => {
                    file.outcome = SweptOutcome::Failed { why: error.first_message() };
                    files.push(file);
                }
            }
        }
        let queued = enqueuer.add(items).await?;
        for (mut file, queued) in swept.into_iter().zip(queued) {
            file.outcome = SweptOutcome::Queued {
                run: queued.run.to_string(),
                state: queued.state.as_str(),
                is_new: queued.is_new,
            };
            files.push(file);
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Sweep { files, ..Sweep::default() })
}

/// Waits until all tasks of a sweep have ended, and sets the outcomes of its files.
///
/// # Errors
/// When the ledger does not answer.
#[crate::boxed]
pub(crate) async fn wait_for_sweep(
    session: &LedgerSession,
    report: &mut Sweep,
    observer: &Ended,
) -> Result<(), Error> {
    let mut files: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
    for (at, file) in report.files.iter().enumerate() {
        if let SweptOutcome::Queued { run, .. } = &file.outcome {
            files.entry(run.as_str().into()).or_default().push(at);
        }
    }
    observer.tell(SweepEvent::Planned(files.len()));
    let mut open = files.keys().cloned().collect();
    loop {
        let ended = next_ended(session, &mut open).await?;
        if ended.is_empty() {
            return write_log_lines(session).await;
        }
        for (run, state, error) in ended {
            let outcome = match state {
                TaskState::Done => SweptOutcome::of(&report::load(session, &run).await?),
                TaskState::Cancelled => SweptOutcome::Failed { why: "the task was cancelled".to_owned() },
                _ => SweptOutcome::Failed {
                    why: error.unwrap_or_else(|| format!("the task of run {run} is dead")),
                },
            };
            for at in files.get(&run).into_iter().flatten() {
                report.files[*at].outcome = outcome.clone();
                observer.tell(SweepEvent::Ended(&report.files[*at]));
            }
        }
    }
}

/// Reads and redacts a draft for the queue.
async fn sweep_item(session: &LedgerSession, file: &SweptFile, draft: &DueFile) -> Result<Item, Error> {
    let artifact = draft.read_in_place(session)?;
    let redactor = &session.workspace.redaction.redactor;
    let (text, in_text) =
        session.workspace.redaction.redact_subject(&artifact.display_name, &artifact.text, false).await?;
    let (shown, in_name) = redactor.redact(&file.path);
    let (artifact_type, in_type) = redactor.redact(&file.artifact_type);
    // If the text changed since its tier was determined, the tier does not apply.
    let is_same = draft.tier_source.is_none() || artifact.sha256 == draft.sha256;
    Ok(Item {
        part: Part::new(PartKind::Artifact, shown, text),
        priors: Vec::new(),
        body: TaskBody {
            artifact_sha256: artifact.sha256,
            artifact_type: Some(artifact_type),
            tier: Some(if is_same { file.tier } else { review::STRICTEST_TIER }),
            tier_source: draft.tier_source.clone().filter(|_| is_same),
            redactions: (in_text + in_name + in_type).try_into().unwrap_or(u32::MAX),
            hidden: Some(artifact.hidden).filter(|hidden| *hidden != HiddenText::default()),
            ..TaskBody::default()
        },
    })
}

/// A convening in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueuedSubject {
    /// The subject's path, as shown to the user.
    pub path: String,
    /// Its run.
    pub run: Name,
    /// The state of its task.
    pub state: TaskState,
    /// Whether this call queued it.
    #[serde(rename = "new")]
    pub is_new: bool,
    /// The decision, if the call has waited for it and the run has one.
    pub outcome: Option<String>,
    /// The error of a dead task.
    pub error: Option<String>,
}

/// Prepares the inputs: one for each file of a folder, or the input of a single file.
///
/// # Errors
/// As [`convene::prepare`], and if the folder cannot be read.
pub(crate) fn prepare_convenings(
    environment: &Environment,
    places: &PathOverrides,
    request: &ConveneRequest,
) -> Result<(Vec<ConveneInput>, Setup, Workspace), Error> {
    let read = |draft: &Draft| artifact::read(draft, &environment.directory);
    let mut request = request.clone();
    let folder = match given_draft(&mut request.inputs) {
        Some(Draft::File(path)) if environment.directory.join(&path).is_dir() => Some(path.clone()),
        _ => None,
    };
    let Some(folder) = folder else {
        let (input, setup, workspace) = convene::prepare(environment, places, &request, read)?;
        return Ok((vec![input], setup, workspace));
    };
    let (mut inputs, mut shared) = (Vec::new(), None);
    for file in subject_files(&environment.directory, &folder)? {
        given_draft(&mut request.inputs).into_iter().for_each(|draft| *draft = Draft::File(file.clone()));
        let (input, setup, workspace) = convene::prepare(environment, places, &request, read)?;
        inputs.push(input);
        shared = Some((setup, workspace));
    }
    let (setup, workspace) = shared.expect("a folder without files was refused");
    Ok((inputs, setup, workspace))
}

/// The subject of a convening, if it is given.
fn given_draft(inputs: &mut Inputs) -> Option<&mut Draft> {
    let Inputs { conversation, proposal, topic, request, .. } = inputs;
    [conversation, proposal, topic, request].into_iter().find_map(Option::as_mut)
}

/// The files of a folder, each the subject of a convening.
///
/// # Errors
/// If the folder cannot be read, or has none.
fn subject_files(directory: &Path, named: &Path) -> Result<Vec<PathBuf>, Error> {
    let path = directory.join(named);
    let unreadable = |why: String| {
        let body = Body::new(format!("cannot read the folder {}: {why}", named.display()));
        Error::configuration(codes::ARTIFACT_UNREADABLE, body)
    };
    let found = disk::walk(&path).map_err(|error| unreadable(error.to_string()))?;
    let mut files: Vec<PathBuf> = found
        .into_iter()
        .filter(|entry| disk::is_inside(&path, &entry.path))
        .map(|entry| named.join(entry.path.strip_prefix(&path).unwrap_or(&entry.path)))
        .collect();
    files.sort();
    match files.is_empty() {
        true => Err(unreadable("the folder has no files".to_owned())),
        false => Ok(files),
    }
}

/// Queues a convening about each input without asking a member. All inputs have the same assembly and request.
///
/// # Errors
/// If the assembly cannot be queued, or the server does not answer.
#[crate::boxed]
pub(crate) async fn enqueue_convenings(
    session: &LedgerSession,
    inputs: &[ConveneInput],
    spec: &RunSpec<Setup>,
    queue: &QueueOptions,
    judged: JudgedPolicy,
) -> Result<Vec<QueuedSubject>, Error> {
    let Some(first) = inputs.first() else { return Ok(Vec::new()) };
    let resolved = &first.resolution.resolved;
    signer::ensure_signable(resolved)?;
    let opened = convene::spec::described(spec, first);
    let bundle =
        Bundle::of(BundleKind::Assembly, spec, &session.workspace, opened, Some(Audit::of(resolved)))?;
    let enqueuer = Enqueuer::new(session, &bundle, queue, judged, None).await?;
    spec.record_compositions(session).await?;
    let mut items = Vec::with_capacity(inputs.len());
    for input in inputs {
        let (part, redactions) = convene::spec::redacted_input(spec, input).await?;
        let body = TaskBody {
            artifact_sha256: input.subject.sha256.clone(),
            producer: spec.options.producer.as_ref().map(|producer| producer.recorded(&part.text)),
            messages: Some(convene::message_count(input)),
            redactions: redactions.try_into().unwrap_or(u32::MAX),
            hidden: Some(input.subject.hidden.clone()).filter(|hidden| *hidden != HiddenText::default()),
            ..TaskBody::default()
        };
        items.push(Item { part, priors: Vec::new(), body });
    }
    let queued = enqueuer.add(items).await?;
    let subject = |(input, queued): (&ConveneInput, QueuedTask)| QueuedSubject {
        path: spec.redaction.redactor.redact(&input.subject.display_name).0,
        run: queued.run,
        state: queued.state,
        is_new: queued.is_new,
        outcome: None,
        error: None,
    };
    Ok(inputs.iter().zip(queued).map(subject).collect())
}

/// Waits until all convenings have ended, and sets their outcomes.
///
/// # Errors
/// When the ledger does not answer.
#[crate::boxed]
pub(crate) async fn wait_for_convenings(
    session: &LedgerSession,
    queued: &mut [QueuedSubject],
) -> Result<(), Error> {
    let mut open: Vec<Name> = queued.iter().map(|subject| subject.run.clone()).collect();
    open.sort();
    open.dedup();
    loop {
        let ended = next_ended(session, &mut open).await?;
        if ended.is_empty() {
            return Ok(());
        }
        for (run, state, error) in ended {
            let outcome = match state {
                TaskState::Done => session.partial_history(&run).await?.outcome(),
                _ => None,
            };
            let word = outcome.and_then(|outcome| outcome.word().map(str::to_owned));
            for subject in queued.iter_mut().filter(|subject| subject.run == run) {
                (subject.state, subject.outcome, subject.error) = (state, word.clone(), error.clone());
            }
        }
    }
}

/// A task that has ended: its run, its state, and the error of a dead one.
type EndedTask = (Name, TaskState, Option<String>);

/// Waits until some of the open tasks have ended, removes these and returns them. Returns an empty list once all have ended.
///
/// # Errors
/// When the ledger does not answer.
async fn next_ended(session: &LedgerSession, open: &mut Vec<Name>) -> Result<Vec<EndedTask>, Error> {
    let mut ended = Vec::new();
    while ended.is_empty() && !open.is_empty() {
        let mut states = session.store.task_states(open).await?;
        open.retain(|run| match states.remove(run) {
            Some((state, _)) if !state.is_final() => true,
            found => {
                let (state, error) = found.unwrap_or((TaskState::Cancelled, None));
                ended.push((run.clone(), state, error));
                false
            }
        });
        if ended.is_empty() {
            pause_poll().await;
        }
    }
    Ok(ended)
}
