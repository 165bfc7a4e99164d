//! Conversations: turns, coloured by speaker, and what a run of a runtime came to.

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

/// The colours of speakers. A name has the same one everywhere.
const SPEAKER_COLOURS: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Green,
    AnsiColor::Yellow,
    AnsiColor::Magenta,
    AnsiColor::Blue,
    AnsiColor::BrightRed,
];

/// How much of a run without an end is kept to be shown at its end.
const WINDOW: usize = 100;

/// The last of what happened, and how much happened. A run that may go on for months keeps no more of it than it shows.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    most: usize,
    all: VecDeque<T>,
    count: usize,
}

impl<T> Recent<T> {
    fn new(most: usize) -> Self {
        Recent { most, all: VecDeque::new(), count: 0 }
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn omitted(&self) -> usize {
        self.count - self.all.len()
    }
}

impl<T> Extend<T> for Recent<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, more: I) {
        for one in more {
            self.count += 1;
            self.all.push_back(one);
            if self.all.len() > self.most {
                self.all.pop_front();
            }
        }
    }
}

/// What is kept of a run until its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retention {
    /// Everything: it ends when nothing is left to do.
    All,
    /// The last of everything: it ends when it is interrupted.
    Last,
}

/// What a run of a runtime came to.
#[derive(Debug)]
pub(crate) struct RunSummary {
    /// How many turns somebody was asked to answer.
    pub asked: usize,
    /// How many turns nobody answers.
    pub idle: usize,
    /// What was appended.
    pub appended: Recent<Turn>,
    /// Who has not spoken: the trigger, who, and why.
    pub failed: Recent<(String, String, String)>,
    /// Turns that were passed over, and why.
    pub passed: Recent<(String, String)>,
    /// Turns of which could not be said who answers them, and why.
    pub undecided: Recent<(String, String)>,
    /// The turn for which no calls were left.
    pub spent: Option<String>,
    /// Whether the time that it had was over.
    pub out_of_time: bool,
    /// The turn that was being answered when it was interrupted, and who had not answered.
    pub unheard: Option<(String, Vec<String>)>,
}

impl RunSummary {
    /// Nothing so far.
    pub(crate) fn new(keeps: Retention) -> Self {
        let most = match keeps {
            Retention::All => usize::MAX,
            Retention::Last => WINDOW,
        };
        RunSummary {
            asked: 0,
            idle: 0,
            appended: Recent::new(most),
            failed: Recent::new(most),
            passed: Recent::new(most),
            undecided: Recent::new(most),
            spent: None,
            out_of_time: false,
            unheard: None,
        }
    }

