//! Advice (A2): of an adviser on a conversation, of a node on a request and on what its children have passed up.

use quorate_protocol::Json;
use serde_json::json;

use super::assessment::Assessment;
use super::children::Child;
use super::subject::Subject;

/// Up to here nothing is to be done.
const NOTHING_TO_DO: u8 = 2;
/// What is said where there is nothing to say. It holds no word by which a rule knows a kind of concern.
const NOTHING: &str = "Nothing to raise.";
/// How many quotes an answer gives.
const QUOTES: usize = 5;

pub(super) fn answer(assessment: &Assessment<'_>, subject: &Subject<'_>, child: Option<Child>) -> Json {
    // Who finds nothing graver of its own passes up what came from below.
    if let Some(child) = child.filter(|child| child.severity > assessment.severity) {
        return taken_up(assessment, child);
    }
    let instruction = assessment.concerns.first().map(|concern| concern.instruction.as_str());
    let concern = assessment.concern().unwrap_or_else(|| NOTHING.to_owned());
    write(assessment.severity, concern, assessment.quotes(subject), instruction.unwrap_or_default())
}

fn taken_up(assessment: &Assessment<'_>, child: Child) -> Json {
    let from = child.id.map_or_else(|| "a report".to_owned(), |id| format!("`{id}`"));
    let said = child.concern.trim_end_matches('.');
    let own = assessment.concerns.first().map(|concern| format!(" Besides: {}.", concern.headline));
    let concern = format!("Taken up from {from}: {said}.{}", own.unwrap_or_default());
    let mut evidence = child.evidence;
    evidence.truncate(QUOTES);
    let suggestion = match (child.suggestion.is_empty(), assessment.concerns.first()) {
        (false, _) => child.suggestion,
        (true, Some(own)) => own.instruction.clone(),
        (true, None) => format!("Settle this before you go on: {said}."),
    };
    write(child.severity, concern, evidence, &suggestion)
}

fn write(severity: u8, concern: String, evidence: Vec<String>, suggestion: &str) -> Json {
    let suggestion = if severity > NOTHING_TO_DO { suggestion } else { "" };
    json!({"severity": severity, "concern": concern, "evidence": evidence, "suggestion": suggestion})
}
