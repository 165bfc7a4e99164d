//! An assembly's run in words, for every format: its outcome, the reasons, the request, and the cost; refusals and missing
//! answers; the count of a vote; and a discussion by rounds. Refusals are never omitted.

use std::collections::BTreeMap;

use jiff::Timestamp;
use quorate::AssemblyVerdict;
use quorate::service::convene::report::{
    AppliedRule, Consultation, Decision, VoteCount, Fragment, Member, Message, Violation,
};
use quorate_manifest::assembly::Mode;
use quorate_protocol::Json;
use quorate_protocol::assembly::{AssemblyRequest, describe_operators};

use super::super::layout::{Paint, one_line, truncate};
use super::super::wording::{amount, cost, duration, list_limited, minute, status, undecided};

/// The most objecting members named.
const OBJECTING: usize = 40;
/// The longest shown reason for a missing answer, in characters.
const REASON: usize = 240;

/// The outcome as a word.
pub(super) fn verdict(report: &Decision) -> String {
    report.verdict.map(AssemblyVerdict::as_str).map_or_else(|| "OPEN".to_owned(), |word| one_line(word).to_uppercase())
}

pub(super) fn paint(report: &Decision) -> Paint {
    report.verdict.map(AssemblyVerdict::as_str).map_or(Paint::Absent, Paint::of_word)
}

