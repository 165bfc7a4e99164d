//! Time: the one place where the kernel reads a clock.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serializer;

/// Tells the time that is recorded with events.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch, UTC.
    fn now_ms(&self) -> i64;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Clock for System {
    #[expect(clippy::disallowed_methods, reason = "the one reading of the wall clock")]
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

pub use quorate_manifest::timestamp::{format as rfc3339, parse_lenient as parse_rfc3339};

/// Serializes a time in milliseconds since the Unix epoch as [`rfc3339`] writes it.
///
/// # Errors
/// As the serializer.
pub fn as_rfc3339<S: Serializer>(ms: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*ms))
}

/// As [`as_rfc3339`]; null without a time.
///
/// # Errors
/// As the serializer.
pub fn as_optional_rfc3339<S: Serializer>(ms: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    match ms {
        Some(ms) => as_rfc3339(ms, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_with_milliseconds() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(1_779_128_591_504), "2026-05-18T18:23:11.504Z");
        assert_eq!(parse_rfc3339("2026-05-18T18:23:11.504Z"), Some(1_779_128_591_504));
    }
}
