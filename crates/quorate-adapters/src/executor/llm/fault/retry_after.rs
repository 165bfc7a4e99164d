//! How long a response asks to wait.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;

/// The wait that the headers ask for: `retry-after-ms`, else `retry-after` as seconds or as a date, which counts from the
/// response's own `date`.
pub(super) fn from_headers<'h>(header: &impl Fn(&str) -> Option<&'h str>) -> Option<Duration> {
    if let Some(ms) = header("retry-after-ms").and_then(number) {
        return duration(ms / 1_000.0);
    }
    let value = header("retry-after")?;
    seconds(value).or_else(|| {
        let wait = timestamp(value)?.duration_since(timestamp(header("date")?)?);
        Some(Duration::try_from(wait).unwrap_or_default())
    })
}

/// A number of seconds, such as `45`, `45.8` or `45.8s`.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    let text = text.trim();
    duration(number(text.strip_suffix('s').unwrap_or(text))?)
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

fn duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// A date as HTTP has it.
fn timestamp(text: &str) -> Option<Timestamp> {
    rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()
}
