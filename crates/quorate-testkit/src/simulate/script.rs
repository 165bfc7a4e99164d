//! The answers of simulated members: a function of the seed, the invocation and the attempt, so that a member repeats its
//! answer after a crash.

use quorate_kernel::ports::executor::Invocation;
use quorate_protocol::Json;
use serde_json::json;

use crate::rng::Rng;
use crate::scripted::Action;

/// An integer from 1 to `most`, also written with a decimal point, which JSON Schema treats as the same number, and some
/// readers before the record do not (X10).
pub(super) fn number(rng: &mut Rng, most: u32) -> Json {
    let number = u32::try_from(rng.below(u64::from(most))).unwrap_or(0) + 1;
    if rng.percent(40) { json!(f64::from(number)) } else { json!(number) }
}

/// The action of a member.
pub(super) fn action(seed: u64, invocation: &Invocation) -> Action {
    let mut rng = Rng::from_seed_and_name(seed, &format!("{}#{}", invocation.id, invocation.attempt));
    let delay = rng.below(400);
    match rng.below(100) {
        0..=69 => Action::Say(answer(&mut rng, invocation), delay),
        70..=76 => Action::Say("I would rather talk about something else.".to_owned(), delay),
        77..=81 => Action::Say(r#"{"would_block": "true", "irreducible": "false"}"#.to_owned(), delay),
        82..=84 => Action::Say(String::new(), delay),
        85..=92 => Action::Fail(delay),
        _ => Action::Hang,
    }
}

fn answer(rng: &mut Rng, invocation: &Invocation) -> String {
    if &*invocation.step == "adjudicate" {
        let verdict = ["SHIP", "REVISE", "HOLD", "ship"][usize::try_from(rng.below(4)).unwrap_or(0)];
        return json!({"verdict": verdict, "reasoning": "weighed", "revision_brief": "less certainty"})
            .to_string();
    }
    let block = rng.percent(40);
    let quote = if rng.percent(70) { "always the fastest" } else { "words that nobody wrote" };
    let answer = json!({
        "would_block": block,
        "irreducible": block && rng.percent(50),
        "score": number(rng, 5),
        "findings": [{"quote": quote, "issue": "says too much", "fix": "say less", "line": number(rng, 5)}],
    });
    if rng.percent(30) { format!("Here it is:\n```json\n{answer}\n```") } else { answer.to_string() }
}
