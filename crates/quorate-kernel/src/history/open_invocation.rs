//! An invocation whose consultation is not recorded yet.

use crate::budget::Amount;
use crate::ports::executor::Usage;

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
