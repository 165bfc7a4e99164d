//! Exact decimals for weights and thresholds (V3), parsed from the written text without a binary float.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

/// The maximum number of digits, and the maximum absolute exponent.
const MAX_DIGITS: usize = 30;
const MAX_SCALE: u32 = 30;

/// A decimal number: `digits` times ten to the power of `-scale`.
#[derive(Debug, Clone, Copy)]
pub struct Decimal {
    digits: i128,
    scale: u32,
}

/// The text is not a usable decimal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` has more than {MAX_DIGITS} digits, or is not a number")]
pub struct DecimalError(String);

impl Decimal {
    /// The serde name by which a tree's deserializer passes a number's text.
    pub(crate) const SERDE_NAME: &'static str = "Decimal";
    /// One.
    pub const ONE: Decimal = Decimal { digits: 1, scale: 0 };

    /// The digits, without the point.
    pub fn digits(self) -> i128 {
        self.digits
    }

    /// How many of the digits are after the point.
    pub fn scale(self) -> u32 {
        self.scale
    }

    /// Without zeros at the end.
    fn normalized(mut self) -> Self {
        while self.scale > 0 && self.digits % 10 == 0 {
            self = Decimal { digits: self.digits / 10, scale: self.scale - 1 };
        }
        self
    }
}

impl FromStr for Decimal {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let refuse = || DecimalError(text.to_owned());
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| refuse())?),
            None => (text, 0),
        };
        let (negative, unsigned) = match mantissa.strip_prefix(['-', '+']) {
            Some(rest) => (mantissa.starts_with('-'), rest),
            None => (false, mantissa),
        };
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let fraction = fraction.trim_end_matches('0');
        let all = format!("{}{fraction}", whole.trim_start_matches('0'));
        let digits = all.trim_start_matches('0');
        let plain = !(whole.is_empty() && unsigned.len() <= 1) && all.bytes().all(|b| b.is_ascii_digit());
        if !plain || digits.len() > MAX_DIGITS {
            return Err(refuse());
        }
        let mut digits: i128 = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| refuse())? };
        let scale = i64::try_from(fraction.len()).map_err(|_| refuse())? - i64::from(exponent);
        let limit = i64::try_from(MAX_DIGITS).map_err(|_| refuse())?;
        if digits == 0 {
            return Ok(Decimal { digits: 0, scale: 0 });
        }
        if !(-limit..=limit).contains(&scale) {
            return Err(refuse());
        }
        if scale < 0 {
            let power = 10_i128.pow(u32::try_from(-scale).map_err(|_| refuse())?);
            digits = digits.checked_mul(power).ok_or_else(refuse)?;
        }
        let scale = u32::try_from(scale.max(0)).map_err(|_| refuse())?;
        Ok(Decimal { digits: if negative { -digits } else { digits }, scale }.normalized())
    }
}

/// 1.0 and 1 are the same number.
impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (self.normalized(), other.normalized());
        (one.digits, one.scale) == (other.digits, other.scale)
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        // The whole part, and the fraction in units of the last possible digit.
        let parts = |decimal: &Decimal| {
            let unit = 10_i128.pow(decimal.scale);
            let rest = decimal.digits.rem_euclid(unit) * 10_i128.pow(MAX_SCALE - decimal.scale);
            (decimal.digits.div_euclid(unit), rest)
        };
        parts(self).cmp(&parts(other))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.digits < 0 { "-" } else { "" };
        let scale = self.scale as usize;
        let digits = format!("{:0>width$}", self.digits.unsigned_abs(), width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        if fraction.is_empty() { write!(f, "{sign}{whole}") } else { write!(f, "{sign}{whole}.{fraction}") }
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> serde::de::Visitor<'de> for Text {
            type Value = Decimal;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Decimal, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_newtype_struct(Decimal::SERDE_NAME, Text)
    }
}

impl JsonSchema for Decimal {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Decimal::SERDE_NAME.into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Decimal {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_decimal_is_what_was_written() {
        // V3.
        for (text, said) in [
            ("0.66", "0.66"),
            ("1.50", "1.5"),
            (".5", "0.5"),
            ("1.", "1"),
            ("-2.5e-1", "-0.25"),
            ("12e2", "1200"),
            ("0.6666666666666666667", "0.6666666666666666667"),
            ("0e99", "0"),
        ] {
            assert_eq!(read(text).to_string(), said, "{text}");
        }
        for text in ["", ".", "1e", "1e99", "x", "1.2.3", &"9".repeat(31)] {
            assert!(text.parse::<Decimal>().is_err(), "{text}");
        }
    }

    #[test]
    fn decimals_compare_by_value() {
        let ordered =
            ["-1.5", "-1", "-0.25", "0", "0.1", "0.66", "0.6666666666666666666", "0.667", "1", "2.5", "10"];
        for (at, one) in ordered.iter().enumerate() {
            for (other_at, other) in ordered.iter().enumerate() {
                assert_eq!(read(one).cmp(&read(other)), at.cmp(&other_at), "{one} {other}");
            }
        }
        assert_eq!(read("1.0"), Decimal::ONE);
    }
}
