//! The loop over a conversation: runs cycles until no turn is pending, or until it is stopped. Summarizes the run, and has
//! the form of turns that front ends show.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use quorate_kernel::conversation::Turn;
use quorate_kernel::turn::{CycleResult, Runner, UnfinishedCycle};
use quorate_protocol::Json;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, json};

use crate::service::error::ServiceError;

/// The first pause after a transient failure. Each further pause doubles, up to the longest.
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// How long the loop continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until one cycle has asked participants, or nothing is pending.
    Once,
    /// Until nothing is pending.
    Idle,
    /// Waits for new turns until it is interrupted or the calls are spent.
    Watch,
}

/// What happened on the way.
#[derive(Debug)]
pub enum Step {
    /// A cycle is over.
    Cycled(CycleResult),
    /// Nothing is pending; the loop waits.
    Waiting,
    /// The time limit is over. The next run asks the interrupted participants again.
    TimeUp,
    /// A cycle failed; the loop tries again after the pause.
    Retrying(ServiceError, Duration),
}

/// Runs the loop for at most `wall`.
///
/// # Errors
/// If the substrate or the ledger fails. In watch mode only if the position in the conversation is unknown.
pub async fn drive(
    runner: &mut Runner,
    until: Until,
    wall: Option<Duration>,
    mut on_step: impl FnMut(Step),
) -> Result<(), ServiceError> {
    let Some(wall) = wall else { return run_loop(runner, until, &mut on_step).await };
    match tokio::time::timeout(wall, run_loop(runner, until, &mut on_step)).await {
        Ok(driven) => driven,
        // Dropping a cycle interrupts it.
        Err(_) => {
            on_step(Step::TimeUp);
            Ok(())
        }
    }
}

