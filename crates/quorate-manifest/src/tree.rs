//! One spanned tree for everything that is read, whether it was YAML or TOML.
//!
//! A tree knows kinds and places and no meaning. Parsing lives in [`yaml`] and [`toml`], typed reading with
//! diagnostics in [`reader`], the way from bytes to a tree in [`mod@open`].

pub mod open;
pub mod reader;
pub mod toml;
pub mod yaml;

use std::ops::Range;

use serde_json::{Map, Value};

pub use open::{Format, Opened, open};
pub use reader::{Document, Field, Fields};

/// How deep mappings and lists may nest.
pub const DEPTH: usize = 24;

/// How many values a file may hold.
pub const NODES: usize = 20_000;

/// How many bytes a file may have.
pub const BYTES: usize = 1 << 20;

/// How many problems of one text are reported.
const PROBLEMS: usize = 20;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Byte offsets into the text.
    pub span: Range<usize>,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Nothing; the key counts as absent.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number. Finite.
    Float(f64),
    /// Text.
    Str(String),
    /// A list.
    Seq(Vec<Node>),
    /// A mapping, in the order as written; keys are unique.
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_span: Range<usize>,
    /// The value.
    pub value: Node,
}

/// Something that keeps a text from being read as a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub span: Range<usize>,
    /// One sentence: what is wrong.
    pub message: String,
    /// One sentence: what to do.
    pub help: Option<String>,
    /// Another place that explains it, and what is there.
    pub related: Option<(Range<usize>, String)>,
}

impl Problem {
    fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Problem { span, message: message.into(), help: None, related: None }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl Kind {
    /// What the value is, as a message says it.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a boolean",
            Kind::Int(_) => "a whole number",
            Kind::Float(_) => "a number",
            Kind::Str(_) => "text",
            Kind::Seq(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }
}

impl Node {
    /// The value as JSON. Keys without a value are left out.
    pub fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Int(value) => Value::from(*value),
            Kind::Float(value) => Value::from(*value),
            Kind::Str(value) => Value::String(value.clone()),
            Kind::Seq(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Kind::Map(entries) => {
                let present = entries.iter().filter(|entry| entry.value.kind != Kind::Null);
                Value::Object(Map::from_iter(present.map(|e| (e.key.clone(), e.value.to_json()))))
            }
        }
    }
}
