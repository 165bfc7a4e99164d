//! The rows of members: a deliberator's answers with the changes between rounds, each deliberator's own requests besides
//! findings with a place, and each member's executor and usage.

use quorate::service::member_usage::MemberUsage;
use quorate::service::report::{Answer, Deliberator, Review};
use quorate_protocol::Json;
use quorate_protocol::answers::deliberator::{Answer as Position, Round, issues};

use super::layout::{Paint, one_line, truncate};
use super::wording::{digit_groups, dollars, duration, list, status};

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
pub(super) fn row(report: &Review, deliberator: &Deliberator) -> Vec<Cell> {
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
pub(super) fn blocks(report: &Review, member: &str) -> bool {
    let deliberator = report.deliberators.iter().find(|deliberator| deliberator.id == member);
    deliberator.is_some_and(|deliberator| {
        ParsedDeliberator::of(report.rounds, deliberator)
            .counted()
            .is_some_and(|position| position.would_block)
    })
}

/// The first concession and the first escalation of each deliberator, and the number of further ones.
pub(super) fn reactions(report: &Review) -> Vec<(String, String)> {
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
pub(super) fn absences(report: &Review) -> Vec<(String, String)> {
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

/// The title of the table.
pub(super) const USAGE_TITLE: &str = "Who was asked";

/// The most rows; a larger assembly has the rest in its JSON.
const SHOWN: usize = 40;

/// A heading, and the text below it of a member's row.
type Column = (&'static str, fn(&MemberUsage) -> String);

/// The headings and rows of the table, without escapes. Columns that no member has a value for are left out. No rows
/// where no member was asked.
pub(super) fn usage_table(members: &[MemberUsage]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let columns: [Column; 9] = [
        ("member", |one| one_line(&one.member)),
        ("through", |one| one_line(&one.executor)),
        ("model", model),
        ("calls", |one| digit_groups(one.spent.calls.into())),
        ("tokens in", |one| count(one.spent.usage.tokens_in)),
        ("cached", |one| count(one.spent.usage.tokens_cached)),
        ("out", |one| count(one.spent.usage.tokens_out)),
        ("US$", |one| one.spent.usage.usd_nanos.map_or_else(String::new, dollars)),
        ("time", |one| duration(one.spent.took)),
    ];
    let shown = &members[..members.len().min(SHOWN)];
    let filled = columns.into_iter().filter(|(_, cell)| shown.iter().any(|one| !cell(one).is_empty()));
    let (headings, cells): (Vec<_>, Vec<_>) = filled.unzip();
    (headings, shown.iter().map(|one| cells.iter().map(|cell| cell(one)).collect()).collect())
}

/// How many members the table leaves out.
pub(super) fn usage_left_out(members: &[MemberUsage]) -> usize {
    members.len().saturating_sub(SHOWN)
}

/// The model that answered, and the one that was asked if that is another.
fn model(one: &MemberUsage) -> String {
    let answered = one.model.as_deref().map(one_line).unwrap_or_default();
    match &one.requested_model {
        Some(asked) => format!("{answered} (asked for {})", one_line(asked)),
        None => answered,
    }
}

/// Empty where it is not known.
fn count(tokens: Option<u64>) -> String {
    tokens.map_or_else(String::new, digit_groups)
}

/// The longest shown text, in characters.
const MAX_CHARS: usize = 600;

/// Member and request, in roster order. Rubric answers repeat their findings, so they have none.
pub(super) fn member_requests(report: &Review) -> Vec<(String, String)> {
    if report.is_by_rule() {
        return Vec::new();
    }
    report.deliberators.iter().flat_map(|deliberator| requests_of(report, deliberator)).collect()
}

fn requests_of(report: &Review, deliberator: &Deliberator) -> Vec<(String, String)> {
    // A text of the first answer is shown only if the second answer has none.
    let answers = [&deliberator.round2, &deliberator.round1];
    let text = |key: &str| answers.into_iter().find_map(|answer| text_field(answer, key));
    let brief = text("revision_brief").filter(|brief| {
        report.revision_brief.as_deref().is_none_or(|report_brief| !one_line(report_brief).contains(&**brief))
    });
    let listed = answers.into_iter().map(listed_issues).find(|all| !all.is_empty()).unwrap_or_default();
    let member = one_line(&deliberator.id);
    let mut all = Vec::new();
    all.extend(brief.map(|brief| (member.clone(), brief)));
    all.extend(listed.into_iter().map(|issue| (format!("{member}, issue"), issue)));
    all.extend(text("notes").map(|notes| (format!("{member}, notes"), notes)));
    all.into_iter().map(|(member, text)| (member, truncate(&text, MAX_CHARS))).collect()
}

fn text_field(answer: &Answer, key: &str) -> Option<String> {
    answer.field(key).and_then(Json::as_str).map(one_line).filter(|text| !text.is_empty())
}

fn listed_issues(answer: &Answer) -> Vec<String> {
    let answer = answer.answer.clone().map(Json::Object);
    answer.iter().flat_map(issues).map(|issue| one_line(&issue)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quorate_diagnostics::render::TextOptions;
    use quorate_kernel::attempts::Cost;
    use quorate_kernel::ports::executor::Usage;

    use super::super::fixture::ship;
    use super::super::{Extent, human, markdown};
    use super::*;

    fn usage(member: &str, executor: &str, model: Option<&str>, usage: Usage) -> MemberUsage {
        MemberUsage {
            member: member.to_owned(),
            executor: executor.to_owned(),
            kind: "llm".to_owned(),
            model: model.map(str::to_owned),
            requested_model: None,
            spent: Cost { calls: 2, usage, took: Duration::from_millis(12_345) },
        }
    }

    #[test]
    fn each_member_has_a_row_and_no_column_is_empty() {
        let paid = Usage {
            tokens_in: Some(12_040),
            tokens_cached: Some(8_000),
            tokens_out: Some(2_310),
            usd_nanos: Some(41_100_000),
            ..Usage::default()
        };
        let mut report = ship();
        report.members = vec![
            MemberUsage {
                requested_model: Some("large".to_owned()),
                ..usage("skeptic", "anthropic", Some("large-2026"), paid)
            },
            usage("evidence", "rubric", None, Usage::default()),
        ];
        let shown = human(&report, Extent::Full, TextOptions { width: 100, ..TextOptions::default() });
        let table = &shown[shown.find(USAGE_TITLE).expect("the table")..];
        insta::assert_snapshot!(table, @"
        Who was asked
          member    through    model                         calls  tokens in  cached  out    US$   time
          ────────────────────────────────────────────────────────────────────────────────────────────────
          skeptic   anthropic  large-2026 (asked for large)  2      12,040     8,000   2,310  0.05  12.3 s
          evidence  rubric                                   2                                      12.3 s
        ");
        let shown = markdown(&report, Extent::Full);
        assert!(shown.contains("| evidence | rubric |"), "{shown}");
        assert!(!human(&report, Extent::Screen, TextOptions::default()).contains(USAGE_TITLE));
        report.members.remove(0);
        let (headings, _) = super::usage_table(&report.members);
        assert_eq!(headings, ["member", "through", "calls", "time"]);
    }
}
