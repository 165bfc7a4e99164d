//! The log of what Quorate does, on standard error, for people who look for a problem: `-v`, `-vv`, `QUORATE_LOG`.
//!
//! It has ids, names, numbers and times, never texts of drafts, prompts or answers. Each line is redacted all the same.

use std::io::{self, Write};

use quorate::Quorate;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::{environment, terminal};

/// Which events are logged: directives as of the crate `env_logger`, such as `info` or `quorate_adapters=trace`.
pub(crate) const FILTER: &str = "QUORATE_LOG";
/// `json` writes each event as a line of JSON.
pub(crate) const FORMAT: &str = "QUORATE_LOG_FORMAT";

/// The log and the traces, which end with the command.
pub(crate) struct Logging {
    #[cfg(feature = "otel")]
    traces: Option<crate::traces::Traces>,
}

impl Logging {
    /// Starts the log and the traces, if anything asks for them. `verbosity` counts `-v`: runs and members, then also attempts
    /// and appends, then everything. `QUORATE_LOG` comes before it.
    ///
    /// # Errors
    /// A message about an invalid variable.
    pub(crate) fn start(verbosity: u8, colours: bool, quorate: Quorate) -> Result<Logging, String> {
        let log = log(verbosity, colours, quorate)?;
        #[cfg(feature = "otel")]
        let logging = Logging { traces: crate::traces::Traces::start()? };
        #[cfg(not(feature = "otel"))]
        let logging = Logging {};
        #[cfg(feature = "otel")]
        let spans = logging.traces.as_ref().map(crate::traces::Traces::layer);
        #[cfg(not(feature = "otel"))]
        let spans = None::<tracing_subscriber::layer::Identity>;
        if log.is_some() || spans.is_some() {
            tracing_subscriber::registry().with(log).with(spans).init();
        }
        Ok(logging)
    }

    /// Ends the traces; returns the reason if some could not be sent.
    #[cfg_attr(not(feature = "otel"), expect(clippy::unused_self, reason = "nothing to end"))]
    pub(crate) fn close(self) -> Option<String> {
        #[cfg(feature = "otel")]
        let failure = self.traces.and_then(crate::traces::Traces::close);
        #[cfg(not(feature = "otel"))]
        let failure = None;
        failure.map(|why: String| format!("some traces could not be sent: {why}"))
    }
}

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

fn log(verbosity: u8, colours: bool, quorate: Quorate) -> Result<Option<BoxedLayer>, String> {
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
    let Some(directives) = directives else { return Ok(None) };
    let filter = EnvFilter::builder().parse(&directives);
    let filter = filter.map_err(|error| format!("cannot read {FILTER} `{directives}`: {error}"))?;
    let log =
        tracing_subscriber::fmt::layer().with_writer(RedactedStderr(quorate)).with_ansi(colours && !json);
    Ok(Some(match json {
        true => log.json().with_filter(filter).boxed(),
        false => log.with_filter(filter).boxed(),
    }))
}

/// Standard error behind redaction. The log hands over one event at a time.
struct RedactedStderr(Quorate);

impl<'a> MakeWriter<'a> for RedactedStderr {
    type Writer = RedactedLine<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        RedactedLine(&self.0)
    }
}

struct RedactedLine<'a>(&'a Quorate);

impl Write for RedactedLine<'_> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = self.0.redact_text(&String::from_utf8_lossy(event));
        io::stderr().lock().write_all(terminal::status_text(&text).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}
