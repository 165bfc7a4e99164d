//! Canonical JSON (RFC 8785). For most records `serde_json` writes the same bytes, so it writes every value that cannot
//! differ.
//!
//! A number may change its kind when it is written and read: the float 3.0 comes back as the integer 3, and 1e17 as an
//! integer that no double holds. Both sides of the ledger [`normalize`] a value before it is fed to a protocol.
//! Also the strict reader: JSON without duplicate keys and without integers past 2^53, which the canonical form would round.

use quorate_protocol::{Json, storable};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The largest integer that a double holds exactly, with all below it.
pub const MAX_EXACT_INTEGER: u64 = 1 << 53;

/// A value as canonical JSON.
///
/// # Errors
/// When the value cannot be written, which a JSON value with string keys always can.
pub fn text(value: &Json) -> serde_json::Result<String> {
    plain_text(value).unwrap_or_else(|| serde_json_canonicalizer::to_string(value))
}

/// A value as canonical JSON where that is the usual form; then it has no integer past 2^53.
///
/// # Errors
/// As [`text`].
pub fn plain_text(value: &Json) -> Option<serde_json::Result<String>> {
    is_plain(value).then(|| serde_json::to_string(value))
}

/// An object as canonical JSON.
///
/// # Panics
/// Never: a JSON object with string keys can be written.
pub fn object(data: &Map<String, Json>) -> String {
    let written = match data.iter().all(|(key, value)| key.is_ascii() && is_plain(value)) {
        true => serde_json::to_string(data),
        false => serde_json_canonicalizer::to_string(data),
    };
    written.expect("a JSON object with string keys can be written")
}

/// A value with each number of the kind that its canonical text says: an integer up to 2^53, else a float. It is the same
/// before the value is recorded and after.
#[must_use]
pub fn normalize(mut value: Json) -> Json {
    normalize_numbers(&mut value);
    value
}

fn normalize_numbers(value: &mut Json) {
    match value {
        Json::Number(number) => *number = normalize_number(number),
        Json::Array(all) => all.iter_mut().for_each(normalize_numbers),
        Json::Object(all) => all.values_mut().for_each(normalize_numbers),
        Json::Null | Json::Bool(_) | Json::String(_) => {}
    }
}

fn normalize_number(number: &Number) -> Number {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    let Some(float) = number.as_f64() else { return number.clone() };
    if float.fract() != 0.0 || float.abs() > LIMIT {
        return Number::from_f64(float).unwrap_or_else(|| number.clone());
    }
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and is within 2^53")]
    Number::from(float as i64)
}

/// Whether the canonical form is the usual one. Keys are sorted by bytes here and by UTF-16 units there, which is the
/// same for ASCII; integers are written alike, and so are floats that are neither whole nor very large or small.
fn is_plain(value: &Json) -> bool {
    match value {
        Json::Number(number) => {
            number.as_u64().is_some_and(|n| n <= MAX_EXACT_INTEGER)
                || number.as_i64().is_some_and(|n| n.unsigned_abs() <= MAX_EXACT_INTEGER)
                || number.as_f64().is_some_and(|x| x.fract() != 0.0 && (1e-4..1e15).contains(&x.abs()))
        }
        Json::Array(all) => all.iter().all(is_plain),
        Json::Object(all) => all.iter().all(|(key, value)| key.is_ascii() && is_plain(value)),
        Json::Null | Json::Bool(_) | Json::String(_) => true,
    }
}

/// Reads one JSON value that is the whole text.
///
/// # Errors
/// When it is not JSON, an object names a key twice, an integer is past 2^53, or it is not storable.
pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    let value = read(text, true)?;
    storable::check(&value, storable::MAX_DEPTH).map_err(Error::custom)?;
    Ok(value)
}

/// Reads one JSON value that is the whole text and is not stored: as [`parse`], but a number may have any size.
///
/// # Errors
/// When it is not JSON, or an object names a key twice.
pub fn parse_received(text: &str) -> Result<Value, serde_json::Error> {
    read(text, false)
}

