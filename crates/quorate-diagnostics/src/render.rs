//! Output formats for diagnostics. Each is a function from a report to text: `terminal.rs` has the formats for people,
//! `machine.rs` those for programs.
//!
//! Every format shows the same diagnostics in the same order: those without a place first, then by file and offset;
//! at the same offset, refusals before warnings.

pub mod machine;
pub mod terminal;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::codes::Severity;
use crate::text::{LineIndex, Position};
use crate::{Body, Report};

pub use machine::{github, json, sarif};
pub use terminal::{concise, full};

/// Whether output carries terminal colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    On,
    #[default]
    Off,
}

/// Options of the formats for terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextOptions {
    pub colour: Colour,
    /// In columns.
    pub width: usize,
}

impl Default for TextOptions {
    /// Plain text, 100 columns wide.
    fn default() -> Self {
        TextOptions { colour: Colour::Off, width: 100 }
    }
}

/// Severity in the terms of GitHub and SARIF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    Error,
    Warning,
    Note,
}

impl From<Severity> for Level {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Refusal => Level::Error,
            Severity::Warning => Level::Warning,
        }
    }
}

/// A diagnostic of either severity.
struct Diagnostic<'r> {
    code: &'static str,
    severity: Severity,
    body: &'r Body,
}

/// The diagnostics of a report in output order.
fn sorted_diagnostics(report: &Report) -> Vec<Diagnostic<'_>> {
    let refusals = report.refusals.iter().map(|refusal| Diagnostic {
        code: refusal.code.as_str(),
        severity: Severity::Refusal,
        body: &refusal.body,
    });
    let warnings = report.warnings.iter().map(|warning| Diagnostic {
        code: warning.code.as_str(),
        severity: Severity::Warning,
        body: &warning.body,
    });
    let mut all: Vec<_> = refusals.chain(warnings).collect();
    all.sort_by_key(|item| {
        let place = item.body.place.as_ref();
        (place.map(|place| (&place.file, place.span.start)), Reverse(item.severity == Severity::Refusal))
    });
    all
}

/// A line index for each source of a report.
struct LineIndexes<'r>(BTreeMap<&'r str, LineIndex<'r>>);

impl<'r> LineIndexes<'r> {
    fn new(report: &'r Report) -> Self {
        LineIndexes(report.sources.iter().map(|(file, text)| (file.as_ref(), LineIndex::new(text))).collect())
    }

    /// Start and end of a diagnostic. Without the file's text, only offset 0 has a position.
    fn positions(&self, item: &Diagnostic<'_>) -> Option<(Position, Position)> {
        let place = item.body.place.as_ref()?;
        let Some(index) = self.0.get(place.file.as_ref()) else {
            let start = Position { line: 1, column: 1 };
            return (place.span.start == 0).then_some((start, start));
        };
        Some((index.position(place.span.start), index.position(place.span.end.max(place.span.start))))
    }
}

/// Text on one line: line breaks and tabs become spaces, other control characters are escaped.
fn one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => shown.push(' '),
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod fixture;
