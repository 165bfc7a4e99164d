//! Sinks for the events of a runtime: one that redacts, and a file with JSON lines.

use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_kernel::ports::telemetry::{Event, EventKind, Telemetry};
use quorate_kernel::redact::Redactor;

use crate::service::disk;

/// Redacts secrets in error texts before it passes events on.
pub(super) struct RedactingSink {
    pub(super) redactor: Redactor,
    pub(super) inner: Arc<dyn Telemetry>,
}

impl Telemetry for RedactingSink {
    fn emit(&self, event: &Event) {
        let mut event = event.clone();
        if let EventKind::DispatchFailed { error: text, .. }
        | EventKind::ParticipantFailed { error: text, .. }
        | EventKind::StateFailed { error: text, .. }
        | EventKind::HookFailed { error: text, .. }
        | EventKind::LedgerDiffers { what: text } = &mut event.kind
        {
            *text = self.redactor.redact(text).0;
        }
        self.inner.emit(&event);
    }
}

/// How many events wait while the file cannot be written; further events are dropped and counted.
const QUEUE_CAPACITY: usize = 4_096;
/// The longest first line that counts as an event.
const MAX_FIRST_LINE_BYTES: u64 = 1 << 20;
/// How long [`EventFile::close`] waits for the remaining events to be written.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A file of JSON lines with its own writer thread, so that a pipe without a reader or a slow disk delays no turn. A failed
/// write ends the writer. If the queue is full, events are dropped, and an event `events.dropped` counts them.
pub(crate) struct EventFile {
    queue: Mutex<Queue>,
    /// Disconnected once the writer has ended.
    finished: Mutex<Receiver<Infallible>>,
}

struct Queue {
    /// `None` once it is closed.
    lines: Option<SyncSender<String>>,
    /// The number of dropped events that no line has counted yet.
    dropped: usize,
}

/// Why events cannot go to a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The file has other content, which events would damage.
    #[error("it contains other text than events")]
    NotAnEventFile,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl EventFile {
    /// Opens a file for appending, and creates it if it is missing. The writer thread calls `ended` after a failed write.
    ///
    /// # Errors
    /// If the file cannot be opened, or exists and does not begin with an event.
    pub(crate) fn open(
        path: &Path,
        ended: impl FnOnce(&io::Error) + Send + 'static,
    ) -> Result<Self, OpenError> {
        // Opening a pipe waits for its reader, which only the writer may do.
        let file = if is_pipe(path) { None } else { Some(append_to(path)?) };
        if let Some(file) = &file
            && file.metadata()?.is_file()
            && !accepts_events(path)?
        {
            return Err(OpenError::NotAnEventFile);
        }
        let (lines, waiting) = mpsc::sync_channel::<String>(QUEUE_CAPACITY);
        let (finish, finished) = mpsc::channel();
        let path = path.to_owned();
        let write = move || {
            let mut file = file.map_or_else(|| append_to(&path), Ok)?;
            waiting.iter().try_for_each(|line| file.write_all(line.as_bytes()))
        };
        std::thread::Builder::new().name("events".to_owned()).spawn(move || {
            let _finish = finish;
            if let Err(error) = write() {
                ended(&error);
            }
        })?;
        let queue = Queue { lines: Some(lines), dropped: 0 };
        Ok(EventFile { queue: Mutex::new(queue), finished: Mutex::new(finished) })
    }

    /// Waits until the waiting events are written; returns `false` if that takes too long.
    pub(crate) fn close(&self) -> bool {
        self.lock().lines = None;
        let finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.recv_timeout(CLOSE_TIMEOUT) != Err(RecvTimeoutError::Timeout)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Telemetry for EventFile {
    fn emit(&self, event: &Event) {
        let mut queue = self.lock();
        let Some(lines) = queue.lines.clone() else { return };
        let send = |event: &Event| {
            serde_json::to_string(event).is_ok_and(|line| lines.try_send(line + "\n").is_ok())
        };
        let dropped = EventKind::EventsDropped { count: queue.dropped };
        if queue.dropped > 0 && send(&Event { kind: dropped, ..event.clone() }) {
            queue.dropped = 0;
        }
        if !send(event) {
            queue.dropped += 1;
        }
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn is_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// Whether a file is empty or begins with an event. No other line that Quorate writes has all of these fields.
fn accepts_events(path: &Path) -> io::Result<bool> {
    #[derive(serde::Deserialize)]
    #[expect(dead_code, reason = "parsing checks that the fields exist")]
    struct Head {
        cycle: u64,
        at: String,
        kind: String,
    }
    let mut first = Vec::new();
    BufReader::new(disk::open(path)?.take(MAX_FIRST_LINE_BYTES)).read_until(b'\n', &mut first)?;
    Ok(first.is_empty() || serde_json::from_slice::<Head>(&first).is_ok())
}
