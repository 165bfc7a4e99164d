//! Compares a text with the goals document: it serves none of the goals, touches a non-goal, or reports a reason to stop.
//! It compares words, not meanings, so its findings ask rather than judge.

use std::collections::HashSet;

use super::{Check, Criteria, opening_span};
use crate::executor::rubric::document::{BlockKind, Document};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::goals::{Goal, stems};
use crate::executor::rubric::lens::Lens;

/// The strategist asks what it is for. Without a goals document it asks nothing.
pub(super) static CHECK: Check = Check { name: "goals", lens: Lens::Strategy, yields_to: &[], run };

/// How much of a goal an issue quotes, in characters.
const MAX_GOAL_CHARS: usize = 80;

fn run(document: &Document<'_>, criteria: &Criteria<'_>) -> Vec<Finding> {
    let goals = criteria.goals;
    if goals.is_empty() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut all = HashSet::new();
    for sentence in &document.sentences {
        let words = stems(document, sentence);
        let denies = document.words_of(sentence).iter().any(|word| {
            matches!(&*word.text, "not" | "no" | "never" | "without" | "don't" | "won't" | "doesn't")
        });
        let prose = document.kind_of(sentence) != BlockKind::Cell && !denies;
        let touched = |list: &[Goal]| {
            list.iter().find(|goal| prose && goal.is_touched_by(&words)).map(|goal| shorten(&goal.text))
        };
        if let Some(non_goal) = touched(&goals.non_goals) {
            let issue = format!("This comes close to a stated non-goal: “{non_goal}”.");
            findings.push(Finding::new(
                sentence.span.clone(),
                Severity::Major,
                issue,
                "Take it out, or change the goals document first.",
            ));
        }
        if let Some(reason) = touched(&goals.kill_criteria) {
            let issue = format!("This comes close to a stated reason to stop: “{reason}”.");
            findings.push(Finding::new(
                sentence.span.clone(),
                Severity::Major,
                issue,
                "Say whether it is met before this goes out.",
            ));
        }
        all.extend(words);
    }
    if !goals.goals.is_empty() && !goals.goals.iter().any(|goal| goal.is_served_by(&all)) {
        let first = shorten(&goals.goals[0].text);
        let issue = format!(
            "None of the {} stated goals shows in the text; the first is “{first}”.",
            goals.goals.len()
        );
        let fix = "Say which goal it serves, or ask whether it should go out at all.";
        findings.push(Finding {
            extra_points: 2,
            ..Finding::new(opening_span(document), Severity::Major, issue, fix)
        });
    }
    findings
}

fn shorten(goal: &str) -> String {
    let line = goal.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_GOAL_CHARS) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::harness::findings_in;
    use super::*;

    const GOALS: &str = "# Goals\n\n- Make reviews of drafts cheap to audit\n\n# Non-goals\n\n- Hosting language models ourselves\n\n\
                         # Kill criteria\n\n- Auditors stop replaying reviews\n";

    fn issues(text: &str) -> Vec<String> {
        findings_in(&CHECK, "", text, GOALS).into_iter().map(|finding| finding.issue).collect()
    }

    #[test]
    fn served_touched_and_neither() {
        assert!(issues("You can now audit every review of a draft.").is_empty());
        assert!(
            issues("The review can be audited. Soon we are hosting models ourselves.")
                .iter()
                .any(|i| i.contains("non-goal"))
        );
        assert!(
            issues("The review can be audited, but auditors are replaying fewer reviews.")
                .iter()
                .any(|i| i.contains("reason to stop"))
        );
        assert!(issues("A cookbook for rainy days.").iter().any(|i| i.contains("None of the 1")));
    }

    #[test]
    fn a_denied_non_goal_is_not_touched() {
        assert!(issues("Reviews can be audited. We are not hosting language models ourselves.").is_empty());
    }

    #[test]
    fn without_goals_nothing_is_asked() {
        assert!(findings_in(&CHECK, "", "Anything.", "").is_empty());
    }
}
