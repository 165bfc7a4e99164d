//! Host calls that a protocol can request: a custom gather strategy, a custom rule, a comparison by meaning. Each ends in a
//! recorded event, so that it is never repeated.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::storable;
use quorate_protocol::{ApplyRule, AskedModel, Command, Event, Gather, Json, Name, SemanticMatch};
use serde_json::{Map, json};

use crate::budget::Amount;
use crate::call::CallContext;
use crate::canonical;
use crate::meaning::{Comparison, Meaning, took_too_long};
use crate::ports::extension::Meter;
use crate::ports::extension::Rule;
use crate::ports::extension::{self, Gather as Strategy};
use crate::ports::ledger::{Fence, Kind};
use crate::record::{self, Compares, Gathered, HostRule, Match, RecordData, Spent};
use crate::redact::Redactor;

/// How long the host's own code may take.
const DEADLINE: Duration = Duration::from_secs(60);

/// The extensions that the host registered.
#[derive(Clone, Default)]
pub struct Extensions {
    pub rules: BTreeMap<String, Arc<dyn Rule>>,
    /// Gather strategies by name.
    pub gathers: BTreeMap<String, Arc<dyn Strategy>>,
    /// Compares texts by meaning, if configured.
    pub meaning: Option<Meaning>,
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions")
            .field("rules", &self.rules.keys().collect::<Vec<_>>())
            .field("gathers", &self.gathers.keys().collect::<Vec<_>>())
            .field("meaning", &self.meaning.as_ref().map(Meaning::model))
            .finish()
    }
}

/// A call that a protocol requests from the host.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HostCall {
    Gather(Gather),
    Match(SemanticMatch),
    Apply(ApplyRule),
}

/// A host call that ended: its record, from which [`to_event`] reads what the protocol is fed with.
pub(crate) struct HostCallResult {
    pub(crate) kind: Kind,
    pub(crate) data: Map<String, Json>,
}

impl HostCallResult {
    fn of<T: RecordData>(data: &T) -> Self {
        HostCallResult { kind: T::KIND, data: record::to_data(data) }
    }
}

impl HostCall {
    /// The host call that a command requests, if any.
    pub(crate) fn from_command(command: Command) -> Option<HostCall> {
        match command {
            Command::Gather(gather) => Some(HostCall::Gather(gather)),
            Command::SemanticMatch(one) => Some(HostCall::Match(one)),
            Command::ApplyRule(apply) => Some(HostCall::Apply(apply)),
            Command::Invoke(_) | Command::Cancel(_) | Command::Record(_) | Command::Finish => None,
        }
    }

    /// The key that identifies it within its run.
    pub(crate) fn key(&self) -> Name {
        match self {
            HostCall::Gather(gather) => format!("gather {}", gather.id).into(),
            HostCall::Match(one) => format!("match {}", one.candidate).into(),
            HostCall::Apply(apply) => format!("apply {}", apply.ticket).into(),
        }
    }

    /// The result of a call that failed, with the reason.
    pub(crate) fn failed(&self, why: &str) -> HostCallResult {
        match self {
            HostCall::Gather(gather) => gathered_record(gather, Err(why.to_owned())),
            HostCall::Match(one) => {
                let (candidate, error) = (Some(one.candidate.clone()), Some(why.to_owned()));
                HostCallResult::of(&Match { candidate, error, ..Match::default() })
            }
            HostCall::Apply(apply) => rule_record(apply, Err(why.to_owned())),
        }
    }
}

impl Extensions {
    /// Performs a host call within its deadline.
    pub(crate) async fn run(
        self: Arc<Self>,
        host_call: HostCall,
        context: Arc<CallContext>,
        fence: Fence,
    ) -> HostCallResult {
        let redactor = &context.redactor;
        if let (HostCall::Match(one), Some(meaning)) = (&host_call, &self.meaning) {
            let meter = Meter::new(Arc::clone(&context.budget));
            let result = meaning.compare(one, &context, fence, &meter).await;
            return HostCallResult::of(&match_record(one, meaning, result, &meter, &context));
        }
        match tokio::time::timeout(DEADLINE, self.perform(context.run.clone(), &host_call, redactor)).await {
            Ok(done) => done,
            Err(_) => host_call.failed(&took_too_long(DEADLINE)),
        }
    }

    /// The most that a comparison takes, where it asks questions or its requests are paid for.
    pub(crate) fn comparison_limit(&self, host_call: &HostCall, has_amount_caps: bool) -> Option<Compares> {
        let (HostCall::Match(one), Some(meaning)) = (host_call, &self.meaning) else { return None };
        let (calls, most) = meaning.comparison_limit(one);
        let most = if has_amount_caps { most } else { Amount::default() };
        let candidate = one.candidate.clone();
        (calls > 0 || most.tokens > 0).then_some(Compares { candidate, calls, most })
    }

