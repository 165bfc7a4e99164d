//! Numbers that claim something and come from nowhere: percentages, multiples, sums of money, counts of people.

use std::collections::HashSet;

use super::claim::{Claim, claim, has_source};
use super::{Check, Criteria, missing_base};
use crate::executor::rubric::document::{Document, Margin, Sentence, WordKind};
use crate::executor::rubric::finding::Finding;
use crate::executor::rubric::lens::Lens;

/// The evidence lens asks where a number is from.
pub(super) static CHECK: Check =
    Check { name: "unsourced numbers", lens: Lens::Evidence, yields_to: &[], run };

fn run(document: &Document<'_>, criteria: &Criteria<'_>) -> Vec<Finding> {
    let context = criteria.context.iter().flat_map(|given| &given.words);
    let known: HashSet<&str> =
        context.filter(|word| word.kind == WordKind::Number).map(|word| &*word.text).collect();
    let claims = document.sentences.iter().enumerate().filter_map(|(index, sentence)| {
        let claim = claim(document, sentence)?;
        let unsourced = !has_source(document, index) && !is_known(document, sentence, &known);
        unsourced.then(|| finding(document, index, claim))
    });
    claims.collect()
}

fn finding(document: &Document<'_>, index: usize, claim: Claim) -> Finding {
    let sentence = &document.sentences[index];
    let figure = document.one_line(&claim.span);
    let base = missing_base::unstated_base(document, index)
        .map_or(String::new(), |(_, asked)| format!(", and it does not say {asked}"));
    Finding::new(
        document.with_context(sentence, &claim.span, Margin { before: 4, after: 3 }),
        claim.severity,
        format!("“{figure}” is a claim without a source near it{base}."),
        "Say where the figure is from: link it, name the data and its date, or take it out.",
    )
}

/// Whether every number of the sentence is in a document that the member was given.
fn is_known(document: &Document<'_>, sentence: &Sentence, known: &HashSet<&str>) -> bool {
    let mut numbers =
        document.words_of(sentence).iter().filter(|word| word.kind == WordKind::Number).peekable();
    numbers.peek().is_some() && numbers.all(|number| known.contains(&*number.text))
}

#[cfg(test)]
mod tests {
    use super::super::harness::{findings, quotes};
    use super::*;

    #[test]
    fn figures_that_claim_something() {
        for text in [
            "Our build is 40% faster now.",
            "It handles 3x the load.",
            "We serve 12,000 customers in nine countries.",
            "Thousands of teams rely on it.",
            "This saved $2 million last year.",
            "Errors dropped by half.",
            "It is twice as fast.",
            "It saves 6 hours a week.",
            "Some 40 per cent agreed.",
        ] {
            assert_eq!(findings(&CHECK, text).len(), 1, "{text}");
        }
    }

    #[test]
    fn ordinary_numbers_are_no_claims() {
        for text in [
            "On 12 May 2024 at 14:02 we shipped v1.2.3 to 4 people.",
            "Section 3 lists two steps. Chapter 12 has ten.",
            "The timeout is 30 seconds and must stay under 5%.",
            "It costs $9 a month.",
            "Exit code 64, port 8080, 0x1F and 512 bytes.",
            "They say “it is 40% faster”.",
            "| share |\n|---|\n| 40% |\n",
        ] {
            assert_eq!(findings(&CHECK, text), [], "{text}");
        }
    }

    #[test]
    fn a_source_nearby_is_enough() {
        for text in [
            "It is 40% faster ([benchmark](bench.md)).",
            "It is 40% faster. Measured on one laptop, ten runs.",
            "In our logs it looks good. It is 40% faster.",
            "It is 40% faster.[^1]\n\n[^1]: The report.",
            "# 40% faster\n\nAccording to the audit it is.",
            "According to the 2024 survey:\n\n- 40% left\n- 30% stayed\n",
            "It is 40% faster.\n\nSource: the spring benchmark.",
        ] {
            assert_eq!(findings(&CHECK, text), [], "{text}");
        }
    }

    #[test]
    fn the_quote_has_the_figure_and_its_clause() {
        assert_eq!(
            quotes(
                &CHECK,
                "Since the spring release, build times have dropped by 40% for nearly all of them."
            ),
            ["times have dropped by 40% for nearly all"]
        );
    }
}
