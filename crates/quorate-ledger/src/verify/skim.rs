//! Whether a record's data is parsable, and its keys are in the order of canonical JSON, without building a value: the same
//! parser with the same limits as other readers use, at a fraction of the cost.

use std::borrow::Cow;

use quorate_protocol::Json;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Map;

/// Reads a text as readers of records do.
///
/// # Errors
/// If it is not a JSON object, nests too deep for the parser, or has a key twice or out of order: a reader could take another
/// one of two values.
pub(super) fn check_object(text: &str) -> Result<(), serde_json::Error> {
    if !text.starts_with('{') {
        return Err(Error::custom("it is no object"));
    }
    serde_json::from_str::<Skimmed>(text).map(drop)
}

/// A value that was read and dropped. [`IgnoredAny`] would let any depth pass.
struct Skimmed;

impl<'de> Deserialize<'de> for Skimmed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Skimmed)
    }
}

impl<'de> Visitor<'de> for Skimmed {
    type Value = Skimmed;

    fn expecting(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        to.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_unit<E: Error>(self) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Skimmed, A::Error> {
        while items.next_element::<Skimmed>()?.is_some() {}
        Ok(Skimmed)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Skimmed, A::Error> {
        let mut before: Option<Key<'de>> = None;
        while let Some((key, _)) = fields.next_entry::<Key<'de>, Skimmed>()? {
            if before.is_some_and(|before| !before.is_before(&key)) {
                return Err(Error::custom(format!("its key `{}` is there twice, or out of order", key.0)));
            }
            before = Some(key);
        }
        Ok(Skimmed)
    }
}

/// Reads these keys of an object, and passes over all others.
pub(super) fn read_keys(text: &str, keys: &'static [&'static str]) -> Option<Map<String, Json>> {
    let mut from = serde_json::Deserializer::from_str(text);
    let data = SomeKeys(keys).deserialize(&mut from).ok()?;
    from.end().ok().map(|()| data)
}

struct SomeKeys(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for SomeKeys {
    type Value = Map<String, Json>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for SomeKeys {
    type Value = Map<String, Json>;

    fn expecting(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        to.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut data = Map::new();
        while let Some(Key(key)) = fields.next_key::<Key<'de>>()? {
            if self.0.iter().any(|known| **known == *key) {
                let value: Json = fields.next_value()?;
                data.insert(key.into_owned(), value);
            } else {
                let IgnoredAny = fields.next_value()?;
            }
        }
        Ok(data)
    }
}

/// A key of an object. It is a text and has no depth.
#[derive(serde::Deserialize)]
struct Key<'k>(#[serde(borrow)] Cow<'k, str>);

impl Key<'_> {
    /// Whether canonical JSON writes this key before another one: it compares UTF-16.
    fn is_before(&self, next: &Key<'_>) -> bool {
        match self.0.is_ascii() && next.0.is_ascii() {
            true => self.0 < next.0,
            false => self.0.encode_utf16().lt(next.0.encode_utf16()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::{check_object, read_keys};

    #[test]
    fn what_is_skimmed_is_what_can_be_read() {
        let nested = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        let mut texts: Vec<String> = (120..132).map(nested).collect();
        texts.push(format!("{{\"a\":{}{}}}", "[".repeat(126), "]".repeat(126)));
        texts.push(format!("{{\"a\":{}{}}}", "[".repeat(127), "]".repeat(127)));
        let others = [
            "",
            "[]",
            "3",
            "{}",
            "{\"a\":1e999}",
            "{\"a\":\"\\ud800\"}",
            "{\"a\":01}",
            "{\"a\":[1,-2,0.5,null,true,\"\\n\"]}",
            "{} {}",
        ];
        texts.extend(others.map(str::to_owned));
        for text in texts {
            let read = serde_json::from_str::<Map<String, Value>>(&text).is_ok();
            assert_eq!(check_object(&text).is_ok(), read, "{text}");
        }
    }

    #[test]
    fn some_keys_are_read_and_the_others_are_passed_over() {
        let text = r#"{"a":{"deep":[1,2]},"b":"x","c":null}"#;
        let read = read_keys(text, &["a", "c", "d"]).map(Value::Object);
        assert_eq!(read, serde_json::from_str(r#"{"a":{"deep":[1,2]},"c":null}"#).ok());
        for text in ["", "[]", "{\"a\":1", "{\"a\":1} {}"] {
            assert_eq!(read_keys(text, &["a"]), None, "{text}");
        }
    }

    #[test]
    fn keys_are_in_canonical_order_and_each_there_once() {
        // D13
        let cases = [
            (r#"{"a":1,"b":2}"#, true),
            (r#"{"verdict":"HOLD","verdict":"SHIP"}"#, false),
            (r#"{"salt":"","verdict":"HOLD","a":1}"#, false),
            (r#"{"a":[{"b":1,"b":2}]}"#, false),
            (r#"{"a":{"c":1},"b":{"a":1}}"#, true),
            ("{\"\u{1f600}\":1,\"\u{ff5e}\":2}", true),
            ("{\"\u{ff5e}\":1,\"\u{1f600}\":2}", false),
        ];
        for (text, sound) in cases {
            assert_eq!(check_object(text).is_ok(), sound, "{text}");
        }
    }
}
