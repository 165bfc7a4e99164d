//! Changes to a document: each value removed, renamed, doubled, emptied, replaced by another kind of value, and moved to
//! and past its bounds.

use quorate_manifest::json_schema::PathStep;
use serde_json::{Value, json};

use super::rng::Rng;
use super::subschema::{edges, kind, referred, ways};

/// A change at a place.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// Removes the value.
    Drop,
    /// Renames the key.
    Rename(String),
    /// Doubles the entry.
    Twice,
    /// Replaces the value.
    Set(Value),
    /// Adds a key.
    Insert(&'static str, Value),
    /// Adds an item.
    Push(Value),
}

/// Every place of a document, the root first.
pub(crate) fn places(document: &Value) -> Vec<Vec<PathStep>> {
    fn below(value: &Value, at: &mut Vec<PathStep>, found: &mut Vec<Vec<PathStep>>) {
        found.push(at.clone());
        let steps: Vec<(PathStep, &Value)> = match value {
            Value::Object(entries) => {
                entries.iter().map(|(key, one)| (PathStep::Key(key.clone()), one)).collect()
            }
            Value::Array(items) => {
                items.iter().enumerate().map(|(at, one)| (PathStep::Item(at), one)).collect()
            }
            _ => Vec::new(),
        };
        for (step, one) in steps {
            at.push(step);
            below(one, at, found);
            at.pop();
        }
    }
    let mut found = Vec::new();
    below(document, &mut Vec::new(), &mut found);
    found
}

/// The value at a place.
pub(crate) fn find<'d>(document: &'d Value, path: &[PathStep]) -> &'d Value {
    path.iter().fold(document, |value, step| match step {
        PathStep::Key(key) => &value[key],
        PathStep::Item(at) => &value[at],
    })
}

/// The value at a place, mutable.
fn find_mut<'d>(document: &'d mut Value, path: &[PathStep]) -> &'d mut Value {
    path.iter().fold(document, |value, step| match step {
        PathStep::Key(key) => &mut value[key],
        PathStep::Item(at) => &mut value[at],
    })
}

/// The part of a schema that a place is compared with.
fn part<'s>(root: &'s Value, document: &Value, path: &[PathStep]) -> Option<&'s Value> {
    let mut part = root;
    for (at, step) in path.iter().enumerate() {
        let value = find(document, &path[..at]);
        part = choose(root, part, value);
        part = match step {
            PathStep::Key(key) => part
                .get("properties")
                .and_then(|known| known.get(key))
                .or_else(|| part.get("additionalProperties"))?,
            PathStep::Item(_) => part.get("items")?,
        };
    }
    Some(choose(root, part, find(document, path)))
}

/// The alternative of a schema for the type of a value.
fn choose<'s>(root: &'s Value, part: &'s Value, value: &Value) -> &'s Value {
    let part = referred(root, part);
    let word = match value {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        _ => "",
    };
    let ways = ways(root, part);
    ways.iter()
        .find(|way| kind(way) == Some(word))
        .or(ways.first())
        .map_or(part, |way| choose(root, way, value))
}

/// All changes of a place.
pub(crate) fn changes(schema: &Value, document: &Value, path: &[PathStep], chance: &mut Rng) -> Vec<Change> {
    let value = find(document, path);
    let kinds = [
        json!(null),
        json!(""),
        json!("word"),
        json!(0),
        json!(-1),
        json!(1.0),
        json!(1.5),
        json!(true),
        json!([]),
        json!({}),
        json!([null]),
        json!({"kind": null}),
        json!(["word", "word"]),
    ];
    let mut found: Vec<Change> = Vec::new();
    match path.last() {
        Some(PathStep::Key(key)) => {
            found.push(Change::Drop);
            let other_case: String = key
                .chars()
                .map(|c| if c.is_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() })
                .collect();
            found.extend(
                [format!("{key}s"), format!(" {key}"), other_case, key.replace('_', "-")].map(Change::Rename),
            );
        }
        Some(PathStep::Item(_)) => found.extend([Change::Drop, Change::Twice]),
        None => {}
    }
    if !path.is_empty() {
        found.extend(kinds.into_iter().map(Change::Set));
    }
    if let Some(part) = part(schema, document, path) {
        found.extend(edges(part, chance).into_iter().map(Change::Set));
    }
    match value {
        Value::String(text) => {
            found.extend(near(text).into_iter().map(|text| Change::Set(Value::from(text))))
        }
        Value::Array(items) => {
            found.push(Change::Push(Value::Null));
            let many: Vec<Value> = (0..40).map(|at| numbered(items.first(), at)).collect();
            found.extend([2, 12, 13, 16, 17, 24, 25, 32, 33].map(|most| Change::Set(json!(many[..most]))));
        }
        Value::Object(_) => {
            found.push(Change::Insert("unexpected", json!(1)));
            found.push(Change::Insert("unexpected", json!(null)));
            found.push(Change::Insert("$schema", json!("x")));
        }
        _ => {}
    }
    found
}

