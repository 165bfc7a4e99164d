//! A validator for JSON Schema (draft 2020-12) with only the keywords that Quorate's schemas use. A schema with another
//! keyword is refused, so that every published constraint is enforced.
//!
//! Unlike public validators it works on spanned trees, reports all errors at once as data for messages, and starts fast. A
//! test compares it with a public validator.

pub(crate) mod ecma;
mod validate;

use std::fmt;

use serde_json::Value;

pub use validate::Instance;

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

words!(Type {
    Null = "null",
    Boolean = "boolean",
    Integer = "integer",
    Number = "number",
    String = "string",
    Array = "array",
    Object = "object",
});

impl Type {
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

/// One reason why a value is invalid.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaError {
    /// The path of the value, from the root.
    pub path: Vec<PathStep>,
    /// What is wrong with it.
    pub kind: ErrorKind,
    /// The schema's description of a missing key, or of a violated rule between fields.
    pub schema_description: Option<String>,
}

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// The value of a key.
    Key(String),
    /// An item of a list, from 0.
    Item(usize),
}

/// The kind of an error.
#[derive(Debug, Clone, PartialEq)]
pub enum ErrorKind {
    /// The value has another type.
    Type(Expected),
    /// The value is not one of these.
    NotInEnum(Vec<Value>),
    /// A key is missing.
    MissingKey(String),
    /// The mapping has an unknown key.
    UnknownKey {
        key: String,
        /// The known keys.
        known: Vec<String>,
    },
    /// A number, a length or a count is out of bounds.
    OutOfBounds(Bound),
    /// The text does not match.
    Pattern {
        pattern: String,
        /// The text after "it has to be" in messages.
        description: Option<String>,
    },
    /// Two items are the same.
    Duplicate {
        /// Index of the first.
        first: usize,
        /// Index of the second.
        second: usize,
    },
    /// The value matches no alternative; the errors of each.
    NoMatch(Vec<SchemaError>),
    /// The value matches more than one alternative of a `oneOf`.
    MultipleMatches,
    /// The value matches a `not`.
    Forbidden,
}

/// The expected types of a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expected {
    /// One of these types.
    pub types: Vec<Type>,
    /// For text: its regular expression and the description of it.
    pub pattern: Option<(String, Option<String>)>,
    /// For a mapping: its required keys.
    pub keys: Vec<String>,
}

/// A violated bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// The number is less.
    Least(f64),
    /// The number is greater.
    Most(f64),
    /// The number is not greater.
    MoreThan(f64),
    /// The text has fewer characters.
    ShortestText(usize),
    /// The text has more characters.
    LongestText(usize),
    /// The list has fewer items.
    FewestItems(usize),
    /// The list has more items.
    MostItems(usize),
    /// The mapping has fewer keys.
    FewestKeys(usize),
}

/// The error's path as a JSON pointer.
pub struct Pointer<'m>(&'m [PathStep]);

impl SchemaError {
    fn new(path: &[PathStep], kind: ErrorKind) -> SchemaError {
        SchemaError { path: path.to_vec(), kind, schema_description: None }
    }

    /// The error's path as a JSON pointer.
    pub fn pointer(&self) -> Pointer<'_> {
        Pointer(&self.path)
    }
}

impl fmt::Display for Pointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| match step {
            PathStep::Key(key) => write!(f, "/{}", key.replace('~', "~0").replace('/', "~1")),
            PathStep::Item(index) => write!(f, "/{index}"),
        })
    }
}

/// The maximum nesting of `$ref`s; Quorate's schemas do not recurse.
const MAX_REF_DEPTH: usize = 32;

impl CompiledSchema {
    /// Parses a schema; `None` if it has an unsupported keyword, regular expression or value.
    pub fn parse(schema: &Value) -> Option<CompiledSchema> {
        SchemaParser { root: schema }.schema(schema, 0)
    }
}

struct SchemaParser<'s> {
    root: &'s Value,
}

impl SchemaParser<'_> {
    fn schema(&self, schema: &Value, depth: usize) -> Option<CompiledSchema> {
        if depth > MAX_REF_DEPTH {
            return None;
        }
        let mut form = CompiledSchema::default();
        if let Value::Bool(fits) = schema {
            form.not = (!fits).then(Box::default);
            return Some(form);
        }
        let schema = schema.as_object()?;
        let one = |value: &Value| self.schema(value, depth + 1);
        let many = |value: &Value| value.as_array()?.iter().map(one).collect::<Option<Vec<_>>>();
        let says = schema.get("patternErrorMessage").and_then(Value::as_str);
        for (keyword, value) in schema {
            match keyword.as_str() {
                "type" => form.types = types(value)?,
                "enum" => form.enum_values = Some(value.as_array()?.clone()),
                "const" => form.enum_values = Some(vec![value.clone()]),
                "required" => form.required = strings(value)?,
                "properties" => {
                    let read = |(key, value): (&String, &Value)| Some((key.clone(), one(value)?));
                    form.properties = value.as_object()?.iter().map(read).collect::<Option<_>>()?;
                }
                "additionalProperties" => {
                    form.additional = match value {
                        Value::Bool(true) => Additional::Allowed,
                        Value::Bool(false) => Additional::Denied,
                        held => Additional::Matching(Box::new(one(held)?)),
                    }
                }
                "items" => form.items = Some(Box::new(one(value)?)),
                "minimum" => form.minimum = Some(value.as_f64()?),
                "maximum" => form.maximum = Some(value.as_f64()?),
                "exclusiveMinimum" => form.exclusive_minimum = Some(value.as_f64()?),
                "minLength" => form.min_length = Some(count(value)?),
                "maxLength" => form.max_length = Some(count(value)?),
                "minItems" => form.min_items = Some(count(value)?),
                "maxItems" => form.max_items = Some(count(value)?),
                "minProperties" => form.min_properties = Some(count(value)?),
                "uniqueItems" => form.unique_items = value.as_bool()?,
                "pattern" => form.pattern = Some(ecma::Pattern::parse(value.as_str()?, says)?),
                "allOf" => form.all_of.extend(many(value)?),
                "anyOf" => form.any_of = many(value)?,
                "oneOf" => form.one_of = many(value)?,
                "not" => form.not = Some(Box::new(one(value)?)),
                "if" => {
                    let part = |key| schema.get(key).map_or(Some(None), |value| Some(Some(one(value)?)));
                    let (then, otherwise) = (part("then")?, part("else")?);
                    form.condition = Some(Box::new(Condition { when: one(value)?, then, otherwise }));
                }
                "then" | "else" if schema.contains_key("if") => {}
                "$ref" => form.all_of.push(one(self.resolve_ref(value.as_str()?)?)?),
                "description" => form.description = Some(value.as_str()?.to_owned()),
                // Annotations.
                "$schema"
                | "$id"
                | "$defs"
                | "$comment"
                | "title"
                | "default"
                | "examples"
                | "format"
                | "deprecated"
                | "patternErrorMessage" => {}
                _ => return None,
            }
        }
        // The description of a whole schema explains no single error.
        form.explains_errors = depth > 0 && (form.condition.is_some() || !form.any_of.is_empty());
        Some(form)
    }

    fn resolve_ref(&self, reference: &str) -> Option<&Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

