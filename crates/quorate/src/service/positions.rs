//! The positions of a review's deliberators: their answers in both rounds, and what changed after they read the others'.

use quorate_protocol::answers::deliberator::Answer as Read;
use quorate_protocol::answers::deliberator::{self, Round};

use super::diff::{self, Piece};
use super::report::{Answer, Deliberator, Report};

/// A deliberator's position in both rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Position {
    pub id: String,
    pub first: Stance,
    pub second: Stance,
    /// The answer that counted; empty while the run is undecided.
    pub counted: String,
    /// Whether it blocks without a quote of the text.
    pub is_ungrounded: bool,
    /// Whether its decision differs in round 2: block, irreducible or score.
    pub has_changed: bool,
    /// How its words differ between the rounds; empty if they are equal or a round has no readable answer.
    pub rewording: Vec<Piece>,
}

/// A deliberator's answer in one round.
#[derive(Debug, Clone, PartialEq)]
pub struct Stance {
    /// How the invocation ended: `answered`, `timed_out`, …, `unreadable`.
    pub status: String,
    /// The answer; `None` without a readable one.
    pub read: Option<Read>,
    /// Why no answer is readable.
    pub message: Option<String>,
}

impl Stance {
    fn of(given: &Answer, round: Round) -> Stance {
        let read = given.answer.clone().and_then(|answer| Read::read(round, &answer.into()));
        let status = match given.status.as_str() {
            "answered" if read.is_none() => "unreadable".to_owned(),
            status => status.to_owned(),
        };
        Stance { status, read, message: given.message.clone() }
    }

    /// A short form: `blocks`, `REVISE, blocks`, `timed_out`.
    pub fn words(&self) -> String {
        let Some(read) = &self.read else { return self.status.clone() };
        let block = if read.would_block { "blocks" } else { "passes" };
        match read.verdict {
            Some(lean) if read.would_block => format!("{}, blocks", lean.as_str()),
            Some(lean) => lean.as_str().to_owned(),
            None => block.to_owned(),
        }
    }

    /// The short form, with `irreducible` and the score.
    pub fn all_words(&self) -> String {
        let irreducible =
            self.read.as_ref().is_some_and(|read| read.irreducible).then(|| "irreducible".to_owned());
        let score = self.read.as_ref().and_then(|read| read.score).map(|score| format!("score {score:.1}"));
        [Some(self.words()), irreducible, score].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The requested change, then a line for each finding.
    fn text(&self) -> Option<String> {
        let read = self.read.as_ref()?;
        let finding = |finding: &deliberator::Finding| {
            let fix = finding.fix.as_ref().map_or_else(String::new, |fix| format!(" Fix: {fix}"));
            format!("“{}” {}{fix}", finding.quote, finding.issue)
        };
        let lines = read.revision_brief.clone().into_iter();
        let lines = lines.chain(read.findings.iter().flatten().map(finding)).collect::<Vec<_>>();
        Some(lines.join("\n"))
    }

    /// The parts that make two answers equal, however they are worded.
    fn decision(&self) -> Option<(String, bool, Option<String>)> {
        let read = self.read.as_ref()?;
        Some((self.words(), read.irreducible, read.score.map(|score| format!("{score:.1}"))))
    }
}

/// The positions of a review, those that changed first.
pub fn positions(report: &Report) -> Vec<Position> {
    let mut all: Vec<Position> =
        report.deliberators.iter().map(|one| Position::of(report.rounds, one)).collect();
    all.sort_by_key(|position| (!position.has_changed, position.rewording.is_empty()));
    all
}

impl Position {
    fn of(rounds: u8, deliberator: &Deliberator) -> Position {
        let last = if rounds == 1 { Round::First } else { Round::Second };
        let first = Stance::of(&deliberator.round1, Round::First);
        let second = Stance::of(&deliberator.round2, last);
        let rewording = match (first.text(), second.text()) {
            (Some(first), Some(second)) => diff::words(&first, &second),
            _ => Vec::new(),
        };
        Position {
            id: deliberator.id.clone(),
            counted: deliberator.counted.clone(),
            is_ungrounded: deliberator.ungrounded,
            has_changed: deliberator.round2.answer.is_some() && first.decision() != second.decision(),
            first,
            second,
            rewording,
        }
    }

    /// Its last position.
    pub fn last(&self) -> &Stance {
        if self.second.read.is_some() { &self.second } else { &self.first }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::service::diff::Change;

    fn answered(answer: serde_json::Value) -> Answer {
        let answer: Map<String, serde_json::Value> = answer.as_object().cloned().unwrap();
        Answer { status: "answered".to_owned(), answer: Some(answer), message: None, failure: None }
    }

    fn position(first: Answer, second: Answer) -> Position {
        let deliberator = Deliberator {
            id: "a".to_owned(),
            round1: first,
            round2: second,
            counted: String::new(),
            blocks: false,
            ungrounded: false,
        };
        Position::of(2, &deliberator)
    }

    #[test]
    fn what_a_deliberator_changed_is_told() {
        let first = json!({"would_block": true, "score": 2, "revision_brief": "Cut the first claim."});
        let second = json!({"would_block": false, "irreducible": false, "score": 4, "revision_brief": "Cut the second claim."});
        let changed = position(answered(first.clone()), answered(second.clone()));
        assert!(changed.has_changed);
        assert_eq!(
            (changed.first.all_words(), changed.second.all_words()),
            ("blocks, score 2.0".into(), "passes, score 4.0".into())
        );
        let removed = changed.rewording.iter().find(|piece| piece.change == Change::Removed).unwrap();
        assert_eq!(removed.text, "first");
        let mut same = first.clone();
        same["irreducible"] = json!(false);
        let same = position(answered(first.clone()), answered(same));
        assert!(!same.has_changed && same.rewording.is_empty());
    }

    #[test]
    fn a_missing_answer_changes_nothing() {
        let first = json!({"would_block": true, "score": 2});
        let late = Answer { status: "timed_out".to_owned(), ..Answer::default() };
        let position = position(answered(first), late);
        assert!(!position.has_changed && position.rewording.is_empty());
        assert_eq!((position.second.words(), position.last().words()), ("timed_out".into(), "blocks".into()));
        let unreadable = Stance::of(&answered(json!({"would_block": "no"})), Round::First);
        assert_eq!(unreadable.words(), "unreadable");
    }
}
