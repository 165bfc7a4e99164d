//! A talk at a terminal, by rounds. What is for some of the members only is set in.

use super::super::super::layout::{hanging, prose, wrap_prefixed};
use super::super::super::paint::{Paint, one_line};
use super::super::super::wording::{amount, truncate};
use super::super::phrases::names;
use super::super::thread::{self, Round, Turn};
use super::{heading, labelled};
use quorate::service::convene::report::Report;

/// How many lines of a message are shown.
const LINES: usize = 16;
/// How many messages are shown.
const SHOWN: usize = 150;
/// How many are named of those who said nothing.
const NAMED: usize = 20;
/// How much of what a rule of the host's own made of the log is shown.
const SYNTHESIS: usize = 4000;

/// The sections of a talk.
pub(super) fn sections(report: &Report, width: usize) -> Vec<String> {
    let (mut all, mut left) = (Vec::new(), SHOWN);
    let rounds = thread::rounds(report);
    for (at, round) in rounds.iter().enumerate() {
        if left == 0 {
            let more = rounds[at..].iter().map(|one| one.turns.len()).sum::<usize>();
            let rounds = amount((rounds.len() - at) as u64, "more round");
            all.push(prose(
                &format!("… and {rounds} with {}{}", amount(more as u64, "message"), lists(report)),
                0,
                width,
            ));
            break;
        }
        all.push(one(report, round, left, width));
        left = left.saturating_sub(round.turns.len());
    }
    for (rule, made) in &report.synthesis {
        let text = made.as_str().map_or_else(|| made.to_string(), str::to_owned);
        all.push(
            heading(&format!("Made by {}", one_line(rule))) + &prose(&truncate(&text, SYNTHESIS), 2, width),
        );
    }
    all
}

fn lists(report: &Report) -> String {
    format!(": `quorate show {} --format json` lists all.", one_line(&report.run))
}

fn one(report: &Report, round: &Round<'_>, left: usize, width: usize) -> String {
    let mut out = heading(&format!("Round {}", round.number));
    for turn in round.turns.iter().take(left) {
        out.push_str(&message_lines(turn, width));
    }
    if round.turns.len() > left {
        let more = amount((round.turns.len() - left) as u64, "more message");
        out.push_str(&prose(&format!("… and {more}{}", lists(report)), 2, width));
    }
    if !round.silent.is_empty() {
        out.push_str(&labelled("passed:", 7, &names(&round.silent, NAMED), 2, width));
    }
    for (ended, who) in absent_by_status(round) {
        out.push_str(&hanging(&Paint::Absent.on(&format!("{ended}:")), &names(&who, NAMED), 2, width));
    }
    out
}

/// Those without an answer, by how their questions ended.
fn absent_by_status<'r>(round: &'r Round<'_>) -> Vec<(&'r str, Vec<&'r str>)> {
    let mut ends: Vec<(&str, Vec<&str>)> = Vec::new();
    for (who, ended) in &round.absent {
        match ends.iter_mut().find(|(word, _)| word == ended) {
            Some((_, all)) => all.push(who),
            None => ends.push((ended, vec![who])),
        }
    }
    ends
}

/// A message: who to whom and how, then the words behind a line.
fn message_lines(turn: &Turn<'_>, width: usize) -> String {
    let (arrow, indent) = if turn.to.is_some() { ("↳ ", 6) } else { ("", 2) };
    let marks: Vec<String> = turn
        .annotations()
        .into_iter()
        .map(|mark| if mark == "objects" { Paint::Fair.on(mark) } else { Paint::Faint.on(mark) })
        .collect();
    let marks = if marks.is_empty() { String::new() } else { format!("  [{}]", marks.join(", ")) };
    let head = format!("{arrow}{} → {}{marks}", Paint::Strong.on(&one_line(turn.from)), turn.to());
    let gap = " ".repeat(indent);
    let mut out = wrap_prefixed(&gap, &gap, &head, usize::from(u8::MAX), width);
    let bar = format!("{gap}│ ");
    if !turn.text.trim().is_empty() {
        out.push_str(&wrap_prefixed(&bar, &bar, &one_line(turn.text), LINES, width));
    }
    if let Some(why) = &turn.kept_back {
        out.push_str(&wrap_prefixed(
            &format!("{gap}× "),
            &format!("{gap}  "),
            why,
            usize::from(u8::MAX),
            width,
        ));
    }
    out
}
