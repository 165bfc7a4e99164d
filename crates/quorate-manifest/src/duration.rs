//! Durations as manifests write them: a whole number and one unit.

mod iso;

use std::time::Duration;

pub use iso::IsoDuration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not a number followed by a unit.
    #[error("a duration is a whole number and a unit: 500ms, 90s, 10m, 2h or 1d")]
    Syntax,
    /// Longer than [`MAX_DURATION`].
    #[error("a duration is at most 36500d")]
    TooLong,
    #[error("a duration is longer than zero")]
    Zero,
}

/// About a hundred years.
pub const MAX_DURATION: Duration = Duration::from_secs(36_500 * 86_400);

/// Parses a duration such as `500ms`, `90s`, `10m`, `2h` or `1d`.
///
/// # Errors
/// The text has another form (a sign, a space, a fraction, several units), or the duration is zero or too long.
pub fn parse(text: &str) -> Result<Duration, Error> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or(Error::Syntax)?;
    let (digits, unit) = text.split_at(unit_at);
    if digits.is_empty() {
        return Err(Error::Syntax);
    }
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(Error::Syntax),
    };
    let count: u64 = digits.parse().map_err(|_| Error::TooLong)?;
    let duration = Duration::from_millis(count.checked_mul(unit_ms).ok_or(Error::TooLong)?);
    match duration {
        Duration::ZERO => Err(Error::Zero),
        long if long > MAX_DURATION => Err(Error::TooLong),
        fine => Ok(fine),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_unit() {
        let seconds = |text| parse(text).map(|duration| duration.as_secs_f64());
        assert_eq!(seconds("500ms"), Ok(0.5));
        assert_eq!(seconds("90s"), Ok(90.0));
        assert_eq!(seconds("120s"), Ok(120.0));
        assert_eq!(seconds("10m"), Ok(600.0));
        assert_eq!(seconds("2h"), Ok(7_200.0));
        assert_eq!(seconds("1d"), Ok(86_400.0));
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "", "s", "90", "90 s", " 90s", "90s ", "-90s", "+90s", "1.5h", "1h30m", "90S", "PT90S",
            "14 days", "٣s",
        ] {
            assert_eq!(parse(text), Err(Error::Syntax), "{text:?}");
        }
        assert_eq!(parse("0s"), Err(Error::Zero));
        assert_eq!(parse("99999999999999999999s"), Err(Error::TooLong));
        assert_eq!(parse("18446744073709551615d"), Err(Error::TooLong));
        assert_eq!(parse("36501d"), Err(Error::TooLong));
    }
}
