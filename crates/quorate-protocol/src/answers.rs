//! The forms of answers: the JSON Schema that a member is shown and held to, and the typed reading of it.

pub mod adjudicator;
pub mod deliberator;

use crate::Json;

/// Which form an answer has to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Schema {
    /// A deliberator's independent first answer.
    FirstAnswer,
    /// A deliberator's answer after it has read the others.
    SecondAnswer,
    /// The adjudicator's.
    Adjudication,
}

impl Schema {
    /// All forms.
    pub const ALL: [Schema; 3] = [Schema::FirstAnswer, Schema::SecondAnswer, Schema::Adjudication];

    /// The JSON Schema (2020-12).
    pub fn json(self) -> Json {
        match self {
            Schema::FirstAnswer => deliberator::schema(deliberator::Round::First),
            Schema::SecondAnswer => deliberator::schema(deliberator::Round::Second),
            Schema::Adjudication => adjudicator::schema(),
        }
    }
}

/// A key that is absent, or null, which counts as absent.
fn present<'a>(object: &'a serde_json::Map<String, Json>, key: &str) -> Option<&'a Json> {
    object.get(key).filter(|value| !value.is_null())
}

/// A string that says something, or nothing.
fn text(object: &serde_json::Map<String, Json>, key: &str) -> Option<String> {
    let text = present(object, key)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
