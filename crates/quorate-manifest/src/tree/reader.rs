//! Typed reading of a tree. Invalid values are reported with path and place, and reading continues, so that one pass reports
//! all errors. [`Fields::finish`] refuses the keys of a mapping that the caller did not read.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::codes::{self, RefusalCode, WarningCode};
use quorate_diagnostics::{Body, Place, Report};
use serde_json::Value;

use super::{Entry, Kind, Node, Problem};
use crate::duration;

/// The maximum number of refusals, and of warnings, for one document; the rest are only counted.
pub(crate) const MAX_DIAGNOSTICS: usize = 200;

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

    /// Counts refusals beyond the limit.
    pub(crate) fn omit(&self, more: usize) {
        self.omitted.set(self.omitted.get() + more);
    }

    pub fn warn(&self, code: WarningCode, body: Body) {
        let mut report = self.report.borrow_mut();
        if report.warnings.len() < MAX_DIAGNOSTICS {
            report.warn(code, body);
        }
    }

    /// Adds a refusal with the schema's code.
    pub fn invalid(&self, span: Range<usize>, path: impl Into<String>, message: impl Into<String>) {
        self.refuse(self.invalid, Body::new(message).at(self.place(span, path)));
    }

    /// Whether anything was refused so far.
    pub fn refused(&self) -> bool {
        self.report.borrow().has_refusals()
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

    /// The fields of the document's root.
    pub fn root<'d>(&'d self, entries: &'d [Entry]) -> Fields<'d> {
        let span = entries.first().map_or(0..0, |first| first.key_span.clone());
        Fields { source_file: self, entries, span, path: String::new(), requested: Vec::new() }
    }
}

/// The keys of one mapping, read one by one.
#[derive(Debug)]
#[must_use = "only `finish` refuses unread keys"]
pub struct Fields<'d> {
    source_file: &'d SourceFile,
    entries: &'d [Entry],
    span: Range<usize>,
    path: String,
    requested: Vec<&'static str>,
}

impl<'d> Fields<'d> {
    /// A key's value. A key without a value is absent.
    pub fn optional(&mut self, key: &'static str) -> Option<Field<'d>> {
        self.requested.push(key);
        self.entries.iter().find(|entry| entry.key == key).and_then(|entry| self.field(entry))
    }

    /// A key's value as `read` gives it; `None` without the key.
    pub fn read<T>(&mut self, key: &'static str, read: impl FnOnce(&Field<'d>) -> Option<T>) -> Option<T> {
        self.optional(key).and_then(|field| read(&field))
    }

    /// A key's value; refuses a missing key. `what` describes the value in the help.
    pub fn required(&mut self, key: &'static str, what: &str) -> Option<Field<'d>> {
        let found = self.optional(key);
        if found.is_none() {
            let owner = if self.path.is_empty() { String::new() } else { format!(" in `{}`", self.path) };
            let message = format!("`{key}` is missing{owner}");
            let body = Body::new(message).at(self.place()).help(format!("add `{key}`: {what}"));
            self.source_file.refuse(self.source_file.invalid, body);
        }
        found
    }

    /// All unread keys with a value, in file order. They count as read.
    pub fn rest(&self) -> impl Iterator<Item = (&'d str, Field<'d>)> + use<'d, '_> {
        let unasked = self.entries.iter().filter(|entry| !self.requested.contains(&entry.key.as_str()));
        unasked.filter_map(|entry| Some((entry.key.as_str(), self.field(entry)?)))
    }

    /// The place of the mapping: its own key, or its first key.
    pub fn place(&self) -> Place {
        self.source_file.place(self.span.clone(), &self.path)
    }

    /// The document of this mapping.
    pub fn source_file(&self) -> &'d SourceFile {
        self.source_file
    }

    /// Refuses all unread keys.
    pub fn finish(self) {
        self.finish_with(|_| None);
    }

    /// Refuses all unread keys; `known` may give another message and help for a key.
    pub fn finish_with(self, known: impl Fn(&str) -> Option<(String, String)>) {
        for entry in self.entries.iter().filter(|entry| !self.requested.contains(&entry.key.as_str())) {
            let key = &entry.key;
            let place = self.source_file.place(entry.key_span.clone(), join_path(&self.path, key));
            let body = match known(key) {
                Some((message, help)) => Body::new(message).help(help),
                None => self.unknown(key),
            };
            self.source_file.refuse(self.source_file.invalid, body.at(place));
        }
    }

    fn unknown(&self, key: &str) -> Body {
        let owner = if self.path.is_empty() { "here".to_owned() } else { format!("in `{}`", self.path) };
        let body = Body::new(format!("`{key}` is not a key {owner}"));
        body.help(meant_or(key, &self.requested, || format!("the keys are: {}", self.requested.join(", "))))
    }

    fn field(&self, entry: &'d Entry) -> Option<Field<'d>> {
        (entry.value.kind != Kind::Null).then(|| {
            Field::new(
                self.source_file,
                &entry.value,
                Some(entry.key_span.clone()),
                join_path(&self.path, &entry.key),
            )
        })
    }
}

/// The most similar known word, if any is close enough.
pub fn nearest<'w>(word: &str, among: &[&'w str]) -> Option<&'w str> {
    let written = word.to_lowercase().replace('-', "_");
    let likeness = |known: &str| strsim::jaro_winkler(&written, known);
    let best = among.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.8).then_some(best)
}