async fn run_loop(
    runner: &mut Runner,
    until: Until,
    on_step: &mut impl FnMut(Step),
) -> Result<(), ServiceError> {
    let mut pause = INITIAL_BACKOFF;
    loop {
        let cycled = match runner.cycle().await {
            Ok(CycleResult::NoNewTurn) if until == Until::Watch => {
                on_step(Step::Waiting);
                runner.changed().await.map(|()| None)
            }
            Ok(CycleResult::NoNewTurn) => return Ok(()),
            Ok(spent @ CycleResult::BudgetExhausted { .. }) => {
                on_step(Step::Cycled(spent));
                return Ok(());
            }
            Ok(cycled) => Ok(Some(cycled)),
            Err(error) => Err(error),
        };
        match cycled {
            Ok(None) => pause = INITIAL_BACKOFF,
            Ok(Some(cycled)) => {
                let has_asked = matches!(cycled, CycleResult::Asked { .. });
                on_step(Step::Cycled(cycled));
                if has_asked && until == Until::Once {
                    return Ok(());
                }
                pause = INITIAL_BACKOFF;
            }
            Err(error) if until == Until::Watch && is_transient(&error) => {
                on_step(Step::Retrying(error.into(), pause));
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(MAX_BACKOFF);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether trying again may help.
fn is_transient(error: &quorate_kernel::turn::TurnError) -> bool {
    use quorate_kernel::ports::substrate;
    use quorate_kernel::turn::TurnError;
    matches!(error, TurnError::Substrate(substrate::SubstrateError::Unavailable { .. }))
}

/// The version of a run's JSON.
pub const SCHEMA: &str = "quorate.run/v1";

/// A run of a runtime
#[derive(Debug, Serialize, JsonSchema)]
struct RunReport {
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// The runtime's id
    runtime: String,
    /// The number of turns that participants were asked to answer
    asked: usize,
    /// The number of turns without a selected participant
    idle: usize,
    appended: Vec<ShownTurn>,
    /// The participants that have not answered
    failed: Vec<FailedCall>,
    /// Turns that no participant answers, with the reason
    passed: Vec<PassedTurn>,
    /// Turns for which the dispatcher failed
    undecided: Vec<PassedTurn>,
    /// The turn for which the budget of calls was spent
    spent: Option<String>,
    /// Whether the time of `[budget] wall` is spent
    over: bool,
    /// The turn that was being answered when the run was interrupted
    interrupted: Option<InterruptedTurn>,
    /// Why the run ended; null if `--once` ended it
    stopped: Option<Stopped>,
    /// How many entries the lists leave out; with `--watch` they have the last hundred
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    omitted: BTreeMap<String, usize>,
}

/// A participant that has not answered a turn
#[derive(Debug, Serialize, JsonSchema)]
struct FailedCall {
    trigger: String,
    participant: String,
    why: String,
}

/// A turn without an answer
#[derive(Debug, Serialize, JsonSchema)]
struct PassedTurn {
    trigger: String,
    why: String,
}

/// A turn that some participants have not answered
#[derive(Debug, Serialize, JsonSchema)]
struct InterruptedTurn {
    trigger: String,
    /// The participants that the next run asks again
    unheard: Vec<String>,
}

/// Why a run ended
#[derive(Debug, Serialize, JsonSchema)]
struct Stopped {
    by: StoppedBy,
    /// The turns without an answer because of it
    turns: Vec<String>,
}

/// What ended a run
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StoppedBy {
    /// Every turn is settled.
    Idle,
    /// A chain of triggers reached `maxAgentTurns`; the exit code is 3.
    Guard,
    /// A person's turn selects no participant, or the dispatcher failed for a turn.
    Nobody,
    /// A person interrupted it.
    Person,
    /// The calls or the time of the budget are spent.
    Budget,
}

/// The JSON Schema of a run's JSON.
pub(crate) fn schema() -> Json {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<RunReport>().to_value();
    schema["$id"] = json!(SCHEMA);
    schema
}

/// A turn of a conversation
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ShownTurn {
    pub id: String,
    /// Who wrote it: a participant's id, or any other name
    pub participant: String,
    /// When, RFC 3339
    pub timestamp: String,
    pub content: String,
    /// What its author added
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Json>,
    /// The turn that it answers
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
    /// Who wrote it, if not its author: a person, or a process of a participant
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_by: Option<String>,
}

impl ShownTurn {
    pub fn of(turn: &Turn) -> ShownTurn {
        let stamp = turn.stamp.as_ref().filter(|stamp| !stamp.trigger.is_empty());
        ShownTurn {
            id: turn.id.to_string(),
            participant: turn.participant.to_string(),
            timestamp: turn.timestamp.to_string(),
            content: turn.content.to_string(),
            meta: turn.meta.clone(),
            answers: stamp.map(|stamp| stamp.trigger.to_string()),
            written_by: turn.origin().map(ToString::to_string),
        }
    }
}

/// How many entries of an endless run are kept for its end.
const WINDOW: usize = 100;

/// The last entries, and the count of all, so that a run of months needs constant memory.
#[derive(Debug)]
pub struct Recent<T> {
    most: usize,
    all: VecDeque<T>,
    count: usize,
}

impl<T> Recent<T> {
    fn new(limit: usize) -> Self {
        Recent { most: limit, all: VecDeque::new(), count: 0 }
    }

    /// Whether no entry was ever added.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The kept entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = &T> {
        self.all.iter()
    }

    /// The number of all entries.
    pub fn count(&self) -> usize {
        self.count
    }

    fn omitted(&self) -> usize {
        self.count - self.all.len()
    }
}

impl<T> Extend<T> for Recent<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            self.count += 1;
            self.all.push_back(item);
            if self.all.len() > self.most {
                self.all.pop_front();
            }
        }
    }
}

/// How much of a run is kept until its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// Everything, for a run that ends when idle.
    All,
    /// The last entries, for a run that ends by interruption.
    Last,
}

