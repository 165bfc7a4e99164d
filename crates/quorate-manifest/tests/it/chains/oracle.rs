//! The expected result of a chain, computed naively on plain JSON: the merge table row by row, and the minimums from all
//! ancestors of each document.

use serde_json::{Map, Value};

/// The merged documents, root first.
pub(crate) fn merged(documents: &[Value]) -> Value {
    documents.iter().map(without_nulls).reduce(|parent, child| over(&parent, &child)).unwrap_or_default()
}

/// A key without a value is absent. Items of lists stay.
pub(crate) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let present = map.iter().filter(|(_, value)| !value.is_null());
            present.map(|(key, value)| (key.clone(), without_nulls(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

fn over(parent: &Value, child: &Value) -> Value {
    let mut merged = parent.clone();
    for local in ["extends", "appliesTo"] {
        object(&mut merged).remove(local);
    }
    for (key, value) in child.as_object().into_iter().flatten() {
        let before = merged.get(key).cloned();
        let after = match (key.as_str(), before) {
            (_, None) => value.clone(),
            ("members", Some(before)) => by_id(&before, value),
            ("lockedTraits", Some(before)) => union(&before, value),
            ("synthesis", Some(before)) => each(&before, value, |key, before, after| match key {
                "rules" => by_id(before, after),
                _ => after.clone(),
            }),
            ("audit", Some(before)) => each(&before, value, |key, before, after| match key {
                "signing" => after.clone(),
                _ => leaf_by_leaf(before, after),
            }),
            ("defaults" | "display", Some(before)) => leaf_by_leaf(&before, value),
            ("metadata", Some(before)) => deep(&before, value),
            (_, Some(_)) => value.clone(),
        };
        object(&mut merged).insert(key.clone(), after);
    }
    merged
}

fn object(value: &mut Value) -> &mut Map<String, Value> {
    value.as_object_mut().expect("a layer is a mapping")
}

/// Merges two mappings key by key.
fn each(before: &Value, after: &Value, both: impl Fn(&str, &Value, &Value) -> Value) -> Value {
    let mut merged = before.clone();
    for (key, value) in after.as_object().into_iter().flatten() {
        let value = before.get(key).map_or_else(|| value.clone(), |before| both(key, before, value));
        object(&mut merged).insert(key.clone(), value);
    }
    merged
}

fn leaf_by_leaf(before: &Value, after: &Value) -> Value {
    each(before, after, |_, _, after| after.clone())
}

fn deep(before: &Value, after: &Value) -> Value {
    if before.is_object() && after.is_object() {
        each(before, after, |_, before, after| deep(before, after))
    } else {
        after.clone()
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A later item replaces the earlier item with its id, at the same position.
fn by_id(before: &Value, after: &Value) -> Value {
    let mut merged = items(before).to_vec();
    for item in items(after) {
        match merged.iter_mut().find(|known| known["id"] == item["id"]) {
            Some(known) => *known = item.clone(),
            None => merged.push(item.clone()),
        }
    }
    merged.into()
}

fn union(before: &Value, after: &Value) -> Value {
    let new = items(after).iter().filter(|item| !items(before).contains(item));
    items(before).iter().chain(new).cloned().collect()
}

/// Whether a document relaxes a setting of an ancestor (M7, M8, M9).
pub(crate) fn relaxes(documents: &[Value]) -> bool {
    let documents: Vec<Value> = documents.iter().map(without_nulls).collect();
    (1..documents.len()).any(|at| {
        let (above, own) = (&documents[..at], &documents[at]);
        let mode = own
            .get("mode")
            .is_some_and(|mode| above.iter().any(|layer| layer.get("mode").is_some_and(|set| set != mode)));
        let switched_off = ["/audit/consultations/enabled", "/audit/overlays/enabled"].iter().any(|path| {
            // On if an ancestor switches it on, or if the root has no value.
            let on = above.iter().any(|layer| layer.pointer(path) == Some(&Value::Bool(true)))
                || above[0].pointer(path).is_none();
            on && own.pointer(path) == Some(&Value::Bool(false))
        });
        let required =
            |value: &Value| value.pointer("/audit/signing").is_some_and(|signing| signing == "required");
        let unsigned =
            own.pointer("/audit/signing").is_some() && !required(own) && above.iter().any(required);
        let loosened =
            own.get("matchMode").is_some() && above.iter().any(|layer| strictness(layer) > strictness(own));
        mode || switched_off || unsigned || loosened || removes_traits(above, own)
    })
}

fn strictness(document: &Value) -> usize {
    let word = document.get("matchMode").and_then(Value::as_str).unwrap_or("substring");
    ["substring", "regex", "semantic"].iter().position(|mode| *mode == word).unwrap_or_default()
}

fn removes_traits(above: &[Value], own: &Value) -> bool {
    let floor: Vec<&Value> = above.iter().flat_map(|layer| items(&layer["lockedTraits"])).collect();
    let Some(own) = own.get("lockedTraits").map(items) else { return false };
    let restated = floor.iter().filter(|minimum| own.contains(minimum)).count();
    restated < floor.len() && (own.is_empty() || restated > 0)
}
