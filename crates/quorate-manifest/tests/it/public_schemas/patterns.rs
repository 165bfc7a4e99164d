//! The parts of a schema that have a regular expression, and texts at the border between a match and no match.

use std::collections::BTreeSet;

use serde_json::Value;

use super::rng::Rng;
use super::spelling::{Repetition, spell};
use super::subschema::{kind, referred, ways};

/// Characters to insert: at least one of each class that the patterns distinguish.
const LETTERS: [char; 18] = [
    '0', '9', 'a', 'z', 'A', 'Z', '-', '_', '.', '/', ':', '+', ' ', '\n', 'é', '\u{663}', '\u{85}',
    '\u{FEFF}',
];
/// The number of matching texts to start from.
const BEGUN: usize = 20;

/// One step through a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SchemaStep {
    /// To the schema of a key.
    Key(String),
    /// To the schema of all other keys.
    Others,
    /// To the schema of items.
    Items,
    /// To the alternative of a type.
    Way(String),
}

/// Every part of a schema that has a pattern, and its path.
pub(crate) fn patterned(root: &Value) -> Vec<(Vec<SchemaStep>, &Value)> {
    let mut found = Vec::new();
    below(root, root, &mut Vec::new(), &mut found);
    found
}

fn below<'s>(
    root: &'s Value,
    part: &'s Value,
    at: &mut Vec<SchemaStep>,
    found: &mut Vec<(Vec<SchemaStep>, &'s Value)>,
) {
    let part = referred(root, part);
    if part.get("pattern").is_some() {
        found.push((at.clone(), part));
    }
    let mut hops: Vec<(SchemaStep, &Value)> = Vec::new();
    for (key, one) in part.get("properties").and_then(Value::as_object).into_iter().flatten() {
        hops.push((SchemaStep::Key(key.clone()), one));
    }
    hops.extend(
        part.get("additionalProperties")
            .filter(|schema| schema.is_object())
            .map(|schema| (SchemaStep::Others, schema)),
    );
    hops.extend(part.get("items").map(|schema| (SchemaStep::Items, schema)));
    for way in ways(root, part) {
        hops.extend(kind(way).map(|kind| (SchemaStep::Way(kind.to_owned()), way)));
    }
    for (hop, one) in hops {
        at.push(hop);
        below(root, one, at, found);
        at.pop();
    }
}

/// The part of another schema at the same path.
pub(crate) fn follow<'s>(root: &'s Value, hops: &[SchemaStep]) -> Option<&'s Value> {
    hops.iter().try_fold(only(root, root), |part, hop| {
        let next = match hop {
            SchemaStep::Key(key) => part.get("properties")?.get(key)?,
            SchemaStep::Others => part.get("additionalProperties")?,
            SchemaStep::Items => part.get("items")?,
            SchemaStep::Way(wanted) => ways(root, part).into_iter().find(|way| kind(way) == Some(wanted))?,
        };
        Some(only(root, next))
    })
}

/// The only alternative beside `null`, or the part itself.
fn only<'s>(root: &'s Value, part: &'s Value) -> &'s Value {
    let part = referred(root, part);
    match ways(root, part).as_slice() {
        [way] => only(root, way),
        _ => part,
    }
}

/// Texts that match a pattern, and variants of each with one character inserted, replaced or removed, or with a few
/// characters doubled, at every position.
pub(crate) fn around(pattern: &str, chance: &mut Rng) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for begun in 0..BEGUN {
        let text: Vec<char> = spell(pattern, Repetition::Each(begun % 4), chance).chars().collect();
        let mut put = |start: usize, letter: Option<char>, end: usize| {
            found.insert(
                text[..start].iter().copied().chain(letter).chain(text[end..].iter().copied()).collect(),
            );
        };
        for at in 0..=text.len() {
            put(at, None, (at + 1).min(text.len()));
            for letter in LETTERS {
                put(at, Some(letter), at);
                put(at, Some(letter), (at + 1).min(text.len()));
            }
        }
        for (length, at) in (2..=4).flat_map(|length| (0..text.len()).map(move |at| (length, at))) {
            let run = text[at..].iter().take(length);
            found.insert(text[..at].iter().chain(run).chain(&text[at..]).collect());
        }
        found.insert(text.into_iter().collect());
    }
    found
}
