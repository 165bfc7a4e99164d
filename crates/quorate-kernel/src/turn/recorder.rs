//! The ledger's side of a conversation: records are written behind the conversation, in order, by a task of their
//! own. A turn costs the substrate's sync and no other (SEMANTICS K5); what a crash loses here is made good from the
//! conversation.

use std::sync::Arc;

use quorate_protocol::Name;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::call::Recorder;
use crate::ports::ledger::{Durability, Entry, Error, Ledger};

/// How many cycles the ledger may be behind; then the conversation waits for it.
const BEHIND: usize = 1_024;

/// Records that are to be written, and who waits until they are durable.
struct Queued {
    entries: Vec<Entry>,
    durable: Option<oneshot::Sender<()>>,
}

/// Writes records behind the conversation.
pub(super) struct Records {
    recorder: Arc<Recorder>,
    queue: mpsc::Sender<Queued>,
    /// Gone once its error was told.
    writer: Option<JoinHandle<Result<(), Error>>>,
}

impl Records {
    pub(super) fn start(ledger: Arc<dyn Ledger>, stream: Name, next: u64) -> Self {
        let recorder = Arc::new(Recorder::new(ledger, stream, next));
        let (queue, mut queued) = mpsc::channel::<Queued>(BEHIND);
        let writes = recorder.clone();
        let writer = tokio::spawn(async move {
            while let Some(Queued { mut entries, durable }) = queued.recv().await {
                let mut wait = Vec::from_iter(durable);
                while let Ok(more) = queued.try_recv() {
                    entries.extend(more.entries);
                    wait.extend(more.durable);
                }
                let durability = if wait.is_empty() { Durability::Written } else { Durability::Synced };
                writes.append(entries, Vec::new(), durability).await?;
                // A caller that was dropped does not wait any more.
                for durable in wait {
                    let _ = durable.send(());
                }
            }
            Ok(())
        });
        Records { recorder, queue, writer: Some(writer) }
    }

    /// For invocations, which record their attempts themselves.
    pub(super) fn recorder(&self) -> Arc<Recorder> {
        self.recorder.clone()
    }

    /// Puts records into the queue.
    ///
    /// # Errors
    /// When the ledger has failed: whoever goes on would do so unrecorded.
    pub(super) async fn put(&mut self, entries: Vec<Entry>) -> Result<(), Error> {
        match self.queue.send(Queued { entries, durable: None }).await {
            Ok(()) => Ok(()),
            Err(_) => self.failed().await,
        }
    }

    /// Writes records behind those that are queued, and returns when all of them are durable.
    ///
    /// # Errors
    /// As [`Records::put`].
    pub(super) async fn put_durably(&mut self, entries: Vec<Entry>) -> Result<(), Error> {
        let (durable, is_durable) = oneshot::channel();
        let sent = self.queue.send(Queued { entries, durable: Some(durable) }).await;
        match (sent, is_durable.await) {
            (Ok(()), Ok(())) => Ok(()),
            _ => self.failed().await,
        }
    }

    /// What the writer ended with.
    async fn failed(&mut self) -> Result<(), Error> {
        match self.writer.take() {
            Some(writer) => writer.await.unwrap_or_else(|_| Err(gone())).and(Err(gone())),
            None => Err(gone()),
        }
    }

    /// Writes what is queued.
    pub(super) async fn close(self) -> Result<(), Error> {
        drop(self.queue);
        match self.writer {
            Some(writer) => writer.await.unwrap_or_else(|_| Err(gone())),
            None => Err(gone()),
        }
    }
}

fn gone() -> Error {
    Error::Unavailable { what: "the task that writes the ledger is gone".into(), source: None }
}
