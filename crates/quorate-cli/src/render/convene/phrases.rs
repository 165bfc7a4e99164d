//! An assembly's run in words, for every format: its outcome, the reasons, the request, and the cost.

use jiff::Timestamp;
use quorate_manifest::assembly::Mode;
use quorate_protocol::Json;
use quorate_protocol::assembly::{AssemblyRequest, describe_operators};

use super::super::paint::{Paint, one_line};
use super::super::wording::{amount, cost, duration, list_limited, minute, status, truncate, undecided};
use super::count;
use quorate::service::convene::report::{Fragment, Member, Report};

/// The most objecting members named.
const OBJECTING: usize = 40;
/// The longest shown reason for a missing answer, in characters.
const REASON: usize = 240;

/// The outcome as a word.
pub(super) fn verdict(report: &Report) -> String {
    report.verdict.as_deref().map_or_else(|| "OPEN".to_owned(), |word| one_line(word).to_uppercase())
}

pub(super) fn paint(report: &Report) -> Paint {
    report.verdict.as_deref().map_or(Paint::Absent, Paint::of_word)
}

/// The reason, in a sentence or two.
pub(super) fn because(report: &Report) -> String {
    let Some(verdict) = report.verdict.as_deref() else {
        return undecided(&report.run, report.imported, report.queued);
    };
    if let Some(because) = &report.because {
        let code = report.code.as_deref().map_or_else(String::new, |code| format!(" ({})", one_line(code)));
        return format!("{}{code}.", capital(one_line(because).trim_end_matches('.')));
    }
    match report.mode {
        Mode::Voting => match &report.decision {
            Some(decision) => {
                let rule = report.deciding_rule();
                let decided_by = rule.map_or_else(String::new, |rule| {
                    format!("{} ({}) decides ", one_line(&rule.id), one_line(&rule.kind))
                });
                let warnings = report.class_warnings().into_iter();
                let first: String = warnings.map(|text| format!("{} ", one_line(&text))).collect();
                format!("{first}{decided_by}{}: {}.", one_line(verdict), count::ratio_text(report, decision))
            }
            None => String::new(),
        },
        Mode::Advisory => {
            let ends = if report.terminal { "; a terminal rule ended the synthesis" } else { "" };
            match report.fragments.len() as u64 {
                0 => format!("No guidance{ends}."),
                fragments => format!("{} of guidance{ends}.", amount(fragments, "fragment")),
            }
        }
        Mode::Peer => peer_outcome(report),
        Mode::Hierarchy => match &report.rollup {
            Some(rollup) => format!("The root passes up severity {}.", rollup.severity),
            None => "The root passes up nothing.".to_owned(),
        },
    }
}

/// The length of a discussion, and what ended it.
fn peer_outcome(report: &Report) -> String {
    let Some((rounds, ended_by)) = &report.rounds else { return String::new() };
    let ended = match &**ended_by {
        "no-new-objections" => without_objections(report).to_owned(),
        "all-pass" => "everybody passes".to_owned(),
        "max-rounds" => "the round limit was reached".to_owned(),
        "termination-rule" => "the termination rule ended it".to_owned(),
        "no_answer" => "no member answered".to_owned(),
        reason => one_line(reason),
    };
    let ids: Vec<&str> = report.objecting.iter().map(String::as_str).collect();
    let objecting = match ids.len() {
        0 => String::new(),
        1 => format!(" {} still objects.", names(&ids, OBJECTING)),
        _ => format!(" {} still object.", names(&ids, OBJECTING)),
    };
    let unanswered = report.objections.iter().filter(|objection| !objection.answered);
    let ids: Vec<&str> = unanswered.map(|objection| objection.member.as_str()).collect();
    let unanswered = match ids.is_empty() {
        true => String::new(),
        false => format!(" No reply reached {} after objecting.", names(&ids, OBJECTING)),
    };
    format!(
        "{}, then {ended}; {}.{objecting}{unanswered}",
        amount(*rounds, "round"),
        amount(report.messages.len() as u64, "message")
    )
}

/// The meaning of a round without new objections: no member objects any more only if every objection was answered and
/// withdrawn.
fn without_objections(report: &Report) -> &'static str {
    let all = &report.objections;
    match !all.is_empty() && all.iter().all(|objection| objection.taken_back && objection.answered) {
        true => "no further objections",
        false => "no new objections",
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The facts about the run, each with a label.
pub(super) fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let model_note = match &report.recorded {
        Some(recorded) => format!(" ({})", recorded.to_lowercase()),
        None if report.model_asked => String::new(),
        None => " (no model was asked)".to_owned(),
    };
    let mut spent = format!("{}, {}", amount(u64::from(report.calls), "call"), duration(report.took));
    spent.push_str(&cost(&report.usage));
    let mut mode = request(report.mode, &report.request);
    if let Some(topology) = report.topology.as_deref().filter(|_| report.mode == Mode::Peer) {
        mode.push_str(&format!(", {}", one_line(topology)));
    }
    let mut facts = vec![
        ("run", format!("{}, {} UTC", one_line(&report.run), minute(report.opened_ms))),
        ("assembly", one_line(&report.assembly)),
        ("mode", mode),
        ("subject", subject(&report.subject)),
    ];
    facts.extend(risk(report).map(|risk| ("risk", risk)));
    if report.mode == Mode::Advisory {
        facts.push(("advice", one_line(&describe_operators(&report.operators))));
    }
    let executor = if report.executor.is_empty() { "none".to_owned() } else { one_line(&report.executor) };
    facts.push(("executor", format!("{executor}{model_note}, {spent}")));
    facts
}

