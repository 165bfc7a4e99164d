//! An audit as one JSON object: counts, and rates, which are `null` without a denominator.

use quorate_ledger::council_log::drift::find_drift;
use serde_json::{Map, Value, json};

use super::Audit;
use crate::service::time_text::{day, instant};

pub fn json(audit: &Audit) -> String {
    let stats = &audit.stats;
    let reviews = stats.reviews();
    let deliberators: Vec<Value> = stats
        .deliberators
        .iter()
        .map(|(id, behavior)| {
            let mut object = Map::from_iter([
                ("id".to_owned(), json!(id)),
                ("reviews".to_owned(), json!(behavior.reviews)),
            ]);
            for (name, count) in behavior.counts() {
                object.insert(name.to_owned(), json!(count));
                object.insert(format!("{name}_rate"), rate(count, behavior.reviews));
            }
            for (name, (count, sum)) in
                [("avg_r1_score", behavior.first_scores), ("avg_r2_score", behavior.last_scores)]
            {
                object.insert(name.to_owned(), rate(sum, count * 100));
            }
            object.insert("reprompts".to_owned(), json!(behavior.reprompts));
            Value::Object(object)
        })
        .collect();
    let weeks: Vec<Value> =
        stats.weeks.iter().map(|(monday, types)| json!({"week": day(*monday), "verdicts": types})).collect();
    let drifts: Vec<Value> = find_drift(stats)
        .iter()
        .map(|one| {
            let weeks: Vec<String> = one.weeks.iter().map(|(monday, _)| day(*monday)).collect();
            let means: Vec<f64> = one.weeks.iter().map(|(_, mean)| *mean).collect();
            json!({"artifact_type": one.artifact_type, "direction": one.direction.as_str(), "weeks": weeks, "means": means})
        })
        .collect();
    let (counting, calls) = stats.calls;
    let (telling, tokens) = stats.tokens;
    let object = json!({
        "log": audit.log,
        "present": audit.log_exists,
        "corrupt_lines": audit.corrupt_lines,
        "filter": {
            "since": audit.filter.since_ms.map(instant),
            "verdict": audit.filter.verdict,
            "artifact_type": audit.filter.artifact_type,
        },
        "reviews": reviews,
        "verdicts": stats.verdicts,
        "deliberators": deliberators,
        "weeks": weeks,
        "drift": drifts,
        "tokens": if telling == 0 { Value::Null } else { json!(tokens) },
        "tokens_per_review": rate(tokens, telling),
        "calls": calls,
        "calls_per_review": rate(calls, counting),
        "elapsed_ms": stats.elapsed_ms,
        "elapsed_ms_per_review": rate(stats.elapsed_ms, reviews),
        "costs": audit.costs.json(),
        "overrides": stats.overrides,
        "override_rate": rate(stats.overrides, reviews),
    });
    format!("{object:#}\n")
}

/// Rounds to four decimal places.
fn rate(part: u64, of: u64) -> Value {
    match of {
        0 => Value::Null,
        of => json!((part as f64 * 10_000.0 / of as f64).round() / 10_000.0),
    }
}
