//! The Council: deliberators answer in parallel, read each other and answer again, an adjudicator merges, a policy judges
//! (C1 to C4). This file owns the order of steps; its submodules own the inputs and the outcome.

mod cross_read;
pub mod findings;

use quorate_manifest::council::{Council as CouncilManifest, CrossRead, OnFailure, Policy, Rounds};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::answers::deliberator::{Adjudication, Round};
use crate::answers::{self, Schema, deliberator};
use crate::policy::{CountedPosition, Incomplete, Judgement, Position, Positions, Verdict, judge, policy_id};
use crate::{
    AbsenceReason, Command, ConsultationResult, Event, Fact, FactKind, Invoke, Json, Name, Part, PartKind,
    Protocol, TimedEvent,
};

pub use cross_read::{FINDINGS_CAP, TEXT_CAP};

/// The mode and its version.
pub const VERSION: &str = "council/4";
/// The step of the first answers.
pub const FIRST: &str = "r1";
/// The step of the second answers.
pub(crate) const SECOND: &str = "r2";
/// The adjudicator's step, and the id of its one invocation.
pub(crate) const ADJUDICATE: &str = "adjudicate";
/// The adjudicator's member id.
pub const ADJUDICATOR: &str = "adjudicator";

const FIRST_TASK: &str = "This is round 1: your independent first answer.";
const SECOND_TASK: &str =
    "This is round 2: you have read the others' first answers; confirm or change yours, with reasons.";
const LAST_TASK: &str = "All rounds are over: yours is the last answer.";

/// The state machine of one review.
pub struct Council {
    setup: Setup,
    stage: Stage,
    artifact: Option<Part>,
    priors: Vec<Json>,
    first: Vec<Response>,
    second: Vec<Response>,
    adjudication: Response,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Unopened,
    First,
    Second,
    Adjudicating,
    Over,
}

/// How one invocation ended; `None` where it is waited for, or not asked.
type Response = Option<ConsultationResult>;

fn answer(heard: &Response) -> Option<&Json> {
    match heard {
        Some(ConsultationResult::Answered(answer)) => Some(answer),
        Some(ConsultationResult::Absent(_)) | None => None,
    }
}

impl Council {
    /// A council that waits to be opened.
    pub fn new(setup: Setup) -> Self {
        let silent = vec![None; setup.deliberators.len()];
        Council {
            stage: Stage::Unopened,
            artifact: None,
            priors: Vec::new(),
            first: silent.clone(),
            second: silent,
            adjudication: None,
            setup,
        }
    }

    fn open(&mut self, inputs: &[Part], priors: &[Json]) -> Vec<Command> {
        self.artifact = inputs.iter().find(|part| part.kind == PartKind::Artifact).cloned();
        self.priors = priors.to_vec();
        self.stage = Stage::First;
        let parts: Vec<Part> = self.artifact.iter().cloned().collect();
        self.ask_all(FIRST, Schema::FirstAnswer, &parts)
    }

    fn ask_all(&self, step: &str, schema: Schema, parts: &[Part]) -> Vec<Command> {
        let task = if step == FIRST { FIRST_TASK } else { SECOND_TASK };
        let ask =
            |member: &Name| invoke(format!("{step}/{member}"), member, step, (schema, task), parts.to_vec());
        self.setup.deliberators.iter().map(ask).collect()
    }

    fn on_consulted(&mut self, id: &str, result: &ConsultationResult) -> Vec<Command> {
        let form = match self.stage {
            Stage::First => Schema::FirstAnswer,
            Stage::Second => Schema::SecondAnswer,
            _ => Schema::Adjudication,
        };
        let heard = match result {
            // X5: an unreadable answer does not count as an answer.
            ConsultationResult::Answered(answer) if !form.accepts(answer) => {
                ConsultationResult::Absent(AbsenceReason::SchemaFailed)
            }
            heard => heard.clone(),
        };
        let Some(slot) = self.slot(id).filter(|slot| slot.is_none()) else { return Vec::new() };
        *slot = Some(heard);
        self.next_step()
    }

