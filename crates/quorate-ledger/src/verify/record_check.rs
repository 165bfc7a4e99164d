//! Checks one record: whether its head is canonical and matches its row, and whether its data has the hash in the head.

use quorate_kernel::canonical;
use quorate_kernel::entropy::unhex;
use quorate_kernel::record;
use quorate_protocol::Json;
use serde::{Deserialize, Serialize};
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

/// The keys of records that a run's row, its texts and its log lines are derived from.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct RowData {
    artifact_sha256: Json,
    artifact_type: Json,
    fingerprint: Json,
    inputs: Json,
    log_path: Json,
    logged: Json,
    producer: Json,
    protocol: Json,
    resumes: Json,
    subject: Json,
    supersedes: Json,
    verdict: Json,
}

/// Parses the keys of an object that affect a run's row, and skips all others.
pub(super) fn read_row_data(text: &str) -> Option<Map<String, Json>> {
    let data: RowData = serde_json::from_str(text).ok()?;
    let mut data = record::to_data(&data);
    data.retain(|_, value| !value.is_null());
    Some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_keys_are_read_and_the_others_are_passed_over() {
        let text =
            r#"{"deliberators":{"deep":[1,2]},"logged":null,"producer":{"operator":"a"},"verdict":"SHIP"}"#;
        let read = read_row_data(text).map(Json::Object);
        assert_eq!(read, serde_json::from_str(r#"{"producer":{"operator":"a"},"verdict":"SHIP"}"#).ok());
        for text in ["", "7", "{\"verdict\":1", "{\"verdict\":1} {}", r#"{"verdict":1,"verdict":2}"#] {
            assert_eq!(read_row_data(text), None, "{text}");
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
