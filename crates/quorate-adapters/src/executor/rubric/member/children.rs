//! What a node's children have passed up, as far as it can be read.

use quorate_protocol::{Json, Part, PartKind};

/// What one child has passed up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Child {
    /// Its id, where it says so.
    pub(super) id: Option<String>,
    /// From 0 to 10.
    pub(super) severity: u8,
    /// What it is about.
    pub(super) concern: String,
    /// What it rests on.
    pub(super) evidence: Vec<String>,
    pub(super) suggestion: String,
}

/// Reads the children's outputs. What is not of their form says nothing.
pub(super) fn read(parts: &[Part]) -> Vec<Child> {
    let parts = parts.iter().filter(|part| part.kind == PartKind::ChildrenOutputs);
    let lists = parts.filter_map(|part| match serde_json::from_str(&part.text) {
        Ok(Json::Array(list)) => Some(list),
        _ => None,
    });
    lists.flatten().filter_map(|child| read_one(&child)).collect()
}

fn read_one(child: &Json) -> Option<Child> {
    let own = |key: &str| child.get(key).filter(|value| !value.is_null());
    let inner =
        ["output", "answer", "rollup"].iter().find_map(|key| own(key)).filter(|value| value.is_object());
    let field = |key: &str| own(key).or_else(|| inner?.get(key));
    let text = |key: &str| field(key).and_then(Json::as_str).unwrap_or_default().trim().to_owned();
    let severity = field("severity")?.as_u64()?.min(10);
    let evidence = field("evidence").and_then(Json::as_array).into_iter().flatten();
    let id = ["member", "id", "node", "from"].iter().find_map(|key| own(key)?.as_str());
    Some(Child {
        id: id.map(str::to_owned),
        severity: u8::try_from(severity).ok()?,
        concern: text("concern"),
        evidence: evidence.filter_map(Json::as_str).map(str::to_owned).collect(),
        suggestion: text("suggestion"),
    })
}

/// The gravest child that says something; of equal ones the first.
pub(super) fn gravest(children: Vec<Child>) -> Option<Child> {
    let said = children.into_iter().filter(|child| child.severity > 0 && !child.concern.is_empty());
    said.reduce(|best, next| if next.severity > best.severity { next } else { best })
}
