//! The expected diagnostics of a test, and their comparison with the actual ones.

use quorate_diagnostics::codes::Severity;
use quorate_diagnostics::text::LineIndex;
use quorate_diagnostics::{Body, Report};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    pub severity: Severity,
    pub code: String,
    /// `FILE`, `FILE:LINE` or `FILE:LINE:COLUMN`.
    pub at: Option<String>,
    pub path: Option<String>,
    /// A part of the message or of the help.
    pub saying: Option<String>,
}

impl Expectation {
    /// Parses a line such as `refuses quorate:syntax at council.yaml:3 saying twice`; `None` for any other line.
    pub fn parse(line: &str) -> Option<Expectation> {
        let (line, saying) = match line.split_once(" saying ") {
            Some((line, saying)) => (line, Some(saying.trim().to_owned())),
            None => (line, None),
        };
        let mut words = line.split_whitespace();
        let severity = match words.next()? {
            "refuses" => Severity::Refusal,
            "warns" => Severity::Warning,
            _ => return None,
        };
        let code = words.next()?.to_owned();
        let (mut at, mut path) = (None, None);
        while let Some(word) = words.next() {
            let slot = match word {
                "at" => &mut at,
                "in" => &mut path,
                _ => return None,
            };
            *slot = Some(words.next()?.to_owned());
        }
        Some(Expectation { severity, code, at, path, saying })
    }

    fn matches(&self, actual: &ActualDiagnostic<'_>) -> bool {
        let part = |part: &String| {
            actual.body.message.contains(part)
                || actual.body.help.as_ref().is_some_and(|help| help.contains(part))
        };
        self.severity == actual.severity
            && self.code == actual.code
            && self.at.as_ref().is_none_or(|at| actual.places.contains(at))
            && self
                .path
                .as_ref()
                .is_none_or(|path| actual.body.place.as_ref().is_some_and(|place| place.path == *path))
            && self.saying.as_ref().is_none_or(part)
    }
}

/// An actual diagnostic, with its places.
struct ActualDiagnostic<'r> {
    severity: Severity,
    code: &'static str,
    body: &'r Body,
    places: Vec<String>,
}

/// The missing and the unexpected diagnostics. Each expectation matches one diagnostic.
pub(super) fn compare(expected: &[Expectation], report: &Report) -> Vec<String> {
    let refusals = report.refusals.iter().map(|r| (Severity::Refusal, r.code.as_str(), &r.body));
    let warnings = report.warnings.iter().map(|w| (Severity::Warning, w.code.as_str(), &w.body));
    let mut unmatched: Vec<ActualDiagnostic<'_>> = refusals
        .chain(warnings)
        .map(|(severity, code, body)| ActualDiagnostic { severity, code, body, places: places(report, body) })
        .collect();
    let mut failures = Vec::new();
    for expectation in expected {
        match unmatched.iter().position(|actual| expectation.matches(actual)) {
            Some(index) => drop(unmatched.remove(index)),
            None => failures.push(format!("missing: {expectation:?}")),
        }
    }
    let unexpected = unmatched.iter().map(|actual| {
        let place = actual.places.last().map_or("no place", String::as_str);
        format!(
            "not expected: {}[{}] at {place}: {}",
            actual.severity.as_str(),
            actual.code,
            actual.body.message
        )
    });
    failures.extend(unexpected);
    failures
}

fn places(report: &Report, body: &Body) -> Vec<String> {
    let Some(place) = &body.place else { return Vec::new() };
    let text = report.sources.get(&place.file).map_or("", |text| text);
    let position = LineIndex::new(text).position(place.span.start);
    let line = format!("{}:{}", place.file, position.line);
    let column = format!("{line}:{}", position.column);
    vec![place.file.to_string(), line, column]
}