    async fn perform(&self, run: Name, host_call: &HostCall, redactor: &Redactor) -> HostCallResult {
        match host_call {
            HostCall::Gather(gather) => {
                let result = match self.gathers.get(&*gather.strategy) {
                    None => Err(format!("unknown strategy `{}`", gather.strategy)),
                    Some(strategy) => {
                        let request = extension::GatherRequest {
                            run,
                            member: gather.member.clone(),
                            params: gather.params.clone(),
                            subject: gather.subject.clone(),
                        };
                        strategy.gather(request).await.map_err(|error| error.to_string())
                    }
                };
                let clean = |text: String| redactor.redact(&text).0;
                gathered_record(gather, result.map(clean).map_err(clean))
            }
            HostCall::Match(_) => host_call.failed("nothing is configured that compares meanings"),
            HostCall::Apply(apply) => {
                let result = match self.rules.get(&*apply.kind) {
                    None => Err(format!("unknown rule kind `{}`", apply.kind)),
                    Some(rule) => match rule.apply(apply.input.clone()).await {
                        Ok(answer) => check_storable(json!(answer)),
                        Err(error) => Err(error.to_string()),
                    },
                };
                let clean = |text: String| redactor.redact(&text).0;
                rule_record(apply, result.map(|output| redactor.redact_json(output).0).map_err(clean))
            }
        }
    }
}

/// The output of a rule, where it can be recorded.
fn check_storable(output: Json) -> Result<Json, String> {
    match storable::check(&output, storable::MAX_DEPTH) {
        Err(error) => Err(format!("its output cannot be stored: {error}")),
        Ok(()) => Ok(output),
    }
}

fn gathered_record(gather: &Gather, result: Result<String, String>) -> HostCallResult {
    let (text, error) = split(result);
    HostCallResult::of(&Gathered {
        invocation: Some(gather.id.clone()),
        member: gather.member.clone(),
        strategy: gather.strategy.clone(),
        text,
        error,
    })
}

fn match_record(
    one: &SemanticMatch,
    meaning: &Meaning,
    result: Result<Comparison, String>,
    meter: &Meter,
    context: &CallContext,
) -> Match {
    let (redactor, took) = (&context.redactor, meter.took());
    let (compared, error) = split(result.map_err(|why| redactor.redact(&why).0));
    let compared = compared.unwrap_or_else(|| Comparison { model: meaning.model(), ..Comparison::default() });
    let hits = compared.scores.iter().filter(|score| score.is_hit);
    let record = Match {
        candidate: Some(one.candidate.clone()),
        model: redactor.redact(&compared.model).0,
        probability: compared
            .scores
            .iter()
            .filter_map(|score| score.place.probability)
            .max_by(f64::total_cmp),
        near: error.is_none().then(|| hits.map(|score| score.place).collect()),
        error,
        spent: (took.requests > 0).then(|| Spent { calls: Some(took.requests), ..Spent::from(&took.usage) }),
        charged: context.budget.caps().has_amounts().then_some(took.charged),
        ..Match::default()
    };
    let Meaning::Question(question) = meaning else { return record };
    let own = question.config.executor_name.to_string();
    let may_have_asked = record.error.is_some() && took.requests > 0 && question.config.may_ask_a_model();
    let stand_in = compared.stand_in.map(|stand_in| stand_in.executor_name.to_string());
    Match {
        way: Some("question".to_owned()),
        stand_in_for: stand_in.is_some().then(|| own.clone()),
        executor: Some(stand_in.unwrap_or(own)),
        asks_a_model: Some(compared.asked_a_model || may_have_asked),
        ..record
    }
}

fn rule_record(apply: &ApplyRule, result: Result<Json, String>) -> HostCallResult {
    let (output, error) = split(result);
    HostCallResult::of(&HostRule {
        ticket: Some(apply.ticket.clone()),
        kind: apply.kind.clone(),
        output,
        error,
    })
}

fn split<T>(result: Result<T, String>) -> (Option<T>, Option<String>) {
    match result {
        Ok(value) => (Some(value), None),
        Err(why) => (None, Some(why)),
    }
}

/// The event that the record of a host call stands for, the same before it is recorded and after; `None` where the record
/// is of something else.
pub(crate) fn to_event(kind: &str, data: &Map<String, Json>) -> Option<Event> {
    let failed = |error: Option<String>| Name::from(error.unwrap_or_default());
    if kind == Kind::Gathered.as_str() {
        let Gathered { invocation, text, error, .. } = record::read(data).ok()?;
        let result = text.map(Name::from).ok_or_else(|| failed(error));
        return Some(Event::Gathered { id: invocation?, result });
    }
    if kind == Kind::Match.as_str() {
        let Match { candidate, way, model, probability, near, error, .. } = record::read(data).ok()?;
        let asked = way.map(|_| AskedModel { model: model.into(), probability });
        let result = near.ok_or_else(|| failed(error));
        return Some(Event::Matched { candidate: candidate?, result, asked });
    }
    if kind == Kind::Rule.as_str() {
        let HostRule { ticket, output, error, .. } = record::read(data).ok()?;
        let result = output.map(canonical::normalize).ok_or_else(|| failed(error));
        return Some(Event::RuleApplied { ticket: ticket?, result });
    }
    None
}
