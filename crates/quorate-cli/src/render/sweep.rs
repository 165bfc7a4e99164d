//! The result of a sweep: a table of reviewed and failed files, and counts of skipped files by reason.

use quorate_diagnostics::render::TextOptions;
use quorate_protocol::policy::Verdict;

use super::estimate;
use super::layout::{hanging, prose, table};
use super::paint::{Paint, finish, one_line};
use super::wording::amount;
use quorate::service::sweep::{Outcome, SweepReport, SweptFile};

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
        out.push_str(&estimate::human("All of them", estimate, options));
        out.push_str(&prose(estimate::NOTE, 0, options.width));
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
            Outcome::Judged { verdict, fix: Some(fix), .. } => Some((file, *verdict, &**fix)),
            _ => None,
        })
        .collect();
    first.sort_by_key(|(_, verdict, _)| std::cmp::Reverse(verdict.strictness()));
    first.truncate(MAX_FIX_FIRST);
    first
}

fn row(file: &SweptFile) -> Option<Vec<String>> {
    let (verdict, run) = match &file.outcome {
        Outcome::Judged { run, verdict, .. } => {
            (Paint::of_verdict(*verdict).on(verdict.as_str()), one_line(run))
        }
        Outcome::Due => (Paint::Faint.on("due"), String::new()),
        Outcome::Queued { run, state, .. } => (Paint::Faint.on(state), one_line(run)),
        Outcome::Failed { why: reason } => (Paint::Absent.on("failed"), one_line(reason)),
        // A model's decision not to review is shown: the text itself may have persuaded the model.
        Outcome::TierSkipped | Outcome::NotSampled => {
            (Paint::Faint.on("skipped"), one_line(file.tier_reason.as_deref()?))
        }
        Outcome::AlreadyJudged => return None,
    };
    Some(vec![verdict, one_line(&file.path), one_line(&file.artifact_type), file.tier.to_string(), run])
}

/// One sentence: the number of files, by result.
fn summary(all: &[SweptFile]) -> String {
    let count = |is: &dyn Fn(&Outcome) -> bool| all.iter().filter(|file| is(&file.outcome)).count();
    let judged = |expected: Verdict| {
        count(&|outcome| matches!(outcome, Outcome::Judged { verdict, .. } if *verdict == expected))
    };
    let parts = [
        (judged(Verdict::Ship), "SHIP"),
        (judged(Verdict::Revise), "REVISE"),
        (judged(Verdict::Hold), "HOLD"),
        (judged(Verdict::Incomplete), "INCOMPLETE"),
        (count(&|outcome| matches!(outcome, Outcome::Failed { .. })), "failed"),
        (count(&|outcome| *outcome == Outcome::Due), "due"),
        (count(&|outcome| matches!(outcome, Outcome::Queued { is_new: true, .. })), "queued"),
        (count(&|outcome| matches!(outcome, Outcome::Queued { is_new: false, .. })), "queued before"),
        (count(&|outcome| *outcome == Outcome::AlreadyJudged), "judged before"),
        (count(&|outcome| *outcome == Outcome::NotSampled), "not in the sample"),
        (count(&|outcome| *outcome == Outcome::TierSkipped), "of an unreviewed tier"),
    ];
    let listed: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, text)| format!("{count} {text}")).collect();
    let files = amount(all.len() as u64, "file");
    if listed.is_empty() { format!("{files}.") } else { format!("{files}: {}.", listed.join(", ")) }
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
        let judged = |verdict, fix: Option<&str>| Outcome::Judged {
            run: "r7k2m9q4xa1bc".to_owned(),
            verdict,
            fix: fix.map(str::to_owned),
        };
        let all = [
            file("a.md", judged(Verdict::Ship, None)),
            file("aa.md", judged(Verdict::Revise, Some("line 3: Name the source."))),
            file("ab.md", judged(Verdict::Hold, Some("line 9: Say for how long."))),
            file("b.md", Outcome::Failed { why: "not UTF-8".to_owned() }),
            file("c.md", Outcome::TierSkipped),
            file("d.md", Outcome::AlreadyJudged),
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
        let object: serde_json::Value =
            serde_json::from_str(&quorate::service::sweep::json::json(&report)).unwrap();
        assert_eq!(object["files"][0]["verdict"], "SHIP");
        assert_eq!(object["files"][2]["fix_first"], "line 9: Say for how long.");
        assert_eq!(object["files"][4]["fate"], "tier_skipped");
    }
}
