//! Values in requests and reports: times and days as text, `--since` as a span (`30m`, `24h`, `7d`, `2w`), a time or
//! `all`, and integers with bounds.

use std::time::Duration;

use jiff::Timestamp;
use quorate_kernel::clock::parse_rfc3339;
use quorate_manifest::money::Money;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Number;

/// RFC 3339, UTC, with milliseconds.
pub fn instant(ms: i64) -> String {
    strftime(ms, "%Y-%m-%dT%H:%M:%S%.3fZ")
}

/// The date of a day number since the Unix epoch.
pub fn day(day: i64) -> String {
    strftime(day.saturating_mul(24 * 3600 * 1000), "%Y-%m-%d")
}

/// A time in UTC, in this format.
pub(crate) fn strftime(ms: i64, format: &str) -> String {
    // Only a damaged record has a time outside of the calendar, and a view must still show it.
    Timestamp::from_millisecond(ms)
        .map_or_else(|_| format!("{ms} ms"), |time| time.strftime(format).to_string())
}

/// A time to the minute, in UTC, without a zone.
pub fn minute(ms: i64) -> String {
    strftime(ms, "%Y-%m-%d %H:%M")
}

/// A duration in readable precision: `21 ms`, `3.2 s`, `4 min 05 s`.
pub fn duration(time: Duration) -> String {
    match time.as_millis() {
        ms @ 0..1000 => format!("{ms} ms"),
        ms @ 1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        ms @ 60_000..3_600_000 => format!("{} min {:02} s", ms / 60_000, ms / 1000 % 60),
        ms => format!("{} h {:02} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}

/// Dollars with two decimals, rounded up to a cent: `0.42`.
pub fn dollars(money: Money) -> String {
    let cents = money.nanos().div_ceil(10_000_000);
    format!("{}.{:02}", digit_groups(cents / 100), cents % 100)
}

/// Digits in groups of three.
pub fn digit_groups(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Why a `--since` is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a span or time: write 30m, 24h, 7d, 2w, 2026-05-18, 2026-05-18T10:00:00Z or all")]
pub struct SinceError(String);

/// The earliest time that counts, in milliseconds since the Unix epoch; `None` for all.
///
/// # Errors
/// If it is neither.
pub fn parse_since(text: &str, now_ms: i64) -> Result<Option<i64>, SinceError> {
    let bad = || SinceError(text.to_owned());
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

/// An integer from `LEAST` to `MOST`, which may be written as `3.0`. Out of bounds is an error.
#[derive(Debug, Clone, Copy)]
pub struct Whole<const LEAST: u64, const MOST: u64>(u64);

impl<const LEAST: u64, const MOST: u64> Whole<LEAST, MOST> {
    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Number::deserialize(deserializer)?;
        let integer = number.as_u64().or_else(|| whole_float(number.as_f64()?));
        match integer.filter(|integer| (LEAST..=MOST).contains(integer)) {
            Some(integer) => Ok(Whole(integer)),
            None => Err(D::Error::custom(format!(
                "it is {number}; it must be {}",
                match MOST {
                    u64::MAX => format!("a whole number of at least {LEAST}"),
                    _ => format!("a whole number from {LEAST} to {MOST}"),
                }
            ))),
        }
    }
}

/// A float without a fraction: some clients write all numbers as floats.
fn whole_float(float: f64) -> Option<u64> {
    // Up to here a float represents every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole and within bounds"
    )]
    (float.fract() == 0.0 && (0.0..=EXACT).contains(&float)).then_some(float as u64)
}

impl<const LEAST: u64, const MOST: u64> JsonSchema for Whole<LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Whole{LEAST}To{MOST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        match MOST {
            // Many clients cannot represent the maximum of u64.
            u64::MAX => json_schema!({"type": "integer", "minimum": LEAST}),
            _ => json_schema!({"type": "integer", "minimum": LEAST, "maximum": MOST}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(digit_groups), ["0", "999", "1,000", "1,234,567"]);
        let amounts =
            [0, 1_230_000, 10_000_000, 1_239_999_999].map(|nanos| dollars(Money::from_nanos(nanos)));
        assert_eq!(amounts, ["0.00", "0.01", "0.01", "1.24"]);
        let times = [Duration::from_millis(12), Duration::from_millis(1_540), Duration::from_secs(123)];
        assert_eq!(times.map(duration), ["12 ms", "1.5 s", "2 min 03 s"]);
    }

    #[test]
    fn spans_and_times_are_read() {
        let now = 1_000_000_000_000;
        assert_eq!(parse_since("24h", now), Ok(Some(now - 86_400_000)));
        assert_eq!(parse_since("7d", now), Ok(Some(now - 7 * 86_400_000)));
        assert_eq!(parse_since("all", now), Ok(None));
        assert_eq!(parse_since("1970-01-02", now), Ok(Some(86_400_000)));
        assert_eq!(parse_since("1970-01-01T01:00:00+01:00", now), Ok(Some(0)));
        for bad in ["", "h", "-3d", "soon", "7 days", "99999999999999999999d"] {
            assert!(parse_since(bad, now).is_err(), "{bad}");
        }
    }
}

#[cfg(test)]
mod whole_tests {
    use serde_json::{Value, from_value, json};

    use super::Whole;

    #[test]
    fn a_number_out_of_bounds_is_refused_with_the_bounds() {
        for (written, read) in [(json!(1), 1), (json!(9), 9), (json!(3.0), 3), (json!(1e0), 1)] {
            assert_eq!(from_value::<Whole<1, 9>>(written.clone()).unwrap().get(), read, "{written}");
        }
        for written in
            [json!(0), json!(10), json!(-1), json!(1.5), json!(1e300), json!(u64::MAX), json!(-1e300)]
        {
            let message = from_value::<Whole<1, 9>>(written.clone()).unwrap_err().to_string();
            assert!(message.ends_with("; it must be a whole number from 1 to 9"), "{written}: {message}");
        }
        for written in [json!("3"), json!(true), json!([3]), Value::Null] {
            let message = from_value::<Whole<1, 9>>(written.clone()).unwrap_err().to_string();
            assert!(message.starts_with("invalid type"), "{written}: {message}");
        }
        assert_eq!(from_value::<Whole<0, { u64::MAX }>>(json!(u64::MAX)).unwrap().get(), u64::MAX);
        assert!(
            from_value::<Whole<1, { u64::MAX }>>(json!(0)).unwrap_err().to_string().contains("of at least 1")
        );
    }
}
