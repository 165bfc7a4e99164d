//! A deliberator's row: its answer in each round, the counted one, and the changes between rounds.

use quorate_protocol::Json;
use quorate_protocol::answers::deliberator::{Answer as Position, Round};

use super::paint::{Paint, one_line};
use super::wording::{list, status, truncate};
use quorate::service::report::{Answer, Deliberator, Report};

/// Stands for a missing value.
pub(super) const DASH: &str = "–";
/// The longest shown concession or escalation, in characters.
const MAX_REACTION_CHARS: usize = 160;

/// The keys of an answer's reactions, and their verbs.
const REACTIONS: [(&str, &str); 2] = [("concessions", "concedes"), ("escalations", "escalates")];

/// A cell of the table.
pub(super) struct Cell {
    /// On one line, without control characters.
    pub(super) text: String,
    /// The colour, which repeats what the text says.
    pub(super) paint: Option<Paint>,
}

pub(super) fn headings(rounds: u8) -> Vec<&'static str> {
    match rounds {
        1 => vec!["deliberator", "round 1", "score", "block", "irreducible"],
        _ => vec!["deliberator", "round 1", "round 2", "score", "block", "irreducible", "what changed"],
    }
}

/// A deliberator's cells, one for each heading.
pub(super) fn row(report: &Report, deliberator: &Deliberator) -> Vec<Cell> {
    let parsed = ParsedDeliberator::of(report.rounds, deliberator);
    let mut cells = vec![
        Cell { text: one_line(&deliberator.id), paint: Some(Paint::Strong) },
        answer_cell(&deliberator.round1, parsed.first.as_ref()),
    ];
    if report.rounds > 1 {
        cells.push(answer_cell(&deliberator.round2, parsed.second.as_ref()));
    }
    let counted = parsed.counted();
    cells.push(plain(counted.and_then(|position| position.score).map_or_else(|| DASH.to_owned(), score)));
    cells.push(flag(counted.map(|position| position.would_block)));
    cells.push(flag(counted.map(|position| position.irreducible)));
    if deliberator.ungrounded
        && let Some(cell) = cells.iter_mut().rev().nth(1)
    {
        cell.text.push_str(", ungrounded");
    }
    if report.rounds > 1 {
        cells.push(plain(parsed.changes().join("; ")));
    }
    cells
}

/// Whether the counted answer of a deliberator is a block.
pub(super) fn blocks(report: &Report, member: &str) -> bool {
    let deliberator = report.deliberators.iter().find(|deliberator| deliberator.id == member);
    deliberator.is_some_and(|deliberator| {
        ParsedDeliberator::of(report.rounds, deliberator)
            .counted()
            .is_some_and(|position| position.would_block)
    })
}

/// The first concession and the first escalation of each deliberator, and the number of further ones.
pub(super) fn reactions(report: &Report) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for deliberator in &report.deliberators {
        for (key, verb) in REACTIONS {
            let reactions = reactions_of(&deliberator.round2, key);
            let Some(first) = reactions.first() else { continue };
            let more = if reactions.len() > 1 {
                format!(" (and {} more)", reactions.len() - 1)
            } else {
                String::new()
            };
            all.push((
                format!("{} {verb}", one_line(&deliberator.id)),
                format!("{}{more}", truncate(first, MAX_REACTION_CHARS)),
            ));
        }
    }
    all
}

/// The reasons of missing answers that say more than the status. A reason that several share is listed once.
pub(super) fn absences(report: &Report) -> Vec<(String, String)> {
    let mut all: Vec<(Vec<String>, String)> = Vec::new();
    let mut note = |name: String, answer: &Answer| {
        let message = answer.message.as_deref().map(one_line).filter(|message| !message.is_empty());
        if let Some(message) = message.filter(|_| answer.status != "answered") {
            let reason = format!("{}: {}", status(&answer.status), truncate(&message, 240));
            match all.iter_mut().find(|(_, known)| *known == reason) {
                Some((names, _)) => names.push(name),
                None => all.push((vec![name], reason)),
            }
        }
    };
    for deliberator in &report.deliberators {
        note(format!("{}, round 1", one_line(&deliberator.id)), &deliberator.round1);
        note(format!("{}, round 2", one_line(&deliberator.id)), &deliberator.round2);
    }
    note("adjudicator".to_owned(), &report.adjudicator);
    let joined = |names: Vec<String>| list(&names.iter().map(String::as_str).collect::<Vec<_>>());
    all.into_iter().map(|(names, reason)| (joined(names), reason)).collect()
}

