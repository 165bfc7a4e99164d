//! Times and days as text.

use jiff::Timestamp;

/// RFC 3339, UTC, with milliseconds.
pub fn instant(ms: i64) -> String {
    strftime(ms, "%Y-%m-%dT%H:%M:%S%.3fZ")
}

/// The date of a day number since the Unix epoch.
pub fn day(day: i64) -> String {
    strftime(day.saturating_mul(24 * 3600 * 1000), "%Y-%m-%d")
}

/// A time in UTC, in this format.
pub fn strftime(ms: i64, format: &str) -> String {
    // Only a damaged record has a time outside of the calendar, and a view must still show it.
    Timestamp::from_millisecond(ms)
        .map_or_else(|_| format!("{ms} ms"), |time| time.strftime(format).to_string())
}
