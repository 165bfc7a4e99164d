//! The conversations that are open in this server: all readers of one share its substrate and its state.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quorate::Conversation;
use quorate::conversation::{Activity, TalkState};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use crate::Server;
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
    pub(crate) conversation: Conversation,
    /// When the manifest was last changed.
    changed: Option<SystemTime>,
    state: Mutex<Option<CachedState>>,
}

struct CachedState {
    at: Instant,
    /// Changes when participants are asked or have answered.
    activity: watch::Receiver<Activity>,
    state: TalkState,
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
            let conversation = match before {
                // Jobs of the earlier version of the manifest continue.
                Some(before) => before.conversation.reopened()?,
                None => within.quorate.talk(&wanted)?,
            };
            if within.read_only {
                conversation.ensure_begun()?;
            }
            let changed = modified(&conversation.talk().path);
            Ok::<_, Failure>(OpenTalk { conversation, changed, state: Mutex::default() })
        };
        let opened = server.jobs.compute(opened).await?;
        // An id and a runtime's name may be of one conversation.
        let is_same = |known: &&Arc<OpenTalk>| {
            known.conversation.talk() == opened.conversation.talk() && known.is_current()
        };
        let known = open.values().find(is_same).cloned();
        let talk = known.unwrap_or_else(|| Arc::new(opened));
        open.insert(id.to_owned(), talk.clone());
        Ok(talk)
    }
}

impl OpenTalk {
    fn is_current(&self) -> bool {
        self.changed.is_some() && modified(&self.conversation.talk().path) == self.changed
    }

    /// How it stands. Readers of the same moment share one reading.
    pub(crate) async fn now(&self) -> Result<TalkState, Failure> {
        let mut cached = self.state.lock().await;
        let is_current = |cached: &&CachedState| {
            cached.at.elapsed() < STATE_AGE && !cached.activity.has_changed().unwrap_or(true)
        };
        if let Some(cached) = cached.as_ref().filter(is_current) {
            return Ok(cached.state.clone());
        }
        let activity = self.conversation.activity();
        let state = self.conversation.status().await?;
        *cached = Some(CachedState { at: Instant::now(), activity, state: state.clone() });
        Ok(state)
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|file| file.modified()).ok()
}