/// The result of a runtime's run.
#[derive(Debug)]
pub struct RunSummary {
    /// The number of turns that participants were asked to answer.
    pub asked: usize,
    /// The number of turns without a selected participant.
    pub idle: usize,
    pub appended: Recent<Turn>,
    /// Failures: the trigger, the participant, and the reason.
    pub failed: Recent<(String, String, String)>,
    /// Turns that were skipped, with reasons.
    pub passed: Recent<(String, String)>,
    /// Turns for which the dispatcher failed, with reasons.
    pub undecided: Recent<(String, String)>,
    /// Turns that reached `maxAgentTurns`.
    guarded: Recent<String>,
    /// Turns of people without a selected participant, and turns for which the dispatcher failed.
    unaddressed: Recent<String>,
    /// Whether a person interrupted the run.
    pub interrupted: bool,
    /// Whether `--once` ended the run after the first calls.
    pub ended_once: bool,
    /// The turn for which the budget of calls was spent.
    pub spent: Option<String>,
    /// Whether the time budget was spent.
    pub out_of_time: bool,
    /// The interrupted turn, and the participants that had not answered.
    pub unheard: Option<(String, Vec<String>)>,
}

impl RunSummary {
    /// The summary of a run that has just begun.
    pub fn new(retention: Retention) -> Self {
        let limit = match retention {
            Retention::All => usize::MAX,
            Retention::Last => WINDOW,
        };
        RunSummary {
            asked: 0,
            idle: 0,
            appended: Recent::new(limit),
            failed: Recent::new(limit),
            passed: Recent::new(limit),
            undecided: Recent::new(limit),
            guarded: Recent::new(limit),
            unaddressed: Recent::new(limit),
            interrupted: false,
            ended_once: false,
            spent: None,
            out_of_time: false,
            unheard: None,
        }
    }

    /// Adds a cycle.
    pub fn take(&mut self, cycled: CycleResult) {
        match cycled {
            CycleResult::Asked { trigger, appended, failed } => {
                self.asked += 1;
                self.appended.extend(appended);
                let failed = failed
                    .into_iter()
                    .map(|(participant, why)| (trigger.to_string(), participant.to_string(), why));
                self.failed.extend(failed);
            }
            CycleResult::Idle { trigger, is_unaddressed, why } => {
                self.idle += 1;
                self.unaddressed.extend(is_unaddressed.then(|| trigger.to_string()));
                self.passed.extend(why.map(|why| (trigger.to_string(), why)));
            }
            CycleResult::Guarded { trigger, why } => {
                self.idle += 1;
                self.guarded.extend([trigger.to_string()]);
                self.passed.extend([(trigger.to_string(), why)]);
            }
            CycleResult::Undecided { trigger, why } => {
                self.unaddressed.extend([trigger.to_string()]);
                self.undecided.extend([(trigger.to_string(), why)]);
            }
            CycleResult::BudgetExhausted { trigger } => self.spent = Some(trigger.to_string()),
            CycleResult::NoNewTurn => {}
        }
    }

    /// Adds the rest of an interrupted cycle.
    pub fn take_unfinished(&mut self, unfinished: UnfinishedCycle) {
        self.asked += 1;
        self.appended.extend(unfinished.appended);
        let unanswered: Vec<String> = unfinished.unanswered.iter().map(ToString::to_string).collect();
        self.unheard = Some((unfinished.trigger.to_string(), unanswered))
            .filter(|(_, unanswered)| !unanswered.is_empty());
    }

    /// The object that `quorate run --format json` prints.
    pub fn json(&self, runtime: &str) -> Json {
        let turns = |last: &Recent<(String, String)>| {
            let turns = last.entries().cloned();
            turns.map(|(trigger, why)| PassedTurn { trigger, why }).collect()
        };
        let failed = self.failed.entries().cloned();
        let interrupted = self.unheard.clone();
        let omitted = [
            ("appended", self.appended.omitted()),
            ("failed", self.failed.omitted()),
            ("passed", self.passed.omitted()),
            ("undecided", self.undecided.omitted()),
        ];
        let omitted = omitted.into_iter().filter(|(_, count)| *count > 0);
        json!(RunReport {
            schema: SCHEMA,
            runtime: runtime.to_owned(),
            asked: self.asked,
            idle: self.idle,
            appended: self.appended.entries().map(ShownTurn::of).collect(),
            failed: failed
                .map(|(trigger, participant, why)| FailedCall { trigger, participant, why })
                .collect(),
            passed: turns(&self.passed),
            undecided: turns(&self.undecided),
            spent: self.spent.clone(),
            over: self.out_of_time,
            interrupted: interrupted.map(|(trigger, unheard)| InterruptedTurn { trigger, unheard }),
            stopped: self.stopped(),
            omitted: omitted.map(|(key, count)| (key.to_owned(), count)).collect(),
        })
    }