fn types(value: &Value) -> Option<Vec<Type>> {
    let words = match value {
        Value::String(word) => vec![word.clone()],
        _ => strings(value)?,
    };
    words.iter().map(|word| Type::parse(word)).collect()
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

fn count(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_keyword_that_is_not_held_is_refused() {
        assert!(CompiledSchema::parse(&json!({"type": "string", "contentEncoding": "base64"})).is_none());
        assert!(CompiledSchema::parse(&json!({"properties": {"a": {"prefixItems": []}}})).is_none());
        assert!(CompiledSchema::parse(&json!({"type": "text"})).is_none());
    }

    #[test]
    fn faults_say_where() {
        let form = CompiledSchema::parse(&json!({
            "type": "object",
            "required": ["a"],
            "additionalProperties": false,
            "properties": {
                "a": {"type": "array", "uniqueItems": true, "items": {"type": "integer", "minimum": 1}},
                "b": {"oneOf": [{"type": "string", "const": "*"}, {"type": "array", "minItems": 1}]}
            }
        }))
        .expect("a schema");
        let faults = |value: Value| -> Vec<String> {
            form.errors(&value)
                .iter()
                .map(|misfit| format!("{} {:?}", misfit.pointer(), misfit.kind))
                .collect()
        };
        assert_eq!(faults(json!({"a": [1, 2]})), Vec::<String>::new());
        assert_eq!(faults(json!({"a": [1, 0]})), ["/a/1 OutOfBounds(Least(1.0))"]);
        assert_eq!(faults(json!({"a": [1, 1.0]})), ["/a Duplicate { first: 0, second: 1 }"]);
        assert_eq!(faults(json!({"a": [], "b": []})), ["/b OutOfBounds(FewestItems(1))"]);
        assert_eq!(
            faults(json!({"c": 1})),
            [" MissingKey(\"a\")", " UnknownKey { key: \"c\", known: [\"a\", \"b\"] }"]
        );
        assert_eq!(faults(json!([])), [" Type(Expected { types: [Object], pattern: None, keys: [\"a\"] })"]);
    }

    #[test]
    fn the_same_is_the_same_number_or_text() {
        let form = CompiledSchema::parse(&json!({"uniqueItems": true})).expect("a schema");
        for (items, fits) in [
            (json!([1, 1.0]), false),
            (json!([9_007_199_254_740_993_i64, 9_007_199_254_740_992_i64]), true),
            (json!(["a", "b", "a"]), false),
            (json!(["1", 1]), true),
            (json!([{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]), false),
        ] {
            assert_eq!(form.is_valid(&items), fits, "{items}");
        }
    }

    #[test]
    fn what_is_said_of_several_ways_is_what_was_meant() {
        let form = CompiledSchema::parse(&json!({"properties": {
            "word": {"anyOf": [{"oneOf": [{"const": "a", "type": "string"}, {"const": "b", "type": "string"}]}, {"type": "null"}]},
            "whom": {"anyOf": [{"oneOf": [{"const": "*", "type": "string"}, {"type": "array", "minItems": 1}]}, {"type": "null"}]},
            "text": {"oneOf": [{"type": "string", "minLength": 1}, {"type": "array", "minItems": 1}]}
        }}))
        .expect("a schema");
        let faults = |value: Value| -> Vec<ErrorKind> {
            form.errors(&value).into_iter().map(|error| error.kind).collect()
        };
        for word in [json!("c"), json!(3), json!(["a"])] {
            assert_eq!(faults(json!({"word": word})), [ErrorKind::NotInEnum(vec![json!("a"), json!("b")])]);
        }
        assert!(
            matches!(faults(json!({"whom": "c"})).as_slice(), [ErrorKind::NoMatch(ways)] if ways.len() == 2)
        );
        assert_eq!(faults(json!({"whom": []})), [ErrorKind::OutOfBounds(Bound::FewestItems(1))]);
        assert_eq!(faults(json!({"text": ""})), [ErrorKind::OutOfBounds(Bound::ShortestText(1))]);
        assert!(
            matches!(faults(json!({"text": 1})).as_slice(), [ErrorKind::NoMatch(ways)] if ways.len() == 2)
        );
    }
}
