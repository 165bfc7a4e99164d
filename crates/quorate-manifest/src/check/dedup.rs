//! Removes repeated diagnostics: an ancestor yields the same ones for each of its views.

use std::collections::BTreeSet;

use quorate_diagnostics::{Body, Place, Report};

/// The diagnostics reported so far.
#[derive(Debug, Default)]
pub struct Deduplicator {
    /// File, start of the span, code, message.
    seen: BTreeSet<(String, usize, &'static str, String)>,
}

impl Deduplicator {
    /// Moves the new diagnostics of `report`, and the sources that they quote, to `all`.
    pub fn add(&mut self, mut report: Report, all: &mut Report) {
        report.refusals.retain(|refusal| self.is_new(refusal.code.as_str(), &refusal.body));
        report.warnings.retain(|warning| self.is_new(warning.code.as_str(), &warning.body));
        let refused = report.refusals.iter().map(|refusal| &refusal.body);
        let bodies = refused.chain(report.warnings.iter().map(|warning| &warning.body));
        let quoted: BTreeSet<String> = bodies
            .flat_map(|body| body.place.iter().chain(body.related.iter().map(|related| &related.place)))
            .map(|place: &Place| place.file.to_string())
            .collect();
        report.retain_sources(|file| quoted.contains(file));
        all.absorb(report);
    }

    fn is_new(&mut self, code: &'static str, body: &Body) -> bool {
        let place = body.place.as_ref();
        let (file, at) = place.map_or((String::new(), 0), |place| (place.file.to_string(), place.span.start));
        self.seen.insert((file, at, code, body.message.clone()))
    }
}

#[cfg(test)]
mod tests {
    use quorate_diagnostics::codes;

    use super::*;

    #[test]
    fn the_same_message_at_another_place_is_kept() {
        let messages = |at: usize| {
            let mut report = Report::new();
            report.add_source("a", "text");
            report.add_source("b", "text");
            let place = Place { file: "a".into(), span: at..at, path: String::new() };
            report.refuse(codes::SYNTAX, Body::new("message").at(place));
            report
        };
        let (mut deduplicator, mut all) = (Deduplicator::default(), Report::new());
        [0, 1, 0].into_iter().for_each(|at| deduplicator.add(messages(at), &mut all));
        assert_eq!(all.refusals.len(), 2);
        assert_eq!(all.sources.keys().map(|file| &**file).collect::<Vec<_>>(), ["a"]);
    }
}
