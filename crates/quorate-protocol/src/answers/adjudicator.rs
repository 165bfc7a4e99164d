//! The adjudicator's answer (seed: final_verdict, reasoning, revision_brief).

use serde_json::json;

use super::{non_empty_text, present};
use crate::Json;
use crate::policy::Verdict;

/// The adjudicator's answer, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adjudication {
    /// What it asks for. SHIP, REVISE or HOLD.
    pub verdict: Verdict,
    pub reasoning: String,
    pub revision_brief: Option<String>,
    /// Who disagreed, on what.
    pub dissent_summary: Option<String>,
}

/// The JSON Schema.
pub fn schema() -> Json {
    let verdict = json!({
        "type": ["string", "null"],
        "pattern": "^([Ss][Hh][Ii][Pp]|[Rr][Ee][Vv][Ii][Ss][Ee]|[Hh][Oo][Ll][Dd])$",
        "description": "SHIP, REVISE or HOLD"
    });
    let must = json!({"type": "string"});
    json!({
        "type": "object",
        "required": ["reasoning"],
        "anyOf": [
            {"required": ["verdict"], "properties": {"verdict": must}},
            {"required": ["final_verdict"], "properties": {"final_verdict": must}}
        ],
        "properties": {
            "verdict": verdict,
            "final_verdict": verdict,
            "reasoning": {"type": "string", "minLength": 1, "pattern": "\\S"},
            "revision_brief": {"type": ["string", "null"]},
            "dissent_summary": {"type": ["string", "null"]}
        }
    })
}

impl Adjudication {
    /// Reads an answer; `None` where it lacks what the schema requires. Where `verdict` and `final_verdict` differ
    /// the stricter holds.
    pub fn read(answer: &Json) -> Option<Adjudication> {
        let object = answer.as_object()?;
        let read = |key| match present(object, key) {
            None => Some(None),
            Some(word) => Verdict::read(word.as_str()?).map(Some),
        };
        let verdict =
            read("verdict")?.into_iter().chain(read("final_verdict")?).max_by_key(|v| v.strictness())?;
        Some(Adjudication {
            verdict,
            reasoning: non_empty_text(object, "reasoning")?,
            revision_brief: non_empty_text(object, "revision_brief"),
            dissent_summary: non_empty_text(object, "dissent_summary"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_name_of_the_verdict_is_read_in_any_case() {
        // C9
        for key in ["verdict", "final_verdict"] {
            let read = Adjudication::read(&json!({key: "revise", "reasoning": "two blocks"}));
            assert_eq!(read.map(|a| a.verdict), Some(Verdict::Revise));
        }
    }

    #[test]
    fn the_stricter_of_two_verdicts_holds() {
        let read = Adjudication::read(&json!({"verdict": "SHIP", "final_verdict": "HOLD", "reasoning": "r"}));
        assert_eq!(read.map(|a| a.verdict), Some(Verdict::Hold));
    }

    #[test]
    fn empty_reasoning_is_no_answer() {
        // C9
        assert_eq!(Adjudication::read(&json!({"verdict": "SHIP", "reasoning": "  "})), None);
    }
}
