//! A vote (V2).

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{MAX_ITEMS, present, strings};
use crate::Json;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vote {
    Yes,
    No,
    /// Neither; it is a vote all the same.
    Abstain,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ballot {
    pub vote: Vote,
    pub rationale: String,
    /// What it rests on.
    pub evidence: Vec<String>,
}

impl Vote {
    /// The word in answers and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Vote::Yes => "yes",
            Vote::No => "no",
            Vote::Abstain => "abstain",
        }
    }

    /// The vote of a word.
    pub fn read(word: &str) -> Option<Vote> {
        [Vote::Yes, Vote::No, Vote::Abstain].into_iter().find(|vote| vote.as_str() == word)
    }
}

/// The JSON Schema.
pub fn schema() -> Json {
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
            vote: Vote::read(present(object, "vote")?.as_str()?)?,
            rationale: present(object, "rationale")?.as_str()?.trim().to_owned(),
            evidence: strings(object, "evidence"),
        })
    }
}
