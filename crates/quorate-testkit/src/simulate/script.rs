//! What simulated members say: a function of the seed, the invocation and the attempt, so that a member who is asked
//! again after a crash says the same.

use quorate_kernel::ports::executor::Invocation;
use quorate_protocol::Json;
use serde_json::json;

use crate::rng::Rng;
use crate::scripted::Action;

/// An integer from 1 to `most`, as people and models write it: also with a point, which is the same number to JSON Schema
/// and another kind of number to whoever reads it before it is recorded (X10).
pub(super) fn number(chance: &mut Rng, most: u32) -> Json {
    let number = u32::try_from(chance.below(u64::from(most))).unwrap_or(0) + 1;
    if chance.percent(40) { json!(f64::from(number)) } else { json!(number) }
}

/// What the member does.
pub(super) fn action(seed: u64, invocation: &Invocation) -> Action {
    let mut chance = Rng::from_seed_and_name(seed, &format!("{}#{}", invocation.id, invocation.attempt));
    let delay = chance.below(400);
    match chance.below(100) {
        0..=69 => Action::Say(answer(&mut chance, invocation), delay),
        70..=76 => Action::Say("I would rather talk about something else.".to_owned(), delay),
        77..=81 => Action::Say(r#"{"would_block": "true", "irreducible": "false"}"#.to_owned(), delay),
        82..=84 => Action::Say(String::new(), delay),
        85..=92 => Action::Fail(delay),
        _ => Action::Hang,
    }
}

fn answer(chance: &mut Rng, invocation: &Invocation) -> String {
    if &*invocation.step == "adjudicate" {
        let verdict = ["SHIP", "REVISE", "HOLD", "ship"][usize::try_from(chance.below(4)).unwrap_or(0)];
        return json!({"verdict": verdict, "reasoning": "weighed", "revision_brief": "less certainty"})
            .to_string();
    }
    let block = chance.percent(40);
    let quote = if chance.percent(70) { "always the fastest" } else { "words that nobody wrote" };
    let answer = json!({
        "would_block": block,
        "irreducible": block && chance.percent(50),
        "score": number(chance, 5),
        "findings": [{"quote": quote, "issue": "says too much", "fix": "say less", "line": number(chance, 5)}],
    });
    if chance.percent(30) { format!("Here it is:\n```json\n{answer}\n```") } else { answer.to_string() }
}
