//! Several samples of one invocation: asked at the same time, each with its own attempts and deadline, and compared by the typed
//! fields of their answers. The answer that counts is one of them, unchanged.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _, ready, try_join_all};
use quorate_protocol::answers::Schema;
use quorate_protocol::answers::samples::{can_compare, compare};
use quorate_protocol::{AbsenceReason, ConsultationResult, Invoke, Json};
use tokio::time::Instant;

use crate::answer;
use crate::attempts::{Consultation, Cost, MemberConfig, Substitution};
use crate::call::{self, CallContext, CostTracker, FinishedCall, Recorder};
use crate::entropy::sha256_hex;
use crate::history::AnsweredSamples;
use crate::ports::ledger::{Durability, Entry, LedgerError};
use crate::record::{self, MissingSample, Samples, Tried};

/// How many samples a member is asked for. Answers without typed fields cannot be compared, so there is one.
pub(crate) fn count(member: &MemberConfig, schema: Schema) -> u32 {
    if can_compare(schema) { member.samples.max(1) } else { 1 }
}

/// As [`call::call`], for each sample of the invocation. `answered` has the samples that earlier processes recorded: they are not
/// asked again if their prompt was the same. The first call is counted already, unless a sample is recorded.
pub(crate) async fn call(
    context: Arc<CallContext>,
    recorder: Arc<Recorder>,
    invoke: Invoke,
    member: MemberConfig,
    made: Arc<CostTracker>,
    answered: AnsweredSamples,
) -> Result<FinishedCall, LedgerError> {
    let count = count(&member, invoke.schema);
    if count == 1 {
        return call::call(context, recorder, invoke, member, made, None).await;
    }
    let (invoke, member, redactions) = call::redact_invocation(&context.redactor, invoke, member).await;
    let prompt = context.layout.prompt(&invoke, &member.context, &member.role).text;
    let prompt_sha256 = sha256_hex(prompt.as_bytes());
    let started = Instant::now();
    let mut has_call = answered.is_empty();
    let mut samples: Vec<BoxFuture<'_, Result<Consultation, LedgerError>>> = Vec::new();
    for number in 1..=count {
        let attempts = answered.get(&number).and_then(|attempts| attempts.split_last());
        let same = attempts.filter(|(last, _)| last.prompt_sha256.as_ref() == Some(&prompt_sha256));
        if let Some(ended) = same.and_then(|(last, before)| from_record(last, before, &invoke, &member)) {
            samples.push(ready(Ok(ended)).boxed());
            continue;
        }
        if !std::mem::take(&mut has_call)
            && let Err(why) = context.budget.reserve_call()
        {
            samples.push(ready(Ok(FinishedCall::over_budget(&why).consultation)).boxed());
            continue;
        }
        made.set(Some(number), Cost { calls: 1, ..Cost::default() });
        let (context, recorder, made) = (context.clone(), recorder.clone(), made.clone());
        let (invoke, member) = (invoke.clone(), member.clone());
        let ask = async move {
            let clock = context.clock.clone();
            let ended = call::call(context, recorder.clone(), invoke, member, made, Some(number)).await?;
            // The last attempt is durable before the sample counts, so that it is not paid for again.
            if let Some(attempt) = ended.attempt {
                let entries = vec![Entry::from_data(attempt, clock.now_ms())];
                recorder.append(entries, Vec::new(), Durability::Synced).await?;
            }
            Ok(ended.consultation)
        };
        samples.push(ask.boxed());
    }
    let ended = try_join_all(samples).await?;
    let mut spent = Cost { took: started.elapsed(), ..Cost::default() };
    ended.iter().for_each(|sample| spent.add(&sample.spent));
    let redactions = ended.iter().fold(redactions, |sum, sample| sum + sample.redactions);
    let recorded = ended.iter().all(|sample| sample.recorded);
    let prompt_sha256 = Some(prompt_sha256);
    let consultation = combine(invoke.schema, ended);
    let consultation = Consultation { spent, redactions, recorded, prompt_sha256, ..consultation };
    Ok(FinishedCall { attempt: None, consultation })
}

