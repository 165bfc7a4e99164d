//! Diagnostics: what is wrong with a text, where, and what to do.
//!
//! A [`Refusal`] stops what was asked for; a [`Warning`] never does. They are different types, so that neither can
//! turn into the other on its way to the user. Errors of the world (a disk, a process) are not diagnostics until
//! the edge gives them a code.

pub mod codes;
pub mod invisible;
pub mod render;
pub mod text;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

pub use codes::{RefusalCode, WarningCode};

/// Something that stops what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Which kind of refusal.
    pub code: RefusalCode,
    /// What, where, and what to do.
    pub body: Body,
}

/// Something that the user should know and that stops nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Which kind of warning.
    pub code: WarningCode,
    /// What, where, and what to do.
    pub body: Body,
}

/// What a diagnostic says, whatever its severity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// One sentence: what is wrong.
    pub message: String,
    /// One sentence: what to do, where that helps.
    pub help: Option<String>,
    /// Where, if it has a place in a file.
    pub place: Option<Place>,
    /// Other places that explain it.
    pub related: Vec<Related>,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as the user would name it.
    pub file: Arc<str>,
    /// Byte offsets into the file's text. Empty where only the point is known.
    pub span: Range<usize>,
    /// The field's path, for example `deliberators[1].prompt`. Empty at the root.
    pub path: String,
}

/// Another place that explains a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    pub place: Place,
    pub label: String,
}

impl Body {
    /// A body without a place.
    pub fn new(message: impl Into<String>) -> Self {
        Body { message: message.into(), help: None, place: None, related: Vec::new() }
    }

    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    #[must_use]
    pub fn related(mut self, place: Place, label: impl Into<String>) -> Self {
        self.related.push(Related { place, label: label.into() });
        self
    }
}

/// Everything that is to be said about some files, with the texts to quote from.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub refusals: Vec<Refusal>,
    pub warnings: Vec<Warning>,
    /// The text of each file that a place names.
    pub sources: BTreeMap<Arc<str>, Arc<str>>,
}

impl Report {
    pub fn new() -> Self {
        Report::default()
    }

    pub fn refuse(&mut self, code: RefusalCode, body: Body) {
        self.refusals.push(Refusal { code, body });
    }

    pub fn warn(&mut self, code: WarningCode, body: Body) {
        self.warnings.push(Warning { code, body });
    }

    /// Remembers a file's text, to quote from.
    pub fn add_source(&mut self, file: impl Into<Arc<str>>, text: impl Into<Arc<str>>) {
        self.sources.insert(file.into(), text.into());
    }

    /// Lets go of texts that nothing quotes.
    pub fn retain_sources(&mut self, keep: impl Fn(&str) -> bool) {
        self.sources.retain(|file, _| keep(file));
    }

    /// Takes over everything that another report says.
    pub fn absorb(&mut self, other: Report) {
        self.refusals.extend(other.refusals);
        self.warnings.extend(other.warnings);
        self.sources.extend(other.sources);
    }

    pub fn has_refusals(&self) -> bool {
        !self.refusals.is_empty()
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.refusals.is_empty() && self.warnings.is_empty()
    }
}
