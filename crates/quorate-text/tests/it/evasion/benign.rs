//! What mentors, reviewers and incident reports write, without a trait in it.

use crate::evasion::{TRAITS, matcher};

const CORPUS: &str = include_str!("benign.txt");

// L2: folding gives no false hits.
#[test]
fn benign_text_is_left_alone() {
    let lines: Vec<&str> = CORPUS.lines().filter(|line| !line.trim().is_empty()).collect();
    assert!(lines.len() >= 300, "only {} lines", lines.len());
    let matcher = matcher(&TRAITS);
    let mut taken = Vec::new();
    for line in &lines {
        let lower = line.to_lowercase();
        assert!(TRAITS.iter().all(|locked| !lower.contains(locked)), "it has a trait as it stands: {line}");
        for hit in matcher.check(line) {
            taken.push(format!("{} by {}: {line}", hit.trait_text, hit.layer.as_str()));
        }
    }
    assert!(taken.is_empty(), "{} of {} lines:\n{}", taken.len(), lines.len(), taken.join("\n"));
}

// L2: nor in all of it as one text, where words of one line are beside those of the next.
#[test]
fn benign_text_is_left_alone_as_a_whole() {
    assert_eq!(matcher(&TRAITS).check(CORPUS), []);
}
