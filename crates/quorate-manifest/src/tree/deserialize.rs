//! A serde deserializer over a [`Field`]. The tree has been validated against its schema, so a failure is a bug in the type or
//! its schema, not in the text.
//!
//! Types get places where they ask for them: a pair is a value and its [`Place`](quorate_diagnostics::Place), and a field
//! whose name begins with `$` is read from the mapping that it is a field of.

use std::fmt::Display;

use quorate_diagnostics::{Place, codes};
use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value, json};

use super::reader::{Field, SourceFile};
use super::{Kind, Node};
use crate::decimal::Decimal;
use crate::json_schema::CompiledSchema;

/// Deserializes a type from a tree that matches the type's schema.
///
/// # Errors
/// The type and its schema contradict each other.
pub fn from_node<T: DeserializeOwned>(node: &Node) -> Result<T, DeserializeError> {
    from_field(Field::root(&SourceFile::new("", "".into(), codes::SYNTAX), node))
}

/// Deserializes a type with the places of its values.
fn from_field<T: DeserializeOwned>(field: Field<'_>) -> Result<T, DeserializeError> {
    T::deserialize(Located { field, own_keys: &[] })
}

impl SourceFile {
    /// Reads a tree as a value: runs `check`, validates the tree against the type's schema and deserializes it. The checks
    /// run on every tree, and the schema does not refuse again what they refuse.
    pub fn read<T: DeserializeOwned>(
        &self,
        root: &Node,
        schema: &CompiledSchema,
        check: impl FnOnce(&Field<'_>),
    ) -> Option<T> {
        // An empty file is an empty mapping.
        let empty = Node::new(Kind::Map(Vec::new()), root.span.clone());
        let root = Field::root(self, if root.kind == Kind::Null { &empty } else { root });
        check(&root);
        root.validate(schema);
        if self.refused() {
            return None;
        }
        let read = from_field(root.clone());
        read.map_err(|error| root.invalid(format!("cannot use a value: {error}"))).ok()
    }
}

/// The type and its schema contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeserializeError(String);

impl serde::de::Error for DeserializeError {
    fn custom<T: Display>(message: T) -> Self {
        DeserializeError(message.to_string())
    }
}

/// A value under deserialization.
#[derive(Clone)]
struct Located<'de> {
    field: Field<'de>,
    /// The keys that the type of the mapping has, for a field that has the rest.
    own_keys: &'static [&'static str],
}

impl<'de> Located<'de> {
    fn entries(&self) -> Vec<(&'de str, Located<'de>)> {
        let entries = self.field.entries().into_iter();
        entries.map(|(key, field)| (key, Located { field, own_keys: &[] })).collect()
    }

    /// The keys that the mapping's type does not have, verbatim, each with its place.
    fn block(&self) -> Value {
        let (mut json, mut keys) = (Map::new(), Map::new());
        for (key, field) in self.field.entries().iter().filter(|(key, _)| !self.own_keys.contains(key)) {
            json.insert((*key).to_owned(), field.node().to_json());
            keys.insert((*key).to_owned(), place_json(&field.key_place()));
        }
        json!({"json": json, "place": place_json(&self.field.key_place()), "keys": keys})
    }
}

fn place_json(Place { file, span, path }: &Place) -> Value {
    json!({"file": file, "span": span, "path": path})
}

impl<'de> IntoDeserializer<'de, DeserializeError> for Located<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Located<'de> {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.field.kind() {
            Kind::Null => visitor.visit_unit(),
            Kind::Bool(value) => visitor.visit_bool(*value),
            Kind::Int(value) => visitor.visit_i64(*value),
            Kind::Float(float) => match float.to_integer() {
                Some(whole) => visitor.visit_i64(whole),
                None => visitor.visit_f64(float.value),
            },
            Kind::Str(text) => visitor.visit_borrowed_str(text),
            Kind::Seq(_) => {
                let items = self.field.items().into_iter().map(|field| Located { field, own_keys: &[] });
                visitor.visit_seq(SeqDeserializer::new(items))
            }
            Kind::Map(_) => visitor.visit_map(MapDeserializer::new(self.entries().into_iter())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        if *self.field.kind() == Kind::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        match self.field.kind() {
            Kind::Int(value) if name == Decimal::SERDE_NAME => visitor.visit_string(value.to_string()),
            Kind::Float(float) if name == Decimal::SERDE_NAME => visitor.visit_str(&float.text),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    /// A value and its place.
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_seq(SeqDeserializer::new([self.clone(), self].into_iter()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        let made = match name {
            "Place" => place_json(&self.field.place()),
            "Block" => self.block(),
            _ => {
                let mut entries = self.entries();
                // The short form of a mapping is its first value.
                entries.extend(self.field.text().map(|_| (fields[0], self.clone())));
                let whole = fields.iter().filter(|name| name.starts_with('$'));
                let own = |name: &&'static str| (*name, Located { own_keys: fields, ..self.clone() });
                entries.extend(whole.map(own));
                return visitor.visit_map(MapDeserializer::new(entries.into_iter()));
            }
        };
        made.deserialize_struct(name, fields, visitor).map_err(DeserializeError::custom)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        match self.field.kind() {
            Kind::Str(text) => {
                let word: StrDeserializer<'_, DeserializeError> = text.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            _ => visitor
                .visit_enum(MapAccessDeserializer::new(MapDeserializer::new(self.entries().into_iter()))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple_struct map
        identifier ignored_any
    }
}