/// The same item with another number, for long lists of different items.
fn numbered(item: Option<&Value>, at: usize) -> Value {
    match item {
        Some(Value::String(text)) => {
            let letter = |at: usize| char::from(b'a' + u8::try_from(at % 26).unwrap_or(0));
            let text = if text.len() > 40 { "word" } else { text };
            json!(format!("{text}{}{}", letter(at / 26), letter(at)))
        }
        Some(item) => item.clone(),
        None => json!("word"),
    }
}

/// Variants of a text with a small difference.
fn near(text: &str) -> Vec<String> {
    let mut found: Vec<String> = [
        "\n", " ", "\t", "\u{A0}", "\u{85}", "\u{FEFF}", "\u{2028}", "\u{180E}", "\u{200B}", "é", "\u{663}",
        "\u{430}", "-", "_", ".", "/", "//", "/b", "/b/c-1/d", "/B", "/b/", "/1", "/b c", "1", "Z",
    ]
    .map(|end| format!("{text}{end}"))
    .to_vec();
    found.extend([" ", "\n", "\u{FEFF}", "-", "A", "1"].map(|start| format!("{start}{text}")));
    found.extend([text.to_uppercase(), text.replace('-', "_"), text.replace("ws://", "ws:/")]);
    found.extend([
        text.replace("ws://", "WS://"),
        text.replace('a', "\u{430}"),
        text.replace(|c: char| c.is_ascii_digit(), "\u{663}"),
    ]);
    if let Some((start, end)) = text.char_indices().nth(1).map(|(at, _)| text.split_at(at)) {
        found.extend([
            start.to_owned(),
            end.to_owned(),
            format!("{start}\u{301}{end}"),
            format!("{start}\u{85}{end}"),
        ]);
        found.push(format!("{start}\n{end}"));
    }
    if text.starts_with("ws://") {
        found.extend(refs());
    }
    if text.starts_with('.') {
        found.extend(paths());
    }
    found
}

fn refs() -> Vec<String> {
    let mut found = Vec::new();
    for collection in
        ["operators", "companies", "workspaces", "skills", "personas", "identities", "assemblies/a"]
    {
        found.extend(["a", "a/b", "a-1/b/c", "a/B", "a//b"].map(|slug| format!("ws://{collection}/{slug}")));
    }
    found
}

fn paths() -> Vec<String> {
    let mut found = Vec::new();
    for name in ["ASSEMBLY.md", "PERSONA.md"] {
        let paths = [
            "",
            "./",
            "../",
            "../../",
            "./x/",
            "../x/",
            "../../x/y/",
            ".//",
            "..//",
            ".///",
            "/x/",
            "x/",
            "../x y/",
            "../x\u{85}/",
            "../x\u{FEFF}/",
            ".../",
            "../x",
            "..\\x\\",
        ];
        found.extend(paths.map(|path| format!("{path}{name}")));
        found.push(format!("../{}", name.to_lowercase()));
        found.push(format!("../{name}/{name}"));
    }
    found
}

/// The changed document.
pub(crate) fn changed(document: &Value, path: &[PathStep], change: &Change) -> Value {
    let mut made = document.clone();
    match change {
        Change::Set(value) => *find_mut(&mut made, path) = value.clone(),
        Change::Insert(key, value) => {
            if let Value::Object(entries) = find_mut(&mut made, path) {
                entries.insert((*key).to_owned(), value.clone());
            }
        }
        Change::Push(value) => {
            if let Value::Array(items) = find_mut(&mut made, path) {
                items.push(value.clone());
            }
        }
        Change::Drop | Change::Rename(_) | Change::Twice => {
            let Some((last, above)) = path.split_last() else { return made };
            match (find_mut(&mut made, above), last, change) {
                (Value::Object(entries), PathStep::Key(key), Change::Rename(to)) => {
                    if let Some(value) = entries.remove(key) {
                        entries.insert(to.clone(), value);
                    }
                }
                (Value::Object(entries), PathStep::Key(key), _) => drop(entries.remove(key)),
                (Value::Array(items), PathStep::Item(at), Change::Twice) => items.push(items[*at].clone()),
                (Value::Array(items), PathStep::Item(at), _) => drop(items.remove(*at)),
                _ => {}
            }
        }
    }
    made
}

/// The smallest document for which `interesting` holds: it has no removable key or item.
pub(crate) fn shrunk(document: &Value, interesting: impl Fn(&Value) -> bool) -> Value {
    let mut smallest = document.clone();
    loop {
        let smaller = places(&smallest)
            .iter()
            .filter(|path| !path.is_empty())
            .map(|path| changed(&smallest, path, &Change::Drop))
            .find(|smaller| interesting(smaller));
        match smaller {
            Some(smaller) => smallest = smaller,
            None => return smallest,
        }
    }
}
