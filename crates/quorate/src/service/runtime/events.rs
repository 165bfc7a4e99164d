//! Where the events of a runtime go: JSON lines in a file, and to whoever watches.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quorate_kernel::ports::telemetry::{Event, Telemetry, What};
use quorate_kernel::redact::Redactor;
use quorate_ledger::aside;

/// Passes events on to several sinks, in order.
#[derive(Default)]
pub struct Fan(pub Vec<Arc<dyn Telemetry>>);

impl Telemetry for Fan {
    fn emit(&self, event: &Event) {
        self.0.iter().for_each(|sink| sink.emit(event));
    }
}

/// Passes events on without the secrets that an error may have in it.
pub struct Clean {
    /// What takes them out.
    pub redactor: Redactor,
    /// Where they go.
    pub to: Arc<dyn Telemetry>,
}

impl Telemetry for Clean {
    fn emit(&self, event: &Event) {
        let mut event = event.clone();
        if let What::DispatchFailed { error: text, .. }
        | What::ParticipantFailed { error: text, .. }
        | What::StateFailed { error: text, .. }
        | What::HookFailed { error: text, .. }
        | What::LedgerDiffers { what: text } = &mut event.what
        {
            *text = self.redactor.redact(text).0;
        }
        self.to.emit(&event);
    }
}

/// JSON lines in a file. What cannot be written is kept, and written as soon as it can be.
pub struct Lines {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<File>,
    waiting: VecDeque<String>,
    /// Whether the file may end in half a line.
    torn: bool,
}

/// Events that could not be written where they were to go.
#[derive(Debug)]
pub struct Kept {
    /// How many.
    pub count: usize,
    /// Why.
    pub error: io::Error,
    /// Where they are instead; `None` where that failed, too.
    pub path: Option<PathBuf>,
}

impl Lines {
    /// A file that is appended to, and made where it is not there.
    ///
    /// # Errors
    /// When it cannot be opened: somebody who wants events is not left without them from the start.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let state = State { file: Some(file), ..State::default() };
        Ok(Lines { path: path.to_owned(), state: Mutex::new(state) })
    }

    /// Writes what is waiting. What still cannot be written is put into `dir`.
    ///
    /// # Errors
    /// What became of it.
    pub fn close(&self, dir: &Path) -> Result<(), Kept> {
        let mut state = self.lock();
        let Err(error) = state.write(&self.path) else { return Ok(()) };
        let count = state.waiting.len();
        let text: String = state.waiting.drain(..).collect();
        let kept = aside::keep(dir, "events.jsonl", text.as_bytes());
        Err(Kept { count, error, path: kept.ok().map(|piece| piece.path) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Telemetry for Lines {
    fn emit(&self, event: &Event) {
        let Ok(mut line) = serde_json::to_string(event) else { return };
        line.push('\n');
        let mut state = self.lock();
        state.waiting.push_back(line);
        // Tried again with the next event, and at the end.
        let _ = state.write(&self.path);
    }
}

impl State {
    fn write(&mut self, path: &Path) -> io::Result<()> {
        while let Some(line) = self.waiting.front() {
            let mut file = match self.file.take() {
                Some(file) => file,
                None => OpenOptions::new().create(true).append(true).open(path)?,
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
            self.waiting.pop_front();
        }
        Ok(())
    }
}
