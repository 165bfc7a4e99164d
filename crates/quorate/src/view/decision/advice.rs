//! Advice: the fragments of guidance, and what each member said.

use jiff::Timestamp;

use super::{Assessment, REASON, ROWS, TEXT, diagrams, severity_text};
use crate::service::convene::report::{Decision, Fragment, Member};
use crate::view::layout::truncate;
use crate::view::wording::{amount, minute, status};
use crate::view::{Doc, Entry, Medium, Table, Text, Tone};

impl Decision {
    pub(super) fn add_guidance(&self, doc: &mut Doc) {
        if !self.fragments.is_empty() {
            doc.heading(format!("Guidance: {}", amount(self.fragments.len() as u64, "fragment")));
            doc.numbered(1, self.fragments.iter().take(ROWS).map(|fragment| self.fragment_entry(fragment)));
            self.add_more(doc, self.fragments.len().saturating_sub(ROWS), "more fragment");
        }
        doc.only(Medium::Markdown, diagrams::guidance(self));
        let asked = self.asked();
        let selected = gravest(&asked);
        let row = |member: &&Member| {
            let (severity, concern) = match Assessment::of(member) {
                Some(assessment) => {
                    let quotes = match assessment.evidence {
                        0 => String::new(),
                        some => format!(" ({})", amount(some as u64, "quote")),
                    };
                    let concern = truncate(assessment.concern, REASON) + &quotes;
                    (severity_text(assessment.severity), concern)
                }
                None => (Text::toned(Tone::Absent, status(member.status())), String::new()),
            };
            let phase = member.phase.as_deref().unwrap_or("–");
            [Text::strong(&member.id), Text::from(&member.role), phase.into(), severity, concern.into()]
        };
        if !selected.is_empty() {
            doc.heading("Members");
            let headings = ["member", "role", "phase", "severity", "concern"];
            doc.table(Table::new(headings).with_rows(selected.iter().map(row)));
            self.add_more(doc, asked.len() - selected.len(), "more member");
        }
        self.add_unasked(doc);
    }

    fn fragment_entry(&self, fragment: &Fragment) -> Entry {
        let member = self.member(&fragment.member);
        let role = member.map_or_else(String::new, |member| format!(", {}", member.role));
        let line = Text::strong(&fragment.member)
            .and(format!("{role}  "))
            .and("severity ")
            .and(severity_text(fragment.severity))
            .and(format!("  priority {}", fragment.priority));
        let kind = self.rules.iter().find(|rule| rule.id == fragment.rule);
        let kind = kind.map_or_else(String::new, |rule| format!(" ({})", rule.kind));
        let concern = member.and_then(Assessment::of).map_or("", |assessment| assessment.concern);
        let concern = match concern.is_empty() {
            true => String::new(),
            false => format!(" on the concern “{}”", truncate(concern, REASON)),
        };
        let mut body = Doc::new();
        body.passage(truncate(&fragment.text, TEXT));
        body.facts([
            ("why", format!("rule {}{kind}{concern}", fragment.rule)),
            ("holds", self.validity(fragment)),
        ]);
        Entry { line, body }
    }

    /// The time for which a fragment holds.
    fn validity(&self, fragment: &Fragment) -> String {
        const HOUR_MS: i64 = 3_600_000;
        let Ok(expires) = fragment.expires.parse::<Timestamp>() else { return fragment.expires.clone() };
        let hours = expires.as_millisecond().saturating_sub(self.opened_ms) / HOUR_MS;
        let long = match u64::try_from(hours).unwrap_or_default() {
            hours @ 0..48 => amount(hours, "hour"),
            hours => amount(hours / 24, "day"),
        };
        format!("{long}, until {} UTC", minute(expires.as_millisecond()))
    }
}

/// Selects the members with the highest severity, and those without an answer, in roster order.
fn gravest<'r>(asked: &[&'r Member]) -> Vec<&'r Member> {
    let mut places: Vec<usize> = (0..asked.len()).collect();
    let severity = |at: &usize| Assessment::of(asked[*at]).map_or(u64::MAX, |assessment| assessment.severity);
    places.sort_by_key(|at| std::cmp::Reverse(severity(at)));
    places.truncate(ROWS);
    places.sort_unstable();
    places.into_iter().map(|at| asked[at]).collect()
}
