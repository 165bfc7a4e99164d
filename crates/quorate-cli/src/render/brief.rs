//! The brief: what was found, by place. Findings of several members about the same words are one place with everything
//! that was said about it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use super::paint::one_line;
use quorate::service::report::{Finding, Report};

/// How many places are shown before the rest is only counted.
pub(super) const MAX_PLACES: usize = 20;
/// Up to this many bytes a quote names a phrase; a longer one is a passage, which may hold phrases of other findings
/// without being about them.
const MAX_PHRASE_BYTES: usize = 160;

/// Everything that was found.
pub(super) struct Brief<'r> {
    /// In the text's order.
    pub(super) places: Vec<Place<'r>>,
    /// Those whose quote does not stand in the text.
    pub(super) ungrounded: Vec<Place<'r>>,
    /// How many findings there are beyond those places.
    pub(super) more: usize,
    /// How many findings there are.
    pub(super) findings: usize,
}

/// One place and what was said about it.
pub(super) struct Place<'r> {
    /// Byte offsets; `None` where the quote does not stand in the text.
    pub(super) span: Option<Range<usize>>,
    /// Line and column, from 1, in characters.
    pub(super) at: Option<(u64, u64)>,
    /// The words, on one line; the longest quote where there are several.
    pub(super) quote: String,
    /// Who raised it.
    pub(super) by: Vec<&'r str>,
    /// What they say, each once.
    pub(super) points: Vec<Point<'r>>,
    findings: usize,
}

/// An issue with its fix.
pub(super) struct Point<'r> {
    /// Who says so.
    pub(super) by: Vec<&'r str>,
    /// What is wrong, on one line.
    pub(super) issue: String,
    /// What to do, on one line.
    pub(super) fix: Option<String>,
}

impl<'r> Brief<'r> {
    /// The brief of a report, cut to what is shown.
    pub(super) fn of(report: &'r Report) -> Brief<'r> {
        let (grounded, floating): (Vec<_>, Vec<_>) =
            report.findings.iter().partition(|one| one.span.is_some());
        let mut brief = Brief {
            places: by_place(grounded),
            ungrounded: by_words(floating),
            more: 0,
            findings: report.findings.len(),
        };
        for places in [&mut brief.places, &mut brief.ungrounded] {
            for place in places.iter_mut() {
                place.order(report);
            }
        }
        brief.cut();
        brief
    }

    fn cut(&mut self) {
        let count = |places: Vec<Place<'_>>| places.iter().map(|place| place.findings).sum::<usize>();
        let kept = self.places.len().min(MAX_PLACES);
        self.more = count(self.places.split_off(kept));
        self.more += count(self.ungrounded.split_off(self.ungrounded.len().min(MAX_PLACES - kept)));
    }

    /// Whether nothing was found.
    pub(super) fn is_empty(&self) -> bool {
        self.findings == 0
    }
}

/// Findings whose quotes stand in the text, in its order.
fn by_place(mut findings: Vec<&Finding>) -> Vec<Place<'_>> {
    findings.sort_by_key(|finding| finding.span);
    let mut places: Vec<Place<'_>> = Vec::new();
    // The places that a finding can still meet: those that end behind where it begins.
    let mut open: Vec<usize> = Vec::new();
    for finding in findings {
        let start = finding.span.map_or(0, |(start, _)| start);
        open.retain(|at| places[*at].span.as_ref().is_some_and(|span| span.end > start));
        let met = open.iter().rev().find(|at| overlaps(places[**at].span.as_ref(), finding.span));
        match met {
            Some(at) => places[*at].add(finding),
            None => {
                open.push(places.len());
                places.push(Place::new(finding));
            }
        }
    }
    places
}

