//! A running operation as a stream of events.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::error::Error;

pub use quorate_kernel::observer::{Observer, RunEvent as Event};

/// A running operation: a stream of [events](Event) that ends with a result. It makes progress only while it is polled.
/// Dropping it cancels it: pending members are stopped, answers received so far stay recorded, and
/// [`Quorate::resume`](crate::Quorate::resume) continues the run.
pub struct Run<T> {
    work: Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>,
    events: mpsc::UnboundedReceiver<Event>,
    result: Option<Result<T, Error>>,
}

impl<T> Run<T> {
    /// `work` reports to the observer that it receives.
    pub(crate) fn new<W>(work: impl FnOnce(Arc<dyn Observer>) -> W) -> Self
    where
        W: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let (send, events) = mpsc::unbounded_channel();
        let observer = Arc::new(Sender(send));
        Run { work: Box::pin(work(observer)), events, result: None }
    }

    /// The same operation with another result.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U + Send + 'static) -> Run<U>
    where
        T: Send + 'static,
    {
        let Run { work, events, result } = self;
        debug_assert!(result.is_none(), "it has not been polled");
        Run { work: Box::pin(async move { work.await.map(change) }), events, result: None }
    }

    /// Waits for the next event; `None` once the operation has ended.
    pub async fn next(&mut self) -> Option<Event> {
        if self.result.is_none() {
            tokio::select! {
                // `biased` delivers pending events before the result.
                biased;
                Some(event) = self.events.recv() => return Some(event),
                result = &mut self.work => self.result = Some(result),
            }
        }
        self.events.try_recv().ok()
    }

    /// Runs the operation to its end and returns its result; remaining events are dropped.
    ///
    /// # Errors
    /// If the operation failed or could not finish.
    pub async fn finish(mut self) -> Result<T, Error> {
        match self.result.take() {
            Some(result) => result,
            None => self.work.await,
        }
    }
}

impl<T> Run<T> {
    /// As [`finish`](Run::finish), and passes every event to an observer.
    ///
    /// # Errors
    /// As [`finish`](Run::finish).
    pub async fn finish_with(mut self, observer: &dyn Observer) -> Result<T, Error> {
        while let Some(event) = self.next().await {
            observer.observe(event);
        }
        self.finish().await
    }
}

impl<T> std::fmt::Debug for Run<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("ended", &self.result.is_some()).finish_non_exhaustive()
    }
}

/// Sends events to the stream; a caller may ignore them.
struct Sender(mpsc::UnboundedSender<Event>);

impl Observer for Sender {
    fn observe(&self, event: Event) {
        let _ = self.0.send(event);
    }
}
