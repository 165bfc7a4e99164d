//! Estimates the cost of a run: runs its whole protocol on made-up answers and measures the prompts, asks no member and
//! records nothing.

use std::collections::VecDeque;

use quorate_kernel::attempts::millis;
use quorate_kernel::budget::most_tokens;
use quorate_kernel::history::History;
use quorate_kernel::ports::executor::Usage;
use quorate_kernel::ports::ledger::Ledger as _;
use quorate_kernel::prompt::Layout;
use quorate_ledger::Store;
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::money::Money;
use quorate_protocol::answers::Schema;
use quorate_protocol::answers::samples::can_compare;
use quorate_protocol::{Command, ConsultationResult, Event, Invoke, Json, Part, Protocol, TimedEvent};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::error::Error;
use super::executor::SelectedExecutor;
use super::run_spec::{PreparedMember, ProtocolSetup, RunSpec};

/// The version of the JSON.
pub(crate) const SCHEMA: &str = "quorate.estimate/v1";

/// The bytes of English text per token, in the measured models.
const BYTES_PER_TOKEN: u64 = 4;

/// The text of a made-up answer, as long as a measured answer of a model.
const FINDING: &str = "The second paragraph promises what the first one does not bear out: a reader who acts on it would \
                       find that the number has no source, that the period it holds for is not named, and that the \
                       exception in the last sentence takes back most of it. Name the source and the period, and put the \
                       exception where the promise is made.";

/// The expected cost of runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(rename = "estimate")]
pub struct Estimate {
    /// The calls of all executors.
    pub calls: u64,
    /// By executor, in the order of their first call.
    pub executors: Vec<ExecutorEstimate>,
    /// The members that are asked several times for each answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<SampledMember>,
    /// How long the last run with the same council and executors took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub last_run_ms: Option<u64>,
    /// The reason why a run would ask no member now, or not all of them.
    #[serde(skip)]
    pub obstacle: Option<String>,
}

/// How long the last run with the same council and executors took, in milliseconds; `None` if the ledger has no such run
/// that ended with a decision, and if no member asks a model.
///
/// # Errors
/// If the ledger does not answer, or has invalid records.
pub(crate) async fn last_run_ms<S: ProtocolSetup>(
    spec: &RunSpec<S>,
    store: &Store,
) -> Result<Option<u64>, Error> {
    if !spec.members.iter().any(|member| member.executor.about().asks_a_model) {
        return Ok(None);
    }
    let council = spec.fingerprint("").combined();
    let Some(run) = store.last_decided(&council).await? else { return Ok(None) };
    let history = History::from_remaining_records(&run, store.records(&run).await?)?;
    Ok(Some(millis(history.wall)))
}

/// As [`last_run_ms`], from a ledger that is opened for it, if there is one.
///
/// # Errors
/// As [`last_run_ms`].
pub(crate) async fn last_run_in<S: ProtocolSetup>(
    ledger: &StoreAddress,
    spec: &RunSpec<S>,
) -> Result<Option<u64>, Error> {
    if !ledger.may_exist() {
        return Ok(None);
    }
    let store = Box::pin(Store::open_at(ledger)).await?.store;
    let took = last_run_ms(spec, &store).await;
    store.close().await;
    took
}

/// A member that is asked several times for each answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct SampledMember {
    /// The member's id.
    pub member: String,
    /// How many times it is asked.
    #[schemars(range(min = 2, max = 9))]
    pub samples: u32,
}

/// The expected cost of reviews, by draft, as `quorate review --dry-run --format json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(
    title = "What reviews would cost, as `quorate review --dry-run --format json` prints it",
    description = ""
)]
pub struct Estimates {
    /// The version of the JSON.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The drafts with their expected cost.
    pub texts: Vec<DraftEstimate>,
    /// The expected cost of all reviews.
    pub total: Estimate,
}

/// The expected cost of the review of a draft.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct DraftEstimate {
    /// The draft's name.
    pub artifact: String,
    /// The expected cost.
    #[serde(flatten)]
    pub estimate: Estimate,
}

