//! The ledger port: stores records in order, and returns them.
//!
//! # For adapter authors
//!
//! - [`Ledger::append`] is all or nothing, and compare-and-append: it is refused with [`LedgerError::Conflict`] when the run's
//!   next record would not be number `from`.
//! - With [`Durability::Written`] the records survive the death of the process; with [`Durability::Synced`] they, and
//!   everything appended before them by any process, survive the loss of power when the call returns.
//! - Records are never changed and never removed; only a record's `data` can be erased.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use quorate_protocol::{Json, Name};
use serde_json::Map;
use tokio::time::Instant;

use crate::canonical;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $word:literal,)*) => {
        /// The kind of a record. The ledger may hold kinds that this version does not write.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
            /// Something was done to a playbook. In the playbooks' own stream.
            Playbook(PlaybookEvent),
        }

        impl Kind {
            /// All kinds that this version writes.
            pub fn all() -> impl Iterator<Item = Kind> {
                [$(Kind::$kind),*].into_iter().chain(PlaybookEvent::ALL.map(Kind::Playbook))
            }

            /// The word in the record's head.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Kind::$kind => $word,)*
                    Kind::Playbook(event) => event.as_str(),
                }
            }
        }
    };
}

kinds! {
    /// A run starts: fingerprint, setup, seed, inputs by hash, priors.
    RunOpened = "run.opened",
    /// Calls are about to be made; each that has no consultation later counts as spent.
    RunIntent = "run.intent",
    /// One attempt of an invocation ended.
    Attempt = "attempt",
    Consultation = "consultation",
    /// A custom gather strategy ended.
    Gathered = "gathered",
    /// Texts were compared with traits by meaning.
    Match = "match",
    /// A rule or policy was applied.
    Rule = "rule",
    /// A candidate outcome was checked against the locked traits.
    LockCheck = "lock_check",
    /// A candidate outcome was dropped, or a message refused.
    Violation = "violation",
    /// The outcome of the run.
    Outcome = "outcome",
    /// An overlay became active. In the assembly's own stream, not in the run's.
    OverlayAdded = "overlay.added",
    /// An overlay is no longer active.
    OverlayEvicted = "overlay.evicted",
    /// A person decided otherwise.
    Override = "override",
    /// Everything that follows from the outcome is done.
    RunEnded = "run.ended",
    /// Keys that may sign for the run from here on, each vouched for by an earlier key.
    Keyring = "keyring",
    /// A trigger of a conversation is settled. In the runtime's own stream.
    Turn = "turn",
    /// The ledger up to here was sealed. In the ledger's own stream, as what follows.
    Checkpoint = "checkpoint",
    /// A legal hold: texts of the run are not erased, regardless of age.
    Held = "ledger.held",
    /// A run may be erased again once its retention ends.
    Released = "ledger.released",
    /// Bodies of a run were erased.
    Erased = "ledger.erased",
    /// Runs were taken in from another ledger.
    Imported = "ledger.imported",
    /// A person accepted that the ledger has lost records that its key had signed.
    RolledBack = "ledger.rolled_back",
}

/// What was done to a playbook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlaybookEvent {
    /// It is there now.
    Registered,
    /// It is computed and not woven.
    Shadowed,
    Promoted,
    /// It is woven no more.
    Archived,
    /// A delta was refused.
    Rejected,
    /// A prompt was composed.
    Composed,
    /// An overlay that targeted the agent but was not woven.
    Skipped,
    /// A scorer compared a prompt with the playbook and one without it.
    Tried,
}

quorate_manifest::words!(PlaybookEvent {
    Registered = "playbook.registered",
    Shadowed = "playbook.shadowed",
    Promoted = "playbook.promoted",
    Archived = "playbook.archived",
    Rejected = "playbook.rejected",
    Composed = "playbooks.composed",
    Skipped = "playbook.skipped",
    Tried = "playbook.tried",
});

/// A record to write. The ledger adds number, predecessor, salt and hashes.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub kind: Kind,
    /// When it happened, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    pub data: Map<String, Json>,
}

/// A text that records name by its hash and that is kept once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// SHA-256 of the text, hexadecimal.
    pub sha256: String,
    pub text: std::sync::Arc<str>,
}

/// Records to append to one run, all or nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    pub run: Name,
    /// The number of the first of these records; the run must have exactly this many.
    pub from: u64,
    /// The records, in order.
    pub entries: Vec<Entry>,
    /// Texts that they name, which are kept first.
    pub bodies: Vec<Body>,
    /// How safe they must be.
    pub durability: Durability,
}

