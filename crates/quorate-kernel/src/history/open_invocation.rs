//! An invocation whose consultation is not recorded yet.

use crate::attempts::CallReason;
use crate::budget::Amount;
use crate::ports::executor::Usage;
use crate::record::Attempt;

/// The recorded attempts of an invocation that has no consultation yet.
#[derive(Default)]
pub(super) struct OpenInvocation {
    pub(super) attempts: u32,
    pub(super) usage: Usage,
    pub(super) charged: Amount,
    /// For the call under way.
    pub(super) reserved: Option<Amount>,
    /// The session that began it.
    pub(super) session: u32,
    pub(super) failed: FailedAttempts,
}

/// The facts about an invocation that only the records of its attempts have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FailedAttempts {
    /// Calls after the first that repeat one that failed. Re-prompts do not count.
    pub retries: u32,
    /// The HTTP status of the last response, if it is an error.
    pub http_status: Option<u16>,
    /// What the member said last, if it said something.
    pub said: Option<String>,
}

impl FailedAttempts {
    pub(super) fn add(&mut self, attempt: &Attempt) {
        self.retries += u32::from(attempt.why == CallReason::Retry.as_str());
        self.http_status = attempt.http_status;
        self.said = (attempt.status == "said").then(|| attempt.text.clone());
    }
}

impl OpenInvocation {
    pub(super) fn is_under_way(&self) -> bool {
        self.attempts > 0 || self.reserved.is_some()
    }

    /// What its calls count as, with one that was dropped on its way.
    pub(super) fn charged(&self) -> Amount {
        let mut charged = self.charged;
        charged.add(self.reserved.unwrap_or_default());
        charged
    }
}
