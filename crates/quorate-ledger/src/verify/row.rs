//! One record by itself: whether its head is the one canonical text of what the row says, after the record that it
//! follows, and whether its data has the hash that the head names.

use std::fmt::Write as _;

use quorate_kernel::clock::{parse_rfc3339, rfc3339};
use quorate_kernel::entropy::hex;
use sha2::{Digest as _, Sha256};

use super::read::Stored;
use crate::merkle::Hash;
use crate::record::{Head, VERSION};

/// What stands in a head before its time and before its data's hash, and how long these are.
const BEFORE_AT: &str = "{\"at\":\"";
const AT: usize = 24;
const BEFORE_HASH: &str = "\",\"data_sha256\":\"";
const HASH: usize = 64;

/// Checks heads without taking them apart: there is one right text, and it is written down and compared.
#[derive(Default)]
pub(super) struct Expected {
    tail: String,
    /// The last time that was found to be one.
    at: String,
    at_ms: i64,
}

/// What a head says that is not what its row says.
pub(super) struct Wrong {
    /// What is wrong; nothing where head and row agree and only the place in the run is another.
    pub(super) what: Option<String>,
    /// The head, where it can be read.
    pub(super) head: Option<Head>,
}

impl Expected {
    /// The time of a record whose row, head and data fit each other and follow a record with leaf `prev`.
    pub(super) fn fits(&mut self, stored: &Stored, prev: Option<&Hash>) -> Option<i64> {
        let head = stored.head.strip_prefix(BEFORE_AT)?;
        let (at, head) = head.split_at_checked(AT)?;
        let head = head.strip_prefix(BEFORE_HASH)?;
        let (sha256, rest) = head.split_at_checked(HASH)?;
        self.tail.clear();
        self.tail.push_str("\",\"kind\":");
        text(&mut self.tail, &stored.kind)?;
        let _ = write!(self.tail, ",\"n\":{},\"prev\":", stored.n);
        match prev {
            Some(prev) => {
                let _ = write!(self.tail, "\"{}\"", hex(prev));
            }
            None => self.tail.push_str("null"),
        }
        self.tail.push_str(",\"run\":");
        text(&mut self.tail, &stored.run)?;
        let _ = write!(self.tail, ",\"v\":{VERSION}}}");
        (rest == self.tail && data_fits(stored.data.as_deref(), sha256)).then_some(())?;
        self.time(at)
    }

    fn time(&mut self, at: &str) -> Option<i64> {
        if self.at != at {
            self.at_ms = time(at)?;
            at.clone_into(&mut self.at);
        }
        Some(self.at_ms)
    }
}

/// A time in the one form that heads have.
fn time(at: &str) -> Option<i64> {
    parse_rfc3339(at).filter(|at_ms| rfc3339(*at_ms) == at)
}

/// Says what is wrong with a record.
pub(super) fn wrong(stored: &Stored) -> Wrong {
    let head: Head = match serde_json::from_str(&stored.head) {
        Ok(head) => head,
        Err(error) => {
            return Wrong { what: Some(format!("its head cannot be read: {error}")), head: None };
        }
    };
    let what = if serde_json::to_string(&head).ok().as_deref() != Some(&stored.head) {
        Some("its head is not canonical JSON".to_owned())
    } else if head.v != VERSION {
        Some(format!("its version is {}, and this program reads {VERSION}", head.v))
    } else if time(&head.at).is_none() {
        Some(format!("its time is {}", head.at))
    } else if head.run != stored.run || i64::try_from(head.n) != Ok(stored.n) {
        Some(format!("its row is {}/{}, and its head says {}/{}", stored.run, stored.n, head.run, head.n))
    } else if head.kind != stored.kind {
        Some(format!("its row says {}, and its head {}", stored.kind, head.kind))
    } else if !data_fits(stored.data.as_deref(), &head.data_sha256) {
        Some("its data does not have the hash that its head names".to_owned())
    } else {
        None
    };
    Wrong { what, head: Some(head) }
}

/// Whether data has a hash. Of erased data the hash is left, which has to be one.
fn data_fits(data: Option<&str>, sha256: &str) -> bool {
    match data {
        Some(data) => hex(&Sha256::digest(data.as_bytes())) == sha256,
        None => {
            sha256.len() == HASH && sha256.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        }
    }
}

/// Writes a JSON string.
fn text(to: &mut String, text: &str) -> Option<()> {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        to.push('"');
        to.push_str(text);
        to.push('"');
    } else {
        to.push_str(&serde_json::to_string(text).ok()?);
    }
    Some(())
}
