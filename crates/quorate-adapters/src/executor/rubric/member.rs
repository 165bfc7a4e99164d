//! The rubric as a member of an assembly: it looks in what it is shown for what the member's own lists name.
//!
//! `member/items.rs` reads the lists, `member/subject.rs` the material, `member/search.rs` compares them by words. This
//! file makes the answer that the step asks for from what was found. Text of the material is never followed, only
//! compared; a member whose lists have nothing to do with it abstains.

mod items;
mod pattern;
mod search;
mod stance;
mod subject;

#[cfg(test)]
mod tests;

use crate::executor::rubric::member::stance::Stance;
use quorate_kernel::ports::executor::Failure;
use quorate_protocol::answers::Schema;
use quorate_protocol::answers::vote::Vote;
use quorate_protocol::{Json, Part, PartKind};
use serde_json::json;

use super::checks::Criteria;
use items::Item;
use search::{Finding, Search};
use subject::Subject;

/// How many quotes an answer gives.
const QUOTES: usize = 5;
/// How many findings a reason names, and how many items.
const NAMED: usize = 3;
/// Up to this severity an adviser suggests nothing.
const NOTHING_TO_DO: u8 = 2;
/// From this weight on a peer objects.
const OBJECTS: u8 = 5;
const NOTHING: &str = "Nothing that is listed was found, and nobody judged the content.";

/// What a member of an assembly is asked.
pub(super) struct Question<'a> {
    /// The step; of a peer's message `round<k>`.
    pub(super) step: &'a str,
    pub(super) role: &'a str,
    /// Its persona, where it has one.
    pub(super) persona: Option<&'a Json>,
    /// What it is shown.
    pub(super) parts: &'a [Part],
}

/// The answer to a question in one of the forms for members, a JSON object.
///
/// # Errors
/// There is nothing to judge among the parts, or the form is not for members.
pub(super) fn answer(
    form: Schema,
    question: &Question<'_>,
    criteria: &Criteria<'_>,
) -> Result<Json, Failure> {
    let subject =
        Subject::read(question.parts).ok_or_else(|| Failure::failed("there is nothing to judge"))?;
    let items = items::read(question.role, question.persona);
    let search = Search::run(&items, &subject, criteria);
    match form {
        Schema::Advice => Ok(advice(&search, question.parts)),
        Schema::Ballot => Ok(ballot(&search, &items, &subject)),
        Schema::Message => Ok(message(&search, question.step)),
        _ => Err(Failure::failed("the rubric gives no answer of this form as a member")),
    }
}

/// Advice (A2) of an adviser, or of a node of a hierarchy. A node passes on what a child found if that is graver.
fn advice(search: &Search<'_>, parts: &[Part]) -> Json {
    let severity = severity(&search.findings);
    if let Some(child) =
        gravest_child(parts).filter(|child| child["severity"].as_u64() > Some(severity.into()))
    {
        return child;
    }
    let concern = if search.findings.is_empty() { NOTHING.to_owned() } else { reason(&search.findings) };
    let suggestion =
        search.findings.first().filter(|_| severity > NOTHING_TO_DO).map(|first| instruction(first.item));
    json!({
        "severity": severity,
        "concern": concern,
        "evidence": quotes(&search.findings),
        "suggestion": suggestion.unwrap_or_default(),
    })
}

