//! A message on the wire, and the receipt of posting one. Servers use several names for the same fields.

use quorate_kernel::clock::rfc3339;
use quorate_protocol::Json;
use serde_json::Map;

const IDS: &[&str] = &["id", "messageId"];
const AUTHORS: &[&str] = &["authorId", "operatorId", "userId", "participantId"];
const CONTENTS: &[&str] = &["content", "text"];
const TIMES: &[&str] = &["timestamp", "createdAt"];

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    pub(super) id: String,
    /// All names of the author, the most specific first; empty if the server names none.
    pub(super) authors: Vec<String>,
    pub(super) content: String,
    /// As the server wrote it; empty without one. It is shown, and orders nothing (K17).
    pub(super) timestamp: String,
    pub(super) metadata: Map<String, Json>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Receipt {
    pub(super) id: String,
    pub(super) timestamp: Option<String>,
    /// Whether a message with this idempotency key existed before.
    pub(super) duplicate: bool,
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// The problem, as a predicate: `has no id`.
    pub(super) fn parse(value: &Json) -> Result<Self, String> {
        let fields = value.as_object().ok_or("is no object")?;
        let id = id(fields)?;
        let with_id = |problem: String| format!("`{id}` {problem}");
        let nested = fields.get("author").and_then(|author| text(author).or_else(|| text(author.get("id")?)));
        let candidates = AUTHORS.iter().filter_map(|name| text(fields.get(*name)?)).chain(nested);
        let authors: Vec<String> = candidates.filter(|author| !author.is_empty()).collect();
        Ok(Message {
            authors,
            content: content(fields).map_err(with_id)?,
            timestamp: time(fields).unwrap_or_default(),
            metadata: fields.get("metadata").and_then(Json::as_object).cloned().unwrap_or_default(),
            id,
        })
    }
}

impl Receipt {
    /// Reads a receipt; `None` if it does not identify the message.
    pub(super) fn parse(value: &Json) -> Option<Self> {
        let receipt = value.as_object()?;
        let fields = receipt.get("message").and_then(Json::as_object).unwrap_or(receipt);
        let id = id(fields).or_else(|_| id(receipt)).ok()?;
        let timestamp = time(fields).or_else(|| time(receipt));
        let duplicate = receipt.get("duplicate").and_then(Json::as_bool).unwrap_or(false);
        Some(Receipt { id, timestamp, duplicate })
    }
}

fn id(fields: &Map<String, Json>) -> Result<String, String> {
    let id = first_text(fields, IDS).ok_or("has no id")?;
    // Ids become part of keys that are separated by white space elsewhere.
    match id.is_empty() || id.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        true => Err(format!("has an id with white space, {id:?}, or none")),
        false => Ok(id),
    }
}

fn content(fields: &Map<String, Json>) -> Result<String, String> {
    let present = || CONTENTS.iter().filter_map(|name| fields.get(*name));
    let written = present().find(|value| !value.is_null()).or_else(|| present().next());
    match written.ok_or_else(|| "has no content".to_owned())? {
        Json::String(text) => Ok(text.clone()),
        // A message may consist of an attachment alone.
        Json::Null => Ok(String::new()),
        _ => Err("has a content that is no text".to_owned()),
    }
}

/// When the message was stored, by the server's clock.
fn time(fields: &Map<String, Json>) -> Option<String> {
    TIMES.iter().find_map(|name| match fields.get(*name)? {
        Json::String(text) => Some(text.clone()),
        number => number.as_i64().map(rfc3339),
    })
}

fn first_text(fields: &Map<String, Json>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| text(fields.get(*name)?))
}

fn text(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Message, Receipt};

    fn read(value: Value) -> Result<[String; 4], String> {
        Message::parse(&value)
            .map(|message| [message.id, message.authors.join("+"), message.content, message.timestamp])
    }

    #[test]
    fn the_same_things_have_several_names() {
        let at = "2026-05-18T18:23:11.504Z";
        let expected = Ok(["7", "u", "hello", at].map(str::to_owned));
        assert_eq!(read(json!({"id": "7", "authorId": "u", "content": "hello", "timestamp": at})), expected);
        assert_eq!(read(json!({"messageId": 7, "userId": "u", "text": "hello", "createdAt": at})), expected);
        let author =
            json!({"id": 7, "author": {"id": "u"}, "content": "hello", "createdAt": 1_779_128_591_504_i64});
        assert_eq!(read(author), expected);
        let nulls =
            json!({"id": "7", "operatorId": null, "userId": "u", "content": "hello", "timestamp": at});
        assert_eq!(read(nulls), expected);
    }

    #[test]
    fn what_is_missing_is_named() {
        let complete =
            json!({"id": "m1", "authorId": "u", "content": "x", "timestamp": "2026-05-18T18:23:11Z"});
        for (field, problem) in [("id", "no id"), ("content", "no content")] {
            let mut message = complete.clone();
            message.as_object_mut().unwrap().remove(field);
            let error = read(message).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
        let with = |field: &str, value: Value| {
            let mut message = complete.clone();
            message[field] = value;
            read(message)
        };
        assert!(with("id", json!("m 1")).unwrap_err().contains("white space"));
        assert!(with("content", json!(["x"])).unwrap_err().contains("no text"));
        // K17: neither author nor time decides whether a message is read.
        for field in ["authorId", "timestamp"] {
            for nothing in [json!(null), json!(""), json!({})] {
                let [id, authors, _, timestamp] = with(field, nothing).unwrap();
                let missing = if field == "timestamp" { timestamp } else { authors };
                assert_eq!((id.as_str(), missing.as_str()), ("m1", ""));
            }
        }
        assert_eq!(with("timestamp", json!("yesterday")).unwrap()[3], "yesterday");
    }

    #[test]
    fn a_receipt_is_flat_or_holds_the_message() {
        let flat =
            Receipt::parse(&json!({"id": "m1", "timestamp": "2026-05-18T18:23:11Z", "duplicate": true}));
        assert_eq!(flat.map(|receipt| (receipt.id, receipt.duplicate)), Some(("m1".into(), true)));
        let nested =
            Receipt::parse(&json!({"message": {"id": "m1", "createdAt": "2026-05-18T18:23:11Z"}})).unwrap();
        assert_eq!(nested.timestamp.as_deref(), Some("2026-05-18T18:23:11Z"));
        assert_eq!(Receipt::parse(&json!({"ok": true})), None);
    }
}
