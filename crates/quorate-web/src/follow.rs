//! Notifies watchers of the new records of a run. All watchers of a run share one reader, which reads the ledger after each
//! commit event, and periodically for records of other processes and machines. Without a watcher it does not read the ledger.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use quorate::service::live::{self, Live, LiveState};
use quorate::service::session::LedgerSession;
use quorate_kernel::ports::ledger::Record;
use quorate_ledger::store::StreamPosition;
use quorate_protocol::Name;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// How often the ledger is asked for new records where no events of other processes arrive.
const INTERVAL: Duration = Duration::from_millis(250);

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
        let reader = tokio::spawn(read(session.clone(), run.clone(), sender)).abort_handle();
        let followed = Arc::new(Followed { run: run.clone(), records, reader });
        runs.insert(run.clone(), Arc::downgrade(&followed));
        followed
    }
}

/// Reads new records until the ledger no longer answers.
async fn read(session: Arc<LedgerSession>, run: Name, sender: watch::Sender<Seen>) {
    let mut position = StreamPosition::default();
    let mut committed = session.environment.commit_events.reader(INTERVAL);
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
