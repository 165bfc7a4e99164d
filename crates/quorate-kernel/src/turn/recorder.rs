//! The ledger's side of a conversation: records are written behind the conversation, in order, by a task of their
//! own. A turn costs the substrate's sync and no other (SEMANTICS K5); what a crash loses here is made good from the
//! conversation.

use std::sync::Arc;

use quorate_protocol::Name;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::call::Recorder;
use crate::ports::ledger::{Durability, Entry, Error, Ledger};

/// How many cycles the ledger may be behind; then the conversation waits for it.
const BEHIND: usize = 1_024;

/// Writes records behind the conversation.
pub(super) struct Records {
    recorder: Arc<Recorder>,
    queue: mpsc::Sender<Vec<Entry>>,
    /// Gone once its error was told.
    writer: Option<JoinHandle<Result<(), Error>>>,
}

impl Records {
    pub(super) fn start(ledger: Arc<dyn Ledger>, stream: Name, next: u64) -> Self {
        let recorder = Arc::new(Recorder::new(ledger, stream, next));
        let (queue, mut queued) = mpsc::channel::<Vec<Entry>>(BEHIND);
        let writes = recorder.clone();
        let writer = tokio::spawn(async move {
            while let Some(mut entries) = queued.recv().await {
                while let Ok(more) = queued.try_recv() {
                    entries.extend(more);
                }
                writes.append(entries, Vec::new(), Durability::Written).await?;
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
        match self.queue.send(entries).await {
            Ok(()) => Ok(()),
            Err(_) => match self.writer.take() {
                Some(writer) => writer.await.unwrap_or_else(|_| Err(gone())).and(Err(gone())),
                None => Err(gone()),
            },
        }
    }

    /// Writes records, and returns when they are durable with everything before them.
    pub(super) async fn put_durably(&mut self, entries: Vec<Entry>) -> Result<(), Error> {
        // Nothing is queued where every append is awaited, so that the order holds.
        self.recorder.append(entries, Vec::new(), Durability::Synced).await
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
