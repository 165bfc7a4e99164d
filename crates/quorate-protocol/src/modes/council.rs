//! The Council: deliberators answer in parallel, read each other and answer again, an adjudicator merges, a policy judges
//! (C1 to C4). This file owns the order of steps; its submodules own the inputs and the outcome.

mod cross_read;
pub mod findings;
pub mod outcome;
mod setup;

use std::sync::Arc;

use serde_json::Map;

use crate::answers::{Schema, adjudicator::Adjudication, deliberator};
use crate::policy::{Incomplete, Position, Positions, Verdict, judge};
use crate::{
    AbsenceReason, Command, ConsultationResult, Event, Fact, Invoke, Json, Name, Part, PartKind, Protocol,
    TimedEvent,
};

pub use cross_read::TEXT_CAP;
pub use setup::{CrossRead, FailFast, Rounds, Setup};

/// The mode and its version.
pub const VERSION: &str = "council/4";
/// The step of the first answers.
pub const FIRST: &str = "r1";
/// The step of the second answers.
pub const SECOND: &str = "r2";
/// The adjudicator's step, and the id of its one invocation.
pub const ADJUDICATE: &str = "adjudicate";
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

/// The state of one invocation.
#[derive(Debug, Clone, PartialEq)]
enum Response {
    Pending,
    Answer(Json),
    Absent(AbsenceReason),
}

impl Response {
    fn status(&self) -> &'static str {
        match self {
            Response::Pending => "not_asked",
            Response::Answer(_) => "answered",
            Response::Absent(absent) => absent.status(),
        }
    }

    fn answer(&self) -> Option<&Json> {
        match self {
            Response::Answer(json) => Some(json),
            Response::Pending | Response::Absent(_) => None,
        }
    }
}

