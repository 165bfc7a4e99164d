//! What a sweep did: a table of what was reviewed or could not be, and how many files were passed over, and why.

use quorate_diagnostics::render::TextOptions;
use quorate_protocol::policy::Verdict;

use super::layout::{hanging, prose, table};
use super::paint::{Paint, finish, one_line};
use super::wording::amount;
use quorate::service::sweep::{Outcome, SweptFile};

/// So many files are named with what to fix in them.
const MAX_FIX_FIRST: usize = 5;

/// For people. Files that were passed over are counted, not listed.
pub(crate) fn human(all: &[SweptFile], look: TextOptions) -> String {
    let rows: Vec<Vec<String>> = all.iter().filter_map(row).collect();
    let mut out = String::new();
    if !rows.is_empty() {
        out.push_str(&table(&["verdict", "artifact", "type", "tier", "run"], rows, 0, look.width));
        out.push('\n');
    }
    out.push_str(&prose(&summary(all), 0, look.width));
    let first = fix_first(all);
    if !first.is_empty() {
        out.push_str(&format!("\n{}\n", Paint::Strong.on("Fix first")));
    }
    for (one, verdict, fix) in first {
        let what = format!(
            "{} {}: {}",
            Paint::of_verdict(verdict).on(verdict.as_str()),
            one_line(&one.path),
            one_line(fix)
        );
        out.push_str(&hanging("-", &what, 2, look.width));
    }
    finish(&out, look)
}

/// What to fix first: what is held back before what is to be revised, in the order of the files.
fn fix_first(all: &[SweptFile]) -> Vec<(&SweptFile, Verdict, &str)> {
    let mut first: Vec<_> = all
        .iter()
        .filter_map(|one| match &one.outcome {
            Outcome::Judged { verdict, fix: Some(fix), .. } => Some((one, *verdict, &**fix)),
            _ => None,
        })
        .collect();
    first.sort_by_key(|(_, verdict, _)| std::cmp::Reverse(verdict.strictness()));
    first.truncate(MAX_FIX_FIRST);
    first
}

fn row(one: &SweptFile) -> Option<Vec<String>> {
    let (verdict, run) = match &one.outcome {
        Outcome::Judged { run, verdict, .. } => {
            (Paint::of_verdict(*verdict).on(verdict.as_str()), one_line(run))
        }
        Outcome::Due => (Paint::Faint.on("due"), String::new()),
        Outcome::Failed { why } => (Paint::Absent.on("failed"), one_line(why)),
        Outcome::TierSkipped | Outcome::NotSampled | Outcome::AlreadyJudged => return None,
    };
    Some(vec![verdict, one_line(&one.path), one_line(&one.artifact_type), one.tier.to_string(), run])
}

/// One sentence: how many files there are and what became of them.
fn summary(all: &[SweptFile]) -> String {
    let count = |is: &dyn Fn(&Outcome) -> bool| all.iter().filter(|one| is(&one.outcome)).count();
    let judged = |wanted: Verdict| {
        count(&|outcome| matches!(outcome, Outcome::Judged { verdict, .. } if *verdict == wanted))
    };
    let parts = [
        (judged(Verdict::Ship), "SHIP"),
        (judged(Verdict::Revise), "REVISE"),
        (judged(Verdict::Hold), "HOLD"),
        (judged(Verdict::Incomplete), "INCOMPLETE"),
        (count(&|outcome| matches!(outcome, Outcome::Failed { .. })), "failed"),
        (count(&|outcome| *outcome == Outcome::Due), "due"),
        (count(&|outcome| *outcome == Outcome::AlreadyJudged), "judged before"),
        (count(&|outcome| *outcome == Outcome::NotSampled), "not in the sample"),
        (count(&|outcome| *outcome == Outcome::TierSkipped), "of a tier that is not reviewed"),
    ];
    let said: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let files = amount(all.len() as u64, "file");
    if said.is_empty() { format!("{files}.") } else { format!("{files}: {}.", said.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_judged_is_listed_and_the_rest_counted() {
        let swept = |path: &str, outcome| SweptFile {
            path: path.to_owned(),
            tier: 1,
            artifact_type: "post".to_owned(),
            outcome,
        };
        let judged = |verdict, fix: Option<&str>| Outcome::Judged {
            run: "r7k2m9q4xa1bc".to_owned(),
            verdict,
            fix: fix.map(str::to_owned),
        };
        let all = [
            swept("a.md", judged(Verdict::Ship, None)),
            swept("aa.md", judged(Verdict::Revise, Some("line 3: Name the source."))),
            swept("ab.md", judged(Verdict::Hold, Some("line 9: Say for how long."))),
            swept("b.md", Outcome::Failed { why: "not UTF-8".to_owned() }),
            swept("c.md", Outcome::TierSkipped),
            swept("d.md", Outcome::AlreadyJudged),
        ];
        insta::assert_snapshot!(human(&all, TextOptions::default()), @"
        verdict  artifact  type  tier  run
        ────────────────────────────────────────────
        SHIP     a.md      post  1     r7k2m9q4xa1bc
        REVISE   aa.md     post  1     r7k2m9q4xa1bc
        HOLD     ab.md     post  1     r7k2m9q4xa1bc
        failed   b.md      post  1     not UTF-8

        6 files: 1 SHIP, 1 REVISE, 1 HOLD, 1 failed, 1 judged before, 1 of a tier that is not reviewed.

        Fix first
          - HOLD ab.md: line 9: Say for how long.
          - REVISE aa.md: line 3: Name the source.
        ");
        insta::assert_snapshot!(human(&[], TextOptions::default()), @"0 files.");
        let object: serde_json::Value =
            serde_json::from_str(&quorate::service::sweep::json::json(&all)).unwrap();
        assert_eq!(object["files"][0]["verdict"], "SHIP");
        assert_eq!(object["files"][2]["fix_first"], "line 9: Say for how long.");
        assert_eq!(object["files"][4]["fate"], "tier_skipped");
    }
}