/// The reason, in a sentence or two.
pub(super) fn because(report: &Decision) -> String {
    let Some(verdict) = report.verdict.map(AssemblyVerdict::as_str) else {
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
                format!("{first}{decided_by}{}: {}.", one_line(verdict), ratio_text(report, decision))
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
fn peer_outcome(report: &Decision) -> String {
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
fn without_objections(report: &Decision) -> &'static str {
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
pub(super) fn facts(report: &Decision) -> Vec<(&'static str, String)> {
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
pub(super) fn risk(report: &Decision) -> Option<String> {
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

pub(super) fn risk_paint(report: &Decision) -> Paint {
    let level = report.risk.as_ref().and_then(|risk| risk.level.as_deref());
    match (report.should_escalate, level) {
        (Some(true), _) | (_, Some("escalate")) => Paint::Bad,
        (_, Some("intervene")) => Paint::Fair,
        (_, Some("ok")) => Paint::Good,
        _ => Paint::Strong,
    }
}

/// The validity of a fragment.
pub(super) fn validity(report: &Decision, fragment: &Fragment) -> String {
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

pub(super) fn member<'r>(report: &'r Decision, id: &str) -> Option<&'r Member> {
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

/// The longest shown excerpt or reason, in characters.
const WORDS: usize = 240;
/// The most members named with the same reason.
const NAMED: usize = 40;

pub(super) struct Rejection {
    /// The refused candidate, and its author.
    pub(super) what: String,
    pub(super) why: String,
    pub(super) excerpt: Option<String>,
}

pub(super) fn rejections(report: &Decision) -> Vec<Rejection> {
    report.violations.iter().map(describe).collect()
}

fn describe(violation: &Violation) -> Rejection {
    let candidate = one_line(&violation.candidate);
    let what = match (&violation.member, &violation.what) {
        (Some(member), Some(what)) => {
            format!("{candidate}: the {} of {}", one_line(what), one_line(member))
        }
        (Some(member), None) => format!("{candidate}, by {}:", one_line(member)),
        (None, Some(what)) => format!("{candidate}: its {}", one_line(what)),
        (None, None) => candidate,
    };
    let why = match &*violation.code {
        "out_of_reach" => {
            let ids: Vec<&str> = violation.to.iter().map(String::as_str).collect();
            format!("{} is out of its reach", names(&ids, NAMED))
        }
        "lock_unchecked" => {
            let why = violation.why.as_deref().map_or_else(String::new, |why| format!(": {}", one_line(why)));
            format!("the locked traits could not be checked{why}")
        }
        _ => format!("touches the locked trait “{}”{}", or_unknown(&violation.locked), document(violation)),
    };
    let excerpt = violation.excerpt.as_deref().map(one_line).filter(|words| !words.is_empty());
    Rejection { what, why, excerpt: excerpt.map(|words| truncate(&words, WORDS)) }
}

fn or_unknown(text: &Option<String>) -> String {
    text.as_deref().map_or_else(|| "?".to_owned(), one_line)
}

/// The layer of the matcher that matched, in words.
fn document(violation: &Violation) -> String {
    let Some(document) = &violation.layer else { return String::new() };
    let seen = match &**document {
        "as-given" => "as written".to_owned(),
        "folded" => "once characters are folded".to_owned(),
        "regex-folded" => "by its pattern, once characters are folded".to_owned(),
        "regex" => "by its pattern".to_owned(),
        "unmarked" => "once markup is taken out".to_owned(),
        "skeleton" => "once lookalikes are replaced".to_owned(),
        "set-apart" => "once letters set apart are put together".to_owned(),
        "meaning" => "by meaning".to_owned(),
        layer => return format!(" ({})", one_line(layer)),
    };
    format!(" ({document}: {seen})", document = one_line(document))
}

/// The reason for a candidate's refusal, in a few words.
pub(super) fn reason_for(report: &Decision, candidate: &str) -> Option<String> {
    report
        .violations
        .iter()
        .find(|violation| violation.candidate == candidate)
        .map(|violation| describe(violation).why)
}

/// The members without an answer, by reason; unasked members excluded.
pub(super) fn absences(report: &Decision) -> Vec<(String, String)> {
    let mut reasons: Vec<String> = Vec::new();
    let mut members_by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for member in &report.members {
        for consultation in
            member.consultations.iter().filter(|consultation| consultation.status != "answered")
        {
            let step = consultation.invocation.split_once('/').map_or("", |(step, _)| step);
            let round =
                step.strip_prefix("round").map_or_else(String::new, |k| format!(", round {}", one_line(k)));
            let message = consultation.message.as_deref().map(one_line).filter(|text| !text.is_empty());
            let message = message.map_or_else(String::new, |text| format!(": {}", truncate(&text, WORDS)));
            let reason = format!("{}{message}", status(&one_line(&consultation.status)));
            let members = members_by_reason.entry(reason.clone()).or_insert_with(|| {
                reasons.push(reason);
                Vec::new()
            });
            members.push(format!("{}{round}", one_line(&member.id)));
        }
    }
    let group = |reason: String| {
        let members: Vec<&str> =
            members_by_reason.get(&reason).into_iter().flatten().map(String::as_str).collect();
        (names(&members, NAMED), reason)
    };
    reasons.into_iter().map(group).collect()
}

/// Notes, without those that repeat a refusal.
pub(super) fn notes_without_rejections(report: &Decision) -> Vec<String> {
    let repeated = |note: &String| {
        report.violations.iter().any(|violation| {
            let of = |verb| format!("`{}` was {verb}:", violation.candidate);
            let withheld = violation.member.as_deref().zip(violation.what.as_deref());
            note.starts_with(&of("dropped"))
                || note.starts_with(&of("withheld"))
                || withheld.is_some_and(|(id, what)| {
                    note.starts_with(&format!("the {what} of `{id}` was withheld:"))
                })
                || (violation.code == "out_of_reach"
                    && violation
                        .member
                        .as_ref()
                        .is_some_and(|id| note.starts_with(&format!("a message of `{id}`"))))
        })
    };
    report.all_notes().into_iter().filter(|note| !repeated(note)).map(|note| one_line(&note)).collect()
}

/// The most digits of a weight beside a bar.
const DIGITS: usize = 12;

/// One side of a vote.
pub(super) struct Side {
    /// `yes`, `no`, `abstain` or `no vote`.
    pub(super) word: &'static str,
    /// The sum of its weights.
    pub(super) weight: f64,
    /// The sum of its weights, and the number of its votes.
    pub(super) text: String,
    pub(super) paint: Option<Paint>,
}

/// The sides; abstentions and missing votes only if there are any.
pub(super) fn sides(decision: &VoteCount) -> Vec<Side> {
    let count =
        |words: &[&str]| decision.votes.iter().filter(|ballot| words.contains(&&*ballot.vote)).count();
    let side = |word, weight: f64, words: &[&str], paint| Side {
        word,
        weight,
        text: format!("{} ({})", truncate(&weight.to_string(), DIGITS), amount(count(words) as u64, "vote")),
        paint,
    };
    let mut all = vec![
        side("yes", decision.yes, &["yes"], Some(Paint::Good)),
        side("no", decision.no, &["no"], Some(Paint::Bad)),
    ];
    if count(&["abstain"]) > 0 {
        all.push(side("abstain", decision.abstain, &["abstain"], None));
    }
    let missing = count(&["missing", "cancelled"]);
    if missing > 0 {
        let weight = truncate(&decision.missing.to_string(), DIGITS);
        let text = format!("{weight} ({})", amount(missing as u64, "voter"));
        all.push(Side { word: "no vote", weight: decision.missing, text, paint: Some(Paint::Absent) });
    }
    all
}

/// The weight of all sides.
pub(super) fn total_weight(decision: &VoteCount) -> f64 {
    decision.yes + decision.no + decision.abstain + decision.missing
}

/// A string among a rule's parameters.
pub(super) fn param<'r>(report: &'r Decision, rule: &AppliedRule, key: &str) -> Option<&'r str> {
    report.declared_rule(&rule.id)?.params.get(key).and_then(Json::as_str)
}

/// `2.5 of 3 = 0.833, needs 0.66`.
pub(super) fn ratio_text(report: &Decision, decision: &VoteCount) -> String {
    let needs = report.threshold();
    let close = needs.as_ref().is_some_and(|needs| (needs.part - decision.ratio).abs() < 0.000_5);
    let rounded = if close { format!("{:.6}", decision.ratio) } else { format!("{:.3}", decision.ratio) };
    let rounded = rounded.trim_end_matches('0').trim_end_matches('.');
    let (yes, total) = (one_line(&decision.exact.yes), one_line(&decision.exact.total));
    let needs = needs.map_or_else(String::new, |needs| format!(", needs {}", one_line(&needs.text)));
    let equality = match rounded.parse::<f64>() == Ok(decision.ratio) && decision.ratio.to_string().len() < 8
    {
        true => "=",
        false => "≈",
    };
    format!("{yes} of {total} {equality} {rounded}{needs}")
}

const THREAD_NAMED: usize = 6;

pub(super) struct Round<'r> {
    pub(super) number: u64,
    /// In roster order, without silent and absent members.
    pub(super) turns: Vec<Turn<'r>>,
    /// Members that passed without a message.
    pub(super) silent: Vec<&'r str>,
    /// Members without an answer, each with its status.
    pub(super) absent: Vec<(&'r str, String)>,
}

/// A member's message in a round.
pub(super) struct Turn<'r> {
    pub(super) from: &'r str,
    /// `None` is every member in reach.
    pub(super) to: Option<Vec<String>>,
    pub(super) text: &'r str,
    pub(super) objects: bool,
    pub(super) passes: bool,
    /// Why it reached no member, or is not in the log.
    pub(super) kept_back: Option<String>,
}

impl Turn<'_> {
    pub(super) fn to(&self) -> String {
        match &self.to {
            None => "all".to_owned(),
            Some(ids) if ids.is_empty() => "nobody".to_owned(),
            Some(ids) => names(&ids.iter().map(String::as_str).collect::<Vec<_>>(), THREAD_NAMED),
        }
    }

    /// Whether its author objects or passes, in words.
    pub(super) fn annotations(&self) -> Vec<&'static str> {
        let flags = [(self.objects, "objects"), (self.passes, "passes")];
        flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word).collect()
    }
}

