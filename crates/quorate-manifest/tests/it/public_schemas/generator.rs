//! Documents that a schema accepts, generated from it. A document may violate constraints between fields; then both
//! sides must refuse it.

use serde_json::{Map, Value, json};

use super::rng::Rng;
use super::subschema::{bound, kind, listed, number, referred, text, ways};

/// A walk through a schema.
pub(crate) struct Generator<'s> {
    pub(crate) root: &'s Value,
    /// The percentage of optional fields that are present.
    pub(crate) present: usize,
    /// The maximum length of a list, unless the schema requires more.
    pub(crate) items: u64,
    pub(crate) chance: Rng,
}

impl Generator<'_> {
    /// A complete document.
    pub(crate) fn document(&mut self) -> Value {
        let root = self.root;
        self.value(root)
    }

    fn value(&mut self, part: &Value) -> Value {
        let root = self.root;
        let part = referred(root, part);
        let listed = listed(part);
        if !listed.is_empty() {
            return self.chance.pick(&listed).clone();
        }
        let ways = ways(root, part);
        if !ways.is_empty() {
            let way = *self.chance.pick(&ways);
            return self.value(way);
        }
        match kind(part) {
            Some("object") => self.mapping(part),
            Some("array") => self.list(part),
            Some("string") => Value::from(text(part, &mut self.chance)),
            Some("integer" | "number") => number(part, &mut self.chance),
            Some("boolean") => json!(self.chance.percent(50)),
            Some(other) => panic!("{other} is not walked"),
            None => anything(&mut self.chance, 0),
        }
    }

    fn mapping(&mut self, part: &Value) -> Value {
        let required: Vec<&str> = part
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut made = Map::new();
        for (key, inner) in part.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if required.contains(&key.as_str()) || self.chance.percent(self.present) {
                made.insert(key.clone(), self.value(inner));
            }
        }
        let others = part.get("additionalProperties").unwrap_or(&Value::Bool(true));
        if *others == Value::Bool(false) {
            return Value::Object(made);
        }
        let most = if self.present > 50 { 3 } else { 2 };
        for _ in 0..self.chance.below(most) {
            let key =
                *self.chance.pick(&["role", "acme", "x-note", "ws://a", "a b", "ünï", "true", "1", "<<"]);
            let value = if others.is_object() { self.value(others) } else { anything(&mut self.chance, 0) };
            made.entry(key).or_insert(value);
        }
        Value::Object(made)
    }

    fn list(&mut self, part: &Value) -> Value {
        let least = bound(part, "minItems").unwrap_or(0);
        let most = bound(part, "maxItems").unwrap_or(self.items).min(self.items).max(least);
        let length = match self.chance.below(10) {
            0 if self.present < 100 => least,
            1 => most,
            _ => (least + 1).min(most),
        };
        let mut items: Vec<Value> = Vec::new();
        let unique = part.get("uniqueItems") == Some(&Value::Bool(true));
        for _ in 0..length {
            let item = self.value(&part["items"]);
            if !unique || !items.contains(&item) {
                items.push(item);
            }
        }
        Value::Array(items)
    }
}

/// A value of any kind.
pub(crate) fn anything(chance: &mut Rng, depth: usize) -> Value {
    match chance.below(if depth < 3 { 12 } else { 9 }) {
        0 => Value::Null,
        1 => json!(chance.percent(50)),
        2 => json!(i64::try_from(chance.below(1000)).unwrap_or(0) - 500),
        3 => json!(*chance.pick(&[1.0, -0.5, 1e-7, 1e21, 123_456.75])),
        4 => json!(*chance.pick(&[i64::MAX, i64::MIN, 0])),
        5 => json!(*chance.pick(&["", "true", "null", "~", "1", "1.0", "yes", "2026-01-01", "0x1F", ".inf"])),
        6 => json!(
            *chance
                .pick(&["a: b", "- a", "# a", " a", "a ", "a\nb", "a\n", "\t", "*a", "&a", "!a", "{", "]"])
        ),
        7 => {
            json!(*chance.pick(&["\u{0}", "\u{7F}", "\u{85}", "\u{A0}", "\u{2028}", "\u{FEFF}", "\u{1F600}"]))
        }
        8 => json!("word"),
        9 | 10 => Value::Array((0..chance.below(4)).map(|_| anything(chance, depth + 1)).collect()),
        _ => {
            let keys = (0..chance.below(4)).map(|at| format!("key-{at}"));
            Value::Object(keys.map(|key| (key, anything(chance, depth + 1))).collect())
        }
    }
}