impl Append {
    pub fn one(run: &Name, from: u64, entry: Entry, durability: Durability) -> Self {
        Append { run: run.clone(), from, entries: vec![entry], bodies: Vec::new(), durability }
    }
}

/// A stored record, verified against its own hashes.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its number in the run, from 0.
    pub n: u64,
    pub kind: String,
    /// When it happened, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Its body without the salt; `None` where it was erased.
    pub data: Option<Map<String, Json>>,
}

impl Record {
    /// The record of an entry that was appended as number `n`, as it would be read from the ledger. Writing may change the
    /// kind of a number.
    pub(crate) fn of(n: u64, entry: Entry) -> Record {
        let data = serde_json::from_str(&canonical::object(&entry.data)).unwrap_or(entry.data);
        Record { n, kind: entry.kind.as_str().to_owned(), at_ms: entry.at_ms, data: Some(data) }
    }

    /// Whether it is of a kind.
    pub fn is(&self, kind: Kind) -> bool {
        self.kind == kind.as_str()
    }
}

/// How safe records must be when `append` returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Survives `kill -9`.
    Written,
    /// Survives the loss of power, with everything before it.
    Synced,
}

/// Why a ledger operation failed.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Another writer has appended to the run meanwhile.
    #[error("run {run} does not end where this process left it")]
    Conflict { run: Name },
    /// A record does not fit its own hashes or its predecessor.
    #[error("record {run}/{n} is corrupt: {what}")]
    Corrupt {
        run: Name,
        n: u64,
        /// What does not fit.
        what: String,
    },
    /// The run's records are signed, and the signing key for more is missing.
    #[error("the records of run {run} are signed, and the key to sign the next one is missing")]
    NoSigningKey { run: Name },
    /// The store failed while it made records durable: whether it has them shows when the run is read again.
    #[error("{what}")]
    InDoubt {
        run: Name,
        /// What was attempted, and what the store said.
        what: String,
    },
    /// A record would not pass verification, so it is not written.
    #[error("cannot record in run {run}: {what}")]
    InvalidRecord {
        run: Name,
        /// Which rule it breaks.
        what: String,
    },
    /// The store has something in it that changes or hides records, such as a trigger, or lacks a table.
    #[error("{what}")]
    ForeignSchema {
        /// Which store, and what.
        what: String,
        /// The statement that removes it; `None` where a table of the store would be missing then.
        remove: Option<String>,
    },
    /// The store failed or gave an invalid answer.
    #[error("{what}")]
    Unavailable {
        what: String,
        /// What the store said.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

/// The append-only record of all runs.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Appends to a run and returns the number of its next record.
    async fn append(&self, append: Append) -> Result<u64, LedgerError>;

    /// All records of a run in order; none for a run that is not there.
    async fn records(&self, run: &Name) -> Result<Vec<Record>, LedgerError>;

    /// The last records of a run, in order, at most `count`; costs as much as it gives.
    async fn tail(&self, run: &Name, count: u32) -> Result<Vec<Record>, LedgerError>;

    /// A body by its hash; `None` where it is not (or no longer) kept.
    async fn body(&self, sha256: &str) -> Result<Option<std::sync::Arc<str>>, LedgerError>;

    /// What tells whether this process still drives a run. A ledger that one process writes to needs none.
    fn fence(&self, _run: &Name) -> Fence {
        Fence::default()
    }
}

/// Says whether this process drives a run.
#[async_trait]
pub trait Drives: Send + Sync {
    /// Returns `true` once this is certain, and `false` if another process took over or `until` has passed.
    async fn drives(&self, until: Instant) -> bool;
}

/// What an executor asks before it sends anything: a process that was stopped for a while, or cut off from the ledger, may
/// have lost its run to another one, which asks the same. Without a fence no other process can.
#[derive(Clone, Default)]
pub struct Fence(Option<Arc<dyn Drives>>);

impl Fence {
    /// One that asks.
    pub fn of(drives: Arc<dyn Drives>) -> Fence {
        Fence(Some(drives))
    }

    /// Whether this process drives the run, at the latest at this time.
    pub async fn holds(&self, until: Instant) -> bool {
        match &self.0 {
            Some(drives) => drives.drives(until).await,
            None => true,
        }
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Fence" } else { "no fence" })
    }
}
