//! Sessions over HTTP, at most [`MAX_SESSIONS`]: each takes some fifty kilobytes and a task, and each request may open one.
//! A further one closes the session that was idle longest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{Stream, StreamExt as _};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{
    RestoreOutcome, ServerSseMessage, SessionId, SessionManager,
};
use tokio::time::Instant;

const MAX_SESSIONS: usize = 256;

#[derive(Debug)]
pub(super) struct Sessions {
    all: LocalSessionManager,
    used: Mutex<HashMap<SessionId, SessionUse>>,
    /// Locked while a session is created, so that concurrent ones do not all use the same free place.
    create_lock: tokio::sync::Mutex<()>,
}

/// When a session was last used, and its open streams.
#[derive(Debug)]
struct SessionUse {
    last: Instant,
    /// Each open stream holds a clone.
    streams: Arc<()>,
}

impl SessionUse {
    fn now() -> Self {
        SessionUse { last: Instant::now(), streams: Arc::new(()) }
    }

    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.streams) == 1
    }
}

type Error = <LocalSessionManager as SessionManager>::Error;

impl Sessions {
    pub(super) fn new(all: LocalSessionManager) -> Self {
        Sessions { all, used: Mutex::default(), create_lock: tokio::sync::Mutex::default() }
    }

    fn used(&self) -> MutexGuard<'_, HashMap<SessionId, SessionUse>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the use of a session; returns a token to hold as long as the use lasts.
    fn touch(&self, id: &SessionId) -> Option<Arc<()>> {
        let mut used = self.used();
        let session = used.get_mut(id)?;
        session.last = Instant::now();
        Some(session.streams.clone())
    }

    /// Closes sessions until one more fits: those that have ended, then the one that was idle longest, then the one with the
    /// oldest request.
    async fn make_room(&self) -> Result<(), Error> {
        let existing: Vec<SessionId> = self.all.sessions.read().await.keys().cloned().collect();
        let surplus = {
            let mut used = self.used();
            used.retain(|id, _| existing.contains(id));
            let mut order: Vec<(bool, Instant, SessionId)> =
                used.iter().map(|(id, session)| (!session.is_idle(), session.last, id.clone())).collect();
            order.sort_unstable();
            let surplus = (order.len() + 1).saturating_sub(MAX_SESSIONS);
            order.into_iter().take(surplus).map(|(_, _, id)| id).collect::<Vec<_>>()
        };
        for id in surplus {
            self.used().remove(&id);
            self.all.close_session(&id).await?;
        }
        Ok(())
    }

    /// Keeps a stream's session from counting as idle.
    fn keep_alive<S: Stream>(&self, id: &SessionId, stream: S) -> impl Stream<Item = S::Item> + use<S> {
        let use_token = self.touch(id);
        stream.map(move |item| {
            let _ = &use_token;
            item
        })
    }
}

impl SessionManager for Sessions {
    type Error = Error;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Error> {
        let _making = self.create_lock.lock().await;
        self.make_room().await?;
        let (id, transport) = self.all.create_session().await?;
        self.used().insert(id.clone(), SessionUse::now());
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Error> {
        let _held = self.touch(id);
        self.all.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Error> {
        self.all.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Error> {
        self.used().remove(id);
        self.all.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + 'static, Error> {
        let use_token = self.touch(id);
        let stream = self.all.create_stream(id, message).await?;
        drop(use_token);
        Ok(self.keep_alive(id, stream))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Error> {
        let _held = self.touch(id);
        self.all.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + 'static, Error> {
        let stream = self.all.create_standalone_stream(id).await?;
        Ok(self.keep_alive(id, stream))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + 'static, Error> {
        let stream = self.all.resume(id, last_event_id).await?;
        Ok(self.keep_alive(id, stream))
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Self::Transport>, Error> {
        let _making = self.create_lock.lock().await;
        self.make_room().await?;
        let restored = self.all.restore_session(id.clone()).await?;
        self.used().entry(id).or_insert_with(SessionUse::now);
        Ok(restored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_session_too_many_closes_the_one_that_was_longest_idle() {
        let sessions = Sessions::new(LocalSessionManager::default());
        let mut ids = Vec::new();
        // Dropping a transport would end the session's task.
        let mut transports = Vec::new();
        for _ in 0..MAX_SESSIONS + 10 {
            let (id, transport) = sessions.create_session().await.unwrap();
            ids.push(id);
            transports.push(transport);
            // The first one stays in use.
            drop(sessions.touch(&ids[0]));
        }
        assert_eq!(sessions.all.sessions.read().await.len(), MAX_SESSIONS);
        assert_eq!(sessions.used().len(), MAX_SESSIONS);
        for (at, id) in ids.iter().enumerate() {
            let exists = sessions.has_session(id).await.unwrap();
            assert_eq!(exists, at == 0 || at > 10, "{at}");
        }
    }

    #[tokio::test]
    async fn a_session_with_a_stream_is_not_idle() {
        let sessions = Sessions::new(LocalSessionManager::default());
        let (first, _transport) = sessions.create_session().await.unwrap();
        let stream = sessions.keep_alive(&first, futures::stream::pending::<()>());
        let mut transports = Vec::new();
        for _ in 0..MAX_SESSIONS {
            transports.push(sessions.create_session().await.unwrap().1);
        }
        assert!(sessions.has_session(&first).await.unwrap());
        drop(stream);
        transports.push(sessions.create_session().await.unwrap().1);
        assert!(!sessions.has_session(&first).await.unwrap());
    }
}