/// The sample that an attempt of an earlier process recorded, and those before it.
fn from_record(
    attempt: &record::Attempt,
    before: &[record::Attempt],
    invoke: &Invoke,
    member: &MemberConfig,
) -> Option<Consultation> {
    let shown: Vec<&str> = invoke.parts.iter().chain(&member.context).map(|part| &*part.text).collect();
    let answer = answer::extract(invoke.schema, &attempt.text, &shown).ok()?;
    let by = |name: &Option<String>| {
        let name = name.as_deref()?;
        member.stand_ins.iter().find(|stand_in| *stand_in.executor_name == *name)
    };
    let stand_in = by(&attempt.executor).map(|stand_in| {
        let mut tried: Vec<Tried> = Vec::new();
        for failed in before.iter().filter(|failed| failed.executor != attempt.executor) {
            let by = by(&failed.executor).map_or(member.clone(), |by| member.clone().with_stand_in(by));
            let (executor, message) = (by.executor_name.to_string(), call::reason(&failed.text, &by));
            // The last attempt of each executor says why it gave no answer.
            tried.retain(|one| one.executor != executor);
            tried.push(Tried { executor, message, http: failed.http_status });
        }
        let (executor_name, about) = (stand_in.executor_name.clone(), stand_in.executor.about());
        Substitution { executor_name, about, tried }
    });
    Some(Consultation {
        result: ConsultationResult::Answered(answer),
        repaired: attempt.why == "re-prompt",
        model: attempt.model.clone(),
        version: attempt.version.clone(),
        recorded: attempt.recorded,
        stand_in,
        ..Consultation::without_answer(AbsenceReason::Failed, Cost::default())
    })
}

/// The consultation of all samples, with the answer that counts. `ended` is not empty.
fn combine(schema: Schema, mut ended: Vec<Consultation>) -> Consultation {
    let (mut answers, mut missing): (Vec<Option<Json>>, _) = (Vec::new(), Vec::new());
    for (sample, one) in (1..).zip(&ended) {
        answers.push(match &one.result {
            ConsultationResult::Answered(answer) => Some(answer.clone()),
            ConsultationResult::Absent(reason) => {
                let why = one.message.clone().unwrap_or_else(|| reason.status().replace('_', " "));
                missing.push(MissingSample { sample, why });
                None
            }
        });
    }
    let compared = compare(schema, &answers);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let samples = Samples {
        asked: number(answers.len()),
        answered: number(answers.len() - missing.len()),
        agree: compared.agree,
        chosen: compared.chosen.map(|at| number(at + 1)),
        spread: compared.spread,
        missing,
    };
    let consultation = match compared.chosen {
        Some(at) => ended.swap_remove(at),
        None => Consultation {
            message: Some(why_none(&samples)),
            ..Consultation::without_answer(reason(&ended), Cost::default())
        },
    };
    Consultation { samples: Some(samples), ..consultation }
}

/// The reason of a missing answer: that of the first sample without one. If the budget left no call for a sample, it is the
/// budget.
fn reason(ended: &[Consultation]) -> AbsenceReason {
    let reasons = || {
        ended.iter().filter_map(|sample| match sample.result {
            ConsultationResult::Absent(why) => Some(why),
            ConsultationResult::Answered(_) => None,
        })
    };
    // If all samples answered, they contradict each other.
    let over_budget = reasons().find(|why| *why == AbsenceReason::RunOverBudget);
    over_budget.or_else(|| reasons().next()).unwrap_or(AbsenceReason::SchemaFailed)
}

fn why_none(samples: &Samples) -> String {
    let Samples { asked, answered, missing, .. } = samples;
    if answered * 2 > *asked {
        return format!("the {answered} samples with an answer contradict each other, and no answer counts");
    }
    let reasons: Vec<String> =
        missing.iter().map(|MissingSample { sample, why }| format!("sample {sample}: {why}")).collect();
    format!("{answered} of {asked} samples answered, and more than half must; {}", reasons.join("; "))
}