pub(super) fn subject(subject: &str) -> String {
    if subject == "-" { "standard input".to_owned() } else { one_line(subject) }
}

/// The mode and the request.
pub(super) fn request(mode: Mode, request: &AssemblyRequest) -> String {
    let details = match request {
        AssemblyRequest::Advisory { phase, trigger, sentinel_first } => {
            let sentinels = if *sentinel_first { ", sentinels first" } else { "" };
            format!(", phase {}, trigger {}{sentinels}", one_line(phase), one_line(trigger))
        }
        AssemblyRequest::Voting { class: Some(class) } => format!(", class {}", one_line(class)),
        AssemblyRequest::Voting { class: None } => ", no class".to_owned(),
        AssemblyRequest::Peer { rounds: Some(rounds) } => {
            format!(", {} at most", amount(u64::from(*rounds), "round"))
        }
        AssemblyRequest::Peer { rounds: None } | AssemblyRequest::Hierarchy => String::new(),
    };
    format!("{}{details}", mode.as_str())
}

/// The level of risk, and whether to involve a person.
pub(super) fn risk(report: &Report) -> Option<String> {
    let risk = report.risk.as_ref();
    let level = risk
        .and_then(|risk| Some(format!("{} (severity {})", one_line(risk.level.as_deref()?), risk.severity)));
    let escalate = report.should_escalate == Some(true);
    match (level, escalate) {
        (Some(level), true) => Some(format!("{level}; requires human attention")),
        (None, true) => Some("unknown; requires human attention".to_owned()),
        (level, false) => level,
    }
}

pub(super) fn risk_paint(report: &Report) -> Paint {
    let level = report.risk.as_ref().and_then(|risk| risk.level.as_deref());
    match (report.should_escalate, level) {
        (Some(true), _) | (_, Some("escalate")) => Paint::Bad,
        (_, Some("intervene")) => Paint::Fair,
        (_, Some("ok")) => Paint::Good,
        _ => Paint::Strong,
    }
}

/// The validity of a fragment.
pub(super) fn validity(report: &Report, fragment: &Fragment) -> String {
    const HOUR_MS: i64 = 3_600_000;
    let Ok(expires) = fragment.expires.parse::<Timestamp>() else { return one_line(&fragment.expires) };
    let until = minute(expires.as_millisecond());
    let hours = expires.as_millisecond().saturating_sub(report.opened_ms) / HOUR_MS;
    let long = match u64::try_from(hours).unwrap_or_default() {
        hours @ 0..48 => amount(hours, "hour"),
        hours => amount(hours / 24, "day"),
    };
    format!("{long}, until {until} UTC")
}

pub(super) fn member<'r>(report: &'r Report, id: &str) -> Option<&'r Member> {
    report.members.iter().find(|member| member.id == *id)
}

/// A member's answer as an assessment.
pub(super) struct Assessment {
    pub(super) severity: u64,
    pub(super) concern: String,
    pub(super) suggestion: String,
    pub(super) evidence: usize,
}

/// A member's answer, if it is an assessment.
pub(super) fn assessment(member: &Member) -> Option<Assessment> {
    let answer = member.answer()?;
    let text = |key: &str| answer.get(key).and_then(Json::as_str).map(one_line).unwrap_or_default();
    Some(Assessment {
        severity: answer.get("severity")?.as_u64()?,
        concern: text("concern"),
        suggestion: text("suggestion"),
        evidence: answer.get("evidence").and_then(Json::as_array).map_or(0, Vec::len),
    })
}

/// The status of a member's last consultation, with its message.
pub(super) fn last_status(member: &Member) -> String {
    let message = member
        .consultations
        .last()
        .and_then(|consultation| consultation.message.as_deref())
        .map(one_line)
        .unwrap_or_default();
    let message = if message.is_empty() { message } else { format!(": {}", truncate(&message, REASON)) };
    format!("{}{message}", status(&one_line(&member.status)))
}

/// At most `most` foreign names, escaped.
pub(super) fn names(all: &[&str], most: usize) -> String {
    let names: Vec<String> = all.iter().map(|id| one_line(id)).collect();
    list_limited(&names.iter().map(String::as_str).collect::<Vec<_>>(), most)
}
