//! The form of messages, receipts and metadata, and who wrote a message.

use std::collections::BTreeMap;

use quorate_kernel::clock::rfc3339;
use quorate_kernel::conversation::{NewTurn, Participant, Stamp};
use quorate_protocol::{Json, Name};
use serde::{Deserialize, Serialize};
use serde_json::Map;

/// The author of a message for which the server names none (K17).
pub(super) const SYSTEM: &str = "system";

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct AuthorMap {
    /// The operator of each participant; `None` for the default.
    operators: BTreeMap<Name, Option<String>>,
    /// The operator that other participants post as.
    default_operator: Option<String>,
    participants_by_operator: BTreeMap<String, Name>,
}

/// The author of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Author {
    /// A participant's id, or the server's name of another author.
    pub(super) name: Name,
    /// Whether the metadata of the message may be Quorate's.
    pub(super) is_trusted: bool,
}

impl AuthorMap {
    /// The participants, and the operator of those without one of their own.
    pub(super) fn new(participants: &[Participant], default: Option<&str>) -> Self {
        let operators: BTreeMap<Name, Option<String>> = participants
            .iter()
            .map(|participant| (participant.id.clone(), participant.operator().map(str::to_owned)))
            .collect();
        let mut participants_by_operator = BTreeMap::new();
        for participant in participants {
            if let Some(operator) = participant.operator() {
                participants_by_operator.entry(operator.to_owned()).or_insert_with(|| participant.id.clone());
            }
        }
        // If only one participant lacks an operator, the default operator is that participant.
        let mut without = participants.iter().filter(|participant| participant.operator().is_none());
        if let (Some(default), Some(only), None) = (default, without.next(), without.next()) {
            participants_by_operator.entry(default.to_owned()).or_insert_with(|| only.id.clone());
        }
        AuthorMap { operators, default_operator: default.map(str::to_owned), participants_by_operator }
    }

    /// The operator that a participant's turns are posted as; `None` means the token's own.
    pub(super) fn operator_for(&self, name: &str) -> Option<&str> {
        self.operators.get(name).and_then(Option::as_deref).or(self.default_operator.as_deref())
    }

    /// The author of a message, by the server's names for it and the participant that its metadata claims.
    pub(super) fn resolve(&self, authors: &[String], claimed: Option<&Name>) -> Author {
        // Nothing supports a claim without an author.
        if authors.is_empty() {
            return Author { name: SYSTEM.into(), is_trusted: false };
        }
        let any = |fits: &dyn Fn(&str) -> bool| authors.iter().any(|author| fits(author));
        if let Some(claimed) = claimed {
            // A server with participants of its own may use the participant's id.
            let by_id = any(&|author| *author == **claimed);
            let holds = by_id
                || match self.operator_for(claimed) {
                    Some(operator) => any(&|author| author == operator),
                    // The operator of the token is unknown, but it is not an operator of a participant.
                    None => !any(&|author| self.participants_by_operator.contains_key(author)),
                };
            if holds {
                return Author { name: claimed.clone(), is_trusted: true };
            }
        }
        let name = authors.iter().find_map(|author| self.participants_by_operator.get(author).cloned());
        let name = name.or_else(|| authors.first().map(|author| Name::from(author.as_str())));
        Author { name: name.unwrap_or_default(), is_trusted: false }
    }
}

const METADATA_KEY: &str = "quorate";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TurnMetadata {
    pub(super) participant: Name,
    /// The id of the attempt to post it, so that it is found if the response is lost.
    pub(super) post: String,
    /// The author's own metadata.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) meta: Map<String, Json>,
    /// Ties it to the turn that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stamp: Option<Stamp>,
}

impl TurnMetadata {
    /// The metadata of a turn to post.
    pub(super) fn new(turn: &NewTurn, post: &str) -> Self {
        TurnMetadata {
            participant: turn.participant.clone(),
            post: post.to_owned(),
            meta: turn.meta.clone(),
            stamp: turn.stamp.clone(),
        }
    }

    pub(super) fn to_metadata(&self) -> Json {
        // A struct of strings and JSON always serializes.
        let value = serde_json::to_value(self).unwrap_or_default();
        Json::Object(Map::from_iter([(METADATA_KEY.to_owned(), value)]))
    }

