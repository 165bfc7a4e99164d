//! Banned phrases. Repetitions of one phrase are one finding with a higher weight.

use std::collections::BTreeMap;

use super::{Check, Criteria};
use crate::executor::rubric::document::{Document, WordKind};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::lens::Lens;

/// The voice lens asks for plain words.
pub(super) static CHECK: Check =
    Check { name: "banned phrases", lens: Lens::Voice, yields_to: &[Lens::Evidence], run };

/// How many further lines an issue names.
const MAX_LINES: usize = 5;

fn run(document: &Document<'_>, criteria: &Criteria<'_>) -> Vec<Finding> {
    let mut by_phrase: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let uses = criteria.banned.occurrences(document);
    for (index, found) in uses.iter().enumerate() {
        by_phrase.entry(fold(&document.text[found.span.clone()])).or_default().push(index);
    }
    let house: Vec<Vec<&str>> = criteria.context.iter().map(words).collect();
    let findings =
        by_phrase.into_iter().filter(|(phrase, _)| !is_in_context(phrase, &house)).map(|(_, indices)| {
            let first = &uses[indices[0]];
            let mut issue = format!("“{}” is a phrase that says little.", document.one_line(&first.span));
            let again: Vec<String> = indices
                .iter()
                .skip(1)
                .take(MAX_LINES)
                .map(|at| document.line_of(uses[*at].span.start).to_string())
                .collect();
            if !again.is_empty() {
                issue.push_str(&format!(
                    " It stands {} times, again on line {}.",
                    indices.len(),
                    again.join(", ")
                ));
            }
            let extra = u32::try_from(indices.len() - 1).unwrap_or(u32::MAX).min(9);
            Finding {
                extra_points: extra,
                ..Finding::new(first.span.clone(), Severity::Minor, issue, first.fix.clone())
            }
        });
    let mut findings: Vec<Finding> = findings.collect();
    findings.sort_by_key(|finding| finding.span.start);
    findings
}

fn fold(phrase: &str) -> String {
    phrase.split(|c: char| c.is_whitespace() || c == '-').collect::<Vec<_>>().join(" ").to_lowercase()
}

fn words<'a>(corpus: &'a Document<'_>) -> Vec<&'a str> {
    corpus.words.iter().filter(|word| word.kind != WordKind::Code).map(|word| &*word.text).collect()
}

/// Whether the voice corpus in the member's context uses the phrase.
fn is_in_context(phrase: &str, corpus: &[Vec<&str>]) -> bool {
    let sought: Vec<&str> = phrase.split(' ').collect();
    corpus.iter().any(|words| words.windows(sought.len()).any(|window| window == sought))
}

#[cfg(test)]
mod tests {
    use super::super::harness::findings;
    use super::*;
    use crate::executor::rubric::banned::BannedPhrases;
    use crate::executor::rubric::goals::Goals;

    #[test]
    fn repetitions_are_one_finding_that_counts_more() {
        let found = findings(&CHECK, "A seamless start.\n\nA seamless end, truly game-changing.");
        assert_eq!(found.iter().map(Finding::points).collect::<Vec<_>>(), [2, 1]);
        assert!(found[0].issue.contains("again on line 3"), "{}", found[0].issue);
    }

    #[test]
    fn what_the_voice_corpus_says_is_ours() {
        let banned = BannedPhrases::new(true, &[]).expect("usable");
        let corpus = [Document::parse("voice.md", "We always called it a game-changer.")];
        let criteria = Criteria { banned: &banned, goals: &Goals::default(), context: &corpus };
        assert_eq!((CHECK.run)(&Document::parse("", "A game changer, and seamless."), &criteria).len(), 1);
    }
}
