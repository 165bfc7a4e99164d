//! A deliberator's answer (seed: verdict, scores, would_block, irreducible, revision_brief).

use std::collections::HashSet;

use serde_json::json;

use super::{MAX_ITEMS, non_empty_text, present};
use crate::Json;
use crate::policy::Verdict;

/// Where the public tool's prompts have a deliberator list what is wrong.
pub(crate) const ISSUE_LISTS: [&str; 4] =
    ["top_3_issues", "top_3_failure_modes", "calibration_issues", "causality_gaps"];
/// Where they have it list places in the text: findings in other words (`snippet` for `quote`, `rule` for `issue`).
pub(crate) const VIOLATIONS_LIST: &str = "voice_violations";

/// Where it lists the parts of the text that it did not judge, such as `line 5 (a comment)`. No policy counts it.
pub const NOT_JUDGED: &str = "not_judged";

/// Which of its answers: the second must say whether a block is irreducible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// The independent answer.
    First,
    /// The answer after it has read the others.
    Second,
}

/// A deliberator's answer, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Whether it would stop the artifact.
    pub would_block: bool,
    /// Whether no revision could repair what it blocks on.
    pub irreducible: bool,
    /// Its leaning, if the answer has one. No policy counts it.
    pub verdict: Option<Leaning>,
    /// `score`, else the mean of `scores`: 1 to 5.
    pub score: Option<f64>,
    /// What should change, in its own words.
    pub revision_brief: Option<String>,
    /// What it found; `None` where the answer has no such list.
    pub findings: Option<Vec<Finding>>,
}

/// What a deliberator leans to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaning {
    /// It would publish the text.
    Ship,
    /// It would publish the text after changes.
    Revise,
    /// It would not publish the text.
    Hold,
}

/// One thing that a deliberator found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The words that it is about, as the member gives them.
    pub quote: String,
    /// The problem.
    pub issue: String,
    /// A repair.
    pub fix: Option<String>,
    /// The line that the member says; a hint for looking up the quote.
    pub line: Option<u64>,
}

/// The JSON Schema of one round's answer.
pub(crate) fn schema(round: Round) -> Json {
    let (required, irreducible) = match round {
        Round::First => (json!(["would_block"]), json!({"type": ["boolean", "null"]})),
        Round::Second => (
            json!(["would_block", "irreducible"]),
            json!({
                "type": "boolean",
                "description": "true only if you block and no revision could repair what you block on"
            }),
        ),
    };
    json!({
        "type": "object",
        "required": required,
        "properties": {
            "verdict": {
                "type": ["string", "null"],
                "pattern": "^([Ss][Hh][Ii][Pp]|[Rr][Ee][Vv][Ii][Ss][Ee]|[Hh][Oo][Ll][Dd])$",
                "description": "ship, revise or hold"
            },
            "score": {"type": ["number", "null"], "minimum": 1, "maximum": 5},
            "scores": {
                "type": ["object", "null"],
                "additionalProperties": {"type": "number", "minimum": 1, "maximum": 5}
            },
            "would_block": {"type": "boolean", "description": "true if this must not go out as it is"},
            "irreducible": irreducible,
            "revision_brief": {"type": ["string", "null"]},
            "findings": {
                "type": ["array", "null"],
                "maxItems": MAX_ITEMS,
                "items": {
                    "type": "object",
                    "required": ["quote", "issue"],
                    "properties": {
                        "quote": {"type": "string", "description": "the exact words of the artifact"},
                        "issue": {"type": "string"},
                        "fix": {"type": ["string", "null"]},
                        "line": {"type": ["integer", "null"], "minimum": 1}
                    }
                }
            },
            "concessions": {"type": ["array", "string", "null"], "maxItems": MAX_ITEMS},
            "escalations": {"type": ["array", "string", "null"], "maxItems": MAX_ITEMS},
            "notes": {"type": ["string", "null"]}
        }
    })
}

impl Answer {
    /// Reads an answer; `None` where it lacks what the schema requires.
    pub fn read(round: Round, answer: &Json) -> Option<Answer> {
        let object = answer.as_object()?;
        let irreducible = match (round, present(object, "irreducible")) {
            (_, Some(value)) => value.as_bool()?,
            (Round::First, None) => false,
            (Round::Second, None) => return None,
        };
        Some(Answer {
            would_block: object.get("would_block")?.as_bool()?,
            irreducible,
            verdict: non_empty_text(object, "verdict")
                .and_then(|word| Leaning::parse(&word.to_ascii_lowercase())),
            score: score(object),
            revision_brief: non_empty_text(object, "revision_brief"),
            findings: ["findings", VIOLATIONS_LIST]
                .into_iter()
                .find_map(|key| present(object, key)?.as_array())
                .map(|all| all.iter().filter_map(finding).collect()),
        })
    }
}

