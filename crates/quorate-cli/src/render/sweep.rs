//! The result of a sweep, and the estimated cost of reviews.

use quorate::service::estimate::{Estimate, ExecutorEstimate};
use quorate::service::sweep::{SweepReport, SweptFile, SweptOutcome};
use quorate_diagnostics::render::TextOptions;
use quorate_kernel::ports::executor::Usage;
use quorate_protocol::policy::Verdict;

use super::layout::{Paint, finish, one_line};
use super::layout::{hanging, prose, table};
use super::wording::{amount, cost, digit_groups, dollars};

/// The most files listed with their fix.
const MAX_FIX_FIRST: usize = 5;

/// As text. Skipped files are only counted, unless a model said their tier.
pub(crate) fn human(report: &SweepReport, options: TextOptions) -> String {
    let all = &report.files[..];
    let rows: Vec<Vec<String>> = all.iter().filter_map(row).collect();
    let mut out = String::new();
    if !rows.is_empty() {
        out.push_str(&table(&["verdict", "artifact", "type", "tier", "run"], rows, 0, options.width));
        out.push('\n');
    }
    out.push_str(&prose(&summary(all), 0, options.width));
    if let Some(estimate) = report.estimate.as_ref().filter(|estimate| !estimate.executors.is_empty()) {
        out.push_str(&estimate_text("All of them", estimate, options));
        out.push_str(&prose(ESTIMATE_NOTE, 0, options.width));
    }
    let first = fix_first(all);
    if !first.is_empty() {
        out.push_str(&format!("\n{}\n", Paint::Strong.on("Fix first")));
    }
    for (file, verdict, fix) in first {
        let text = format!(
            "{} {}: {}",
            Paint::of_verdict(verdict).on(verdict.as_str()),
            one_line(&file.path),
            one_line(fix)
        );
        out.push_str(&hanging("-", &text, 2, options.width));
    }
    finish(&out, options)
}

/// Fixes in order of urgency: HOLD before REVISE, then the order of the files.
fn fix_first(all: &[SweptFile]) -> Vec<(&SweptFile, Verdict, &str)> {
    let mut first: Vec<_> = all
        .iter()
        .filter_map(|file| match &file.outcome {
            SweptOutcome::Judged { verdict, fix: Some(fix), .. } => Some((file, *verdict, &**fix)),
            _ => None,
        })
        .collect();
    first.sort_by_key(|(_, verdict, _)| std::cmp::Reverse(verdict.strictness()));
    first.truncate(MAX_FIX_FIRST);
    first
}

fn row(file: &SweptFile) -> Option<Vec<String>> {
    let (verdict, run) = match &file.outcome {
        SweptOutcome::Judged { run, verdict, .. } => {
            (Paint::of_verdict(*verdict).on(verdict.as_str()), one_line(run))
        }
        SweptOutcome::Due => (Paint::Faint.on("due"), String::new()),
        SweptOutcome::Queued { run, state, .. } => (Paint::Faint.on(state), one_line(run)),
        SweptOutcome::Failed { why: reason } => (Paint::Absent.on("failed"), one_line(reason)),
        // A model's decision not to review is shown: the text itself may have persuaded the model.
        SweptOutcome::TierSkipped | SweptOutcome::NotSampled => {
            (Paint::Faint.on("skipped"), one_line(file.tier_reason.as_deref()?))
        }
        SweptOutcome::AlreadyJudged => return None,
    };
    Some(vec![verdict, one_line(&file.path), one_line(&file.artifact_type), file.tier.to_string(), run])
}

/// One sentence: the number of files, by result.
fn summary(all: &[SweptFile]) -> String {
    let count = |is: &dyn Fn(&SweptOutcome) -> bool| all.iter().filter(|file| is(&file.outcome)).count();
    let judged = |expected: Verdict| {
        count(&|outcome| matches!(outcome, SweptOutcome::Judged { verdict, .. } if *verdict == expected))
    };
    let parts = [
        (judged(Verdict::Ship), "SHIP"),
        (judged(Verdict::Revise), "REVISE"),
        (judged(Verdict::Hold), "HOLD"),
        (judged(Verdict::Incomplete), "INCOMPLETE"),
        (count(&|outcome| matches!(outcome, SweptOutcome::Failed { .. })), "failed"),
        (count(&|outcome| *outcome == SweptOutcome::Due), "due"),
        (count(&|outcome| matches!(outcome, SweptOutcome::Queued { is_new: true, .. })), "queued"),
        (count(&|outcome| matches!(outcome, SweptOutcome::Queued { is_new: false, .. })), "queued before"),
        (count(&|outcome| *outcome == SweptOutcome::AlreadyJudged), "judged before"),
        (count(&|outcome| *outcome == SweptOutcome::NotSampled), "not in the sample"),
        (count(&|outcome| *outcome == SweptOutcome::TierSkipped), "of an unreviewed tier"),
    ];
    let listed: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, text)| format!("{count} {text}")).collect();
    let files = amount(all.len() as u64, "file");
    if listed.is_empty() { format!("{files}.") } else { format!("{files}: {}.", listed.join(", ")) }
}

