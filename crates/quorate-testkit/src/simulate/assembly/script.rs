//! What simulated members of assemblies say: a function of the seed, the invocation and the attempt.

use quorate_kernel::ports::executor::Invocation;
use quorate_protocol::answers::Schema;
use quorate_protocol::{Json, Name};
use serde_json::json;

use super::extensions::NEAR;
use super::world::pick;
use crate::rng::Rng;
use crate::scripted::Action;
use crate::simulate::script::number;

/// A member who says something else than it would, whatever it is asked. `None` is that it fails.
#[derive(Debug, Clone)]
pub(super) struct Infection {
    pub(super) member: Name,
    pub(super) says: Option<Json>,
}

/// What the member does.
pub(super) fn action(seed: u64, infection: Option<&Infection>, invocation: &Invocation) -> Action {
    if let Some(infection) = infection.filter(|one| one.member == invocation.member) {
        return infection.says.as_ref().map_or(Action::Fail(10), |says| Action::Say(says.to_string(), 10));
    }
    let mut chance = Rng::from_seed_and_name(seed, &format!("{}#{}", invocation.id, invocation.attempt));
    let chance = &mut chance;
    let delay = chance.below(400);
    match chance.below(100) {
        0..=79 => {
            let answer = answer(chance, invocation.answer_schema);
            Action::Say(decorate(chance, &answer), delay)
        }
        80..=82 => Action::Say("I would rather talk about something else.".to_owned(), delay),
        // Two answers that differ are none.
        83..=85 => {
            let (one, other) =
                (answer(chance, invocation.answer_schema), answer(chance, invocation.answer_schema));
            Action::Say(format!("{one}\nor rather\n{other}"), delay)
        }
        86..=87 => Action::Say(r#"{"severity": "9", "vote": true, "message": 1}"#.to_owned(), delay),
        88 => Action::Say(String::new(), delay),
        89..=94 => Action::Fail(delay),
        _ => Action::Hang,
    }
}

/// As it is, or as models dress it.
fn decorate(chance: &mut Rng, answer: &Json) -> String {
    if chance.percent(20) { format!("Here it is:\n```json\n{answer}\n```") } else { answer.to_string() }
}

const CLEAN: [&str; 4] = ["say less", "stay with the facts", "you agree too fast", ""];
const LOCKED: [&str; 4] =
    ["drop the warmth", "no ＷＡＲＭＴＨ, ever", "w*arm*th is out", "change the voice\nregister"];

fn text(chance: &mut Rng) -> String {
    match chance.below(100) {
        0..=7 => LOCKED[pick(chance, 4)].to_owned(),
        8..=10 => format!("be {NEAR}"),
        _ => CLEAN[pick(chance, 4)].to_owned(),
    }
}

fn answer(chance: &mut Rng, form: Schema) -> Json {
    match form {
        Schema::Ballot => {
            let vote = ["yes", "yes", "no", "abstain"][pick(chance, 4)];
            json!({"vote": vote, "rationale": text(chance), "evidence": []})
        }
        Schema::Message => {
            let to = match chance.below(5) {
                0 => json!([format!("m{}", chance.below(8))]),
                1 => json!([format!("m{}", chance.below(8)), "m0"]),
                2 => Json::Null,
                _ => json!("*"),
            };
            json!({
                "message": text(chance), "addressedTo": to,
                "objection": chance.percent(30), "pass": chance.percent(60),
            })
        }
        _ => {
            let severity = number(chance, 10);
            let evidence: Vec<String> = (0..chance.below(3)).map(|_| text(chance)).collect();
            json!({"severity": severity, "concern": text(chance), "evidence": evidence, "suggestion": text(chance)})
        }
    }
}
