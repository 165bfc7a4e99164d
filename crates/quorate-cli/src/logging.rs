//! The log of what Quorate does, on standard error, for people who look for a problem: `-v`, `-vv`, `QUORATE_LOG`.
//!
//! It has ids, names, numbers and times, never texts of drafts, prompts or answers. Each line is redacted all the same.

use std::io::{self, Write};

use quorate::service::redaction::CurrentRedactor;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::{environment, workflow};

/// Which events are logged: directives as of the crate `env_logger`, such as `info` or `quorate_adapters=trace`.
pub(crate) const FILTER: &str = "QUORATE_LOG";
/// `json` writes each event as a line of JSON.
pub(crate) const FORMAT: &str = "QUORATE_LOG_FORMAT";

/// Starts the log, if anything asks for one. `verbosity` counts `-v`: runs and members, then also attempts and appends, then
/// everything. `QUORATE_LOG` comes before it.
///
/// # Errors
/// What is wrong with a variable, in words.
pub(crate) fn start(verbosity: u8, colours: bool, redactor: CurrentRedactor) -> Result<(), String> {
    let variable = |name| environment::variable(name).filter(|value| !value.is_empty());
    let directives = variable(FILTER).or(match verbosity {
        0 => None,
        1 => Some("quorate=info".to_owned()),
        2 => Some("quorate=debug".to_owned()),
        _ => Some("quorate=trace".to_owned()),
    });
    let json = match variable(FORMAT).as_deref() {
        None | Some("text") => false,
        Some("json") => true,
        Some(other) => return Err(format!("{FORMAT} is `{other}`; it is `text` or `json`")),
    };
    let Some(directives) = directives else { return Ok(()) };
    let filter = EnvFilter::builder().parse(&directives);
    let filter = filter.map_err(|error| format!("cannot read {FILTER} `{directives}`: {error}"))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(RedactedStderr(redactor))
        .with_ansi(colours && !json);
    match json {
        true => log.json().init(),
        false => log.init(),
    }
    Ok(())
}

/// Standard error behind redaction. The log hands over one event at a time.
struct RedactedStderr(CurrentRedactor);

impl<'a> MakeWriter<'a> for RedactedStderr {
    type Writer = RedactedLine<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        RedactedLine(&self.0)
    }
}

struct RedactedLine<'a>(&'a CurrentRedactor);

impl Write for RedactedLine<'_> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = self.0.redact_text(&String::from_utf8_lossy(event));
        io::stderr().lock().write_all(workflow::status_text(&text).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}
