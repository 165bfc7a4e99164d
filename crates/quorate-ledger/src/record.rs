//! The wire form of a record (D2): `head` and `data`, both canonical JSON (RFC 8785). The head names its
//! predecessor in the run and the hash of its data; the data carries a random salt, since a bare hash of a short
//! answer could be guessed.

use quorate_kernel::canonical;
use quorate_kernel::clock::{parse_rfc3339, rfc3339};
use quorate_kernel::entropy::{hex, salt, sha256_hex, unhex};
use quorate_kernel::ports::ledger::{Entry, LedgerError, Record};
use quorate_protocol::{Json, Name, storable};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::merkle;

/// The version of the wire form.
pub const RECORD_VERSION: u32 = 1;

/// A record's head. Its fields are in the order of canonical JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head<Text = String> {
    /// RFC 3339, UTC, milliseconds.
    pub at: Text,
    /// SHA-256 of the data, in hexadecimal.
    pub data_sha256: Text,
    pub kind: Text,
    /// The record's number in the run, from 0.
    pub n: u64,
    /// The leaf of the preceding record of the run, in hexadecimal; null at 0.
    pub prev: Option<Text>,
    pub run: Text,
    /// The version of the wire form.
    pub v: u32,
}

impl Head {
    /// Parses a head. [`Head::check`] checks its content.
    pub(crate) fn parse(text: &str) -> Result<Head, String> {
        serde_json::from_str(text).map_err(|error| format!("its head cannot be read: {error}"))
    }

    /// Checks that `text` is the only form of the head, and that its hashes and numbers are some. Returns its time.
    pub(crate) fn check(&self, text: &str) -> Result<i64, String> {
        if self.v != RECORD_VERSION {
            return Err(format!(
                "its version is {}, but this program reads version {RECORD_VERSION}",
                self.v
            ));
        }
        // The fields of a head are in the order of canonical JSON.
        if serde_json::to_string(self).ok().as_deref() != Some(text) {
            return Err("its head is not canonical JSON".to_owned());
        }
        let is_hash = |text: &str| unhex(text).is_some_and(|hash| hex(&hash) == text);
        if !is_hash(&self.data_sha256) || !self.prev.as_deref().is_none_or(is_hash) {
            return Err("its head contains a value that is not a hash".to_owned());
        }
        if self.n > canonical::MAX_EXACT_INTEGER {
            return Err(format!("its number {} is past 2^53", self.n));
        }
        let at_ms = parse_rfc3339(&self.at).filter(|at_ms| rfc3339(*at_ms) == self.at);
        at_ms.ok_or_else(|| format!("its time is {}", self.at))
    }

    /// Checks that a record's data has the hash in its head. Of erased data nothing can be checked.
    pub(crate) fn check_data(&self, data: Option<&str>) -> Result<(), String> {
        match data.is_none_or(|data| sha256_hex(data.as_bytes()) == self.data_sha256) {
            true => Ok(()),
            false => Err("its data does not match the hash in its head".to_owned()),
        }
    }
}

/// A record in its stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedRecord {
    /// Its number in the run.
    pub n: u64,
    pub kind: &'static str,
    /// Canonical JSON.
    pub head: String,
    /// Canonical JSON.
    pub data: String,
}

/// Why an entry cannot be encoded.
#[derive(Debug, thiserror::Error)]
#[error("a record of kind {kind} cannot be written as canonical JSON: {why}")]
pub struct EncodeError {
    kind: &'static str,
    why: String,
}

/// An entry with encoded data. The rest of the record depends on its position in the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedEntry {
    pub(crate) kind: &'static str,
    pub(crate) at_ms: i64,
    data: String,
    data_sha256: String,
}

