//! An assembly for a test, its personas, and a script that answers for its members.

use serde_json::{Value, json};

use super::{CommandOutput, TestDir};

/// Writes `ASSEMBLY.md`, a persona for each member and a `quorate.toml` whose default executor is the script of
/// `answers.json`. `members` are ids with what else their entries say, in flow style.
pub fn write(place: &TestDir, mode: &str, members: &[(&str, &str)], more: &str) {
    let mut text = format!(
        "---\nschema: assembly.workspace/v1\nname: board\ntitle: Board\ndescription: Decides.\nversion: 1.0.0\n\
         mode: {mode}\nmembers:\n"
    );
    for (id, also) in members {
        let comma = if also.is_empty() { "" } else { ", " };
        text.push_str(&format!("  - {{id: {id}, persona: ws://personas/{id}, role: {id}{comma}{also}}}\n"));
        place.write(
            &format!("personas/{id}/PERSONA.md"),
            format!(
                "---\nschema: persona/v1\nname: {id}\ntitle: {id}\ndescription: Sits here.\nversion: 1.0.0\n---\n\nYou are {id}.\n"
            ),
        );
    }
    text.push_str(more);
    text.push_str("---\n");
    place.write("ASSEMBLY.md", text);
    place.write(
        "quorate.toml",
        "defaults.executor = \"script\"\n[executors.script]\nkind = \"script\"\npath = \"answers.json\"\n",
    );
}

/// What the members answer, by invocation, step or member.
pub fn answers(place: &TestDir, answers: &Value) {
    place.write("answers.json", answers.to_string());
}

/// A vote.
pub fn vote_answer(vote: &str) -> Value {
    json!({"vote": vote, "rationale": "Because."})
}

/// Advice, or an assessment.
pub fn advice(severity: u8, suggestion: &str) -> Value {
    json!({"severity": severity, "concern": format!("concern {severity}"), "evidence": ["here"], "suggestion": suggestion})
}

/// A message to everybody.
pub fn message(text: &str) -> Value {
    json!({"message": text})
}

/// Convenes on `subject.md`, which it writes; gives what was printed.
pub fn convene(place: &TestDir, flag: &str, more: &[&str]) -> CommandOutput {
    place.write("subject.md", "# A new region\n\nResolution: open it.\n");
    let mut arguments = vec!["convene", "ASSEMBLY.md", flag, "subject.md", "--format", "json"];
    arguments.extend(more);
    place.run(&arguments)
}
