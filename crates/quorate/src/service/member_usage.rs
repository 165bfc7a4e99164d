//! What a report shows of each member, from the run's records: its executor and cost, and why an answer is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorate_kernel::attempts::{Cost, no_answer_within};
use quorate_kernel::history::History;
use quorate_kernel::record::{Consultation, Match, MissingSample, Samples, Status, Tried};
use quorate_kernel::turn::TurnFailure;
use schemars::JsonSchema;
use serde::Serialize;

/// The questions to one member, added up. Reports add the keys of its JSON to the member's object.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct MemberUsage {
    /// The member's id.
    #[serde(skip)]
    pub member: String,
    /// The name of its executor; that of the last question, if a resumed run used another.
    pub executor: String,
    /// The executor's kind.
    pub kind: String,
    /// The executor that it stands in for, whose service failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub stand_in_for: Option<String>,
    /// The executors before the stand-in, with the reasons why they gave no answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// The model that answered last; the requested model if no answer names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub model: Option<String>,
    /// The requested model, if another one answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub requested_model: Option<String>,
    /// Whether the last question has an answer.
    #[serde(skip)]
    pub is_answered: bool,
    /// Calls, known tokens and prices, and the time from each question to its end, added up.
    pub spent: Cost,
}

impl MemberUsage {
    /// The usage of each member that was asked, by its id.
    pub(crate) fn all(history: &History) -> BTreeMap<String, MemberUsage> {
        let mut all: BTreeMap<String, MemberUsage> = BTreeMap::new();
        // An erased record has neither executor nor price.
        for ended in history.consultations().filter(|ended| !ended.executor.is_empty()) {
            let member = ended.member.to_string();
            all.entry(member.clone()).or_insert(MemberUsage { member, ..MemberUsage::default() }).add(ended);
        }
        all
    }

    fn add(&mut self, ended: &Consultation) {
        self.executor.clone_from(&ended.executor);
        self.kind.clone_from(&ended.kind);
        self.stand_in_for.clone_from(&ended.stand_in_for);
        self.tried.clone_from(&ended.tried);
        self.is_answered = ended.answer.is_some();
        if let Some(model) = &ended.model {
            self.model = Some(model.clone());
            self.requested_model.clone_from(&ended.requested_model);
        }
        let calls = u32::try_from(ended.spent.calls.unwrap_or(0)).unwrap_or(u32::MAX);
        self.spent.calls = self.spent.calls.saturating_add(calls);
        self.spent.usage.add(ended.spent.usage());
        self.spent.took = self.spent.took.saturating_add(Duration::from_millis(ended.spent.ms.unwrap_or(0)));
    }
}

/// The consultations with an answer.
pub(crate) fn answers(history: &History) -> impl Iterator<Item = &Consultation> {
    history.consultations().filter(|ended| ended.answer.is_some())
}

/// The notes on how a run's answers came about.
pub(crate) fn notes(history: &History) -> Vec<String> {
    let one = [RecordedAnswers::count(history).note(), stand_in_note(history), compared_note(history)];
    one.into_iter().flatten().chain(samples_notes(history)).chain(refused_tools_notes(history)).collect()
}

/// Whether a stand-in gave one of the answers.
pub(crate) fn has_stand_ins(history: &History) -> bool {
    answers(history).any(|ended| ended.stand_in_for.is_some())
}