    /// Takes a cycle.
    pub(crate) fn take(&mut self, cycled: CycleResult) {
        match cycled {
            CycleResult::Asked { trigger, appended, failed } => {
                self.asked += 1;
                self.appended.extend(appended);
                let failed = failed.into_iter().map(|(who, why)| (trigger.to_string(), who.to_string(), why));
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

    /// Takes what an interrupted cycle has left.
    pub(crate) fn interrupted(&mut self, left: UnfinishedCycle) {
        self.asked += 1;
        self.appended.extend(left.appended);
        let unheard: Vec<String> = left.unanswered.iter().map(ToString::to_string).collect();
        self.unheard = Some((left.trigger.to_string(), unheard)).filter(|(_, unheard)| !unheard.is_empty());
    }

    /// Whether whoever was to answer has answered.
    pub(crate) fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.undecided.is_empty() && self.spent.is_none() && !self.out_of_time
    }
}

/// One turn.
pub(crate) fn turn(turn: &Turn, look: TextOptions) -> String {
    let name = one_line(&turn.participant);
    let (name, rest) = match look.colour {
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

/// One turn as JSON.
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

/// What is recorded of a conversation, a line for each record.
pub(crate) fn records(records: &[Record]) -> String {
    records
        .iter()
        .map(|record| {
            let what = record
                .data
                .as_ref()
                .map_or_else(|| "erased".to_owned(), |data| describe_record(record, data));
            format!(
                "{:>5}  {}  {:<12}  {}\n",
                record.n,
                rfc3339(record.at_ms),
                one_line(&record.kind),
                one_line(&what)
            )
        })
        .collect()
}

/// A record in some words.
fn describe_record(record: &Record, data: &Map<String, Value>) -> String {
    let text = |key: &str| data.get(key).and_then(Value::as_str);
    let all = |key: &str| data.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let word = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let mut words: Vec<String> = Vec::new();
    if record.is(Kind::Turn) {
        words.extend(text("differs").map(str::to_owned));
        words.extend(text("trigger").map(str::to_owned));
        let asked: Vec<&str> = all("selected").iter().filter_map(Value::as_str).collect();
        let asked = if asked.is_empty() { "nobody".to_owned() } else { asked.join(", ") };
        words.extend(data.contains_key("selected").then(|| format!("for {asked}")));
        words.extend(
            all("appended").iter().map(|one| format!("{}: {}", word(one, "participant"), word(one, "turn"))),
        );
        words.extend(
            all("failed")
                .iter()
                .map(|one| format!("{} failed: {}", word(one, "participant"), word(one, "why"))),
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

/// What is recorded of a conversation as one JSON object.
pub(crate) fn records_json(runtime: &Runtime, records: &[Record]) -> String {
    let records: Vec<Value> = records
        .iter()
        .map(|one| json!({"n": one.n, "at": rfc3339(one.at_ms), "kind": one.kind, "data": one.data}))
        .collect();
    format!("{:#}\n", json!({"runtime": runtime.id, "records": records}))
}

/// What a run came to, in a line or some. `told` is what was not answered, as it happened.
pub(crate) fn summary(went: &RunSummary, told: bool) -> String {
    let mut text = String::new();
    if !told {
        for (trigger, who, why) in &went.failed.all {
            text.push_str(&format!("{} has not answered {trigger}: {}\n", one_line(who), one_line(why)));
        }
        for (trigger, why) in went.passed.all.iter().chain(&went.undecided.all) {
            text.push_str(&format!("nobody answers {trigger}: {}\n", one_line(why)));
        }
    }
    if let Some(trigger) = &went.spent {
        text.push_str(&format!("{trigger} is still to be answered: the calls of this run are spent\n"));
    }
    if went.out_of_time {
        text.push_str("the time of this run is spent (`[budget] wall`); the next run goes on\n");
    }
    if let Some((trigger, unheard)) = &went.unheard {
        let unheard = one_line(&unheard.join(", "));
        text.push_str(&format!("interrupted: the next run asks {unheard} again to answer {trigger}\n"));
    }
    text.push_str(&match (went.asked, went.appended.count) {
        (0, _) if went.idle == 0 && went.is_complete() => "nothing is new\n".to_owned(),
        (0, _) if went.passed.is_empty() && went.is_complete() => "nothing is to be answered\n".to_owned(),
        (_, 1) => "1 turn appended\n".to_owned(),
        (_, appended) => format!("{appended} turns appended\n"),
    });
    text
}

/// What a run came to, as one JSON object.
pub(crate) fn summary_json(runtime: &Runtime, went: &RunSummary) -> String {
    let appended: Vec<Value> = went.appended.all.iter().map(turn_json).collect();
    let failed = went.failed.all.iter();
    let failed = failed.map(|(on, who, why)| json!({"trigger": on, "participant": who, "why": why}));
    let turns = |last: &Recent<(String, String)>| -> Vec<Value> {
        last.all.iter().map(|(on, why)| json!({"trigger": on, "why": why})).collect()
    };
    let unheard = went.unheard.as_ref().map(|(on, who)| json!({"trigger": on, "unheard": who}));
    let omitted = [
        ("appended", went.appended.omitted()),
        ("failed", went.failed.omitted()),
        ("passed", went.passed.omitted()),
        ("undecided", went.undecided.omitted()),
    ];
    let omitted: Map<String, Value> = omitted
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(key, count)| (key.to_owned(), json!(count)))
        .collect();
    let mut json = json!({
        "runtime": runtime.id,
        "asked": went.asked,
        "idle": went.idle,
        "appended": appended,
        "failed": failed.collect::<Vec<_>>(),
        "passed": turns(&went.passed),
        "undecided": turns(&went.undecided),
        "spent": went.spent,
        "over": went.out_of_time,
        "interrupted": unheard,
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
        for (keeps, kept) in [(Retention::Last, WINDOW), (Retention::All, 1_000)] {
            let mut all = RunSummary::new(keeps);
            for at in 0..1_000 {
                let failed = vec![("bo".into(), "no".to_owned())];
                all.take(CycleResult::Asked { trigger: "t".into(), appended: vec![turn(at)], failed });
                all.take(CycleResult::Idle { trigger: "t".into(), why: Some("guard".to_owned()) });
                all.take(CycleResult::Undecided { trigger: "t".into(), why: "router".to_owned() });
            }
            let lengths = [all.failed.all.len(), all.passed.all.len(), all.undecided.all.len()];
            assert_eq!((all.appended.all.len(), lengths), (kept, [kept; 3]));
            assert_eq!((all.appended.omitted(), &*all.appended.all[kept - 1].id), (1_000 - kept, "t999"));
            assert!(summary(&all, true).ends_with("1000 turns appended\n") && !all.is_complete());
        }
    }
}
