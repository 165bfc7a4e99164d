//! Whoever calls a tool: whether it still waits, and how it is told of progress.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};

use super::progress::Progress;

/// How long it may take to tell of progress. A client that does not read keeps nobody from the result.
const NOTIFY_TIMEOUT: Duration = Duration::from_millis(250);

/// Whoever calls a tool.
pub(super) struct Caller {
    request: Option<RequestContext<RoleServer>>,
    token: Option<ProgressToken>,
}

impl Caller {
    pub(super) fn of(request: RequestContext<RoleServer>) -> Caller {
        let token = request.meta.get_progress_token();
        Caller { request: Some(request), token }
    }

    /// One who waits for ever.
    #[cfg(test)]
    pub(super) fn nobody() -> Caller {
        Caller { request: None, token: None }
    }

    /// Returns when the caller has taken its request back.
    pub(super) async fn cancelled(&self) {
        match &self.request {
            Some(request) => request.ct.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Tells of progress, if the caller wants to know; false where it does not, or does not listen.
    pub(super) async fn report_progress(&self, progress: &Progress) -> bool {
        let (Some(peer), Some(token)) = (self.peer(), &self.token) else { return false };
        let (steps, total) = progress.steps();
        let mut told = ProgressNotificationParam::new(token.clone(), steps);
        told.total = total;
        told.message = progress.last.clone();
        matches!(tokio::time::timeout(NOTIFY_TIMEOUT, peer.notify_progress(told)).await, Ok(Ok(())))
    }

    fn peer(&self) -> Option<&Peer<RoleServer>> {
        self.request.as_ref().map(|request| &request.peer)
    }
}
