//! Deliberate deviations from the public schemas (M4). Each deviation is undone in a copy of the document, and both sides
//! must judge the copy alike.

use quorate_manifest::doctype::Doctype;
use quorate_manifest::json_schema::PathStep;
use serde_json::{Value, json};

use super::change::{Change, changed, find, places};
use super::patterns::SchemaStep;
use super::rng::Rng;

/// A kind of deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deviation {
    /// A view without `mode` inherits its parent's.
    ViewWithoutMode,
    /// `ws://<collection>/<slug>` with further `/<slug>` segments.
    FurtherSegments,
    /// `extends: ../ASSEMBLY.md`, the parent one folder up.
    ParentAbove,
    /// A key without a value counts as absent.
    NullIsAbsent,
}

impl Deviation {
    pub(crate) const ALL: [Deviation; 4] = [
        Deviation::ViewWithoutMode,
        Deviation::FurtherSegments,
        Deviation::ParentAbove,
        Deviation::NullIsAbsent,
    ];

    pub(crate) fn description(self) -> &'static str {
        match self {
            Deviation::ViewWithoutMode => "a view without mode",
            Deviation::FurtherSegments => "ws:// with further segments",
            Deviation::ParentAbove => "extends: ../ASSEMBLY.md",
            Deviation::NullIsAbsent => "null counts as absent",
        }
    }

    /// Whether documents of a doctype can have this deviation.
    pub(crate) fn concerns(self, doctype: Doctype) -> bool {
        self == Deviation::NullIsAbsent || doctype == Doctype::Assembly
    }
}

/// A document without valueless keys, with its deviations undone, and the list of these deviations.
pub(crate) fn reverted(doctype: Doctype, bare: &Value) -> (Value, Vec<Deviation>) {
    let mut levelled = bare.clone();
    let mut found = Vec::new();
    if doctype != Doctype::Assembly {
        return (levelled, found);
    }
    if segments(&mut levelled) {
        found.push(Deviation::FurtherSegments);
    }
    let Some(root) = levelled.as_object_mut() else { return (levelled, found) };
    if root.get("extends") == Some(&json!("../ASSEMBLY.md")) {
        root.insert("extends".to_owned(), json!("../x/ASSEMBLY.md"));
        found.push(Deviation::ParentAbove);
    }
    if root.contains_key("extends") && !root.contains_key("mode") {
        root.insert("mode".to_owned(), json!("advisory"));
        found.push(Deviation::ViewWithoutMode);
    }
    (levelled, found)
}

/// Joins the further segments of every ref in an assembly into one slug; returns whether it found any.
fn segments(root: &mut Value) -> bool {
    let mut found = false;
    for (field, collection) in [("identity", "identities"), ("work", "workspaces"), ("executor", "operators")]
    {
        found |= root.get_mut(field).is_some_and(|reference| joined(reference, &[collection]));
    }
    let consumers = ["operators", "companies", "workspaces", "skills"];
    for consumer in root.get_mut("appliesTo").and_then(Value::as_array_mut).into_iter().flatten() {
        found |= joined(consumer, &consumers);
    }
    for member in root.get_mut("members").and_then(Value::as_array_mut).into_iter().flatten() {
        found |= member.get_mut("persona").is_some_and(|reference| joined(reference, &["personas"]));
    }
    found
}

/// A text of a manifest with its deviations undone.
pub(crate) fn reverted_text(doctype: Doctype, at: &[SchemaStep], text: &str) -> Value {
    let mut value = json!(text);
    if doctype == Doctype::Assembly {
        joined(&mut value, &["identities", "workspaces", "operators", "companies", "skills", "personas"]);
        if at == [SchemaStep::Key("extends".to_owned())] && text == "../ASSEMBLY.md" {
            value = json!("../x/ASSEMBLY.md");
        }
    }
    value
}

fn joined(reference: &mut Value, collections: &[&str]) -> bool {
    let Some((collection, path)) =
        reference.as_str().and_then(|text| text.strip_prefix("ws://")).and_then(|rest| rest.split_once('/'))
    else {
        return false;
    };
    if !collections.contains(&collection) || !path.contains('/') || !path.split('/').all(is_slug) {
        return false;
    }
    // Different texts stay different: no slug of the documents has four dashes in a row.
    *reference = json!(format!("ws://{collection}/{}", path.replace('/', "----")));
    true
}

/// The document with a deviation, or with a value close to one.
pub(crate) fn deviating(doctype: Doctype, document: &Value, chance: &mut Rng) -> Value {
    let places = places(document);
    let set = |path: &[PathStep], value: Value| changed(document, path, &Change::Set(value));
    let refs: Vec<(&Vec<PathStep>, &str)> = places
        .iter()
        .filter_map(|path| {
            Some((path, find(document, path).as_str().filter(|text| text.starts_with("ws://"))?))
        })
        .collect();
    match chance.below(if doctype == Doctype::Assembly { 5 } else { 1 }) {
        1 if !refs.is_empty() => {
            let (path, text) = *chance.pick(&refs);
            set(path, json!(format!("{text}{}", chance.pick(&["/b", "/b-1/c", "/", "/B", "/1", "//b"]))))
        }
        2 => changed(document, &[], &Change::Insert("extends", json!("../ASSEMBLY.md"))),
        3 => {
            let view = changed(document, &[], &Change::Insert("extends", json!("../x/ASSEMBLY.md")));
            changed(&view, &[PathStep::Key("mode".to_owned())], &Change::Drop)
        }
        4 => changed(document, &[PathStep::Key("mode".to_owned())], &Change::Drop),
        _ => match chance.pick(&places) {
            path if path.is_empty() => changed(document, path, &Change::Insert("unexpected", Value::Null)),
            path => set(path, Value::Null),
        },
    }
}

fn is_slug(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|first| first.is_ascii_lowercase())
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}
