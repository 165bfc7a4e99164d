//! The server's reading session of the ledger, opened once and again when another file takes its place; and the followers of
//! runs.
//!
//! All watchers of a run share one reader, which reads the ledger after each commit event, and periodically for records of
//! other processes and machines. Without a watcher it does not read the ledger.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::live::{self, Live, LiveState};
use quorate::service::session::LedgerSession;
use quorate::service::workspace::{self, PathOverrides, Workspace};
use quorate::service::{open_session, runs};
use quorate_diagnostics::codes;
use quorate_kernel::ports::ledger::Record;
use quorate_ledger::store::StreamPosition;
use quorate_protocol::Name;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// How often a ledger that does not answer is tried again, and after what time.
const ATTEMPTS: u32 = 5;
const INTERVAL: Duration = Duration::from_millis(100);

/// The ledger of the workspace, for reading.
#[derive(Default)]
pub(crate) struct Reader {
    opened: tokio::sync::Mutex<Option<Opened>>,
}

struct Opened {
    session: Arc<LedgerSession>,
    file: Option<FileIdentity>,
}

/// What tells a file from one that replaced it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity(u64, u64);

impl Reader {
    /// The session; `None` until the ledger exists.
    ///
    /// # Errors
    /// When configuration or ledger are unusable.
    pub(crate) async fn session(
        &self,
        environment: &Environment,
        places: &PathOverrides,
    ) -> Result<Option<Arc<LedgerSession>>, ServiceError> {
        match self.existing(environment, places).await {
            Ok(session) => Ok(Some(session)),
            Err(error) if error.report.refusals.iter().all(|refusal| refusal.code == codes::RUN_UNKNOWN) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The session of a workspace that must have a ledger.
    ///
    /// # Errors
    /// As [`Reader::session`], and if the ledger does not exist.
    pub(crate) async fn existing(
        &self,
        environment: &Environment,
        places: &PathOverrides,
    ) -> Result<Arc<LedgerSession>, ServiceError> {
        let mut opened = self.opened.lock().await;
        if let Some(opened) = &*opened
            && opened.file == opened.session.store.address().file().and_then(identity)
        {
            return Ok(opened.session.clone());
        }
        *opened = None;
        let workspace = workspace::load(environment, places, &environment.directory)?;
        if !workspace.ledger.may_exist() {
            return Err(runs::missing_ledger(environment, &workspace));
        }
        let file = workspace.ledger.file().and_then(identity);
        let session = Arc::new(open(environment, places, workspace).await?);
        *opened = Some(Opened { session: session.clone(), file });
        Ok(session)
    }
}

/// Opens the ledger. One that another process is making has no tables for a moment, so it is tried again.
async fn open(
    environment: &Environment,
    places: &PathOverrides,
    mut workspace: Workspace,
) -> Result<LedgerSession, ServiceError> {
    let mut left = ATTEMPTS;
    loop {
        let opened = open_session::open_read_only(environment.clone(), workspace).await;
        if left == 0 || !opened.as_ref().is_err_and(ServiceError::is_ledger_unavailable) {
            return opened;
        }
        left -= 1;
        tokio::time::sleep(INTERVAL).await;
        workspace = workspace::load(environment, places, &environment.directory)?;
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<FileIdentity> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|file| FileIdentity(file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Option<FileIdentity> {
    None
}

/// How often the ledger is asked for new records where no events of other processes arrive.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The readers of watched runs.
#[derive(Default)]
pub(crate) struct Followers {
    runs: Mutex<HashMap<Name, Weak<Followed>>>,
}

/// A run that is watched.
pub(crate) struct Followed {
    run: Name,
    records: watch::Receiver<Seen>,
    reader: AbortHandle,
}

/// What is known of a run.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) records: Arc<Vec<Arc<Record>>>,
    /// Which process works on the run, unless it has ended.
    driver: LiveState,
    /// Whether the ledger no longer answers, or has other records than it had.
    pub(crate) is_lost: bool,
    /// How far the run is by these records, once a watcher has asked.
    live: Arc<OnceLock<Option<Live>>>,
}

impl Seen {
    /// Before the first look.
    fn nothing() -> Seen {
        Seen { records: Arc::default(), driver: LiveState::Interrupted, is_lost: false, live: Arc::default() }
    }

    /// How far the run is; `None` without a record, and where one cannot be read. All watchers share the computation.
    pub(crate) fn live(&self, run: &Name) -> Option<Live> {
        self.live.get_or_init(|| live::live(run, &self.records, self.driver).ok()).clone()
    }
}

impl Followed {
    pub(crate) fn run(&self) -> &Name {
        &self.run
    }

    pub(crate) fn records(&self) -> watch::Receiver<Seen> {
        self.records.clone()
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Followers {
    /// Follows a run as long as the returned value is held.
    pub(crate) fn follow(&self, session: &Arc<LedgerSession>, run: &Name) -> Arc<Followed> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(followed) = runs.get(run).and_then(Weak::upgrade)
            && !followed.reader.is_finished()
        {
            return followed;
        }
        runs.retain(|_, followed| followed.strong_count() > 0);
        let (sender, records) = watch::channel(Seen::nothing());
        let reader = tokio::spawn(read_records(session.clone(), run.clone(), sender)).abort_handle();
        let followed = Arc::new(Followed { run: run.clone(), records, reader });
        runs.insert(run.clone(), Arc::downgrade(&followed));
        followed
    }
}

/// Reads new records until the ledger no longer answers.
async fn read_records(session: Arc<LedgerSession>, run: Name, sender: watch::Sender<Seen>) {
    let mut position = StreamPosition::default();
    let mut committed = session.environment.commit_events.reader(POLL_INTERVAL);
    loop {
        let driver = live::driver(&session, &run).await;
        let read = session.store.records_after(&run, &position).await;
        // Watchers connect again, and begin anew.
        let (Ok(driver), Ok(Some((new, next)))) = (driver, read) else {
            sender.send_modify(|seen| seen.is_lost = true);
            return;
        };
        position = next;
        sender.send_if_modified(|seen| {
            let is_changed = !new.is_empty() || seen.driver != driver;
            if is_changed {
                Arc::make_mut(&mut seen.records).extend(new.into_iter().map(Arc::new));
                seen.driver = driver;
                seen.live = Arc::default();
            }
            is_changed
        });
        committed.wait(Some(&run)).await;
    }
}
