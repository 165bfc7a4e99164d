//! The ledger as a server reads it: opened once, and again when another file takes its place; and followers of runs.
//!
//! All followers of a run share one task, which reads the ledger after each commit event, and periodically for records of
//! other processes and machines. Without a follower it does not read the ledger.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use quorate_diagnostics::codes;
use quorate_kernel::files::file_id;
use quorate_kernel::ports::ledger::{Kind, Record};
use quorate_ledger::store::StreamPosition;
use quorate_protocol::Name;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::builder::Quorate;
use super::error::Error;
use super::runs::RunRecord;
use super::service::live::{self, Live, LiveState};
use super::service::session::LedgerSession;
use super::service::workspace;
use super::service::{open_session, runs};

/// The ledger of a workspace, kept open for reading.
pub struct Reader {
    quorate: Quorate,
    opened: tokio::sync::Mutex<Option<Opened>>,
    followed: Mutex<HashMap<Name, Weak<Followed>>>,
}

struct Opened {
    session: Arc<LedgerSession>,
    /// What tells the ledger's file from one that replaces it.
    file: Option<(u64, u64)>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Reader").field(&self.quorate).finish()
    }
}

impl Reader {
    /// Opens nothing yet.
    pub fn new(quorate: Quorate) -> Reader {
        Reader { quorate, opened: tokio::sync::Mutex::default(), followed: Mutex::default() }
    }

    /// The workspace with its ledger, which calls share and cannot write to.
    ///
    /// # Errors
    /// If configuration or ledger are unusable, or the ledger does not exist.
    pub async fn open(&self) -> Result<Quorate, Error> {
        Ok(Quorate { held: Some(self.session().await?), ..self.quorate.clone() })
    }

    /// As [`open`](Reader::open), but the workspace itself if its ledger does not exist.
    ///
    /// # Errors
    /// If configuration or ledger are unusable.
    pub async fn open_if_present(&self) -> Result<Quorate, Error> {
        match self.open().await {
            Err(error) if error.code() == codes::RUN_UNKNOWN.as_str() => Ok(self.quorate.clone()),
            opened => opened,
        }
    }

    async fn session(&self) -> Result<Arc<LedgerSession>, Error> {
        let Quorate { environment, places, .. } = &self.quorate;
        let mut opened = self.opened.lock().await;
        if let Some(opened) = &*opened
            && opened.file == opened.session.store.address().file().and_then(file_id)
        {
            return Ok(opened.session.clone());
        }
        *opened = None;
        let workspace = workspace::load(environment, places, &environment.directory)?;
        if !workspace.ledger.may_exist() {
            return Err(runs::missing_ledger(environment, &workspace));
        }
        let file = workspace.ledger.file().and_then(file_id);
        let open = || async {
            let workspace = workspace::load(environment, places, &environment.directory)?;
            LedgerSession::open_read_only(environment.clone(), workspace).await
        };
        let session = Arc::new(open_session::open_once_made(open).await?);
        *opened = Some(Opened { session: session.clone(), file });
        Ok(session)
    }

    /// Follows the run that an id, a prefix of one or `latest` names, as long as the returned value is held.
    ///
    /// # Errors
    /// If the run does not exist, or the ledger does not answer.
    pub async fn follow(&self, run: &str) -> Result<Follower, Error> {
        let session = self.session().await?;
        let run = session.find_run(run).await?.run;
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let known = followed.get(&run).and_then(Weak::upgrade).filter(|known| !known.reader.is_finished());
        let known = known.unwrap_or_else(|| {
            followed.retain(|_, followed| followed.strong_count() > 0);
            let (sender, records) = watch::channel(Seen::nothing(&run));
            let reader = tokio::spawn(read_records(session, run.clone(), sender)).abort_handle();
            let new = Arc::new(Followed { records, reader });
            followed.insert(run, Arc::downgrade(&new));
            new
        });
        Ok(Follower { records: known.records.clone(), _followed: known })
    }
}

/// How often the ledger is asked for new records where no events of other processes arrive.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// A run that is followed.
struct Followed {
    records: watch::Receiver<Seen>,
    reader: AbortHandle,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Follows a run; [`Reader::follow`] creates it.
pub struct Follower {
    records: watch::Receiver<Seen>,
    _followed: Arc<Followed>,
}

impl Follower {
    /// What is known now; [`changed`](Follower::changed) then waits for more.
    pub fn seen(&mut self) -> Seen {
        self.records.borrow_and_update().clone()
    }

    /// Waits until more is known; returns `false` if nothing follows.
    pub async fn changed(&mut self) -> bool {
        self.records.changed().await.is_ok()
    }
}

/// What is known of a run.
#[derive(Debug, Clone)]
pub struct Seen {
    run: Name,
    records: Arc<Vec<Arc<Record>>>,
    /// Which process works on the run, unless it has ended.
    driver: LiveState,
    is_lost: bool,
    /// How far the run is by these records, once a follower has asked.
    live: Arc<OnceLock<Option<Live>>>,
}

impl Seen {
    /// Before the first look.
    fn nothing(run: &Name) -> Seen {
        let (records, live) = (Arc::default(), Arc::default());
        Seen { run: run.clone(), records, driver: LiveState::Interrupted, is_lost: false, live }
    }

    /// The record with this number, if it is recorded.
    pub fn record(&self, n: u64) -> Option<RunRecord> {
        self.records.get(usize::try_from(n).ok()?).map(|record| RunRecord::from(&**record))
    }

    /// Whether no record follows.
    pub fn has_ended(&self) -> bool {
        self.records.last().is_some_and(|last| last.is(Kind::RunEnded))
    }

    /// Whether the ledger no longer answers, or has other records than it had.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// How far the run is; `None` without a record, and where one cannot be read. All followers share the computation.
    pub fn live(&self) -> Option<Live> {
        self.live.get_or_init(|| live::live(&self.run, &self.records, self.driver).ok()).clone()
    }
}

/// Reads new records until the ledger no longer answers.
async fn read_records(session: Arc<LedgerSession>, run: Name, sender: watch::Sender<Seen>) {
    let mut position = StreamPosition::default();
    let mut committed = session.environment.commit_events.reader(POLL_INTERVAL);
    loop {
        let driver = live::driver(&session, &run).await;
        let read = session.store.records_after(&run, &position).await;
        // Followers connect again, and begin anew.
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