impl Council {
    /// A council that waits to be opened.
    pub fn new(setup: Setup) -> Self {
        let silent = vec![Response::Pending; setup.deliberators.len()];
        Council {
            stage: Stage::Unopened,
            artifact: None,
            priors: Vec::new(),
            first: silent.clone(),
            second: silent,
            adjudication: Response::Pending,
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
        let ask = |member: &Name| {
            let id = format!("{step}/{member}").into();
            Command::Invoke(Invoke {
                id,
                member: member.clone(),
                step: step.into(),
                parts: parts.to_vec(),
                schema,
                task: task.into(),
                extra_fields: Map::new(),
            })
        };
        self.setup.deliberators.iter().map(ask).collect()
    }

    fn on_consulted(&mut self, id: &str, result: &ConsultationResult) -> Vec<Command> {
        let form = match self.stage {
            Stage::First => Schema::FirstAnswer,
            Stage::Second => Schema::SecondAnswer,
            _ => Schema::Adjudication,
        };
        let heard = match result {
            ConsultationResult::Answered(answer) if form.accepts(answer) => Response::Answer(answer.clone()),
            // X5: an unreadable answer is no answer.
            ConsultationResult::Answered(_) => Response::Absent(AbsenceReason::SchemaFailed),
            ConsultationResult::Absent(absent) => Response::Absent(*absent),
        };
        let Some(slot) = self.slot(id) else { return Vec::new() };
        if *slot != Response::Pending {
            return Vec::new();
        }
        *slot = heard;
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
        let heard = self.round(round);
        if self.setup.fail_fast == FailFast::Yes
            && heard.iter().any(|response| {
                matches!(response, Response::Absent(AbsenceReason::Failed | AbsenceReason::TimedOut))
            })
        {
            let open = self.pending_invocations(round);
            return self
                .conclude(Some(Incomplete::FailFast), open.into_iter().map(Command::Cancel).collect());
        }
        if heard.contains(&Response::Pending) {
            return Vec::new();
        }
        if heard.iter().any(|response| matches!(response, Response::Absent(AbsenceReason::RunOverBudget))) {
            return self.conclude(Some(Incomplete::BudgetExhausted), Vec::new());
        }
        if self.positions().iter().filter(|position| round.position(position).is_some()).count()
            < self.setup.min_deliberators
        {
            let why = if round == Round::First { Incomplete::FirstRound } else { Incomplete::SecondRound };
            return self.conclude(Some(why), Vec::new());
        }
        match (round, self.setup.rounds) {
            (Round::First, Rounds::Two) => self.ask_again(),
            _ => self.ask_adjudicator(),
        }
    }

    fn round(&self, round: Round) -> &[Response] {
        match round {
            Round::First => &self.first,
            Round::Second => &self.second,
        }
    }

    fn pending_invocations(&self, round: Round) -> Vec<Name> {
        let waiting = self
            .setup
            .deliberators
            .iter()
            .zip(self.round(round))
            .filter(|(_, heard)| **heard == Response::Pending);
        waiting.map(|(member, _)| format!("{}/{member}", round.step()).into()).collect()
    }

    /// C4: everybody is asked in round 2, also who gave no first answer.
    fn ask_again(&mut self) -> Vec<Command> {
        self.stage = Stage::Second;
        let mut parts: Vec<Part> = self.artifact.iter().cloned().collect();
        parts.extend(self.cross_read());
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
        vec![Command::Invoke(Invoke {
            id: ADJUDICATE.into(),
            member: ADJUDICATOR.into(),
            step: ADJUDICATE.into(),
            parts,
            schema: Schema::Adjudication,
            task: LAST_TASK.into(),
            extra_fields: Map::new(),
        })]
    }

    fn cross_read(&self) -> Option<Part> {
        cross_read::block(PartKind::CrossRead, self.setup.cross_read, &self.setup, &self.first)
    }

    /// Each deliberator's positions, in the form that the policy reads.
    fn positions(&self) -> Vec<Positions> {
        let position = |round, heard: &Response| {
            let answer = deliberator::Answer::read(round, heard.answer()?)?;
            Some(Position { block: answer.would_block, irreducible: answer.irreducible })
        };
        self.first
            .iter()
            .zip(&self.second)
            .map(|(first, second)| {
                let first = position(deliberator::Round::First, first);
                let last = match self.setup.rounds {
                    Rounds::One => first,
                    Rounds::Two => position(deliberator::Round::Second, second),
                };
                Positions { first, last }
            })
            .collect()
    }

    /// Ends the review: the policy's rule, the outcome, and nothing after it.
    fn conclude(&mut self, cut_short: Option<Incomplete>, mut commands: Vec<Command>) -> Vec<Command> {
        self.stage = Stage::Over;
        let cut_short = match self.adjudication {
            Response::Absent(AbsenceReason::RunOverBudget) => Some(Incomplete::BudgetExhausted),
            _ => cut_short,
        };
        let adjudication = self.adjudication.answer().and_then(Adjudication::read);
        let asked_verdict = adjudication.as_ref().map(|adjudication| adjudication.verdict);
        let mut judgement =
            judge(self.setup.policy, &self.positions(), self.setup.min_deliberators, asked_verdict);
        if let Some(why) = cut_short {
            judgement.verdict = Err(why);
        }
        let (rule, outcome) = outcome::facts(self, &judgement, adjudication.as_ref());
        commands.extend([rule, outcome].map(|fact: Fact| Command::Record(fact)));
        commands.push(Command::Finish);
        commands
    }

    fn artifact_text(&self) -> Arc<str> {
        self.artifact.as_ref().map_or_else(|| "".into(), |part| part.text.clone())
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    First,
    Second,
}

impl Round {
    fn step(self) -> &'static str {
        match self {
            Round::First => FIRST,
            Round::Second => SECOND,
        }
    }

    fn position(self, given: &Positions) -> Option<Position> {
        match self {
            Round::First => given.first,
            Round::Second => given.last,
        }
    }
}

/// The verdict of a judgement, INCOMPLETE without one.
fn verdict_of(judgement: &crate::policy::Judgement) -> Verdict {
    judgement.verdict.unwrap_or(Verdict::Incomplete)
}
