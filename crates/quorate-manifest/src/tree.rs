//! A spanned tree for YAML and TOML.
//!
//! A tree has kinds and spans, but no meaning. [`yaml`] and [`toml`] parse; [`reader`] reads fields with
//! diagnostics; [`mod@open`] goes from a file to a tree.

mod deserialize;
pub(crate) mod emit;
pub mod open;
pub mod reader;
pub mod toml;
pub mod yaml;

use std::collections::HashMap;
use std::ops::Range;

use quorate_diagnostics::{Body, Place};
use serde_json::{Map, Value};

use crate::decimal::Decimal;

pub use deserialize::from_node;
pub use emit::emit;
pub use open::{DecodeError, Format, ParsedFile, decode, open};
pub use reader::{Field, SourceFile};

/// The maximum nesting of mappings and lists.
pub const MAX_DEPTH: usize = 24;

/// The maximum number of values in a file.
pub const MAX_NODES: usize = 20_000;

/// The maximum size of a file in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// The maximum number of problems reported for one text.
const MAX_PROBLEMS: usize = 20;

/// A value and its span.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub kind: Kind,
    /// Byte offsets into the text.
    pub span: Range<usize>,
    /// Index of its document in a chain, root first; 0 in a newly parsed tree.
    pub document: u8,
}

/// A number that is not written as an integer.
#[derive(Debug, Clone, PartialEq)]
pub struct Float {
    /// The nearest double; finite.
    pub value: f64,
    /// The written text, for exact decimals.
    pub text: Box<str>,
}

impl Float {
    /// The integer value of texts such as `7.0` and `1e3`, which JSON Schema treats as integers. Parsed from the text, since
    /// the double of `7.00000000000000000001` is also an integer.
    pub fn to_integer(&self) -> Option<i64> {
        let decimal: Decimal = self.text.parse().ok()?;
        if decimal.scale() == 0 { i64::try_from(decimal.digits()).ok() } else { None }
    }
}

/// The kind and content of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// No value; the key counts as absent.
    Null,
    /// `true` or `false`.
    Bool(bool),
    Int(i64),
    Float(Float),
    Str(String),
    Seq(Vec<Node>),
    /// A mapping in file order, with unique keys.
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub key: String,
    /// The key's span in the text of the value's document.
    pub key_span: Range<usize>,
    pub value: Node,
}

/// A syntax error of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub span: Range<usize>,
    /// One sentence: the error.
    pub message: String,
    /// One sentence: what to do.
    pub help: Option<String>,
    /// Another place that explains it, with a label.
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

    /// Moves its spans by an offset.
    pub(crate) fn shift(&mut self, by: usize) {
        let related = self.related.iter_mut().map(|(span, _)| span);
        for span in related.chain([&mut self.span]) {
            *span = span.start + by..span.end + by;
        }
    }

    /// The body of its diagnostic; `place` is the place of a span.
    pub fn body(self, place: impl Fn(Range<usize>) -> Place) -> Body {
        let body = Body { help: self.help, ..Body::new(self.message).at(place(self.span)) };
        match self.related {
            Some((span, label)) => body.related(place(span), label),
            None => body,
        }
    }
}

impl Kind {
    /// The kind in messages.
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

/// The path of a key below a path: `members.ciso`, `selector["a b"]`.
pub(crate) fn join_path(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    match (path.is_empty(), plain) {
        (true, true) => key.to_owned(),
        (false, true) => format!("{path}.{key}"),
        (_, false) => format!("{path}[{key:?}]"),
    }
}

impl Node {
    /// A value of a newly parsed tree.
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

    /// The value as a number.
    pub fn number(&self) -> Option<f64> {
        match &self.kind {
            #[expect(clippy::cast_precision_loss, reason = "compared only with small bounds")]
            Kind::Int(value) => Some(*value as f64),
            Kind::Float(float) => Some(float.value),
            _ => None,
        }
    }

    /// The value as a whole number.
    pub fn integer(&self) -> Option<i64> {
        match &self.kind {
            Kind::Int(value) => Some(*value),
            Kind::Float(float) => float.to_integer(),
            _ => None,
        }
    }

    /// The span to underline: of a scalar itself, of a collection its key or its first part.
    pub(crate) fn label_span(&self, key: Option<&Range<usize>>) -> Range<usize> {
        match (&self.kind, key) {
            (Kind::Map(_) | Kind::Seq(_), Some(key)) => key.clone(),
            (Kind::Map(entries), None) => {
                entries.first().map_or(self.span.clone(), |first| first.key_span.clone())
            }
            (Kind::Seq(items), None) => {
                items.first().map_or(self.span.clone(), |first| first.label_span(None))
            }
            _ => self.span.clone(),
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

    /// The text of a key, if this is a mapping and the value is text.
    pub fn text_of(&self, key: &str) -> Option<&str> {
        self.key(key)?.as_str()
    }

    /// The items of the list at a path of keys; empty without such a list.
    pub fn items_at(&self, keys: &[&str]) -> &[Node] {
        self.at_path(keys).map_or(&[], Node::items)
    }

    /// The entries of a mapping; empty for other kinds.
    pub fn entries(&self) -> &[Entry] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The value at a path of keys.
    pub fn at_path(&self, keys: &[&str]) -> Option<&Node> {
        keys.iter().try_fold(self, |node, key| node.key(key))
    }

    /// Whether two values are the same, regardless of spans and the order of keys.
    pub(crate) fn is_same(&self, other: &Node) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Seq(items), Kind::Seq(others)) => {
                items.len() == others.len()
                    && items.iter().zip(others).all(|(item, other)| item.is_same(other))
            }
            (Kind::Map(entries), Kind::Map(others)) => {
                let values: HashMap<_, _> = others.iter().map(|entry| (&entry.key, &entry.value)).collect();
                let has =
                    |entry: &Entry| values.get(&entry.key).is_some_and(|other| entry.value.is_same(other));
                entries.len() == others.len() && entries.iter().all(has)
            }
            (kind, other) => kind == other,
        }
    }

    /// Moves all spans by an offset.
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

    /// Sets the document index of the whole tree.
    pub(crate) fn set_layer(&mut self, document: u8) {
        self.document = document;
        match &mut self.kind {
            Kind::Seq(items) => items.iter_mut().for_each(|item| item.set_layer(document)),
            Kind::Map(entries) => entries.iter_mut().for_each(|entry| entry.value.set_layer(document)),
            _ => {}
        }
    }

    /// The value as JSON, without null keys.
    pub fn to_json(&self) -> Value {
        self.json_with(&|float| Value::from(float.value))
    }

    /// The value as JSON, with `7.0` as 7 and fractional numbers as strings of their written text, so that decimals stay
    /// exact.
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
