//! Answer schemas: the JSON Schema that a member is shown and validated against, and the typed parser.

pub mod advice;
pub mod deliberator;
pub mod reflection;
pub mod samples;

use serde_json::json;

use crate::Json;

/// How many bytes an answer has at most, as JSON.
pub const MAX_BYTES: usize = 1 << 20;

/// How many entries a list of an answer has at most, wherever it stands and whether or not a form names it. `addressedTo`
/// , the members that a message names, alone may have more.
pub const MAX_ITEMS: usize = 200;

/// Where a member stands, by its valid answer, in one word: `blocks`, `ships`, `yes`; `None` for a form without a position.
pub fn position(schema: Schema, answer: &Json) -> Option<&'static str> {
    let blocks = |round| {
        let answer = deliberator::Answer::read(round, answer)?;
        Some(if answer.would_block { "blocks" } else { "ships" })
    };
    match schema {
        Schema::FirstAnswer => blocks(deliberator::Round::First),
        Schema::SecondAnswer => blocks(deliberator::Round::Second),
        Schema::Adjudication => Some(deliberator::Adjudication::read(answer)?.verdict.as_str()),
        Schema::Ballot => Some(advice::Ballot::read(answer)?.vote.as_str()),
        _ => None,
    }
}

/// Says of each list of an answer that is longer than it may be where it stands, as a JSON pointer, how many entries it has
/// and how many it may have. The forms bound the lists that they name; this bounds the others.
pub fn long_lists(answer: &Json) -> Vec<(String, usize, usize)> {
    fn look(value: &Json, place: &str, found: &mut Vec<(String, usize, usize)>) {
        match value {
            Json::Array(items) => {
                let most = if place == advice::RECIPIENTS { advice::MAX_RECIPIENTS } else { MAX_ITEMS };
                if items.len() > most {
                    found.push((place.to_owned(), items.len(), most));
                    return;
                }
                for (at, item) in items.iter().enumerate().filter(|(_, item)| is_container(item)) {
                    look(item, &format!("{place}/{at}"), found);
                }
            }
            Json::Object(entries) => {
                for (key, item) in entries.iter().filter(|(_, item)| is_container(item)) {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    look(item, &format!("{place}/{key}"), found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    look(answer, "", &mut found);
    found
}

fn is_container(value: &Json) -> bool {
    value.is_array() || value.is_object()
}

/// Which form an answer has to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Schema {
    /// A deliberator's independent first answer.
    FirstAnswer,
    /// A deliberator's answer after it has read the others.
    SecondAnswer,
    /// The verdict that an adjudicator asks for, with its reasons.
    Adjudication,
    /// An adviser's, or that of a node of a hierarchy.
    Advice,
    /// A vote with its reasons.
    Ballot,
    /// A message to peers.
    Message,
    /// A participant's turn as plain text.
    PlainText,
    /// A participant's turn with what goes with it.
    Turn,
    /// A choice of who speaks next.
    Selection,
    /// Changes to playbooks that a reflection proposes.
    Deltas,
    /// A judge's answer about a prompt fragment.
    Judgement,
    /// How important a text is.
    Tier,
    /// Whether a condition holds for the material.
    Predicate,
}

impl Schema {
    /// Every form.
    pub const ALL: [Schema; 13] = [
        Schema::FirstAnswer,
        Schema::SecondAnswer,
        Schema::Adjudication,
        Schema::Advice,
        Schema::Ballot,
        Schema::Message,
        Schema::PlainText,
        Schema::Turn,
        Schema::Selection,
        Schema::Deltas,
        Schema::Judgement,
        Schema::Tier,
        Schema::Predicate,
    ];

    /// Whether the answer is a JSON object; else it is the text itself.
    pub fn is_structured(self) -> bool {
        self != Schema::PlainText
    }

    /// Whether the answer goes into other prompts or a decision, so that invisible characters are refused.
    pub fn reaches_agents(self) -> bool {
        matches!(self, Schema::Advice | Schema::Ballot | Schema::Message | Schema::Deltas | Schema::Judgement)
    }

    /// The JSON Schema (2020-12).
    pub fn json_schema(self) -> Json {
        (self.form().0)()
    }

    /// Whether an answer has the fields that the protocol needs; an answer that fits the schema has them.
    pub fn accepts(self, answer: &Json) -> bool {
        (self.form().1)(answer)
    }

    /// The fields by which an object shows that it was meant as such an answer.
    pub fn marker_fields(self) -> &'static [&'static str] {
        self.form().2
    }

    fn form(self) -> Form {
        use advice::{Advice, Ballot, Message, Turn, read_selection};
        use deliberator::{Adjudication, Answer, Round};
        use reflection::{Judgement, read_deltas};
        const POSITION: &[&str] = &["would_block", "verdict", "final_verdict"];
        match self {
            Schema::FirstAnswer => {
                (|| deliberator::schema(Round::First), |a| Answer::read(Round::First, a).is_some(), POSITION)
            }
            Schema::SecondAnswer => (
                || deliberator::schema(Round::Second),
                |a| Answer::read(Round::Second, a).is_some(),
                POSITION,
            ),
            Schema::Adjudication => {
                (deliberator::adjudication_schema, |a| Adjudication::read(a).is_some(), POSITION)
            }
            Schema::Advice => (advice::schema, |a| Advice::read(a).is_some(), &["severity"]),
            Schema::Ballot => (advice::ballot_schema, |a| Ballot::read(a).is_some(), &["vote"]),
            Schema::Message => (advice::message_schema, |a| Message::read(a).is_some(), &["message"]),
            Schema::PlainText => (advice::turn_schema, |a| Turn::read(a).is_some(), &[]),
            Schema::Turn => (advice::turn_schema, |a| Turn::read(a).is_some(), &["content"]),
            Schema::Selection => (advice::selection_schema, |a| read_selection(a).is_some(), &["next"]),
            Schema::Deltas => (reflection::deltas_schema, |a| read_deltas(a).is_some(), &["deltas"]),
            Schema::Judgement => {
                (reflection::judgement_schema, |a| Judgement::read(a).is_some(), &["verdict"])
            }
            Schema::Tier => (tier_schema, |a| TierAnswer::read(a).is_some(), &["tier"]),
            Schema::Predicate => (predicate_schema, |a| read_predicate(a).is_some(), &["holds"]),
        }
    }
}

/// The schema of a form, whether it has what the protocol needs, and the fields that it is known by.
type Form = (fn() -> Json, fn(&Json) -> bool, &'static [&'static str]);

/// A key that is absent, or null, which counts as absent.
fn present<'a>(object: &'a serde_json::Map<String, Json>, key: &str) -> Option<&'a Json> {
    object.get(key).filter(|value| !value.is_null())
}

