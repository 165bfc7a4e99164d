//! Validation errors and their paths.

use std::fmt;

use serde_json::Value;

use super::Type;

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
