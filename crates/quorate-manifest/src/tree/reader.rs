//! Values of a file with their paths, and the diagnostics of the file.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use quorate_diagnostics::codes::{self, RefusalCode, WarningCode};
use quorate_diagnostics::{Body, Place, Report};

use super::{Kind, Node, Problem, join_path};
use crate::document::schema_error;
use crate::json_schema::{CompiledSchema, SchemaError};

pub use crate::misspelling::{meant_or, nearest};

/// The maximum number of refusals, and of warnings, for one document; the rest are only counted.
const MAX_DIAGNOSTICS: usize = 200;

/// A text and its diagnostics.
#[derive(Debug)]
pub struct SourceFile {
    file: Arc<str>,
    text: Arc<str>,
    invalid: RefusalCode,
    report: RefCell<Report>,
    omitted: Cell<usize>,
}

impl SourceFile {
    /// `invalid` is the code of schema errors.
    pub fn new(shown: &str, text: Arc<str>, invalid: RefusalCode) -> Self {
        let file: Arc<str> = shown.into();
        let mut report = Report::new();
        report.add_source(Arc::clone(&file), Arc::clone(&text));
        SourceFile { file, text, invalid, report: RefCell::new(report), omitted: Cell::new(0) }
    }

    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// A place in the document.
    pub fn place(&self, span: Range<usize>, path: impl Into<String>) -> Place {
        Place { file: Arc::clone(&self.file), span, path: path.into() }
    }

    pub fn refuse(&self, code: RefusalCode, body: Body) {
        let mut report = self.report.borrow_mut();
        if report.refusals.len() < MAX_DIAGNOSTICS {
            report.refuse(code, body);
        } else {
            self.omitted.set(self.omitted.get() + 1);
        }
    }

    /// Refuses a text that cannot be parsed.
    pub(crate) fn refuse_syntax(&self, problem: Problem) {
        self.refuse(codes::SYNTAX, problem.body(|span| self.place(span, "")));
    }

    pub fn warn(&self, code: WarningCode, body: Body) {
        let mut report = self.report.borrow_mut();
        if report.warnings.len() < MAX_DIAGNOSTICS {
            report.warn(code, body);
        }
    }

    /// Whether anything was refused so far.
    pub fn refused(&self) -> bool {
        self.report.borrow().has_refusals()
    }

    /// Refuses the errors of a value with the path `above`, except at values that were refused before.
    pub(crate) fn refuse_errors(
        &self,
        code: RefusalCode,
        (root, above): (&Node, &str),
        errors: &[SchemaError],
    ) {
        let refused = self.report.borrow().refusals.clone();
        let places: Vec<&Place> = refused.iter().filter_map(|refusal| refusal.body.place.as_ref()).collect();
        let is_refused = |path: &str| !path.is_empty() && places.iter().any(|place| place.path == path);
        self.omitted.set(self.omitted.get() + errors.len().saturating_sub(MAX_DIAGNOSTICS));
        for error in errors.iter().take(MAX_DIAGNOSTICS) {
            let (mut body, span, path) = schema_error::describe(&self.text, root, error, above);
            if let Some(first) = schema_error::first_duplicate(root, error) {
                body = body.related(self.place(first, path.clone()), "first here");
            }
            if !is_refused(&path) {
                self.refuse(code, body.at(self.place(span, path)));
            }
        }
    }

    /// The diagnostics with the text, in which secret keys are masked, so that no message quotes one.
    pub fn into_report(self) -> Report {
        let mut report = self.report.into_inner();
        if let Some(covered) = mask_secret_keys(&self.text) {
            report.add_source(Arc::clone(&self.file), covered);
        }
        let at = |body: &Body| body.place.as_ref().map_or(0, |place| place.span.start);
        report.refusals.sort_by_key(|refusal| at(&refusal.body));
        report.warnings.sort_by_key(|warning| at(&warning.body));
        let omitted = self.omitted.get();
        if omitted > 0 {
            report.refuse(
                self.invalid,
                Body::new(format!("{omitted} more refusals of {} are not shown", self.file)),
            );
        }
        report
    }
}

