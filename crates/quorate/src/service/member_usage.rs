//! What a report shows of each member, from the run's records: its executor and cost, its position in both rounds of a
//! review, and why an answer is missing.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_kernel::attempts::Cost;
use quorate_kernel::history::History;
use quorate_kernel::record::{Consultation, Status};
use quorate_protocol::Json;
use quorate_protocol::answers::deliberator::{self, Answer as Read, Round};
use serde::Serialize;
use serde_json::{Map, json};

use super::diff::{self, Piece};
use super::report::{Answer, Deliberator, ReviewReport};

/// The questions to one member, added up.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberUsage {
    pub member: String,
    /// The name of its executor; that of the last question, if a resumed run used another.
    pub executor: String,
    /// The executor's kind.
    pub kind: String,
    /// The model that answered last; the requested model if no answer names one.
    pub model: Option<String>,
    /// The requested model, if another one answered.
    pub requested_model: Option<String>,
    /// Calls, known tokens and prices, and the time from each question to its end, added up.
    pub spent: Cost,
}

impl MemberUsage {
    /// All members that were asked, in the order of a roster.
    pub fn all<'r>(history: &History, roster: impl Iterator<Item = &'r str>) -> Vec<MemberUsage> {
        let mut all: Vec<MemberUsage> = Vec::new();
        // An erased record has neither executor nor price.
        for ended in history.consultations().filter(|ended| !ended.executor.is_empty()) {
            match all.iter_mut().find(|known| known.member == *ended.member) {
                Some(known) => known.add(ended),
                None => {
                    let mut usage = MemberUsage {
                        member: ended.member.to_string(),
                        executor: String::new(),
                        kind: String::new(),
                        model: None,
                        requested_model: None,
                        spent: Cost::default(),
                    };
                    usage.add(ended);
                    all.push(usage);
                }
            }
        }
        let places: BTreeMap<&str, usize> = roster.zip(0..).collect();
        all.sort_by_key(|one| places.get(&*one.member).copied().unwrap_or(usize::MAX));
        all
    }

    fn add(&mut self, ended: &Consultation) {
        self.executor.clone_from(&ended.executor);
        self.kind.clone_from(&ended.kind);
        if let Some(model) = &ended.model {
            self.model = Some(model.clone());
            self.requested_model.clone_from(&ended.requested_model);
        }
        let calls = u32::try_from(ended.spent.calls.unwrap_or(0)).unwrap_or(u32::MAX);
        self.spent.calls = self.spent.calls.saturating_add(calls);
        self.spent.usage.add(ended.spent.usage());
        self.spent.took = self.spent.took.saturating_add(Duration::from_millis(ended.spent.ms.unwrap_or(0)));
    }

    /// The keys that reports add to a member's object: `executor`, `kind`, `model`, `requested_model`, `spent`.
    pub fn json(&self) -> Map<String, Json> {
        let mut keys = Map::from_iter([
            ("executor".to_owned(), json!(self.executor)),
            ("kind".to_owned(), json!(self.kind)),
            ("spent".to_owned(), self.spent.json()),
        ]);
        let mut put = |key: &str, model: &Option<String>| {
            keys.extend(model.as_ref().map(|model| (key.to_owned(), json!(model))));
        };
        put("model", &self.model);
        put("requested_model", &self.requested_model);
        keys
    }
}

/// The headline of a run whose answers were all recorded before.
const RECORDED: &str = "Recorded answers; no model was asked";

/// The number of a run's answers that were recorded before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedAnswers {
    recorded: usize,
    answers: usize,
    /// Questions without a recorded answer, for which no model was asked.
    missing: usize,
    /// Questions that were put to a member, with or without an answer.
    asked: usize,
}

