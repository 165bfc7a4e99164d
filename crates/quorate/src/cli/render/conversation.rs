//! Conversations: turns, coloured by speaker, and what a run of a runtime came to.

use anstyle::{AnsiColor, Style};
use quorate_diagnostics::render::{Colour, Look};
use quorate_kernel::conversation::Turn;
use quorate_kernel::turn::Cycled;
use serde_json::{Value, json};

use super::layout::indented;
use super::paint::{clean, line};
use crate::service::runtime::Runtime;

/// The colours of speakers. A name has the same one everywhere.
const VOICES: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Green,
    AnsiColor::Yellow,
    AnsiColor::Magenta,
    AnsiColor::Blue,
    AnsiColor::BrightRed,
];

/// What a run of a runtime came to.
#[derive(Debug, Default)]
pub struct Went {
    /// How many turns somebody was asked to answer.
    pub asked: usize,
    /// How many turns nobody answers.
    pub idle: usize,
    /// What was appended.
    pub appended: Vec<Turn>,
    /// Who has not spoken: the trigger, who, and why.
    pub failed: Vec<(String, String, String)>,
    /// Turns that were passed over, and why.
    pub passed: Vec<(String, String)>,
}

impl Went {
    /// Takes a cycle.
    pub fn take(&mut self, cycled: Cycled) {
        match cycled {
            Cycled::Asked { trigger, appended, failed } => {
                self.asked += 1;
                self.appended.extend(appended);
                let failed = failed.into_iter().map(|(who, why)| (trigger.to_string(), who.to_string(), why));
                self.failed.extend(failed);
            }
            Cycled::Idle { trigger, why } => {
                self.idle += 1;
                self.passed.extend(why.map(|why| (trigger.to_string(), why)));
            }
            Cycled::Nothing => {}
        }
    }
}

/// One turn.
pub fn turn(turn: &Turn, look: Look) -> String {
    let name = line(&turn.participant);
    let (name, rest) = match look.colour {
        Colour::Off => (name, format!("{}  {}", turn.timestamp, turn.id)),
        Colour::On => {
            let voice = Style::new().bold().fg_color(Some(voice(&turn.participant).into()));
            let faint = Style::new().dimmed();
            let rest = format!("{faint}{}  {}{faint:#}", line(&turn.timestamp), line(&turn.id));
            (format!("{voice}{name}{voice:#}"), rest)
        }
    };
    format!("{name}  {rest}\n{}\n\n", indented(clean(&turn.content).trim_end(), 2).trim_end())
}

fn voice(name: &str) -> AnsiColor {
    let sum = name.bytes().fold(5_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
    VOICES[sum % VOICES.len()]
}

/// One turn as JSON.
pub fn turn_json(turn: &Turn) -> Value {
    let mut json = json!({
        "id": &*turn.id,
        "participant": &*turn.participant,
        "timestamp": &*turn.timestamp,
        "content": &*turn.content,
    });
    if !turn.meta.is_empty() {
        json["meta"] = Value::Object(turn.meta.clone());
    }
    if let Some(stamp) = &turn.stamp {
        json["answers"] = json!(&*stamp.trigger);
    }
    json
}

/// A conversation as one JSON object.
pub fn log_json(runtime: &Runtime, turns: &[Turn]) -> String {
    let turns: Vec<Value> = turns.iter().map(turn_json).collect();
    format!("{:#}\n", json!({"runtime": runtime.id, "turns": turns}))
}

/// What a run came to, in a line or some.
pub fn went(went: &Went) -> String {
    let mut text = String::new();
    for (trigger, who, why) in &went.failed {
        text.push_str(&format!("{} has not answered {trigger}: {}\n", line(who), line(why)));
    }
    for (trigger, why) in &went.passed {
        text.push_str(&format!("nobody answers {trigger}: {}\n", line(why)));
    }
    let turns = |count: usize| if count == 1 { "1 turn".to_owned() } else { format!("{count} turns") };
    text.push_str(&match (went.asked, went.idle) {
        (0, 0) => "nothing is new\n".to_owned(),
        (0, _) if went.passed.is_empty() => "nothing is to be answered\n".to_owned(),
        (_, idle) => {
            format!("{} appended; {} that nobody answers\n", turns(went.appended.len()), turns(idle))
        }
    });
    text
}

/// What a run came to, as one JSON object.
pub fn went_json(runtime: &Runtime, went: &Went) -> String {
    let appended: Vec<Value> = went.appended.iter().map(turn_json).collect();
    let failed = went.failed.iter();
    let failed = failed.map(|(on, who, why)| json!({"trigger": on, "participant": who, "why": why}));
    let passed = went.passed.iter().map(|(on, why)| json!({"trigger": on, "why": why}));
    let json = json!({
        "runtime": runtime.id,
        "asked": went.asked,
        "idle": went.idle,
        "appended": appended,
        "failed": failed.collect::<Vec<_>>(),
        "passed": passed.collect::<Vec<_>>(),
    });
    format!("{json:#}\n")
}
