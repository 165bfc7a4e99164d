//! What was refused, and who gave nothing, in words. Nothing of the former is ever left out.

use std::collections::BTreeMap;

use super::super::paint::one_line;
use super::super::wording::{status, truncate};
use super::phrases::names;
use quorate::service::convene::report::{Report, Violation};

/// How much of an excerpt or a reason is shown.
const WORDS: usize = 240;
/// How many members who lack an answer for the same reason are named.
const NAMED: usize = 40;

/// Something that was refused.
pub(super) struct Rejection {
    /// What it would have become, and whose words it is.
    pub(super) what: String,
    /// What refuses it.
    pub(super) why: String,
    /// The words.
    pub(super) excerpt: Option<String>,
}

/// Everything that was refused, in order.
pub(super) fn rejections(report: &Report) -> Vec<Rejection> {
    report.violations.iter().map(describe).collect()
}

fn describe(violation: &Violation) -> Rejection {
    let candidate = one_line(&violation.candidate);
    let what = match (&violation.member, &violation.what) {
        (Some(member), Some(what)) => format!("{candidate}: the {} of {}", one_line(what), one_line(member)),
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

/// Which layer of the matcher saw it, in words.
fn document(violation: &Violation) -> String {
    let Some(document) = &violation.document else { return String::new() };
    let seen = match &**document {
        "as-given" => "as it is given".to_owned(),
        "folded" => "once characters are folded".to_owned(),
        "regex-folded" => "by its pattern, once characters are folded".to_owned(),
        "regex" => "by its pattern".to_owned(),
        "unmarked" => "once markup is taken out".to_owned(),
        "skeleton" => "once lookalikes are replaced".to_owned(),
        "set-apart" => "once letters set apart are put together".to_owned(),
        "meaning" => "by meaning".to_owned(),
        other => return format!(" ({})", one_line(other)),
    };
    format!(" ({document}: {seen})", document = one_line(document))
}

/// The violation that refused a candidate, in a few words.
pub(super) fn reason_for(report: &Report, candidate: &str) -> Option<String> {
    report.violations.iter().find(|one| one.candidate == candidate).map(|one| self::describe(one).why)
}

/// Who gave no answer, by reason. Whose question was not asked at all is not among them.
pub(super) fn absences(report: &Report) -> Vec<(String, String)> {
    let mut reasons: Vec<String> = Vec::new();
    let mut of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for member in &report.members {
        for asked in member.consultations.iter().filter(|one| one.status != "answered") {
            let step = asked.invocation.split_once('/').map_or("", |(step, _)| step);
            let round =
                step.strip_prefix("round").map_or_else(String::new, |k| format!(", round {}", one_line(k)));
            let said = asked.message.as_deref().map(one_line).filter(|text| !text.is_empty());
            let said = said.map_or_else(String::new, |text| format!(": {}", truncate(&text, WORDS)));
            let reason = format!("{}{said}", status(&one_line(&asked.status)));
            let who = of.entry(reason.clone()).or_insert_with(|| {
                reasons.push(reason);
                Vec::new()
            });
            who.push(format!("{}{round}", one_line(&member.id)));
        }
    }
    let told = |reason: String| {
        let who: Vec<&str> = of.get(&reason).into_iter().flatten().map(String::as_str).collect();
        (names(&who, NAMED), reason)
    };
    reasons.into_iter().map(told).collect()
}

/// Notes, without those that say of something refused what stands above.
pub(super) fn notes(report: &Report) -> Vec<String> {
    let repeated = |note: &String| {
        report.violations.iter().any(|one| {
            note.starts_with(&format!("`{}` was dropped:", one.candidate))
                || (one.code == "out_of_reach"
                    && one
                        .member
                        .as_ref()
                        .is_some_and(|id| note.starts_with(&format!("a message of `{id}`"))))
        })
    };
    report.all_notes().into_iter().filter(|note| !repeated(note)).map(|note| one_line(&note)).collect()
}
