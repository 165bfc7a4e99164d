//! Queues tasks: their redacted texts and one shared bundle. The run id is a hash of both, so a text that is queued twice
//! runs once.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::consultation;
use quorate_kernel::entropy::{self, sha256_hex};
use quorate_ledger::signing::SecretKey;
use quorate_ledger::store::tasks::{Batch, EnqueueResult, NewTask, TaskState};
use quorate_protocol::{Json, Name, Part};
use serde_json::json;

use super::bundle::Bundle;
use super::lines::QueueingLog;
use super::signature::{self, Covered};
use super::{QueueOptions, TaskBody, check_name, ensure_queue};
use crate::service::artifact::Artifact;
use crate::service::error::ServiceError;
use crate::service::session::LedgerSession;
use crate::service::sweep::JudgedPolicy;
use quorate_kernel::record::{Producer, TierSource};

/// The largest request to the server: tasks, and bytes of texts.
const MAX_TASKS: usize = 1_000;
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A text to queue.
#[derive(Debug, Clone)]
pub struct Item {
    pub artifact: Artifact,
    /// The redacted text that members see.
    pub part: Part,
    /// The number of redacted secrets.
    pub redactions: usize,
    pub artifact_type: Option<String>,
    pub tier: Option<u8>,
    pub tier_source: Option<TierSource>,
    /// Earlier verdicts, newest first.
    pub priors: Option<Vec<Json>>,
    pub producer: Option<Producer>,
    pub messages: Option<u64>,
}

/// The result of queueing an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    pub run: Name,
    pub state: TaskState,
    /// Whether this call queued it.
    pub is_new: bool,
}

/// Queues the texts of one batch.
pub struct Enqueuer<'a> {
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
    pub(super) async fn new(
        session: &'a LedgerSession,
        bundle: &Bundle,
        options: &QueueOptions,
        judged: JudgedPolicy,
        log: Option<QueueingLog>,
    ) -> Result<Self, ServiceError> {
        ensure_queue(session)?;
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
        let key = signature::signing_key(session.keys()).await?;
        Ok(Enqueuer { session, batch, bundle: text, identity: bundle.identity(), judged, log, key })
    }

    /// Queues items, in their order.
    ///
    /// # Errors
    /// If the server does not answer, or the tenant has too many waiting tasks. The tasks that were queued before stay in
    /// the queue: repeating the call queues the rest.
    pub async fn add(&self, items: Vec<Item>) -> Result<Vec<Queued>, ServiceError> {
        let store = &self.session.store;
        let contents: Vec<String> = items.iter().map(|item| self.content(item)).collect();
        let there = store.queued_tasks(&contents).await?;
        let mut queued = Vec::with_capacity(items.len());
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        for (item, content) in items.into_iter().zip(contents) {
            let generation = match there.get(&content) {
                None => 0,
                Some(last) if self.judged == JudgedPolicy::Repeat && last.state.is_final() => {
                    last.generation + 1
                }
                Some(last) => last.generation,
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
            crate::service::commit_events::nats::tell_of_tasks(servers, &self.batch.tenant).await;
        }
    }

    async fn queue(&self, tasks: &[NewTask]) -> Result<Vec<Queued>, ServiceError> {
        match self.session.store.enqueue(&self.batch, tasks).await? {
            EnqueueResult::Queued(queued) => {
                // The verdict of another run would count for this text.
                if let Some(task) =
                    tasks.iter().zip(&queued).find_map(|(task, (run, ..))| (task.run != *run).then_some(task))
                {
                    let body = Body::new(format!(
                        "the queue names another run than {} for `{}`",
                        task.run, task.subject
                    ));
                    let help = "the table `task` was edited: remove the row, and queue the text again";
                    return Err(ServiceError::configuration(codes::QUEUE_INVALID, body.help(help)));
                }
                Ok(queued.into_iter().map(|(run, state, is_new)| Queued { run, state, is_new }).collect())
            }
            EnqueueResult::OverLimit(why) => {
                let help = format!(
                    "repeat the command when workers have finished more tasks, or raise the limit with \
                     `quorate queue tenant {} --max-waiting N`",
                    self.batch.tenant
                );
                Err(ServiceError::configuration(codes::QUEUE_FULL, Body::new(why).help(help)))
            }
        }
    }

    /// A hash of the tenant, the council, and the name and text of the item.
    fn content(&self, item: &Item) -> String {
        let parts = json!([self.batch.tenant, self.identity, &*item.part.name, item.artifact.sha256]);
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
            priors: item
                .priors
                .filter(|priors| !priors.is_empty())
                .map(|priors| add(Json::Array(priors).to_string())),
            artifact_sha256: item.artifact.sha256,
            artifact_type: item.artifact_type,
            tier: item.tier,
            tier_source: item.tier_source,
            producer: item.producer,
            messages: item.messages,
            redactions: u32::try_from(item.redactions).unwrap_or(u32::MAX),
            batch: self.batch.id.clone(),
            log: self.log.as_ref().map(|log| (log.path.clone(), log.bytes)),
        };
        let (run, subject) =
            (entropy::derived_run_id(&format!("{content}/{generation}")), item.part.name.to_string());
        let mut body = consultation::object(json!(body));
        if let Some(key) = &self.key {
            let covered = Covered { run: &run, tenant: &self.batch.tenant, subject: &subject };
            signature::sign(&mut body, key, covered, self.session.environment.clock.now_ms());
        }
        NewTask { run, content, generation, subject, body: Json::Object(body).to_string(), texts }
    }
}
