//! One member's review of an artifact: the findings of its lens, and its answer.

use quorate_protocol::answers::deliberator::NOT_JUDGED;
use serde_json::{Map, Value, json};

use super::checks::{self, CheckFinding, Criteria};
use super::document::Document;
use super::lens::Lens;
use super::{scoring, unread};

/// How many findings an answer lists; unlisted ones still count.
const MAX_FINDINGS: usize = 12;

pub(super) struct LensReview<'d> {
    document: &'d Document<'d>,
    lens: Lens,
    pub(super) findings: Vec<CheckFinding>,
    /// Findings left to another member, one sentence each.
    pub(super) concessions: Vec<String>,
    /// Findings that weigh more because others share them, one sentence each.
    pub(super) escalations: Vec<String>,
    notes: Vec<String>,
}

impl<'d> LensReview<'d> {
    /// Reviews an artifact through a lens, without other members' answers.
    pub(super) fn first_round(lens: Lens, document: &'d Document<'d>, criteria: &Criteria<'_>) -> Self {
        let findings = checks::run(lens, document, criteria);
        let mut notes = Vec::new();
        if lens.covers(Lens::Strategy) && criteria.goals.is_empty() {
            notes.push(
                "No goals document was given, so whether the text serves a goal was not judged.".to_owned(),
            );
        }
        LensReview { document, lens, findings, concessions: Vec::new(), escalations: Vec::new(), notes }
    }

    pub(super) fn document(&self) -> &'d Document<'d> {
        self.document
    }

    /// An answer that fits the deliberator's schema.
    pub(super) fn to_answer(&self) -> Value {
        let words = self.document.word_count();
        let judgement = scoring::judge(&self.findings, words);
        let verdict = match (judgement.would_block, judgement.irreducible) {
            (true, true) => "hold",
            (true, false) => "revise",
            (false, _) => "ship",
        };
        let listed = self.heaviest_findings();
        let findings: Vec<Value> = listed.iter().map(|finding| self.finding_json(finding)).collect();
        let mut answer = json!({
            "verdict": verdict,
            "score": judgement.score,
            "scores": self.scores(words),
            "would_block": judgement.would_block,
            "irreducible": judgement.irreducible,
            "revision_brief": self.revision_brief(&listed),
            "findings": findings,
            "notes": self.notes(judgement.points, words, listed.len()),
        });
        if let Some(object) = answer.as_object_mut() {
            if !self.concessions.is_empty() {
                object.insert("concessions".into(), json!(self.concessions));
            }
            if !self.escalations.is_empty() {
                object.insert("escalations".into(), json!(self.escalations));
            }
            let not_judged = unread::places(self.document);
            if !not_judged.is_empty() {
                object.insert(NOT_JUDGED.into(), json!(not_judged));
            }
        }
        answer
    }

    /// The heaviest findings, in the order of the text.
    fn heaviest_findings(&self) -> Vec<&CheckFinding> {
        let mut listed: Vec<&CheckFinding> = self.findings.iter().collect();
        listed.sort_by_key(|raised| (std::cmp::Reverse(raised.finding.points()), raised.finding.span.start));
        listed.truncate(MAX_FINDINGS);
        listed.sort_by_key(|raised| (raised.finding.span.start, raised.finding.span.end));
        listed
    }

    fn finding_json(&self, raised: &CheckFinding) -> Value {
        let quote = self.document.quote(&raised.finding.span);
        json!({
            "quote": &self.document.text[quote.clone()],
            "issue": raised.finding.issue,
            "fix": raised.finding.fix,
            "line": self.document.line_of(quote.start),
            "check": raised.check.name,
            "severity": raised.finding.severity.as_str(),
        })
    }

    /// One score for each check of the lens.
    fn scores(&self, words: usize) -> Map<String, Value> {
        let findings_of = |check: &checks::Check| {
            self.findings.iter().filter(move |raised| std::ptr::eq(raised.check, check)).collect::<Vec<_>>()
        };
        let checks = checks::ALL.iter().filter(|check| self.lens.covers(check.lens));
        checks
            .map(|check| (check.name.into(), json!(scoring::score(findings_of(check).into_iter(), words))))
            .collect()
    }

    fn revision_brief(&self, listed: &[&CheckFinding]) -> Option<String> {
        let lines = listed.iter().enumerate().map(|(index, raised)| {
            let line = self.document.line_of(raised.finding.span.start);
            format!("{}. Line {line}: {} {}", index + 1, raised.finding.issue, raised.finding.fix)
        });
        let brief = lines.collect::<Vec<_>>().join("\n");
        (!brief.is_empty()).then_some(brief)
    }

    fn notes(&self, points: u32, words: usize, listed: usize) -> String {
        let mut notes =
            vec![format!("Counted by rule, no model was asked: {points} points in {words} words.")];
        if self.findings.len() > listed {
            notes.push(format!("{} findings in all, the heaviest {listed} are listed.", self.findings.len()));
        }
        notes.extend(self.notes.iter().cloned());
        notes.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::rubric::banned::BannedPhrases;
    use crate::executor::rubric::goals::Goals;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it is about time")]
    fn a_text_of_one_unit_over_and_over_is_read_in_proportion_to_its_length() {
        let banned = BannedPhrases::new(true, &[]).expect("usable");
        let goals = Goals::default();
        let criteria = Criteria { banned: &banned, goals: &goals, context: &[] };
        let english = "A text of the kind that is read by all of us on each and every day at work.\n\n";
        for unit in [
            "password:\n",
            "token: >-\n",
            "word  \n",
            "17 ",
            "$17 ",
            "forever ",
            "best ",
            "never\n",
            "we are the best, so sales rose. ",
            "(n ",
            "http://a ",
            "| a | b |\n",
            "- studies show\n",
            "# all users say\n",
            "\"it ",
        ] {
            let text = format!("{english}{}", unit.repeat(200_000 / unit.len()));
            let started = std::time::Instant::now();
            let document = Document::parse("", &text);
            let reading = LensReview::first_round(Lens::General, &document, &criteria);
            assert!(reading.to_answer().is_object());
            assert!(
                started.elapsed() < std::time::Duration::from_secs(10),
                "{unit:?} {:?}",
                started.elapsed()
            );
        }
    }
}