pub(super) fn rounds(report: &Decision) -> Vec<Round<'_>> {
    let mut rounds: BTreeMap<u64, Round<'_>> = BTreeMap::new();
    let delivered: BTreeMap<(u64, &str), &Message> =
        report.messages.iter().map(|message| ((message.round, &*message.from), message)).collect();
    for member in &report.members {
        // After a resume a new answer replaces the earlier one.
        let mut by_round: BTreeMap<u64, &Consultation> = BTreeMap::new();
        for consultation in &member.consultations {
            by_round.extend(number(&consultation.invocation).map(|number| (number, consultation)));
        }
        for (number, consultation) in by_round {
            let round = rounds.entry(number).or_insert_with(|| Round {
                number,
                turns: Vec::new(),
                silent: Vec::new(),
                absent: Vec::new(),
            });
            let id = &*member.id;
            match turn(report, number, id, consultation, delivered.get(&(number, id)).copied()) {
                Ok(Some(turn)) => round.turns.push(turn),
                Ok(None) => round.silent.push(id),
                Err(ended) => round.absent.push((id, ended)),
            }
        }
    }
    rounds.into_values().collect()
}

/// The round of an invocation `round<k>/<member>`.
fn number(invocation: &str) -> Option<u64> {
    invocation.strip_prefix("round")?.split_once('/')?.0.parse().ok()
}

/// A member's message; `None` if it only passed.
///
/// # Errors
/// The status of a consultation without an answer.
fn turn<'r>(
    report: &Decision,
    number: u64,
    id: &'r str,
    consultation: &'r Consultation,
    delivered: Option<&'r Message>,
) -> Result<Option<Turn<'r>>, String> {
    let Some(answer) = consultation.answer.as_ref().filter(|_| consultation.status == "answered") else {
        return Err(status(&one_line(&consultation.status)));
    };
    let flag = |key: &str| answer.get(key).and_then(Json::as_bool).unwrap_or_default();
    let text = answer.get("message").and_then(Json::as_str).unwrap_or_default();
    let (objects, passes) = (flag("objection"), flag("pass"));
    if delivered.is_none() && text.trim().is_empty() && !objects {
        return Ok(None);
    }
    let kept_back = match (delivered, &report.verdict) {
        (Some(_), _) | (None, None) => None,
        (None, Some(_)) if text.trim().is_empty() => None,
        (None, Some(_)) => Some(match reason_for(report, &format!("message/{number}/{id}")) {
            Some(reason) => format!("refused, not delivered: {reason}"),
            None => "not in the log: no rule collects it".to_owned(),
        }),
    };
    Ok(Some(Turn {
        from: id,
        to: delivered.map_or_else(|| addressees(answer.get("addressedTo")), |message| message.to.clone()),
        text: delivered.map_or(text, |message| &message.text),
        objects,
        passes,
        kept_back,
    }))
}

/// The addressees in an answer.
fn addressees(to: Option<&Json>) -> Option<Vec<String>> {
    let ids = match to? {
        Json::String(id) => vec![id.clone()],
        Json::Array(ids) => ids.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
        _ => return None,
    };
    (!ids.iter().any(|id| id == "*")).then_some(ids)
}
