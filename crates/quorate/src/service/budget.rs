//! The caps of a run: where they come from, and whether they can be enforced (X8).

use std::path::PathBuf;
use std::time::Duration;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::budget::{Caps, call_limit};
use quorate_kernel::history::History;
use quorate_kernel::ports::executor::Executor;
use quorate_kernel::ports::extension::Embedder;
use quorate_kernel::record::{Consultation, RunOpened, Status};
use quorate_manifest::config::Configuration;
use quorate_protocol::Event;
use quorate_protocol::answers::Schema;
use serde_json::json;

use super::error::Error;

/// The caps of `[budget]`.
pub(crate) fn configured(configuration: &Configuration) -> Caps {
    let budget = &configuration.budget;
    Caps { calls: budget.calls, tokens: budget.tokens, money: budget.money }
}

/// The caps that a run was opened with.
pub(crate) fn recorded(opened: &RunOpened) -> Caps {
    Caps { calls: opened.max_calls, tokens: opened.max_tokens, money: opened.max_money }
}

/// The file of `budget.prices`.
pub(crate) fn prices(configuration: &Configuration) -> Option<PathBuf> {
    configuration.budget.prices.as_ref().map(|(path, _)| configuration.dir.join(path))
}

/// Refuses caps on tokens or money if an executor does not state the maximum cost of its calls: no budget could be
/// reserved.
///
/// # Errors
/// [`codes::COST_UNKNOWN`].
pub(crate) fn ensure_holdable(caps: &Caps, name: &str, executor: &dyn Executor) -> Result<(), Error> {
    if caps.can_hold(call_limit(executor, 0, Schema::PlainText)) {
        return Ok(());
    }
    let about = executor.about();
    let what = about.model.map_or_else(|| format!("`{name}`"), |model| format!("`{name}` (model `{model}`)"));
    let (cap, help) = match executor.call_limit(0, Schema::PlainText) {
        Some(_) => (
            "budget.money",
            "set `price` in its table or name a file in `budget.prices`; write `price = \"free\"` for your own server",
        ),
        None if caps.money.is_some() => ("budget.money", NO_LIMIT_HELP),
        None => ("budget.tokens", NO_LIMIT_HELP),
    };
    let body = Body::new(format!("cannot enforce `{cap}`: the maximum cost of a call of {what} is unknown"));
    Err(Error::configuration(codes::COST_UNKNOWN, body.help(help)))
}

/// Refuses caps on money if the embedder's price is unknown.
///
/// # Errors
/// [`codes::COST_UNKNOWN`].
pub(crate) fn ensure_embedder_holdable(caps: &Caps, embedder: &dyn Embedder) -> Result<(), Error> {
    if caps.can_hold(embedder.call_limit(&[""])) {
        return Ok(());
    }
    let model = embedder.model();
    let body = Body::new(format!(
        "cannot enforce `budget.money`: the price of the embedder's model `{model}` is unknown"
    ));
    let help = "set `price` in [embedder], for example `{ input = 0.02 }`, or name a file in `budget.prices`";
    Err(Error::configuration(codes::COST_UNKNOWN, body.help(help)))
}

const NO_LIMIT_HELP: &str =
    "ask the model over HTTP (kind `llm`), whose calls have limits; or cap `budget.calls` alone";

/// How to continue a run with missing answers. `wall` is the configured limit, `resume` the command that resumes the
/// run.
pub(crate) fn resume_note(wall: Option<Duration>, history: &History, resume: &str) -> String {
    let command = format!("{resume}{}", larger_caps(history));
    // A question that was not asked for lack of tokens or money has a message, and the calls are counted.
    let without_reason = |ended: &Consultation| {
        ended.status == Status::OverBudget && ended.scope.is_some() && ended.text.is_none()
    };
    let has_calls = recorded(&history.opened).calls.is_none_or(|cap| history.calls < cap);
    match wall.is_some() && has_calls && history.consultations().any(without_reason) {
        true => format!(
            "Everything answered so far is kept: the time of this run is spent, so raise `budget.wall` in quorate.toml; then \
             `{command}` asks again only for what is missing."
        ),
        false => {
            format!("Everything answered so far is kept: `{command}` asks again only for what is missing.")
        }
    }
}

/// The arguments that resuming a run requires besides its id: larger caps, if the old ones are spent. With its old
/// caps, a resumed run could ask no member. The new caps are twice the old ones, and of calls enough for one answer to each
/// question that is known to be left.
pub(crate) fn larger_caps(history: &History) -> String {
    let caps = recorded(&history.opened);
    let mut arguments = String::new();
    if let Some(cap) = caps.calls.filter(|cap| history.calls >= *cap) {
        let twice = u64::from(history.calls.max(cap).max(1)).saturating_mul(2);
        let all = planned_calls(history).max(u64::from(history.calls).saturating_add(1));
        arguments.push_str(&format!(" --max-calls {}", twice.max(all)));
    }
    let asked = history.consultations().filter_map(|ended| ended.text.as_deref());
    let compared = history.fed.iter().filter_map(|fed| match &fed.stamped.event {
        Event::Matched { result: Err(why), .. } => Some(&**why),
        _ => None,
    });
    let refusals: Vec<&str> = asked.chain(compared).collect();
    let is_refused_for = |cap: &str| refusals.iter().any(|text| text.contains(cap));
    if let Some(cap) = caps.tokens.filter(|_| is_refused_for("`budget.tokens`")) {
        let refused = refusals.iter().filter(|text| text.contains("`budget.tokens`"));
        let most = refused.filter_map(|text| tokens_of_a_call(text)).max().unwrap_or(0);
        let left = planned_calls(history).saturating_sub(history.calls.into()).max(1);
        let enough = cap.saturating_add(most.saturating_mul(left));
        arguments.push_str(&format!(" --max-tokens {}", cap.saturating_mul(2).max(enough)));
    }
    if let Some(cap) = caps.money.filter(|_| is_refused_for("`budget.money`")) {
        arguments.push_str(&format!(" --max-money \"{}\"", cap.saturating_mul(2)));
    }
    arguments
}

/// The tokens of a call that was refused for its tokens, parsed from the recorded reason.
fn tokens_of_a_call(reason: &str) -> Option<u64> {
    let number = reason.split_once("takes up to ")?.1;
    number.split(' ').next()?.parse().ok()
}

/// The number of calls if each question is answered at once; for an assembly, that of one round.
fn planned_calls(history: &History) -> u64 {
    let setup = &history.opened.setup;
    let count = |key: &str| setup[key].as_array().map_or(0, Vec::len) as u64;
    match count("deliberators") {
        0 => count("members"),
        deliberators => deliberators * if setup["rounds"] == json!("one") { 1 } else { 2 } + 1,
    }
}
