//! Checks one record: whether its head is the canonical text of its row and predecessor, and whether its data has the hash
//! in the head.

use std::fmt::Write as _;

use quorate_kernel::clock::{parse_rfc3339, rfc3339};
use quorate_kernel::entropy::{hex, unhex};
use sha2::{Digest as _, Sha256};

use super::read::StoredRecord;
use crate::merkle::Hash;
use crate::record::{Head, VERSION};

/// The parts of a head before its time and before its data's hash, with their lengths.
const AT_PREFIX: &str = "{\"at\":\"";
const AT_LEN: usize = 24;
const HASH_PREFIX: &str = "\",\"data_sha256\":\"";
const HASH_LEN: usize = 64;

/// Checks heads without parsing them: the one correct text is written and compared.
#[derive(Default)]
pub(super) struct HeadMatcher {
    tail: String,
    /// The last time that was found to be one.
    at: String,
    at_ms: i64,
}

/// A difference between a head and its row.
pub(super) struct Mismatch {
    /// The error; `None` where head and row agree and only the position in the run differs.
    pub(super) what: Option<String>,
    /// The head, where it can be read.
    pub(super) head: Option<Head>,
}

impl HeadMatcher {
    /// The time of a record whose row, head and data fit each other and follow a record with leaf `prev`.
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
        let _ = write!(self.tail, ",\"v\":{VERSION}}}");
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

/// The predecessor's leaf that a head states, by which [`HeadMatcher`] compares it without its predecessor.
pub(super) fn stated_predecessor(head: &str) -> Option<Hash> {
    const PREV: &str = ",\"prev\":\"";
    let start = head.find(PREV)? + PREV.len();
    unhex(head.get(start..start + HASH_LEN)?)
}

/// A time in the one form that heads have.
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
    } else if head.v != VERSION {
        Some(format!("its version is {}, and this program reads {VERSION}", head.v))
    } else if parse_time(&head.at).is_none() {
        Some(format!("its time is {}", head.at))
    } else if head.run != stored.run || i64::try_from(head.n) != Ok(stored.n) {
        Some(format!("its row is {}/{}, and its head says {}/{}", stored.run, stored.n, head.run, head.n))
    } else if head.kind != stored.kind {
        Some(format!("its row says {}, and its head {}", stored.kind, head.kind))
    } else if !data_has_hash(stored.data.as_deref(), &head.data_sha256) {
        Some("its data does not have the hash that its head names".to_owned())
    } else {
        None
    };
    Mismatch { what, head: Some(head) }
}

/// Whether data matches a hash. Erased data leaves only the hash, which must be well-formed.
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
