//! The lines of an export. Each is canonical JSON; the fields of these types are in its order.

use std::collections::BTreeSet;

use quorate_kernel::canonical;
use quorate_protocol::Json;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::prove::Envelope;

/// The version of the format.
pub const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// After which records it starts; null where it is from the beginning.
    pub from: Option<Prefix>,
    /// Who signed the checkpoint: verifiers' lines.
    pub keys: Vec<String>,
    /// The checkpoint, as a signed note; null if unsigned.
    pub note: Option<String>,
    pub origin: String,
    /// The version of the format.
    pub quorate_export: u32,
    /// The root of the tree, 64 hexadecimal digits.
    pub root: String,
    /// The runs that it is of, sorted; null where it is of all.
    pub runs: Option<Vec<String>>,
    /// The public keys of the records' signers, sorted.
    pub signers: Vec<String>,
    /// How many records the tree has.
    pub size: u64,
}

/// A smaller tree of the same log, after which an export starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    /// That it is a prefix (RFC 9162, section 2.1.4).
    pub path: Vec<String>,
    pub root: String,
    /// How many records it has.
    pub size: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Canonical JSON; null where it was erased.
    pub data: Option<String>,
    /// Canonical JSON.
    pub head: String,
    /// That it is in the tree (RFC 9162, section 2.1.3).
    pub path: Vec<String>,
    /// Its place in the ledger's order, from 1: its leaf has the index before that.
    pub seq: u64,
    /// Its signatures, in the order of the keys' names.
    pub signatures: Vec<Envelope>,
}

/// The line of a text that the record above it names by its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// SHA-256 of the text, 64 hexadecimal digits.
    pub body: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trailer {
    pub end: Totals,
}

/// How many lines of each kind came before, and what they hash to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    pub bodies: u64,
    pub records: u64,
    /// SHA-256 of all bytes before this line.
    pub sha256: String,
    /// How many signatures of records.
    pub signatures: u64,
}

/// A line's text, with its end.
///
/// # Errors
/// When it cannot be written as JSON, which it always can.
pub fn line(value: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(canonical::text(&serde_json::to_value(value)?)? + "\n")
}

/// The hashes that a record names: each string anywhere in its data that is 64 hexadecimal digits in lower case. Which of
/// them are hashes of texts, only the texts tell.
pub fn named_hashes(data: &Map<String, Json>) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    data.values().for_each(|value| collect(value, &mut names));
    names
}

fn collect<'a>(value: &'a Json, names: &mut BTreeSet<&'a str>) {
    match value {
        Json::String(text) if is_hash(text) => drop(names.insert(text)),
        Json::Array(all) => all.iter().for_each(|one| collect(one, names)),
        Json::Object(all) => all.values().for_each(|one| collect(one, names)),
        _ => {}
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}
