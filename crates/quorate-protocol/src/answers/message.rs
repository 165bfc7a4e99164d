//! A message of a peer (P3).

use serde_json::json;

use super::present;
use crate::Json;

/// Where a message names members, as a JSON pointer.
pub(super) const RECIPIENTS: &str = "/addressedTo";
/// How many members a message names at most.
pub(super) const MAX_RECIPIENTS: usize = 1_000;

/// Whom a message is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recipients {
    All,
    Members(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What is said; may be empty.
    pub message: String,
    pub to: Recipients,
    /// Whether its author objects to something; `None` where it does not say, which takes nothing back.
    pub objection: Option<bool>,
    /// Whether its author has nothing to add.
    pub pass: bool,
}

/// The JSON Schema.
pub fn schema() -> Json {
    json!({
        "type": "object",
        "required": ["message"],
        "properties": {
            "message": {"type": "string", "description": "what you say to the others"},
            "addressedTo": {
                "type": ["string", "array", "null"], "items": {"type": "string"}, "maxItems": MAX_RECIPIENTS,
                "description": "\"*\" for everybody in reach, or the ids of members"
            },
            "objection": {"type": ["boolean", "null"], "description": "true while you object to something; false takes back what you objected to"},
            "pass": {"type": ["boolean", "null"], "description": "true if you have nothing to add"}
        }
    })
}

impl Message {
    /// Reads an answer; `None` where it lacks what the schema requires.
    pub fn read(answer: &Json) -> Option<Message> {
        let object = answer.as_object()?;
        let flag = |key| match present(object, key) {
            None => Some(None),
            Some(value) => value.as_bool().map(Some),
        };
        let named = |ids: Vec<String>| match ids.iter().any(|id| id == "*") {
            true => Recipients::All,
            false => Recipients::Members(ids),
        };
        let to = match present(object, "addressedTo") {
            None => Recipients::All,
            Some(Json::String(id)) => named(vec![id.trim().to_owned()]),
            Some(value) => {
                let ids = value.as_array()?.iter();
                named(ids.map(|id| Some(id.as_str()?.trim().to_owned())).collect::<Option<Vec<_>>>()?)
            }
        };
        Some(Message {
            message: present(object, "message")?.as_str()?.trim().to_owned(),
            to,
            objection: flag("objection")?,
            pass: flag("pass")?.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_without_addressees_is_for_all() {
        // P3
        let to =
            |value: Json| Message::read(&json!({"message": "m", "addressedTo": value})).map(|one| one.to);
        assert_eq!(to(Json::Null), Some(Recipients::All));
        assert_eq!(to(json!("*")), Some(Recipients::All));
        assert_eq!(to(json!(["*", "a"])), Some(Recipients::All));
        assert_eq!(to(json!("a")), Some(Recipients::Members(vec!["a".into()])));
        assert_eq!(to(json!(["a", "b"])), Some(Recipients::Members(vec!["a".into(), "b".into()])));
        assert_eq!(to(json!([])), Some(Recipients::Members(Vec::new())));
        assert_eq!(to(json!([1])), None);
    }
}
