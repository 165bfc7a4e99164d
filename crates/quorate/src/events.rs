//! What happens while a run goes on, as a stream.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorate_kernel::observer::Observer;
use tokio::sync::mpsc;

use crate::error::Error;

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The run is recorded, and can be resumed from now on.
    Opened {
        /// Its id.
        run: String,
    },
    /// A member is asked.
    Asked {
        /// The member.
        member: String,
        /// What for: `round1`, `vote`, …
        step: String,
    },
    /// An attempt gave nothing that can be used, and another follows.
    Retried {
        /// The member.
        member: String,
        /// What for.
        step: String,
        /// Why the first was not enough.
        why: String,
    },
    /// A member was asked, and that is over.
    Answered {
        /// The member.
        member: String,
        /// What for.
        step: String,
        /// `answered`, or why there is no answer: `timed_out`, `failed`, `schema_failed`, …
        status: String,
        /// How long it took.
        took: Duration,
    },
}

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
        let observer = Arc::new(Sender { events: send, asked: Mutex::default() });
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

/// Observes, and sends what it sees.
struct Sender {
    events: mpsc::UnboundedSender<Event>,
    /// The member and step of each invocation that was begun.
    asked: Mutex<BTreeMap<String, (String, String)>>,
}

impl Sender {
    fn send(&self, event: Event) {
        // Nobody has to listen.
        let _ = self.events.send(event);
    }

    fn asked(&self, id: &str) -> (String, String) {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.get(id).cloned().unwrap_or_else(|| (id.to_owned(), String::new()))
    }
}

impl Observer for Sender {
    fn opened(&self, run: &str) {
        self.send(Event::Opened { run: run.to_owned() });
    }

    fn asked(&self, id: &str, member: &str, step: &str) {
        let (member, step) = (member.to_owned(), step.to_owned());
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.insert(id.to_owned(), (member.clone(), step.clone()));
        drop(asked);
        self.send(Event::Asked { member, step });
    }

    fn retried(&self, id: &str, why: &str) {
        let (member, step) = self.asked(id);
        self.send(Event::Retried { member, step, why: why.to_owned() });
    }

    fn ended(&self, id: &str, status: &str, took: Duration) {
        let (member, step) = self.asked(id);
        self.send(Event::Answered { member, step, status: status.to_owned(), took });
    }
}
