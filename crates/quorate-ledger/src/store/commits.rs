//! What is said of records once they are committed.

use quorate_protocol::Name;

/// Records that have been committed to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedRecords {
    pub run: Name,
    /// The number of the first of them.
    pub from: u64,
    /// The kind and the time of each, in milliseconds since the Unix epoch.
    pub records: Vec<(&'static str, i64)>,
}

/// Takes note of records once they are committed. It must not block.
pub(super) type CommitObserver = dyn Fn(CommittedRecords) + Send + Sync;
