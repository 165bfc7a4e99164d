//! ISO 8601 durations in manifests of the public formats: `P14D`, `PT12H`, `P1Y2M`.

use std::fmt;
use std::str::FromStr;

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
pub enum Error {
    /// No units, or units in another order.
    #[error("it names no time; write P14D, P2W or PT12H")]
    Empty,
    /// Longer than [`MAX_YEARS`].
    #[error("it is longer than {MAX_YEARS} years")]
    TooLong,
}

impl FromStr for IsoDuration {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let rest = text.strip_prefix('P').ok_or(Error::Empty)?;
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
            return Err(Error::Empty);
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
        if at_most_s > MAX_YEARS * 366 * 86_400 { Err(Error::TooLong) } else { Ok(iso) }
    }
}

/// Reads counts with their units, in order; returns their number.
fn parse_units<const N: usize>(mut text: &str, units: [(char, &mut u32); N]) -> Result<usize, Error> {
    let mut read = 0;
    for (unit, slot) in units {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0 && text[digits..].starts_with(unit) {
            *slot = text[..digits].parse().map_err(|_| Error::TooLong)?;
            text = &text[digits + 1..];
            read += 1;
        }
    }
    if text.is_empty() { Ok(read) } else { Err(Error::Empty) }
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
    fn durations_read_and_print() {
        for text in ["P14D", "PT12H", "P1Y2M3W4DT5H6M7S", "P2W", "PT0S"] {
            assert_eq!(text.parse::<IsoDuration>().map(|iso| iso.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("P0D".parse::<IsoDuration>(), Ok(IsoDuration::default()));
        for text in ["P", "PT", "P1DT", "14D", "P1H", "P1M1Y", "-P1D"] {
            assert_eq!(text.parse::<IsoDuration>(), Err(Error::Empty), "{text}");
        }
        for text in ["P101Y", "P99999999999D", "PT3200000000S"] {
            assert_eq!(text.parse::<IsoDuration>(), Err(Error::TooLong), "{text}");
        }
    }
}