/// A string that says something, or nothing.
pub(crate) fn non_empty_text(object: &serde_json::Map<String, Json>, key: &str) -> Option<String> {
    let text = present(object, key)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Every text in a JSON value, names of fields included (L1). In the value written as JSON, an escaped line break would hide
/// a trait.
pub(crate) fn texts(value: &Json) -> Vec<&str> {
    match value {
        Json::String(text) => vec![text],
        Json::Array(items) => items.iter().flat_map(texts).collect(),
        Json::Object(fields) => {
            fields.iter().flat_map(|(key, value)| std::iter::once(&**key).chain(texts(value))).collect()
        }
        _ => Vec::new(),
    }
}

/// The strings of a list; none if the value is not a list.
fn strings(object: &serde_json::Map<String, Json>, key: &str) -> Vec<String> {
    let items = present(object, key).and_then(Json::as_array).into_iter().flatten();
    items.filter_map(Json::as_str).map(str::to_owned).collect()
}

/// The tier of a text, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierAnswer {
    /// 1, 2 or 3.
    pub tier: u8,
    /// Why, as a message for users.
    pub reason: String,
}

/// The JSON Schema. The numbers are words, since some services take enumerations of texts alone.
pub(crate) fn tier_schema() -> Json {
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

/// The JSON Schema of the answer to a yes-or-no question.
pub(crate) fn predicate_schema() -> Json {
    json!({
        "type": "object",
        "required": ["holds"],
        "properties": {
            "holds": {"type": "boolean", "description": "whether the condition holds for the material"},
            "reason": {"type": ["string", "null"], "description": "why, in a sentence"}
        }
    })
}

/// Whether the condition holds; `None` where the answer does not say.
pub fn read_predicate(answer: &Json) -> Option<bool> {
    answer.as_object()?.get("holds")?.as_bool()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_holds_or_not_and_nothing_else_is_read() {
        for (answer, holds) in [
            (json!({"holds": true}), Some(true)),
            (json!({"holds": false, "reason": null}), Some(false)),
            (json!({"holds": "true"}), None),
            (json!({"holds": 1}), None),
            (json!({"holds": null}), None),
            (json!({"reason": "r"}), None),
            (json!(true), None),
        ] {
            assert_eq!(read_predicate(&answer), holds, "{answer}");
            assert_eq!(Schema::Predicate.accepts(&answer), holds.is_some(), "{answer}");
        }
    }

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
