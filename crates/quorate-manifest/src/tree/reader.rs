//! Typed reading of a tree. Invalid values are reported with path and place, and reading continues, so that one pass reports
//! all errors. [`Fields::finish`] refuses the keys of a mapping that the caller did not read.

mod field;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use quorate_diagnostics::codes::{RefusalCode, WarningCode};
use quorate_diagnostics::{Body, Place, Report};

use super::{Entry, Kind, Node};

pub use field::Field;

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
        if let Some(covered) = crate::secret_key::mask(&self.text) {
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
        match nearest(key, &self.requested) {
            Some(near) => body.help(format!("did you mean `{near}`?")),
            None => body.help(format!("the keys are: {}", self.requested.join(", "))),
        }
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

#[cfg(test)]
mod tests;
