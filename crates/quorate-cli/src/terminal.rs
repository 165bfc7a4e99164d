//! The terminal: data goes to standard output; progress, hints and warnings go to standard error, each with the colours
//! that its stream supports.
//!
//! A runner of GitHub Actions executes lines of a step's output that begin with `::` (after blanks), and `##[` anywhere in a
//! line. Foreign text must not contain such workflow commands: [`workflow_commands`] writes intended ones, and all other
//! output passes through [`neutralize`]. The question whether to trust a workspace is asked here as well.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::sync::OnceLock;
use std::time::Duration;

use clap::ValueEnum;
use quorate::view::layout::one_line as shown_line;
use quorate::{Builder, Consent, ConsentAnswer, Error, ErrorKind, Quorate};
use quorate_diagnostics::render::{Colour, TextOptions};
use quorate_diagnostics::{Body, codes, invisible};
use serde::de::IgnoredAny;

use crate::environment;

/// The format of what a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Human,
    /// A line for each issue: path:line:column: severity: issue (reviewers)
    Short,
    /// One JSON object
    Json,
    /// Markdown for a pull request
    Markdown,
    /// SARIF 2.1.0, for code scanning tools
    Sarif,
    /// GitHub workflow annotations
    Github,
    /// A GitLab Code Quality report
    Gitlab,
}

/// How much progress a user wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Nothing,
    /// Waits of more than two seconds, a line for each: standard error is a file or a pipe, or has a log.
    Waits,
    All,
}

/// How often standard output is checked for a reader.
const READER_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Standard output and standard error.
pub(super) struct Terminal {
    pub(super) stdout: TextOptions,
    pub(super) stderr: TextOptions,
    /// The format that the command line asks for; text to read where a command has a format of its own.
    pub(super) format: Format,
    /// The progress that standard error gets.
    pub(super) progress: Shown,
    /// Whether to print each step.
    pub(super) verbose: bool,
    /// Whether hints are suppressed.
    quiet: bool,
    /// Whether writing data has failed.
    pub(super) failed: Cell<bool>,
    /// Whether standard output accepts no more data.
    stdout_closed: Cell<bool>,
    /// Redacts secrets.
    quorate: Quorate,
}

impl Terminal {
    pub(super) fn from_process(quorate: Quorate, format: Format, quiet: bool, verbose: u8) -> Self {
        let colour = |choice| match choice {
            anstream::ColorChoice::Never => Colour::Off,
            _ => Colour::On,
        };
        let width = width();
        Terminal {
            stdout: TextOptions { colour: colour(anstream::AutoStream::choice(&std::io::stdout())), width },
            stderr: TextOptions { colour: colour(anstream::AutoStream::choice(&std::io::stderr())), width },
            format,
            progress: match std::io::stderr().is_terminal() && verbose == 0 {
                _ if quiet => Shown::Nothing,
                true => Shown::All,
                false => Shown::Waits,
            },
            verbose: verbose > 0,
            quiet,
            failed: Cell::new(false),
            stdout_closed: Cell::new(false),
            quorate,
        }
    }

    /// Writes data: secrets are redacted, workflow commands neutralized, and invisible characters shown.
    pub(super) fn data(&self, text: &str) {
        self.raw_data(&visible_data(text));
    }

    /// Writes data for a model or another program: secrets are redacted and workflow commands neutralized; invisible
    /// characters stay.
    pub(super) fn raw_data(&self, text: &str) {
        self.write(&neutralize(&self.quorate.redact_text(text)));
    }

    /// Writes data in a format; only the GitHub format may contain workflow commands.
    pub(super) fn data_as(&self, format: Format, text: &str) {
        match format {
            Format::Github => self.write(&workflow_commands(&self.quorate.redact_text(text))),
            Format::Human
            | Format::Short
            | Format::Markdown
            | Format::Json
            | Format::Sarif
            | Format::Gitlab => self.data(text),
        }
    }

    /// Writes annotations whose parts are redacted already.
    pub(super) fn annotations(&self, text: &str) {
        self.write(&workflow_commands(text));
    }

