//! Conversations: turns, coloured by speaker, and the summary of a runtime's run.

use std::collections::VecDeque;

use anstyle::{AnsiColor, Style};
use quorate_diagnostics::render::{Colour, TextOptions};
use quorate_kernel::clock::rfc3339;
use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::ledger::{Kind, Record};
use quorate_kernel::turn::{CycleResult, UnfinishedCycle};
use serde_json::{Map, Value, json};

use super::layout::indented;
use super::paint::{one_line, sanitize};
use quorate::service::runtime::Runtime;

/// The colours of speakers. Each name always has the same one.
const SPEAKER_COLOURS: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Green,
    AnsiColor::Yellow,
    AnsiColor::Magenta,
    AnsiColor::Blue,
    AnsiColor::BrightRed,
];

/// How many entries of an endless run are kept for its end.
const WINDOW: usize = 100;

/// The last entries, and the count of all. A run of months keeps only what it will show.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    most: usize,
    all: VecDeque<T>,
    count: usize,
}

impl<T> Recent<T> {
    fn new(limit: usize) -> Self {
        Recent { most: limit, all: VecDeque::new(), count: 0 }
    }

    fn is_empty(&self) -> bool {
        self.count == 0
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
pub(crate) enum Retention {
    /// Everything, for a run that ends when idle.
    All,
    /// The last entries, for a run that ends by interruption.
    Last,
}

/// The result of a runtime's run.
#[derive(Debug)]
pub(crate) struct RunSummary {
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
    pub(crate) fn new(retention: Retention) -> Self {
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

    pub(crate) fn take(&mut self, cycled: CycleResult) {
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
    pub(crate) fn interrupted(&mut self, unfinished: UnfinishedCycle) {
        self.asked += 1;
        self.appended.extend(unfinished.appended);
        let unanswered: Vec<String> = unfinished.unanswered.iter().map(ToString::to_string).collect();
        self.unheard = Some((unfinished.trigger.to_string(), unanswered))
            .filter(|(_, unanswered)| !unanswered.is_empty());
    }

    /// Whether every selected participant has answered.
    pub(crate) fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.undecided.is_empty() && self.spent.is_none() && !self.out_of_time
    }
}

pub(crate) fn turn(turn: &Turn, options: TextOptions) -> String {
    let name = one_line(&turn.participant);
    let (name, rest) = match options.colour {
        Colour::Off => (name, format!("{}  {}", turn.timestamp, turn.id)),
        Colour::On => {
            let voice = Style::new().bold().fg_color(Some(voice(&turn.participant).into()));
            let faint = Style::new().dimmed();
            let rest = format!("{faint}{}  {}{faint:#}", one_line(&turn.timestamp), one_line(&turn.id));
            (format!("{voice}{name}{voice:#}"), rest)
        }
    };
    format!("{name}  {rest}\n{}\n\n", indented(sanitize(&turn.content).trim_end(), 2).trim_end())
}

fn voice(name: &str) -> AnsiColor {
    let sum = name.bytes().fold(5_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
    SPEAKER_COLOURS[sum % SPEAKER_COLOURS.len()]
}

pub(crate) fn turn_json(turn: &Turn) -> Value {
    let mut json = json!({
        "id": &*turn.id,
        "participant": &*turn.participant,
        "timestamp": &*turn.timestamp,
        "content": &*turn.content,
    });
    if !turn.meta.is_empty() {
        json["meta"] = Value::Object(turn.meta.clone());
    }
    if let Some(stamp) = turn.stamp.as_ref().filter(|stamp| !stamp.trigger.is_empty()) {
        json["answers"] = json!(&*stamp.trigger);
    }
    json
}

/// A conversation as one JSON object.
pub(crate) fn log_json(runtime: &Runtime, turns: &[Turn]) -> String {
    let turns: Vec<Value> = turns.iter().map(turn_json).collect();
    format!("{:#}\n", json!({"runtime": runtime.id, "turns": turns}))
}

/// The records of a conversation, one line each.
pub(crate) fn records(records: &[Record]) -> String {
    records
        .iter()
        .map(|record| {
            let description = record
                .data
                .as_ref()
                .map_or_else(|| "erased".to_owned(), |data| describe_record(record, data));
            format!(
                "{:>5}  {}  {:<12}  {}\n",
                record.n,
                rfc3339(record.at_ms),
                one_line(&record.kind),
                one_line(&description)
            )
        })
        .collect()
}

/// A record in a few words.
fn describe_record(record: &Record, data: &Map<String, Value>) -> String {
    let text = |key: &str| data.get(key).and_then(Value::as_str);
    let all = |key: &str| data.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let word = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let mut words: Vec<String> = Vec::new();
    if record.is(Kind::Turn) {
        words.extend(text("differs").map(str::to_owned));
        words.extend(text("trigger").map(str::to_owned));
        let selected: Vec<&str> = all("selected").iter().filter_map(Value::as_str).collect();
        let selected = if selected.is_empty() { "no participant".to_owned() } else { selected.join(", ") };
        words.extend(data.contains_key("selected").then(|| format!("for {selected}")));
        words.extend(
            all("appended")
                .iter()
                .map(|turn| format!("{}: {}", word(turn, "participant"), word(turn, "turn"))),
        );
        words.extend(
            all("failed")
                .iter()
                .map(|failure| format!("{} failed: {}", word(failure, "participant"), word(failure, "why"))),
        );
        words.extend(text("why").map(str::to_owned));
        return words.join("; ");
    }
    words.extend(text("member").or(text("invocation")).map(str::to_owned));
    words.extend(text("executor").map(|executor| format!("by {executor}")));
    words.extend(text("status").map(str::to_owned));
    words.extend(text("message").or(text("error")).map(str::to_owned));
    words.join("  ")
}

/// The records of a conversation as one JSON object.
pub(crate) fn records_json(runtime: &Runtime, records: &[Record]) -> String {
    let records: Vec<Value> = records
        .iter()
        .map(|record| json!({"n": record.n, "at": rfc3339(record.at_ms), "kind": record.kind, "data": record.data}))
        .collect();
    format!("{:#}\n", json!({"runtime": runtime.id, "records": records}))
}

/// The summary of a run; `unanswered_printed` means that unanswered turns were printed before.
pub(crate) fn summary(run: &RunSummary, unanswered_printed: bool) -> String {
    let mut text = String::new();
    if !unanswered_printed {
        for (trigger, participant, why) in &run.failed.all {
            text.push_str(&format!(
                "{} has not answered {trigger}: {}\n",
                one_line(participant),
                one_line(why)
            ));
        }
        for (trigger, why) in run.passed.all.iter().chain(&run.undecided.all) {
            text.push_str(&format!("no participant answers {trigger}: {}\n", one_line(why)));
        }
    }
    if let Some(trigger) = &run.spent {
        text.push_str(&format!("{trigger} is still to be answered: the calls of this run are spent\n"));
    }
    if run.out_of_time {
        text.push_str("the time of this run is spent (`[budget] wall`); the next run continues\n");
    }
    if let Some((trigger, unanswered)) = &run.unheard {
        let unanswered = one_line(&unanswered.join(", "));
        text.push_str(&format!("interrupted: the next run asks {unanswered} again to answer {trigger}\n"));
    }
    text.push_str(&match (run.asked, run.appended.count) {
        (0, _) if run.idle == 0 && run.is_complete() => "nothing is new\n".to_owned(),
        (0, _) if run.passed.is_empty() && run.is_complete() => "nothing is to be answered\n".to_owned(),
        (_, 1) => "1 turn appended\n".to_owned(),
        (_, appended) => format!("{appended} turns appended\n"),
    });
    text
}

/// The summary of a run as one JSON object.
pub(crate) fn summary_json(runtime: &Runtime, run: &RunSummary) -> String {
    let appended: Vec<Value> = run.appended.all.iter().map(turn_json).collect();
    let failed = run.failed.all.iter();
    let failed = failed.map(
        |(trigger, participant, why)| json!({"trigger": trigger, "participant": participant, "why": why}),
    );
    let turns = |last: &Recent<(String, String)>| -> Vec<Value> {
        last.all.iter().map(|(trigger, why)| json!({"trigger": trigger, "why": why})).collect()
    };
    let interrupted = run
        .unheard
        .as_ref()
        .map(|(trigger, participant)| json!({"trigger": trigger, "unheard": participant}));
    let omitted = [
        ("appended", run.appended.omitted()),
        ("failed", run.failed.omitted()),
        ("passed", run.passed.omitted()),
        ("undecided", run.undecided.omitted()),
    ];
    let omitted: Map<String, Value> = omitted
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(key, count)| (key.to_owned(), json!(count)))
        .collect();
    let mut json = json!({
        "runtime": runtime.id,
        "asked": run.asked,
        "idle": run.idle,
        "appended": appended,
        "failed": failed.collect::<Vec<_>>(),
        "passed": turns(&run.passed),
        "undecided": turns(&run.undecided),
        "spent": run.spent,
        "over": run.out_of_time,
        "interrupted": interrupted,
    });
    if !omitted.is_empty() {
        json["omitted"] = Value::Object(omitted);
    }
    format!("{json:#}\n")
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
            assert!(summary(&all, true).ends_with("1000 turns appended\n") && !all.is_complete());
        }
    }
}