    /// Why the run ended; `None` if `--once` ended it.
    fn stopped(&self) -> Option<Stopped> {
        let turns = |last: &Recent<String>| last.entries().cloned().collect::<Vec<_>>();
        let (by, turns) = if self.interrupted {
            let unheard = self.unheard.iter().map(|(trigger, _)| trigger.clone());
            (StoppedBy::Person, unheard.collect())
        } else if self.spent.is_some() || self.out_of_time {
            (StoppedBy::Budget, self.spent.iter().cloned().collect())
        } else if !self.guarded.is_empty() {
            (StoppedBy::Guard, turns(&self.guarded))
        } else if self.ended_once {
            return None;
        } else if !self.unaddressed.is_empty() {
            (StoppedBy::Nobody, turns(&self.unaddressed))
        } else {
            (StoppedBy::Idle, Vec::new())
        };
        Some(Stopped { by, turns })
    }

    /// Whether every selected participant has answered, and the guard has stopped none.
    pub fn is_complete(&self) -> bool {
        let lists_are_empty = self.failed.is_empty() && self.undecided.is_empty() && self.guarded.is_empty();
        lists_are_empty && self.spent.is_none() && !self.out_of_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_run_keeps_the_last_entries_and_counts_all() {
        let turn = |at: usize| Turn {
            id: format!("t{at}").into(),
            participant: "ada".into(),
            timestamp: "".into(),
            content: "x".into(),
            meta: Map::new(),
            stamp: None,
        };
        for (retention, expected) in [(Retention::Last, WINDOW), (Retention::All, 1_000)] {
            let mut all = RunSummary::new(retention);
            for at in 0..1_000 {
                let failed = vec![("bo".into(), "no".to_owned())];
                all.take(CycleResult::Asked { trigger: "t".into(), appended: vec![turn(at)], failed });
                let why = Some("a misspelt name".to_owned());
                all.take(CycleResult::Idle { trigger: "t".into(), is_unaddressed: true, why });
                all.take(CycleResult::Undecided { trigger: "t".into(), why: "router".to_owned() });
            }
            let lengths = [all.failed.all.len(), all.passed.all.len(), all.undecided.all.len()];
            assert_eq!((all.appended.all.len(), lengths), (expected, [expected; 3]));
            assert_eq!(
                (all.appended.omitted(), &*all.appended.all[expected - 1].id),
                (1_000 - expected, "t999")
            );
            assert!(all.appended.count() == 1_000 && !all.is_complete());
        }
    }

    #[test]
    fn a_run_says_what_ended_it() {
        // K12
        let stopped = |run: &RunSummary| run.json("r")["stopped"].clone();
        let mut run = RunSummary::new(Retention::All);
        run.take(CycleResult::Idle { trigger: "t1".into(), is_unaddressed: false, why: None });
        assert_eq!((stopped(&run), run.is_complete()), (json!({"by": "idle", "turns": []}), true));
        run.take(CycleResult::Idle { trigger: "t2".into(), is_unaddressed: true, why: None });
        assert_eq!((stopped(&run), run.is_complete()), (json!({"by": "nobody", "turns": ["t2"]}), true));
        run.ended_once = true;
        assert_eq!(stopped(&run), Json::Null);
        run.take(CycleResult::Guarded { trigger: "t3".into(), why: "a chain of 20".to_owned() });
        assert_eq!((stopped(&run), run.is_complete()), (json!({"by": "guard", "turns": ["t3"]}), false));
        assert_eq!(run.json("r")["passed"], json!([{"trigger": "t3", "why": "a chain of 20"}]));
        run.take(CycleResult::BudgetExhausted { trigger: "t4".into() });
        assert_eq!(stopped(&run), json!({"by": "budget", "turns": ["t4"]}));
        run.interrupted = true;
        run.unheard = Some(("t5".to_owned(), vec!["ada".to_owned()]));
        assert_eq!(stopped(&run), json!({"by": "person", "turns": ["t5"]}));
    }
}