impl SampledMember {
    /// The members in words: `3 samples of skeptic, 5 samples of adjudicator`.
    pub fn list(members: &[SampledMember]) -> String {
        let sampled = |one: &SampledMember| format!("{} samples of {}", one.samples, one.member);
        members.iter().map(sampled).collect::<Vec<_>>().join(", ")
    }

    /// `None` for a member that is asked once.
    pub(crate) fn of(member: &PreparedMember) -> Option<SampledMember> {
        let samples = member.executor.samples;
        (samples > 1).then(|| SampledMember { member: member.id.to_string(), samples })
    }
}

impl Estimates {
    /// The estimates of drafts with these names.
    pub fn of(drafts: impl IntoIterator<Item = (String, Estimate)>) -> Estimates {
        let draft = |(artifact, estimate)| DraftEstimate { artifact, estimate };
        let texts: Vec<DraftEstimate> = drafts.into_iter().map(draft).collect();
        let mut total = Estimate::default();
        texts.iter().for_each(|draft| total.add(draft.estimate.clone()));
        Estimates { schema: SCHEMA, texts, total }
    }
}

/// The expected cost of one executor, without re-prompts and retries.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct ExecutorEstimate {
    /// The executor's name.
    pub executor: String,
    /// Its model, if it names one.
    pub model: Option<String>,
    /// Whether it asks a model.
    pub asks_a_model: bool,
    /// The number of calls.
    #[schemars(range(min = 1))]
    pub calls: u64,
    /// The expected tokens of the prompts.
    pub tokens_in: Option<u64>,
    /// The expected tokens of the answers.
    pub tokens_out: Option<u64>,
    /// The expected price; null where the price is not known.
    pub money: Option<Money>,
    /// The maximum of the calls, which a budget reserves, with one call of each stand-in for each of them.
    pub most: MostSpent,
    /// The executors that are asked only if its service fails. Their expected cost is not part of the estimate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stand_ins: Vec<StandInEstimate>,
}

/// An executor that stands in for another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct StandInEstimate {
    /// The executor's name.
    pub executor: String,
    /// Its model, if it names one.
    pub model: Option<String>,
}

/// The maximum tokens and price of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct MostSpent {
    /// Tokens of prompts and answers; null where no limit is known.
    pub tokens: Option<u64>,
    /// The price; null where the price is not known.
    pub money: Option<Money>,
}

impl Estimate {
    /// Adds the expected cost of other runs.
    pub fn add(&mut self, other: Estimate) {
        other.executors.into_iter().for_each(|executor| self.add_executor(executor));
        for sampled in other.samples {
            if !self.samples.contains(&sampled) {
                self.samples.push(sampled);
            }
        }
    }

    fn add_executor(&mut self, more: ExecutorEstimate) {
        self.calls += more.calls;
        let is_same = |known: &&mut ExecutorEstimate| {
            known.executor == more.executor && known.model == more.model && known.stand_ins == more.stand_ins
        };
        match self.executors.iter_mut().find(is_same) {
            Some(known) => known.add(&more),
            None => self.executors.push(more),
        }
    }
}

impl ExecutorEstimate {
    fn of(executor: &SelectedExecutor, invoke: &Invoke, prompt: &str) -> Self {
        let about = executor.about();
        let limit = |executor: &SelectedExecutor| executor.call_limit(most_tokens(prompt), invoke.schema);
        // Each call may fail after it was paid for, so the stand-ins come on top.
        let limits: Vec<_> = executor.all().map(limit).collect();
        let tokens = limits.iter().map(|limit| limit.map(|limit| limit.tokens));
        let money = limits.iter().map(|limit| limit.and_then(|limit| limit.money));
        let stand_in = |stand_in: &SelectedExecutor| StandInEstimate {
            executor: stand_in.name.to_string(),
            model: stand_in.about().model,
        };
        let mut expected = Usage::default();
        if about.asks_a_model {
            let answer = serde_json::to_string(&answer(invoke.schema, 5)).unwrap_or_default();
            expected.tokens_in = Some(prompt.len() as u64 / BYTES_PER_TOKEN);
            expected.tokens_out = Some(answer.len() as u64 / BYTES_PER_TOKEN);
            expected.money = executor.price(&expected);
        }
        ExecutorEstimate {
            executor: executor.name.to_string(),
            model: about.model,
            asks_a_model: about.asks_a_model,
            calls: 1,
            tokens_in: expected.tokens_in,
            tokens_out: expected.tokens_out,
            money: expected.money,
            most: MostSpent {
                tokens: tokens.reduce(sum).flatten(),
                money: money.reduce(sum_money).flatten(),
            },
            stand_ins: executor.stand_ins.iter().map(stand_in).collect(),
        }
    }

