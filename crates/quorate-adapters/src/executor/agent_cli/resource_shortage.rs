//! What starting a process takes and the system may be short of for a moment: descriptors, processes, memory. Others
//! give it back, hooks for example, so that a start is tried again until its deadline. A member that is not asked for
//! lack of a descriptor would cost a conversation a turn.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::clock;

/// How long to wait before the next try.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Whether a start failed for want of room, and there is time for another.
pub(super) fn should_retry(error: &io::Error, deadline: Instant) -> bool {
    let short = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
    let short = short.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
    short && clock::now() + RETRY_DELAY < deadline
}

/// Waits, where there is an async runtime.
pub(super) async fn pause() {
    tokio::time::sleep(RETRY_DELAY).await;
}

/// Waits on a thread; says whether the caller has hung up.
pub(super) fn hung_up(hangup: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(hangup, PollFlags::IN)];
    let ready = poll(&mut polled, Timespec::try_from(RETRY_DELAY).ok().as_ref());
    ready.is_ok_and(|ready| ready > 0)
}
