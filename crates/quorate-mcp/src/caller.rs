//! The caller of a tool: its cancellation, and its progress notifications.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};

use quorate::service::jobs::Waiter;
use quorate::service::jobs::progress::Progress;

/// The longest wait for a progress notification. A client that does not read must not delay the result.
const NOTIFY_TIMEOUT: Duration = Duration::from_millis(250);

pub(super) struct Caller {
    request: Option<RequestContext<RoleServer>>,
    token: Option<ProgressToken>,
}

impl Caller {
    pub(super) fn of(request: RequestContext<RoleServer>) -> Caller {
        let token = request.meta.get_progress_token();
        Caller { request: Some(request), token }
    }

    fn peer(&self) -> Option<&Peer<RoleServer>> {
        self.request.as_ref().map(|request| &request.peer)
    }
}

impl Waiter for Caller {
    async fn cancelled(&self) {
        match &self.request {
            Some(request) => request.ct.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Returns false too if the caller asked for no progress, or does not read.
    async fn report_progress(&self, progress: &Progress) -> bool {
        let (Some(peer), Some(token)) = (self.peer(), &self.token) else { return false };
        let (steps, total) = progress.steps();
        let mut notification = ProgressNotificationParam::new(token.clone(), steps);
        notification.total = total;
        notification.message = progress.last.clone();
        matches!(tokio::time::timeout(NOTIFY_TIMEOUT, peer.notify_progress(notification)).await, Ok(Ok(())))
    }
}
