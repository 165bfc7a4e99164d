//! Sealing the ledger: a checkpoint signed by the ledger's own key, and the witness that keeps it elsewhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::ledger::Durability;
use quorate_ledger::keys::{self, Purpose};
use quorate_ledger::note::{Checkpoint, Note};
use quorate_ledger::signing::SecretKey;
use quorate_ledger::store::{Sealed, files};
use quorate_ledger::{Store, witness};
use zeroize::Zeroizing;

use crate::service::desk::Desk;
use crate::service::environment::{self, Environment};
use crate::service::stop::{Stop, chain};
use crate::service::workspace::{Workspace, shown};

/// The variable that has the ledger's key, for several machines that seal one ledger. It comes before the file.
pub const VARIABLE: &str = "QUORATE_LEDGER_KEY";

/// How long a command that is done waits for the ledger to be sealed, and to be closed. Nothing that was recorded depends
/// on either: the next command seals, and what was written stays without being closed.
const SEALING: Duration = Duration::from_secs(10);
const CLOSING: Duration = Duration::from_secs(3);

/// What is done to seal a ledger.
pub struct Sealing<'a> {
    /// The surroundings.
    pub environment: &'a Environment,
    /// The ledger.
    pub store: &'a Store,
    /// The file that each checkpoint is appended to.
    pub witness: Option<&'a Path>,
}

/// A checkpoint, and what is to be said of it.
pub struct Done {
    /// The checkpoint.
    pub sealed: Sealed,
    /// Warnings.
    pub report: Report,
}

/// Makes a checkpoint where anything came since the last one, to be shown, and brings the witness up to date.
///
/// # Errors
/// When the ledger does not answer, or does not continue its last checkpoint.
pub async fn checkpoint(desk: &Desk) -> Result<Done, Stop> {
    let witness = witness_of(&desk.workspace);
    of(desk, witness.as_deref()).seal(Durability::Synced).await
}

/// The ledger's key, which signs what is done to the ledger.
///
/// # Errors
/// When it is not there or is not the one that signed so far: what is not signed would count for nothing.
pub async fn key_of(desk: &Desk) -> Result<SecretKey, Stop> {
    let mut report = Report::new();
    if let Some(key) = of(desk, None).key(&mut report).await? {
        return Ok(key);
    }
    let why = report.warnings.first().map_or_else(String::new, |one| one.body.message.clone());
    let body = Body::new(format!("cannot sign what is to be done to the ledger: {why}"));
    let help = "put the key back, or hand it over with QUORATE_LEDGER_KEY; `quorate keys rotate ledger` goes on with another one";
    Err(Stop::configuration(codes::LEDGER_UNSIGNED, body.help(help)))
}

/// Signs what an older version left unsigned in the ledger's own stream and no signed checkpoint is over, and gives the
/// numbers of these records.
///
/// # Errors
/// As [`key_of`], and when the ledger does not answer.
pub async fn accept_unsigned(desk: &Desk) -> Result<Vec<u64>, Stop> {
    let key = key_of(desk).await?;
    Ok(desk.store.sign_own(&key).await?)
}

/// Makes a checkpoint that these keys sign, whether anything came since the last one or not: each vouches for the others.
///
/// # Errors
/// As [`checkpoint`].
pub async fn vouch(desk: &Desk, keys: &[Arc<SecretKey>]) -> Result<Report, Stop> {
    let witness = witness_of(&desk.workspace);
    let sealing = of(desk, witness.as_deref());
    let now_ms = desk.environment.clock.now_ms();
    let sealed = desk.store.seal(keys, now_ms, true, Durability::Synced).await?;
    let mut report = Report::new();
    sealing.tell(&sealed, &mut report);
    Ok(report)
}

/// Seals the ledger of a desk, and says what is wrong with that.
pub async fn checkpoint_or_say(desk: &Desk) -> Report {
    let witness = witness_of(&desk.workspace);
    of(desk, witness.as_deref()).seal_or_say().await
}

/// Closes a ledger, and keeps the last checkpoint beside the key that signed it once it is on the disk to stay: when the
/// last process that has the file open closes it, SQLite folds its log into it and syncs both.
/// A ledger that does not answer is left to the system, which closes its files when the process ends.
pub async fn close(store: Store) {
    let _ = tokio::time::timeout(CLOSING, closed(store)).await;
}

async fn closed(store: Store) {
    let last = match store.closed_to_writers() {
        None => store.last_sealed().await.ok().flatten(),
        Some(_) => None,
    };
    let (directory, file) = (keys::Directory::of(store.dir()), store.address().file().map(Path::to_owned));
    store.close().await;
    if let (Some(note), Some(file)) = (last.and_then(|last| last.note), file)
        && !files::has_log(&file)
        && directory.last().is_ok_and(|kept| kept.is_none_or(|kept| goes_on(&kept, &note)))
    {
        // One that is not kept is kept the next time.
        let _ = directory.keep_last(&note);
    }
}

/// How long a command that was interrupted takes to seal, and how long to close.
const HURRIED: Duration = Duration::from_secs(2);

/// Does something at the end of a command; `None` where that takes long and the command was interrupted.
pub async fn in_time<T>(store: &Store, work: impl Future<Output = T>) -> Option<T> {
    match store.is_hurried() {
        // The next command does what is given up here.
        true => tokio::time::timeout(HURRIED, work).await.ok(),
        false => Some(work.await),
    }
}

/// As [`close`]; where a command that was interrupted cannot, the end of its process does.
pub async fn close_in_time(store: Store) {
    match store.is_hurried() {
        true => drop(tokio::time::timeout(HURRIED, Box::pin(close(store))).await),
        false => Box::pin(close(store)).await,
    }
}

