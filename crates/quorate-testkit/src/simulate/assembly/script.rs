//! The answers of simulated members of assemblies: a function of the seed, the invocation and the attempt.

use quorate_kernel::ports::executor::Invocation;
use quorate_protocol::answers::Schema;
use quorate_protocol::{Json, Name};
use serde_json::json;

use super::extensions::NEAR;
use super::pick;
use crate::rng::Rng;
use crate::scripted::Action;
use crate::simulate::script::number;

/// A member whose answers are replaced. `None` makes it fail.
#[derive(Debug, Clone)]
pub(super) struct Infection {
    pub(super) member: Name,
    pub(super) says: Option<Json>,
}

/// The action of a member.
pub(super) fn action(seed: u64, infection: Option<&Infection>, invocation: &Invocation) -> Action {
    if let Some(infection) = infection.filter(|infected| infected.member == invocation.member) {
        return infection.says.as_ref().map_or(Action::Fail(10), |says| Action::Say(says.to_string(), 10));
    }
    let mut rng = Rng::from_seed_and_name(seed, &format!("{}#{}", invocation.id, invocation.attempt));
    let rng = &mut rng;
    let delay = rng.below(400);
    match rng.below(100) {
        0..=79 => {
            let answer = answer(rng, invocation.answer_schema);
            Action::Say(decorate(rng, &answer), delay)
        }
        80..=82 => Action::Say("I would rather talk about something else.".to_owned(), delay),
        // Two different answers count as none.
        83..=85 => {
            let (first, second) =
                (answer(rng, invocation.answer_schema), answer(rng, invocation.answer_schema));
            Action::Say(format!("{first}\nor rather\n{second}"), delay)
        }
        86..=87 => Action::Say(r#"{"severity": "9", "vote": true, "message": 1}"#.to_owned(), delay),
        88 => Action::Say(String::new(), delay),
        89..=94 => Action::Fail(delay),
        _ => Action::Hang,
    }
}

/// Wraps an answer in text, as models sometimes do.
fn decorate(rng: &mut Rng, answer: &Json) -> String {
    if rng.percent(20) { format!("Here it is:\n```json\n{answer}\n```") } else { answer.to_string() }
}

const CLEAN: [&str; 4] = ["say less", "stay with the facts", "you agree too fast", ""];
const LOCKED: [&str; 4] =
    ["drop the warmth", "no ＷＡＲＭＴＨ, ever", "w*arm*th is out", "change the voice\nregister"];

fn text(rng: &mut Rng) -> String {
    match rng.below(100) {
        0..=7 => LOCKED[pick(rng, 4)].to_owned(),
        8..=10 => format!("be {NEAR}"),
        _ => CLEAN[pick(rng, 4)].to_owned(),
    }
}

fn answer(rng: &mut Rng, form: Schema) -> Json {
    match form {
        Schema::Ballot => {
            let vote = ["yes", "yes", "no", "abstain"][pick(rng, 4)];
            json!({"vote": vote, "rationale": text(rng), "evidence": []})
        }
        Schema::Message => {
            let addressees = match rng.below(5) {
                0 => json!([format!("m{}", rng.below(8))]),
                1 => json!([format!("m{}", rng.below(8)), "m0"]),
                2 => Json::Null,
                _ => json!("*"),
            };
            json!({
                "message": text(rng), "addressedTo": addressees,
                "objection": rng.percent(30), "pass": rng.percent(60),
            })
        }
        _ => {
            let severity = number(rng, 10);
            let evidence: Vec<String> = (0..rng.below(3)).map(|_| text(rng)).collect();
            json!({"severity": severity, "concern": text(rng), "evidence": evidence, "suggestion": text(rng)})
        }
    }
}
