//! The terminal: what is data goes to standard output, what is talk to standard error, each as plain or colourful
//! as its end can show.

use std::cell::Cell;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use quorate_diagnostics::render::{Colour, TextOptions};

use super::render::Format;
use super::workflow;
use quorate::service::redaction::CurrentRedactor;

/// How often it is looked whether standard output still has a reader.
const READER_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Both ends.
pub(super) struct Terminal {
    /// How standard output looks.
    pub(super) stdout: TextOptions,
    /// How standard error looks.
    pub(super) stderr: TextOptions,
    /// Whether somebody watches standard error and wants to see what goes on.
    pub(super) shows_progress: bool,
    /// Whether each step is told.
    pub(super) verbose: bool,
    /// Whether nothing is said that is neither result, warning nor error.
    quiet: bool,
    failed: Cell<bool>,
    /// Whether standard output takes nothing any more.
    stdout_closed: Cell<bool>,
    redactor: CurrentRedactor,
}

impl Terminal {
    pub(super) fn from_process(redacted: CurrentRedactor, quiet: bool, verbose: u8) -> Self {
        let colour = |choice| match choice {
            anstream::ColorChoice::Never => Colour::Off,
            _ => Colour::On,
        };
        let width = width();
        Terminal {
            stdout: TextOptions { colour: colour(anstream::AutoStream::choice(&std::io::stdout())), width },
            stderr: TextOptions { colour: colour(anstream::AutoStream::choice(&std::io::stderr())), width },
            shows_progress: !quiet && verbose == 0 && std::io::stderr().is_terminal(),
            verbose: verbose > 0,
            quiet,
            failed: Cell::new(false),
            stdout_closed: Cell::new(false),
            redactor: redacted,
        }
    }

    /// Writes data, without secrets and workflow commands, and so that every character is seen.
    pub(super) fn data(&self, text: &str) {
        self.raw_data(&workflow::visible_data(text));
    }

    /// Writes data that is for a model or another program, without secrets and workflow commands: what is not seen in it
    /// stays what it is.
    pub(super) fn raw_data(&self, text: &str) {
        self.write(&workflow::neutralize(&self.redactor.redact_text(text)));
    }

    /// Writes data in a format, of which one consists of workflow commands.
    pub(super) fn data_as(&self, format: Format, text: &str) {
        match format {
            Format::Github => self.write(&workflow::commands(&self.redactor.redact_text(text))),
            Format::Human | Format::Markdown | Format::Json | Format::Sarif => self.data(text),
        }
    }

    /// Writes data as it is: what is ours, or what somebody has given to get it back. A reader that has gone away is no error; anything else is said, and the command fails for it.
    /// Only a runner that would read it as commands is not given it so.
    pub(super) fn verbatim(&self, text: &str) {
        match is_file() {
            true => self.write(text),
            false => self.write(&workflow::neutralize(text)),
        }
    }

    fn write(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) else { return };
        self.stdout_closed.set(true);
        if error.kind() != std::io::ErrorKind::BrokenPipe {
            self.status(&format!("cannot write to standard output: {error}"));
            self.failed.set(true);
        }
    }

    /// Whether data was lost on the way out.
    pub(super) fn failed(&self) -> bool {
        self.failed.get()
    }

    /// Returns when the reader of standard output has gone away: a command that goes on for it alone ends then.
    pub(super) async fn reader_gone(&self) {
        while !self.stdout_closed.get() && is_read() {
            tokio::time::sleep(READER_POLL_INTERVAL).await;
        }
    }

    /// Writes what helps and nobody depends on: what to do next, how much was looked at. `--quiet` leaves it out.
    pub(super) fn hint(&self, text: &str) {
        if !self.quiet {
            self.status(text);
        }
    }

    /// Writes talk, without secrets and workflow commands.
    pub(super) fn status(&self, text: &str) {
        let shown = self.redactor.redact_text(text);
        let text = workflow::status_text(&shown);
        let mut out = std::io::stderr().lock();
        let _ = out.write_all(text.as_bytes());
        if !text.ends_with('\n') && !text.is_empty() {
            let _ = out.write_all(b"\n");
        }
    }
}

/// Whether standard output can still be read by somebody.
#[cfg(unix)]
fn is_read() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = std::io::stdout();
    // A pipe without a reader is in error; nothing else is asked.
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec::default();
    poll(&mut polled, Some(&now)).is_err() || !polled[0].revents().contains(PollFlags::ERR)
}

/// Where it cannot be asked, the next write says so.
#[cfg(not(unix))]
fn is_read() -> bool {
    true
}

/// Whether standard output is a file: it can be read back byte for byte, and no runner reads it.
#[cfg(unix)]
fn is_file() -> bool {
    use std::os::fd::AsFd as _;
    let copy = std::io::stdout().as_fd().try_clone_to_owned();
    copy.map(std::fs::File::from).and_then(|file| file.metadata()).is_ok_and(|about| about.is_file())
}

#[cfg(not(unix))]
fn is_file() -> bool {
    false
}

/// The terminal's width; 100 where there is none.
fn width() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0).clamp(40, 120))
}
