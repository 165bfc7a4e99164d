//! JSON without duplicate keys. `{"would_block": true, "would_block": false}` is contradictory, and a reader that takes the
//! last value would turn it into agreement. Integers past 2^53 are refused: the ledger's canonical form would round them,
//! so that the answer could not be recorded as given. What cannot be [stored](storable) and read back is refused, too.

use quorate_protocol::storable;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads one JSON value that is the whole text.
///
/// # Errors
/// When it is not JSON, an object names a key twice, an integer is past 2^53, or it is not storable.
pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict.deserialize(&mut reader)?;
    reader.end()?;
    storable::check(&value, storable::MAX_DEPTH).map_err(Error::custom)?;
    Ok(value)
}

/// The largest integer that a double holds exactly, with all below it.
const MAX_EXACT_INTEGER: u64 = 1 << 53;

struct Strict;

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
        match value.unsigned_abs() {
            0..=MAX_EXACT_INTEGER => Ok(value.into()),
            _ => Err(E::custom(format_args!("the integer {value} is past 2^53"))),
        }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        match value {
            0..=MAX_EXACT_INTEGER => Ok(value.into()),
            _ => Err(E::custom(format_args!("the integer {value} is past 2^53"))),
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
        while let Some(one) = seq.next_element_seed(Strict)? {
            all.push(one);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(Strict)?;
            if all.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format_args!("the key `{key}` stands twice")));
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
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