/// Whether a checkpoint is of the same ledger as one that was kept, and over more records.
fn goes_on(kept: &str, note: &str) -> bool {
    let read = |note: &str| Checkpoint::parse(Note::parse(note.as_bytes()).ok()?.text()).ok();
    match (read(kept), read(note)) {
        (Some(kept), Some(new)) => kept.origin() == new.origin() && kept.tree().size < new.tree().size,
        (kept, new) => kept.is_none() && new.is_some(),
    }
}

/// The key that the environment hands over, as text.
pub fn handed() -> Option<String> {
    environment::variable(VARIABLE).filter(|text| !text.is_empty())
}

fn of<'a>(desk: &'a Desk, witness: Option<&'a Path>) -> Sealing<'a> {
    Sealing { environment: &desk.environment, store: &desk.store, witness }
}

/// Where the witness is.
pub fn witness_of(workspace: &Workspace) -> Option<PathBuf> {
    let (written, _) = workspace.host.ledger.witness.as_ref()?;
    Some(workspace.host.dir.join(written))
}

impl Sealing<'_> {
    /// Seals.
    ///
    /// # Errors
    /// As [`checkpoint`].
    async fn seal(&self, durability: Durability) -> Result<Done, Stop> {
        let mut report = Report::new();
        self.goes_on().await?;
        let key = self.key(&mut report).await?;
        let keys: Vec<Arc<SecretKey>> = key.into_iter().map(Arc::new).collect();
        let now_ms = self.environment.clock.now_ms();
        let sealed = self.store.seal(&keys, now_ms, false, durability).await?;
        self.tell(&sealed, &mut report);
        Ok(Done { sealed, report })
    }

    /// Whether the ledger goes on from the last checkpoint that its key signed: what was put in its place is not signed.
    async fn goes_on(&self) -> Result<(), Stop> {
        let directory = keys::Directory::of(self.store.dir());
        let Ok(Some(note)) = directory.last() else { return Ok(()) };
        let last = Note::parse(note.as_bytes()).ok().and_then(|note| Checkpoint::parse(note.text()).ok());
        let Some(last) = last else { return Ok(()) };
        if self.store.has_sealed(&last).await? {
            return Ok(());
        }
        let body = Body::new(format!(
            "it does not go on from the checkpoint over {} records of {} that its key has signed",
            last.tree().size,
            last.origin()
        ));
        let file = shown(self.environment, &directory.last_file());
        let help = format!(
            "`quorate ledger verify` says what differs; where another ledger was begun on purpose, remove {file}"
        );
        Err(Stop::configuration(codes::LEDGER_CORRUPT, body.help(help)))
    }

    /// Tells the witness of a checkpoint.
    fn tell(&self, sealed: &Sealed, report: &mut Report) {
        if let (Some(path), Some(note)) = (self.witness, &sealed.note)
            && let Err(error) = witness::append(path, note)
        {
            let path = shown(self.environment, path);
            let body =
                Body::new(format!("the witness {path} did not take the checkpoint: {}", chain(&error)));
            report.warn(
                codes::WITNESS_BEHIND,
                body.help(
                    "the checkpoint stands in the ledger; the next one is offered to the witness again",
                ),
            );
        }
    }

    /// Seals, and says what is wrong with that: nothing that was recorded depends on it.
    pub async fn seal_or_say(&self) -> Report {
        // Nobody is shown it but the witness.
        let durability = if self.witness.is_some() { Durability::Synced } else { Durability::Written };
        let (why, help) = match tokio::time::timeout(SEALING, self.seal(durability)).await {
            Ok(Ok(done)) => return done.report,
            Ok(Err(stop)) => (stop.first(), "see what is wrong with `quorate ledger verify`"),
            Err(_) => (
                format!("it did not answer within {} s", SEALING.as_secs()),
                "seal it with `quorate ledger checkpoint` when no other process keeps it busy",
            ),
        };
        let mut report = Report::new();
        let body = Body::new(format!("the ledger is not sealed: {why}"));
        report.warn(codes::CHECKPOINT_MISSING, body.help(help));
        report
    }

    /// The ledger's key, where it is the one that signed so far.
    async fn key(&self, report: &mut Report) -> Result<Option<SecretKey>, Stop> {
        let known = self.store.checkpoint_keys().await?;
        let (key, from) = match handed() {
            Some(text) => {
                let key = SecretKey::from_text(&Zeroizing::new(text)).map(Some);
                (key.map_err(|error| chain(&error)), format!("the variable {VARIABLE}"))
            }
            None => {
                let directory = keys::Directory::of(self.store.dir());
                let key = match directory.load(Purpose::Ledger) {
                    // An older version made the ledger, and no key.
                    Ok(None) if known.is_none() => directory.create(Purpose::Ledger).map(Some),
                    loaded => loaded,
                };
                let file = shown(self.environment, &directory.file(Purpose::Ledger));
                (key.map_err(|error| chain(&error)), file)
            }
        };
        let help = "checkpoints are unsigned until it is back; `quorate keys rotate ledger` goes on with another key";
        match key {
            Ok(Some(key)) => {
                let verifies = key.public();
                if known.is_none_or(|known| known.iter().any(|one| *one.key() == verifies)) {
                    return Ok(Some(key));
                }
                let body = Body::new(format!("{from} is not the key that signed the last checkpoint"));
                report.warn(codes::LEDGER_KEY_MISSING, body.help(help));
            }
            Ok(None) => {
                let body = Body::new(format!("the ledger's key {from} is not there"));
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
