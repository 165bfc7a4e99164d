//! What a test expects, and how it compares with what was said.

use quorate_diagnostics::codes::Severity;
use quorate_diagnostics::text::LineIndex;
use quorate_diagnostics::{Body, Report};

/// One diagnostic that has to come.
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
    /// Reads a line such as `refuses quorate:syntax at council.yaml:3 saying twice`; `None` when it is no such line.
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

    fn matches(&self, said: &ActualDiagnostic<'_>) -> bool {
        let part = |part: &String| {
            said.body.message.contains(part)
                || said.body.help.as_ref().is_some_and(|help| help.contains(part))
        };
        self.severity == said.severity
            && self.code == said.code
            && self.at.as_ref().is_none_or(|at| said.places.contains(at))
            && self
                .path
                .as_ref()
                .is_none_or(|path| said.body.place.as_ref().is_some_and(|place| place.path == *path))
            && self.saying.as_ref().is_none_or(part)
    }
}

/// A diagnostic that came, with the places that name it.
struct ActualDiagnostic<'r> {
    severity: Severity,
    code: &'static str,
    body: &'r Body,
    places: Vec<String>,
}

/// What is missing and what was not expected. Every expectation takes one diagnostic.
pub(super) fn compare(expected: &[Expectation], report: &Report) -> Vec<String> {
    let refusals = report.refusals.iter().map(|r| (Severity::Refusal, r.code.as_str(), &r.body));
    let warnings = report.warnings.iter().map(|w| (Severity::Warning, w.code.as_str(), &w.body));
    let mut said: Vec<ActualDiagnostic<'_>> = refusals
        .chain(warnings)
        .map(|(severity, code, body)| ActualDiagnostic { severity, code, body, places: places(report, body) })
        .collect();
    let mut failures = Vec::new();
    for expectation in expected {
        match said.iter().position(|said| expectation.matches(said)) {
            Some(index) => drop(said.remove(index)),
            None => failures.push(format!("missing: {expectation:?}")),
        }
    }
    let unexpected = said.iter().map(|said| {
        let place = said.places.last().map_or("no place", String::as_str);
        format!("not expected: {}[{}] at {place}: {}", said.severity.as_str(), said.code, said.body.message)
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