impl PreparedEntry {
    /// Adds a salt to an entry's data, encodes it and hashes it.
    ///
    /// # Errors
    /// If canonical JSON would change a number in the data (an integer past 2^53), or the data nests deeper than a
    /// reader may parse.
    pub fn prepare(entry: Entry) -> Result<PreparedEntry, EncodeError> {
        let kind = entry.kind.as_str();
        let unwritable = |why: String| EncodeError { kind, why };
        let mut data = entry.data;
        data.insert("salt".into(), json!(salt()));
        let data = Json::Object(data);
        storable::check(&data, storable::MAX_RECORD_DEPTH).map_err(|error| unwritable(error.to_string()))?;
        let written = match canonical::plain_text(&data) {
            Some(written) => written,
            None => match first_inexact_integer(&data) {
                Some(number) => return Err(unwritable(format!("the integer {number} is past 2^53"))),
                None => canonical::text(&data),
            },
        };
        let data = written.map_err(|error| unwritable(error.to_string()))?;
        let data_sha256 = sha256_hex(data.as_bytes());
        Ok(PreparedEntry { kind, at_ms: entry.at_ms, data, data_sha256 })
    }

    /// Encodes it as record `n` after the record with leaf `prev`.
    ///
    /// # Errors
    /// If the head has no canonical JSON form.
    pub fn encode(self, run: &str, n: u64, prev: Option<&str>) -> Result<EncodedRecord, EncodeError> {
        let PreparedEntry { kind, at_ms, data, data_sha256 } = self;
        let at = rfc3339(at_ms);
        let head = Head { at: &*at, data_sha256: &data_sha256, kind, n, prev, run, v: RECORD_VERSION };
        let head =
            serde_json::to_string(&head).map_err(|error| EncodeError { kind, why: error.to_string() })?;
        Ok(EncodedRecord { n, kind, head, data })
    }
}

/// The leaf of a head: SHA-256 over a zero byte and the head (RFC 9162).
pub fn leaf(head: &str) -> String {
    hex(&merkle::leaf(head.as_bytes()))
}

/// Reads a run's records and checks each against its hashes and its predecessor.
#[derive(Debug)]
pub struct ChainReader<'a> {
    run: &'a Name,
    next: u64,
    prev: Option<String>,
}

impl<'a> ChainReader<'a> {
    /// At the start of a run.
    pub fn new(run: &'a Name) -> Self {
        ChainReader { run, next: 0, prev: None }
    }

    /// In the middle of a run: the next record is number `next` and follows a record with this head.
    pub fn after(run: &'a Name, next: u64, head: Option<&str>) -> Self {
        ChainReader { run, next, prev: head.map(leaf) }
    }

    /// For a single record, number `n` with this head. Does not check the predecessor.
    pub fn at(run: &'a Name, n: u64, head: &str) -> Self {
        let named = serde_json::from_str::<Head<String>>(head).ok().and_then(|read| read.prev);
        ChainReader { run, next: n, prev: named }
    }

    /// Reads the next record of the run.
    ///
    /// # Errors
    /// [`LedgerError::Corrupt`] for the first mismatch.
    pub fn read_next(&mut self, head: &str, data: Option<&str>) -> Result<Record, LedgerError> {
        let n = self.next;
        let corrupt = |what: String| LedgerError::Corrupt { run: self.run.clone(), n, what };
        let read = Head::parse(head).map_err(corrupt)?;
        if *read.run != **self.run || read.n != n {
            return Err(corrupt(format!("its head names {}/{}", read.run, read.n)));
        }
        if read.prev != self.prev {
            return Err(corrupt("it does not name its predecessor's hash".to_owned()));
        }
        let at_ms = read.check(head).map_err(corrupt)?;
        read.check_data(data).map_err(corrupt)?;
        let data = data.map(body).transpose().map_err(corrupt)?;
        self.prev = Some(leaf(head));
        self.next += 1;
        Ok(Record { n, kind: read.kind, at_ms, data })
    }
}

fn body(data: &str) -> Result<Map<String, Json>, String> {
    let mut data: Map<String, Json> =
        serde_json::from_str(data).map_err(|error| format!("its data cannot be read: {error}"))?;
    data.remove("salt");
    Ok(data)
}