impl RecordedAnswers {
    /// Counts the answers of a run.
    pub fn count(history: &History) -> Self {
        let count = |is: fn(&&Consultation) -> bool| history.consultations().filter(is).count();
        RecordedAnswers {
            recorded: count(|ended| ended.recorded && ended.answer.is_some()),
            answers: count(|ended| ended.answer.is_some()),
            missing: count(|ended| ended.recorded && ended.answer.is_none()),
            asked: count(|ended| !ended.recorded && ended.attempts > 0),
        }
    }

    /// Whether all answers come from recordings, so that no model was asked.
    pub fn all(self) -> bool {
        self.recorded + self.missing > 0 && self.asked == 0
    }

    /// The headline of a run that asked no model: its answers were recorded, or recordings are missing.
    pub fn headline(self) -> Option<String> {
        match self.missing {
            0 => self.all().then(|| RECORDED.to_owned()),
            1 => Some("1 recorded answer is missing; no model was asked".to_owned()),
            many => Some(format!("{many} recorded answers are missing; no model was asked")),
        }
    }

    /// The note on a run some of whose answers were recorded.
    pub fn note(self) -> Option<String> {
        let RecordedAnswers { recorded, answers, .. } = self;
        (recorded > 0 && !self.all())
            .then(|| format!("{recorded} of {answers} answers come from recordings."))
    }
}

/// Adds the keys of its usage to a member's object; leaves a member that was not asked unchanged.
pub fn with_usage(mut object: Json, member: &str, usage: &[MemberUsage]) -> Json {
    let found = usage.iter().find(|one| one.member == member);
    if let (Some(object), Some(found)) = (object.as_object_mut(), found) {
        object.extend(found.json());
    }
    object
}

/// The maximum length of a quoted excerpt, in characters.
const MAX_EXCERPT_CHARS: usize = 200;

/// Why an invocation has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The status of the invocation: `timed_out`, `failed`, `schema_failed`, …
    pub kind: String,
    /// One sentence; never empty.
    pub message: String,
    /// The HTTP status of the last response, if it is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<u16>,
    /// Calls that repeat one that failed. Re-prompts do not count.
    pub retries: u32,
    /// The beginning of the text that the member gave instead of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

impl Failure {
    /// Why a consultation has no answer; `None` if it has one.
    pub fn of(history: &History, ended: &Consultation) -> Option<Failure> {
        if ended.status == Status::Answered {
            return None;
        }
        let attempts = history.failed.get(&ended.invocation).cloned().unwrap_or_default();
        let recorded = ended.text.clone().filter(|text| !text.trim().is_empty());
        Some(Failure {
            kind: ended.status.as_str().to_owned(),
            message: recorded.unwrap_or_else(|| default_message(ended)),
            http: attempts.http_status,
            retries: attempts.retries,
            excerpt: attempts.said.as_deref().map(excerpt).filter(|excerpt| !excerpt.is_empty()),
        })
    }
}

/// The message for a consultation that records none.
fn default_message(ended: &Consultation) -> String {
    match &ended.status {
        Status::TimedOut => {
            let seconds = ended.spent.ms.unwrap_or(0) / 1_000;
            format!("no answer within {seconds} s (timeout of executor `{}`)", ended.executor)
        }
        Status::Failed => format!("executor `{}` failed without a reason", ended.executor),
        Status::SchemaFailed => "the answer does not fit its schema".to_owned(),
        Status::OverBudget if ended.scope.is_some() => "the budget of the run is spent".to_owned(),
        Status::OverBudget => "the member's budget is spent".to_owned(),
        Status::Cancelled => "the call was cancelled".to_owned(),
        Status::Late => "the answer came after the call was cancelled".to_owned(),
        Status::Erased => "the record was erased".to_owned(),
        Status::Answered | Status::Other(_) => format!("the invocation ended as `{}`", ended.status),
    }
}

/// The beginning of a text, on one line.
fn excerpt(said: &str) -> String {
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((end, _)) => format!("{}\u{2026}", &line[..end]),
        None => line,
    }
}

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
pub fn positions(report: &ReviewReport) -> Vec<Position> {
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
