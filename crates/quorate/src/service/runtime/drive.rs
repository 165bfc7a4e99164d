//! The loop over a conversation: runs cycles until no turn is pending, or until it is stopped. Summarizes the run, and has
//! the form of turns that front ends show.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::Report;
use quorate_kernel::budget::Caps;
use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::substrate::SubstrateError;
use quorate_kernel::ports::telemetry::{Event, Telemetry};
use quorate_kernel::turn::{Begin, CycleResult, Runner, TurnError, UnfinishedCycle};
use quorate_protocol::{Json, Name};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Map;
use tokio::sync::mpsc::UnboundedSender;

use super::OpenRuntime;
use super::conversation::{SayRequest, Shared, say};
use super::events::EventFile;
use crate::events::Interruption;
use crate::service::error::Error;
use crate::service::member_usage::Failure;

/// How long a run continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Until {
    /// Until one cycle has asked participants, or nothing is pending.
    Once,
    /// Until nothing is pending.
    #[default]
    Idle,
    /// Waits for new turns until it is interrupted or the calls are spent.
    Watch,
}

/// A request to let the participants of a conversation answer.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// How long the run continues.
    pub until: Until,
    /// Appended first.
    pub say: Option<SayRequest>,
    /// Whether other processes may run the conversation: then the turn is always appended, as soon as it is certain
    /// that participants can be asked. Otherwise the run fails before it appends if another process runs it.
    pub is_shared: bool,
    /// On the first run: begins after the existing turns.
    pub from_now: bool,
    /// The budget, in place of the configured one.
    pub caps: Option<Caps>,
    /// Appends every event to this file, as lines of JSON.
    pub events: Option<PathBuf>,
}

/// What happens during a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum SwarmEvent {
    /// The warnings of the manifest, and those for a process that runs it.
    Warned(Report),
    /// The turn of a [shared](RunRequest::is_shared) run is appended, and participants can be asked.
    Admitted,
    /// The conversation is locked for this run.
    Began,
    /// A turn was appended.
    Said(Turn),
    /// A step of a cycle.
    Step(Event),
    /// A cycle is over.
    Cycled,
    /// Nothing is pending; the run waits.
    Waiting,
    /// A cycle failed; the run tries again after the pause.
    Retrying {
        /// Why it failed.
        report: Report,
        /// How long the run waits.
        pause: Duration,
    },
    /// The file of events could not be written: the reason. The run continues.
    EventsEnded(String),
    /// No participant is asked any more: the run closes.
    Ending,
}

/// Sends events to the stream of a run, and to its file.
pub(crate) struct Sinks {
    pub(crate) stream: UnboundedSender<SwarmEvent>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) file: Option<EventFile>,
}

impl Sinks {
    /// A caller may ignore events.
    pub(crate) fn send(&self, event: SwarmEvent) {
        if let SwarmEvent::Said(_) = &event {
            self.shared.notify_appended();
        }
        let _ = self.stream.send(event);
    }
}

impl Telemetry for Sinks {
    fn emit(&self, event: &Event) {
        if let Some(file) = &self.file {
            file.emit(event);
        }
        self.shared.observe(event);
        self.send(SwarmEvent::Step(event.clone()));
    }
}

/// How long hooks and pending writes may take at the end.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Lets participants answer the turns of a conversation.
///
/// # Errors
/// If another process runs the conversation, an executor is not trusted or not installed, or substrate or ledger fail.
pub(crate) async fn run(
    ready: &OpenRuntime,
    request: &RunRequest,
    sinks: &Arc<Sinks>,
    interruption: &Interruption,
) -> Result<SwarmReport, Error> {
    let begin = if request.from_now { Begin::Now } else { Begin::First };
    let append = async || {
        if let Some(request) = &request.say {
            sinks.send(SwarmEvent::Said(say(&ready.runtime, request).await?));
        }
        Ok::<_, Error>(())
    };
    if request.is_shared {
        // Refuses what is not trusted or not installed before anything is said.
        ready.ensure_writable()?;
        ready.swarm(request.caps, sinks.clone())?;
        append().await?;
        sinks.send(SwarmEvent::Admitted);
    }
    let _alone = sinks.shared.begin().await;
    let (mut runner, _guard) = ready.runner(begin, request.caps, sinks.clone()).await?;
    if !request.is_shared {
        append().await?;
    }
    sinks.send(SwarmEvent::Began);
    let mut driver = Driver { report: SwarmReport::new(&ready.runtime.id, request.until), sinks };
    let driven = tokio::select! {
        biased;
        () = interruption.requested() => None,
        driven = driver.drive(&mut runner, request.until, ready.runtime.wall) => Some(driven),
    };
    let mut is_interrupted = driven.is_none();
    if !is_interrupted {
        // From here on an interruption ends the wait: hooks then have as long as everything else.
        is_interrupted = tokio::select! {
            biased;
            () = interruption.requested() => true,
            () = runner.settle_hooks() => false,
        };
    }
    if is_interrupted {
        ready.store.interrupt();
    }
    sinks.send(SwarmEvent::Ending);
    let drained = runner.close(SHUTDOWN_TIMEOUT).await.map_err(Error::from);
    driven.transpose()?;
    let Driver { mut report, .. } = driver;
    match drained {
        Ok(None) => {}
        Ok(Some(unfinished)) => {
            unfinished.appended.iter().for_each(|turn| sinks.send(SwarmEvent::Said(turn.clone())));
            report.take_unfinished(unfinished);
        }
        // The interruption is the outcome; report the records that failed.
        Err(error) if is_interrupted => sinks.send(SwarmEvent::Warned(*error.report)),
        Err(error) => return Err(error),
    }
    report.is_interrupted = is_interrupted;
    report.end(request.until);
    Ok(report)
}

