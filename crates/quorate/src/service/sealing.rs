//! Sealing the ledger: a checkpoint signed by the ledger's key, and a witness that keeps a copy elsewhere.

pub(super) mod local_checkpoints;

use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::ledger::Durability;
use quorate_ledger::Store;
use quorate_ledger::keys::{self, Purpose};
use quorate_ledger::local_checkpoints::CheckpointFiles;
use quorate_ledger::signing::SecretKey;
use quorate_ledger::store::CheckpointRecord;

use super::environment::Environment;
use super::error::{ServiceError, error_chain};
use super::paths::display_path;
use super::witness::{SubmitContext, Witness};

/// The variable with the ledger's key, for several machines that seal one ledger. It overrides the key file.
pub const LEDGER_KEY_VARIABLE: &str = "QUORATE_LEDGER_KEY";

/// How long a finished command waits for sealing and closing. Neither loses records: the next command seals, and written
/// records survive without closing.
const SEAL_TIMEOUT: Duration = Duration::from_secs(10);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// What a session needs to seal its ledger.
pub struct Sealer<'a> {
    pub environment: &'a Environment,
    pub store: &'a Store,
    /// The witness, if one is configured.
    pub witness: Option<&'a Witness>,
}

/// A checkpoint, and warnings.
pub struct SealResult {
    pub sealed: CheckpointRecord,
    pub report: Report,
}