    /// Removes Quorate's part from metadata. A part in another form is dropped.
    pub(super) fn take_from(metadata: &mut Map<String, Json>) -> Option<Self> {
        metadata.remove(METADATA_KEY).and_then(|value| serde_json::from_value(value).ok())
    }
}

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
        let fields = value.as_object().ok_or("is not an object")?;
        let id = message_id(fields)?;
        let with_id = |problem: String| format!("`{id}` {problem}");
        let nested = fields
            .get("author")
            .and_then(|author| first_string(author).or_else(|| first_string(author.get("id")?)));
        let candidates = AUTHORS.iter().filter_map(|name| first_string(fields.get(*name)?)).chain(nested);
        let authors: Vec<String> = candidates.filter(|author| !author.is_empty()).collect();
        Ok(Message {
            authors,
            content: message_content(fields).map_err(with_id)?,
            timestamp: message_time(fields).unwrap_or_default(),
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
        let id = message_id(fields).or_else(|_| message_id(receipt)).ok()?;
        let timestamp = message_time(fields).or_else(|| message_time(receipt));
        let duplicate = receipt.get("duplicate").and_then(Json::as_bool).unwrap_or(false);
        Some(Receipt { id, timestamp, duplicate })
    }
}

fn message_id(fields: &Map<String, Json>) -> Result<String, String> {
    let id = first_text(fields, IDS).ok_or("has no id")?;
    // Ids become part of keys that are separated by white space elsewhere.
    match id.is_empty() || id.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        true => Err(format!("has an id with white space, {id:?}, or none")),
        false => Ok(id),
    }
}

fn message_content(fields: &Map<String, Json>) -> Result<String, String> {
    let present = || CONTENTS.iter().filter_map(|name| fields.get(*name));
    let written = present().find(|value| !value.is_null()).or_else(|| present().next());
    match written.ok_or_else(|| "has no content".to_owned())? {
        Json::String(first_string) => Ok(first_string.clone()),
        // A message may consist of an attachment alone.
        Json::Null => Ok(String::new()),
        _ => Err("has a content that is not a text".to_owned()),
    }
}

/// When the message was stored, by the server's clock.
fn message_time(fields: &Map<String, Json>) -> Option<String> {
    TIMES.iter().find_map(|name| match fields.get(*name)? {
        Json::String(first_string) => Some(first_string.clone()),
        number => number.as_i64().map(rfc3339),
    })
}

fn first_text(fields: &Map<String, Json>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| first_string(fields.get(*name)?))
}

fn first_string(value: &Json) -> Option<String> {
    match value {
        Json::String(first_string) => Some(first_string.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

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
        assert!(with("content", json!(["x"])).unwrap_err().contains("not a text"));
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

    fn one(id: &str, operator: Option<&str>) -> Participant {
        let mut participant = Participant { id: id.into(), ..Participant::default() };
        participant.meta.extend(operator.map(|operator| ("operatorId".to_owned(), json!(operator))));
        participant
    }

    #[test]
    fn authors_are_participants_by_operator_or_by_id() {
        let authors = AuthorMap::new(&[one("reviewer", Some("op_7")), one("scribe", None)], Some("op_bot"));
        let name = |author: &str| authors.resolve(&[author.to_owned()], None).name.to_string();
        assert_eq!(
            [name("op_7"), name("scribe"), name("op_bot"), name("u_1")],
            ["reviewer", "scribe", "scribe", "u_1"]
        );
        assert_eq!(authors.operator_for("reviewer"), Some("op_7"));
        assert_eq!(authors.operator_for("somebody"), Some("op_bot"));
        // A message without an author is a turn of `system` (K17).
        let system = authors.resolve(&[], Some(&"scribe".into()));
        assert_eq!((&*system.name, system.is_trusted), ("system", false));
    }

    #[test]
    fn a_claim_holds_only_for_whom_its_author_posts() {
        let authors =
            AuthorMap::new(&[one("reviewer", Some("op_7")), one("a", None), one("b", None)], Some("op_bot"));
        let author =
            |author: &str, claimed: &str| authors.resolve(&[author.to_owned()], Some(&Name::from(claimed)));
        assert!(author("op_bot", "b").is_trusted);
        let forged = author("u_1", "reviewer");
        assert_eq!((forged.name.as_ref(), forged.is_trusted), ("u_1", false));
        assert!(!author("op_bot", "reviewer").is_trusted && author("reviewer", "reviewer").is_trusted);
        // A server may return an operator's display name as well as its id.
        let both = ["ada".to_owned(), "op_7".to_owned()];
        assert!(authors.resolve(&both, Some(&"reviewer".into())).is_trusted);
        assert_eq!(&*authors.resolve(&both, None).name, "reviewer");
        let anonymous = AuthorMap::new(&[one("reviewer", Some("op_7")), one("a", None)], None);
        assert!(anonymous.resolve(&["token".to_owned()], Some(&"a".into())).is_trusted);
        assert!(!anonymous.resolve(&["op_7".to_owned()], Some(&"a".into())).is_trusted);
    }
}
