//! Saying each thing once: what an ancestor says is the same for each of its views.

use std::collections::BTreeSet;

use quorate_diagnostics::{Body, Place, Report};

/// What was said already.
#[derive(Debug, Default)]
pub struct Deduplicator {
    /// By file, place in it, code and message.
    seen: BTreeSet<(String, usize, &'static str, String)>,
}

impl Deduplicator {
    /// Adds to `all` what was not said before, and the texts that it quotes.
    pub fn add(&mut self, mut report: Report, all: &mut Report) {
        report.refusals.retain(|one| self.is_new(one.code.as_str(), &one.body));
        report.warnings.retain(|one| self.is_new(one.code.as_str(), &one.body));
        let bodies =
            report.refusals.iter().map(|one| &one.body).chain(report.warnings.iter().map(|one| &one.body));
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
    fn the_same_of_another_place_is_another() {
        let messages = |at: usize| {
            let mut report = Report::new();
            report.add_source("a", "text");
            report.add_source("b", "text");
            let place = Place { file: "a".into(), span: at..at, path: String::new() };
            report.refuse(codes::SYNTAX, Body::new("what").at(place));
            report
        };
        let (mut once, mut all) = (Deduplicator::default(), Report::new());
        [0, 1, 0].into_iter().for_each(|at| once.add(messages(at), &mut all));
        assert_eq!(all.refusals.len(), 2);
        assert_eq!(all.sources.keys().map(|file| &**file).collect::<Vec<_>>(), ["a"]);
    }
}