    /// Where the answer to an invocation belongs, if it is one that is waited for.
    fn slot(&mut self, id: &str) -> Option<&mut Response> {
        let (stage, round) = match id.split_once('/') {
            None if id == ADJUDICATE && self.stage == Stage::Adjudicating => {
                return Some(&mut self.adjudication);
            }
            Some((FIRST, _)) => (Stage::First, &mut self.first),
            Some((SECOND, _)) => (Stage::Second, &mut self.second),
            _ => return None,
        };
        let member = id.split_once('/')?.1;
        let index = self.setup.deliberators.iter().position(|deliberator| &**deliberator == member)?;
        (stage == self.stage).then(|| &mut round[index])
    }

    fn next_step(&mut self) -> Vec<Command> {
        match self.stage {
            Stage::First => self.after_round(Round::First),
            Stage::Second => self.after_round(Round::Second),
            Stage::Adjudicating => self.conclude(None, Vec::new()),
            Stage::Unopened | Stage::Over => Vec::new(),
        }
    }

    fn after_round(&mut self, round: Round) -> Vec<Command> {
        let heard = if round == Round::First { &self.first } else { &self.second };
        let is_absent = |reason: AbsenceReason| heard.contains(&Some(ConsultationResult::Absent(reason)));
        let has_failed = is_absent(AbsenceReason::Failed) || is_absent(AbsenceReason::TimedOut);
        if self.setup.fail_fast == OnFailure::End && has_failed {
            let waiting = self.setup.deliberators.iter().zip(heard);
            let waiting = waiting.filter(|(_, heard)| heard.is_none());
            let cancelled = waiting.map(|(member, _)| format!("{}/{member}", step(round)).into());
            let commands = cancelled.map(Command::Cancel).collect();
            return self.conclude(Some(Incomplete::FailFast), commands);
        }
        if heard.contains(&None) {
            return Vec::new();
        }
        if is_absent(AbsenceReason::RunOverBudget) {
            return self.conclude(Some(Incomplete::BudgetExhausted), Vec::new());
        }
        let (why, position): (_, fn(&Positions) -> Option<Position>) = match round {
            Round::First => (Incomplete::FirstRound, |given| given.first),
            Round::Second => (Incomplete::SecondRound, |given| given.last),
        };
        if self.positions().iter().filter_map(position).count() < self.setup.min_deliberators {
            return self.conclude(Some(why), Vec::new());
        }
        match (round, self.setup.rounds) {
            (Round::First, Rounds::Two) => self.ask_again(),
            _ => self.ask_adjudicator(),
        }
    }

    /// C4: everybody is asked in round 2, also who gave no first answer.
    fn ask_again(&mut self) -> Vec<Command> {
        self.stage = Stage::Second;
        let mut parts: Vec<Part> = self.artifact.iter().cloned().collect();
        let shown = self.setup.cross_read;
        parts.extend(cross_read::block(PartKind::CrossRead, shown, &self.setup, &self.first));
        self.ask_all(SECOND, Schema::SecondAnswer, &parts)
    }

    fn ask_adjudicator(&mut self) -> Vec<Command> {
        self.stage = Stage::Adjudicating;
        let mut parts: Vec<Part> = self.artifact.iter().cloned().collect();
        // Whatever the deliberators saw of each other, the adjudicator sees everything.
        let shown = |kind, heard| cross_read::block(kind, CrossRead::Verdicts, &self.setup, heard);
        parts.extend(shown(PartKind::CrossRead, &self.first));
        if self.setup.rounds == Rounds::Two {
            parts.extend(shown(PartKind::SecondAnswers, &self.second));
        }
        if !self.priors.is_empty() {
            let text = Json::Array(self.priors.clone()).to_string();
            parts.push(Part::new(PartKind::PriorVerdicts, "", text));
        }
        let form = (Schema::Adjudication, LAST_TASK);
        vec![invoke(ADJUDICATE.to_owned(), &ADJUDICATOR.into(), ADJUDICATE, form, parts)]
    }

