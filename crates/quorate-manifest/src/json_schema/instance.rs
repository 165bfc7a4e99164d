//! The values that can be validated: JSON values, and spanned trees.

use serde_json::Value;

use super::Type;
use crate::tree::{Kind, Node};

/// A value that can be validated.
pub trait Instance: Sized {
    /// Whether the value is of a type.
    fn is(&self, wanted: Type) -> bool;
    /// The value as a number.
    fn number(&self) -> Option<f64>;
    /// The value as text.
    fn text(&self) -> Option<&str>;
    /// The value as a list.
    fn items(&self) -> Option<&[Self]>;
    /// The value's keys, if it is a mapping.
    fn entries(&self) -> Option<impl Iterator<Item = (&str, &Self)>>;
    /// The value of a key.
    fn get(&self, key: &str) -> Option<&Self>;
    /// The value as JSON.
    fn json(&self) -> Value;
}

impl Instance for Value {
    fn is(&self, wanted: Type) -> bool {
        match wanted {
            Type::Null => self.is_null(),
            Type::Boolean => self.is_boolean(),
            Type::Integer => {
                self.is_i64() || self.is_u64() || self.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            Type::Number => self.is_number(),
            Type::String => self.is_string(),
            Type::Array => self.is_array(),
            Type::Object => self.is_object(),
        }
    }

    fn number(&self) -> Option<f64> {
        self.as_f64()
    }

    fn text(&self) -> Option<&str> {
        self.as_str()
    }

    fn items(&self) -> Option<&[Self]> {
        self.as_array().map(Vec::as_slice)
    }

    fn entries(&self) -> Option<impl Iterator<Item = (&str, &Self)>> {
        Some(self.as_object()?.iter().map(|(key, value)| (key.as_str(), value)))
    }

    fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?.get(key)
    }

    fn json(&self) -> Value {
        self.clone()
    }
}

/// A key without a value is absent (M3).
impl Instance for Node {
    fn is(&self, wanted: Type) -> bool {
        match (&self.kind, wanted) {
            (Kind::Float(float), Type::Integer) => float.to_integer().is_some(),
            (Kind::Null, Type::Null)
            | (Kind::Bool(_), Type::Boolean)
            | (Kind::Int(_), Type::Integer | Type::Number)
            | (Kind::Float(_), Type::Number)
            | (Kind::Str(_), Type::String)
            | (Kind::Seq(_), Type::Array)
            | (Kind::Map(_), Type::Object) => true,
            _ => false,
        }
    }

    fn number(&self) -> Option<f64> {
        match &self.kind {
            #[expect(clippy::cast_precision_loss, reason = "compared only with small bounds")]
            Kind::Int(value) => Some(*value as f64),
            Kind::Float(float) => Some(float.value),
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        self.as_str()
    }

    fn items(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::Seq(items) => Some(items),
            _ => None,
        }
    }

    fn entries(&self) -> Option<impl Iterator<Item = (&str, &Self)>> {
        let Kind::Map(entries) = &self.kind else { return None };
        let present = entries.iter().filter(|entry| entry.value.kind != Kind::Null);
        Some(present.map(|entry| (entry.key.as_str(), &entry.value)))
    }

    fn get(&self, key: &str) -> Option<&Self> {
        self.key(key)
    }

    fn json(&self) -> Value {
        self.to_json()
    }
}