/// The first pause after a transient failure. Each further pause doubles, up to the longest.
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// The loop of a run.
struct Driver<'a> {
    report: SwarmReport,
    sinks: &'a Sinks,
}

impl Driver<'_> {
    /// Runs the loop for at most `wall`.
    async fn drive(
        &mut self,
        runner: &mut Runner,
        until: Until,
        wall: Option<Duration>,
    ) -> Result<(), Error> {
        let Some(wall) = wall else { return self.run_loop(runner, until).await };
        match tokio::time::timeout(wall, self.run_loop(runner, until)).await {
            Ok(driven) => driven,
            // Dropping a cycle interrupts it.
            Err(_) => {
                self.report.over = true;
                Ok(())
            }
        }
    }

    async fn run_loop(&mut self, runner: &mut Runner, until: Until) -> Result<(), Error> {
        let mut pause = INITIAL_BACKOFF;
        loop {
            let cycled = match runner.cycle().await {
                Ok(CycleResult::NoNewTurn) if until == Until::Watch => {
                    self.sinks.send(SwarmEvent::Waiting);
                    runner.changed().await.map(|()| None)
                }
                Ok(CycleResult::NoNewTurn) => return Ok(()),
                Ok(cycled) => Ok(Some(cycled)),
                Err(error) => Err(error),
            };
            match cycled {
                Ok(cycled) => {
                    pause = INITIAL_BACKOFF;
                    let Some(cycled) = cycled else { continue };
                    let has_asked = matches!(cycled, CycleResult::Asked { .. });
                    let is_spent = matches!(cycled, CycleResult::BudgetExhausted { .. });
                    if let CycleResult::Asked { appended, .. } = &cycled {
                        appended.iter().for_each(|turn| self.sinks.send(SwarmEvent::Said(turn.clone())));
                    }
                    self.report.take(cycled);
                    self.sinks.send(SwarmEvent::Cycled);
                    if is_spent || has_asked && until == Until::Once {
                        return Ok(());
                    }
                }
                // Trying again may help.
                Err(error @ TurnError::Substrate(SubstrateError::Unavailable { .. }))
                    if until == Until::Watch =>
                {
                    let report = *Error::from(error).report;
                    self.sinks.send(SwarmEvent::Retrying { report, pause });
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(MAX_BACKOFF);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The version of a run's JSON.
pub(crate) const SCHEMA: &str = "quorate.run/v1";

/// A run of a runtime
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "RunReport")]
pub struct SwarmReport {
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// The runtime's id
    pub runtime: String,
    /// The number of turns that participants were asked to answer
    pub asked: usize,
    /// The number of turns without a selected participant
    pub idle: usize,
    /// The turns of participants
    pub appended: Vec<ShownTurn>,
    /// The participants that have not answered
    pub failed: Vec<FailedCall>,
    /// Turns that no participant answers, with the reason
    pub passed: Vec<PassedTurn>,
    /// Turns for which the dispatcher failed
    pub undecided: Vec<PassedTurn>,
    /// The turn for which the budget of calls was spent
    pub spent: Option<String>,
    /// Whether the time of `[budget] wall` is spent
    pub over: bool,
    /// The turn that was being answered when the run was interrupted
    pub interrupted: Option<InterruptedTurn>,
    /// Why the run ended; null if `--once` ended it
    pub stopped: Option<Stopped>,
    /// How many entries the lists leave out; with `--watch` they have the last hundred
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    omitted: BTreeMap<String, usize>,
    /// Turns that reached `maxAgentTurns`.
    #[serde(skip)]
    guarded: Vec<String>,
    /// Turns of people without a selected participant, and turns for which the dispatcher failed.
    #[serde(skip)]
    unaddressed: Vec<String>,
    /// How many entries each list keeps.
    #[serde(skip)]
    most: usize,
    /// Whether a person interrupted the run.
    #[serde(skip)]
    pub is_interrupted: bool,
}

/// A participant that has not answered a turn
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FailedCall {
    /// The turn
    pub trigger: String,
    /// The participant
    pub participant: String,
    /// Why it has not answered
    pub why: String,
    /// The same in its parts
    pub failure: Failure,
}

/// A turn without an answer
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PassedTurn {
    /// The turn
    pub trigger: String,
    /// Why no participant answers it
    pub why: String,
}

/// A turn that some participants have not answered
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct InterruptedTurn {
    /// The turn
    pub trigger: String,
    /// The participants that the next run asks again
    pub unheard: Vec<String>,
}

/// Why a run ended
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Stopped {
    /// What ended it
    pub by: StoppedBy,
    /// The turns without an answer because of it
    pub turns: Vec<String>,
}

/// What ended a run
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StoppedBy {
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

/// A turn of a conversation
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ShownTurn {
    /// Its id
    pub id: String,
    /// Who wrote it: a participant's id, or any other name
    pub participant: String,
    /// When, RFC 3339
    pub timestamp: String,
    /// The text
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
    /// The form of a turn.
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

/// How many entries an endless run keeps of each list, so that a run of months needs constant memory.
const WINDOW: usize = 100;

impl SwarmReport {
    /// The report of a run that has just begun.
    fn new(runtime: &str, until: Until) -> Self {
        // A run that ends by interruption keeps the last entries.
        let most = if until == Until::Watch { WINDOW } else { usize::MAX };
        SwarmReport { schema: SCHEMA, runtime: runtime.to_owned(), most, ..SwarmReport::default() }
    }

    /// How many turns participants have appended.
    pub fn appended_count(&self) -> usize {
        self.appended.len() + self.omitted.get("appended").copied().unwrap_or(0)
    }

    /// Leaves out and counts the oldest entries that are too many.
    fn trim(&mut self) {
        fn trim<T>(list: &mut Vec<T>, most: usize) -> usize {
            let over = list.len().saturating_sub(most);
            list.drain(..over).count()
        }
        let most = self.most;
        let omitted = [
            ("appended", trim(&mut self.appended, most)),
            ("failed", trim(&mut self.failed, most)),
            ("passed", trim(&mut self.passed, most)),
            ("undecided", trim(&mut self.undecided, most)),
        ];
        for (key, count) in omitted.into_iter().filter(|(_, count)| *count > 0) {
            *self.omitted.entry(key.to_owned()).or_default() += count;
        }
        trim(&mut self.guarded, most);
        trim(&mut self.unaddressed, most);
    }

    /// Adds a cycle.
    fn take(&mut self, cycled: CycleResult) {
        let passed = |trigger: &Name, why| PassedTurn { trigger: trigger.to_string(), why };
        match cycled {
            CycleResult::Asked { trigger, appended, failed } => {
                self.asked += 1;
                self.appended.extend(appended.iter().map(ShownTurn::of));
                self.failed.extend(failed.into_iter().map(|(participant, failure)| FailedCall {
                    trigger: trigger.to_string(),
                    participant: participant.to_string(),
                    why: failure.why.clone(),
                    failure: Failure::of_turn(failure),
                }));
            }
            CycleResult::Idle { trigger, is_unaddressed, why } => {
                self.idle += 1;
                self.unaddressed.extend(is_unaddressed.then(|| trigger.to_string()));
                self.passed.extend(why.map(|why| passed(&trigger, why)));
            }
            CycleResult::Guarded { trigger, why } => {
                self.idle += 1;
                self.guarded.push(trigger.to_string());
                self.passed.push(passed(&trigger, why));
            }
            CycleResult::Undecided { trigger, why } => {
                self.unaddressed.push(trigger.to_string());
                self.undecided.push(passed(&trigger, why));
            }
            CycleResult::BudgetExhausted { trigger } => self.spent = Some(trigger.to_string()),
            CycleResult::NoNewTurn => {}
        }
        self.trim();
    }

    /// Adds the rest of an interrupted cycle.
    fn take_unfinished(&mut self, unfinished: UnfinishedCycle) {
        self.asked += 1;
        self.appended.extend(unfinished.appended.iter().map(ShownTurn::of));
        let unheard: Vec<String> = unfinished.unanswered.iter().map(ToString::to_string).collect();
        self.interrupted = Some(InterruptedTurn { trigger: unfinished.trigger.to_string(), unheard })
            .filter(|turn| !turn.unheard.is_empty());
        self.trim();
    }

    /// Completes the report: why the run ended.
    fn end(&mut self, until: Until) {
        let (by, turns) = if self.is_interrupted {
            (StoppedBy::Person, self.interrupted.iter().map(|turn| turn.trigger.clone()).collect())
        } else if self.spent.is_some() || self.over {
            (StoppedBy::Budget, self.spent.iter().cloned().collect())
        } else if !self.guarded.is_empty() {
            (StoppedBy::Guard, self.guarded.clone())
        } else if until == Until::Once && self.asked > 0 {
            return;
        } else if !self.unaddressed.is_empty() {
            (StoppedBy::Nobody, self.unaddressed.clone())
        } else {
            (StoppedBy::Idle, Vec::new())
        };
        self.stopped = Some(Stopped { by, turns });
    }

    /// Whether every selected participant has answered, and the guard has stopped none.
    pub fn is_complete(&self) -> bool {
        let lists_are_empty = self.failed.is_empty() && self.undecided.is_empty() && self.guarded.is_empty();
        lists_are_empty && self.spent.is_none() && !self.over
    }
}

#[cfg(test)]
mod tests {
    use quorate_kernel::attempts::FailedAttempts;
    use quorate_kernel::record::Status;
    use quorate_kernel::turn::TurnFailure;
    use serde_json::json;

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
        for (until, expected) in [(Until::Watch, WINDOW), (Until::Idle, 1_000)] {
            let mut all = SwarmReport::new("r", until);
            for at in 0..1_000 {
                let (why, attempts) = ("no".to_owned(), FailedAttempts::default());
                let failed = vec![("bo".into(), TurnFailure { status: Status::Failed, why, attempts })];
                all.take(CycleResult::Asked { trigger: "t".into(), appended: vec![turn(at)], failed });
                let why = Some("a misspelt name".to_owned());
                all.take(CycleResult::Idle { trigger: "t".into(), is_unaddressed: true, why });
                all.take(CycleResult::Undecided { trigger: "t".into(), why: "router".to_owned() });
            }
            let lengths = [all.failed.len(), all.passed.len(), all.undecided.len()];
            assert_eq!((all.appended.len(), lengths), (expected, [expected; 3]));
            let omitted = all.omitted.get("undecided").copied().unwrap_or(0);
            assert_eq!((omitted, &*all.appended[expected - 1].id), (1_000 - expected, "t999"));
            assert!(all.appended_count() == 1_000 && !all.is_complete());
        }
    }

    #[test]
    fn a_run_says_what_ended_it() {
        // A chain of triggers that is too long ends the run, and the report names it (K12).
        let stopped = |run: &mut SwarmReport, until| {
            run.stopped = None;
            run.end(until);
            json!(run)["stopped"].clone()
        };
        let mut run = SwarmReport::new("r", Until::Idle);
        let ended = |run: &mut SwarmReport, by: &str, turns: &[&str], is_complete| {
            assert_eq!(stopped(run, Until::Idle), json!({"by": by, "turns": turns}));
            assert_eq!(run.is_complete(), is_complete);
        };
        run.take(CycleResult::Idle { trigger: "t1".into(), is_unaddressed: false, why: None });
        ended(&mut run, "idle", &[], true);
        run.take(CycleResult::Idle { trigger: "t2".into(), is_unaddressed: true, why: None });
        ended(&mut run, "nobody", &["t2"], true);
        run.take(CycleResult::Guarded { trigger: "t3".into(), why: "a chain of 20".to_owned() });
        ended(&mut run, "guard", &["t3"], false);
        assert_eq!(json!(run)["passed"], json!([{"trigger": "t3", "why": "a chain of 20"}]));
        run.take(CycleResult::BudgetExhausted { trigger: "t4".into() });
        ended(&mut run, "budget", &["t4"], false);
        run.is_interrupted = true;
        run.interrupted = Some(InterruptedTurn { trigger: "t5".to_owned(), unheard: vec!["ada".to_owned()] });
        ended(&mut run, "person", &["t5"], false);
        let mut once = SwarmReport::new("r", Until::Once);
        once.take(CycleResult::Asked { trigger: "t".into(), appended: Vec::new(), failed: Vec::new() });
        assert_eq!(stopped(&mut once, Until::Once), Json::Null);
    }
}
