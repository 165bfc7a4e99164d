//! A sweep as one JSON object.

use serde_json::{Value, json};

use super::{Outcome, SweptFile};

/// `{"files": [{path, tier, artifact_type, fate, run, verdict, why, fix_first}]}`, in the order given.
pub fn json(all: &[SweptFile]) -> String {
    format!("{:#}\n", json!({ "files": all.iter().map(object).collect::<Vec<_>>() }))
}

fn object(one: &SweptFile) -> Value {
    let fix = if let Outcome::Judged { fix, .. } = &one.outcome { fix.as_deref() } else { None };
    let (outcome, run, verdict, why) = match &one.outcome {
        Outcome::Judged { run, verdict, .. } => ("judged", Some(run), Some(verdict.as_str()), None),
        Outcome::Due => ("due", None, None, None),
        Outcome::TierSkipped => ("tier_skipped", None, None, None),
        Outcome::NotSampled => ("not_sampled", None, None, None),
        Outcome::AlreadyJudged => ("already_judged", None, None, None),
        Outcome::Failed { why } => ("failed", None, None, Some(why)),
    };
    json!({
        "path": one.path, "tier": one.tier, "artifact_type": one.artifact_type,
        "fate": outcome, "run": run, "verdict": verdict, "why": why, "fix_first": fix,
    })
}