/// One text: its calls, and the cost by executor.
pub(crate) fn estimate_text(name: &str, estimate: &Estimate, options: TextOptions) -> String {
    let name = one_line(name);
    if estimate.executors.is_empty() {
        return finish(&prose(&format!("{name}: asks no member"), 0, options.width), options);
    }
    let mut out = prose(&format!("{name}: {}", amount(estimate.calls(), "call")), 0, options.width);
    for executor in &estimate.executors {
        out.push_str(&prose(&line(executor), 2, options.width));
    }
    finish(&out, options)
}

/// The note below the estimates.
pub(crate) const ESTIMATE_NOTE: &str =
    "No member was asked, and nothing was recorded. Each re-prompt or retry is one more call.";

fn line(executor: &ExecutorEstimate) -> String {
    let name = match &executor.model {
        Some(model) if !executor.name.contains(model.as_str()) => {
            format!("{} (model {})", one_line(&executor.name), one_line(model))
        }
        _ => one_line(&executor.name),
    };
    let calls = amount(executor.calls, "call");
    if !executor.asks_a_model {
        return format!("{name}: {calls}, no model is asked");
    }
    let Usage { usd_nanos, .. } = executor.expected;
    let mut text = format!("{name}: {calls}, about {}", cost(&executor.expected).trim_start_matches(", "));
    match (usd_nanos, executor.most_usd_nanos) {
        (Some(0), _) | (_, Some(0)) => {}
        (_, Some(most)) => text.push_str(&format!("; at most US$ {}", dollars(most))),
        (_, None) => match executor.most_tokens {
            Some(tokens) => {
                text.push_str(&format!("; at most {} tokens; the price is unknown", digit_groups(tokens)));
            }
            None => text.push_str("; the price is unknown"),
        },
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_judged_is_listed_and_the_rest_counted() {
        let file = |path: &str, outcome| SweptFile {
            path: path.to_owned(),
            tier: 1,
            artifact_type: "post".to_owned(),
            tier_reason: None,
            outcome,
        };
        let judged = |verdict, fix: Option<&str>| SweptOutcome::Judged {
            run: "r7k2m9q4xa1bc".to_owned(),
            verdict,
            fix: fix.map(str::to_owned),
        };
        let all = [
            file("a.md", judged(Verdict::Ship, None)),
            file("aa.md", judged(Verdict::Revise, Some("line 3: Name the source."))),
            file("ab.md", judged(Verdict::Hold, Some("line 9: Say for how long."))),
            file("b.md", SweptOutcome::Failed { why: "not UTF-8".to_owned() }),
            file("c.md", SweptOutcome::TierSkipped),
            file("d.md", SweptOutcome::AlreadyJudged),
        ];
        let report = SweepReport { files: all.to_vec(), estimate: None };
        insta::assert_snapshot!(human(&report, TextOptions::default()), @"
        verdict  artifact  type  tier  run
        ────────────────────────────────────────────
        SHIP     a.md      post  1     r7k2m9q4xa1bc
        REVISE   aa.md     post  1     r7k2m9q4xa1bc
        HOLD     ab.md     post  1     r7k2m9q4xa1bc
        failed   b.md      post  1     not UTF-8

        6 files: 1 SHIP, 1 REVISE, 1 HOLD, 1 failed, 1 judged before, 1 of an unreviewed tier.

        Fix first
          - HOLD ab.md: line 9: Say for how long.
          - REVISE aa.md: line 3: Name the source.
        ");
        insta::assert_snapshot!(human(&SweepReport::default(), TextOptions::default()), @"0 files.");
        let object = quorate::service::sweep::json(&report);
        assert_eq!(object["files"][0]["verdict"], "SHIP");
        assert_eq!(object["files"][2]["fix_first"], "line 9: Say for how long.");
        assert_eq!(object["files"][4]["fate"], "tier_skipped");
    }
}
