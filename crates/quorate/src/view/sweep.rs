//! The documents of sweeps, and of the expected cost of reviews.

use std::cmp::Reverse;

use quorate_kernel::ports::executor::Usage;
use quorate_manifest::money::Money;
use quorate_protocol::policy::Verdict;

use super::Extent;
use super::doc::{Doc, Table, Text, Tone};
use super::wording::{amount, cost, digit_groups, dollars, last_run};
use crate::service::estimate::{Estimate, Estimates, ExecutorEstimate, SampledMember, StandInEstimate};
use crate::sweep::{Sweep, SweptFile, SweptOutcome};

/// The note below estimates.
pub const ESTIMATE_NOTE: &str =
    "No member was asked, and nothing was recorded. Each re-prompt or retry is one more call.";

impl Sweep {
    /// The sweep as people read it, the most urgent files first. Skipped files are only counted, unless a model said their
    /// tier. In full, each file has its type, its tier and its run, and files of a tier that is not reviewed are listed.
    pub fn doc(&self, extent: Extent) -> Doc {
        let mut doc = Doc::new();
        let mut files: Vec<&SweptFile> = self.files.iter().collect();
        files.sort_by_key(|file| Reverse(urgency(&file.outcome)));
        let rows = files.into_iter().filter_map(|file| row(file, extent));
        doc.table(Table::new([""; 3]).with_rows(rows));
        let by_stand_in =
            |file: &SweptFile| matches!(file.outcome, SweptOutcome::Judged { has_stand_ins: true, .. });
        if self.files.iter().any(by_stand_in) {
            doc.line("Stand-ins answered for the marked files; the next sweep judges them again.");
        }
        if let Some(estimate) = self.estimate.as_ref().filter(|estimate| !estimate.executors.is_empty()) {
            estimate.add_to(&mut doc, "All of them");
            doc.end_section();
            doc.line(ESTIMATE_NOTE);
        }
        doc.end_section();
        doc.line(summary(&self.files));
        doc
    }
}

/// The strictest verdict first, then what has none.
fn urgency(outcome: &SweptOutcome) -> Option<Verdict> {
    match outcome {
        SweptOutcome::Judged { verdict, .. } => Some(*verdict),
        SweptOutcome::Failed { .. } => Some(Verdict::Incomplete),
        _ => None,
    }
}

impl Estimates {
    /// The estimates as people read them, without [`ESTIMATE_NOTE`].
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        self.texts.iter().for_each(|draft| draft.estimate.add_to(&mut doc, &draft.artifact));
        if self.texts.len() > 1 {
            self.total.add_to(&mut doc, "All of them");
        }
        doc
    }
}

impl Estimate {
    /// The calls, and the cost by executor.
    pub(super) fn add_to(&self, doc: &mut Doc, name: &str) {
        match self.executors.is_empty() {
            true => doc.heading(format!("{name}: asks no member")),
            false => doc.heading(format!("{name}: {}", amount(self.calls, "call"))),
        }
        self.executors.iter().for_each(|executor| doc.line(line(executor)));
        self.obstacle.iter().for_each(|obstacle| doc.line(obstacle.clone()));
        if !self.samples.is_empty() {
            doc.line(format!("Counted in these calls: {}.", SampledMember::list(&self.samples)));
        }
        if let Some(ms) = self.last_run_ms {
            doc.line(last_run(ms));
        }
    }
}

fn row(file: &SweptFile, extent: Extent) -> Option<[Text; 3]> {
    let (word, run, why) = match &file.outcome {
        SweptOutcome::Judged { run, verdict, why, has_stand_ins, .. } => {
            let word = Text::toned(Tone::of_word(verdict.as_str()), verdict.as_str());
            (if *has_stand_ins { word.and(" (stand-ins)") } else { word }, &**run, &**why)
        }
        SweptOutcome::Due => (Text::faint("due"), "", ""),
        SweptOutcome::Queued { run, state, .. } => (Text::faint(*state), &**run, ""),
        SweptOutcome::Failed { why } => (Text::toned(Tone::Absent, "failed"), "", &**why),
        // A model's decision not to review is shown: the text itself may have persuaded the model.
        SweptOutcome::TierSkipped | SweptOutcome::NotSampled => {
            let reason = file.tier_reason.as_deref().or((extent == Extent::Full).then_some(""));
            (Text::faint("skipped"), "", reason?)
        }
        SweptOutcome::AlreadyJudged { .. } => return None,
    };
    let more = match extent {
        Extent::Screen => why.to_owned(),
        Extent::Full => {
            let kind = format!("{}, tier {}", file.artifact_type, file.tier);
            let all = [&*kind, run, why].into_iter().filter(|text| !text.is_empty());
            all.collect::<Vec<_>>().join(" · ")
        }
    };
    Some([word, (&file.path).into(), more.into()])
}

