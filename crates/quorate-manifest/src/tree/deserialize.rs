//! A serde deserializer over a [`Node`]. The tree has been validated against its schema, so a failure is a bug in the type or
//! its schema, not in the text.

use std::fmt::Display;

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, Deserializer, EnumAccess, IntoDeserializer, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::{Kind, Node};
use crate::decimal::Decimal;

/// Deserializes a type from a tree that matches the type's schema.
///
/// # Errors
/// The type and its schema contradict each other.
pub fn from_node<T: DeserializeOwned>(node: &Node) -> Result<T, DeserializeError> {
    T::deserialize(node)
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

impl<'de> IntoDeserializer<'de, DeserializeError> for &'de Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match &self.kind {
            Kind::Null => visitor.visit_unit(),
            Kind::Bool(value) => visitor.visit_bool(*value),
            Kind::Int(value) => visitor.visit_i64(*value),
            Kind::Float(float) => match float.to_integer() {
                Some(whole) => visitor.visit_i64(whole),
                None => visitor.visit_f64(float.value),
            },
            Kind::Str(text) => visitor.visit_borrowed_str(text),
            Kind::Seq(items) => visitor.visit_seq(SeqDeserializer::new(items.iter())),
            Kind::Map(entries) => {
                let present = entries.iter().filter(|entry| entry.value.kind != Kind::Null);
                let entries = present.map(|entry| (entry.key.as_str(), &entry.value));
                visitor.visit_map(MapDeserializer::new(entries))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        if self.kind == Kind::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        match &self.kind {
            Kind::Int(value) if name == Decimal::SERDE_NAME => visitor.visit_string(value.to_string()),
            Kind::Float(float) if name == Decimal::SERDE_NAME => visitor.visit_str(&float.text),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        match &self.kind {
            Kind::Str(text) => visitor.visit_enum(EnumName(text)),
            other => Err(serde::de::Error::custom(format!("{} is not a word", other.name()))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

/// An enum variant by its word.
struct EnumName<'de>(&'de str);

impl<'de> EnumAccess<'de> for EnumName<'de> {
    type Error = DeserializeError;
    type Variant = UnitVariant;

    fn variant_seed<V: serde::de::DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, UnitVariant), DeserializeError> {
        let word: StrDeserializer<'de, DeserializeError> = self.0.into_deserializer();
        Ok((seed.deserialize(word)?, UnitVariant))
    }
}

/// A variant without content.
struct UnitVariant;

impl<'de> VariantAccess<'de> for UnitVariant {
    type Error = DeserializeError;

    fn unit_variant(self) -> Result<(), DeserializeError> {
        Ok(())
    }

    fn newtype_variant_seed<T: serde::de::DeserializeSeed<'de>>(
        self,
        _: T,
    ) -> Result<T::Value, DeserializeError> {
        Err(serde::de::Error::custom("a word has no content"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, DeserializeError> {
        Err(serde::de::Error::custom("a word has no content"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, DeserializeError> {
        Err(serde::de::Error::custom("a word has no content"))
    }
}
