//! From an answer in a dialect's form to the host's form.

use quorate_kernel::strict_json;
use quorate_protocol::Json;
use serde_json::Map;

/// Translates a value back. What does not fit stays as it is, for the host's check to refuse.
pub(super) fn value(value: Json, host: &Json) -> Json {
    match value {
        Json::Object(entries) => object(entries, host).into(),
        Json::Array(items) if is_open_object(host) => {
            named_values(&items).map_or(Json::Array(items), Json::Object)
        }
        Json::Array(items) => match host.get("items") {
            Some(form) => items.into_iter().map(|item| self::value(item, form)).collect(),
            None => Json::Array(items),
        },
        Json::String(text) if is_open_object(host) => match strict_json::parse(&text) {
            Ok(object @ Json::Object(_)) => object,
            _ => Json::String(text),
        },
        plain => plain,
    }
}

fn object(entries: Map<String, Json>, host: &Json) -> Map<String, Json> {
    let is_required = |key: &str| {
        let required = host.get("required").and_then(Json::as_array);
        required.is_some_and(|required| required.iter().any(|name| name == key))
    };
    let form = |key: &str| {
        let places =
            [host.get("properties"), host.pointer("/then/properties"), host.pointer("/else/properties")];
        places.into_iter().flatten().find_map(|properties| properties.get(key))
    };
    let kept = entries
        .into_iter()
        .filter(|(key, value)| !value.is_null() || is_required(key) || form(key).is_none());
    kept.map(|(key, entry)| match form(&key) {
        Some(form) => (key, value(entry, form)),
        None => (key, entry),
    })
    .collect()
}

/// An object whose keys no form names, which is written as a list or as a text.
fn is_open_object(host: &Json) -> bool {
    let is_object = match host.get("type") {
        Some(Json::Array(types)) => types.iter().any(|name| name == "object"),
        Some(one) => one == "object",
        None => false,
    };
    is_object && host.get("properties").is_none()
}

/// A list of `{name, value}` as an object; `None` where it is none, or names a key twice.
fn named_values(items: &[Json]) -> Option<Map<String, Json>> {
    let mut entries = Map::new();
    for item in items {
        let name = item.get("name")?.as_str()?;
        if entries.insert(name.to_owned(), item.get("value")?.clone()).is_some() {
            return None;
        }
    }
    Some(entries)
}
