//! One record in an export or a proof, and all checks that need only public data.

use quorate_kernel::canonical;
use quorate_kernel::clock::{parse_rfc3339, rfc3339};
use quorate_kernel::entropy::{hex, sha256_hex, unhex};
use quorate_protocol::Json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Map;

use super::envelope::Envelope;
use crate::merkle::{self, Hash, Inclusion, TreeHead};
use crate::record::{Head, VERSION};
use crate::signing::{KeyId, PublicKey};

/// A record with what proves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvableRecord {
    /// Its place in the ledger's order, from 0.
    pub index: u64,
    /// Canonical JSON.
    pub head: String,
    /// Canonical JSON; `None` where it was erased.
    pub data: Option<String>,
    /// From its sibling up, 64 hexadecimal digits each.
    pub path: Vec<String>,
    /// Its signatures, in the order of the keys' names.
    pub signatures: Vec<Envelope>,
}

/// A record verified against its tree.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedRecord {
    pub head: Head,
    pub leaf: Hash,
    /// When it happened, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Its body; `None` where it was erased.
    pub data: Option<Map<String, Json>>,
    /// The keys that signed it.
    pub signers: Vec<KeyId>,
}

impl ProvableRecord {
    /// Holds it against a tree and the public keys of signers.
    ///
    /// # Errors
    /// Why it is invalid, in words.
    pub fn check(&self, tree: &TreeHead, known: &[PublicKey]) -> Result<CheckedRecord, String> {
        self.check_allowing_unknown(tree, known, &[])
    }

    /// As [`ProvableRecord::check`], but accepts signatures of keys of which only the names are known.
    pub(crate) fn check_allowing_unknown(
        &self,
        tree: &TreeHead,
        known: &[PublicKey],
        unknown: &[KeyId],
    ) -> Result<CheckedRecord, String> {
        let (head, at_ms) = head(&self.head)?;
        let leaf = merkle::leaf(self.head.as_bytes());
        let path = self.path.iter().map(|text| unhex(text).ok_or("its path has what is no hash"));
        let path = path.collect::<Result<_, _>>()?;
        let proof = Inclusion { index: self.index, size: tree.size, path };
        proof.verify(&leaf, tree).map_err(|error| format!("it is not in the tree: {error}"))?;
        let data = self.data.as_deref().map(|data| body(data, &head.data_sha256)).transpose()?;
        let mut signers: Vec<KeyId> = Vec::new();
        for envelope in &self.signatures {
            let id = envelope.verify(&leaf, known, unknown)?;
            if signers.last().is_some_and(|before| *before >= id) {
                return Err("its signatures are not in the order of their keys, one each".to_owned());
            }
            signers.push(id);
        }
        Ok(CheckedRecord { head, leaf, at_ms, data, signers })
    }
}

/// Reads a head in its one form; gives its time as well.
fn head(text: &str) -> Result<(Head, i64), String> {
    let head: Head =
        serde_json::from_str(text).map_err(|error| format!("its head cannot be read: {error}"))?;
    if head.v != VERSION {
        return Err(format!("its version is {}, and this program reads {VERSION}", head.v));
    }
    // The fields of a head are in the order of canonical JSON.
    if serde_json::to_string(&head).ok().as_deref() != Some(text) {
        return Err("its head is not canonical JSON".to_owned());
    }
    let at_ms = parse_rfc3339(&head.at).filter(|at_ms| rfc3339(*at_ms) == head.at);
    let at_ms = at_ms.ok_or("its time cannot be read")?;
    if unhex(&head.data_sha256).is_none() || head.prev.as_deref().is_some_and(|prev| unhex(prev).is_none()) {
        return Err("its head names what is no hash".to_owned());
    }
    if head.n > canonical::MAX_EXACT_INTEGER {
        return Err(format!("its number {} is past 2^53", head.n));
    }
    if (head.n == 0) != head.prev.is_none() {
        return Err("the first record of a run has no predecessor, and every other one has".to_owned());
    }
    Ok((head, at_ms))
}

/// Reads a body that has the hash that its head names.
fn body(text: &str, sha256: &str) -> Result<Map<String, Json>, String> {
    if sha256_hex(text.as_bytes()) != sha256 {
        return Err("its data does not have the hash that its head names".to_owned());
    }
    match from_canonical_json(text) {
        Ok(Json::Object(data)) => Ok(data),
        Ok(_) => Err("its data is no object".to_owned()),
        Err(error) => Err(format!("its data is not canonical JSON: {error}")),
    }
}

/// Reads a text that has to be canonical JSON, which every value has one of.
///
/// # Errors
/// Why it is not, in words.
pub fn from_canonical_json<T: DeserializeOwned + Serialize>(text: &str) -> Result<T, String> {
    let value: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if canonical::text(&value).ok().as_deref() != Some(text) {
        return Err("it is not in the one form that its value has".to_owned());
    }
    // A reader of canonical JSON takes an integer past 2^53 for a float, so it is not a count.
    from_exact_value(canonical::normalize(value))
}

/// Reads a value with exactly the fields of its type; fields that may be null are required, too.
///
/// # Errors
/// Why it has not, in words.
pub(crate) fn from_exact_value<T: DeserializeOwned + Serialize>(value: Json) -> Result<T, String> {
    let read: T = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    match serde_json::to_value(&read).is_ok_and(|again| again == value) {
        true => Ok(read),
        false => Err("a field is missing".to_owned()),
    }
}

/// A path as texts.
pub(crate) fn to_hex_texts(path: &[Hash]) -> Vec<String> {
    path.iter().map(|hash| hex(hash)).collect()
}

#[cfg(test)]
mod tests;
