//! The time that members live in. They are processes, and what watches them is a thread without an async runtime, so
//! that this is the system's clock, whatever a test does to the runtime's.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "processes are not driven by a test's clock")]
pub(super) fn now() -> Instant {
    Instant::now()
}
