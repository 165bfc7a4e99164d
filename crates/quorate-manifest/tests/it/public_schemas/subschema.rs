//! One part of a schema: its references, values that match it, and values at its bounds.

use serde_json::{Number, Value, json};

use super::rng::Rng;
use super::spelling::{Repetition, spell, spell_to};

/// The length of a text or list that the schema does not limit.
const LONG: u64 = 12;

/// Follows a part's `$ref`.
pub(crate) fn referred<'s>(root: &'s Value, part: &'s Value) -> &'s Value {
    match part.get("$ref").and_then(Value::as_str) {
        Some(reference) => {
            let found = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            referred(root, found.expect("a reference into the same schema"))
        }
        None => part,
    }
}

/// The type of a part, without `null`.
pub(crate) fn kind(part: &Value) -> Option<&str> {
    match part.get("type")? {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ => None,
    }
}

/// The alternatives of a `oneOf` or `anyOf`, without `null`.
pub(crate) fn ways<'s>(root: &'s Value, part: &'s Value) -> Vec<&'s Value> {
    let ways = part.get("oneOf").or_else(|| part.get("anyOf")).and_then(Value::as_array);
    let ways = ways.into_iter().flatten().map(|way| referred(root, way));
    ways.filter(|way| way.get("type") != Some(&json!("null"))).collect()
}

/// The values that a part lists.
pub(crate) fn listed(part: &Value) -> Vec<Value> {
    match (part.get("const"), part.get("enum").and_then(Value::as_array)) {
        (Some(only), _) => vec![only.clone()],
        (None, Some(values)) => values.clone(),
        (None, None) => Vec::new(),
    }
}

/// A bound of a part.
pub(crate) fn bound(part: &Value, keyword: &str) -> Option<u64> {
    part.get(keyword)?.as_u64()
}

/// A text that matches a part, usually a short text.
pub(crate) fn text(part: &Value, chance: &mut Rng) -> String {
    let least = bound(part, "minLength").unwrap_or(0);
    let most = bound(part, "maxLength");
    let length = match chance.below(16) {
        0 => most.unwrap_or(LONG),
        1 => least,
        2 => least + 1,
        _ => least + chance.below(10) as u64,
    };
    sized(part, length.min(most.unwrap_or(length)), chance)
}

/// A text of a given number of characters, if the part's pattern allows it.
fn sized(part: &Value, length: u64, chance: &mut Rng) -> String {
    let length = usize::try_from(length).expect("a length");
    match part.get("pattern").and_then(Value::as_str) {
        Some(pattern) => spell_to(pattern, length, chance),
        None => {
            let fill = ["a", "Word ", "é", "😀", "e\u{301}", "漢", "\"'", "\\", ": # -", "\u{85}", "\n", "~"];
            let fill = if chance.percent(70) { "word " } else { *chance.pick(&fill) };
            fill.chars().cycle().take(length).collect()
        }
    }
}

/// A number that matches a part.
pub(crate) fn number(part: &Value, chance: &mut Rng) -> Value {
    let ends = ["minimum", "maximum"].map(|keyword| part.get(keyword).filter(|end| end.is_f64()));
    if let [Some(least), Some(most)] = ends {
        return if chance.below(2) == 0 { least.clone() } else { most.clone() };
    }
    let edge = |keyword: &str| part.get(keyword).and_then(Value::as_i64);
    let least = edge("minimum").or(edge("exclusiveMinimum").map(|below| below + 1)).unwrap_or(-3);
    let most = edge("maximum").unwrap_or(1000);
    let whole = match chance.below(6) {
        0 => least,
        1 => most,
        2 => (least + 1).min(most),
        _ => least + i64::try_from(chance.below(12)).unwrap_or(0).min(most - least),
    };
    match chance.below(8) {
        0 => float(whole, 0.0),
        1 if kind(part) == Some("number") => float(whole, -0.25),
        _ => json!(whole),
    }
}

/// An integer written as a fraction, and a number close to it.
fn float(whole: i64, by: f64) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "the bounds of schemas are small numbers")]
    let value = whole as f64 + by;
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// Values at a part's bounds, one past them, and misspelt words of its list.
pub(crate) fn edges(part: &Value, chance: &mut Rng) -> Vec<Value> {
    let mut found = Vec::new();
    for keyword in ["minLength", "maxLength"] {
        let Some(length) = bound(part, keyword) else { continue };
        for length in [length.saturating_sub(1), length, length + 1] {
            found.push(Value::from(sized(part, length, chance)));
            // A bound counts characters: neither bytes nor the halves of UTF-16.
            found.push(Value::from("😀".repeat(usize::try_from(length).expect("a length"))));
        }
    }
    if let Some(pattern) = part.get("pattern").and_then(Value::as_str) {
        found.extend(
            [0, 1, 2, 40].map(|longer| Value::from(spell(pattern, Repetition::First(longer), chance))),
        );
    }
    for keyword in ["minimum", "maximum", "exclusiveMinimum"] {
        let Some(edge) = part.get(keyword).and_then(Value::as_i64) else { continue };
        found.extend([json!(edge - 1), json!(edge), json!(edge + 1)]);
        found.extend([float(edge, 0.0), float(edge, -0.5), float(edge, 0.5), float(edge, 1e-9)]);
        found.push(json!(edge.to_string()));
    }
    for word in listed(part).iter().filter_map(Value::as_str) {
        let capital: String =
            word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect();
        found.extend([word.to_uppercase(), capital, format!("{word} "), format!("{word}s")].map(Value::from));
        found.extend([word, &word.replace('-', "_")].map(Value::from));
    }
    found
}
