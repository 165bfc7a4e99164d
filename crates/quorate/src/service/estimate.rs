//! Estimates the cost of a run: runs its whole protocol on made-up answers and measures the prompts, asks no member and
//! records nothing.

use std::collections::VecDeque;

use quorate_kernel::budget::most_tokens;
use quorate_kernel::ports::executor::Usage;
use quorate_kernel::prompt::Layout;
use quorate_kernel::record::Money;
use quorate_protocol::answers::Schema;
use quorate_protocol::{Command, ConsultationResult, Event, Invoke, Json, Part, TimedEvent};
use serde_json::json;

use super::error::Error;
use super::run_spec::{PreparedMember, ProtocolSetup, RunSpec};

/// The version of the JSON.
pub const SCHEMA: &str = "quorate.estimate/v1";

/// The bytes of English text per token, in the measured models.
const BYTES_PER_TOKEN: u64 = 4;

/// The text of a made-up answer, as long as a measured answer of a model.
const FINDING: &str = "The second paragraph promises what the first one does not bear out: a reader who acts on it would \
                       find that the number has no source, that the period it holds for is not named, and that the \
                       exception in the last sentence takes back most of it. Name the source and the period, and put the \
                       exception where the promise is made.";

/// The expected cost of runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimate {
    /// By executor, in the order of their first call.
    pub executors: Vec<ExecutorEstimate>,
}

/// The expected cost of reviews, by draft.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimates {
    /// The drafts with their expected cost.
    pub drafts: Vec<(String, Estimate)>,
}

impl Estimates {
    /// The expected cost of all reviews.
    pub fn total(&self) -> Estimate {
        let mut total = Estimate::default();
        self.drafts.iter().for_each(|(_, estimate)| total.add(estimate.clone()));
        total
    }

    /// The estimates as `quorate review --dry-run --format json` prints them.
    pub fn to_json(&self) -> Json {
        let draft = |(name, estimate): &(String, Estimate)| {
            let mut object = estimate.json();
            object["artifact"] = json!(name);
            object
        };
        let texts: Vec<Json> = self.drafts.iter().map(draft).collect();
        json!({"schema": SCHEMA, "texts": texts, "total": self.total().json()})
    }
}

/// The expected cost of one executor, without re-prompts and retries.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutorEstimate {
    /// The executor's name.
    pub name: String,
    /// Its model, if it names one.
    pub model: Option<String>,
    /// Whether it asks a model.
    pub asks_a_model: bool,
    /// The number of calls.
    pub calls: u64,
    /// The expected cost of the calls; money is `None` if the price is unknown.
    pub expected: Usage,
    /// The maximum tokens of the calls, which a budget reserves. `None` if unknown.
    pub most_tokens: Option<u64>,
    /// As `most_tokens`, in billionths of a US dollar.
    pub most_usd_nanos: Option<u64>,
}

impl Estimate {
    /// The calls of all executors.
    pub fn calls(&self) -> u64 {
        self.executors.iter().map(|executor| executor.calls).sum()
    }

    /// Adds the expected cost of other runs.
    pub fn add(&mut self, other: Estimate) {
        other.executors.into_iter().for_each(|executor| self.add_executor(executor));
    }

    fn add_executor(&mut self, more: ExecutorEstimate) {
        let is_same = |known: &&mut ExecutorEstimate| known.name == more.name && known.model == more.model;
        match self.executors.iter_mut().find(is_same) {
            Some(known) => known.add(&more),
            None => self.executors.push(more),
        }
    }

    /// The JSON of reports.
    pub fn json(&self) -> Json {
        let executors: Vec<Json> = self.executors.iter().map(ExecutorEstimate::json).collect();
        json!({"calls": self.calls(), "executors": executors})
    }
}

impl ExecutorEstimate {
    fn of(member: &PreparedMember, invoke: &Invoke, prompt: &str) -> Self {
        let (executor, about) = (&member.executor, member.executor.about());
        let limit = executor.call_limit(most_tokens(prompt), invoke.schema);
        let mut expected = Usage::default();
        if about.asks_a_model {
            let answer = serde_json::to_string(&answer(invoke.schema, 5)).unwrap_or_default();
            expected.tokens_in = Some(prompt.len() as u64 / BYTES_PER_TOKEN);
            expected.tokens_out = Some(answer.len() as u64 / BYTES_PER_TOKEN);
            expected.usd_nanos = executor.price(&expected);
        }
        ExecutorEstimate {
            name: executor.name.to_string(),
            model: about.model,
            asks_a_model: about.asks_a_model,
            calls: 1,
            expected,
            most_tokens: limit.map(|limit| limit.tokens),
            most_usd_nanos: limit.and_then(|limit| limit.usd_nanos),
        }
    }