/// A present value with its path. A value of another type than a method reads counts as absent: the schema refuses it.
#[derive(Debug, Clone)]
pub struct Field<'d> {
    source_file: &'d SourceFile,
    node: &'d Node,
    key: Option<&'d Range<usize>>,
    path: String,
}

impl<'d> Field<'d> {
    pub(crate) fn root(source_file: &'d SourceFile, node: &'d Node) -> Self {
        Field { source_file, node, key: None, path: String::new() }
    }

    pub fn node(&self) -> &'d Node {
        self.node
    }

    /// The kind of the value.
    pub fn kind(&self) -> &'d Kind {
        &self.node.kind
    }

    /// The value's path, for example `deliberators[1].prompt`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value as text that is not blank.
    pub fn text(&self) -> Option<&'d str> {
        self.node.as_str().filter(|text| !text.trim().is_empty())
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Field<'d>> {
        self.entries().into_iter().find_map(|(known, field)| (known == key).then_some(field))
    }

    /// The items of a list.
    pub fn items(&self) -> Vec<Field<'d>> {
        let item = |(at, node)| Field {
            source_file: self.source_file,
            node,
            key: None,
            path: format!("{}[{at}]", self.path),
        };
        self.node.items().iter().enumerate().map(item).collect()
    }

    /// The keys of a mapping and their values.
    pub fn entries(&self) -> Vec<(&'d str, Field<'d>)> {
        let present = self.node.entries().iter().filter(|entry| entry.value.kind != Kind::Null);
        let field = |entry: &'d super::Entry| {
            let path = join_path(&self.path, &entry.key);
            let (node, key) = (&entry.value, Some(&entry.key_span));
            (entry.key.as_str(), Field { source_file: self.source_file, node, key, path })
        };
        present.map(field).collect()
    }

    /// The values at a path: keys joined by dots, where `*` is each entry of a mapping or item of a list.
    pub fn at(&self, path: &str) -> Vec<Field<'d>> {
        path.split('.').fold(vec![self.clone()], |fields, part| match part {
            "*" => {
                let below = |field: &Field<'d>| {
                    field.entries().into_iter().map(|(_, value)| value).chain(field.items())
                };
                fields.iter().flat_map(|field| below(field).collect::<Vec<_>>()).collect()
            }
            key => fields.iter().filter_map(|field| field.get(key)).collect(),
        })
    }

    /// Where the value stands; for a mapping or a list, the key that it belongs to.
    pub fn place(&self) -> Place {
        self.source_file.place(self.node.label_span(self.key), &self.path)
    }

    /// Where the value's key stands; for an item of a list, the item.
    pub fn key_place(&self) -> Place {
        let span = self.key.cloned().unwrap_or_else(|| self.node.label_span(None));
        self.source_file.place(span, &self.path)
    }

    /// Refuses what does not match a schema, except at values that were refused before.
    pub fn validate(&self, schema: &CompiledSchema) {
        self.source_file.refuse_errors(
            self.source_file.invalid,
            (self.node, &self.path),
            &schema.errors(self.node),
        );
    }

    /// Refuses the value with the schema's code.
    pub fn invalid(&self, message: impl Into<String>) {
        self.refuse(self.source_file.invalid, Body::new(message));
    }

    /// Refuses the value with the schema's code, and says what to do.
    pub fn invalid_with(&self, message: impl Into<String>, help: impl Into<String>) {
        self.refuse(self.source_file.invalid, Body::new(message).help(help));
    }

    /// Refuses the value with the schema's code.
    pub fn refuse_body(&self, body: Body) {
        self.refuse(self.source_file.invalid, body);
    }

    /// Refuses the value's key with the schema's code.
    pub fn refuse_key(&self, body: Body) {
        self.source_file.refuse(self.source_file.invalid, body.at(self.key_place()));
    }

    /// Refuses the value with a code of its own.
    pub fn refuse(&self, code: RefusalCode, body: Body) {
        self.source_file.refuse(code, body.at(self.place()));
    }

    /// Warns about the value; the key is shown.
    pub fn warn(&self, code: WarningCode, body: Body) {
        self.source_file.warn(code, body.at(self.key_place()));
    }
}

