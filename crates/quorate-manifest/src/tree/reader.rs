//! Typed reading of a tree. Whatever does not fit is reported with its path and place, and reading goes on, so that
//! one pass says everything. A key that nobody asked for is refused when the mapping is finished.

mod field;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use quorate_diagnostics::codes::{RefusalCode, WarningCode};
use quorate_diagnostics::{Body, Place, Report};

use super::{Entry, Kind, Node};

pub use field::Field;

/// How many refusals, and how many warnings, are kept of one document. A text with more of them is another sort of
/// text; the rest is counted.
pub(crate) const MAX_DIAGNOSTICS: usize = 200;

/// A text and what there is to say about it.
#[derive(Debug)]
pub struct SourceFile {
    file: Arc<str>,
    text: Arc<str>,
    invalid: RefusalCode,
    report: RefCell<Report>,
    omitted: Cell<usize>,
}

impl SourceFile {
    /// A document; `invalid` is the code for what its schema refuses.
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

    /// Counts refusals that are not worth telling one by one.
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

    /// Everything that was said. What looks like a secret key in the text is covered, so that no line is quoted with it.
    pub fn into_report(self) -> Report {
        let mut report = self.report.into_inner();
        if let Some(covered) = crate::keyring::mask_secrets(&self.text) {
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

/// The keys of one mapping, asked for one by one.
#[derive(Debug)]
#[must_use = "only `finish` refuses the keys that nobody asked for"]
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

    /// A key's value; its absence is refused. `what` says what belongs there, as in "`prompt` (a path) is missing".
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

    /// Refuses a key with a code and message of its own, where it is there.
    pub fn refuse_key(&mut self, key: &'static str, code: RefusalCode, say: impl FnOnce(Body) -> Body) {
        if let Some(field) = self.optional(key) {
            self.source_file.refuse(code, say(Body::new(String::new()).at(field.key_place())));
        }
    }

    /// All keys that have a value and were not asked for yet, in the order as written. They count as asked for.
    pub fn rest(&self) -> impl Iterator<Item = (&'d str, Field<'d>)> + use<'d, '_> {
        let unasked = self.entries.iter().filter(|entry| !self.requested.contains(&entry.key.as_str()));
        unasked.filter_map(|entry| Some((entry.key.as_str(), self.field(entry)?)))
    }

    /// Where the mapping stands: the key that it belongs to, or its first key.
    pub fn place(&self) -> Place {
        self.source_file.place(self.span.clone(), &self.path)
    }

    /// The document that this mapping stands in.
    pub fn source_file(&self) -> &'d SourceFile {
        self.source_file
    }

    /// Refuses every key that nobody asked for.
    pub fn finish(self) {
        self.finish_with(|_| None);
    }

    /// Refuses every key that nobody asked for; `known` may give another message and help for a key.
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

/// The word that was most probably meant, if any comes near.
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

/// The span that stands for a value in a message: scalars themselves, of anything larger its first part.
fn label_span(node: &Node) -> Range<usize> {
    match &node.kind {
        Kind::Map(entries) => entries.first().map_or(node.span.clone(), |first| first.key_span.clone()),
        Kind::Seq(items) => items.first().map_or(node.span.clone(), label_span),
        _ => node.span.clone(),
    }
}

#[cfg(test)]
mod tests;
