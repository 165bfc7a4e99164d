//! Answers of a reflection: deltas, which propose playbooks, and the judgement of a prompt fragment by the locked traits.
//! The caller applies a delta to the workspace; this module only validates its shape.

use serde_json::{Map, json};

use super::{non_empty_text, present, strings};
use crate::Json;

/// A slug, as manifests have it.
const SLUG_PATTERN: &str = "^[a-z][a-z0-9-]*[a-z0-9]$";
/// A text with something in it.
const NON_BLANK_PATTERN: &str = r"[^\s]";

/// The verdict on a fragment under the locked traits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraitVerdict {
    /// It touches none of them.
    Keeps,
    /// It goes against one of them.
    Betrays,
    /// Undecided. The caller treats it as a no.
    Unsure,
}

/// A judge's answer, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The judgement's verdict.
    pub verdict: TraitVerdict,
    /// The ids of the traits that it is about.
    pub traits: Vec<String>,
    /// Why, as a message for users.
    pub reason: String,
}

/// The JSON Schema of deltas.
pub(crate) fn deltas_schema() -> Json {
    json!({
        "type": "object",
        "required": ["deltas"],
        "properties": {
            "deltas": {
                "type": "array",
                "description": "what you propose, one item for each change; empty where nothing has earned one",
                "items": delta_schema()
            }
        }
    })
}

/// Fields of all deltas are at the top; fields of one kind are below the condition.
fn delta_schema() -> Json {
    json!({
        "type": "object",
        "required": ["op", "slug", "body"],
        "properties": {
            "op": {
                "enum": ["add", "revise"],
                "description": "add a playbook, or give one that is in shadow another text"
            },
            "slug": {"type": "string", "pattern": SLUG_PATTERN, "minLength": 2, "maxLength": 80},
            "body": {
                "type": "string", "pattern": NON_BLANK_PATTERN,
                "description": "the whole prompt fragment, addressed to the operator, in Markdown"
            },
            "evidence": evidence_schema()
        },
        "if": {"properties": {"op": {"const": "add"}}},
        "then": {"required": ["title"], "properties": new_playbook_properties()},
        "else": {
            "required": ["summary"],
            "properties": {
                "summary": {
                    "type": "string", "pattern": NON_BLANK_PATTERN,
                    "description": "what is different, in one line"
                }
            }
        }
    })
}

/// The keys that only a new playbook has.
fn new_playbook_properties() -> Json {
    let words =
        |what: &str| json!({"type": ["array", "null"], "items": {"type": "string"}, "description": what});
    json!({
        "title": {
            "type": "string", "pattern": NON_BLANK_PATTERN, "maxLength": 200,
            "description": "what the fragment does, in one sentence"
        },
        "targets": {
            "type": ["array", "null"], "minItems": 1,
            "items": {
                "type": "object",
                "required": ["kind", "ref"],
                "properties": {
                    "kind": {"enum": ["operator", "role", "skill", "runtime"]},
                    "ref": {"type": "string", "minLength": 1, "maxLength": 200}
                }
            },
            "description": "whom it is for; left out, the operator that you reflect on"
        },
        "selector": {
            "type": ["object", "null"], "minProperties": 1,
            "description": "whom it is for, by axis, in place of targets"
        },
        "block": {
            "type": ["string", "null"],
            "description": "the block of the prompt that it takes the place of; left out, it is added"
        },
        "priority": {
            "type": ["integer", "null"], "minimum": 0, "maximum": 100,
            "description": "what is woven first; 50 where left out"
        },
        "lock_check": words("the ids of the locked traits that you have made sure it leaves alone"),
        "ttl": {
            "type": ["string", "null"],
            "description": "how long it holds, as an ISO 8601 duration such as P30D"
        },
        "supersedes": words("the slugs of playbooks that it takes the place of"),
        "tags": words("words that it is found by, in lower case"),
        "metadata": {"type": ["object", "null"]}
    })
}

fn evidence_schema() -> Json {
    json!({
        "type": ["array", "null"],
        "items": {
            "type": "object",
            "required": ["kind", "ref"],
            "properties": {
                "kind": {"enum": ["run", "conversation", "work-item", "reflection", "human"]},
                "ref": {
                    "type": "string", "minLength": 1, "maxLength": 500,
                    "description": "its id, as the material gives it"
                },
                "note": {
                    "type": ["string", "null"], "maxLength": 1000,
                    "description": "what it shows, in one line"
                }
            }
        },
        "description": "what it was learned from"
    })
}

/// The JSON Schema of a judgement.
pub(crate) fn judgement_schema() -> Json {
    json!({
        "type": "object",
        "required": ["verdict", "reason"],
        "properties": {
            "verdict": {
                "enum": ["keeps", "betrays", "unsure"],
                "description": "whether whoever follows the fragment still has every one of the traits"
            },
            "traits": {
                "type": ["array", "null"], "items": {"type": "string"},
                "description": "the ids of those that it goes against, or may go against"
            },
            "reason": {"type": "string", "pattern": NON_BLANK_PATTERN, "description": "why, in a sentence or two"}
        }
    })
}

