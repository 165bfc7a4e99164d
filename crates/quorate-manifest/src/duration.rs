//! Durations as manifests write them: a whole number and one unit, or ISO 8601 in the public formats (`P14D`, `PT12H`,
//! `P1Y2M`).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize as _, Deserializer};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
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
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or(DurationError::Syntax)?;
    let (digits, unit) = text.split_at(unit_at);
    if digits.is_empty() {
        return Err(DurationError::Syntax);
    }
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(DurationError::Syntax),
    };
    let count: u64 = digits.parse().map_err(|_| DurationError::TooLong)?;
    let duration = Duration::from_millis(count.checked_mul(unit_ms).ok_or(DurationError::TooLong)?);
    match duration {
        Duration::ZERO => Err(DurationError::Zero),
        long if long > MAX_DURATION => Err(DurationError::TooLong),
        fine => Ok(fine),
    }
}

/// Deserializes a duration, for a value that has been checked.
///
/// # Errors
/// The value is not text.
pub fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    Ok(parse(&String::deserialize(from)?).ok())
}

/// The maximum length of a duration.
const MAX_YEARS: u64 = 100;

/// A duration of calendar and clock units. Years and months have no fixed length; they are added to a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct IsoDuration {
    pub years: u32,
    pub months: u32,
    pub weeks: u32,
    pub days: u32,
    pub hours: u32,
    pub minutes: u32,
    /// Seconds.
    pub seconds: u32,
}

/// Why a text is not a usable duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IsoDurationError {
    /// No units, or units in another order.
    #[error("it names no time; write P14D, P2W or PT12H")]
    Empty,
    /// Longer than 100 years.
    #[error("it is longer than {MAX_YEARS} years")]
    TooLong,
}

impl FromStr for IsoDuration {
    type Err = IsoDurationError;

    fn from_str(text: &str) -> Result<Self, IsoDurationError> {
        let rest = text.strip_prefix('P').ok_or(IsoDurationError::Empty)?;
        let (date, time) = match rest.split_once('T') {
            Some((date, time)) => (date, Some(time)),
            None => (rest, None),
        };
        let mut iso = IsoDuration::default();
        let dates =
            [('Y', &mut iso.years), ('M', &mut iso.months), ('W', &mut iso.weeks), ('D', &mut iso.days)];
        let some_date = parse_units(date, dates)?;
        let clock = [('H', &mut iso.hours), ('M', &mut iso.minutes), ('S', &mut iso.seconds)];
        let some_time = time.map(|time| parse_units(time, clock)).transpose()?;
        if some_time == Some(0) || some_date + some_time.unwrap_or(0) == 0 {
            return Err(IsoDurationError::Empty);
        }
        let units = [
            (iso.years, 366 * 86_400),
            (iso.months, 31 * 86_400),
            (iso.weeks, 7 * 86_400),
            (iso.days, 86_400),
            (iso.hours, 3_600),
            (iso.minutes, 60),
            (iso.seconds, 1_u64),
        ];
        let at_most_s: u64 = units.iter().map(|(count, unit_s)| u64::from(*count) * unit_s).sum();
        if at_most_s > MAX_YEARS * 366 * 86_400 { Err(IsoDurationError::TooLong) } else { Ok(iso) }
    }
}

/// Reads counts with their units, in order; returns their number.
fn parse_units<const N: usize>(
    mut text: &str,
    units: [(char, &mut u32); N],
) -> Result<usize, IsoDurationError> {
    let mut read = 0;
    for (unit, slot) in units {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0 && text[digits..].starts_with(unit) {
            *slot = text[..digits].parse().map_err(|_| IsoDurationError::TooLong)?;
            text = &text[digits + 1..];
            read += 1;
        }
    }
    if text.is_empty() { Ok(read) } else { Err(IsoDurationError::Empty) }
}

impl fmt::Display for IsoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |f: &mut fmt::Formatter<'_>, units: &[(u32, char)]| {
            units
                .iter()
                .filter(|(count, _)| *count > 0)
                .try_for_each(|(count, unit)| write!(f, "{count}{unit}"))
        };
        if *self == IsoDuration::default() {
            return f.write_str("PT0S");
        }
        f.write_str("P")?;
        part(f, &[(self.years, 'Y'), (self.months, 'M'), (self.weeks, 'W'), (self.days, 'D')])?;
        if self.hours + self.minutes + self.seconds > 0 {
            f.write_str("T")?;
        }
        part(f, &[(self.hours, 'H'), (self.minutes, 'M'), (self.seconds, 'S')])
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
            assert_eq!(parse(text), Err(DurationError::Syntax), "{text:?}");
        }
        assert_eq!(parse("0s"), Err(DurationError::Zero));
        assert_eq!(parse("99999999999999999999s"), Err(DurationError::TooLong));
        assert_eq!(parse("18446744073709551615d"), Err(DurationError::TooLong));
        assert_eq!(parse("36501d"), Err(DurationError::TooLong));
    }
}

#[cfg(test)]
mod iso_tests {
    use super::*;

    #[test]
    fn durations_read_and_print() {
        for text in ["P14D", "PT12H", "P1Y2M3W4DT5H6M7S", "P2W", "PT0S"] {
            assert_eq!(text.parse::<IsoDuration>().map(|iso| iso.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("P0D".parse::<IsoDuration>(), Ok(IsoDuration::default()));
        for text in ["P", "PT", "P1DT", "14D", "P1H", "P1M1Y", "-P1D"] {
            assert_eq!(text.parse::<IsoDuration>(), Err(IsoDurationError::Empty), "{text}");
        }
        for text in ["P101Y", "P99999999999D", "PT3200000000S"] {
            assert_eq!(text.parse::<IsoDuration>(), Err(IsoDurationError::TooLong), "{text}");
        }
    }
}
