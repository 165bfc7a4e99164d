//! Checks one record: whether its head is the canonical text for its row and predecessor, and whether its data has the
//! hash in the head.

use std::borrow::Cow;
use std::fmt::Write as _;

use quorate_kernel::clock::{parse_rfc3339, rfc3339};
use quorate_kernel::entropy::{hex, unhex};
use quorate_protocol::Json;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Map;
use sha2::{Digest as _, Sha256};

use super::pages::StoredRecord;
use crate::merkle::Hash;
use crate::record::{Head, RECORD_VERSION};

/// The parts of a head before its time and before its data's hash, with their lengths.
const AT_PREFIX: &str = "{\"at\":\"";
const AT_LEN: usize = 24;
const HASH_PREFIX: &str = "\",\"data_sha256\":\"";
const HASH_LEN: usize = 64;

/// Checks heads without parsing them: builds the only correct text and compares it.
#[derive(Default)]
pub(super) struct HeadMatcher {
    tail: String,
    /// The last time that was found to be valid.
    at: String,
    at_ms: i64,
}

/// A difference between a head and its row.
pub(super) struct Mismatch {
    /// The error; `None` if head and row agree and only the position in the run differs.
    pub(super) what: Option<String>,
    /// The head, if it can be parsed.
    pub(super) head: Option<Head>,
}

impl HeadMatcher {
    /// The time of a record whose row, head and data agree and that follows a record with leaf `prev`.
    pub(super) fn matched_time(&mut self, stored: &StoredRecord, prev: Option<&Hash>) -> Option<i64> {
        let head = stored.head.strip_prefix(AT_PREFIX)?;
        let (at, head) = head.split_at_checked(AT_LEN)?;
        let head = head.strip_prefix(HASH_PREFIX)?;
        let (sha256, rest) = head.split_at_checked(HASH_LEN)?;
        self.tail.clear();
        self.tail.push_str("\",\"kind\":");
        push_json_string(&mut self.tail, &stored.kind)?;
        let _ = write!(self.tail, ",\"n\":{},\"prev\":", stored.n);
        match prev {
            Some(prev) => {
                let _ = write!(self.tail, "\"{}\"", hex(prev));
            }
            None => self.tail.push_str("null"),
        }
        self.tail.push_str(",\"run\":");
        push_json_string(&mut self.tail, &stored.run)?;
        let _ = write!(self.tail, ",\"v\":{RECORD_VERSION}}}");
        (rest == self.tail && data_has_hash(stored.data.as_deref(), sha256)).then_some(())?;
        self.cached_time(at)
    }

    fn cached_time(&mut self, at: &str) -> Option<i64> {
        if self.at != at {
            self.at_ms = parse_time(at)?;
            at.clone_into(&mut self.at);
        }
        Some(self.at_ms)
    }
}

/// The predecessor's leaf that a head names. [`HeadMatcher`] uses it to check the head without the predecessor.
pub(super) fn stated_predecessor(head: &str) -> Option<Hash> {
    const PREV: &str = ",\"prev\":\"";
    let start = head.find(PREV)? + PREV.len();
    unhex(head.get(start..start + HASH_LEN)?)
}

/// A time in the canonical form of heads.
fn parse_time(at: &str) -> Option<i64> {
    parse_rfc3339(at).filter(|at_ms| rfc3339(*at_ms) == at)
}

/// Explains a record's mismatch.
pub(super) fn explain_mismatch(stored: &StoredRecord) -> Mismatch {
    let head: Head = match serde_json::from_str(&stored.head) {
        Ok(head) => head,
        Err(error) => {
            return Mismatch { what: Some(format!("its head cannot be read: {error}")), head: None };
        }
    };
    let what = if serde_json::to_string(&head).ok().as_deref() != Some(&stored.head) {
        Some("its head is not canonical JSON".to_owned())
    } else if head.v != RECORD_VERSION {
        Some(format!("its version is {}, but this program reads version {RECORD_VERSION}", head.v))
    } else if parse_time(&head.at).is_none() {
        Some(format!("its time is {}", head.at))
    } else if head.run != stored.run || i64::try_from(head.n) != Ok(stored.n) {
        Some(format!("its row is {}/{}, but its head names {}/{}", stored.run, stored.n, head.run, head.n))
    } else if head.kind != stored.kind {
        Some(format!("its row says {}, but its head says {}", stored.kind, head.kind))
    } else if !data_has_hash(stored.data.as_deref(), &head.data_sha256) {
        Some("its data does not match the hash in its head".to_owned())
    } else {
        None
    };
    Mismatch { what, head: Some(head) }
}

/// Whether data matches a hash. The hash of erased data must only be well-formed.
fn data_has_hash(data: Option<&str>, sha256: &str) -> bool {
    match data {
        Some(data) => hex(&Sha256::digest(data.as_bytes())) == sha256,
        None => {
            sha256.len() == HASH_LEN && sha256.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        }
    }
}

/// Writes a JSON string.
fn push_json_string(to: &mut String, text: &str) -> Option<()> {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        to.push('"');
        to.push_str(text);
        to.push('"');
    } else {
        to.push_str(&serde_json::to_string(text).ok()?);
    }
    Some(())
}

/// Parses a record's text with the same rules as readers of records.
///
/// # Errors
/// If it is not a JSON object, nests too deep for the parser, or has duplicate or unordered keys, because readers could
/// take either of two values.
pub(super) fn check_object(text: &str) -> Result<(), serde_json::Error> {
    if !text.starts_with('{') {
        return Err(Error::custom("it is not an object"));
    }
    serde_json::from_str::<Skimmed>(text).map(drop)
}

/// A parsed and dropped value. [`IgnoredAny`] would accept any depth.
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

/// A key of an object, which is a text without depth.
#[derive(serde::Deserialize)]
struct Key<'k>(#[serde(borrow)] Cow<'k, str>);

impl Key<'_> {
    /// Whether canonical JSON orders this key before another one, by UTF-16.
    fn is_before(&self, next: &Key<'_>) -> bool {
        match self.0.is_ascii() && next.0.is_ascii() {
            true => self.0 < next.0,
            false => self.0.encode_utf16().lt(next.0.encode_utf16()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_as_json_writes_it() {
        for text in [
            "",
            "run",
            "\\",
            "\"",
            "a\"b",
            "a\\b",
            "a\nb",
            "\u{1}",
            "\u{1f}\"",
            " ",
            "\u{fc} \u{2028} \u{1f4c5}",
            "\u{7f}",
        ] {
            let mut written = String::new();
            push_json_string(&mut written, text).expect("it is written");
            assert_eq!(written, serde_json::to_string(text).expect("it is written"));
        }
    }

    #[test]
    fn erased_data_leaves_its_hash() {
        assert!(data_has_hash(None, &"0af9".repeat(16)));
        for other in ["", "0a", &"0a".repeat(33), &"0A".repeat(32), &"0g".repeat(32)] {
            assert!(!data_has_hash(None, other), "{other}");
        }
        assert!(data_has_hash(Some("{}"), &hex(&Sha256::digest(b"{}"))));
        assert!(!data_has_hash(Some("{ }"), &hex(&Sha256::digest(b"{}"))));
    }
}

#[cfg(test)]
mod skim_tests {
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