/// The deltas of an answer, each as the object that it is: what is null is left out, and a whole number is written as one.
/// `None` if the list is missing, or an entry is not a delta.
pub fn read_deltas(answer: &Json) -> Option<Vec<Map<String, Json>>> {
    present(answer.as_object()?, "deltas")?.as_array()?.iter().map(read_delta).collect()
}

fn read_delta(value: &Json) -> Option<Map<String, Json>> {
    let mut object = value.as_object()?.clone();
    let says = |object: &Map<String, Json>, keys: &[&str]| {
        keys.iter().all(|key| object.get(*key).is_some_and(Json::is_string))
    };
    let needed: &[&str] = match object.get("op")?.as_str()? {
        "add" => &["slug", "title", "body"],
        "revise" => &["slug", "body", "summary"],
        _ => return None,
    };
    if !says(&object, needed) {
        return None;
    }
    without_nulls(&mut object);
    for list in ["evidence", "targets"] {
        let items = object.get_mut(list).and_then(Json::as_array_mut).into_iter().flatten();
        items.filter_map(Json::as_object_mut).for_each(without_nulls);
    }
    // A schema takes 50.0 for an integer; a typed reader would not.
    if let Some(priority) = object.get_mut("priority")
        && let Some(whole) = (0..=100_u8).find(|whole| priority.as_f64() == Some(f64::from(*whole)))
    {
        *priority = json!(whole);
    }
    Some(object)
}

fn without_nulls(object: &mut Map<String, Json>) {
    object.retain(|_, value| !value.is_null());
}

quorate_manifest::words!(TraitVerdict { Keeps = "keeps", Betrays = "betrays", Unsure = "unsure" });

impl Judgement {
    /// Reads an answer; `None` where it lacks what the schema requires.
    pub fn read(answer: &Json) -> Option<Judgement> {
        let object = answer.as_object()?;
        present(object, "reason")?.as_str()?;
        Some(Judgement {
            verdict: TraitVerdict::parse(present(object, "verdict")?.as_str()?)?,
            traits: strings(object, "traits"),
            reason: non_empty_text(object, "reason").unwrap_or_default(),
        })
    }

    /// It as an answer.
    pub fn to_json(&self) -> Json {
        json!({"verdict": self.verdict.as_str(), "traits": self.traits, "reason": self.reason})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_are_objects_without_nulls() {
        let answer = json!({"deltas": [
            {
                "op": "add", "slug": "name-the-base", "title": "t", "body": "b", "ttl": null, "lock_check": null,
                "priority": 40.0, "metadata": {"house": {"kept": null}}, "odd": 1,
                "evidence": [{"kind": "run", "ref": "r1", "note": null}]
            },
            {"op": "revise", "slug": "s1", "body": "b", "summary": "s"}
        ]});
        let read = read_deltas(&answer).expect("deltas");
        let first = json!({
            "op": "add", "slug": "name-the-base", "title": "t", "body": "b", "priority": 40,
            "metadata": {"house": {"kept": null}}, "odd": 1, "evidence": [{"kind": "run", "ref": "r1"}]
        });
        assert_eq!(Json::Object(read[0].clone()), first);
        assert_eq!(Json::Object(read[1].clone()), answer["deltas"][1]);
        assert_eq!(read_deltas(&json!({"deltas": []})), Some(Vec::new()));
    }

    #[test]
    fn one_that_is_no_delta_spoils_the_list() {
        for item in [
            json!(null),
            json!("add"),
            json!({"op": "remove", "slug": "s1", "body": "b"}),
            json!({"op": "add", "slug": "s1", "body": "b"}),
            json!({"op": "revise", "slug": "s1", "title": "t", "body": "b"}),
            json!({"op": "add", "slug": "s1", "title": null, "body": "b"}),
        ] {
            let fine = json!({"op": "revise", "slug": "s1", "body": "b", "summary": "s"});
            assert_eq!(read_deltas(&json!({"deltas": [fine, item]})), None, "{item}");
        }
        assert_eq!(read_deltas(&json!({"deltas": null})), None);
        assert_eq!(read_deltas(&json!([])), None);
    }

    #[test]
    fn a_judgement_says_which_of_the_three() {
        let judged =
            Judgement::read(&json!({"verdict": "betrays", "traits": ["warmth"], "reason": " cold "}));
        let wanted = Judgement {
            verdict: TraitVerdict::Betrays,
            traits: vec!["warmth".into()],
            reason: "cold".into(),
        };
        assert_eq!(judged.as_ref(), Some(&wanted));
        assert_eq!(Judgement::read(&wanted.to_json()).as_ref(), Some(&wanted));
        let bare = Judgement::read(&json!({"verdict": "unsure", "traits": null, "reason": "r"}));
        assert_eq!(bare.map(|reflection| reflection.traits), Some(Vec::new()));
        for answer in [
            json!({"verdict": "Keeps", "reason": "r"}),
            json!({"verdict": true, "reason": "r"}),
            json!({"verdict": "keeps"}),
            json!({"reason": "r"}),
        ] {
            assert_eq!(Judgement::read(&answer), None, "{answer}");
        }
    }
}
