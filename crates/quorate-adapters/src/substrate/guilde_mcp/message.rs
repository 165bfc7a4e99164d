//! A message on the wire, and what posting one gives back. Servers call the same things by several names.

use quorate_kernel::clock::{parse_rfc3339, rfc3339};
use quorate_protocol::Json;
use serde_json::Map;

const IDS: &[&str] = &["id", "messageId"];
const AUTHORS: &[&str] = &["authorId", "operatorId", "userId", "participantId"];
const CONTENTS: &[&str] = &["content", "text"];
const TIMES: &[&str] = &["timestamp", "createdAt"];

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    pub(super) id: String,
    /// Everything that the server calls its author, the most telling first; never empty.
    pub(super) authors: Vec<String>,
    pub(super) content: String,
    /// As it was written.
    pub(super) timestamp: String,
    /// Milliseconds since the Unix epoch.
    pub(super) at_ms: i64,
    pub(super) metadata: Map<String, Json>,
}

/// What posting gives back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Receipt {
    pub(super) id: String,
    pub(super) timestamp: Option<String>,
    /// Whether the message was there before, by its key.
    pub(super) duplicate: bool,
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// What is wrong with it, as a predicate: `has no timestamp`.
    pub(super) fn parse(value: &Json) -> Result<Self, String> {
        let fields = value.as_object().ok_or("is no object")?;
        let id = id(fields)?;
        let of = |what: String| format!("`{id}` {what}");
        let nested = fields.get("author").and_then(|author| text(author).or_else(|| text(author.get("id")?)));
        let named = AUTHORS.iter().filter_map(|name| text(fields.get(*name)?)).chain(nested);
        let authors: Vec<String> = named.filter(|author| !author.is_empty()).collect();
        if authors.is_empty() {
            return Err(of(format!("has no author (looked for {} and author.id)", AUTHORS.join(", "))));
        }
        let (timestamp, at_ms) = time(fields).map_err(of)?;
        Ok(Message {
            authors,
            content: content(fields).map_err(of)?,
            timestamp,
            at_ms,
            metadata: fields.get("metadata").and_then(Json::as_object).cloned().unwrap_or_default(),
            id,
        })
    }
}

impl Receipt {
    /// Reads what posting gave back, if it says which message it was.
    pub(super) fn parse(value: &Json) -> Option<Self> {
        let outer = value.as_object()?;
        let fields = outer.get("message").and_then(Json::as_object).unwrap_or(outer);
        let id = id(fields).or_else(|_| id(outer)).ok()?;
        let timestamp = time(fields).or_else(|_| time(outer)).ok().map(|(timestamp, _)| timestamp);
        let duplicate = outer.get("duplicate").and_then(Json::as_bool).unwrap_or(false);
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
        // A message may be an attachment alone.
        Json::Null => Ok(String::new()),
        _ => Err("has a content that is no text".to_owned()),
    }
}

fn time(fields: &Map<String, Json>) -> Result<(String, i64), String> {
    let written = TIMES.iter().find_map(|name| fields.get(*name).filter(|value| !value.is_null()));
    match written.ok_or_else(|| "has no timestamp".to_owned())? {
        Json::String(text) => match parse_rfc3339(text) {
            Some(at_ms) => Ok((text.clone(), at_ms)),
            None => Err(format!("has a timestamp that is no RFC 3339, {text:?}")),
        },
        other => match other.as_i64() {
            Some(at_ms) => Ok((rfc3339(at_ms), at_ms)),
            None => Err("has a timestamp that is neither a text nor milliseconds".to_owned()),
        },
    }
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
        Message::parse(&value).map(|one| [one.id, one.authors.join("+"), one.content, one.timestamp])
    }

    #[test]
    fn the_same_things_have_several_names() {
        let at = "2026-05-18T18:23:11.504Z";
        let wanted = Ok(["7", "u", "hello", at].map(str::to_owned));
        assert_eq!(read(json!({"id": "7", "authorId": "u", "content": "hello", "timestamp": at})), wanted);
        assert_eq!(read(json!({"messageId": 7, "userId": "u", "text": "hello", "createdAt": at})), wanted);
        let author =
            json!({"id": 7, "author": {"id": "u"}, "content": "hello", "createdAt": 1_779_128_591_504_i64});
        assert_eq!(read(author), wanted);
        let nulls =
            json!({"id": "7", "operatorId": null, "userId": "u", "content": "hello", "timestamp": at});
        assert_eq!(read(nulls), wanted);
    }

    #[test]
    fn what_is_missing_is_named() {
        let whole = json!({"id": "m1", "authorId": "u", "content": "x", "timestamp": "2026-05-18T18:23:11Z"});
        for (field, named) in [
            ("id", "no id"),
            ("authorId", "no author"),
            ("content", "no content"),
            ("timestamp", "no timestamp"),
        ] {
            let mut message = whole.clone();
            message.as_object_mut().unwrap().remove(field);
            let why = read(message).unwrap_err();
            assert!(why.contains(named), "{why}");
        }
        let with = |field: &str, value: Value| {
            let mut message = whole.clone();
            message[field] = value;
            read(message).unwrap_err()
        };
        assert!(with("id", json!("m 1")).contains("white space"));
        assert!(with("timestamp", json!("yesterday")).contains("`m1` has a timestamp that is no RFC 3339"));
        assert!(with("content", json!(["x"])).contains("no text"));
    }

    #[test]
    fn a_receipt_is_flat_or_holds_the_message() {
        let flat =
            Receipt::parse(&json!({"id": "m1", "timestamp": "2026-05-18T18:23:11Z", "duplicate": true}));
        assert_eq!(flat.map(|one| (one.id, one.duplicate)), Some(("m1".into(), true)));
        let nested =
            Receipt::parse(&json!({"message": {"id": "m1", "createdAt": "2026-05-18T18:23:11Z"}})).unwrap();
        assert_eq!(nested.timestamp.as_deref(), Some("2026-05-18T18:23:11Z"));
        assert_eq!(Receipt::parse(&json!({"ok": true})), None);
    }
}
