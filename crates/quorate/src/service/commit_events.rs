//! Commit events announce that a run has new records or that the queue has new tasks. Readers wait for an event instead of
//! polling, and then read the ledger. An event is a hint: it may be lost, late, repeated or wrong, so each reader also
//! polls at a slow rate.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_ledger::store::CommittedRecords;
use quorate_protocol::Name;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};
use tokio::time::{Instant, sleep_until};

/// The tenant of runs and tasks that name none.
pub(crate) const DEFAULT_TENANT: &str = "default";
/// How many events a reader may be behind before it checks all runs.
const CAPACITY: usize = 1024;
/// How often a reader polls while events of other processes arrive.
const SLOW_POLL: Duration = Duration::from_secs(2);
/// The shortest time between two reads of the ledger, however many events arrive.
const MIN_PAUSE: Duration = Duration::from_millis(20);

/// Announces new records to the readers in this process, and to other processes once NATS is connected.
#[derive(Clone)]
pub struct CommitEvents(Arc<Shared>);

struct Shared {
    events: Sender<CommitEvent>,
    /// Whether events of other processes arrive.
    is_listening: AtomicBool,
    /// Announces records of a tenant to other processes.
    publish: Mutex<Option<Arc<Publish>>>,
    /// The tenants of the queued runs that this process executes.
    tenants: Mutex<BTreeMap<Name, String>>,
}

pub(crate) type Publish = dyn Fn(&CommittedRecords, &str) + Send + Sync;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommitEvent {
    /// A run has new records.
    Run(Name),
    /// The queue has new tasks.
    #[cfg_attr(not(feature = "nats"), expect(dead_code, reason = "another process queues them"))]
    Tasks,
    /// Events were missed: every run may have new records.
    #[cfg_attr(not(feature = "nats"), expect(dead_code, reason = "within a process nothing is missed"))]
    All,
}

impl Default for CommitEvents {
    fn default() -> Self {
        CommitEvents(Arc::new(Shared {
            events: broadcast::channel(CAPACITY).0,
            is_listening: AtomicBool::new(false),
            publish: Mutex::default(),
            tenants: Mutex::default(),
        }))
    }
}

impl CommitEvents {
    /// Announces records that this process has committed.
    pub(super) fn committed(&self, records: &CommittedRecords) {
        let publish = self.publish().clone();
        if let Some(publish) = publish {
            let tenant = self.tenants().get(&records.run).cloned();
            publish(records, tenant.as_deref().unwrap_or(DEFAULT_TENANT));
        }
        self.tell(CommitEvent::Run(records.run.clone()));
    }

    /// Sets the tenant of a run's events; `None` removes it.
    #[cfg(all(feature = "cluster", feature = "postgres"))]
    pub(crate) fn set_tenant(&self, run: &Name, tenant: Option<&str>) {
        match tenant {
            Some(tenant) => self.tenants().insert(run.clone(), tenant.to_owned()),
            None => self.tenants().remove(run),
        };
    }

    /// Creates a reader, which polls every `poll` if no events of other processes arrive.
    pub fn reader(&self, poll: Duration) -> CommitEventReader {
        CommitEventReader {
            events: self.0.events.subscribe(),
            shared: self.clone(),
            poll,
            last: Instant::now(),
        }
    }

    pub(crate) fn tell(&self, event: CommitEvent) {
        // Sending fails only if no reader is subscribed.
        let _ = self.0.events.send(event);
    }

    pub(crate) fn publish(&self) -> MutexGuard<'_, Option<Arc<Publish>>> {
        self.0.publish.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tenants(&self) -> MutexGuard<'_, BTreeMap<Name, String>> {
        self.0.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(feature = "nats")]
    pub(crate) fn set_listening(&self, is_listening: bool) {
        self.0.is_listening.store(is_listening, Ordering::Relaxed);
        // Wakes the readers, so that they switch to the new poll interval.
        self.tell(CommitEvent::All);
    }
}

