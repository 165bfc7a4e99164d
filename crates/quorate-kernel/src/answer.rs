//! From what a member said to the JSON object that fits the schema (SEMANTICS X4): the whole output, a fenced block,
//! or a balanced object. Two different objects that fit are as bad as none.

use std::sync::LazyLock;

use jsonschema::Validator;
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;

use crate::strict_json;

/// How many objects of one output are looked at; an output with more is not an answer.
const CANDIDATES: usize = 64;
/// How many braces that never close are stepped over; each costs a look at the rest of the output.
const UNBALANCED: usize = 16;
/// How many complaints are quoted back.
const COMPLAINTS: usize = 6;

/// Finds the answer in an output.
///
/// # Errors
/// The complaints to quote in a re-prompt, in the order found; never empty.
pub fn extract(schema: Schema, output: &str) -> Result<Json, Vec<String>> {
    let mut fitting: Vec<Json> = Vec::new();
    let mut complaints: Vec<String> = Vec::new();
    for text in candidates(output) {
        match strict_json::parse(text) {
            Ok(value) if value.is_object() => match misfits(schema, &value) {
                misfits if misfits.is_empty() => {
                    if !fitting.contains(&value) {
                        fitting.push(value);
                    }
                }
                misfits => complaints.extend(misfits),
            },
            Ok(_) => {}
            Err(error) => complaints.push(format!("a JSON object could not be read: {error}")),
        }
    }
    match fitting.pop() {
        Some(answer) if fitting.is_empty() => Ok(answer),
        Some(_) => Err(vec!["the output has two different answers; give exactly one JSON object".to_owned()]),
        None => {
            if complaints.is_empty() {
                complaints.push("the output has no JSON object".to_owned());
            }
            complaints.truncate(COMPLAINTS);
            Err(complaints)
        }
    }
}

/// The texts of an output that could be an answer.
fn candidates(output: &str) -> Vec<&str> {
    let whole = output.trim();
    if whole.starts_with('{') && strict_json::parse(whole).is_ok() {
        return vec![whole];
    }
    let mut found = Vec::new();
    let (mut at, mut unbalanced) = (0, 0);
    while let Some(open) = output[at..].find('{').map(|offset| at + offset) {
        if found.len() == CANDIDATES || unbalanced == UNBALANCED {
            break;
        }
        at = match balanced(&output[open..]) {
            Some(length) => {
                found.push(&output[open..open + length]);
                open + length
            }
            None => {
                unbalanced += 1;
                open + 1
            }
        };
    }
    found
}

/// The length of the object that starts here, strings minded; `None` where it does not end.
fn balanced(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (true, b'"') => in_string = false,
            (true, _) => {}
            (false, b'"') => in_string = true,
            (false, b'{') => depth += 1,
            (false, b'}') => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            (false, _) => {}
        }
    }
    None
}

/// What keeps a value from fitting the schema.
fn misfits(schema: Schema, value: &Json) -> Vec<String> {
    let say = |error: jsonschema::ValidationError<'_>| {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { "the answer".to_owned() } else { format!("`{place}`") };
        let message: String = error.to_string().chars().take(200).collect();
        format!("{place}: {message}")
    };
    validator(schema).iter_errors(value).take(COMPLAINTS).map(say).collect()
}

fn validator(schema: Schema) -> &'static Validator {
    static FIRST: LazyLock<Validator> = LazyLock::new(|| compile(Schema::FirstAnswer));
    static SECOND: LazyLock<Validator> = LazyLock::new(|| compile(Schema::SecondAnswer));
    static ADJUDICATION: LazyLock<Validator> = LazyLock::new(|| compile(Schema::Adjudication));
    match schema {
        Schema::FirstAnswer => &FIRST,
        Schema::SecondAnswer => &SECOND,
        Schema::Adjudication => &ADJUDICATION,
    }
}

fn compile(schema: Schema) -> Validator {
    jsonschema::draft202012::new(&schema.json()).expect("the built-in answer schemas are valid JSON Schemas")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn first(output: &str) -> Result<Json, Vec<String>> {
        extract(Schema::FirstAnswer, output)
    }

    #[test]
    fn an_answer_is_found_whole_fenced_or_amid_talk() {
        // X4
        let answer = json!({"would_block": false, "score": 4, "notes": "a } in \"text\""});
        for output in [
            answer.to_string(),
            format!("  {answer}\n"),
            format!("Here you are:\n```json\n{answer}\n```\nDone."),
            format!("I think {answer} is right."),
            format!("```\n{answer}\n```\nand again {answer}"),
        ] {
            assert_eq!(first(&output).as_ref(), Ok(&answer), "{output}");
        }
    }

    #[test]
    fn two_different_answers_are_none() {
        // X4
        let said = first(r#"{"would_block": true} or rather {"would_block": false}"#).expect_err("ambiguous");
        assert!(said[0].contains("two different answers"), "{said:?}");
    }

    #[test]
    fn what_does_not_fit_says_why() {
        // C2, X5
        for (output, part) in [
            ("", "no JSON object"),
            ("ship it!", "no JSON object"),
            (r#"{"would_block": "true"}"#, "would_block"),
            (r#"{"verdict": "ship"}"#, "would_block"),
            (r#"{"would_block": false, "score": 9}"#, "score"),
            (r#"{"would_block": true, "would_block": false}"#, "twice"),
            (r#"[{"would_block": false}"#, ""),
        ] {
            let said = first(output);
            if output.starts_with('[') {
                assert!(said.is_ok(), "an object inside a broken list is still a balanced object");
                continue;
            }
            let said = said.expect_err(output);
            assert!(said.iter().any(|one| one.contains(part)), "{output}: {said:?}");
        }
    }

    #[test]
    fn a_flood_of_braces_is_cheap_and_no_answer() {
        assert!(first(&"{".repeat(1 << 20)).is_err());
        assert!(first(&"{}".repeat(1 << 20)).is_err());
    }

    #[test]
    fn the_second_answer_must_say_irreducible() {
        assert!(extract(Schema::SecondAnswer, r#"{"would_block": true}"#).is_err());
        assert!(extract(Schema::SecondAnswer, r#"{"would_block": true, "irreducible": false}"#).is_ok());
        assert!(extract(Schema::Adjudication, r#"{"final_verdict": "Hold", "reasoning": "r"}"#).is_ok());
        assert!(extract(Schema::Adjudication, r#"{"verdict": null, "reasoning": "r"}"#).is_err());
    }
}
