//! The conversations that are open in this server: all readers of one share its substrate, and one job at a time answers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::{Duration, SystemTime};

use quorate::service::error::ServiceError;
use quorate::service::runtime::conversation::Conversation;
use quorate::service::runtime::drive::ShownTurn;
use quorate::service::runtime::{OpenRuntime, Runtime};
use quorate::service::talks::{self, Activity, ActivityTracker, Talk, TalkAccess, TalkState};
use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::telemetry::Telemetry;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{Mutex, MutexGuard, watch};
use tokio::time::Instant;

use crate::Server;
use crate::api::actions::Limits;
use crate::failure::Failure;

/// How long a state is shown before it is read again.
const STATE_AGE: Duration = Duration::from_millis(200);

/// The open conversations, by the ids that requests have named.
#[derive(Default)]
pub(crate) struct Talks {
    open: Mutex<HashMap<String, Arc<OpenTalk>>>,
}

/// A conversation.
pub(crate) struct OpenTalk {
    pub(crate) talk: Talk,
    pub(crate) runtime: Runtime,
    pub(crate) conversation: Conversation,
    /// When the manifest was last changed.
    changed: Option<SystemTime>,
    tracker: Arc<ActivityTracker>,
    running: Mutex<()>,
    /// Whether a job answers now.
    is_answering: SyncMutex<bool>,
    /// How many jobs have answered: what was read before the last one ended is outdated.
    jobs_ended: AtomicU64,
    state: Mutex<Option<CachedState>>,
}

/// A conversation as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct TalkNow {
    #[serde(flatten)]
    pub(crate) state: TalkState,
    /// Whether a job of this server answers open turns
    #[serde(rename = "answering")]
    pub(crate) is_answering: bool,
}

struct CachedState {
    at: Instant,
    /// [`OpenTalk::jobs_ended`] when the reading began.
    jobs_ended: u64,
    state: TalkState,
}

/// A job's turn to answer. No participant is being asked once it is dropped.
pub(crate) struct Running<'t> {
    talk: &'t OpenTalk,
    _alone: MutexGuard<'t, ()>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.talk.tracker.end();
        self.talk.jobs_ended.fetch_add(1, Ordering::SeqCst);
        self.talk.set_answering(false);
    }
}

impl Talks {
    /// The conversation with an id. It is opened again when its manifest has changed.
    pub(crate) async fn open(&self, server: &Arc<Server>, id: &str) -> Result<Arc<OpenTalk>, Failure> {
        let mut open = self.open.lock().await;
        if let Some(talk) = open.get(id).filter(|talk| talk.is_current()) {
            return Ok(talk.clone());
        }
        let before = open.remove(id);
        let (within, wanted) = (server.clone(), id.to_owned());
        let opened = async move {
            let Server { environment, places, root, registries, .. } = &*within;
            let talk = talks::find(environment, root, registries, &wanted)?;
            let changed = modified(&talk.path);
            let runtime = talks::open(environment, places, root, registries, (&talk, within.access()))?;
            Ok::<_, ServiceError>((talk, runtime, changed))
        };
        let (talk, runtime, changed) = server.run_computation(Box::pin(opened)).await?;
        // An id and a runtime's name may be of one conversation.
        if let Some(known) = open.values().find(|known| known.talk == talk && known.is_current()).cloned() {
            open.insert(id.to_owned(), known.clone());
            return Ok(known);
        }
        let talk = Arc::new(OpenTalk {
            conversation: Conversation::new(runtime.substrate.clone()),
            talk,
            runtime,
            changed,
            // Jobs of the earlier version of the manifest continue.
            tracker: before.map_or_else(Arc::default, |before| before.tracker.clone()),
            running: Mutex::new(()),
            is_answering: SyncMutex::new(false),
            jobs_ended: AtomicU64::new(0),
            state: Mutex::new(None),
        });
        open.insert(id.to_owned(), talk.clone());
        Ok(talk)
    }
}

impl OpenTalk {
    fn is_current(&self) -> bool {
        self.changed.is_some() && modified(&self.talk.path) == self.changed
    }

    /// Who is being asked by this server.
    pub(crate) fn activity(&self) -> watch::Receiver<Activity> {
        self.tracker.subscribe()
    }

    /// The telemetry that tracks asked participants.
    pub(crate) fn tracker(&self) -> Arc<dyn Telemetry> {
        self.tracker.clone()
    }

    /// Waits until no other job of this server answers.
    pub(crate) async fn begin(&self) -> Running<'_> {
        let alone = self.running.lock().await;
        self.set_answering(true);
        Running { talk: self, _alone: alone }
    }

    fn set_answering(&self, is_answering: bool) {
        *self.is_answering.lock().unwrap_or_else(PoisonError::into_inner) = is_answering;
    }

    /// How it stands. Readers of the same moment share one reading.
    pub(crate) async fn now(&self, server: &Arc<Server>) -> Result<TalkNow, Failure> {
        let activity = self.tracker.now();
        let mut cached = self.state.lock().await;
        let jobs_ended = self.jobs_ended.load(Ordering::SeqCst);
        let is_current =
            |cached: &&CachedState| cached.jobs_ended == jobs_ended && cached.at.elapsed() < STATE_AGE;
        let mut state = match cached.as_ref().filter(is_current) {
            Some(cached) => cached.state.clone(),
            None => {
                let ledger = server.reader.session(&server.environment, &server.places).await?;
                let read = talks::load_state(
                    &self.talk,
                    &self.runtime,
                    &self.conversation,
                    ledger.as_deref(),
                    &activity,
                );
                let mut state = read.await?;
                server.redact_state(&mut state);
                *cached = Some(CachedState { at: Instant::now(), jobs_ended, state: state.clone() });
                state
            }
        };
        // This server knows at once which participants it asks.
        for participant in &mut state.participants {
            let doing = activity.get(&*participant.id).cloned();
            let (doing, why) = doing.map_or((None, None), |(doing, why)| (Some(doing), why));
            (participant.doing, participant.why) =
                (doing, why.map(|why| server.environment.redactor.redact_text(&why)));
        }
        let is_answering = *self.is_answering.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(TalkNow { state, is_answering })
    }

    /// The runtime by the manifest's current content, with the ledger open and within a budget.
    pub(crate) async fn reopen(&self, server: &Server, limits: &Limits) -> Result<OpenRuntime, Failure> {
        let Server { environment, places, root, registries, .. } = server;
        let mut runtime =
            talks::open(environment, places, root, registries, (&self.talk, TalkAccess::ReadWrite))?;
        runtime.set_caps(limits.caps_within(runtime.caps())?.or(runtime.caps()));
        Ok(runtime.open_ledger().await?)
    }
}

impl Server {
    fn access(&self) -> TalkAccess {
        match self.read_only {
            true => TalkAccess::ReadOnly,
            false => TalkAccess::ReadWrite,
        }
    }

    /// A turn without secrets, which other programs may have written into the conversation.
    pub(crate) fn shown_turn(&self, turn: &Turn) -> ShownTurn {
        let shown = ShownTurn::of(turn);
        ShownTurn { content: self.environment.redactor.redact_text(&shown.content), ..shown }
    }

    fn redact_state(&self, state: &mut TalkState) {
        let redactor = &self.environment.redactor;
        state.next.why = redactor.redact_text(&state.next.why);
        for failed in state.outcomes.iter_mut().flat_map(|outcome| &mut outcome.failed) {
            failed.why = redactor.redact_text(&failed.why);
        }
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|file| file.modified()).ok()
}