/// Waits until there may be new records.
pub struct CommitEventReader {
    shared: CommitEvents,
    events: Receiver<CommitEvent>,
    poll: Duration,
    /// When the last wait ended.
    last: Instant,
}

impl CommitEventReader {
    /// Waits until `run` may have new records; with `None`, any run.
    pub async fn wait(&mut self, run: Option<&Name>) {
        let is_listening = self.shared.0.is_listening.load(Ordering::Relaxed);
        let pause = if is_listening { SLOW_POLL.max(self.poll) } else { self.poll };
        let is_meant = |event: &CommitEvent| match event {
            CommitEvent::Run(of) => run.is_none_or(|run| run == of),
            CommitEvent::Tasks => false,
            CommitEvent::All => true,
        };
        self.wait_for(is_meant, pause).await;
    }

    /// Waits until there may be new tasks in the queue.
    pub async fn wait_for_tasks(&mut self) {
        self.wait_for(|event| matches!(event, CommitEvent::Tasks), self.poll).await;
    }

    async fn wait_for(&mut self, is_meant: impl Fn(&CommitEvent) -> bool, pause: Duration) {
        let heard = async {
            loop {
                match self.events.recv().await {
                    Ok(event) if !is_meant(&event) => {}
                    Ok(_) | Err(RecvError::Lagged(_)) => break,
                    // `shared` holds the sender.
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        let _ = tokio::time::timeout(pause, heard).await;
        sleep_until(self.last + MIN_PAUSE).await;
        // The read that follows covers every event so far.
        self.events = self.shared.0.events.subscribe();
        self.last = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    fn records(run: &str) -> CommittedRecords {
        CommittedRecords { run: run.into(), from: 0, records: vec![("run.opened", 1)] }
    }

    async fn is_waiting(wait: &mut (impl Future<Output = ()> + Unpin)) -> bool {
        tokio::time::timeout(Duration::from_secs(60), wait).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_of_one_run_waits_for_its_events_alone() {
        let events = CommitEvents::default();
        let (run, mut one, mut all) = ("r1".into(), events.reader(LONG), events.reader(LONG));
        let mut one = Box::pin(one.wait(Some(&run)));
        let mut all = Box::pin(all.wait(None));
        assert!(is_waiting(&mut one).await && is_waiting(&mut all).await);
        events.committed(&records("r2"));
        assert!(is_waiting(&mut one).await && !is_waiting(&mut all).await);
        events.committed(&records("r1"));
        assert!(!is_waiting(&mut one).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_waits_for_tasks_alone() {
        let events = CommitEvents::default();
        let (mut working, mut watching) = (events.reader(LONG), events.reader(LONG));
        let mut tasks = Box::pin(working.wait_for_tasks());
        let mut runs = Box::pin(watching.wait(None));
        events.tell(CommitEvent::Tasks);
        assert!(!is_waiting(&mut tasks).await && is_waiting(&mut runs).await);
        drop(tasks);
        let mut tasks = Box::pin(working.wait_for_tasks());
        events.committed(&records("r1"));
        assert!(is_waiting(&mut tasks).await && !is_waiting(&mut runs).await);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_between_two_waits_ends_the_next_wait() {
        let events = CommitEvents::default();
        let mut reader = events.reader(LONG);
        events.committed(&records("r1"));
        let mut wait = Box::pin(reader.wait(None));
        assert!(!is_waiting(&mut wait).await);
        drop(wait);
        let mut wait = Box::pin(reader.wait(None));
        assert!(is_waiting(&mut wait).await);
    }

    #[tokio::test(start_paused = true)]
    async fn many_events_do_not_make_many_reads() {
        let events = CommitEvents::default();
        let mut reader = events.reader(LONG);
        let began = Instant::now();
        for _ in 0..50 {
            for _ in 0..2 * CAPACITY {
                events.committed(&records("r1"));
            }
            reader.wait(None).await;
        }
        assert!(began.elapsed() >= MIN_PAUSE * 49);
    }
}
