//! A vote as text for a terminal: a bar for each side, the exact ratio, and all votes.

use super::super::super::layout::{columns_of, hanging, prose, table};
use super::super::super::paint::{Paint, one_line};
use super::super::super::wording::{amount, truncate};
use super::super::bars::{THRESHOLD_MARK, side};
use super::super::{count, phrases};
use super::vote::{RATIONALE, paint_vote};
use super::{heading, roster};
use quorate::service::convene::report::{Contribution, CountedVote, Decision, Report};

/// The longest shown text of a decision, in characters.
const TEXT: usize = 4000;
const SHOWN: usize = 60;
/// The most and the fewest cells of a bar.
const CELLS: (usize, usize) = (48, 10);
/// The width of the names of sides, with the gap.
const NAMES: usize = 9;

pub(super) fn sections(report: &Report, width: usize) -> Vec<String> {
    let Some(decision) = &report.decision else {
        return vec![roster::answers(report, width)];
    };
    vec![
        sole_decider(decision, width),
        tally(report, decision, width),
        votes(report, decision, width),
        text(decision, width),
    ]
}

/// The member that decided alone by a terminal rule, and its rationale.
fn sole_decider(decision: &Decision, width: usize) -> String {
    if decision.contribution.is_empty() {
        return String::new();
    }
    let entry = |contribution: &Contribution| {
        let text = format!(
            "{}: {}",
            one_line(&contribution.vote),
            truncate(&one_line(&contribution.rationale), RATIONALE)
        );
        hanging(&Paint::Strong.on(&one_line(&contribution.member)), &text, 2, width)
    };
    heading("Decided alone") + &decision.contribution.iter().take(SHOWN).map(entry).collect::<String>()
}

fn tally(report: &Report, decision: &Decision, width: usize) -> String {
    let full = count::total_weight(decision);
    if decision.votes.is_empty() || full <= 0.0 {
        return String::new();
    }
    let sides = count::sides(decision);
    let needs = report.threshold();
    let numbers = sides.iter().map(|side| columns_of(&side.text)).max().unwrap_or_default();
    let room = width.saturating_sub(2 + NAMES + 1 + 2 + numbers);
    // If a bar and its number do not fit on one line, the number goes below.
    let below = room < CELLS.1;
    let room = if below { width.saturating_sub(2 + NAMES + 1) } else { room };
    let cells = room.clamp(CELLS.1, CELLS.0);
    // The threshold is relative to the total of the ratio, the bars to the total of all sides.
    let total = decision.exact.total.parse::<f64>().unwrap_or(full);
    let mut out = heading("Tally");
    for vote_side in &sides {
        let part = needs.as_ref().filter(|_| vote_side.word == "yes").map(|needs| needs.part * total / full);
        let gap = if part.is_none() && needs.is_some() { " " } else { "" };
        let bar = side(vote_side.weight / full, part, vote_side.paint, cells);
        let number = if below {
            format!("\n  {:NAMES$}{}", "", vote_side.text)
        } else {
            format!("{gap}  {}", vote_side.text)
        };
        out.push_str(&format!("  {:<NAMES$}{bar}{number}\n", vote_side.word));
    }
    let mark = if needs.is_some() { format!(" ({THRESHOLD_MARK})") } else { String::new() };
    out + "\n" + &prose(&format!("{}{mark}", count::ratio_text(report, decision)), 2, width)
}

fn votes(report: &Report, decision: &Decision, width: usize) -> String {
    let selected = select_votes(&decision.votes);
    let row = |vote: &&CountedVote| {
        let member = phrases::member(report, &vote.member);
        let role = member.map_or_else(String::new, |member| one_line(&member.role));
        let answer = member.and_then(|member| member.answer());
        let rationale = answer.and_then(|answer| answer.get("rationale")?.as_str()).unwrap_or_default();
        let text = match &*vote.vote {
            "missing" | "cancelled" => member.map_or_else(String::new, phrases::last_status),
            _ => truncate(&one_line(vote.withheld.as_deref().unwrap_or(rationale)), RATIONALE),
        };
        vec![
            Paint::Strong.on(&one_line(&vote.member)),
            role,
            truncate(&one_line(&vote.weight), 12),
            paint_vote(&vote.vote),
            text,
        ]
    };
    let rows: Vec<Vec<String>> = selected.iter().map(row).collect();
    if rows.is_empty() {
        return roster::unasked(report, width);
    }
    let mut out = heading("Votes") + &table(&["member", "role", "weight", "vote", "why"], rows, 2, width);
    let more = decision.votes.len() - selected.len();
    if more > 0 {
        let text = format!(
            "… and {}: `quorate show {} --format json` lists all.",
            amount(more as u64, "more vote"),
            one_line(&report.run)
        );
        out.push_str(&prose(&text, 2, width));
    }
    out.push_str(&roster::unasked(report, width));
    out
}

/// Selects from many votes: missing ones, no and abstain before yes.
fn select_votes(votes: &[CountedVote]) -> Vec<&CountedVote> {
    let order = ["missing", "no", "abstain", "cancelled"];
    let mut places: Vec<usize> = (0..votes.len()).collect();
    places.sort_by_key(|at| order.iter().position(|word| *word == votes[*at].vote).unwrap_or(order.len()));
    places.truncate(SHOWN);
    places.sort_unstable();
    places.into_iter().map(|at| &votes[at]).collect()
}

fn text(decision: &Decision, width: usize) -> String {
    let Some(text) = &decision.text else { return String::new() };
    let lines: String = truncate(text, TEXT).lines().map(|line| prose(line, 2, width)).collect();
    heading("Decision") + &lines
}
