//! What keeps a value from fitting, and where.

use std::fmt;

use serde_json::Value;

use super::Type;

/// One thing that keeps a value from fitting.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaError {
    /// The way to the value, from the root.
    pub path: Vec<PathStep>,
    /// What is wrong with it.
    pub kind: ErrorKind,
    /// What the schema says: of a key that is missing, or of the rule between fields that is not kept.
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

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq)]
pub enum ErrorKind {
    /// It is of another type.
    Type(Expected),
    /// It is none of these values.
    NotInEnum(Vec<Value>),
    /// A key is missing.
    MissingKey(String),
    /// There is a key that is not known; the known ones.
    UnknownKey {
        key: String,
        /// The keys that there are.
        known: Vec<String>,
    },
    /// A number, a length or a count is out of bounds.
    OutOfBounds(Bound),
    /// The text does not match.
    Pattern {
        pattern: String,
        /// What it asks for, in words.
        description: Option<String>,
    },
    /// Two items are the same.
    Duplicate {
        /// The first of them.
        first: usize,
        /// The second of them.
        second: usize,
    },
    /// It fits none of several ways, for these reasons.
    NoMatch(Vec<SchemaError>),
    /// It fits more than one of several ways.
    MultipleMatches,
    /// It is what it must not be.
    Forbidden,
}

/// What is wanted where a value is of another type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expected {
    /// One of these types.
    pub types: Vec<Type>,
    /// Of text: the regular expression that it has to match, and what that asks for in words.
    pub pattern: Option<(String, Option<String>)>,
    /// Of a mapping: the keys that it has to have.
    pub keys: Vec<String>,
}

/// A bound that is not kept.
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

/// The misfit's place as a JSON pointer.
pub struct Pointer<'m>(&'m [PathStep]);

impl SchemaError {
    /// The misfit's place as a JSON pointer.
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
