//! A running operation as a stream of events.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use futures::{Stream, StreamExt};
use quorate_protocol::Name;
use tokio::sync::{Notify, mpsc, watch};

use super::error::Error;

pub use quorate_kernel::observer::{Observer, RunEvent as Event};
pub use quorate_kernel::record::Status;

/// A running operation: a stream of [events](Event) that ends with a result. It makes progress only while it is polled.
/// Dropping it cancels it at once; [`Run::interrupt`] also closes the ledger. In both cases pending members are stopped,
/// answers received so far stay recorded, and [`Quorate::resume`](crate::Quorate::resume) continues the run.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let dir = tempfile::tempdir()?;
/// use quorate::{Event, Quorate};
///
/// let quorate = Quorate::builder().workspace(dir.path()).build()?;
/// let mut run = quorate.review_text("notice.md", "The meeting moved to Tuesday.\n").start();
/// assert!(matches!(run.next().await, Some(Event::Opened { .. })));
/// let review = run.finish().await?; // drops the events that were not read
/// assert_eq!(review.artifact, "notice.md");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Run<T, E = Event> {
    work: Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>,
    events: mpsc::UnboundedReceiver<E>,
    result: Option<Result<T, Error>>,
    interruption: Interruption,
}

impl<T, E> Unpin for Run<T, E> {}

impl<T, E> Stream for Run<T, E> {
    type Item = E;

    /// Pending events come before the end.
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<E>> {
        if let Poll::Ready(Some(event)) = self.events.poll_recv(context) {
            return Poll::Ready(Some(event));
        }
        if self.result.is_none() {
            match self.work.as_mut().poll(context) {
                Poll::Ready(result) => self.result = Some(result),
                // The work may have sent events.
                Poll::Pending => {
                    let event = self.events.poll_recv(context);
                    return if let Poll::Ready(None) = event { Poll::Pending } else { event };
                }
            }
        }
        Poll::Ready(self.events.try_recv().ok())
    }
}

impl<T> Run<T> {
    /// `work` reports to the observer that it receives. It ends early if it watches the interruption.
    pub(crate) fn new<W>(work: impl FnOnce(Arc<dyn Observer>, Interruption) -> W) -> Self
    where
        W: Future<Output = Result<T, Error>> + Send + 'static,
    {
        Run::with_events(|events, interruption| {
            work(Arc::new(Sender(events, interruption.clone())), interruption)
        })
    }

    /// As [`finish`](Run::finish), and passes every event to an observer at the moment it happens.
    ///
    /// # Errors
    /// As [`finish`](Run::finish).
    pub async fn finish_with(mut self, observer: Arc<dyn Observer>) -> Result<T, Error> {
        while let Ok(event) = self.events.try_recv() {
            observer.observe(event);
        }
        let _ = self.interruption.observer.set(observer);
        self.finish().await
    }
}

impl<T, E> Run<T, E> {
    /// `work` sends events.
    pub(crate) fn with_events<W>(work: impl FnOnce(mpsc::UnboundedSender<E>, Interruption) -> W) -> Self
    where
        W: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let (send, events) = mpsc::unbounded_channel();
        let interruption = Interruption::default();
        Run { work: Box::pin(work(send, interruption.clone())), events, result: None, interruption }
    }

    /// Stops the members. [`finish`](Run::finish) then closes the ledger and returns the result if it was recorded
    /// already, else an error of kind [`Interrupted`](crate::ErrorKind::Interrupted).
    pub fn interrupt(&self) {
        self.interruption.request();
    }

    /// Tells whether the operation watches for an interruption; it does not while it opens or closes the ledger.
    pub fn stage(&self) -> Stage {
        Stage(self.interruption.watching.subscribe())
    }

    /// The same operation with another result.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U + Send + 'static) -> Run<U, E>
    where
        T: Send + 'static,
    {
        let Run { work, events, result, interruption } = self;
        debug_assert!(result.is_none(), "it has not been polled");
        Run { work: Box::pin(async move { work.await.map(change) }), events, result: None, interruption }
    }

    /// Waits for the next event; `None` once the operation has ended.
    pub async fn next(&mut self) -> Option<E> {
        StreamExt::next(self).await
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

impl<T, E> std::fmt::Debug for Run<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("ended", &self.result.is_some()).finish_non_exhaustive()
    }
}

/// The stage of a [`Run`].
pub struct Stage(watch::Receiver<usize>);

impl Stage {
    /// Waits until [`Run::interrupt`] would end the operation at once and in order, or with `false` until it would not.
    pub async fn is_interruptible(&mut self, wanted: bool) {
        if self.0.wait_for(|watching| (*watching > 0) == wanted).await.is_err() {
            // The operation is gone.
            std::future::pending().await
        }
    }
}

/// Whether the caller wants an operation to end early, and the run to end, once it is recorded.
#[derive(Clone, Default)]
pub(crate) struct Interruption {
    requested: Arc<Notify>,
    run: Arc<Mutex<Option<Name>>>,
    /// The number of waits for a request.
    watching: watch::Sender<usize>,
    /// The receiver of events in place of the stream.
    observer: Arc<OnceLock<Arc<dyn Observer>>>,
}

/// A wait for an interruption.
pub(crate) struct Watching(watch::Sender<usize>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.send_modify(|watching| *watching -= 1);
    }
}

impl Interruption {
    fn request(&self) {
        self.requested.notify_one();
    }

    /// Declares that the operation can be interrupted, until the value is dropped.
    pub(crate) fn watch(&self) -> Watching {
        self.watching.send_modify(|watching| *watching += 1);
        Watching(self.watching.clone())
    }

    /// Waits until it is requested.
    pub(crate) async fn requested(&self) {
        let _watching = self.watch();
        self.requested.notified().await;
    }

    pub(crate) fn run(&self) -> Option<Name> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Sends events to the stream; a caller may ignore them.
struct Sender(mpsc::UnboundedSender<Event>, Interruption);

impl Observer for Sender {
    fn observe(&self, event: Event) {
        if let Event::Opened { run } = &event {
            *self.1.run.lock().unwrap_or_else(PoisonError::into_inner) = Some(run.clone());
        }
        match self.1.observer.get() {
            Some(observer) => observer.observe(event),
            None => drop(self.0.send(event)),
        }
    }
}
