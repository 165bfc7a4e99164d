//! One value of a mapping or list, read as what it should be.

use std::ops::Range;
use std::time::Duration;

use quorate_diagnostics::codes::{self, RefusalCode, WarningCode};
use quorate_diagnostics::{Body, Place};
use serde_json::Value;

use super::{Fields, SourceFile, join_path, label_span};
use crate::duration;
use crate::tree::{Kind, Node};

/// A value that is there, with its path.
#[derive(Debug, Clone)]
pub struct Field<'d> {
    source_file: &'d SourceFile,
    node: &'d Node,
    key: Option<Range<usize>>,
    path: String,
}

impl<'d> Field<'d> {
    pub(super) fn new(
        document: &'d SourceFile,
        node: &'d Node,
        key: Option<Range<usize>>,
        path: String,
    ) -> Self {
        Field { source_file: document, node, key, path }
    }

    /// What the value is.
    pub fn kind(&self) -> &'d Kind {
        &self.node.kind
    }

    /// The value's path, for example `deliberators[1].prompt`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where the value stands; for a mapping or a list, the key that it belongs to.
    pub fn place(&self) -> Place {
        let span = match (&self.node.kind, &self.key) {
            (Kind::Map(_) | Kind::Seq(_), Some(key)) => key.clone(),
            _ => label_span(self.node),
        };
        self.source_file.place(span, &self.path)
    }

    /// Where the value's key stands; for an item of a list, the item.
    pub fn key_place(&self) -> Place {
        self.source_file.place(self.key.clone().unwrap_or_else(|| label_span(self.node)), &self.path)
    }

    /// Refuses the value with the schema's code.
    pub fn invalid(&self, message: impl Into<String>) {
        self.refuse(self.source_file.invalid, Body::new(message));
    }

    /// Refuses the value with the schema's code and says what to do.
    pub fn invalid_with(&self, message: impl Into<String>, help: impl Into<String>) {
        self.refuse(self.source_file.invalid, Body::new(message).help(help));
    }

    /// Refuses the value with the schema's code.
    pub fn refuse_as_invalid(&self, body: Body) {
        self.refuse(self.source_file.invalid, body);
    }

    /// Refuses the value with a code of its own.
    pub fn refuse(&self, code: RefusalCode, body: Body) {
        self.source_file.refuse(code, body.at(self.place()));
    }

    /// Warns about the value; the key is shown.
    pub fn warn(&self, code: WarningCode, body: Body) {
        self.source_file.warn(code, body.at(self.key_place()));
    }

    /// The value as text.
    pub fn text(&self) -> Option<&'d str> {
        match &self.node.kind {
            Kind::Str(text) => Some(text),
            Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => {
                let written = &self.source_file.text[self.node.span.clone()];
                self.wrong_type("text", Some(format!("put it in quotes: \"{written}\"")))
            }
            _ => self.wrong_type("text", None),
        }
    }

    /// The value as text that is not blank.
    pub fn non_blank_text(&self) -> Option<&'d str> {
        let text = self.text()?;
        if text.trim().is_empty() {
            self.invalid(format!("`{}` is empty", self.path));
            return None;
        }
        Some(text)
    }

    /// The value as `true` or `false`.
    pub fn boolean(&self) -> Option<bool> {
        match &self.node.kind {
            Kind::Bool(value) => Some(*value),
            Kind::Str(word) => {
                let help = match word.to_ascii_lowercase().as_str() {
                    "true" | "yes" | "on" | "y" => Some("write true, without quotes".to_owned()),
                    "false" | "no" | "off" | "n" => Some("write false, without quotes".to_owned()),
                    _ => None,
                };
                self.wrong_type("true or false", help)
            }
            _ => self.wrong_type("true or false", None),
        }
    }

    /// The value as a whole number between two bounds, both included.
    pub fn integer(&self, least: i64, most: i64) -> Option<i64> {
        let value = match &self.node.kind {
            Kind::Int(value) => Some(*value),
            Kind::Float(float) => float.to_integer(),
            _ => None,
        };
        let Some(value) = value else { return self.wrong_type("a whole number", None) };
        if (least..=most).contains(&value) {
            return Some(value);
        }
        let bounds = match most {
            i64::MAX => format!("at least {least}"),
            _ if most == least + 1 => format!("{least} or {most}"),
            _ => format!("between {least} and {most}"),
        };
        self.invalid(format!("`{}` is {value}; it has to be {bounds}", self.path));
        None
    }

    /// The value as a number.
    pub fn number(&self) -> Option<f64> {
        match &self.node.kind {
            #[expect(
                clippy::cast_precision_loss,
                reason = "callers that need exact numbers read the source text"
            )]
            Kind::Int(value) => Some(*value as f64),
            Kind::Float(float) => Some(float.value),
            _ => self.wrong_type("a number", None),
        }
    }

    /// The value as a duration, for example `90s`.
    pub fn duration(&self) -> Option<Duration> {
        let refuse = |why: &str, help: String| {
            self.refuse(codes::DURATION, Body::new(format!("`{}`: {why}", self.path)).help(help));
            None
        };
        match &self.node.kind {
            Kind::Str(text) => match duration::parse(text) {
                Ok(duration) => Some(duration),
                Err(error) => refuse(&error.to_string(), "write it like \"120s\" or \"10m\"".to_owned()),
            },
            Kind::Int(number) => {
                refuse("a duration needs a unit", format!("write \"{number}s\" for seconds"))
            }
            other => {
                let why = format!("{} is not a duration", other.name());
                refuse(&why, "write it like \"120s\" or \"10m\"".to_owned())
            }
        }
    }

    /// The value as a list.
    pub fn list(&self) -> Option<Vec<Field<'d>>> {
        let Kind::Seq(items) = &self.node.kind else {
            return self.wrong_type("a list", None);
        };
        let item = |(index, node): (usize, &'d Node)| {
            Field::new(self.source_file, node, None, format!("{}[{index}]", self.path))
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    /// The value as a mapping with known keys.
    pub fn fields(&self) -> Option<Fields<'d>> {
        let Kind::Map(entries) = &self.node.kind else {
            return self.wrong_type("a mapping", None);
        };
        let span = self.place().span;
        Some(Fields {
            source_file: self.source_file,
            entries,
            span,
            path: self.path.clone(),
            requested: Vec::new(),
        })
    }

    /// The value as a mapping with keys of the author's choice; keys without a value are left out.
    pub fn entries(&self) -> Option<Vec<(&'d str, Field<'d>)>> {
        let Kind::Map(entries) = &self.node.kind else {
            return self.wrong_type("a mapping", None);
        };
        let present = entries.iter().filter(|entry| entry.value.kind != Kind::Null);
        let field = |entry: &'d crate::tree::Entry| {
            let path = join_path(&self.path, &entry.key);
            let field = Field::new(self.source_file, &entry.value, Some(entry.key_span.clone()), path);
            (entry.key.as_str(), field)
        };
        Some(present.map(field).collect())
    }

    /// The value as JSON, whatever it is.
    pub fn json(&self) -> Value {
        self.node.to_json()
    }

    fn wrong_type<T>(&self, wanted: &str, help: Option<String>) -> Option<T> {
        let is = self.node.kind.name();
        let mut body = Body::new(format!("`{}` has to be {wanted}, not {is}", self.path));
        body.help = help;
        self.refuse(self.source_file.invalid, body);
        None
    }
}