/// A deliberator with parsed answers.
struct ParsedDeliberator<'r> {
    deliberator: &'r Deliberator,
    rounds: u8,
    first: Option<Position>,
    second: Option<Position>,
}

impl<'r> ParsedDeliberator<'r> {
    fn of(rounds: u8, deliberator: &'r Deliberator) -> ParsedDeliberator<'r> {
        let last = if rounds == 1 { Round::First } else { Round::Second };
        let read = |answer: &Answer, round| Position::read(round, &Json::Object(answer.answer.clone()?));
        ParsedDeliberator {
            deliberator,
            rounds,
            first: read(&deliberator.round1, Round::First),
            second: read(&deliberator.round2, last),
        }
    }

    /// The counted answer; the last one while the run is undecided.
    fn counted(&self) -> Option<&Position> {
        match &*self.deliberator.counted {
            "missing" => None,
            "round1" | "round1_block" => self.first.as_ref(),
            "round2" => self.second.as_ref(),
            _ => self.second.as_ref().or(self.first.as_ref()),
        }
    }

    fn changes(&self) -> Vec<String> {
        match (&*self.deliberator.counted, &self.first, &self.second) {
            ("missing", ..) => vec!["missing".to_owned()],
            ("round1_block", ..) => vec!["counted by its round-1 block".to_owned()],
            (_, Some(first), Some(second)) => {
                let mut changes = position_changes(first, second);
                for (key, verb) in REACTIONS {
                    let count = reactions_of(&self.deliberator.round2, key).len();
                    changes.extend((count > 0).then(|| format!("{verb} {count}")));
                }
                if changes.is_empty() { vec!["nothing".to_owned()] } else { changes }
            }
            (_, None, Some(_)) if self.rounds > 1 => vec!["answered in round 2 alone".to_owned()],
            _ => vec![DASH.to_owned()],
        }
    }
}

fn position_changes(first: &Position, second: &Position) -> Vec<String> {
    let mut changes = Vec::new();
    if let (Some(before), Some(after)) = (first.verdict, second.verdict)
        && before != after
    {
        changes.push(format!("{} → {}", before.as_str(), after.as_str()));
    }
    if let (Some(before), Some(after)) = (first.score.map(score), second.score.map(score))
        && before != after
    {
        changes.push(format!("score {before} → {after}"));
    }
    match (first.would_block, second.would_block) {
        (false, true) => changes.push("now blocks".to_owned()),
        (true, false) => changes.push("no longer blocks".to_owned()),
        _ => {}
    }
    match (first.irreducible, second.irreducible) {
        (false, true) => changes.push("now irreducible".to_owned()),
        (true, false) if second.would_block => changes.push("no longer irreducible".to_owned()),
        _ => {}
    }
    changes
}

/// A member's reactions to the others' first answers.
fn reactions_of(answer: &Answer, key: &str) -> Vec<String> {
    let all = match answer.field(key) {
        None => Vec::new(),
        Some(Json::Array(all)) => all.iter().map(gist).collect(),
        Some(single) => vec![gist(single)],
    };
    all.into_iter().filter(|text| !text.is_empty()).collect()
}

/// A string, or the first string of an object.
fn gist(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => one_line(text),
        Json::Object(object) => object.values().find_map(Json::as_str).map(one_line).unwrap_or_default(),
        value => one_line(&value.to_string()),
    }
}

fn answer_cell(answer: &Answer, position: Option<&Position>) -> Cell {
    let Some(position) = position else {
        let text = match &*answer.status {
            "not_asked" | "" => return plain(DASH.to_owned()),
            "answered" => "unreadable".to_owned(),
            word => status(&one_line(word)),
        };
        return Cell { text, paint: Some(Paint::Absent) };
    };
    let block = if position.would_block { "blocks" } else { "passes" };
    match position.verdict {
        None => plain(block.to_owned()),
        Some(lean) => {
            let paint = Some(Paint::of_word(lean.as_str()));
            let text = if position.would_block {
                format!("{}, blocks", lean.as_str())
            } else {
                lean.as_str().to_owned()
            };
            Cell { text, paint }
        }
    }
}

fn flag(flag: Option<bool>) -> Cell {
    match flag {
        None => plain(DASH.to_owned()),
        Some(true) => Cell { text: "yes".to_owned(), paint: Some(Paint::Bad) },
        Some(false) => plain("no".to_owned()),
    }
}

fn plain(text: String) -> Cell {
    Cell { text, paint: None }
}

fn score(score: f64) -> String {
    format!("{score:.1}").trim_end_matches(".0").to_owned()
}