impl Sealer<'_> {
    /// Seals. The checkpoint is synced before it is shown or copied: after a power loss the ledger would otherwise
    /// contradict the copy.
    ///
    /// # Errors
    /// If the ledger does not answer, or does not extend its last checkpoint.
    pub(super) async fn seal(&self) -> Result<SealResult, ServiceError> {
        let first_use = self.check_continuity().await?;
        let mut done = self.seal_unchecked().await?;
        // Without a key no copy is kept; a warning about the missing key exists already.
        if let Some(first_use) = first_use
            && done.sealed.note.is_some()
        {
            done.report.warn(codes::LEDGER_FIRST_USE, first_use);
        }
        Ok(done)
    }

    /// Seals the ledger's current state.
    pub(super) async fn seal_unchecked(&self) -> Result<SealResult, ServiceError> {
        let mut report = Report::new();
        let key = self.key(&mut report).await?;
        let keys: Vec<Arc<SecretKey>> = key.into_iter().map(Arc::new).collect();
        let now_ms = self.environment.clock.now_ms();
        let sealed = self.store.seal(&keys, now_ms, false, Durability::Synced).await?;
        if !keys.is_empty() {
            self.publish(&sealed, &mut report).await;
        }
        Ok(SealResult { sealed, report })
    }

    /// Refuses to sign a ledger that does not extend the checkpoints that its key has signed (D12); returns a warning if
    /// there are no local copies.
    pub(super) async fn check_continuity(&self) -> Result<Option<Body>, ServiceError> {
        let origin = self.store.last_checkpoint().await?.map(|sealed| sealed.origin);
        let copies = self.copies();
        let found = copies.read(origin.as_deref());
        if let Some(why) = local_checkpoints::rollback_reason(self.environment, self.store, &found).await? {
            let help = "`quorate ledger verify` says what differs; where a backup was restored or another ledger was \
                        begun on purpose, `quorate ledger accept-rollback --reason \"…\"` continues from the present ledger";
            return Err(ServiceError::configuration(codes::LEDGER_CORRUPT, Body::new(why).help(help)));
        }
        if let Some(origin) = origin
            && found.copies.is_empty()
            && self.store.checkpoint_keys().await?.is_some()
        {
            let body = Body::new(format!(
                "no checkpoint of the ledger {origin} is kept on this machine: earlier losses cannot be detected"
            ));
            let help = "this is expected once, where a ledger is first used on a machine; from now on its last checkpoint is kept";
            return Ok(Some(body.help(help)));
        }
        Ok(None)
    }

    fn copies(&self) -> CheckpointFiles {
        CheckpointFiles::new(self.store.address(), self.environment.state_dir.as_deref())
    }

    /// Stores a checkpoint on this machine and sends it to the witness.
    pub(super) async fn publish(&self, sealed: &CheckpointRecord, report: &mut Report) {
        let Some(note) = &sealed.note else { return };
        let copies = self.copies();
        for error in copies.save(note).err().into_iter().flatten() {
            let body = Body::new(error_chain(&error));
            let help =
                "the checkpoint is in the ledger; make the directory writable, so that a rollback is noticed";
            report.warn(codes::CHECKPOINT_UNKEPT, body.help(help));
        }
        if let Some(witness) = self.witness {
            let telling = SubmitContext { environment: self.environment, store: self.store, copies: &copies };
            witness.submit(&telling, sealed, report).await;
        }
    }

    /// Seals; failures become warnings, since no record depends on it.
    pub async fn seal_or_warn(&self) -> Report {
        // A witness over HTTP gets the same time again.
        let limit = match self.witness {
            Some(Witness::Service(_)) => SEAL_TIMEOUT * 2,
            Some(Witness::File(_)) | None => SEAL_TIMEOUT,
        };
        let (why, help) = match tokio::time::timeout(limit, Box::pin(self.seal())).await {
            Ok(Ok(done)) => return done.report,
            Ok(Err(error)) => {
                let help = error.report.refusals.first().and_then(|refusal| refusal.body.help.clone());
                let other = || "run `quorate ledger verify` for details".to_owned();
                (error.first_message(), help.unwrap_or_else(other))
            }
            Err(_) => (
                format!("it did not answer within {} s", limit.as_secs()),
                "seal it with `quorate ledger checkpoint` when no other process keeps it busy".to_owned(),
            ),
        };
        let mut report = Report::new();
        let body = Body::new(format!("the ledger is not sealed: {why}"));
        report.warn(codes::CHECKPOINT_MISSING, body.help(help));
        report
    }

    /// The ledger's key, which signs changes to the ledger itself.
    ///
    /// # Errors
    /// If it is missing or is not the key that signed so far: an unsigned record would count for nothing.
    pub async fn required_key(&self) -> Result<SecretKey, ServiceError> {
        let mut report = Report::new();
        if let Some(key) = self.key(&mut report).await? {
            return Ok(key);
        }
        let why = report.warnings.first().map_or_else(String::new, |warning| warning.body.message.clone());
        let body = Body::new(format!("cannot sign the ledger's record: {why}"));
        let help = "restore the key, or pass it in QUORATE_LEDGER_KEY; `quorate keys rotate ledger` makes another one";
        Err(ServiceError::configuration(codes::LEDGER_UNSIGNED, body.help(help)))
    }

    /// The ledger's key, if it is the one that signed so far.
    pub(super) async fn key(&self, report: &mut Report) -> Result<Option<SecretKey>, ServiceError> {
        let known = self.store.checkpoint_keys().await?;
        let (key, from) = match key_from_environment(self.environment) {
            Some(text) => {
                let key = SecretKey::from_text(text).map(Some);
                (key.map_err(|error| error_chain(&error)), format!("the variable {LEDGER_KEY_VARIABLE}"))
            }
            None => {
                let directory = keys::Directory::new(self.store.dir());
                let key = match directory.load(Purpose::Ledger) {
                    // An older version made the ledger without a key. A database's key belongs to the machine that created
                    // its tables; a new key
                    // made here would lock that machine out.
                    Ok(None) if known.is_none() && !self.store.is_shared() => {
                        directory.create(Purpose::Ledger).map(Some)
                    }
                    loaded => loaded,
                };
                let file = display_path(self.environment, &directory.key_path(Purpose::Ledger));
                (key.map_err(|error| error_chain(&error)), file)
            }
        };
        let help =
            "checkpoints are unsigned until it is back; `quorate keys rotate ledger` makes another key";
        match key {
            Ok(Some(key)) => {
                let verifies = key.public();
                if known.is_none_or(|known| known.iter().any(|key| *key.key() == verifies)) {
                    return Ok(Some(key));
                }
                let body = Body::new(format!("{from} is not the key that signed the last checkpoint"));
                report.warn(codes::LEDGER_KEY_MISSING, body.help(help));
            }
            Ok(None) => {
                let body = Body::new(format!("the ledger's key {from} does not exist"));
                report.warn(codes::LEDGER_KEY_MISSING, body.help(help));
            }
            Err(error) => {
                let body = Body::new(format!("the ledger's key cannot be used ({from}): {error}"));
                report.warn(codes::LEDGER_KEY_MISSING, body.help(help));
            }
        }
        Ok(None)
    }
}

/// Closes a ledger. If it does not answer, the system closes its files when the process exits.
pub async fn close(store: Store) {
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, Box::pin(store.close())).await;
}

/// How long an interrupted command may take to seal, and to close.
const INTERRUPTED_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs the end of a command; `None` if the command was interrupted and it takes too long.
pub async fn within_deadline<T>(store: &Store, work: impl Future<Output = T>) -> Option<T> {
    match store.is_interrupted() {
        // The next command does what is abandoned here.
        true => tokio::time::timeout(INTERRUPTED_TIMEOUT, work).await.ok(),
        false => Some(work.await),
    }
}

/// As [`close`]; for an interrupted command, the process's exit closes it.
pub async fn close_within_deadline(store: Store) {
    match store.is_interrupted() {
        true => drop(tokio::time::timeout(INTERRUPTED_TIMEOUT, Box::pin(close(store))).await),
        false => Box::pin(close(store)).await,
    }
}

/// The key in the environment, as text.
pub fn key_from_environment(environment: &Environment) -> Option<&str> {
    environment.variables.get(LEDGER_KEY_VARIABLE).filter(|text| !text.is_empty())
}
