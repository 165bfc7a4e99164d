//! Retries a start that fails for a moment's shortage of descriptors, processes or memory, until its deadline. Others
//! release them, hooks for example, and a failed start would cost a conversation a turn.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::clock;

const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Whether a start failed for a shortage, and there is time to retry.
pub(super) fn should_retry(error: &io::Error, deadline: Instant) -> bool {
    let short = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
    let short = short.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
    short && clock::now() + RETRY_DELAY < deadline
}

/// Waits within the async runtime.
pub(super) async fn pause() {
    tokio::time::sleep(RETRY_DELAY).await;
}

/// Waits on a thread; returns whether the caller has hung up.
pub(super) fn hung_up(hangup: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(hangup, PollFlags::IN)];
    let ready = poll(&mut polled, Timespec::try_from(RETRY_DELAY).ok().as_ref());
    ready.is_ok_and(|ready| ready > 0)
}
