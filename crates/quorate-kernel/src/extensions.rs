//! Host calls that a protocol can request: a custom gather strategy, a custom rule, a comparison by meaning. Each ends in a
//! recorded event, so that it is never repeated.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::storable;
use quorate_protocol::{ApplyRule, Command, Event, Gather, Json, Name, SemanticHit, SemanticMatch};
use serde_json::{Map, json};

use crate::budget::Budget;
use crate::canonical;
use crate::ports::executor::CallLimit;
use crate::ports::extension::Rule;
use crate::ports::extension::{self, Gather as Strategy};
use crate::ports::extension::{Embedder, Meter};
use crate::ports::ledger::Kind;
use crate::record::{self, Gathered, HostRule, Match, RecordData, Spent};
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
    pub embedder: Option<Arc<dyn Embedder>>,
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions")
            .field("rules", &self.rules.keys().collect::<Vec<_>>())
            .field("gathers", &self.gathers.keys().collect::<Vec<_>>())
            .field("embedder", &self.embedder.as_ref().map(|embedder| embedder.model().to_owned()))
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
            HostCall::Match(one) => HostCallResult::of(&match_record(one, Err(why.to_owned()), "")),
            HostCall::Apply(apply) => rule_record(apply, Err(why.to_owned())),
        }
    }
}

impl Extensions {
    /// Performs a host call within the deadline.
    pub(crate) async fn run(
        self: Arc<Self>,
        run: Name,
        host_call: HostCall,
        redactor: Redactor,
        budget: Arc<Budget>,
    ) -> HostCallResult {
        let too_long = |limit: Duration| format!("it took longer than {} s", limit.as_secs());
        if let (HostCall::Match(one), Some(embedder)) = (&host_call, &self.embedder) {
            let limit = embedder.timeout();
            let meter = Meter::new(Arc::clone(&budget));
            let result = tokio::time::timeout(limit, semantic_hits(&**embedder, one, &meter)).await;
            let result = result.unwrap_or_else(|_| Err(too_long(limit)));
            let result = result.map_err(|why| redactor.redact(&why).0);
            let compared = match_record(one, result, &redactor.redact(embedder.model()).0);
            return HostCallResult::of(&with_cost(compared, &meter, &budget));
        }
        match tokio::time::timeout(DEADLINE, self.perform(run, &host_call, &redactor)).await {
            Ok(done) => done,
            Err(_) => host_call.failed(&too_long(DEADLINE)),
        }
    }

    /// The candidate of a comparison and the most that it takes, where its requests are paid for.
    pub(crate) fn comparison_limit(&self, host_call: &HostCall) -> Option<(Name, CallLimit)> {
        let (HostCall::Match(one), Some(embedder)) = (host_call, &self.embedder) else { return None };
        let sentences = sentences(one);
        let limit = embedder.call_limit(&compared_texts(one, &sentences))?;
        (limit.tokens > 0).then(|| (one.candidate.clone(), limit))
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
            HostCall::Match(_) => host_call.failed("no embedder configured"),
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

fn match_record(one: &SemanticMatch, result: Result<Vec<SemanticHit>, String>, model: &str) -> Match {
    let (near, error) = split(result);
    let (candidate, model) = (Some(one.candidate.clone()), model.to_owned());
    Match { candidate, model, near, error, ..Match::default() }
}

/// Adds what the embedder's paid requests took.
fn with_cost(compared: Match, meter: &Meter, budget: &Budget) -> Match {
    let took = meter.took();
    let spent = (took.requests > 0).then(|| Spent { calls: Some(took.requests), ..Spent::from(&took.usage) });
    let charged = budget.caps().has_amounts().then_some(took.charged);
    Match { spent, charged, ..compared }
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
        let Match { candidate, near, error, .. } = record::read(data).ok()?;
        return Some(Event::Matched { candidate: candidate?, result: near.ok_or_else(|| failed(error)) });
    }
    if kind == Kind::Rule.as_str() {
        let HostRule { ticket, output, error, .. } = record::read(data).ok()?;
        let result = output.map(canonical::normalize).ok_or_else(|| failed(error));
        return Some(Event::RuleApplied { ticket: ticket?, result });
    }
    None
}

/// A sentence: the number of its text, and its place in it.
type Sentence = (usize, std::ops::Range<usize>);

fn sentences(one: &SemanticMatch) -> Vec<Sentence> {
    let of_text =
        |(at, text): (usize, &Arc<str>)| sentence_spans(text).into_iter().map(move |span| (at, span));
    one.texts.iter().enumerate().flat_map(of_text).collect()
}

/// The texts of which vectors are needed: the traits, then the sentences.
fn compared_texts<'m>(one: &'m SemanticMatch, sentences: &[Sentence]) -> Vec<&'m str> {
    let texts = sentences.iter().map(|(at, span)| &one.texts[*at][span.clone()]);
    one.traits.iter().map(|locked| &**locked).chain(texts).collect()
}

/// Sentences that come near a trait in meaning.
async fn semantic_hits(
    embedder: &dyn Embedder,
    one: &SemanticMatch,
    meter: &Meter,
) -> Result<Vec<SemanticHit>, String> {
    let sentences = sentences(one);
    let texts = compared_texts(one, &sentences);
    let vectors = embedder.embed(&texts, meter).await.map_err(|error| error.to_string())?;
    let length = vectors.first().map_or(0, Vec::len);
    if vectors.len() != texts.len() || length == 0 || vectors.iter().any(|vector| vector.len() != length) {
        return Err("the embedder gave other vectors than it was asked for".to_owned());
    }
    let (traits, found) = vectors.split_at(one.traits.len());
    let mut near = Vec::new();
    for (which, locked) in traits.iter().enumerate() {
        for ((text, span), vector) in sentences.iter().zip(found) {
            let cosine = cosine(locked, vector);
            if cosine.is_nan() {
                return Err("the embedder gave a vector without a direction".to_owned());
            }
            if cosine >= embedder.threshold() {
                near.push(SemanticHit { which, text: *text, start: span.start, end: span.end });
            }
        }
    }
    Ok(near)
}

/// The sentences of a text, and the text as a whole where it has several.
fn sentence_spans(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut spans = Vec::new();
    let mut start = 0;
    let ends = text.char_indices().filter(|(_, c)| matches!(c, '.' | '!' | '?' | '\n' | ';'));
    for end in ends.map(|(at, c)| at + c.len_utf8()).chain([text.len()]) {
        if !text[start..end].trim().is_empty() {
            spans.push(start..end);
        }
        start = end;
    }
    if spans.len() > 1 {
        spans.push(0..text.len());
    }
    spans
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let dot: f32 = one.iter().zip(other).map(|(a, b)| a * b).sum();
    let norm = |all: &[f32]| all.iter().map(|a| a * a).sum::<f32>().sqrt();
    dot / (norm(one) * norm(other))
}