/// Findings whose quotes stand nowhere, by their words.
fn by_words(findings: Vec<&Finding>) -> Vec<Place<'_>> {
    let mut places: Vec<Place<'_>> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for finding in findings {
        match known.entry(one_line(&finding.quote)) {
            Entry::Occupied(at) => places[*at.get()].add(finding),
            Entry::Vacant(new) => {
                new.insert(places.len());
                places.push(Place::new(finding));
            }
        }
    }
    places
}

/// Whether a finding is about the words of a place: they share some, and where one of them is a passage, half of it.
fn overlaps(place: Option<&Range<usize>>, span: Option<(usize, usize)>) -> bool {
    let (Some(place), Some((start, end))) = (place, span) else { return false };
    let shared = place.end.min(end).saturating_sub(place.start.max(start));
    let longer = place.len().max(end.saturating_sub(start));
    shared > 0 && (longer <= MAX_PHRASE_BYTES || shared * 2 >= longer)
}

impl<'r> Place<'r> {
    fn new(finding: &'r Finding) -> Place<'r> {
        let mut place = Place {
            span: finding.span.map(|(start, end)| start..end),
            at: finding.line.zip(finding.column),
            quote: one_line(&finding.quote),
            by: Vec::new(),
            points: Vec::new(),
            findings: 0,
        };
        place.add(finding);
        place
    }

    fn add(&mut self, finding: &'r Finding) {
        self.findings += 1;
        if let (Some(span), Some((_, end))) = (&mut self.span, finding.span) {
            span.end = span.end.max(end);
        }
        let quote = one_line(&finding.quote);
        if quote.len() > self.quote.len() {
            self.quote = quote;
        }
        let fix = finding.fix.as_deref().map(one_line).filter(|fix| !fix.is_empty());
        let issue = one_line(&finding.issue);
        let by = &*finding.by;
        push(&mut self.by, by);
        match self.points.iter_mut().find(|point| point.issue == issue && point.fix == fix) {
            Some(point) => push(&mut point.by, by),
            None => self.points.push(Point { by: vec![by], issue, fix }),
        }
    }

    /// Members in the roster's order, wherever they are named.
    fn order(&mut self, report: &Report) {
        let seat = |by: &&str| report.deliberators.iter().position(|one| one.id == **by);
        self.by.sort_by_key(seat);
        for point in &mut self.points {
            point.by.sort_by_key(seat);
        }
    }
}

fn push<'r>(names: &mut Vec<&'r str>, name: &'r str) {
    if !names.contains(&name) {
        names.push(name);
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn phrases_meet_when_they_share_a_character_and_passages_when_they_share_half() {
        assert!(overlaps(Some(&(0..10)), Some((9, 20))));
        assert!(!overlaps(Some(&(0..10)), Some((10, 20))));
        assert!(!overlaps(Some(&(0..1000)), Some((10, 20))));
        assert!(overlaps(Some(&(0..1000)), Some((100, 700))));
        assert!(!overlaps(Some(&(0..10)), None));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it is about time")]
    fn many_findings_are_gathered_in_one_pass() {
        let mut report = fixture::hold();
        let one = report.findings[0].clone();
        let finding = |n: usize| Finding {
            span: n.is_multiple_of(2).then_some((n * 10, n * 10 + 12)),
            quote: format!("quote {}", n / 4),
            issue: format!("issue {n}"),
            ..one.clone()
        };
        report.findings = (0..40_000).map(finding).collect();
        let started = std::time::Instant::now();
        let brief = Brief::of(&report);
        assert_eq!(
            (brief.findings, brief.places.len(), brief.places[0].points.len()),
            (40_000, MAX_PLACES, 1)
        );
        assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
        // What overlaps is one place, and what has the same words is one.
        report.findings = (0..8_usize)
            .map(|n| Finding { span: n.is_multiple_of(2).then_some((n, n + 12)), ..finding(n) })
            .collect();
        let brief = Brief::of(&report);
        assert_eq!((brief.places.len(), brief.places[0].points.len(), brief.ungrounded.len()), (1, 4, 2));
    }
}
