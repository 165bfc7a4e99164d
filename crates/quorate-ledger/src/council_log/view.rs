//! Makes our log lines from a run's records: the published schema, plus the fields that the public tool's reader expects
//! (C10).

use quorate_kernel::clock::rfc3339;
use quorate_kernel::history::History;
use quorate_kernel::ports::executor::Usage;
use quorate_kernel::record::{Consultation, Override, Status};
use quorate_protocol::Json;
use quorate_protocol::answers::deliberator::{self, Answer, Round};
use serde_json::{Map, json};

use super::line::Event;

/// The line of an ended review; `None` while there is no outcome. `event` tells a review from one that was resumed
/// to a verdict after it had been logged as INCOMPLETE.
pub fn review_line(history: &History, event: Event) -> Option<Json> {
    let outcome = history.outcome_data()?;
    let opened = &history.opened;
    let of = |key: &str| outcome.get(key).cloned().unwrap_or(Json::Null);
    let elapsed_ms = u64::try_from(history.wall.as_millis()).unwrap_or(u64::MAX);
    let executor = opened.executors.first();
    let mut line = json!({
        "v": 2,
        "ts": rfc3339(history.decided_ms.unwrap_or(history.opened_ms)),
        "artifact": opened.subject,
        "artifact_type": opened.artifact_type,
        "round1": round(history, "r1"),
        "round2": round(history, "r2"),
        "adjudicator": {
            "final_verdict": of("verdict"),
            "reasoning": of("reasoning"),
            "revision_brief": of("revision_brief"),
            "dissent_summary": of("dissent_summary"),
            "applied_compounding": of("applied_compounding"),
            "prior_verdicts_consulted": of("prior_verdicts_consulted"),
        },
        "event": event.as_str(),
        "agent": "council",
        "sid": "quorate",
        "span_id": &*history.run,
        "parent_id": null,
        "persisted": true,
        "run": &*history.run,
        "verdict": of("verdict"),
        "policy": of("policy"),
        "partial": of("partial"),
        "artifact_path": opened.subject,
        "artifact_sha256": opened.artifact_sha256,
        "tier": opened.tier,
        "revision_brief": of("revision_brief"),
        "reasoning": of("reasoning"),
        "deliberators": deliberators(history),
        "prior_verdicts_used": of("prior_verdicts_consulted"),
        "runtime": executor.map(|executor| &executor.name),
        "model": executor.map_or_else(|| json!(""), |executor| json!(executor.model)),
        "calls": history.calls,
        "tokens": tokens(history.usage),
        "elapsed_seconds": elapsed_ms as f64 / 1000.0,
    });
    add_producer(&mut line, history);
    Some(line)
}

/// Who made the artifact, where the run's record says so.
fn add_producer(line: &mut Json, history: &History) {
    if let Some(producer) = &history.opened.producer {
        line["producer"] = json!(producer.operator);
    }
}

/// What the calls read and wrote, as far as they said; `null` where none did.
fn tokens(usage: Usage) -> Json {
    let (read, written) = (usage.tokens_in, usage.tokens_out);
    if read.is_none() && written.is_none() {
        return Json::Null;
    }
    json!({"total": read.unwrap_or(0).saturating_add(written.unwrap_or(0)), "in": read, "out": written})
}

/// The line of a person's override.
pub fn override_line(history: &History, at_ms: i64, decision: &Override) -> Json {
    let mut line = json!({
        "v": 2,
        "ts": rfc3339(at_ms),
        "event": Event::Override.as_str(),
        "agent": "person",
        "by": decision.by,
        "run": &*history.run,
        "span_id": &*history.run,
        "artifact": history.opened.subject,
        "artifact_type": history.opened.artifact_type,
        "verdict": decision.verdict,
        "council_verdict": decision.council_verdict,
        "reason": decision.reason,
    });
    add_producer(&mut line, history);
    line
}

/// The result of asking a member in a step.
fn find<'a>(history: &'a History, step: &str, member: &str) -> Option<&'a Consultation> {
    history.consultations().find(|one| &*one.step == step && &*one.member == member)
}

/// One round's entries in roster order: the answer as it was given, with who gave it and how it ended.
fn round(history: &History, step: &str) -> Vec<Json> {
    let entry = |member: &str| {
        let ended = find(history, step, member)?;
        let mut entry = ended.answer.as_ref().and_then(Json::as_object).cloned().unwrap_or_default();
        entry.insert("deliberator".into(), json!(member));
        entry.insert("status".into(), json!(ended.status));
        entry.insert("schema_failed".into(), json!(ended.status == Status::SchemaFailed));
        Some(Json::Object(entry))
    };
    roster(history).iter().filter_map(|member| entry(member)).collect()
}

fn roster(history: &History) -> Vec<&str> {
    let setup = history.opened.setup.get("deliberators").and_then(Json::as_array);
    setup.into_iter().flatten().filter_map(Json::as_str).collect()
}

/// The map that the public tool's reader knows.
fn deliberators(history: &History) -> Json {
    let member = |id: &str| {
        let (first, second) = (find(history, "r1", id), find(history, "r2", id));
        let answer = |ended: Option<&Consultation>, key: &str| ended?.answer.as_ref()?.get(key).cloned();
        let read = |round, ended: Option<&Consultation>| Answer::read(round, ended?.answer.as_ref()?);
        let (first_read, second_read) = (read(Round::First, first), read(Round::Second, second));
        let score = |read: &Option<Answer>| json!(read.as_ref().and_then(|answer| answer.score));
        let flag = |data, key| json!(answer(data, key) == Some(json!(true)));
        let failed =
            |ended: Option<&Consultation>| ended.is_some_and(|ended| ended.status == Status::SchemaFailed);
        let error = [second, first].into_iter().flatten().find_map(|ended| ended.text.clone());
        let found = [&second_read, &first_read].into_iter().find_map(|read| read.as_ref()?.findings.as_ref());
        let listed =
            [second, first].into_iter().filter_map(|ended| ended?.answer.as_ref()).map(deliberator::issues);
        let listed = listed.into_iter().find(|all| !all.is_empty()).unwrap_or_default();
        let issues = found.into_iter().flatten().map(|one| one.issue.clone()).chain(listed);
        let repaired = |ended: &&Consultation| ended.repaired || ended.status == Status::SchemaFailed;
        let reprompts = [first, second].into_iter().flatten().filter(repaired).count();
        json!({
            "role": id,
            "r1_score": score(&first_read),
            "r1_would_block": flag(first, "would_block"),
            "r2_score": score(&second_read),
            "r2_would_block": flag(second, "would_block"),
            "r2_irreducible": flag(second, "irreducible"),
            "top_issues": issues.take(5).collect::<Vec<_>>(),
            "succeeded": first.is_some_and(|ended| ended.answer.is_some()),
            "error": error,
            "schema_failed": failed(first) || failed(second),
            "reprompts": reprompts,
        })
    };
    roster(history).iter().map(|id| ((*id).to_owned(), member(id))).collect::<Map<_, _>>().into()
}