fn read(text: &str, is_exact: bool) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict { is_exact }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Strict {
    /// Whether an integer past 2^53 is an error.
    is_exact: bool,
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        to.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        match value.unsigned_abs() > MAX_EXACT_INTEGER && self.is_exact {
            false => Ok(value.into()),
            true => Err(E::custom(format_args!("the integer {value} is past 2^53"))),
        }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        match value > MAX_EXACT_INTEGER && self.is_exact {
            false => Ok(value.into()),
            true => Err(E::custom(format_args!("the integer {value} is past 2^53"))),
        }
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = seq.next_element_seed(self)? {
            all.push(one);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(self)?;
            if all.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format_args!("the key `{key}` stands twice")));
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_normal_is_what_comes_back() {
        // X10
        for text in [
            "3.0",
            "3",
            "-0.0",
            "-0",
            "1e3",
            "0.1",
            "1e300",
            "1e17",
            "-1e15",
            "9007199254740992",
            "9007199254740994.0",
        ] {
            let live: Json = serde_json::from_str(text).expect("a number");
            let recorded: Json = serde_json::from_str(&super::text(&live).expect("written")).expect("read");
            assert_eq!(normalize(json!({"a": [live]})), normalize(json!({"a": [recorded]})), "{text}");
        }
        assert_eq!(normalize(json!([3.0, 0.5, "3.0", true, null])), json!([3, 0.5, "3.0", true, null]));
        assert_eq!(normalize(json!(1e17)), json!(1e17), "an integer of that size could not be recorded");
    }

    #[test]
    fn a_received_number_may_have_any_size_and_a_key_stands_once() {
        for text in ["18446744073709551615", "-9223372036854775808", "[{\"a\": 9007199254740993}]", "1e300"] {
            assert_eq!(
                parse_received(text).expect("JSON"),
                serde_json::from_str::<Json>(text).expect("JSON")
            );
        }
        assert!(parse("18446744073709551615").is_err());
        for text in ["{\"a\": 1, \"a\": 1}", "[{\"b\": {\"a\": 1, \"a\": 2}}]", "{} {}", ""] {
            assert!(parse_received(text).is_err(), "{text}");
        }
    }

    #[test]
    fn both_ways_of_writing_are_one() {
        // D2
        for value in [
            json!(null),
            json!({"b": [1, -2, true, "ü \u{1}\u{8}\u{c}\n\r\t\"\\/ \u{7f}\u{2028}"], "a": {"z": "", "B": {}}}),
            json!({"ü": 1, "é": 2, "\u{10000}": 3, "\u{ffff}": 4}),
            json!([0.1, 0.333_333, 0.000_123, 123_456_789.125, -2.5, 999_999_999_999_999.9]),
            json!([0.1, 1.0, 1e21, -0.0, 5e-324, 9_007_199_254_740_992_u64]),
        ] {
            let canonical = serde_json_canonicalizer::to_string(&value).expect("a value can be written");
            assert_eq!(text(&value).expect("a value can be written"), canonical);
        }
    }
}

#[cfg(test)]
mod strict_json_tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_refused_at_any_depth() {
        assert!(parse(r#"{"a": true, "a": false}"#).is_err());
        assert!(parse(r#"[{"b": {"a": 1, "a": 1}}]"#).is_err());
        assert_eq!(
            parse(r#" {"a": [1, -2, 0.5, "x", null]} "#).ok(),
            Some(serde_json::json!({"a": [1, -2, 0.5, "x", null]}))
        );
        assert!(parse("{} {}").is_err());
    }

    #[test]
    fn what_nests_too_deep_is_refused() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse(&nested(storable::MAX_DEPTH)).is_ok());
        for levels in [storable::MAX_DEPTH + 1, 125, 126, 127, 128, 100_000] {
            assert!(parse(&nested(levels)).is_err(), "{levels}");
        }
    }

    #[test]
    fn an_integer_that_would_be_rounded_is_refused() {
        assert!(
            parse(r#"{"a": 9007199254740993}"#).is_err() && parse(r#"{"a": -9007199254740993}"#).is_err()
        );
        assert!(parse(r#"{"a": [9007199254740992, -9007199254740992, 1e300]}"#).is_ok());
    }
}