    /// Writes text unchanged: Quorate's own, or a user's own input. A closed reader is ignored; any other failure is reported
    /// and fails the command. A runner that would execute workflow commands gets the neutralized text.
    pub(super) fn verbatim(&self, text: &str) {
        match is_file() {
            true => self.write(text),
            false => self.write(&neutralize(text)),
        }
    }

    /// Writes evidence byte for byte, since a changed byte would invalidate it.
    ///
    /// # Errors
    /// If the reader is a runner that would execute a part of it.
    pub(super) fn exact(&self, text: &str) -> Result<(), Error> {
        if !is_file() && matches!(neutralize(text), Cow::Owned(_)) {
            let body =
                Body::new("a runner of GitHub reads standard output, and would execute a part of this text");
            let help = "write it to a file, with `> FILE` or, where the command has it, `--out FILE`";
            return Err(Error::new(ErrorKind::Configuration, codes::FILE_UNWRITABLE, body.help(help)));
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
        let redacted = self.quorate.redact_text(text);
        let text = status_text(&redacted);
        let mut out = std::io::stderr().lock();
        let _ = out.write_all(text.as_bytes());
        if !text.ends_with('\n') && !text.is_empty() {
            let _ = out.write_all(b"\n");
        }
    }
}

/// Whether standard output still has a reader.
fn is_read() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = std::io::stdout();
    // A pipe without a reader polls as an error; no other event is requested.
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec::default();
    poll(&mut polled, Some(&now)).is_err() || !polled[0].revents().contains(PollFlags::ERR)
}

/// Whether standard output is a file: its content can be read back byte for byte, and no runner interprets it.
fn is_file() -> bool {
    use std::os::fd::AsFd as _;
    let copy = std::io::stdout().as_fd().try_clone_to_owned();
    copy.map(std::fs::File::from).and_then(|file| file.metadata()).is_ok_and(|metadata| metadata.is_file())
}

/// At most `limit + 1` bytes of standard input.
///
/// # Errors
/// If it cannot be read.
pub(super) fn read_stdin(limit: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(limit as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| {
        let body = Body::new(format!("cannot read standard input: {error}"));
        Error::new(ErrorKind::Configuration, codes::USAGE, body)
    })?;
    Ok(bytes)
}

/// The terminal's width; without a terminal that of the variable `COLUMNS`, or 100.
pub(super) fn width() -> usize {
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let named = || environment::variable("COLUMNS")?.parse().ok();
    terminal.or_else(named).map_or(100, |width| width.clamp(40, 120))
}

/// Whether a runner reads the output.
pub(super) fn is_read_by_runner() -> bool {
    static READ: OnceLock<bool> = OnceLock::new();
    *READ.get_or_init(|| environment::variable("GITHUB_ACTIONS").is_some_and(|value| !value.is_empty()))
}

/// A text without commands, if a runner reads it. JSON keeps its values.
pub(super) fn neutralize(text: &str) -> Cow<'_, str> {
    if is_read_by_runner() { escape_commands(text) } else { Cow::Borrowed(text) }
}

/// Lines that are one command each.
pub(super) fn workflow_commands(text: &str) -> Cow<'_, str> {
    match is_read_by_runner() && text.contains("##[") {
        true => Cow::Owned(text.replace("##[", "#\\#[")),
        false => Cow::Borrowed(text),
    }
}

/// A text without invisible characters that change how others look.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    // Escape characters begin Quorate's own colours.
    invisible::escape_invisible_except(text, |c| c == '\u{1b}')
}

/// Data with visible characters only: JSON of the same values, or text.
pub(super) fn visible_data(text: &str) -> Cow<'_, str> {
    match visible(text) {
        Cow::Owned(_) if is_json(text) => invisible::escape_invisible_json(text),
        seen => seen,
    }
}

/// A message for people: without commands, and with visible characters only.
pub(super) fn status_text(text: &str) -> Cow<'_, str> {
    match neutralize(text) {
        Cow::Borrowed(text) => visible(text),
        Cow::Owned(text) => Cow::Owned(visible(&text).into_owned()),
    }
}

