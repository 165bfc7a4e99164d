//! Checks one record: whether its head is canonical and matches its row, and whether its data has the hash in the head.

use std::fmt;

use quorate_kernel::canonical;
use quorate_kernel::entropy::unhex;
use quorate_protocol::Json;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Map;

use super::pages::StoredRecord;
use crate::merkle::Hash;
use crate::record::Head;

/// What a head that matches its row and its data states besides them.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckedHead {
    pub(super) at_ms: i64,
    /// The leaf of the preceding record of the run.
    pub(super) prev: Option<Hash>,
}

/// A difference between a record's head, its row and its data.
pub(super) struct Mismatch {
    pub(super) what: String,
    /// The head, if it can be parsed.
    pub(super) head: Option<Box<Head>>,
}

/// Checks a record by itself.
pub(super) fn check(stored: &StoredRecord) -> Result<CheckedHead, Mismatch> {
    let head = Head::parse(&stored.head).map_err(|what| Mismatch { what, head: None })?;
    let checked = head.check(&stored.head).and_then(|at_ms| {
        if head.run != stored.run || i64::try_from(head.n) != Ok(stored.n) {
            let StoredRecord { run, n, .. } = stored;
            return Err(format!("its row is {run}/{n}, but its head names {}/{}", head.run, head.n));
        }
        if head.kind != stored.kind {
            return Err(format!("its row says {}, but its head says {}", stored.kind, head.kind));
        }
        head.check_data(stored.data.as_deref())?;
        Ok(CheckedHead { at_ms, prev: head.prev.as_deref().and_then(unhex) })
    });
    checked.map_err(|what| Mismatch { what, head: Some(Box::new(head)) })
}

/// The data of a record.
///
/// # Errors
/// If it is not a canonical JSON object, for example because it has a key twice: readers could take either value.
pub(super) fn object(data: &str) -> Result<Map<String, Json>, String> {
    let read: Map<String, Json> =
        serde_json::from_str(data).map_err(|error| format!("its data cannot be read: {error}"))?;
    match canonical::object(&read) == data {
        true => Ok(read),
        false => Err("its data is not a canonical JSON object".to_owned()),
    }
}

/// Parses these keys of an object, and skips all others.
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

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut data = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if self.0.contains(&&*key) {
                let value: Json = fields.next_value()?;
                data.insert(key, value);
            } else {
                let IgnoredAny = fields.next_value()?;
            }
        }
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_keys_are_read_and_the_others_are_passed_over() {
        let text = r#"{"a":{"deep":[1,2]},"b":"x","c":null}"#;
        let read = read_keys(text, &["a", "c", "d"]).map(Json::Object);
        assert_eq!(read, serde_json::from_str(r#"{"a":{"deep":[1,2]},"c":null}"#).ok());
        for text in ["", "[]", "{\"a\":1", "{\"a\":1} {}"] {
            assert_eq!(read_keys(text, &["a"]), None, "{text}");
        }
    }

    #[test]
    fn keys_are_in_canonical_order_and_each_there_once() {
        // D13
        let cases = [
            ("", false),
            ("[]", false),
            (r#"{"a":1,"b":2}"#, true),
            (r#"{"verdict":"HOLD","verdict":"SHIP"}"#, false),
            (r#"{"salt":"","verdict":"HOLD","a":1}"#, false),
            (r#"{"a":[{"b":1,"b":2}]}"#, false),
            (r#"{"a":{"c":1},"b":{"a":1}}"#, true),
            ("{\"\u{1f600}\":1,\"\u{ff5e}\":2}", true),
            ("{\"\u{ff5e}\":1,\"\u{1f600}\":2}", false),
        ];
        for (text, sound) in cases {
            assert_eq!(object(text).is_ok(), sound, "{text}");
        }
    }
}
