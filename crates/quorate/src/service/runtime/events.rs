//! Sinks for the events of a runtime: one that redacts, and a file with JSON lines.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_kernel::ports::telemetry::{Event, EventKind, Telemetry};
use quorate_kernel::redact::Redactor;
use quorate_ledger::files;

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
/// How long `close` waits for the remaining events to be written.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A file of JSON lines with its own writer thread, so that a pipe without a reader or a slow disk delays no turn. If a
/// write to a regular file fails, the writer keeps the event and retries; a broken pipe ends the writer. If the queue is
/// full, events are dropped, and an event `events.dropped` counts them.
pub(crate) struct EventFile {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    state: Mutex<QueueState>,
    /// Notified of new events, and of the writer's end.
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<String>,
    /// Whether the writer is writing a line that it took from the queue.
    writing: bool,
    /// The number of dropped events that no line has counted yet.
    dropped: usize,
    /// The error of the last write.
    failed: Option<io::Error>,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// No more events are accepted; the writer writes the waiting ones.
    Closing,
    /// The writer has ended.
    Finished,
}

/// Events that could not be written to their file.
#[derive(Debug)]
pub(crate) struct UnwrittenEvents {
    pub(crate) count: usize,
    pub(crate) error: io::Error,
    /// The file that has them instead; `None` if they were dropped or could not be written there either.
    pub(crate) path: Option<PathBuf>,
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
    /// Opens a file for appending, and creates it if it is missing. The writer thread calls `ended` if the reader of a pipe
    /// is gone.
    ///
    /// # Errors
    /// If the file cannot be opened, or exists and does not begin with an event.
    pub(crate) fn open(
        path: &Path,
        ended: impl FnOnce(&io::Error) + Send + 'static,
    ) -> Result<Self, OpenError> {
        // Opening a pipe waits for its reader, which only the writer may do.
        let file = if is_pipe(path) { None } else { Some(append_to(path)?) };
        let is_regular = match &file {
            Some(file) => file.metadata()?.is_file(),
            None => false,
        };
        if is_regular && !accepts_events(path)? {
            return Err(OpenError::NotAnEventFile);
        }
        let shared =
            Arc::new(Shared { path: path.to_owned(), state: Mutex::default(), changed: Condvar::new() });
        let writer = Writer { shared: shared.clone(), file, torn: false, is_regular };
        std::thread::Builder::new().name("events".to_owned()).spawn(move || writer.write_all(ended))?;
        Ok(EventFile { shared })
    }

    /// Writes the waiting events. Events that cannot be written are saved in `dir`.
    ///
    /// # Errors
    /// If events were dropped or saved in `dir`.
    pub(crate) fn close(&self, dir: &Path) -> Result<(), UnwrittenEvents> {
        let mut state = self.shared.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Closing;
            self.shared.changed.notify_all();
        }
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, CLOSE_TIMEOUT, |state| state.phase != Phase::Finished);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let count = state.waiting.len() + usize::from(state.writing) + state.dropped;
        if count == 0 {
            return Ok(());
        }
        let slow = || io::Error::new(io::ErrorKind::TimedOut, "the reader does not read");
        let error = state.failed.take().unwrap_or_else(slow);
        let text: String = state.waiting.drain(..).collect();
        let kept = if text.is_empty() {
            None
        } else {
            files::quarantine_bytes(dir, "events.jsonl", text.as_bytes()).ok()
        };
        Err(UnwrittenEvents { count, error, path: kept.map(|piece| piece.path) })
    }
}

impl Telemetry for EventFile {
    fn emit(&self, event: &Event) {
        let line = |event: &Event| serde_json::to_string(event).map(|line| line + "\n").ok();
        let mut state = self.shared.lock();
        if state.phase != Phase::Open || state.waiting.len() >= QUEUE_CAPACITY {
            state.dropped += 1;
            return;
        }
        if state.dropped > 0 {
            let what = EventKind::EventsDropped { count: std::mem::take(&mut state.dropped) };
            state.waiting.extend(line(&Event { kind: what, ..event.clone() }));
        }
        state.waiting.extend(line(event));
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Writer {
    shared: Arc<Shared>,
    file: Option<File>,
    /// Whether the file may end in half a line.
    torn: bool,
    /// Whether a failed write may succeed later. A pipe without a reader does not recover.
    is_regular: bool,
}

impl Writer {
    fn write_all(mut self, ended: impl FnOnce(&io::Error)) {
        let mut on_error = Some(ended);
        while let Some(line) = self.next() {
            let written = self.write(&line);
            let mut state = self.shared.lock();
            state.writing = false;
            match written {
                Ok(()) => {
                    state.failed = None;
                    continue;
                }
                Err(error) => {
                    if let (Some(on_error), false) = (on_error.take(), self.is_regular) {
                        on_error(&error);
                    }
                    state.failed = Some(error);
                    state.waiting.push_front(line);
                }
            }
            if !self.is_regular || state.phase == Phase::Closing {
                break;
            }
            // Retries with the next event, and when the file is closed.
            drop(self.shared.changed.wait(state));
        }
        self.shared.lock().phase = Phase::Finished;
        self.shared.changed.notify_all();
    }

    /// The next line; `None` when the queue is empty and closed.
    fn next(&self) -> Option<String> {
        let is_idle = |state: &mut QueueState| state.waiting.is_empty() && state.phase == Phase::Open;
        let waited = self.shared.changed.wait_while(self.shared.lock(), is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let line = state.waiting.pop_front();
        state.writing = line.is_some();
        line
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => append_to(&self.shared.path)?,
        };
        if self.torn {
            file.write_all(b"\n")?;
            self.torn = false;
        }
        if let Err(error) = file.write_all(line.as_bytes()) {
            self.torn = true;
            return Err(error);
        }
        self.file = Some(file);
        Ok(())
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
