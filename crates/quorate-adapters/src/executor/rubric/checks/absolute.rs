//! Absolutes: words that one counterexample makes false.
//!
//! A rule is no claim: an imperative ("Never commit secrets"), a "must never", and in a manual or a specification
//! what a system always or never does. Nor is a denied absolute ("not everyone").

use std::sync::LazyLock;

use quorate_diagnostics::word_list::WordList;

use super::{Check, Criteria, irreversible_promise};
use crate::executor::rubric::document::{BlockKind, Channel, Document, Word};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::lens::Lens;
use crate::executor::rubric::lexicon::Lexicon;

const WORDS: &str = include_str!("../words/absolute.txt");

/// The skeptic asks for the exception. What is also a promise is the strategist's.
pub(super) static CHECK: Check =
    Check { name: "absolutes", lens: Lens::Skeptic, yields_to: &[Lens::Strategy], run };

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Says how things behave; in a manual it is a rule.
    Behaviour,
    /// Says what all people do or what cannot be.
    World,
}

static ABSOLUTES: LazyLock<Lexicon<Kind>> = LazyLock::new(|| {
    Lexicon::new([
        ("always|never", Kind::Behaviour),
        ("impossible", Kind::Behaviour),
        ("everyone|everybody|nobody", Kind::World),
        ("no one", Kind::World),
        ("guaranteed", Kind::Behaviour),
        (
            "undeniable|undeniably|unquestionably|indisputable|inevitable|inevitably|foolproof|flawless",
            Kind::World,
        ),
        ("zero|no risk|downside|downsides|drawbacks", Kind::World),
        ("without exception|fail|doubt", Kind::World),
        ("cannot|can't possibly? fail|lose", Kind::World),
        ("never fails|fail", Kind::World),
        ("every single", Kind::World),
        ("all of your|the? problems|worries", Kind::World),
    ])
});

/// Before an absolute these make it a modest word.
static DENIALS: WordList = WordList::new(WORDS, "denials");
/// Before an absolute these make it a rule.
const RULES: &[&str] = &["must", "should", "shall", "please", "do"];

fn run(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for sentence in &document.sentences {
        if document.kind_of(sentence) == BlockKind::Cell {
            continue;
        }
        let words = document.words_of(sentence);
        for hit in ABSOLUTES.all(words) {
            if is_claim(document, words, hit.words.start, *hit.meaning) && !is_joined(words, &hit.words) {
                let span = words[hit.words.start].start..words[hit.words.end - 1].end;
                let severity = if *hit.meaning == Kind::World { Severity::Major } else { Severity::Minor };
                let issue = format!(
                    "“{}” allows no exception, and one is enough to make it false.",
                    document.one_line(&span)
                );
                findings.push(Finding::new(
                    span,
                    severity,
                    issue,
                    "Say how often, for whom, or under which condition.",
                ));
            }
        }
    }
    findings
}

fn is_claim(document: &Document<'_>, words: &[Word<'_>], at: usize, kind: Kind) -> bool {
    let before = |steps: usize| at.checked_sub(steps).map_or("", |index| &*words[index].text);
    let denied = [before(1), before(2)].iter().any(|word| DENIALS.contains(word));
    let rule = RULES.contains(&before(1));
    let imperative = at == 0 && kind == Kind::Behaviour;
    let (word, after) = (&*words[at].text, words.get(at + 1).map_or("", |next| &*next.text));
    // "Visible to everyone" and "nobody has to" say what a thing does, not what all people do.
    let recipient = word.starts_with("every") && before(1) == "to";
    let relieved = matches!(word, "nobody" | "no")
        && (matches!(after, "has" | "needs")
            || words.get(at + 2).is_some_and(|two| matches!(&*two.text, "has" | "needs")));
    let described = kind == Kind::Behaviour && document.channel == Channel::Manual;
    let limited = word == "guaranteed" && irreversible_promise::is_limited(words);
    !limited && !words[at].quoted && !denied && !rule && !imperative && !described && !recipient && !relieved
}

/// Whether the phrase is part of a longer compound: "never-ending".
fn is_joined(words: &[Word<'_>], hit: &std::ops::Range<usize>) -> bool {
    words[hit.start].joined || words.get(hit.end).is_some_and(|next| next.joined)
}

#[cfg(test)]
mod tests {
    use super::super::harness::{findings, findings_in, quotes};
    use super::*;

    #[test]
    fn absolutes_are_found() {
        let text = "It always works for everyone, with zero risk, and results are guaranteed.";
        assert_eq!(quotes(&CHECK, text), ["always", "everyone", "zero risk", "guaranteed"]);
    }

    #[test]
    fn rules_denials_compounds_and_quotations_are_not() {
        for text in [
            "Never commit secrets.",
            "The key must never leave the disk.",
            "It is not always fast, and almost never slow; not everyone minds.",
            "A never-ending list.",
            "They say “it always works”.",
            "The frame is guaranteed for five years.",
            "The board is visible to everyone, so nobody has to ask.",
        ] {
            assert!(findings(&CHECK, text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_manual_may_say_what_a_system_never_does() {
        assert!(findings_in(&CHECK, "README.md", "A record is never changed.", "").is_empty());
        assert_eq!(findings_in(&CHECK, "post.md", "A record is never changed.", "").len(), 1);
    }
}
