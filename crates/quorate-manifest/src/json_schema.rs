//! A validator for JSON Schema (draft 2020-12) with only the keywords that Quorate's schemas use. A schema with another
//! keyword is refused, so that every published constraint is enforced.
//!
//! Unlike public validators it works on spanned trees, reports all errors at once as data for messages, and starts fast. A
//! test compares it with a public validator.

pub(crate) mod ecma;
mod error;
mod instance;
mod parse;
mod validate;

use serde_json::Value;

pub use error::{Bound, ErrorKind, Expected, PathStep, SchemaError};
pub use instance::Instance;

/// A parsed schema.
#[derive(Debug, Default)]
pub struct CompiledSchema {
    types: Vec<Type>,
    enum_values: Option<Vec<Value>>,
    required: Vec<String>,
    properties: Vec<(String, CompiledSchema)>,
    additional: Additional,
    items: Option<Box<CompiledSchema>>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    exclusive_minimum: Option<f64>,
    min_length: Option<usize>,
    max_length: Option<usize>,
    min_items: Option<usize>,
    max_items: Option<usize>,
    min_properties: Option<usize>,
    unique_items: bool,
    pattern: Option<ecma::Pattern>,
    all_of: Vec<CompiledSchema>,
    any_of: Vec<CompiledSchema>,
    one_of: Vec<CompiledSchema>,
    not: Option<Box<CompiledSchema>>,
    condition: Option<Box<Condition>>,
    /// The schema's `description`.
    description: Option<String>,
    /// Whether the description explains an error: only if the schema is a rule between fields.
    explains_errors: bool,
}

impl CompiledSchema {
    /// The known keys of a mapping.
    pub(crate) fn keys(&self) -> Vec<&str> {
        let direct = self.properties.iter().map(|(key, _)| key.as_str());
        direct.chain(self.all_of.iter().flat_map(CompiledSchema::keys)).collect()
    }

    /// The schema of a key's value.
    pub(crate) fn property(&self, key: &str) -> Option<&CompiledSchema> {
        let direct = self.properties.iter().find(|(known, _)| known == key).map(|(_, schema)| schema);
        direct.or_else(|| self.all_of.iter().find_map(|schema| schema.property(key)))
    }

    /// The schema of a list's entries.
    pub(crate) fn item(&self) -> Option<&CompiledSchema> {
        self.items.as_deref().or_else(|| self.all_of.iter().find_map(CompiledSchema::item))
    }
}

/// The constraint on keys that `properties` does not list.
#[derive(Debug, Default)]
enum Additional {
    #[default]
    Allowed,
    Denied,
    Matching(Box<CompiledSchema>),
}

#[derive(Debug)]
struct Condition {
    when: CompiledSchema,
    then: Option<CompiledSchema>,
    otherwise: Option<CompiledSchema>,
}

/// A type of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// `null`.
    Null,
    /// `boolean`.
    Boolean,
    /// `integer`; 1.0 is one.
    Integer,
    /// `number`.
    Number,
    /// `string`.
    String,
    /// `array`.
    Array,
    /// `object`.
    Object,
}

impl Type {
    const ALL: [Type; 7] =
        [Type::Null, Type::Boolean, Type::Integer, Type::Number, Type::String, Type::Array, Type::Object];

    /// The word in schemas.
    pub fn as_str(self) -> &'static str {
        match self {
            Type::Null => "null",
            Type::Boolean => "boolean",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::String => "string",
            Type::Array => "array",
            Type::Object => "object",
        }
    }

    /// The type in messages.
    pub fn description(self) -> &'static str {
        match self {
            Type::Null => "nothing",
            Type::Boolean => "true or false",
            Type::Integer => "a whole number",
            Type::Number => "a number",
            Type::String => "text",
            Type::Array => "a list",
            Type::Object => "a mapping",
        }
    }
}

#[cfg(test)]
mod tests;
