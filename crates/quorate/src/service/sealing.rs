//! Sealing the ledger: a checkpoint signed by the ledger's key, and a witness that keeps a copy elsewhere.

pub(super) mod local_checkpoints;

use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::ledger::Durability;
use quorate_ledger::Store;
use quorate_ledger::keys::{self, Purpose};
use quorate_ledger::local_checkpoints::CheckpointFiles;
use quorate_ledger::signing::{Context, PublicKey, SecretKey, Voucher};
use quorate_ledger::store::address::Address;
use quorate_ledger::store::{CheckpointRecord, Succession};

use super::environment::Environment;
use super::error::{ServiceError, error_chain};
use super::paths::display_path;
use super::witness::{SubmitContext, Witness};

/// The variable with the ledger's key, for several machines that seal one ledger. It overrides the key file.
pub const LEDGER_KEY_VARIABLE: &str = "QUORATE_LEDGER_KEY";

const MISSING_KEY_HELP: &str = "checkpoints are unsigned until it is back; where it is lost, `quorate explain \
                                quorate:ledger_key_missing` says how the ledger goes on with another key";

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

/// The ledger's key as it may sign here.
pub(super) struct OwnKey {
    pub key: Arc<SecretKey>,
    /// The words that lead to it from the keys of the last signed checkpoint; none where it is one of these.
    pub vouched: Vec<Voucher>,
}

/// A checkpoint, and warnings.
pub struct SealResult {
    pub sealed: CheckpointRecord,
    pub report: Report,
}

/// Notes that a new ledger was begun on this machine. Where that fails, hooks refuse it until a person accepts it.
pub(super) fn note_begun(environment: &Environment, ledger: &Address) {
    let files = CheckpointFiles::new(ledger, environment.state_dir.as_deref());
    let key = match key_from_environment(environment) {
        Some(text) => SecretKey::from_text(text).ok(),
        None => keys::Directory::new(ledger.dir()).load(Purpose::Ledger).ok().flatten(),
    };
    if let Some(key) = key {
        let _ = files.note_begun(&key.public());
    }
}

