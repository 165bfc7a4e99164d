//! One spanned tree for everything that is read, whether it was YAML, TOML or JSON.
//!
//! A tree knows kinds and places and no meaning. Parsing lives in [`yaml`], [`toml`] and [`json`], typed
//! reading with diagnostics in [`reader`], the way from bytes to a tree in [`mod@open`].

mod deserialize;
mod emit;
pub mod json;
pub mod open;
pub mod reader;
pub mod toml;
pub mod yaml;

use std::ops::Range;

use serde_json::{Map, Value};

use crate::decimal::Decimal;

pub use deserialize::from_node;
pub use emit::emit;
pub use open::{Format, ParsedFile, open};
pub use reader::{Field, Fields, SourceFile};

/// How deep mappings and lists may nest.
pub const MAX_DEPTH: usize = 24;

/// How many values a file may hold.
pub const MAX_NODES: usize = 20_000;

/// How many bytes a file may have.
pub const MAX_BYTES: usize = 1 << 20;

/// How many problems of one text are reported.
const MAX_PROBLEMS: usize = 20;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub kind: Kind,
    /// Byte offsets into the text.
    pub span: Range<usize>,
    /// Which document of a chain it comes from, root first; 0 in a tree that was just read.
    pub document: u8,
}

/// A number that is not whole, as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Float {
    /// The nearest value that a double has. Finite.
    pub value: f64,
    /// The text, for whoever counts in decimals.
    pub text: Box<str>,
}

impl Float {
    /// The integer that the text says, as `7.0` and `1e3` do: JSON Schema takes them for integers, so every reader has to.
    /// Read from the text, since rounding to a double would make `7.00000000000000000001` one, too.
    pub fn to_integer(&self) -> Option<i64> {
        let decimal: Decimal = self.text.parse().ok()?;
        if decimal.scale() == 0 { i64::try_from(decimal.digits()).ok() } else { None }
    }
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Nothing; the key counts as absent.
    Null,
    /// `true` or `false`.
    Bool(bool),
    Int(i64),
    Float(Float),
    Str(String),
    Seq(Vec<Node>),
    /// A mapping, in the order as written; keys are unique.
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub key: String,
    /// Where the key stands, in the text of the value's document.
    pub key_span: Range<usize>,
    pub value: Node,
}

/// Something that keeps a text from being read as a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub span: Range<usize>,
    /// One sentence: what is wrong.
    pub message: String,
    /// One sentence: what to do.
    pub help: Option<String>,
    /// Another place that explains it, and what is there.
    pub related: Option<(Range<usize>, String)>,
}

impl Problem {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Problem { span, message: message.into(), help: None, related: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
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
    /// A value of a tree that was just read.
    pub fn new(kind: Kind, span: Range<usize>) -> Self {
        Node { kind, span, document: 0 }
    }

    /// The value as text, if it is text.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The entry of a key that has a value, if this is a mapping.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        let Kind::Map(entries) = &self.kind else { return None };
        entries.iter().find(|entry| entry.key == key && entry.value.kind != Kind::Null)
    }

    /// The value of a key, if this is a mapping. A key without a value is absent (M3).
    pub fn key(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The items, if this is a list.
    pub fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::Seq(items) => items,
            _ => &[],
        }
    }

    /// The entries of a mapping; none of anything else.
    pub fn entries(&self) -> &[Entry] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// What a chain of keys leads to.
    pub fn at_path(&self, keys: &[&str]) -> Option<&Node> {
        keys.iter().try_fold(self, |node, key| node.key(key))
    }

    /// Moves every place by so many bytes.
    pub(crate) fn shift(&mut self, by: usize) {
        let moved = |span: &Range<usize>| span.start + by..span.end + by;
        self.span = moved(&self.span);
        match &mut self.kind {
            Kind::Seq(items) => items.iter_mut().for_each(|item| item.shift(by)),
            Kind::Map(entries) => entries.iter_mut().for_each(|entry| {
                entry.key_span = moved(&entry.key_span);
                entry.value.shift(by);
            }),
            _ => {}
        }
    }

    /// Says of everything in it which document it comes from.
    pub(crate) fn set_layer(&mut self, document: u8) {
        self.document = document;
        match &mut self.kind {
            Kind::Seq(items) => items.iter_mut().for_each(|item| item.set_layer(document)),
            Kind::Map(entries) => entries.iter_mut().for_each(|entry| entry.value.set_layer(document)),
            _ => {}
        }
    }

    /// The value as JSON. Keys without a value are left out.
    pub fn to_json(&self) -> Value {
        self.json_with(&|float| Value::from(float.value))
    }

    /// The value as JSON in which `7.0` is 7, and numbers that are not integers are the text that was written, so that
    /// decimals arrive as they were meant.
    pub fn to_exact_json(&self) -> Value {
        self.json_with(&|float| float.to_integer().map_or_else(|| Value::from(&*float.text), Value::from))
    }

    fn json_with(&self, float: &dyn Fn(&Float) -> Value) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Int(value) => Value::from(*value),
            Kind::Float(value) => float(value),
            Kind::Str(value) => Value::String(value.clone()),
            Kind::Seq(items) => Value::Array(items.iter().map(|item| item.json_with(float)).collect()),
            Kind::Map(entries) => {
                let present = entries.iter().filter(|entry| entry.value.kind != Kind::Null);
                Value::Object(Map::from_iter(present.map(|e| (e.key.clone(), e.value.json_with(float)))))
            }
        }
    }
}