    fn add(&mut self, more: &ExecutorEstimate) {
        // A sum with an unknown term is unknown.
        let sum = |left: Option<u64>, right: Option<u64>| Some(left?.saturating_add(right?));
        self.calls += more.calls;
        self.expected.tokens_in = sum(self.expected.tokens_in, more.expected.tokens_in);
        self.expected.tokens_out = sum(self.expected.tokens_out, more.expected.tokens_out);
        self.expected.usd_nanos = sum(self.expected.usd_nanos, more.expected.usd_nanos);
        self.most_tokens = sum(self.most_tokens, more.most_tokens);
        self.most_usd_nanos = sum(self.most_usd_nanos, more.most_usd_nanos);
    }

    fn json(&self) -> Json {
        json!({
            "executor": self.name,
            "model": self.model,
            "asks_a_model": self.asks_a_model,
            "calls": self.calls,
            "tokens_in": self.expected.tokens_in,
            "tokens_out": self.expected.tokens_out,
            "money": self.expected.usd_nanos.map(Money::usd),
            "most": {"tokens": self.most_tokens, "money": self.most_usd_nanos.map(Money::usd)},
        })
    }
}

/// Estimates the cost of a run on this material.
///
/// # Errors
/// If the protocol cannot be set up.
pub fn estimate<S: ProtocolSetup>(spec: &RunSpec<S>, part: Part) -> Result<Estimate, Error> {
    let mut protocol = spec.setup.protocol()?;
    let layout = Layout { nonce: "0".repeat(16) };
    let mut all = Estimate::default();
    let opened = Event::Opened {
        run: "estimate".into(),
        inputs: vec![part],
        priors: Vec::new(),
        overlays: Vec::new(),
    };
    let mut events = VecDeque::from([opened]);
    while let Some(event) = events.pop_front() {
        for command in protocol.advance(&TimedEvent { at_ms: 0, event }) {
            if let Command::Invoke(invoke) = &command
                && let Some(member) = spec.members.iter().find(|member| member.id == invoke.member)
            {
                let prompt = layout.prompt(invoke, &member.context, &member.prompt);
                all.add_executor(ExecutorEstimate::of(member, invoke, &prompt.text));
            }
            events.extend(made_up_event(command, 5));
        }
    }
    Ok(all)
}

/// The event that follows a command if every member answers and every host call succeeds.
pub fn made_up_event(command: Command, severity: u8) -> Option<Event> {
    Some(match command {
        Command::Invoke(invoke) => {
            let answer = answer(invoke.schema, severity);
            Event::Consulted { id: invoke.id, result: ConsultationResult::Answered(answer) }
        }
        Command::Gather(gather) => Event::Gathered { id: gather.id, result: Ok(FINDING.into()) },
        Command::SemanticMatch(asked) => {
            Event::Matched { candidate: asked.candidate, result: Ok(Vec::new()) }
        }
        Command::ApplyRule(apply) => Event::RuleApplied { ticket: apply.ticket, result: Ok(Json::Null) },
        Command::Finish | Command::Cancel(_) | Command::Record(_) => return None,
    })
}

/// A made-up answer.
fn answer(schema: Schema, severity: u8) -> Json {
    let objects = severity > 4;
    let findings = [FINDING, FINDING].map(|what| json!({"issue": what, "quote": "the second paragraph"}));
    match schema {
        Schema::Ballot => json!({"vote": if objects { "no" } else { "yes" }, "rationale": FINDING}),
        Schema::Message => json!({"message": FINDING, "objection": objects}),
        Schema::FirstAnswer | Schema::SecondAnswer => json!({
            "would_block": false,
            "irreducible": false,
            "findings": findings,
            "reasoning": FINDING,
        }),
        Schema::Adjudication => json!({"verdict": "SHIP", "reasoning": FINDING, "revision_brief": null}),
        _ => json!({
            "severity": severity, "concern": FINDING, "evidence": ["here"], "suggestion": "Go on.",
        }),
    }
}

#[cfg(test)]
mod tests {
    use quorate_kernel::answer;

    use super::*;

    #[test]
    fn made_up_answers_fit_their_forms() {
        for schema in [
            Schema::FirstAnswer,
            Schema::SecondAnswer,
            Schema::Adjudication,
            Schema::Advice,
            Schema::Ballot,
            Schema::Message,
        ] {
            for severity in [0, 5, 10] {
                let text = super::answer(schema, severity).to_string();
                assert!(
                    answer::extract(schema, &text, &[]).is_ok(),
                    "{schema:?}: {:?}",
                    answer::extract(schema, &text, &[])
                );
            }
        }
    }
}
