//! The answers of assemblies: advice (A3), votes (V2), messages of peers (P3); and turns of a conversation (AIP-48), with the choice of
//! the next speakers.

use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use super::{MAX_ITEMS, non_empty_text, present, strings};
use crate::Json;

/// The severity of an emergency. The least severity is 0.
pub(crate) const MAX_SEVERITY: u8 = 10;

/// The assessment of an adviser, or of a node of a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// From 0 (nothing) to 10.
    pub severity: u8,
    /// The concern.
    pub concern: String,
    /// What it rests on.
    pub evidence: Vec<String>,
    /// What to do; may be empty.
    pub suggestion: String,
}

/// The JSON Schema.
pub(crate) fn schema() -> Json {
    json!({
        "type": "object",
        "required": ["severity", "concern"],
        "properties": {
            "severity": {
                "type": "integer", "minimum": 0, "maximum": MAX_SEVERITY,
                "description": "0 is nothing, 3 worth watching, 5 worth acting on, 9 an emergency"
            },
            "concern": {"type": "string", "description": "what it is about, in one or two sentences"},
            "evidence": {
                "type": ["array", "null"], "items": {"type": "string"}, "maxItems": MAX_ITEMS,
                "description": "words of the material, quoted exactly"
            },
            "suggestion": {
                "type": ["string", "null"],
                "description": "what to do, as one would say it to whoever does it; empty if nothing"
            }
        }
    })
}

impl Advice {
    /// Reads an answer; `None` where it lacks what the schema requires.
    pub fn read(answer: &Json) -> Option<Advice> {
        let object = answer.as_object()?;
        Some(Advice {
            severity: read_severity(present(object, "severity")?)?,
            concern: present(object, "concern")?.as_str()?.trim().to_owned(),
            evidence: strings(object, "evidence"),
            suggestion: non_empty_text(object, "suggestion").unwrap_or_default(),
        })
    }
}

/// A severity. JSON Schema counts `5.0` as an integer, and so do models.
fn read_severity(severity: &Json) -> Option<u8> {
    (0..=MAX_SEVERITY).find(|whole| severity.as_f64() == Some(f64::from(*whole)))
}

/// A vote on a proposal. A member without a vote is missing, which never counts as a yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vote {
    /// For the proposal.
    Yes,
    /// Against it.
    No,
    /// Neither; it is a vote all the same.
    Abstain,
}

/// A vote with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ballot {
    pub vote: Vote,
    /// Why; may be empty.
    pub rationale: String,
    /// What it rests on.
    pub evidence: Vec<String>,
}

quorate_manifest::words!(Vote { Yes = "yes", No = "no", Abstain = "abstain" });

/// The JSON Schema.
pub(crate) fn ballot_schema() -> Json {
    json!({
        "type": "object",
        "required": ["vote", "rationale"],
        "properties": {
            "vote": {"enum": ["yes", "no", "abstain"]},
            "rationale": {"type": "string", "description": "why, in a few sentences"},
            "evidence": {
                "type": ["array", "null"], "items": {"type": "string"}, "maxItems": MAX_ITEMS,
                "description": "words of the proposal, quoted exactly"
            }
        }
    })
}

impl Ballot {
    /// Reads an answer; `None` where it lacks what the schema requires.
    pub fn read(answer: &Json) -> Option<Ballot> {
        let object = answer.as_object()?;
        Some(Ballot {
            vote: Vote::parse(present(object, "vote")?.as_str()?)?,
            rationale: present(object, "rationale")?.as_str()?.trim().to_owned(),
            evidence: strings(object, "evidence"),
        })
    }
}

/// Where a message names members, as a JSON pointer.
pub(super) const RECIPIENTS: &str = "/addressedTo";
/// How many members a message names at most.
pub(super) const MAX_RECIPIENTS: usize = 1_000;

/// The recipients of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recipients {
    /// Every member that the sender reaches.
    All,
    /// The members with these ids, which may be unknown or out of reach.
    Members(Vec<String>),
}

/// The message of a peer in one round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The text; may be empty.
    pub message: String,
    /// Whom the message is for.
    pub to: Recipients,
    /// Whether its author objects to something; `None` where it does not say, which takes nothing back.
    pub objection: Option<bool>,
    /// Whether its author has nothing to add.
    pub pass: bool,
}

/// The JSON Schema.
pub(crate) fn message_schema() -> Json {
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

/// A participant's turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Turn {
    /// The text; never empty.
    pub content: String,
    /// What is kept with it.
    pub meta: Map<String, Json>,
    /// The participant's whole state from now on.
    pub state: Option<Map<String, Json>>,
}

/// The JSON Schema of a turn.
pub(crate) fn turn_schema() -> Json {
    json!({
        "type": "object",
        "required": ["content"],
        "properties": {
            "content": {"type": "string", "minLength": 1, "description": "what you say"},
            "meta": {"type": ["object", "null"], "description": "what is to be kept with it"},
            "stateUpdate": {
                "type": ["object", "null"],
                "description": "what you want to remember: all of it, since it replaces what you remembered"
            }
        }
    })
}

/// The JSON Schema of a choice of speakers.
pub(crate) fn selection_schema() -> Json {
    json!({
        "type": "object",
        "required": ["next"],
        "properties": {
            "next": {
                "type": "array", "items": {"type": "string"},
                "description": "the ids of those who are to speak next; none if nobody is to"
            },
            "reason": {"type": ["string", "null"], "description": "why, in a sentence"}
        }
    })
}

impl Turn {
    /// Reads an answer; `None` where it says nothing.
    pub fn read(answer: &Json) -> Option<Turn> {
        let object = answer.as_object()?;
        let content = present(object, "content")?.as_str()?;
        let table = |key| match present(object, key) {
            None => Some(None),
            Some(value) => value.as_object().cloned().map(Some),
        };
        let turn = Turn {
            content: content.to_owned(),
            meta: table("meta")?.unwrap_or_default(),
            state: table("stateUpdate")?,
        };
        (!content.trim().is_empty()).then_some(turn)
    }

    /// What was said as plain text, as an answer.
    pub fn plain_text_answer(text: &str) -> Json {
        json!({"content": text})
    }
}

/// The ids of the chosen speakers; `None` if the text is not a choice.
pub fn read_selection(answer: &Json) -> Option<Vec<String>> {
    let object = answer.as_object()?;
    present(object, "next")?.as_array()?;
    Some(strings(object, "next"))
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

#[cfg(test)]
mod turn_tests {
    use super::*;

    #[test]
    fn a_turn_says_something() {
        assert_eq!(Turn::read(&json!({"content": " "})), None);
        assert_eq!(Turn::read(&json!({"content": "a", "meta": 3})), None);
        let turn = Turn::read(&json!({"content": "a", "meta": null, "stateUpdate": {"n": 1}})).unwrap();
        assert_eq!((turn.content.as_str(), turn.meta.len()), ("a", 0));
        assert_eq!(turn.state.map(Json::Object), Some(json!({"n": 1})));
    }

    #[test]
    fn a_choice_is_a_list() {
        assert_eq!(read_selection(&json!({"next": ["a", 3]})), Some(vec!["a".to_owned()]));
        assert_eq!(read_selection(&json!({"next": "a"})), None);
    }
}
