//! A turn in a conversation (AIP-48), and the choice of who takes the next one.

use serde_json::{Map, json};

use super::{present, strings};
use crate::Json;

/// What a participant says, read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Turn {
    /// What is said; says something.
    pub content: String,
    /// What is kept with it.
    pub meta: Map<String, Json>,
    /// The participant's whole state from now on.
    pub state: Option<Map<String, Json>>,
}

/// The JSON Schema of a turn.
pub fn schema() -> Json {
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
pub fn selection_schema() -> Json {
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
