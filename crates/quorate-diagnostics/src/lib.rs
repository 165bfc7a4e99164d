//! Diagnostics: what is wrong with a text, where, and how to fix it.
//!
//! A [`Refusal`] stops the command; a [`Warning`] never does. They are different types, so that no code turns one into
//! the other by accident. Errors of the environment (a disk, a process) become diagnostics only at the edge, which gives
//! them a code.

pub mod codes;
pub mod invisible;
pub mod render;
pub mod text;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

pub use codes::{RefusalCode, WarningCode};

/// A diagnostic that stops the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The kind of problem.
    pub code: RefusalCode,
    /// The message, help and places.
    pub body: Body,
}

/// A diagnostic that does not stop the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The kind of problem.
    pub code: WarningCode,
    /// The message, help and places.
    pub body: Body,
}

/// The text and places of a diagnostic of either severity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// One sentence: what is wrong.
    pub message: String,
    /// One sentence: what to do.
    pub help: Option<String>,
    /// `None` if the diagnostic is about no particular file.
    pub place: Option<Place>,
    /// Other places that explain it.
    pub related: Vec<Related>,
}

/// A location in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
pub struct Place {
    /// The file, as shown to the user.
    pub file: Arc<str>,
    /// Byte offsets into the file's text; an empty range is a point.
    pub span: Range<usize>,
    /// The field's path, for example `deliberators[1].prompt`. Empty at the root.
    pub path: String,
}

/// Another place that explains a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    /// Where it is.
    pub place: Place,
    /// A few words about the place.
    pub label: String,
}

impl Body {
    /// A body without a place. A message that quotes a value of millions of characters is cut in its middle: its beginning says
    /// what it is about, and its end what is wrong.
    pub fn new(message: impl Into<String>) -> Self {
        let message = cut_middle(message.into());
        Body { message, help: None, place: None, related: Vec::new() }
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Sets the help: one sentence, an imperative.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds another place, with a few words about it.
    #[must_use]
    pub fn related(mut self, place: Place, label: impl Into<String>) -> Self {
        self.related.push(Related { place, label: label.into() });
        self
    }
}

/// The characters of a message that are kept at each of its ends.
const KEPT: usize = 2_000;

fn cut_middle(message: String) -> String {
    if message.len() <= 2 * KEPT {
        return message;
    }
    let characters = message.chars().count();
    let Some(left_out) = characters.checked_sub(2 * KEPT).filter(|left_out| *left_out > 0) else {
        return message;
    };
    let begin: String = message.chars().take(KEPT).collect();
    let end: String = message.chars().skip(characters - KEPT).collect();
    format!("{begin}… {left_out} characters …{end}")
}

/// The diagnostics of some files, with the texts that renderers quote.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The problems that stop the command.
    pub refusals: Vec<Refusal>,
    /// The problems that do not.
    pub warnings: Vec<Warning>,
    /// File name to text, for each file that a [`Place`] names.
    pub sources: BTreeMap<Arc<str>, Arc<str>>,
}

impl Report {
    /// A report without diagnostics.
    ///
    /// ```
    /// use quorate_diagnostics::{Body, Report, codes};
    ///
    /// let mut report = Report::new();
    /// report.warn(codes::FIELD_WITHOUT_EFFECT, Body::new("`phase` has no effect").help("remove it"));
    /// assert!(!report.has_refusals() && !report.is_empty());
    /// ```
    pub fn new() -> Self {
        Report::default()
    }

    /// Adds a refusal.
    pub fn refuse(&mut self, code: RefusalCode, body: Body) {
        self.refusals.push(Refusal { code, body });
    }

    /// Adds a warning.
    pub fn warn(&mut self, code: WarningCode, body: Body) {
        self.warnings.push(Warning { code, body });
    }

    /// Adds a file's text for renderers to quote.
    pub fn add_source(&mut self, file: impl Into<Arc<str>>, text: impl Into<Arc<str>>) {
        self.sources.insert(file.into(), text.into());
    }

    /// Drops the texts of files that `keep` rejects.
    pub fn retain_sources(&mut self, keep: impl Fn(&str) -> bool) {
        self.sources.retain(|file, _| keep(file));
    }

    /// Gives files other names, where `rename` has one.
    pub fn rename_files(&mut self, rename: impl Fn(&str) -> Option<String>) {
        let renamed = |file: &Arc<str>| rename(file).map_or_else(|| file.clone(), Arc::from);
        let refused = self.refusals.iter_mut().map(|refusal| &mut refusal.body);
        let warned = self.warnings.iter_mut().map(|warning| &mut warning.body);
        for body in refused.chain(warned) {
            for place in
                body.place.iter_mut().chain(body.related.iter_mut().map(|related| &mut related.place))
            {
                place.file = renamed(&place.file);
            }
        }
        self.sources = self.sources.iter().map(|(file, text)| (renamed(file), text.clone())).collect();
    }

    /// Moves the diagnostics and sources of `other` into this report.
    pub fn absorb(&mut self, other: Report) {
        self.refusals.extend(other.refusals);
        self.warnings.extend(other.warnings);
        self.sources.extend(other.sources);
    }

    /// Whether a diagnostic stops the command.
    pub fn has_refusals(&self) -> bool {
        !self.refusals.is_empty()
    }

    /// Whether the report has no diagnostics; sources do not count.
    pub fn is_empty(&self) -> bool {
        self.refusals.is_empty() && self.warnings.is_empty()
    }
}
