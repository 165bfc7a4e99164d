//! From the host's form to that of a dialect.

use quorate_protocol::Json;
use serde_json::{Map, json};

use super::Dialect;

/// Converts a JSON Schema of an answer.
pub(super) fn convert(host: &Json, dialect: Dialect) -> Json {
    let host = first_alternative(host);
    match split_condition(&host) {
        Some(variants) => json!({"anyOf": variants.map(|variant| convert(&variant, dialect))}),
        None => convert_plain(&host, dialect),
    }
}

/// A form without conditions.
fn convert_plain(host: &Json, dialect: Dialect) -> Json {
    let mut notes = Vec::new();
    let mut wire = Map::new();
    match main_type(host) {
        "object" if host.get("properties").is_some() => wire = object(host, dialect),
        "object" => match host.get("additionalProperties") {
            Some(value) => {
                let entry = json!({
                    "type": "object",
                    "required": ["name", "value"],
                    "properties": {"name": {"type": "string"}, "value": value}
                });
                wire.insert("type".into(), "array".into());
                wire.insert("items".into(), convert(&entry, dialect));
            }
            None => {
                wire.insert("type".into(), "string".into());
                notes.push("a JSON object, as JSON text".to_owned());
            }
        },
        "array" => {
            let items = host.get("items").cloned().unwrap_or_else(|| json!({"type": "string"}));
            wire.insert("type".into(), "array".into());
            wire.insert("items".into(), convert(&items, dialect));
        }
        plain => {
            wire.insert("type".into(), plain.into());
        }
    }
    let pattern = host.get("pattern").and_then(Json::as_str);
    let words = pattern.and_then(words_in_any_case).map(Json::from).or_else(|| host.get("enum").cloned());
    if let Some(words) = &words {
        wire.insert("enum".into(), words.clone());
        if dialect == Dialect::Anthropic {
            wire.remove("type");
        }
    }
    for keyword in
        ["minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "minProperties", "pattern"]
    {
        match host.get(keyword) {
            Some(_) if keyword == "pattern" && words.is_some() => {}
            Some(limit) if dialect.unheld().contains(&keyword) => notes.push(format!("{keyword}: {limit}")),
            Some(limit) => {
                wire.insert(keyword.into(), limit.clone());
            }
            None => {}
        }
    }
    let description = host.get("description").and_then(Json::as_str).unwrap_or_default();
    let noted = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    let description = format!("{description}{noted}");
    if !description.is_empty() {
        wire.insert("description".into(), description.trim_start().into());
    }
    wire.into()
}

fn object(host: &Json, dialect: Dialect) -> Map<String, Json> {
    let required = strings(host.get("required"));
    let mut properties = Map::new();
    for (key, form) in host["properties"].as_object().into_iter().flatten() {
        let mut form = convert(form, dialect);
        if dialect == Dialect::OpenAi && !required.contains(&key.as_str()) {
            make_nullable(&mut form);
        }
        properties.insert(key.clone(), form);
    }
    let required: Vec<&str> = match dialect {
        Dialect::OpenAi => properties.keys().map(String::as_str).collect(),
        Dialect::Anthropic | Dialect::Gemini => required,
    };
    let mut wire = Map::new();
    wire.insert("type".into(), "object".into());
    wire.insert("additionalProperties".into(), false.into());
    wire.insert("required".into(), required.into());
    wire.insert("properties".into(), properties.into());
    wire
}

fn make_nullable(form: &mut Json) {
    if let Some(words) = form.get_mut("enum").and_then(Json::as_array_mut) {
        words.push(Json::Null);
    }
    form["type"] = json!([form["type"], "null"]);
}

/// The type that is not null; a list before all others, since a list has room for one text.
fn main_type(host: &Json) -> &str {
    let types = match host.get("type") {
        Some(Json::Array(_)) => strings(host.get("type")),
        Some(Json::String(one)) => vec![one.as_str()],
        _ => vec!["string"],
    };
    let list = types.iter().find(|name| **name == "array");
    list.or_else(|| types.iter().find(|name| **name != "null")).copied().unwrap_or("string")
}

/// An object that has to have one of several keys, as one that has to have the first. The other keys are left out.
fn first_alternative(host: &Json) -> Json {
    let mut host = host.clone();
    let Some(alternatives) = host.as_object_mut().and_then(|host| host.remove("anyOf")) else { return host };
    for (at, alternative) in alternatives.as_array().into_iter().flatten().enumerate() {
        for key in strings(alternative.get("required")) {
            if at > 0 {
                host["properties"].as_object_mut().and_then(|all| all.remove(key));
            } else if let Some(required) = host["required"].as_array_mut() {
                required.push(key.into());
            }
        }
    }
    host
}

/// The two forms of an object with `if`, which asks for one word of a property's.
fn split_condition(host: &Json) -> Option<[Json; 2]> {
    let (key, asked) = host.pointer("/if/properties")?.as_object()?.iter().next()?;
    let word = asked.get("const")?;
    let variant = |branch: &str, has: &dyn Fn(&Json) -> bool| {
        let mut variant = host.clone();
        let fields = variant.as_object_mut()?;
        for condition in ["if", "then", "else"] {
            fields.remove(condition);
        }
        let words: Vec<Json> =
            variant["properties"][key]["enum"].as_array()?.iter().filter(|word| has(word)).cloned().collect();
        variant["properties"][key]["enum"] = words.into();
        for (name, form) in host[branch]["properties"].as_object()? {
            variant["properties"][name] = form.clone();
        }
        let more = host[branch]["required"].as_array()?.clone();
        variant["required"].as_array_mut()?.extend(more);
        Some(variant)
    };
    Some([variant("then", &|other| other == word)?, variant("else", &|other| other != word)?])
}

/// The words of a pattern such as `^([Aa][Bb]|[Cc])$`, in lower case.
fn words_in_any_case(pattern: &str) -> Option<Vec<String>> {
    let words = pattern.strip_prefix("^(")?.strip_suffix(")$")?.split('|');
    let letter = |class: &str| match class.as_bytes() {
        [upper, lower] if upper.to_ascii_lowercase() == *lower => Some(char::from(*lower)),
        _ => None,
    };
    let word = |word: &str| {
        word.strip_prefix('[')?.strip_suffix(']')?.split("][").map(letter).collect::<Option<String>>()
    };
    words.map(word).collect()
}

fn strings(list: Option<&Json>) -> Vec<&str> {
    list.and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect()
}
