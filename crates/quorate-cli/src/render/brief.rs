//! The brief: findings by place. Findings of several members about the same words are one place with all of their points.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use super::layout::one_line;
use quorate::service::report::{Finding, Review};

/// The most places shown; the rest is counted.
pub(super) const MAX_PLACES: usize = 20;
/// The longest quote of a phrase, in bytes; a longer one is a passage, which may contain phrases of findings on other
/// matters.
const MAX_PHRASE_BYTES: usize = 160;

pub(super) struct Brief<'r> {
    /// In the order of the text.
    pub(super) places: Vec<Place<'r>>,
    /// Places whose quote does not occur in the text.
    pub(super) ungrounded: Vec<Place<'r>>,
    /// The number of findings beyond the shown places.
    pub(super) more: usize,
    /// The number of all findings.
    pub(super) findings: usize,
}

/// A place, and the points about it.
pub(super) struct Place<'r> {
    /// Byte offsets; `None` if the quote does not occur in the text.
    pub(super) span: Option<Range<usize>>,
    /// Line and column, from 1, in characters.
    pub(super) at: Option<(u64, u64)>,
    /// The words, on one line; the longest of several quotes.
    pub(super) quote: String,
    /// The members that raised it.
    pub(super) by: Vec<&'r str>,
    /// Without duplicates.
    pub(super) points: Vec<Point<'r>>,
    findings: usize,
}

/// An issue with its fix.
pub(super) struct Point<'r> {
    /// The members that raised it.
    pub(super) by: Vec<&'r str>,
    /// On one line.
    pub(super) issue: String,
    /// On one line.
    pub(super) fix: Option<String>,
}

impl<'r> Brief<'r> {
    /// The brief of a report, cut to the shown size.
    pub(super) fn of(report: &'r Review) -> Brief<'r> {
        let (grounded, floating): (Vec<_>, Vec<_>) =
            report.findings.iter().partition(|finding| finding.span.is_some());
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
        let shown = self.places.len().min(MAX_PLACES);
        self.more = count(self.places.split_off(shown));
        self.more += count(self.ungrounded.split_off(self.ungrounded.len().min(MAX_PLACES - shown)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.findings == 0
    }
}

/// Groups findings whose quotes occur in the text, in its order.
fn by_place(mut findings: Vec<&Finding>) -> Vec<Place<'_>> {
    findings.sort_by_key(|finding| finding.span);
    let mut places: Vec<Place<'_>> = Vec::new();
    // Places that a later finding can still overlap: those that end behind its start.
    let mut open: Vec<usize> = Vec::new();
    for finding in findings {
        let start = finding.span.map_or(0, |(start, _)| start);
        open.retain(|at| places[*at].span.as_ref().is_some_and(|span| span.end > start));
        let overlapping = open.iter().rev().find(|at| overlaps(places[**at].span.as_ref(), finding.span));
        match overlapping {
            Some(at) => places[*at].add(finding),
            None => {
                open.push(places.len());
                places.push(Place::new(finding));
            }
        }
    }
    places
}

/// Groups findings whose quotes do not occur in the text, by their words.
fn by_words(findings: Vec<&Finding>) -> Vec<Place<'_>> {
    let mut places: Vec<Place<'_>> = Vec::new();
    let mut index_by_words: HashMap<String, usize> = HashMap::new();
    for finding in findings {
        match index_by_words.entry(one_line(&finding.quote)) {
            Entry::Occupied(at) => places[*at.get()].add(finding),
            Entry::Vacant(new) => {
                new.insert(places.len());
                places.push(Place::new(finding));
            }
        }
    }
    places
}

/// Whether a finding is about the words of a place: they overlap, and if one is a passage, by at least half of it.
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
        let member = &*finding.by;
        push(&mut self.by, member);
        match self.points.iter_mut().find(|point| point.issue == issue && point.fix == fix) {
            Some(point) => push(&mut point.by, member),
            None => self.points.push(Point { by: vec![member], issue, fix }),
        }
    }

    /// Sorts members by the roster.
    fn order(&mut self, report: &Review) {
        let position =
            |member: &&str| report.deliberators.iter().position(|deliberator| deliberator.id == **member);
        self.by.sort_by_key(position);
        for point in &mut self.points {
            point.by.sort_by_key(position);
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
        // Overlapping quotes are one place, and so are equal words.
        report.findings = (0..8_usize)
            .map(|n| Finding { span: n.is_multiple_of(2).then_some((n, n + 12)), ..finding(n) })
            .collect();
        let brief = Brief::of(&report);
        assert_eq!((brief.places.len(), brief.places[0].points.len(), brief.ungrounded.len()), (1, 4, 2));
    }
}