/// The names of the executors that answered; those of the run's setup, unless stand-ins answered.
pub(crate) fn executor_names(history: &History) -> String {
    if !has_stand_ins(history) {
        return history.opened.executor_names();
    }
    let names: BTreeSet<&str> = answers(history).map(|ended| &*ended.executor).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Whether a model was asked: by an executor of the run's setup, by its stand-in, or whether a text says a locked trait.
pub(crate) fn is_model_asked(history: &History) -> bool {
    let asked: BTreeSet<Option<bool>> = answers(history).map(|ended| ended.asks_a_model).collect();
    // If all answers come from stand-ins that ask no model, the run's setup does not count.
    let by_setup = asked != BTreeSet::from([Some(false)]) && history.opened.asks_a_model();
    history.questions.iter().any(|question| question.asks_a_model == Some(true))
        || ((by_setup || asked.contains(&Some(true))) && !RecordedAnswers::count(history).all())
}

/// The note on a run some of whose answers come from stand-ins.
fn stand_in_note(history: &History) -> Option<String> {
    let mut pairs: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut stood_in = 0;
    for ended in answers(history) {
        let Some(own) = &ended.stand_in_for else { continue };
        stood_in += 1;
        let why = ended.tried.first().map_or("", |tried| &*tried.message);
        pairs.entry((&ended.executor, own)).or_insert(why);
    }
    let pairs = pairs.iter().map(|((executor, own), why)| format!("`{executor}` for `{own}` ({why})"));
    let pairs = pairs.collect::<Vec<_>>().join(", ");
    let answers = answers(history).count();
    (stood_in > 0).then(|| format!("{stood_in} of {answers} answers come from stand-ins: {pairs}."))
}

/// The note on comparisons with locked traits in which a stand-in answered.
fn compared_note(history: &History) -> Option<String> {
    let pair = |question: &Match| {
        Some(format!("`{}` for `{}`", question.executor.as_ref()?, question.stand_in_for.as_ref()?))
    };
    let pairs: BTreeSet<String> = history.questions.iter().filter_map(pair).collect();
    let pairs = pairs.into_iter().collect::<Vec<_>>().join(", ");
    (!pairs.is_empty()).then(|| format!("Stand-ins compared texts with locked traits: {pairs}."))
}

/// The notes on tools that a member's program refused its model.
fn refused_tools_notes(history: &History) -> Vec<String> {
    let mut refused: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for ended in history.consultations().filter(|ended| !ended.refused_tools.is_empty()) {
        refused.entry(&ended.member).or_default().extend(ended.refused_tools.iter().map(String::as_str));
    }
    let note = |(member, tools): (&str, BTreeSet<&str>)| {
        let tools = tools.into_iter().map(|tool| format!("`{tool}`")).collect::<Vec<_>>().join(", ");
        format!("The program of {member} refused its model these tools: {tools}.")
    };
    refused.into_iter().map(note).collect()
}

/// The notes on answers that were chosen from several samples.
fn samples_notes(history: &History) -> Vec<String> {
    let note = |ended: &Consultation| {
        let samples = ended.samples.as_ref().filter(|samples| samples.chosen.is_some())?;
        let round = ended.step.trim_start_matches("round").trim_start_matches('r');
        let round = match round.parse::<u32>() {
            Ok(round) => format!(", round {round}"),
            Err(_) => String::new(),
        };
        Some(format!("{}{round}: {}.", ended.member, agreement(samples)))
    };
    history.consultations().filter_map(note).collect()
}

/// How far the samples of an answer agree: `2 of 3 samples block`.
fn agreement(samples: &Samples) -> String {
    let Samples { asked, spread, missing, .. } = samples;
    let count = |field: &str, value: &str| {
        spread.get(field).and_then(|values| values.get(value)).copied().unwrap_or_default()
    };
    let mut text = if spread.contains_key("would_block") {
        let never = match count("irreducible", "true") {
            0 => String::new(),
            never => format!(", {never} irreducibly"),
        };
        format!("{} of {asked} samples block{never}", count("would_block", "true"))
    } else if spread.contains_key("objection") {
        format!("{} of {asked} samples object", count("objection", "true"))
    } else {
        // These answers have one typed field.
        let values = spread.iter().flat_map(|(field, values)| values.iter().map(move |value| (field, value)));
        let mut values: Vec<_> = values.collect();
        values.sort_by_key(|(_, (_, count))| std::cmp::Reverse(**count));
        let each = values.iter().enumerate().map(|(at, (field, (value, count)))| match at {
            0 => format!("{field} {value} in {count} of {asked} samples"),
            _ => format!("{value} in {count}"),
        });
        each.collect::<Vec<_>>().join(", ")
    };
    for MissingSample { sample, why } in missing {
        text.push_str(&format!("; sample {sample} has no answer and counts as the strictest: {why}"));
    }
    text
}

/// The headline of a run whose answers were all recorded before.
const RECORDED: &str = "Recorded answers; no model was asked";

/// The number of a run's answers that were recorded before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordedAnswers {
    recorded: usize,
    answers: usize,
    /// Questions without a recorded answer, for which no model was asked.
    missing: usize,
    /// Questions that were put to a member, with or without an answer.
    asked: usize,
}

