//! The queue: tasks in a Postgres ledger, whose runs workers execute on any machine. `enqueue.rs` adds tasks, `worker.rs`
//! claims them, `signature.rs` signs and verifies them, and `lines.rs` logs their verdicts in the workspace that queued
//! them.

pub mod bundle;
pub mod convene;
pub mod enqueue;
pub mod execute;
pub mod json;
pub mod lines;
pub mod manage;
pub mod quota;
mod signature;
pub mod sweep;
pub mod wait;
pub mod worker;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::record::{Producer, TierSource};
use quorate_ledger::store::address::StoreAddress;
use serde::{Deserialize, Serialize};

pub use super::commit_events::DEFAULT_TENANT;
use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::open_session;
use super::paths::display_ledger;
use super::review::spec::MAX_TYPE_CHARS;
use super::session::LedgerSession;
use super::workspace::{self, PathOverrides};

/// The class of tasks that name none.
pub const DEFAULT_CLASS: &str = "default";

/// The tenant, the class and the priority of queued tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueOptions {
    pub tenant: String,
    /// Workers claim only the tasks of their classes.
    pub class: String,
    /// 0 to 2; 0 is the most urgent.
    pub priority: u8,
}

impl Default for QueueOptions {
    fn default() -> Self {
        QueueOptions { tenant: DEFAULT_TENANT.to_owned(), class: DEFAULT_CLASS.to_owned(), priority: 1 }
    }
}

/// The body of a task: the hashes of its texts, which the queue stores, and its metadata.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TaskBody {
    /// The hash of the council or assembly.
    bundle: String,
    /// The hash of the redacted text.
    text: String,
    /// The hash of the earlier verdicts.
    priors: Option<String>,
    /// The hash of the text before redaction.
    artifact_sha256: String,
    artifact_type: Option<String>,
    tier: Option<u8>,
    tier_source: Option<TierSource>,
    producer: Option<Producer>,
    /// The number of messages, if the subject is a conversation.
    messages: Option<u64>,
    redactions: u32,
    batch: String,
    /// The log of the workspace that queued the task, and its length in bytes.
    log: Option<(String, u64)>,
}

impl TaskBody {
    /// Why the task cannot run, if it is malformed. A value that is too long for a database index would fail every attempt.
    fn malformed(&self) -> Option<String> {
        let digests = [&self.bundle, &self.text, &self.artifact_sha256].into_iter().chain(&self.priors);
        if let Some(digest) = digests.into_iter().find(|digest| !is_sha256(digest)) {
            let begins: String = digest.chars().take(64).collect();
            return Some(format!("`{}` is not a SHA-256", begins.escape_debug()));
        }
        let is_long = self.artifact_type.as_ref().is_some_and(|word| word.chars().count() > MAX_TYPE_CHARS);
        is_long.then(|| format!("its type has more than {MAX_TYPE_CHARS} characters"))
    }
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// Refuses a ledger without a queue.
///
/// # Errors
/// [`codes::QUEUE_UNAVAILABLE`] for a ledger in a file.
pub fn ensure_queue(session: &LedgerSession) -> Result<(), ServiceError> {
    ensure_has_queue(&session.environment, session.store.address())
}

/// As [`ensure_queue`], before the ledger is opened or created.
///
/// # Errors
/// As [`ensure_queue`].
pub fn ensure_has_queue(environment: &Environment, address: &StoreAddress) -> Result<(), ServiceError> {
    if address.file().is_none() {
        return Ok(());
    }
    let ledger = display_ledger(environment, address);
    let body = Body::new(format!("the ledger {ledger} is a file, and a queue needs a Postgres database"));
    let help = "name a database with `--ledger postgres://user@host/database`, or `ledger` in quorate.toml";
    Err(ServiceError::configuration(codes::QUEUE_UNAVAILABLE, body.help(help)))
}

/// Opens the session of the working directory, if its ledger has a queue.
///
/// # Errors
/// As [`ensure_queue`], and if configuration or ledger are unusable.
#[crate::boxed]
pub async fn open(environment: &Environment, places: &PathOverrides) -> Result<LedgerSession, ServiceError> {
    let workspace = workspace::load(environment, places, &environment.directory)?;
    ensure_has_queue(environment, &workspace.ledger)?;
    open_session::open(environment.clone(), workspace).await
}

/// As [`open`], for a command that adds tasks or executes them.
///
/// # Errors
/// As [`open`], and if the ledger or the log cannot be written.
#[crate::boxed]
pub async fn open_for_writing(
    environment: &Environment,
    places: &PathOverrides,
) -> Result<LedgerSession, ServiceError> {
    let workspace = workspace::load(environment, places, &environment.directory)?;
    ensure_has_queue(environment, &workspace.ledger)?;
    open_session::open_for_writing(environment.clone(), workspace).await
}

/// Checks the name of a tenant or a class.
///
/// # Errors
/// If it is not 1 to 64 lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or digit.
pub fn check_name(what: &str, name: &str) -> Result<(), ServiceError> {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if !name.is_empty()
        && name.len() <= 64
        && name.chars().all(is_fine)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
    {
        return Ok(());
    }
    let body = Body::new(format!("`{name}` cannot be the name of a {what}"))
        .help("use 1 to 64 lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or a digit");
    Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body))
}