/// The weight of the heaviest item, 1 more if there are several places.
fn severity(findings: &[Finding<'_>]) -> u8 {
    let places: usize = findings.iter().map(|finding| finding.places.len()).sum();
    findings.first().map_or(0, |first| first.item.stance.weight() + u8::from(places > 1))
}

/// The gravest of the answers that a node's children have passed up, in the form of advice. What is not of that form
/// is left out.
fn gravest_child(parts: &[Part]) -> Option<Json> {
    let parts = parts.iter().filter(|part| part.kind == PartKind::ChildrenOutputs);
    let lists = parts.filter_map(|part| serde_json::from_str::<Vec<Json>>(&part.text).ok());
    let answers = lists.flatten().filter_map(|child| {
        let text = |key: &str| child.get(key).and_then(Json::as_str).unwrap_or_default();
        let quotes = child.get("evidence").and_then(Json::as_array).into_iter().flatten();
        let from = child.get("member").and_then(Json::as_str).unwrap_or("a report");
        Some(json!({
            "severity": child.get("severity")?.as_u64()?.min(10),
            "concern": format!("From {from}: {}", text("concern")),
            "evidence": quotes.filter(|quote| quote.is_string()).take(QUOTES).collect::<Vec<_>>(),
            "suggestion": text("suggestion"),
        }))
    });
    // Of equal ones the first: `max_by_key` would take the last.
    answers
        .reduce(|best, next| if next["severity"].as_u64() > best["severity"].as_u64() { next } else { best })
}

/// A vote (V2): no on a red line or a refused item, yes if the text has to do with what the member judges, else
/// abstain.
fn ballot(search: &Search<'_>, items: &[Item], subject: &Subject) -> Json {
    let (against, others): (Vec<_>, Vec<_>) =
        search.findings.iter().cloned().partition(|finding| finding.item.stance <= Stance::Refuses);
    let write = |vote: Vote, rationale: String, findings: &[Finding<'_>]| json!({"vote": vote.as_str(), "rationale": rationale, "evidence": quotes(findings)});
    if !against.is_empty() {
        return write(Vote::No, reason(&against), &against);
    }
    let name = subject.name;
    let own: Vec<Finding<'_>> =
        search.touched.iter().filter(|touch| !touch.item.stance.is_for_others()).cloned().collect();
    if own.is_empty() {
        let why = match search.touched.is_empty() {
            false => format!("{} Nothing else that is listed was found in {name}.", reason(&search.touched)),
            true if items.is_empty() => format!("No list says what to look for in {name}."),
            true => format!("Nothing that is listed was found in {name}: {}.", named(items.iter())),
        };
        return write(Vote::Abstain, format!("{why} Nobody judged the content."), &search.touched);
    }
    let mut why =
        format!("Nothing to refuse was found; {name} touches {}.", named(own.iter().map(|touch| touch.item)));
    if !others.is_empty() {
        why.push_str(&format!(" To be minded: {}", reason(&others)));
    }
    if let Some(question) = search.open.first() {
        why.push_str(&format!(" It leaves open: {}", question.phrase));
    }
    write(Vote::Yes, why, if others.is_empty() { &own } else { &others })
}

/// A peer's message (P3): in each round the next finding, then the questions that the topic leaves open, then a pass.
fn message(search: &Search<'_>, step: &str) -> Json {
    let round: usize = step.strip_prefix("round").and_then(|round| round.parse().ok()).unwrap_or(1);
    let findings = search.findings.iter().map(|finding| {
        let objects = finding.item.stance.weight() >= OBJECTS;
        let opening = if objects { "I object: " } else { "" };
        (format!("{opening}{} {}", reason(std::slice::from_ref(finding)), instruction(finding.item)), objects)
    });
    let questions = search.open.iter().map(|item| (format!("Still open: {}", item.phrase), false));
    let next = findings.chain(questions).nth(round.saturating_sub(1));
    let pass = next.is_none();
    let (text, objects) =
        next.unwrap_or_else(|| ("I have nothing to add, and nobody judged the content.".to_owned(), false));
    json!({"message": text, "addressedTo": "*", "objection": objects, "pass": pass})
}

/// What was found and where, as a sentence: `Line 9 of the proposal has “credentials in plain text”, a thing to refuse.`
fn reason(findings: &[Finding<'_>]) -> String {
    let one = |finding: &Finding<'_>| {
        let more = match finding.places.len() {
            0 | 1 => String::new(),
            places => format!(" (and {} more)", places - 1),
        };
        let place = finding.places.first().map_or("", |place| &place.name);
        format!("{place}{more} has “{}”, {}", finding.item.phrase, finding.item.stance.meaning())
    };
    let mut sentence = findings.iter().take(NAMED).map(one).collect::<Vec<_>>().join("; ");
    sentence.push('.');
    sentence
}

/// An instruction to an agent or author.
fn instruction(item: &Item) -> String {
    let phrase = &item.phrase;
    match item.stance {
        Stance::RedLine => format!("Stop because of this: {phrase}. Say so, and hand over to a person."),
        Stance::Refuses => format!(
            "Do not go on with this: {phrase}. Say plainly that it is off the table, and offer what is not."
        ),
        Stance::Redirects | Stance::Defers => {
            format!("Leave this to a specialist: {phrase}. Say so, and hand the question over.")
        }
        Stance::Watches | Stance::Asks => {
            format!("Before you go on, say what you make of this: {phrase}.")
        }
    }
}

fn quotes(findings: &[Finding<'_>]) -> Vec<String> {
    let mut quotes: Vec<String> = Vec::new();
    for place in findings.iter().flat_map(|finding| &finding.places) {
        if quotes.len() < QUOTES && !place.quote.is_empty() && !quotes.contains(&place.quote) {
            quotes.push(place.quote.clone());
        }
    }
    quotes
}

/// `“a”, “b” and 4 more`.
fn named<'i>(items: impl ExactSizeIterator<Item = &'i Item>) -> String {
    let more = items.len().saturating_sub(NAMED);
    let names: Vec<String> = items.take(NAMED).map(|item| format!("“{}”", item.phrase)).collect();
    if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
}