impl Sealer<'_> {
    /// Seals. The checkpoint is synced before it is shown or copied: after a power loss the ledger would otherwise
    /// contradict the copy.
    ///
    /// # Errors
    /// If the ledger does not answer, or does not extend its last checkpoint.
    pub(super) async fn seal(&self) -> Result<SealResult, ServiceError> {
        let first_use = self.check_continuity().await?;
        let mut done = self.seal_unchecked(false).await?;
        // Without a key no copy is kept; a warning about the missing key exists already.
        if let Some(first_use) = first_use
            && done.sealed.note.is_some()
        {
            done.report.warn(codes::LEDGER_FIRST_USE, first_use);
        }
        Ok(done)
    }

    /// Seals the ledger's current state, where `again` is asked for even without new records.
    pub(super) async fn seal_unchecked(&self, again: bool) -> Result<SealResult, ServiceError> {
        let mut report = Report::new();
        let (keys, vouched) = match self.key(&mut report).await? {
            Some(own) => (vec![own.key], own.vouched),
            None => (Vec::new(), Vec::new()),
        };
        let now_ms = self.environment.clock.now_ms();
        let succession = Succession { vouched, ..Succession::default() };
        let sealed = self.store.seal_with(&keys, now_ms, again, Durability::Synced, succession).await?;
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

    pub(super) fn copies(&self) -> CheckpointFiles {
        CheckpointFiles::new(self.store.address(), self.environment.state_dir.as_deref())
    }

    /// Stores a checkpoint on this machine and sends it to the witness.
    pub(super) async fn publish(&self, sealed: &CheckpointRecord, report: &mut Report) {
        let Some(note) = &sealed.note else { return };
        let copies = self.copies();
        let signers =
            || sealed.verifiers().unwrap_or_default().iter().map(|signer| *signer.key()).collect::<Vec<_>>();
        let known = match !copies.is_known(&sealed.origin) && copies.was_begun(&signers()) {
            true => copies.note_known(&sealed.origin),
            false => Ok(()),
        };
        for error in copies.save(note).err().into_iter().flatten().chain(known.err()) {
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
    #[crate::boxed]
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
    /// If it is missing or does not follow the key that signed so far: an unsigned record would count for nothing.
    #[crate::boxed]
    pub async fn required_key(&self) -> Result<Arc<SecretKey>, ServiceError> {
        let own = self.signing_key().await?;
        if !own.vouched.is_empty() {
            // A record by a key that no checkpoint names yet would not verify.
            self.check_continuity().await?;
            self.seal_unchecked(true).await?;
        }
        Ok(own.key)
    }

    /// As [`Sealer::required_key`], for a ledger whose rollback a person accepts: nothing is kept of it yet.
    ///
    /// # Errors
    /// As [`Sealer::required_key`].
    pub(super) async fn required_key_after_rollback(&self) -> Result<Arc<SecretKey>, ServiceError> {
        let OwnKey { key, vouched } = self.signing_key().await?;
        if !vouched.is_empty() {
            let now_ms = self.environment.clock.now_ms();
            let succession = Succession { vouched, ..Succession::default() };
            self.store.seal_with(&[Arc::clone(&key)], now_ms, true, Durability::Synced, succession).await?;
        }
        Ok(key)
    }

    /// The ledger's key, and why it follows.
    ///
    /// # Errors
    /// As [`Sealer::required_key`].
    pub(super) async fn signing_key(&self) -> Result<OwnKey, ServiceError> {
        let mut report = Report::new();
        if let Some(own) = self.key(&mut report).await? {
            return Ok(own);
        }
        let (why, help) = report.warnings.first().map_or_else(Default::default, |warning| {
            (warning.body.message.clone(), warning.body.help.clone().unwrap_or_default())
        });
        let body = Body::new(format!("the ledger's key cannot sign: {why}"));
        Err(ServiceError::configuration(codes::LEDGER_UNSIGNED, body.help(help)))
    }

    /// The ledger's key, if it is the one that signed so far, or the old keys' words lead to it.
    pub(super) async fn key(&self, report: &mut Report) -> Result<Option<OwnKey>, ServiceError> {
        let known = self.store.checkpoint_keys().await?;
        let directory = keys::Directory::new(self.store.dir());
        let (key, from) = self.load_key(known.is_none());
        let loaded = match key {
            Ok(Some(key)) => key,
            Ok(None) => {
                let body = Body::new(format!("the ledger's key {from} does not exist"));
                report.warn(codes::LEDGER_KEY_MISSING, body.help(MISSING_KEY_HELP));
                return Ok(None);
            }
            Err(error) => {
                let body = Body::new(format!("the ledger's key cannot be used ({from}): {error}"));
                report.warn(codes::LEDGER_KEY_MISSING, body.help(MISSING_KEY_HELP));
                return Ok(None);
            }
        };
        let Some(known) = known else {
            let founding = self.store.founding_key().await?;
            let is_named = key_from_environment(self.environment).is_some();
            let follows = |founding: &PublicKey| {
                let (id, vouchers) = (loaded.public().id(), directory.vouchers());
                Voucher::chain_to(Context::LEDGER_VOUCHER, id, [*founding], &vouchers).is_some()
            };
            if let Some(founding) = founding.filter(|founding| !is_named && !follows(founding)) {
                let what =
                    format!("{from} is not {}, the key of the machine that made the ledger", founding.id());
                report.warn(codes::LEDGER_KEY_MISSING, Body::new(what).help(MISSING_KEY_HELP));
                return Ok(None);
            }
            return Ok(Some(OwnKey { key: Arc::new(loaded), vouched: Vec::new() }));
        };
        let signers = known.iter().map(|verifier| *verifier.key());
        let public = loaded.public();
        let vouchers = directory.vouchers();
        if let Some(vouched) = Voucher::chain_to(Context::LEDGER_VOUCHER, public.id(), signers, &vouchers) {
            return Ok(Some(OwnKey { key: Arc::new(loaded), vouched }));
        }
        let (what, help) = match self.replaced_key(&public) {
            true => (
                "is an old key: another one has replaced it",
                "checkpoints are unsigned until the newer key is back, from where it was rotated or from a backup",
            ),
            false => ("is not the key that signed the last checkpoint", MISSING_KEY_HELP),
        };
        report.warn(codes::LEDGER_KEY_MISSING, Body::new(format!("{from} {what}")).help(help));
        Ok(None)
    }

    /// Whether another key has taken this one's place in the key directory.
    pub(super) fn replaced_key(&self, key: &PublicKey) -> bool {
        let retired = keys::Directory::new(self.store.dir()).retired(Purpose::Ledger);
        retired.unwrap_or_default().contains(key)
    }

    /// The key in the environment or in its file, and where that is. `makes` says whether a missing one is made: an older
    /// version made ledgers without a key. A database's key belongs to the machine that created its tables; a new key made
    /// here would lock that machine out.
    pub(super) fn load_key(&self, makes: bool) -> (Result<Option<SecretKey>, String>, String) {
        if let Some(text) = key_from_environment(self.environment) {
            let key = SecretKey::from_text(text).map(Some);
            return (key.map_err(|error| error_chain(&error)), format!("the variable {LEDGER_KEY_VARIABLE}"));
        }
        let directory = keys::Directory::new(self.store.dir());
        let key = match directory.load(Purpose::Ledger) {
            Ok(None) if makes && !self.store.is_shared() => directory.create(Purpose::Ledger).map(Some),
            loaded => loaded,
        };
        let file = display_path(self.environment, &directory.key_path(Purpose::Ledger));
        (key.map_err(|error| error_chain(&error)), file)
    }
}

/// Closes a ledger. If it does not answer, the system closes its files when the process exits.
#[crate::boxed]
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
#[crate::boxed]
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
