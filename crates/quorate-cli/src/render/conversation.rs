//! Conversations: turns, coloured by speaker, and the summary of a runtime's run.

use anstyle::{AnsiColor, Style};
use quorate::Turn;
use quorate::conversation::SwarmReport;
use quorate::runs::RunRecord;
use quorate_diagnostics::render::{Colour, TextOptions};
use serde_json::{Map, Value};

use super::layout::{indented, one_line, sanitize};

/// The colours of speakers. Each name always has the same one.
const SPEAKER_COLOURS: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Green,
    AnsiColor::Yellow,
    AnsiColor::Magenta,
    AnsiColor::Blue,
    AnsiColor::BrightRed,
];

pub(crate) fn turn(turn: &Turn, options: TextOptions) -> String {
    let origin = turn.origin().map(|origin| format!(", written by {origin}")).unwrap_or_default();
    let name = one_line(&format!("{}{origin}", turn.participant));
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

/// The records of a conversation, one line each.
pub(crate) fn records(records: &[RunRecord]) -> String {
    let line = |record: &RunRecord| {
        let words =
            record.data.as_ref().map_or_else(|| "erased".to_owned(), |data| words(&record.kind, data));
        format!("{:>5}  {}  {:<12}  {}\n", record.n, record.at, one_line(&record.kind), one_line(&words))
    };
    records.iter().map(line).collect()
}

/// A record in a few words.
fn words(kind: &str, data: &Map<String, Value>) -> String {
    let text = |key: &str| data.get(key).and_then(Value::as_str);
    let all = |key: &str| data.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let word = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let mut words: Vec<String> = Vec::new();
    if kind == "turn" {
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

/// The summary of a run; `unanswered_printed` means that unanswered turns were printed before.
pub(crate) fn summary(run: &SwarmReport, unanswered_printed: bool) -> String {
    let mut text = String::new();
    if !unanswered_printed {
        for failed in &run.failed {
            let (participant, why) = (one_line(&failed.participant), one_line(&failed.why));
            text.push_str(&format!("{participant} has not answered {}: {why}\n", failed.trigger));
        }
        for passed in run.passed.iter().chain(&run.undecided) {
            text.push_str(&format!("no participant answers {}: {}\n", passed.trigger, one_line(&passed.why)));
        }
    }
    if let Some(trigger) = &run.spent {
        text.push_str(&format!("{trigger} is unanswered: this run has no calls left\n"));
    }
    if run.over {
        text.push_str("this run has no time left (`[budget] wall`); the next run continues\n");
    }
    if let Some(turn) = &run.interrupted {
        let unheard = one_line(&turn.unheard.join(", "));
        text.push_str(&format!(
            "interrupted: the next run asks {unheard} again to answer {}\n",
            turn.trigger
        ));
    }
    text.push_str(&match (run.asked, run.appended_count()) {
        (0, _) if run.idle == 0 && run.is_complete() => "no new turns\n".to_owned(),
        (0, _) if run.passed.is_empty() && run.is_complete() => "nothing to answer\n".to_owned(),
        (_, 1) => "1 turn appended\n".to_owned(),
        (_, appended) => format!("{appended} turns appended\n"),
    });
    text
}
