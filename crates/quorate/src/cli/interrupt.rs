//! Ctrl-C and SIGTERM: what is under way is dropped, which ends its members, and the run stays resumable.

use std::future::Future;

/// The command was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interrupted;

/// Runs to the end or to an interruption.
pub(super) async fn or_interrupted<T>(work: impl Future<Output = T>) -> Result<T, Interrupted> {
    tokio::select! {
        biased;
        () = signalled() => {}
        done = work => return Ok(done),
    }
    Err(Interrupted)
}

#[cfg(unix)]
async fn signalled() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut both = match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(interrupt), Ok(terminate)) => (interrupt, terminate),
        // Without handlers the default holds: the process ends at once, and the guard ends its members.
        _ => return std::future::pending().await,
    };
    tokio::select! {
        _ = both.0.recv() => {}
        _ = both.1.recv() => {}
    }
}

#[cfg(not(unix))]
async fn signalled() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