/// The first integer that a double cannot hold exactly.
fn first_inexact_integer(value: &Json) -> Option<&serde_json::Number> {
    const LIMIT: u64 = 1 << 53;
    match value {
        Json::Number(number) => {
            let past = number.as_u64().is_some_and(|n| n > LIMIT)
                || number.as_i64().is_some_and(|n| n.unsigned_abs() > LIMIT);
            past.then_some(number)
        }
        Json::Array(all) => all.iter().find_map(first_inexact_integer),
        Json::Object(all) => all.values().find_map(first_inexact_integer),
        Json::Null | Json::Bool(_) | Json::String(_) => None,
    }
}

/// Whether a name is a run id: `r` and 12 digits or letters, without i, l, o and u.
pub(crate) fn is_run_id(name: &str) -> bool {
    let letter = |byte: u8| (byte.is_ascii_digit() || byte.is_ascii_lowercase()) && !b"ilou".contains(&byte);
    name.strip_prefix('r').is_some_and(|rest| rest.len() == 12 && rest.bytes().all(letter))
}

#[cfg(test)]
mod tests {
    use quorate_kernel::ports::ledger::Kind;

    use super::*;

    fn encode(run: &str, n: u64, prev: Option<&str>, entry: Entry) -> Result<EncodedRecord, EncodeError> {
        PreparedEntry::prepare(entry)?.encode(run, n, prev)
    }

    #[test]
    fn heads_are_canonical() {
        // D2
        let stored = encode("r1", 7, Some("ab"), entry(json!({"a": 1}))).unwrap();
        let head: Json = serde_json::from_str(&stored.head).unwrap();
        assert_eq!(canonical::text(&head).unwrap(), stored.head);
    }

    fn entry(data: Json) -> Entry {
        Entry { kind: Kind::Outcome, at_ms: 0, data: quorate_kernel::attempts::object(data) }
    }

    #[test]
    fn records_chain_and_any_change_is_found() {
        // D2
        let run: Name = "r1".into();
        let first = encode(&run, 0, None, entry(json!({"a": 1}))).expect("sealed");
        let second = encode(&run, 1, Some(&leaf(&first.head)), entry(json!({"b": 2}))).expect("sealed");
        let mut chain = ChainReader::new(&run);
        assert_eq!(
            chain.read_next(&first.head, Some(&first.data)).expect("fits").data,
            Some(Map::from_iter([("a".into(), json!(1))]))
        );
        assert_eq!(chain.read_next(&second.head, None).expect("fits").data, None);
        let mut skipping = ChainReader::new(&run);
        assert!(skipping.read_next(&second.head, Some(&second.data)).is_err());
        let mut changed = ChainReader::new(&run);
        assert!(changed.read_next(&first.head, Some(&first.data.replace('1', "2"))).is_err());
        let mut rewritten = ChainReader::new(&run);
        rewritten
            .read_next(&first.head.replace("outcome", "rule"), None)
            .expect("an erased body hides its kind's change here");
        assert!(rewritten.read_next(&second.head, Some(&second.data)).is_err(), "and the successor shows it");
    }

    #[test]
    fn data_that_nests_too_deep_to_be_read_back_is_refused() {
        let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"a": inner}));
        let encoded = |levels| encode("r1", 0, None, entry(nested(levels)));
        let run: Name = "r1".into();
        let stored = encoded(storable::MAX_RECORD_DEPTH).unwrap();
        ChainReader::new(&run).read_next(&stored.head, Some(&stored.data)).unwrap();
        for levels in [storable::MAX_RECORD_DEPTH + 1, 125, 126, 127, 200] {
            let why = encoded(levels).unwrap_err().to_string();
            assert!(why.contains("nests deeper than 96 levels"), "{why}");
        }
    }

    #[test]
    fn equal_bodies_have_different_hashes() {
        let seal = || encode("r1", 0, None, entry(json!({"vote": "yes"}))).expect("sealed");
        assert_ne!(seal().head, seal().head);
    }

    #[test]
    fn an_integer_that_canonical_json_would_round_is_refused() {
        assert!(encode("r1", 0, None, entry(json!({"deep": [{"n": 9_007_199_254_740_993_u64}]}))).is_err());
        assert!(encode("r1", 0, None, entry(json!({"n": 9_007_199_254_740_992_u64}))).is_ok());
    }
}
