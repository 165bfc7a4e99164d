//! Matches the findings of two runs. Members word a finding differently in each run, so the quote decides if there is one:
//! two findings with the same quote are the same finding; those of the same member are matched first.

use std::collections::{BTreeMap, VecDeque};

use super::{Finding, Findings, KeptFinding};

/// The property that a finding may share with another one; `None` if it lacks that property.
type Key = fn(&Finding) -> Option<Vec<String>>;

/// The shared properties, the strongest first. An empty part matches nothing.
const KEYS: [Key; 5] = [
    |finding| Some(vec![finding.by.clone(), plain(&finding.quote), plain(&finding.issue)]),
    |finding| quoted(finding).map(|quote| vec![quote, plain(&finding.issue)]),
    |finding| quoted(finding).map(|quote| vec![finding.by.clone(), quote]),
    |finding| quoted(finding).map(|quote| vec![quote]),
    // The quoted words were edited, and the member's words about them are the same.
    |finding| {
        Some(plain(&finding.issue))
            .filter(|issue| !issue.is_empty())
            .map(|issue| vec![finding.by.clone(), issue])
    },
];

/// Pairs findings of two runs, each at most once. Kept and new ones are in the order of `b`, gone ones in that of `a`.
pub(super) fn compare(a: Vec<Finding>, b: Vec<Finding>) -> Findings {
    let mut pairs: Vec<Option<usize>> = vec![None; b.len()];
    let mut is_taken = vec![false; a.len()];
    for key in KEYS {
        let mut left: BTreeMap<Vec<String>, VecDeque<usize>> = BTreeMap::new();
        for (at, finding) in a.iter().enumerate().filter(|(at, _)| !is_taken[*at]) {
            if let Some(key) = key(finding) {
                left.entry(key).or_default().push_back(at);
            }
        }
        for (finding, pair) in b.iter().zip(&mut pairs).filter(|(_, pair)| pair.is_none()) {
            let Some(at) = key(finding).and_then(|key| left.get_mut(&key)?.pop_front()) else { continue };
            *pair = Some(at);
            is_taken[at] = true;
        }
    }
    let mut a: Vec<Option<Finding>> = a.into_iter().map(Some).collect();
    let mut findings = Findings::default();
    for (finding, pair) in b.into_iter().zip(pairs) {
        match pair.and_then(|at| a[at].take()) {
            Some(before) => findings.kept.push(KeptFinding { a: before, b: finding }),
            None => findings.new.push(finding),
        }
    }
    findings.gone = a.into_iter().flatten().collect();
    findings
}

fn quoted(finding: &Finding) -> Option<String> {
    Some(plain(&finding.quote)).filter(|quote| !quote.is_empty())
}

/// A text without differences of case and white space.
fn plain(text: &str) -> String {
    text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(by: &str, quote: &str, issue: &str) -> Finding {
        Finding { by: by.to_owned(), quote: quote.to_owned(), issue: issue.to_owned(), ..Finding::default() }
    }

    fn shown(a: &[Finding], b: &[Finding]) -> (Vec<(String, String)>, Vec<String>, Vec<String>) {
        let found = compare(a.to_vec(), b.to_vec());
        let issues = |all: Vec<Finding>| all.into_iter().map(|finding| finding.issue).collect();
        let kept = found.kept.into_iter().map(|kept| (kept.a.issue, kept.b.issue)).collect();
        (kept, issues(found.new), issues(found.gone))
    }

    #[test]
    fn a_finding_in_other_words_is_kept_by_its_quote() {
        let a = [finding("tone", "Best in the  world", "unproven"), finding("facts", "40%", "no source")];
        let b = [finding("tone", "best in the world", "a boast"), finding("tone", "soon", "vague")];
        let (kept, new, gone) = shown(&a, &b);
        assert_eq!(kept, [("unproven".to_owned(), "a boast".to_owned())]);
        assert_eq!((new, gone), (vec!["vague".to_owned()], vec!["no source".to_owned()]));
    }

    #[test]
    fn the_same_member_comes_first_and_each_finding_counts_once() {
        let a = [finding("x", "q", "one"), finding("y", "q", "two")];
        let b = [finding("y", "q", "three"), finding("x", "q", "four"), finding("z", "q", "five")];
        let (kept, new, gone) = shown(&a, &b);
        assert_eq!(kept, [("two".to_owned(), "three".to_owned()), ("one".to_owned(), "four".to_owned())]);
        assert_eq!((new, gone), (vec!["five".to_owned()], Vec::<String>::new()));
    }

    #[test]
    fn an_edited_quote_is_kept_by_what_is_said_of_it() {
        let (kept, ..) = shown(&[finding("x", "old words", "vague")], &[finding("x", "new words", "Vague")]);
        assert_eq!(kept.len(), 1);
        let (kept, new, gone) = shown(&[finding("x", "", "a")], &[finding("y", "", "b")]);
        assert_eq!((kept.len(), new.len(), gone.len()), (0, 1, 1), "findings without a quote do not match");
    }

    #[test]
    fn every_finding_is_in_one_list() {
        let mut state = 5_u64;
        let mut draw = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) % below
        };
        for _ in 0..200 {
            let mut some = |n: u64| -> Vec<Finding> {
                (0..draw(n))
                    .map(|_| {
                        finding(
                            ["a", "b"][draw(2) as usize],
                            ["", "q", "r"][draw(3) as usize],
                            ["i", "j"][draw(2) as usize],
                        )
                    })
                    .collect()
            };
            let (a, b) = (some(9), some(9));
            let found = compare(a.clone(), b.clone());
            assert_eq!(found.kept.len() + found.gone.len(), a.len());
            assert_eq!(found.kept.len() + found.new.len(), b.len());
            assert_eq!(compare(a.clone(), a.clone()).kept.len(), a.len());
        }
    }
}
