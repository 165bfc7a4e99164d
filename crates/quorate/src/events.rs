//! What happens while a run goes on, as a stream.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use quorate_kernel::observer::Observer;
use tokio::sync::mpsc;

pub use quorate_kernel::observer::RunEvent as Event;

use crate::error::Error;

/// Work that goes on: a stream of [events](Event) that ends with a result. It goes on while it is polled. Dropping it
/// cancels it: members that are being asked are ended, what was answered stays recorded, and
/// [`Quorate::resume`](crate::Quorate::resume) goes on with it.
pub struct Run<T> {
    work: Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>,
    events: mpsc::UnboundedReceiver<Event>,
    result: Option<Result<T, Error>>,
}

impl<T> Run<T> {
    /// Work that reports to the observer that it is given.
    pub(crate) fn new<W>(work: impl FnOnce(Arc<dyn Observer>) -> W) -> Self
    where
        W: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let (send, events) = mpsc::unbounded_channel();
        let observer = Arc::new(Sender(send));
        Run { work: Box::pin(work(observer)), events, result: None }
    }

    /// Goes on until something happens; `None` once the work has ended.
    pub async fn next(&mut self) -> Option<Event> {
        if self.result.is_none() {
            tokio::select! {
                // What happened is told before the end is.
                biased;
                Some(event) = self.events.recv() => return Some(event),
                result = &mut self.work => self.result = Some(result),
            }
        }
        self.events.try_recv().ok()
    }

    /// Goes on to the end.
    ///
    /// # Errors
    /// When the work could not be done, or not to its end.
    pub async fn finish(mut self) -> Result<T, Error> {
        match self.result.take() {
            Some(result) => result,
            None => self.work.await,
        }
    }
}

impl<T> std::fmt::Debug for Run<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("ended", &self.result.is_some()).finish_non_exhaustive()
    }
}

/// Sends what it observes to the stream, which nobody has to read.
struct Sender(mpsc::UnboundedSender<Event>);

impl Observer for Sender {
    fn observe(&self, event: Event) {
        let _ = self.0.send(event);
    }
}