    /// Each deliberator's positions, in the form that the policy reads.
    fn positions(&self) -> Vec<Positions> {
        let position = |round, heard: &Response| {
            let read = deliberator::Answer::read(round, answer(heard)?)?;
            Some(Position { block: read.would_block, irreducible: read.irreducible })
        };
        self.first
            .iter()
            .zip(&self.second)
            .map(|(first, second)| {
                let first = position(Round::First, first);
                let last = match self.setup.rounds {
                    Rounds::One => first,
                    Rounds::Two => position(Round::Second, second),
                };
                Positions { first, last }
            })
            .collect()
    }

    /// Ends the review: the policy's rule, the outcome, and nothing after it.
    fn conclude(&mut self, cut_short: Option<Incomplete>, mut commands: Vec<Command>) -> Vec<Command> {
        self.stage = Stage::Over;
        let cut_short = match self.adjudication {
            Some(ConsultationResult::Absent(AbsenceReason::RunOverBudget)) => {
                Some(Incomplete::BudgetExhausted)
            }
            _ => cut_short,
        };
        let adjudication = answer(&self.adjudication).and_then(Adjudication::read);
        let asked_verdict = adjudication.as_ref().map(|adjudication| adjudication.verdict);
        let Setup { policy, deliberators, min_deliberators, .. } = &self.setup;
        let mut judgement = judge(policy, deliberators, &self.positions(), *min_deliberators, asked_verdict);
        if let Some(why) = cut_short {
            (judgement.verdict, judgement.row) = (Err(why), None);
        }
        commands.extend(facts(self, &judgement, adjudication.as_ref()).map(Command::Record));
        commands.push(Command::Finish);
        commands
    }
}

impl Protocol for Council {
    fn advance(&mut self, stamped: &TimedEvent) -> Vec<Command> {
        match &stamped.event {
            Event::Opened { inputs, priors, .. } if self.stage == Stage::Unopened => {
                self.open(inputs, priors)
            }
            Event::Consulted { id, result } => self.on_consulted(id, result),
            Event::Opened { .. }
            | Event::Gathered { .. }
            | Event::Matched { .. }
            | Event::RuleApplied { .. } => Vec::new(),
        }
    }

    fn version(&self) -> &'static str {
        VERSION
    }
}

fn invoke(
    id: String,
    member: &Name,
    step: &str,
    (schema, task): (Schema, &str),
    parts: Vec<Part>,
) -> Command {
    Command::Invoke(Invoke {
        id: id.into(),
        member: member.clone(),
        step: step.into(),
        parts,
        schema,
        task: task.into(),
        extra_fields: Map::new(),
    })
}

/// The step of a round.
fn step(round: Round) -> &'static str {
    match round {
        Round::First => FIRST,
        Round::Second => SECOND,
    }
}

/// Everything about a council that its commands depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The deliberators' ids, in roster order.
    pub deliberators: Vec<Name>,
    /// How often the deliberators answer.
    pub rounds: Rounds,
    /// What round 2 sees of round 1.
    pub cross_read: CrossRead,
    /// Whether one failure ends the review.
    pub fail_fast: OnFailure,
    /// Fewer valid answers than this give INCOMPLETE.
    pub min_deliberators: usize,
    /// The policy that derives the verdict.
    pub policy: Policy,
}

impl Setup {
    /// The setup that a council's manifest asks for.
    pub fn from_manifest(council: &CouncilManifest, policy: Policy) -> Setup {
        let protocol = &council.protocol;
        Setup {
            deliberators: council.deliberators.iter().map(|deliberator| deliberator.id.clone()).collect(),
            rounds: protocol.rounds,
            cross_read: protocol.cross_read,
            fail_fast: protocol.fail_fast,
            min_deliberators: protocol.min_deliberators,
            policy,
        }
    }
}

