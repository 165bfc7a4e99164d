//! The terminal: data goes to standard output; progress, hints and warnings go to standard error, each with the colours
//! that its stream supports.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use quorate_diagnostics::render::{Colour, TextOptions};
use quorate_diagnostics::{Body, codes};

use super::render::Format;
use super::workflow;
use quorate::service::error::ServiceError;
use quorate::service::redaction::CurrentRedactor;

/// How often standard output is checked for a reader.
const READER_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Standard output and standard error.
pub(super) struct Terminal {
    pub(super) stdout: TextOptions,
    pub(super) stderr: TextOptions,
    /// Whether standard error is a terminal whose user wants progress.
    pub(super) shows_progress: bool,
    /// Whether to print each step.
    pub(super) verbose: bool,
    /// Whether hints are suppressed.
    quiet: bool,
    failed: Cell<bool>,
    /// Whether standard output accepts no more data.
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

    /// Writes data: secrets are redacted, workflow commands neutralized, and invisible characters shown.
    pub(super) fn data(&self, text: &str) {
        self.raw_data(&workflow::visible_data(text));
    }

    /// Writes data for a model or another program: secrets are redacted and workflow commands neutralized; invisible
    /// characters stay.
    pub(super) fn raw_data(&self, text: &str) {
        self.write(&workflow::neutralize(&self.redactor.redact_text(text)));
    }

    /// Writes data in a format; only the GitHub format may contain workflow commands.
    pub(super) fn data_as(&self, format: Format, text: &str) {
        match format {
            Format::Github => self.write(&workflow::commands(&self.redactor.redact_text(text))),
            Format::Human | Format::Markdown | Format::Json | Format::Sarif | Format::Gitlab => {
                self.data(text)
            }
        }
    }

    /// Writes annotations whose parts are redacted already.
    pub(super) fn annotations(&self, text: &str) {
        self.write(&workflow::commands(text));
    }

    /// Writes text unchanged: Quorate's own, or a user's own input. A closed reader is ignored; any other failure is reported
    /// and fails the command. A runner that would execute workflow commands gets the neutralized text.
    pub(super) fn verbatim(&self, text: &str) {
        match is_file() {
            true => self.write(text),
            false => self.write(&workflow::neutralize(text)),
        }
    }

    /// Writes evidence byte for byte, since a changed byte would invalidate it.
    ///
    /// # Errors
    /// If the reader is a runner that would execute a part of it.
    pub(super) fn exact(&self, text: &str) -> Result<(), ServiceError> {
        if !is_file() && matches!(workflow::neutralize(text), Cow::Owned(_)) {
            let body =
                Body::new("a runner of GitHub reads standard output, and would execute a part of this text");
            let help = "write it to a file, with `> FILE` or, where the command has it, `--out FILE`";
            return Err(ServiceError::configuration(codes::FILE_UNWRITABLE, body.help(help)));
        }
        self.write(text);
        Ok(())
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

    /// Whether writing data has failed.
    pub(super) fn failed(&self) -> bool {
        self.failed.get()
    }

    /// Returns when the reader of standard output has gone: a command that continues only for it then ends.
    pub(super) async fn reader_gone(&self) {
        while !self.stdout_closed.get() && is_read() {
            tokio::time::sleep(READER_POLL_INTERVAL).await;
        }
    }

    /// Writes a hint, such as the next command or a count; `--quiet` suppresses it.
    pub(super) fn hint(&self, text: &str) {
        if !self.quiet {
            self.status(text);
        }
    }

    /// Writes to standard error: secrets are redacted, and workflow commands neutralized.
    pub(super) fn status(&self, text: &str) {
        let redacted = self.redactor.redact_text(text);
        let text = workflow::status_text(&redacted);
        let mut out = std::io::stderr().lock();
        let _ = out.write_all(text.as_bytes());
        if !text.ends_with('\n') && !text.is_empty() {
            let _ = out.write_all(b"\n");
        }
    }
}

/// Whether standard output still has a reader.
#[cfg(unix)]
fn is_read() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = std::io::stdout();
    // A pipe without a reader polls as an error; no other event is requested.
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec::default();
    poll(&mut polled, Some(&now)).is_err() || !polled[0].revents().contains(PollFlags::ERR)
}

/// On this system only the next write can tell.
#[cfg(not(unix))]
fn is_read() -> bool {
    true
}

/// Whether standard output is a file: its content can be read back byte for byte, and no runner interprets it.
#[cfg(unix)]
fn is_file() -> bool {
    use std::os::fd::AsFd as _;
    let copy = std::io::stdout().as_fd().try_clone_to_owned();
    copy.map(std::fs::File::from).and_then(|file| file.metadata()).is_ok_and(|metadata| metadata.is_file())
}

#[cfg(not(unix))]
fn is_file() -> bool {
    false
}

/// The terminal's width; 100 without a terminal.
fn width() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0).clamp(40, 120))
}