/// Part of the text of every secret key.
const SECRET_MARKER: &str = ":seed:";

/// Whether a text contains a secret key.
pub(crate) fn contains_secret_key(text: &str) -> bool {
    text.contains(SECRET_MARKER)
}

/// The text with each byte of a secret key replaced by a star; `None` if it has no secret key.
pub(crate) fn mask_secret_keys(text: &str) -> Option<String> {
    let mut masked: Option<String> = None;
    for (at, _) in text.match_indices(SECRET_MARKER) {
        let from = at + SECRET_MARKER.len();
        let base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_');
        let length = text[from..].find(|c| !base64(c)).unwrap_or(text.len() - from);
        let stars = "*".repeat(length);
        masked.get_or_insert_with(|| text.to_owned()).replace_range(from..from + length, &stars);
    }
    masked
}

#[cfg(test)]
mod tests {
    use quorate_diagnostics::codes::COUNCIL_INVALID;
    use serde_json::json;

    use super::*;
    use crate::tree::yaml;

    /// Validates a text and gives each refusal as `path: message (help)`.
    fn refusals(text: &str, schema: serde_json::Value, check: impl FnOnce(&Field<'_>)) -> Vec<String> {
        let document = SourceFile::new("council.yaml", text.into(), COUNCIL_INVALID);
        let root = yaml::parse(text).0.expect("a tree");
        let schema = CompiledSchema::parse(&schema).expect("a schema");
        let read = document.read::<serde_json::Value>(&root, &schema, check);
        assert_eq!(read.is_none(), document.refused());
        let say = |refusal: quorate_diagnostics::Refusal| {
            let body = refusal.body;
            let path = body.place.map(|place| place.path).unwrap_or_default();
            format!("{path}: {} ({})", body.message, body.help.unwrap_or_default())
        };
        document.into_report().refusals.into_iter().map(say).collect()
    }

    #[test]
    fn checks_and_schema_report_at_once_and_each_value_once() {
        let schema = json!({"additionalProperties": false, "properties": {
            "live": {"type": "boolean"}, "wait": {"type": "string"}, "id": {"type": "string"}
        }});
        let said = refusals("live: \"true\"\nwait: 10\nid: b\nidd: c\n", schema, |root| {
            root.at("wait").iter().for_each(|field| field.invalid("soon"));
            root.at("*")
                .iter()
                .filter(|field| field.text() == Some("b"))
                .for_each(|field| field.invalid("b"));
        });
        assert_eq!(
            said,
            [
                "live: `live` has to be true or false, not text (write true, without quotes)",
                "wait: soon ()",
                "id: b ()",
                "idd: `idd` is not a key here (did you mean `id`?)",
            ]
        );
    }

    #[test]
    fn thousands_of_refusals_are_counted_and_not_kept() {
        let text: String = (0..5_000).map(|n| format!("k{n}: 1\n")).collect();
        let said = refusals(&text, json!({"additionalProperties": false}), |_| {});
        assert_eq!(said.len(), MAX_DIAGNOSTICS + 1);
        assert_eq!(said[MAX_DIAGNOSTICS], ": 4800 more refusals of council.yaml are not shown ()");
    }

    // M3
    #[test]
    fn a_key_without_a_value_is_absent() {
        let schema = json!({"required": ["id"], "properties": {"id": {"type": "string"}}});
        let said = refusals("id:\nnote: ~\n", schema, |root| assert!(root.get("note").is_none()));
        assert_eq!(said, ["id: `id` is missing (add `id`)"]);
    }
}
