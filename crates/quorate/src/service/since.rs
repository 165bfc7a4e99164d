//! `--since`: a span back from now (`30m`, `24h`, `7d`, `2w`), a date or time, or `all`.

use quorate_kernel::clock::parse_rfc3339;

/// Why a `--since` is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a span or time: write 30m, 24h, 7d, 2w, 2026-05-18, 2026-05-18T10:00:00Z or all")]
pub struct Error(String);

/// The earliest time that counts, in milliseconds since the Unix epoch; `None` for all.
///
/// # Errors
/// If it is neither.
pub fn parse(text: &str, now_ms: i64) -> Result<Option<i64>, Error> {
    let bad = || Error(text.to_owned());
    let trimmed = text.trim();
    if trimmed == "all" {
        return Ok(None);
    }
    let span = |unit: char, unit_ms: i64| {
        Some(trimmed.strip_suffix(unit)?.parse::<u32>().ok().map(|n| i64::from(n) * unit_ms))
    };
    let hour = 3_600_000;
    for (unit, unit_ms) in [('h', hour), ('d', 24 * hour), ('w', 7 * 24 * hour), ('m', 60_000)] {
        if let Some(span) = span(unit, unit_ms) {
            return span.map(|span| Some(now_ms - span)).ok_or_else(bad);
        }
    }
    let as_time = [trimmed.to_owned(), format!("{trimmed}Z"), format!("{trimmed}T00:00:00Z")];
    as_time.iter().find_map(|text| parse_rfc3339(text)).map(Some).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_times_are_read() {
        let now = 1_000_000_000_000;
        assert_eq!(parse("24h", now), Ok(Some(now - 86_400_000)));
        assert_eq!(parse("7d", now), Ok(Some(now - 7 * 86_400_000)));
        assert_eq!(parse("all", now), Ok(None));
        assert_eq!(parse("1970-01-02", now), Ok(Some(86_400_000)));
        assert_eq!(parse("1970-01-01T01:00:00+01:00", now), Ok(Some(0)));
        for bad in ["", "h", "-3d", "soon", "7 days", "99999999999999999999d"] {
            assert!(parse(bad, now).is_err(), "{bad}");
        }
    }
}