/// The rule that was applied, and the outcome.
fn facts(council: &Council, judgement: &Judgement, adjudication: Option<&Adjudication>) -> [Fact; 2] {
    let verdict = judgement.verdict.unwrap_or(Verdict::Incomplete);
    let because = summary(council, judgement, adjudication);
    let policy = policy_id(&council.setup.policy);
    let mut rule = json!({
        "rule": "verdict_policy",
        "policy": policy,
        "blocks": judgement.tally.blocks,
        "irreducible": judgement.tally.irreducible,
        "adjudicator": adjudication.map(|adjudication| adjudication.verdict.as_str()),
        "verdict": verdict.as_str(),
        "because": because,
    });
    if let Some(row) = own_row(council, judgement) {
        rule["row"] = row.into();
    }
    let findings = located_findings(council);
    let missing = missing_members(council);
    let outcome = json!({
        "kind": "verdict",
        "verdict": verdict.as_str(),
        "incomplete": judgement.verdict.err().map(|why| why.as_str()),
        "policy": policy,
        "because": because,
        "reasoning": adjudication.map_or_else(|| because.clone(), |adjudication| adjudication.reasoning.clone()),
        "revision_brief": adjudication.and_then(|adjudication| adjudication.revision_brief.clone()).or_else(|| requested_revision(council, judgement)),
        "dissent_summary": adjudication.and_then(|adjudication| adjudication.dissent_summary.clone()),
        "partial": !missing.is_empty(),
        "missing": missing,
        "deliberators": members_json(council, judgement, &findings),
        "findings": findings,
        "applied_compounding": adjudication.is_some() && !council.priors.is_empty(),
        "prior_verdicts_consulted": if adjudication.is_some() { council.priors.len() } else { 0 },
    });
    [Fact { kind: FactKind::Rule, data: rule }, Fact { kind: FactKind::Outcome, data: outcome }]
}