/// One sentence: the number of files, by result.
fn summary(all: &[SweptFile]) -> String {
    let count = |is: &dyn Fn(&SweptOutcome) -> bool| all.iter().filter(|file| is(&file.outcome)).count();
    let judged = |expected: Verdict| {
        count(&|outcome| matches!(outcome, SweptOutcome::Judged { verdict, .. } if *verdict == expected))
    };
    let before = |expected: Verdict| {
        count(
            &|outcome| matches!(outcome, SweptOutcome::AlreadyJudged { verdict } if *verdict == Some(expected)),
        )
    };
    let before = [Verdict::Revise, Verdict::Hold].map(|verdict| (before(verdict), verdict.as_str()));
    let before: Vec<String> = before
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let before = match before.is_empty() {
        true => "judged before".to_owned(),
        false => format!("judged before ({})", before.join(", ")),
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
        (count(&|outcome| matches!(outcome, SweptOutcome::AlreadyJudged { .. })), &before),
        (count(&|outcome| *outcome == SweptOutcome::NotSampled), "not in the sample"),
        (count(&|outcome| *outcome == SweptOutcome::TierSkipped), "of tier 2, which is not reviewed"),
    ];
    let listed: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, text)| format!("{count} {text}")).collect();
    let files = amount(all.len() as u64, "file");
    if listed.is_empty() { format!("{files}.") } else { format!("{files}: {}.", listed.join(", ")) }
}

/// An executor's name, with its model.
fn executor_with_model(executor: &str, model: Option<&String>) -> String {
    match model {
        Some(model) if !executor.contains(model.as_str()) => format!("{executor} (model {model})"),
        _ => executor.to_owned(),
    }
}

fn line(executor: &ExecutorEstimate) -> String {
    let named = |one: &StandInEstimate| executor_with_model(&one.executor, one.model.as_ref());
    let stand_ins: Vec<String> = executor.stand_ins.iter().map(named).collect();
    let mut line = line_without_stand_ins(executor);
    if !stand_ins.is_empty() {
        line.push_str(if line.contains("at most") { ", with a call of each stand-in" } else { "" });
        line.push_str(&format!("; asked only if its service fails: {}", stand_ins.join(", ")));
    }
    line
}

fn line_without_stand_ins(executor: &ExecutorEstimate) -> String {
    let name = executor_with_model(&executor.executor, executor.model.as_ref());
    let calls = amount(executor.calls, "call");
    if !executor.asks_a_model {
        return format!("{name}: {calls}, no model is asked");
    }
    let ExecutorEstimate { tokens_in, tokens_out, money, most, .. } = *executor;
    let expected = cost(&Usage { tokens_in, tokens_out, money, ..Usage::default() });
    let mut text = format!("{name}: {calls}, about {}", expected.trim_start_matches(", "));
    match (money, most.money) {
        (Some(Money::ZERO), _) if executor.stand_ins.is_empty() => {}
        (_, Some(Money::ZERO)) => {}
        (_, Some(most)) => text.push_str(&format!("; at most US$ {}", dollars(most))),
        (_, None) => match most.tokens {
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
    use quorate_diagnostics::render::TextOptions;

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
            why: fix.map_or_else(String::new, |_| "3:1 no source for the main claim (+2 more)".to_owned()),
            fix: fix.map(str::to_owned),
            has_stand_ins: false,
        };
        let all = [
            file("a.md", judged(Verdict::Ship, None)),
            file("aa.md", judged(Verdict::Revise, Some("line 3: Name the source."))),
            file("ab.md", judged(Verdict::Hold, Some("line 9: Say for how long."))),
            file("b.md", SweptOutcome::Failed { why: "not UTF-8".to_owned() }),
            file("c.md", SweptOutcome::TierSkipped),
            file("d.md", SweptOutcome::AlreadyJudged { verdict: Some(Verdict::Hold) }),
        ];
        let report = Sweep { files: all.to_vec(), ..Sweep::default() };
        insta::assert_snapshot!(report.doc(Extent::Screen).text(TextOptions::default()), @"
        failed  b.md   not UTF-8
        HOLD    ab.md  3:1 no source for the main claim (+2 more)
        REVISE  aa.md  3:1 no source for the main claim (+2 more)
        SHIP    a.md

        6 files: 1 SHIP, 1 REVISE, 1 HOLD, 1 failed, 1 judged before (1 HOLD), 1 of tier 2, which is not
        reviewed.
        ");
        let full = report.doc(Extent::Full).text(TextOptions::default());
        assert!(full.contains("post, tier 1 · r7k2m9q4xa1bc"), "{full}");
        assert!(full.contains("skipped  c.md") && !full.contains("d.md"), "{full}");
        insta::assert_snapshot!(Sweep::default().doc(Extent::Screen).text(TextOptions::default()), @"0 files.");
        let object = report.to_json();
        assert_eq!(object["files"][0]["verdict"], "SHIP");
        assert_eq!(object["files"][2]["fix_first"], "line 9: Say for how long.");
        assert_eq!(object["files"][4]["fate"], "tier_skipped");
    }
}
