//! Percentages and multiples that do not say of what, or compared with what.

use std::ops::Range;
use std::sync::LazyLock;

use quorate_diagnostics::word_list::WordList;

use super::claim::{claim, has_source};
use super::{Check, Criteria};
use crate::executor::rubric::document::{Document, Sentence, Word};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::lens::Lens;
use crate::executor::rubric::lexicon::Lexicon;

const WORDS: &str = include_str!("../words/missing_base.txt");

/// The evidence lens asks what the base is. It counts little: a figure without a source is counted already.
pub(super) static CHECK: Check = Check { name: "missing base", lens: Lens::Evidence, yields_to: &[], run };

static COMPARING: WordList = WordList::new(WORDS, "comparing");
const PEOPLE: &[&str] =
    &["users", "customers", "people", "teams", "companies", "developers", "respondents", "clients"];

static BASES: LazyLock<Lexicon<()>> = LazyLock::new(|| Lexicon::from_section(WORDS, "bases"));

fn run(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    // Of a figure without a source the base is asked for together with the source.
    let sourced = (0..document.sentences.len()).filter(|index| has_source(document, *index));
    let findings = sourced.filter_map(|index| unstated_base(document, index)).map(|(span, asked)| {
        let issue = format!("“{}” does not say {asked}.", document.one_line(&span));
        Finding::new(
            span,
            Severity::Minor,
            issue,
            format!("Say {asked}: the base decides what the figure means."),
        )
    });
    findings.collect()
}

/// What the figure of a sentence leaves open, and where; `None` where it has a base or needs none.
pub(super) fn unstated_base(document: &Document<'_>, index: usize) -> Option<(Range<usize>, &'static str)> {
    let sentence = &document.sentences[index];
    let claim = claim(document, sentence)?;
    let words = document.words_of(sentence);
    let at = words.iter().position(|word| word.end > claim.span.start)?;
    let near = &words[at..(at + 6).min(words.len())];
    let compares = near.iter().find(|word| COMPARING.contains(&word.text));
    let shares =
        near.iter().find(|word| PEOPLE.contains(&&*word.text)).filter(|_| is_share(document, words, at));
    let (of, asked) = match (compares, shares) {
        (Some(word), _) => (word, "compared with what"),
        (None, Some(word)) => (word, "of how many"),
        (None, None) => return None,
    };
    let next = document.sentences.get(index + 1).filter(|next| next.block == sentence.block);
    let based = [Some(sentence), next].into_iter().flatten().any(|one| has_base(document, one));
    (!based).then_some((claim.span.start..of.end, asked))
}

fn is_share(document: &Document<'_>, words: &[Word<'_>], at: usize) -> bool {
    document.prose[words[at].end..].trim_start().starts_with('%')
        || words.get(at + 1).is_some_and(|w| w.text.starts_with("per"))
}

fn has_base(document: &Document<'_>, sentence: &Sentence) -> bool {
    let counts = document.prose[sentence.span.clone()].contains("n =");
    counts || BASES.first(document.words_of(sentence)).is_some()
}

#[cfg(test)]
mod tests {
    use super::super::harness::{findings, quotes};
    use super::*;

    #[test]
    fn figures_without_a_base() {
        assert_eq!(quotes(&CHECK, "It is 40% faster ([run](r.md))."), ["40% faster"]);
        assert_eq!(quotes(&CHECK, "According to our logs, 80% of users agree."), ["80% of users"]);
    }

    #[test]
    fn figures_with_a_base() {
        for text in [
            "It is 40% faster than 1.0",
            "It is 40% faster. Compared with May, that is",
            "Some 80% of the 412 users surveyed agree",
        ] {
            assert!(quotes(&CHECK, &format!("{text} ([run](r.md)).")).is_empty(), "{text}");
        }
    }

    #[test]
    fn without_a_source_it_is_asked_together_with_the_source() {
        assert!(quotes(&CHECK, "It is 40% faster.").is_empty());
        let found = findings(&super::super::unsourced_number::CHECK, "It is 40% faster.");
        assert!(found[0].issue.contains("compared with what"), "{}", found[0].issue);
    }
}
