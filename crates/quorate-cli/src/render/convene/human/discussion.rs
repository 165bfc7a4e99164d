//! A discussion as text for a terminal, by rounds. Messages for some of the members are indented.

use super::super::super::layout::{hanging, prose, wrap_prefixed};
use super::super::super::paint::{Paint, one_line};
use super::super::super::wording::{amount, truncate};
use super::super::phrases::names;
use super::super::thread::{self, Round, Turn};
use super::{heading, labelled};
use quorate::service::convene::report::Report;

/// The most lines of a message.
const LINES: usize = 16;
const SHOWN: usize = 150;
/// The most silent members named.
const NAMED: usize = 20;
/// The longest shown synthesis of an extension's rule, in characters.
const SYNTHESIS: usize = 4000;

pub(super) fn sections(report: &Report, width: usize) -> Vec<String> {
    let (mut all, mut remaining) = (Vec::new(), SHOWN);
    let rounds = thread::rounds(report);
    for (at, round) in rounds.iter().enumerate() {
        if remaining == 0 {
            let more = rounds[at..].iter().map(|later| later.turns.len()).sum::<usize>();
            let rounds = amount((rounds.len() - at) as u64, "more round");
            all.push(prose(
                &format!("… and {rounds} with {}{}", amount(more as u64, "message"), lists(report)),
                0,
                width,
            ));
            break;
        }
        all.push(one(report, round, remaining, width));
        remaining = remaining.saturating_sub(round.turns.len());
    }
    for (rule, synthesis) in &report.synthesis {
        let text = synthesis.as_str().map_or_else(|| synthesis.to_string(), str::to_owned);
        all.push(
            heading(&format!("Made by {}", one_line(rule))) + &prose(&truncate(&text, SYNTHESIS), 2, width),
        );
    }
    all
}

fn lists(report: &Report) -> String {
    format!(": `quorate show {} --format json` lists all.", one_line(&report.run))
}

fn one(report: &Report, round: &Round<'_>, remaining: usize, width: usize) -> String {
    let mut out = heading(&format!("Round {}", round.number));
    for turn in round.turns.iter().take(remaining) {
        out.push_str(&message_lines(turn, width));
    }
    if round.turns.len() > remaining {
        let more = amount((round.turns.len() - remaining) as u64, "more message");
        out.push_str(&prose(&format!("… and {more}{}", lists(report)), 2, width));
    }
    if !round.silent.is_empty() {
        out.push_str(&labelled("passed:", 7, &names(&round.silent, NAMED), 2, width));
    }
    for (status, members) in absent_by_status(round) {
        out.push_str(&hanging(&Paint::Absent.on(&format!("{status}:")), &names(&members, NAMED), 2, width));
    }
    out
}

/// The members without an answer, by status.
fn absent_by_status<'r>(round: &'r Round<'_>) -> Vec<(&'r str, Vec<&'r str>)> {
    let mut ends: Vec<(&str, Vec<&str>)> = Vec::new();
    for (member, status) in &round.absent {
        match ends.iter_mut().find(|(word, _)| word == status) {
            Some((_, all)) => all.push(member),
            None => ends.push((status, vec![member])),
        }
    }
    ends
}

/// A message: author, addressees and annotations, then the text after a vertical line.
fn message_lines(turn: &Turn<'_>, width: usize) -> String {
    let (arrow, indent) = if turn.to.is_some() { ("↳ ", 6) } else { ("", 2) };
    let annotations: Vec<String> =
        turn.annotations()
            .into_iter()
            .map(|annotation| {
                if annotation == "objects" { Paint::Fair.on(annotation) } else { Paint::Faint.on(annotation) }
            })
            .collect();
    let annotations =
        if annotations.is_empty() { String::new() } else { format!("  [{}]", annotations.join(", ")) };
    let head = format!("{arrow}{} → {}{annotations}", Paint::Strong.on(&one_line(turn.from)), turn.to());
    let gap = " ".repeat(indent);
    let mut out = wrap_prefixed(&gap, &gap, &head, usize::from(u8::MAX), width);
    let bar = format!("{gap}│ ");
    if !turn.text.trim().is_empty() {
        out.push_str(&wrap_prefixed(&bar, &bar, &one_line(turn.text), LINES, width));
    }
    if let Some(reason) = &turn.kept_back {
        out.push_str(&wrap_prefixed(
            &format!("{gap}× "),
            &format!("{gap}  "),
            reason,
            usize::from(u8::MAX),
            width,
        ));
    }
    out
}
