//! The ledger's side of a conversation: records are written asynchronously, in order, by a task of their
//! own. A turn costs the substrate's sync and no other (K5); what a crash loses here is restored from the
//! conversation.

use std::sync::Arc;

use quorate_protocol::Name;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::call::Recorder;
use crate::ports::ledger::{Durability, Entry, Error, Ledger};

/// How many cycles the ledger may be behind; then the conversation waits for it.
const MAX_QUEUED: usize = 1_024;

/// Queued records, and the channel that reports that they are durable; `None` where they need only survive the process.
type QueuedRecords = (Vec<Entry>, Option<oneshot::Sender<()>>);

/// Writes records asynchronously, in order.
pub(super) struct RecordQueue {
    recorder: Arc<Recorder>,
    queue: mpsc::Sender<QueuedRecords>,
    /// Resolves when the records of the last durable write are durable.
    not_durable: Option<oneshot::Receiver<()>>,
    /// `None` once its error was reported.
    writer: Option<JoinHandle<Result<(), Error>>>,
}

impl RecordQueue {
    pub(super) fn start(ledger: Arc<dyn Ledger>, stream: Name, next: u64) -> Self {
        let recorder = Arc::new(Recorder::new(ledger, stream, next));
        let (queue, mut queued) = mpsc::channel::<QueuedRecords>(MAX_QUEUED);
        let writes = recorder.clone();
        let writer = tokio::spawn(async move {
            while let Some((mut entries, waiting)) = queued.recv().await {
                let mut waiting: Vec<_> = waiting.into_iter().collect();
                while let Ok((more, also)) = queued.try_recv() {
                    entries.extend(more);
                    waiting.extend(also);
                }
                let durability = if waiting.is_empty() { Durability::Written } else { Durability::Synced };
                writes.append(entries, Vec::new(), durability).await?;
                // A caller that was interrupted no longer waits; its records are written all the same.
                for waiter in waiting {
                    let _ = waiter.send(());
                }
            }
            Ok(())
        });
        RecordQueue { recorder, queue, not_durable: None, writer: Some(writer) }
    }

    /// For invocations, which record their attempts themselves.
    pub(super) fn recorder(&self) -> Arc<Recorder> {
        self.recorder.clone()
    }

    /// Reserves a place in the queue: what is put there is written even if the caller is dropped.
    ///
    /// # Errors
    /// If the ledger has failed: the caller must not continue unrecorded.
    pub(super) async fn reserve(&mut self) -> Result<Slot, Error> {
        match self.queue.clone().reserve_owned().await {
            Ok(permit) => Ok(Slot(permit)),
            Err(_) => Err(self.take_error().await),
        }
    }

    /// Puts records into the queue.
    ///
    /// # Errors
    /// As [`RecordQueue::reserve`].
    pub(super) async fn put(&mut self, entries: Vec<Entry>) -> Result<(), Error> {
        self.reserve().await?.put(entries);
        Ok(())
    }

    /// Puts records into a place of the queue, and returns when they are durable with everything before them.
    ///
    /// # Errors
    /// When the ledger has failed.
    pub(super) async fn put_durably(&mut self, slot: Slot, entries: Vec<Entry>) -> Result<(), Error> {
        let (notify, durable) = oneshot::channel();
        slot.0.send((entries, Some(notify)));
        self.not_durable = Some(durable);
        self.wait_durable().await
    }

    /// Returns when the records of the last durable write are durable: their caller may have been interrupted.
    ///
    /// # Errors
    /// When the ledger has failed.
    pub(super) async fn wait_durable(&mut self) -> Result<(), Error> {
        let Some(durable) = &mut self.not_durable else { return Ok(()) };
        let written = durable.await;
        self.not_durable = None;
        match written {
            Ok(()) => Ok(()),
            Err(_) => Err(self.take_error().await),
        }
    }

    /// Why nothing is written any more.
    async fn take_error(&mut self) -> Error {
        match self.writer.take() {
            Some(writer) => {
                writer.await.unwrap_or_else(|_| Err(writer_stopped())).err().unwrap_or_else(writer_stopped)
            }
            None => writer_stopped(),
        }
    }

    /// Writes what is queued.
    pub(super) async fn close(self) -> Result<(), Error> {
        drop(self.queue);
        match self.writer {
            Some(writer) => writer.await.unwrap_or_else(|_| Err(writer_stopped())),
            None => Err(writer_stopped()),
        }
    }
}

/// A place in the queue.
pub(super) struct Slot(mpsc::OwnedPermit<QueuedRecords>);

impl Slot {
    pub(super) fn put(self, entries: Vec<Entry>) {
        self.0.send((entries, None));
    }
}

fn writer_stopped() -> Error {
    Error::Unavailable { what: "the task that writes the ledger is gone".into(), source: None }
}
