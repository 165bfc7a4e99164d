//! A tier: how important a text is, as a classifier says.

use serde_json::json;

use super::{non_empty_text, present};
use crate::Json;

/// The tier of a text, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierAnswer {
    /// 1, 2 or 3.
    pub tier: u8,
    /// Why, as a message for users.
    pub reason: String,
}

/// The JSON Schema. The numbers are words, since some services take enumerations of texts alone.
pub fn schema() -> Json {
    json!({
        "type": "object",
        "required": ["tier", "reason"],
        "properties": {
            "tier": {"enum": ["1", "2", "3"], "description": "the tier; 1 where you cannot tell"},
            "reason": {"type": "string", "pattern": r"[^\s]", "description": "why, in a sentence"}
        }
    })
}

impl TierAnswer {
    /// Reads an answer; `None` where it lacks what the schema requires.
    pub fn read(answer: &Json) -> Option<TierAnswer> {
        let object = answer.as_object()?;
        let tier = match present(object, "tier")?.as_str()? {
            "1" => 1,
            "2" => 2,
            "3" => 3,
            _ => return None,
        };
        Some(TierAnswer { tier, reason: non_empty_text(object, "reason")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_is_one_of_three_words_with_a_reason() {
        let read = |tier: Json, reason: Json| TierAnswer::read(&json!({"tier": tier, "reason": reason}));
        for (word, tier) in [("1", 1), ("2", 2), ("3", 3)] {
            assert_eq!(read(json!(word), json!(" r ")), Some(TierAnswer { tier, reason: "r".into() }));
        }
        for (tier, reason) in [
            (json!(2), json!("r")),
            (json!("0"), json!("r")),
            (json!("4"), json!("r")),
            (json!("tier 2"), json!("r")),
            (json!(null), json!("r")),
            (json!("2"), json!(" ")),
            (json!("2"), json!(null)),
        ] {
            assert_eq!(read(tier.clone(), reason), None, "{tier}");
        }
    }
}