    fn add(&mut self, more: &ExecutorEstimate) {
        self.calls += more.calls;
        self.tokens_in = sum(self.tokens_in, more.tokens_in);
        self.tokens_out = sum(self.tokens_out, more.tokens_out);
        self.money = sum_money(self.money, more.money);
        self.most.tokens = sum(self.most.tokens, more.most.tokens);
        self.most.money = sum_money(self.most.money, more.most.money);
    }
}

/// A sum; unknown with an unknown term.
fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    Some(left?.saturating_add(right?))
}

/// As [`sum`], of prices.
fn sum_money(left: Option<Money>, right: Option<Money>) -> Option<Money> {
    Some(left?.saturating_add(right?))
}

/// Estimates the cost of a run on this material.
///
/// # Errors
/// If the protocol cannot be set up.
pub(crate) fn estimate<S: ProtocolSetup>(spec: &RunSpec<S>, part: Part) -> Result<Estimate, Error> {
    estimate_where(spec, part, |_| true)
}

/// As [`estimate`], of the questions for which `is_asked` holds.
pub(crate) fn estimate_where<S: ProtocolSetup>(
    spec: &RunSpec<S>,
    part: Part,
    is_asked: impl Fn(&Invoke) -> bool,
) -> Result<Estimate, Error> {
    let layout = Layout { nonce: "0".repeat(16) };
    let mut all = Estimate::default();
    let add = |command: &Command| {
        if let Command::Invoke(invoke) = command
            && is_asked(invoke)
            && let Some(member) = spec.members.iter().find(|member| member.id == invoke.member)
        {
            let prompt = layout.prompt(invoke, &member.context, &member.prompt);
            let samples = if can_compare(invoke.schema) { member.executor.samples } else { 1 };
            let executor = ExecutorEstimate::of(&member.executor, invoke, &prompt.text);
            all.add(Estimate {
                executors: vec![executor; samples as usize],
                samples: SampledMember::of(member).into_iter().collect(),
                ..Estimate::default()
            });
        }
    };
    rehearse(&mut *spec.setup.protocol()?, part, &[5], add);
    Ok(all)
}

/// Runs a protocol on made-up answers with these severities in turn, and shows each command. Returns whether it finishes.
pub(crate) fn rehearse(
    protocol: &mut dyn Protocol,
    part: Part,
    severities: &[u8],
    mut see: impl FnMut(&Command),
) -> bool {
    let (priors, overlays) = (Vec::new(), Vec::new());
    let opened = Event::Opened { run: "rehearsal".into(), inputs: vec![part], priors, overlays };
    let mut events = VecDeque::from([opened]);
    let mut severities = severities.iter().cycle();
    while let Some(event) = events.pop_front() {
        for command in protocol.advance(&TimedEvent { at_ms: 0, event }) {
            see(&command);
            if command == Command::Finish {
                return true;
            }
            events.extend(made_up_event(command, *severities.next().unwrap_or(&5)));
        }
    }
    false
}

/// The event that follows a command if every member answers and every host call succeeds.
fn made_up_event(command: Command, severity: u8) -> Option<Event> {
    Some(match command {
        Command::Invoke(invoke) => {
            let answer = answer(invoke.schema, severity);
            Event::Consulted { id: invoke.id, result: ConsultationResult::Answered(answer) }
        }
        Command::Gather(gather) => Event::Gathered { id: gather.id, result: Ok(FINDING.into()) },
        Command::SemanticMatch(asked) => {
            Event::Matched { candidate: asked.candidate, result: Ok(Vec::new()), asked: None }
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