/// A help that suggests the most similar known word, else another help.
pub fn meant_or(word: &str, known: &[&str], otherwise: impl FnOnce() -> String) -> String {
    nearest(word, known).map_or_else(otherwise, |near| format!("did you mean `{near}`?"))
}

/// The path of a key below a path.
fn join_path(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    match (path.is_empty(), plain) {
        (true, true) => key.to_owned(),
        (false, true) => format!("{path}.{key}"),
        (_, false) => format!("{path}[{key:?}]"),
    }
}

/// The span to underline for a value: of a scalar itself, of a collection its first part.
fn label_span(node: &Node) -> Range<usize> {
    match &node.kind {
        Kind::Map(entries) => entries.first().map_or(node.span.clone(), |first| first.key_span.clone()),
        Kind::Seq(items) => items.first().map_or(node.span.clone(), label_span),
        _ => node.span.clone(),
    }
}

/// A present value with its path.
#[derive(Debug, Clone)]
pub struct Field<'d> {
    source_file: &'d SourceFile,
    node: &'d Node,
    key: Option<Range<usize>>,
    path: String,
}

impl<'d> Field<'d> {
    fn new(document: &'d SourceFile, node: &'d Node, key: Option<Range<usize>>, path: String) -> Self {
        Field { source_file: document, node, key, path }
    }

    /// The kind of the value.
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

    /// As [`Field::invalid_with`], for a reader that has no value then.
    pub fn reject<T>(&self, message: impl Into<String>, help: impl Into<String>) -> Option<T> {
        self.invalid_with(message, help);
        None
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

    /// The value as text that is not blank, and its place.
    pub fn named(&self) -> Option<(String, Place)> {
        Some((self.non_blank_text()?.to_owned(), self.place()))
    }

    /// The value as a list of texts that are not blank; `None` if one is not.
    pub fn texts(&self) -> Option<Vec<String>> {
        self.list()?.iter().map(|item| item.non_blank_text().map(str::to_owned)).collect()
    }

    /// The value as a mapping with keys of the author's choice, each with a value that `read` gives.
    pub fn table<T>(&self, read: impl Fn(&str, &Field<'d>) -> Option<T>) -> Option<BTreeMap<String, T>> {
        let entries = self.entries()?;
        Some(entries.iter().filter_map(|(key, field)| Some(((*key).to_owned(), read(key, field)?))).collect())
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

    /// The value as JSON, of any type.
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

    use super::*;
    use crate::tree::yaml;

    /// Reads a mapping and gives each refusal as `path: message (help)`.
    fn refusals(text: &str, read: impl FnOnce(&mut Fields<'_>)) -> Vec<String> {
        let document = SourceFile::new("council.yaml", text.into(), COUNCIL_INVALID);
        let root = yaml::parse(text).0.expect("a tree");
        let Kind::Map(entries) = &root.kind else { panic!("a mapping") };
        let mut fields = document.root(entries);
        read(&mut fields);
        fields.finish();
        let say = |refusal: quorate_diagnostics::Refusal| {
            let body = refusal.body;
            let path = body.place.map(|place| place.path).unwrap_or_default();
            format!("{path}: {} ({})", body.message, body.help.unwrap_or_default())
        };
        document.into_report().refusals.into_iter().map(say).collect()
    }

    #[test]
    fn everything_is_said_at_once() {
        let text = "title: 0\nlive: \"true\"\ncount: 9\nwait: 10\nitems: x\n";
        let said = refusals(text, |fields| {
            assert_eq!(fields.optional("title").and_then(|f| f.text().map(str::to_owned)), None);
            assert_eq!(fields.optional("live").and_then(|f| f.boolean()), None);
            assert_eq!(fields.optional("count").and_then(|f| f.integer(1, 2)), None);
            assert_eq!(fields.optional("wait").and_then(|f| f.duration()), None);
            assert!(fields.optional("items").and_then(|f| f.list()).is_none());
        });
        assert_eq!(
            said,
            [
                "title: `title` has to be text, not a whole number (put it in quotes: \"0\")",
                "live: `live` has to be true or false, not text (write true, without quotes)",
                "count: `count` is 9; it has to be 1 or 2 ()",
                "wait: `wait`: a duration needs a unit (write \"10s\" for seconds)",
                "items: `items` has to be a list, not text ()",
            ]
        );
    }

    #[test]
    fn an_unknown_key_is_refused_with_a_suggestion() {
        let said = refusals("roundz: 1\n\"a b\": 2\n", |fields| assert!(fields.optional("rounds").is_none()));
        assert_eq!(
            said,
            [
                "roundz: `roundz` is not a key here (did you mean `rounds`?)",
                "[\"a b\"]: `a b` is not a key here (the keys are: rounds)",
            ]
        );
    }

    #[test]
    fn thousands_of_refusals_are_counted_and_not_kept() {
        let text: String = (0..5_000).map(|n| format!("k{n}: 1\n")).collect();
        let said = refusals(&text, |_| {});
        assert_eq!(said.len(), MAX_DIAGNOSTICS + 1);
        assert_eq!(said[MAX_DIAGNOSTICS], ": 4800 more refusals of council.yaml are not shown ()");
    }

    // M3
    #[test]
    fn a_key_without_a_value_is_absent() {
        let said = refusals("id:\nnote: ~\n", |fields| {
            assert!(fields.optional("note").is_none());
            assert!(fields.required("id", "a name").is_none());
        });
        assert_eq!(said, [": `id` is missing (add `id`: a name)"]);
    }
}
