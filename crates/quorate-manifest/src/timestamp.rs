//! RFC 3339 times of manifests.

use jiff::civil::{DateTime, date};

use crate::duration::IsoDuration;

/// The Unix epoch in UTC.
const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// A time in milliseconds since the Unix epoch; `None` if the text is not a time with an offset.
pub fn parse(text: &str) -> Option<i64> {
    let at_ms = parse_lenient(text)?;
    // jiff accepts more than RFC 3339: a time without colons, a bracketed zone.
    let shape =
        text.len() >= 20 && text.as_bytes().get(4) == Some(&b'-') && text.as_bytes().get(13) == Some(&b':');
    (shape && !text.contains('[')).then_some(at_ms)
}

/// Like [`parse`], but also accepts a time without colons or with a bracketed zone, for texts of other tools.
pub fn parse_lenient(text: &str) -> Option<i64> {
    match text.parse::<jiff::Timestamp>() {
        Ok(at) => Some(at.as_millisecond()),
        // `Timestamp` excludes the calendar's last day, which is in the year 10000 in some zones.
        Err(_) => {
            let civil: DateTime = text.strip_suffix('Z')?.parse().ok()?;
            i64::try_from(civil.duration_since(EPOCH).as_millis()).ok()
        }
    }
}

/// A time in the form of records: RFC 3339, UTC, milliseconds. Times outside of jiff's calendar are clamped to it.
pub fn format(at_ms: i64) -> String {
    let at = EPOCH.checked_add(jiff::SignedDuration::from_millis(at_ms));
    let at = at.unwrap_or(if at_ms < 0 { DateTime::MIN } else { DateTime::MAX });
    format!("{at:.3}Z")
}

/// The end of a duration that starts at a time. Years and months use calendar arithmetic in UTC (B11).
pub fn add_duration(at_ms: i64, iso: IsoDuration) -> i64 {
    let Ok(at) = jiff::Timestamp::from_millisecond(at_ms) else { return i64::MAX };
    let span = iso.to_string().parse::<jiff::Span>();
    let civil = jiff::tz::Offset::UTC.to_datetime(at);
    let later = span.and_then(|span| civil.checked_add(span));
    let later = later.and_then(|civil| jiff::tz::Offset::UTC.to_timestamp(civil));
    later.map_or(i64::MAX, jiff::Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use super::{add_duration, format, parse};

    #[test]
    fn a_duration_goes_by_the_calendar() {
        // B11
        let later = |at: &str, iso: &str| {
            let iso = iso.parse().unwrap_or_else(|error| panic!("{iso}: {error}"));
            format(add_duration(parse(at).unwrap_or_default(), iso))
        };
        assert_eq!(later("2026-01-31T10:00:00Z", "P1M"), "2026-02-28T10:00:00.000Z");
        assert_eq!(later("2026-01-31T10:00:00Z", "P14DT1H"), "2026-02-14T11:00:00.000Z");
        assert_eq!(later("2024-02-29T00:00:00.5Z", "P1Y"), "2025-02-28T00:00:00.500Z");
    }

    #[test]
    fn every_day_of_the_calendar_is_read_as_it_is_written() {
        for text in [
            "0000-01-01T00:00:00.000Z",
            "1969-12-31T23:59:59.999Z",
            "9999-12-30T22:00:00.999Z",
            "9999-12-30T22:00:01.000Z",
            "9999-12-31T23:59:59.999Z",
        ] {
            assert_eq!(parse(text).map(format).as_deref(), Some(text));
        }
        assert_eq!(format(i64::MAX), "9999-12-31T23:59:59.999Z");
        for text in ["9999-12-32T00:00:00Z", "9999-12-31T24:00:00Z", "9999-12-31", "9999-12-31T10:00:00"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_has_a_date_a_clock_and_an_offset() {
        assert_eq!(parse("1970-01-01T00:00:01Z"), Some(1000));
        assert_eq!(parse("1970-01-01T01:00:00.5+01:00"), Some(500));
        for text in
            ["", "2026-04-21", "2026-04-21T09:00:00", "2026-13-01T00:00:00Z", "yesterday", "20260421T090000Z"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