impl RecordedAnswers {
    /// Counts the answers of a run.
    pub(crate) fn count(history: &History) -> Self {
        let count = |is: fn(&&Consultation) -> bool| history.consultations().filter(is).count();
        RecordedAnswers {
            recorded: count(|ended| ended.recorded && ended.answer.is_some()),
            answers: count(|ended| ended.answer.is_some()),
            missing: count(|ended| ended.recorded && ended.answer.is_none()),
            asked: count(|ended| !ended.recorded && ended.attempts > 0),
        }
    }

    /// Whether all answers come from recordings, so that no model was asked.
    pub(crate) fn all(self) -> bool {
        self.recorded + self.missing > 0 && self.asked == 0
    }

    /// The headline of a run that asked no model: its answers were recorded, or recordings are missing.
    pub(crate) fn headline(self) -> Option<String> {
        match self.missing {
            0 => self.all().then(|| RECORDED.to_owned()),
            1 => Some("1 recorded answer is missing; no model was asked".to_owned()),
            many => Some(format!("{many} recorded answers are missing; no model was asked")),
        }
    }

    /// The note on a run some of whose answers were recorded.
    fn note(self) -> Option<String> {
        let RecordedAnswers { recorded, answers, .. } = self;
        (recorded > 0 && !self.all())
            .then(|| format!("{recorded} of {answers} answers come from recordings."))
    }
}

/// The maximum length of a quoted excerpt, in characters.
const MAX_EXCERPT_CHARS: usize = 200;

/// Why an invocation has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "failure", deny_unknown_fields)]
pub struct Failure {
    /// The status of the invocation: `timed_out`, `failed`, `schema_failed`, `over_budget`, `cancelled`, `late` or
    /// `erased`.
    pub kind: String,
    /// One sentence; never empty.
    pub message: String,
    /// The HTTP status of the last response, if it is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u16", range(min = 100, max = 599))]
    pub http: Option<u16>,
    /// Calls that repeat one that failed. Re-prompts do not count.
    pub retries: u32,
    /// The beginning of the text that the member gave instead of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub excerpt: Option<String>,
}

impl Failure {
    /// Why a consultation has no answer; `None` if it has one.
    pub(crate) fn of(history: &History, ended: &Consultation) -> Option<Failure> {
        if ended.status == Status::Answered {
            return None;
        }
        let attempts = history.failed.get(&ended.invocation).cloned().unwrap_or_default();
        let why = ended.text.clone().filter(|text| !text.trim().is_empty());
        let why = why.unwrap_or_else(|| default_message(ended));
        Some(Failure::of_turn(TurnFailure { status: ended.status.clone(), why, attempts }))
    }

    /// Why a participant of a conversation has not spoken.
    pub(crate) fn of_turn(failure: TurnFailure) -> Failure {
        let TurnFailure { status, why, attempts } = failure;
        Failure {
            kind: status.as_str().to_owned(),
            message: why,
            http: attempts.http_status,
            retries: attempts.retries,
            excerpt: attempts.said.as_deref().map(excerpt).filter(|excerpt| !excerpt.is_empty()),
        }
    }
}

/// The message for a consultation that records none.
fn default_message(ended: &Consultation) -> String {
    match &ended.status {
        Status::TimedOut => {
            no_answer_within(Duration::from_millis(ended.spent.ms.unwrap_or(0)), &ended.executor)
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
