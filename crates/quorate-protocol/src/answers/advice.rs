//! The answer of an adviser or of a hierarchy node (A2): severity, concern, evidence and suggestion.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{MAX_ITEMS, non_empty_text, present, strings};
use crate::Json;

pub const MAX_SEVERITY: u8 = 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// From 0 (nothing) to 10.
    pub severity: u8,
    /// What it is about.
    pub concern: String,
    /// What it rests on.
    pub evidence: Vec<String>,
    /// What to do; may be empty.
    pub suggestion: String,
}

/// The JSON Schema.
pub fn schema() -> Json {
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
