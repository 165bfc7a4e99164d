//! A sweep as one JSON object.

use serde_json::{Value, json};

use super::{Outcome, SweepReport, SweptFile};

/// `{"files": [{path, tier, artifact_type, tier_reason, fate, run, verdict, why, fix_first}]}`, in the order given. A dry run
/// adds `estimate`, and a queued file its `state`.
pub fn json(report: &SweepReport) -> String {
    let mut all = json!({ "files": report.files.iter().map(object).collect::<Vec<_>>() });
    if let Some(estimate) = &report.estimate {
        all["estimate"] = estimate.json();
    }
    format!("{all:#}\n")
}

fn object(file: &SweptFile) -> Value {
    let fix = if let Outcome::Judged { fix, .. } = &file.outcome { fix.as_deref() } else { None };
    let (outcome, run, verdict, why) = match &file.outcome {
        Outcome::Judged { run, verdict, .. } => ("judged", Some(run), Some(verdict.as_str()), None),
        Outcome::Due => ("due", None, None, None),
        Outcome::TierSkipped => ("tier_skipped", None, None, None),
        Outcome::NotSampled => ("not_sampled", None, None, None),
        Outcome::AlreadyJudged => ("already_judged", None, None, None),
        Outcome::Queued { run, is_new: true, .. } => ("queued", Some(run), None, None),
        Outcome::Queued { run, .. } => ("queued_before", Some(run), None, None),
        Outcome::Failed { why } => ("failed", None, None, Some(why)),
    };
    let mut object = json!({
        "path": file.path, "tier": file.tier, "artifact_type": file.artifact_type,
        "tier_reason": file.tier_reason,
        "fate": outcome, "run": run, "verdict": verdict, "why": why, "fix_first": fix,
    });
    if let Outcome::Queued { state, .. } = &file.outcome {
        object["state"] = json!(state);
    }
    object
}
