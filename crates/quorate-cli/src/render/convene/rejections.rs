//! Refusals and missing answers in words. Refusals are never omitted.

use std::collections::BTreeMap;

use super::super::paint::one_line;
use super::super::wording::{status, truncate};
use super::phrases::names;
use quorate::service::convene::report::{Report, Violation};

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

pub(super) fn rejections(report: &Report) -> Vec<Rejection> {
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
        "as-given" => "unchanged".to_owned(),
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
pub(super) fn reason_for(report: &Report, candidate: &str) -> Option<String> {
    report
        .violations
        .iter()
        .find(|violation| violation.candidate == candidate)
        .map(|violation| self::describe(violation).why)
}

/// The members without an answer, by reason; unasked members excluded.
pub(super) fn absences(report: &Report) -> Vec<(String, String)> {
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
pub(super) fn notes(report: &Report) -> Vec<String> {
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
