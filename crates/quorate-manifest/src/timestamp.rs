//! Times as manifests write them: RFC 3339.

/// A time in milliseconds since the Unix epoch; `None` where the text is no time with an offset.
pub fn read(text: &str) -> Option<i64> {
    let at: jiff::Timestamp = text.parse().ok()?;
    // jiff reads more than RFC 3339 has: a time without colons, a bracketed zone.
    let shape =
        text.len() >= 20 && text.as_bytes().get(4) == Some(&b'-') && text.as_bytes().get(13) == Some(&b':');
    (shape && !text.contains('[')).then(|| at.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_time_has_a_date_a_clock_and_an_offset() {
        assert_eq!(read("1970-01-01T00:00:01Z"), Some(1000));
        assert_eq!(read("1970-01-01T01:00:00.5+01:00"), Some(500));
        for text in
            ["", "2026-04-21", "2026-04-21T09:00:00", "2026-13-01T00:00:00Z", "yesterday", "20260421T090000Z"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
