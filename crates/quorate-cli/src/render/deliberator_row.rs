//! A deliberator's row: what it answered in each round, what counts of it, and what changed in between.

use quorate_protocol::Json;
use quorate_protocol::answers::deliberator::{Answer as Position, Round};

use super::paint::{Paint, one_line};
use super::wording::{list, status, truncate};
use quorate::service::report::{Answer, Deliberator, Report};

/// Stands where there is nothing to say.
pub(super) const DASH: &str = "–";
/// How much of a concession or an escalation is shown.
const MAX_REACTION_CHARS: usize = 160;

/// Where an answer says how it was moved, and the word for it.
const REACTIONS: [(&str, &str); 2] = [("concessions", "concedes"), ("escalations", "escalates")];

/// A cell of the table, with what it means.
pub(super) struct Cell {
    /// The text, on one line and of no foreign marks.
    pub(super) text: String,
    /// What colour can say too.
    pub(super) paint: Option<Paint>,
}

/// The headings of the table.
pub(super) fn headings(rounds: u8) -> Vec<&'static str> {
    match rounds {
        1 => vec!["deliberator", "round 1", "score", "block", "irreducible"],
        _ => vec!["deliberator", "round 1", "round 2", "score", "block", "irreducible", "what changed"],
    }
}

/// A deliberator's cells, one for each heading.
pub(super) fn row(report: &Report, one: &Deliberator) -> Vec<Cell> {
    let seat = ParsedDeliberator::of(report.rounds, one);
    let mut cells = vec![
        Cell { text: one_line(&one.id), paint: Some(Paint::Strong) },
        answer_cell(&one.round1, seat.first.as_ref()),
    ];
    if report.rounds > 1 {
        cells.push(answer_cell(&one.round2, seat.second.as_ref()));
    }
    let counted = seat.counted();
    cells.push(plain(counted.and_then(|position| position.score).map_or_else(|| DASH.to_owned(), score)));
    cells.push(flag(counted.map(|position| position.would_block)));
    cells.push(flag(counted.map(|position| position.irreducible)));
    if one.ungrounded
        && let Some(cell) = cells.iter_mut().rev().nth(1)
    {
        cell.text.push_str(", ungrounded");
    }
    if report.rounds > 1 {
        cells.push(plain(seat.changes().join("; ")));
    }
    cells
}

/// Whether what counts of a deliberator is a block.
pub(super) fn blocks(report: &Report, member: &str) -> bool {
    let one = report.deliberators.iter().find(|one| one.id == member);
    one.is_some_and(|one| {
        ParsedDeliberator::of(report.rounds, one).counted().is_some_and(|position| position.would_block)
    })
}

/// The first concession and the first escalation of each, and how many more there are.
pub(super) fn reactions(report: &Report) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for one in &report.deliberators {
        for (key, verb) in REACTIONS {
            let said = reactions_of(&one.round2, key);
            let Some(first) = said.first() else { continue };
            let more = if said.len() > 1 { format!(" (and {} more)", said.len() - 1) } else { String::new() };
            all.push((
                format!("{} {verb}", one_line(&one.id)),
                format!("{}{more}", truncate(first, MAX_REACTION_CHARS)),
            ));
        }
    }
    all
}

/// Why answers are not there, where their records say more than the status. What several have in common is told once.
pub(super) fn absences(report: &Report) -> Vec<(String, String)> {
    let mut all: Vec<(Vec<String>, String)> = Vec::new();
    let mut note = |who: String, answer: &Answer| {
        let message = answer.message.as_deref().map(one_line).filter(|message| !message.is_empty());
        if let Some(message) = message.filter(|_| answer.status != "answered") {
            let what = format!("{}: {}", status(&answer.status), truncate(&message, 240));
            match all.iter_mut().find(|(_, told)| *told == what) {
                Some((names, _)) => names.push(who),
                None => all.push((vec![who], what)),
            }
        }
    };
    for one in &report.deliberators {
        note(format!("{}, round 1", one_line(&one.id)), &one.round1);
        note(format!("{}, round 2", one_line(&one.id)), &one.round2);
    }
    note("adjudicator".to_owned(), &report.adjudicator);
    let named = |names: Vec<String>| list(&names.iter().map(String::as_str).collect::<Vec<_>>());
    all.into_iter().map(|(names, what)| (named(names), what)).collect()
}

/// A deliberator's answers, read.
struct ParsedDeliberator<'r> {
    one: &'r Deliberator,
    rounds: u8,
    first: Option<Position>,
    second: Option<Position>,
}

impl<'r> ParsedDeliberator<'r> {
    fn of(rounds: u8, one: &'r Deliberator) -> ParsedDeliberator<'r> {
        let last = if rounds == 1 { Round::First } else { Round::Second };
        let read = |answer: &Answer, round| Position::read(round, &Json::Object(answer.answer.clone()?));
        ParsedDeliberator {
            one,
            rounds,
            first: read(&one.round1, Round::First),
            second: read(&one.round2, last),
        }
    }

    /// The answer that counts; while nothing is decided, the last one.
    fn counted(&self) -> Option<&Position> {
        match &*self.one.counted {
            "missing" => None,
            "round1" | "round1_block" => self.first.as_ref(),
            "round2" => self.second.as_ref(),
            _ => self.second.as_ref().or(self.first.as_ref()),
        }
    }

    fn changes(&self) -> Vec<String> {
        match (&*self.one.counted, &self.first, &self.second) {
            ("missing", ..) => vec!["missing".to_owned()],
            ("round1_block", ..) => vec!["counted by its round-1 block".to_owned()],
            (_, Some(first), Some(second)) => {
                let mut changes = position_changes(first, second);
                for (key, verb) in REACTIONS {
                    let count = reactions_of(&self.one.round2, key).len();
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

/// What a member says in its second answer about the others' first ones.
fn reactions_of(answer: &Answer, key: &str) -> Vec<String> {
    let all = match answer.field(key) {
        None => Vec::new(),
        Some(Json::Array(all)) => all.iter().map(gist).collect(),
        Some(one) => vec![gist(one)],
    };
    all.into_iter().filter(|text| !text.is_empty()).collect()
}

/// A text, or the first text of an object.
fn gist(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => one_line(text),
        Json::Object(object) => object.values().find_map(Json::as_str).map(one_line).unwrap_or_default(),
        other => one_line(&other.to_string()),
    }
}

fn answer_cell(answer: &Answer, position: Option<&Position>) -> Cell {
    let Some(position) = position else {
        let text = match &*answer.status {
            "not_asked" | "" => return plain(DASH.to_owned()),
            "answered" => "unreadable".to_owned(),
            other => status(&one_line(other)),
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
