//! Register: whether the tone fits the purpose of the text. It goes by a word list and therefore reports little: a report
//! or a manual that cheers, an outward text that reads like a contract, a very long paragraph in an outward text.

use std::sync::LazyLock;

use super::{Check, Criteria};
use crate::executor::rubric::document::{BlockKind, Channel, Document};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::lens::Lens;
use crate::executor::rubric::lexicon::Lexicon;

/// The voice lens asks whether the tone fits.
pub(super) static CHECK: Check = Check { name: "register", lens: Lens::Voice, yields_to: &[], run };

/// At most this many findings, since tone is a matter of taste.
const MAX_FINDINGS: usize = 3;
/// A longer paragraph in an outward text is a finding.
const MAX_PARAGRAPH_WORDS: usize = 130;

static CHEER: LazyLock<Lexicon<()>> = LazyLock::new(|| {
    Lexicon::from_phrases(&[
        "awesome|amazing|incredible|fantastic|epic|yay|woohoo|hooray",
        "super excited|happy|proud",
        "oops|whoops",
    ])
});
static LEGALESE: LazyLock<Lexicon<()>> = LazyLock::new(|| {
    Lexicon::from_phrases(&[
        "hereby|herein|hereinafter|aforementioned|heretofore|thereof|whereas",
        "pursuant to",
        "in accordance with the",
        "shall be deemed",
    ])
});

fn run(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings = match document.channel {
        Channel::Report => find_phrases(
            document,
            &CHEER,
            "cheers in a report",
            "Say what happened, in the same voice as the rest.",
        ),
        Channel::Manual => find_phrases(document, &CHEER, "cheers in a manual", "Say what it does."),
        Channel::Outward => {
            let mut findings = find_phrases(
                document,
                &LEGALESE,
                "is the language of a contract, not of a post",
                "Say it as you would to a reader.",
            );
            findings.extend(walls(document));
            findings
        }
        Channel::Unstated => Vec::new(),
    };
    findings.truncate(MAX_FINDINGS);
    findings
}

fn find_phrases(document: &Document<'_>, list: &Lexicon<()>, issue: &str, fix: &str) -> Vec<Finding> {
    let hits = document.sentences.iter().flat_map(|sentence| {
        let words = document.words_of(sentence);
        list.all(words).into_iter().filter(|hit| !words[hit.words.start].quoted).map(|hit| {
            let span = words[hit.words.start].start..words[hit.words.end - 1].end;
            Finding::new(
                span.clone(),
                Severity::Minor,
                format!("“{}” {issue}.", document.one_line(&span)),
                fix,
            )
        })
    });
    hits.collect()
}

fn walls(document: &Document<'_>) -> Vec<Finding> {
    let paragraphs = document.blocks.iter().filter(|block| block.kind == BlockKind::Paragraph);
    let walls = paragraphs.filter_map(|block| {
        let sentences = &document.sentences[block.sentences.clone()];
        let count: usize = sentences.iter().map(|sentence| sentence.words.len()).sum();
        let first = sentences.first().filter(|_| count > MAX_PARAGRAPH_WORDS)?;
        let issue = format!("A paragraph of {count} words is a wall in a text that people skim.");
        Some(Finding::new(first.span.clone(), Severity::Minor, issue, "Break it into two or three."))
    });
    walls.collect()
}

#[cfg(test)]
mod tests {
    use super::super::harness::findings_in;
    use super::*;

    fn count(name: &str, text: &str) -> usize {
        findings_in(&CHECK, name, text, "").len()
    }

    #[test]
    fn the_channel_sets_the_tone() {
        let cheer = "The disk filled up, which was awesome to debug.";
        assert_eq!(
            (count("incident-report.md", cheer), count("launch-post.md", cheer), count("x.md", cheer)),
            (1, 0, 0)
        );
        assert_eq!(count("launch-post.md", "We hereby announce it."), 1);
        assert_eq!(count("launch-post.md", &"We say a little more. ".repeat(30)), 1);
        assert_eq!(count("spec.md", "We hereby state it."), 0);
    }
}
