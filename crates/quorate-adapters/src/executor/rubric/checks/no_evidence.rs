//! A text in which no claim has a source.

use super::claim::{claim, has_source};
use super::{Check, Criteria, superlative, unsourced_number, vague_authority};
use crate::executor::rubric::document::Document;
use crate::executor::rubric::finding::Finding;
use crate::executor::rubric::lens::Lens;

/// The evidence lens asks for any source.
pub(super) static CHECK: Check = Check { name: "evidence at all", lens: Lens::Evidence, yields_to: &[], run };

/// From this many claims without a source on, the text is a finding.
const CLAIMS: usize = 5;
/// At most this many words for each claim.
const WORDS_PER_CLAIM: usize = 80;

fn run(document: &Document<'_>, criteria: &Criteria<'_>) -> Vec<Finding> {
    let checks = [&unsourced_number::CHECK, &superlative::CHECK, &vague_authority::CHECK];
    let unsourced: Vec<Finding> = checks.iter().flat_map(|check| (check.run)(document, criteria)).collect();
    let has_sourced_claim = document
        .sentences
        .iter()
        .enumerate()
        .any(|(at, sentence)| claim(document, sentence).is_some() && has_source(document, at));
    let enough = unsourced.len() >= CLAIMS && unsourced.len() * WORDS_PER_CLAIM >= document.word_count();
    let Some(first) =
        unsourced.iter().min_by_key(|finding| finding.span.start).filter(|_| enough && !has_sourced_claim)
    else {
        return Vec::new();
    };
    vec![Finding::beyond_edit(
        first.span.clone(),
        format!(
            "{} claims and no source for any of them: the text rests on nothing that can be looked up.",
            unsourced.len()
        ),
        "Find the evidence first, then write what it supports.",
    )]
}

#[cfg(test)]
mod tests {
    use super::super::harness::findings;
    use super::*;

    const BARE: &str = "It is the fastest tool. It is 40% cheaper. Studies show it works. Thousands of teams use it. It is unmatched.";

    #[test]
    fn many_claims_and_no_source() {
        assert_eq!(findings(&CHECK, BARE).len(), 1);
    }

    #[test]
    fn one_sourced_claim_or_few_claims_are_another_matter() {
        assert!(findings(&CHECK, &format!("{BARE}\n\nIt fell by 5% ([report](r.md)).")).is_empty());
        assert!(findings(&CHECK, "It is 40% cheaper. Studies show it works.").is_empty());
        assert!(
            findings(&CHECK, &format!("{BARE}\n\n{}", "Then we sat down and talked about it. ".repeat(80)))
                .is_empty()
        );
    }
}
