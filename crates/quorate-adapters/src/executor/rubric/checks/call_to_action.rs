//! Outward texts that ask and offer nothing: no link, no question, no next step.

use std::sync::LazyLock;

use quorate_diagnostics::word_list::WordList;

use super::{Check, Criteria};
use crate::executor::rubric::document::{Channel, Document};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::lens::Lens;
use crate::executor::rubric::lexicon::Lexicon;

const WORDS: &str = include_str!("../words/call_to_action.txt");

/// The strategist asks what the reader is to do.
pub(super) static CHECK: Check = Check { name: "call to action", lens: Lens::Strategy, yields_to: &[], run };

static IMPERATIVES: WordList = WordList::new(WORDS, "imperatives");
static NEXT_STEP: LazyLock<Lexicon<()>> = LazyLock::new(|| {
    Lexicon::from_phrases(&[
        "next step|steps",
        "sign up",
        "reach out",
        "get in touch",
        "you can now? try|get|find|install|download|order|join",
        "available at|from|in",
        "write to us",
    ])
});

fn run(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    if document.channel != Channel::Outward || document.has_link {
        return Vec::new();
    }
    let invites = document.sentences.iter().any(|sentence| {
        let words = document.words_of(sentence);
        let imperative = words.first().is_some_and(|word| IMPERATIVES.contains(&word.text));
        let asks = document.prose[sentence.span.clone()].trim_end().ends_with('?');
        imperative || asks || NEXT_STEP.first(words).is_some()
    });
    let Some(last) = document.sentences.last().filter(|_| !invites) else { return Vec::new() };
    let issue = "The text goes out to readers and asks nothing of them: no link, no question, no next step.";
    vec![Finding::new(
        last.span.clone(),
        Severity::Major,
        issue,
        "End with the one thing that the reader can do now, and where.",
    )]
}

#[cfg(test)]
mod tests {
    use super::super::harness::findings_in;
    use super::*;

    fn count(name: &str, text: &str) -> usize {
        findings_in(&CHECK, name, text, "").len()
    }

    #[test]
    fn a_post_has_to_ask_or_offer_something() {
        assert_eq!(count("launch-post.md", "We built a thing. It is good."), 1);
        for text in [
            "It is good. Try it.",
            "It is good. What do you think?",
            "It is [here](https://x.example).",
            "You can get it now.",
        ] {
            assert_eq!(count("launch-post.md", text), 0, "{text}");
        }
    }

    #[test]
    fn other_texts_need_not() {
        assert_eq!(count("incident-report.md", "The disk was full."), 0);
        assert_eq!(count("notes.md", "The disk was full."), 0);
    }
}