/// What the deliberators ask for, where there is something to revise and the adjudicator does not say what.
fn requested_revision(council: &Council, judgement: &Judgement) -> Option<String> {
    if judgement.verdict.ok()? == Verdict::Ship && judgement.tally.blocks == 0 {
        return None;
    }
    let asks = |(index, member): (usize, &Name)| {
        let rounds = [&council.second[index], &council.first[index]];
        let answers = || rounds.into_iter().filter_map(answer);
        let brief =
            answers().find_map(|answer| answers::non_empty_text(answer.as_object()?, "revision_brief"));
        let issues = || answers().map(deliberator::issues).find(|all| !all.is_empty());
        let asked = brief.or_else(|| Some(issues()?.join("; ")))?;
        Some(format!("{member}: {asked}"))
    };
    let all: Vec<String> = council.setup.deliberators.iter().enumerate().filter_map(asks).collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

/// The deciding row of a council's own table, from 1. The row of a built-in policy follows from the other fields of its record.
fn own_row(council: &Council, judgement: &Judgement) -> Option<usize> {
    judgement.row.filter(|_| matches!(council.setup.policy, Policy::Own(_))).map(|row| row + 1)
}

/// One sentence: what the policy saw and what follows.
fn summary(council: &Council, judgement: &Judgement, adjudication: Option<&Adjudication>) -> String {
    let total = council.setup.deliberators.len();
    let minimum = council.setup.min_deliberators;
    let tally = judgement.tally;
    match judgement.verdict {
        Ok(verdict) => {
            let asked_verdict = adjudication.map_or("nothing", |adjudication| adjudication.verdict.as_str());
            let row = own_row(council, judgement).map_or_else(String::new, |row| format!(", row {row},"));
            format!(
                "{} of {total} block, {} of them irreducibly; the adjudicator asks for {asked_verdict}; policy {}{row} makes that {}.",
                tally.blocks,
                tally.irreducible_blocks,
                policy_id(&council.setup.policy),
                verdict.as_str()
            )
        }
        Err(Incomplete::FirstRound) => {
            format!("Fewer than {minimum} of {total} deliberators gave a valid first answer.")
        }
        Err(Incomplete::SecondRound) => {
            format!("Fewer than {minimum} of {total} deliberators gave a valid second answer.")
        }
        Err(Incomplete::NoAdjudication) => "The adjudicator gave no valid answer.".to_owned(),
        Err(Incomplete::MissingCouldBlock) => {
            "It would be SHIP, but blocks by those without an answer could change that.".to_owned()
        }
        Err(Incomplete::BudgetExhausted) => {
            "The run's budget was spent before everybody had answered.".to_owned()
        }
        Err(Incomplete::FailFast) => {
            "A deliberator failed, and this council ends a review at the first failure.".to_owned()
        }
    }
}

/// Who lacks output in a step that it was asked in (X12), also where a review that ends at the first failure took the
/// question back. In a round that was asked at least one member has ended.
fn missing_members(council: &Council) -> Vec<String> {
    let rounds = [&council.first, &council.second];
    let asked: Vec<_> = rounds.into_iter().filter(|round| round.iter().any(Option::is_some)).collect();
    let lacking = |index: usize| asked.iter().any(|round| answer(&round[index]).is_none());
    let deliberators = council.setup.deliberators.iter().enumerate().filter(|(index, _)| lacking(*index));
    let mut missing: Vec<String> = deliberators.map(|(_, member)| member.to_string()).collect();
    if matches!(council.adjudication, Some(ConsultationResult::Absent(_))) {
        missing.push(ADJUDICATOR.to_owned());
    }
    missing
}

fn members_json(council: &Council, judgement: &Judgement, findings: &[Json]) -> Vec<Json> {
    let member_json = |(index, member): (usize, &Name)| {
        let last = if council.setup.rounds == Rounds::One { "round1" } else { "round2" };
        let (counted, position) = match judgement.counted[index] {
            CountedPosition::Last(position) => (last, Some(position)),
            CountedPosition::FirstBlock(position) => ("round1_block", Some(position)),
            CountedPosition::Missing => ("missing", None),
        };
        let grounded =
            |finding: &&Json| finding["by"] == json!(&**member) && finding["grounded"] == json!(true);
        let blocks = position.is_some_and(|position| position.block);
        json!({
            "id": &**member,
            "counted": counted,
            "would_block": position.map(|position| position.block),
            "irreducible": position.map(|position| position.irreducible),
            "ungrounded": blocks && !findings.iter().any(|finding| grounded(&finding)),
        })
    };
    council.setup.deliberators.iter().enumerate().map(member_json).collect()
}

/// Everybody's findings by their last answer (or the first, where the last lists none), in the text's order.
fn located_findings(council: &Council) -> Vec<Json> {
    let artifact = council.artifact.as_ref().map_or("", |part| &part.text);
    let grounds = findings::ArtifactIndex::new(artifact);
    let mut all: Vec<(usize, Json)> = Vec::new();
    for (index, member) in council.setup.deliberators.iter().enumerate() {
        let Some(found) = last_findings(council, index) else { continue };
        for finding in found {
            let place = grounds.locate(&finding);
            let entry = json!({
                "by": &**member,
                "line": place.as_ref().map(|place| place.line),
                "column": place.as_ref().map(|place| place.column),
                "span": place.as_ref().map(|place| [place.span.start, place.span.end]),
                "quote": finding.quote,
                "issue": finding.issue,
                "fix": finding.fix,
                "grounded": place.is_some(),
            });
            all.push((place.map_or(usize::MAX, |place| place.span.start), entry));
        }
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, entry)| entry).collect()
}

fn last_findings(council: &Council, index: usize) -> Option<Vec<deliberator::Finding>> {
    let read = |round, heard: &Response| deliberator::Answer::read(round, answer(heard)?)?.findings;
    read(Round::Second, &council.second[index]).or_else(|| read(Round::First, &council.first[index]))
}

/// The verdict that an outcome states by this word.
pub fn read_verdict(word: &str) -> Option<Verdict> {
    match word {
        "INCOMPLETE" => Some(Verdict::Incomplete),
        word => Verdict::read(word),
    }
}