/// What an answer lists as wrong beside its findings, each text once.
pub fn issues(answer: &Json) -> Vec<String> {
    // A ledger may hold lists that are longer than an answer's may be now.
    let mut seen = HashSet::new();
    let listed = ISSUE_LISTS.into_iter().filter_map(|key| answer.get(key)?.as_array()).flatten();
    listed.filter_map(entry_text).filter(|issue| seen.insert(issue.clone())).collect()
}

/// An entry of a list: a text, or the texts of an object in one.
pub(crate) fn entry_text(value: &Json) -> Option<String> {
    let said = match value {
        Json::String(text) => text.trim().to_owned(),
        Json::Object(object) => {
            let texts = object.values().filter_map(Json::as_str).map(str::trim);
            texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
        }
        _ => return None,
    };
    (!said.is_empty()).then_some(said)
}

quorate_manifest::words!(Leaning { Ship = "ship", Revise = "revise", Hold = "hold" });

fn score(object: &serde_json::Map<String, Json>) -> Option<f64> {
    if let Some(score) = present(object, "score") {
        return score.as_f64();
    }
    let scores: Vec<f64> =
        present(object, "scores")?.as_object()?.values().filter_map(Json::as_f64).collect();
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

fn finding(value: &Json) -> Option<Finding> {
    let object = value.as_object()?;
    let either =
        |key: &str, public: &str| Some(object.get(key).or_else(|| object.get(public))?.as_str()?.to_owned());
    Some(Finding {
        quote: either("quote", "snippet")?,
        issue: either("issue", "rule")?,
        fix: non_empty_text(object, "fix"),
        line: present(object, "line").and_then(Json::as_u64),
    })
}

/// The adjudicator's answer, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adjudication {
    /// What it asks for. SHIP, REVISE or HOLD.
    pub verdict: Verdict,
    /// Never blank.
    pub reasoning: String,
    /// The changes to make before the text is published.
    pub revision_brief: Option<String>,
    /// Who disagreed, on what.
    pub dissent_summary: Option<String>,
}

/// The JSON Schema.
pub(crate) fn adjudication_schema() -> Json {
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
        let verdict = read("verdict")?.into_iter().chain(read("final_verdict")?).max()?;
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
    fn a_boolean_in_quotes_is_no_answer() {
        // C2
        assert_eq!(Answer::read(Round::First, &json!({"would_block": "true"})), None);
        assert_eq!(Answer::read(Round::Second, &json!({"would_block": false, "irreducible": "no"})), None);
    }

    #[test]
    fn irreducible_may_be_absent_in_the_first_round_only() {
        // C2
        let answer = json!({"would_block": true});
        assert_eq!(Answer::read(Round::First, &answer).map(|a| a.irreducible), Some(false));
        assert_eq!(Answer::read(Round::Second, &answer), None);
    }

    #[test]
    fn what_it_leans_to_is_read_in_any_case() {
        // C2
        let leaning = |word: &str| {
            let answer = json!({"would_block": false, "verdict": word});
            Answer::read(Round::First, &answer).expect("read").verdict.map(Leaning::as_str)
        };
        for (word, read) in [("ship", "ship"), ("Revise", "revise"), ("HOLD", "hold")] {
            assert_eq!(leaning(word), Some(read));
        }
        assert_eq!(leaning("perhaps"), None);
    }

    #[test]
    fn what_the_public_prompts_ask_for_is_read() {
        // C2
        let answer = json!({
            "would_block": true,
            "top_3_issues": ["No source.", " ", 3],
            "top_3_failure_modes": ["No source.", {"reader": "Buyer", "fails": "asks for the price"}],
            "voice_violations": [{"line": 4, "rule": "V1", "snippet": "not X but Y", "fix": "Say Y."}, {"rule": "V2"}],
        });
        assert_eq!(issues(&answer), ["No source.", "asks for the price; Buyer"]);
        let read = Answer::read(Round::First, &answer).expect("read");
        let finding = Finding {
            quote: "not X but Y".into(),
            issue: "V1".into(),
            fix: Some("Say Y.".into()),
            line: Some(4),
        };
        assert_eq!(read.findings, Some(vec![finding]));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it is about time")]
    fn the_issues_of_a_long_list_are_read_in_one_pass() {
        let many: Vec<String> = (0..60_000).map(|n| format!("a{n}")).collect();
        let started = std::time::Instant::now();
        let read = issues(&json!({"top_3_issues": many, "causality_gaps": many}));
        assert_eq!(read, many);
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
    }

    #[test]
    fn a_bare_score_and_named_scores_are_both_read() {
        // C2
        let bare = Answer::read(Round::First, &json!({"would_block": false, "score": 4}));
        assert_eq!(bare.and_then(|a| a.score), Some(4.0));
        let named = Answer::read(Round::First, &json!({"would_block": false, "scores": {"a": 2, "b": 3}}));
        assert_eq!(named.and_then(|a| a.score), Some(2.5));
    }
}

#[cfg(test)]
mod adjudicator_tests {
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
