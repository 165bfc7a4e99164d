//! The estimated cost of reviews, for people.

use quorate_diagnostics::render::TextOptions;
use quorate_kernel::ports::executor::Usage;

use super::layout::prose;
use super::paint::{finish, one_line};
use super::wording::{amount, cost, digit_groups, dollars};
use quorate::service::estimate::{Estimate, ExecutorEstimate};

/// One text: its calls, and the cost by executor.
pub(crate) fn human(name: &str, estimate: &Estimate, options: TextOptions) -> String {
    let name = one_line(name);
    if estimate.executors.is_empty() {
        return finish(&prose(&format!("{name}: asks no member"), 0, options.width), options);
    }
    let mut out = prose(&format!("{name}: {}", amount(estimate.calls(), "call")), 0, options.width);
    for executor in &estimate.executors {
        out.push_str(&prose(&line(executor), 2, options.width));
    }
    finish(&out, options)
}

/// The note below the estimates.
pub(crate) const NOTE: &str =
    "No member was asked, and nothing was recorded. Each re-prompt or retry is one more call.";

fn line(executor: &ExecutorEstimate) -> String {
    let name = match &executor.model {
        Some(model) if !executor.name.contains(model.as_str()) => {
            format!("{} (model {})", one_line(&executor.name), one_line(model))
        }
        _ => one_line(&executor.name),
    };
    let calls = amount(executor.calls, "call");
    if !executor.asks_a_model {
        return format!("{name}: {calls}, no model is asked");
    }
    let Usage { usd_nanos, .. } = executor.expected;
    let mut text = format!("{name}: {calls}, about {}", cost(&executor.expected).trim_start_matches(", "));
    match (usd_nanos, executor.most_usd_nanos) {
        (Some(0), _) | (_, Some(0)) => {}
        (_, Some(most)) => text.push_str(&format!("; at most US$ {}", dollars(most))),
        (_, None) => match executor.most_tokens {
            Some(tokens) => {
                text.push_str(&format!("; at most {} tokens; the price is unknown", digit_groups(tokens)));
            }
            None => text.push_str("; the price is unknown"),
        },
    }
    text
}
