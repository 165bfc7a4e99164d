//! A clock that goes on while the machine sleeps, as the server's does.

use std::time::Duration;

/// The time since the machine was started.
#[cfg(target_os = "linux")]
pub(in crate::store) fn now() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// The time since this process asked first.
#[cfg(not(target_os = "linux"))]
pub(in crate::store) fn now() -> Duration {
    use std::sync::OnceLock;
    use tokio::time::Instant;
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed()
}