fn escape_commands(text: &str) -> Cow<'_, str> {
    if !text.contains("##[") && !text.contains("::") {
        return Cow::Borrowed(text);
    }
    // In JSON number signs occur only in strings, and no line begins with a colon.
    if is_json(text) {
        return Cow::Owned(text.replace("##[", "#\\u0023["));
    }
    let mut inert = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive(['\n', '\r']) {
        let words = line.trim_start_matches(is_blank);
        inert.push_str(&line[..line.len() - words.len()]);
        if words.starts_with("::") {
            inert.push('\\');
        }
        inert.push_str(&words.replace("##[", "#\\#["));
    }
    Cow::Owned(inert)
}

/// Whether a text is a JSON value, or one on each line.
fn is_json(text: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    let begins_like_json = text.trim_start().starts_with(['{', '[', '"']);
    begins_like_json && (value(text) || text.lines().filter(|line| !line.trim().is_empty()).all(value))
}

/// Characters that a runner skips before a command, or does not show.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || invisible::is_invisible(c)
}

/// Asks only if input and output are terminals: an answer from a pipe is not a person's.
pub(super) fn asking(builder: Builder) -> Builder {
    match std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        true => builder.consent(TerminalPrompt),
        false => builder,
    }
}

struct TerminalPrompt;

impl Consent for TerminalPrompt {
    fn ask(&self, lines: &[String]) -> std::io::Result<ConsentAnswer> {
        anstream::eprintln!("This workspace is not trusted. Its files would:");
        for line in lines {
            anstream::eprintln!("  {}", shown_line(line));
        }
        anstream::eprint!("Trust them until they change? [y]es, [o]nce, [N]o: ");
        std::io::stderr().flush()?;
        wait_for_input()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        Ok(match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => ConsentAnswer::Always,
            "o" | "once" => ConsentAnswer::Once,
            _ => ConsentAnswer::No,
        })
    }
}

/// Waits for input. A blocking read would not end at Ctrl-C, which another thread handles; this wait does.
fn wait_for_input() -> std::io::Result<()> {
    let stdin = std::io::stdin();
    rustix::event::poll(&mut [rustix::event::PollFd::new(&stdin, rustix::event::PollFlags::IN)], None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_a_command() {
        for (text, expected) in [
            ("plain text, a::b and C++::d\n", "plain text, a::b and C++::d\n"),
            ("::add-mask::x\n", "\\::add-mask::x\n"),
            ("a\n \t::set-output name=a::b\r\n", "a\n \t\\::set-output name=a::b\r\n"),
            ("a\r::stop-commands::x", "a\r\\::stop-commands::x"),
            ("\u{a0}\u{3000}\u{feff}::debug::x", "\u{a0}\u{3000}\u{feff}\\::debug::x"),
            ("see ##[set-output name=a]b", "see #\\#[set-output name=a]b"),
            ("###[error]x ##[group]", "##\\#[error]x #\\#[group]"),
            ("{\"a\": \"##[error]x\"}\n", "{\"a\": \"#\\u0023[error]x\"}\n"),
            ("{\"a\": 1}\n{\"b\": \"###[x]\"}\n", "{\"a\": 1}\n{\"b\": \"##\\u0023[x]\"}\n"),
            ("{\"a\": 1}\n::add-mask::x\n", "{\"a\": 1}\n\\::add-mask::x\n"),
        ] {
            assert_eq!(escape_commands(text), expected, "{text:?}");
            assert_eq!(escape_commands(expected), expected, "{text:?}");
        }
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"##[a]": ["\\##[b]", "\"##[c]", "###[d] ::e::"]});
        for text in [value.to_string(), format!("{value:#}\n")] {
            let inert = escape_commands(&text);
            assert!(!inert.contains("##["), "{inert}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&inert).expect("JSON"), value);
        }
    }

    #[test]
    fn what_hides_is_seen() {
        assert_eq!(visible("a\u{202e}b\u{2028}c"), "a[U+202E]b[U+2028]c");
        assert_eq!(visible("\u{1b}[31ma\u{200b}\u{85}"), "\u{1b}[31ma[U+200B][U+0085]");
        assert_eq!(visible_data("{\"a\": \"\u{200b}\"}\n"), "{\"a\": \"\\u200b\"}\n");
        assert_eq!(visible("plain"), "plain");
    }
}
