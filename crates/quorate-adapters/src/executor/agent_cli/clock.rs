//! The clock of member processes: the system's, since a thread without an async runtime watches them. A test that
//! pauses the runtime's clock does not affect it.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "processes are not driven by a test's clock")]
pub(super) fn now() -> Instant {
    Instant::now()
}
