//! What a run of a runtime came to, and turns as front ends show them.

use std::collections::VecDeque;

use quorate_kernel::conversation::Turn;
use quorate_kernel::turn::{CycleResult, UnfinishedCycle};
use quorate_protocol::Json;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, json};

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
        }
    }
}

/// How many entries of an endless run are kept for its end.
const WINDOW: usize = 100;

/// The last entries, and the count of all. A run of months keeps only what it will show.
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

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The entries that were kept, in order.
    pub fn entries(&self) -> impl Iterator<Item = &T> {
        self.all.iter()
    }

    /// How many there were.
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
    /// The turn for which the budget of calls was spent.
    pub spent: Option<String>,
    /// Whether the time budget was spent.
    pub out_of_time: bool,
    /// The interrupted turn, and the participants that had not answered.
    pub unheard: Option<(String, Vec<String>)>,
}

impl RunSummary {
    /// Of a run in which nothing has happened.
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
            CycleResult::Idle { trigger, why } => {
                self.idle += 1;
                self.passed.extend(why.map(|why| (trigger.to_string(), why)));
            }
            CycleResult::Undecided { trigger, why } => self.undecided.extend([(trigger.to_string(), why)]),
            CycleResult::BudgetExhausted { trigger } => self.spent = Some(trigger.to_string()),
            CycleResult::NoNewTurn => {}
        }
    }

    /// Adds the rest of an interrupted cycle.
    pub fn interrupted(&mut self, unfinished: UnfinishedCycle) {
        self.asked += 1;
        self.appended.extend(unfinished.appended);
        let unanswered: Vec<String> = unfinished.unanswered.iter().map(ToString::to_string).collect();
        self.unheard = Some((unfinished.trigger.to_string(), unanswered))
            .filter(|(_, unanswered)| !unanswered.is_empty());
    }

    /// The object that `quorate run --format json` prints.
    pub fn json(&self, runtime: &str) -> Json {
        let appended: Vec<ShownTurn> = self.appended.entries().map(ShownTurn::of).collect();
        let failed = self.failed.all.iter();
        let failed = failed.map(
            |(trigger, participant, why)| json!({"trigger": trigger, "participant": participant, "why": why}),
        );
        let turns = |last: &Recent<(String, String)>| -> Vec<Json> {
            last.all.iter().map(|(trigger, why)| json!({"trigger": trigger, "why": why})).collect()
        };
        let interrupted = self
            .unheard
            .as_ref()
            .map(|(trigger, participant)| json!({"trigger": trigger, "unheard": participant}));
        let omitted = [
            ("appended", self.appended.omitted()),
            ("failed", self.failed.omitted()),
            ("passed", self.passed.omitted()),
            ("undecided", self.undecided.omitted()),
        ];
        let omitted: Map<String, Json> = omitted
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(key, count)| (key.to_owned(), json!(count)))
            .collect();
        let mut json = json!({
            "runtime": runtime,
            "asked": self.asked,
            "idle": self.idle,
            "appended": appended,
            "failed": failed.collect::<Vec<_>>(),
            "passed": turns(&self.passed),
            "undecided": turns(&self.undecided),
            "spent": self.spent,
            "over": self.out_of_time,
            "interrupted": interrupted,
        });
        if !omitted.is_empty() {
            json["omitted"] = Json::Object(omitted);
        }
        json
    }

    /// Whether every selected participant has answered.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.undecided.is_empty() && self.spent.is_none() && !self.out_of_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_an_end_keeps_the_last_of_what_happened_and_counts_all() {
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
                all.take(CycleResult::Idle { trigger: "t".into(), why: Some("guard".to_owned()) });
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
}
