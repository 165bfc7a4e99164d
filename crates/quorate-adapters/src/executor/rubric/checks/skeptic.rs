//! The checks of the skeptic: absolutes, causal leaps, survivorship, and arguments without the other side.
//!
//! A rule is not a claim: an imperative ("Never commit secrets"), a "must never", and in a manual or a specification a
//! statement about what a system always or never does. Nor is a denied absolute ("not everyone").

use std::sync::LazyLock;

use quorate_diagnostics::text::WordList;

use super::{Check, Criteria, opening_span, skeptic, strategy};
use crate::executor::rubric::document::{BlockKind, Channel, Document, Margin, Sentence, Word};
use crate::executor::rubric::finding::{Finding, Lens, Severity};
use crate::executor::rubric::lexicon::Lexicon;

const ABSOLUTE_WORDS: &str = include_str!("../words/absolute.txt");

/// The skeptic asks for the exception. A promise belongs to the strategist.
pub(super) static ABSOLUTE_CHECK: Check =
    Check { name: "absolutes", lens: Lens::Skeptic, yields_to: &[Lens::Strategy], run: find_absolutes };

#[derive(Clone, Copy, PartialEq, Eq)]
enum AbsoluteKind {
    /// Says how things behave; in a manual it is a rule.
    Behaviour,
    /// Says what all people do or what cannot be.
    World,
}

static ABSOLUTES: LazyLock<Lexicon<AbsoluteKind>> = LazyLock::new(|| {
    Lexicon::new([
        ("always|never", AbsoluteKind::Behaviour),
        ("impossible", AbsoluteKind::Behaviour),
        ("everyone|everybody|nobody", AbsoluteKind::World),
        ("no one", AbsoluteKind::World),
        ("guaranteed", AbsoluteKind::Behaviour),
        (
            "undeniable|undeniably|unquestionably|indisputable|inevitable|inevitably|foolproof|flawless",
            AbsoluteKind::World,
        ),
        ("zero|no risk|downside|downsides|drawbacks", AbsoluteKind::World),
        ("without exception|fail|doubt", AbsoluteKind::World),
        ("cannot|can't possibly? fail|lose", AbsoluteKind::World),
        ("never fails|fail", AbsoluteKind::World),
        ("every single", AbsoluteKind::World),
        ("all of your|the? problems|worries", AbsoluteKind::World),
    ])
});

/// Before an absolute these make it a modest word.
static ABSOLUTE_DENIALS: WordList = WordList::new(ABSOLUTE_WORDS, "denials");
/// Before an absolute these make it a rule.
const RULE_WORDS: &[&str] = &["must", "should", "shall", "please", "do"];

fn find_absolutes(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for sentence in &document.sentences {
        if document.kind_of(sentence) == BlockKind::Cell {
            continue;
        }
        let words = document.words_of(sentence);
        for hit in ABSOLUTES.all(words) {
            if is_absolute_claim(document, words, hit.words.start, *hit.meaning)
                && !is_joined(words, &hit.words)
            {
                let span = words[hit.words.start].start..words[hit.words.end - 1].end;
                let severity =
                    if *hit.meaning == AbsoluteKind::World { Severity::Major } else { Severity::Minor };
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

fn is_absolute_claim(document: &Document<'_>, words: &[Word<'_>], at: usize, kind: AbsoluteKind) -> bool {
    let before = |steps: usize| at.checked_sub(steps).map_or("", |index| &*words[index].text);
    let denied = [before(1), before(2)].iter().any(|word| ABSOLUTE_DENIALS.contains(word));
    let rule = RULE_WORDS.contains(&before(1));
    let imperative = at == 0 && kind == AbsoluteKind::Behaviour;
    let (word, after) = (&*words[at].text, words.get(at + 1).map_or("", |next| &*next.text));
    // Words such as "visible to everyone" describe a thing, not all people.
    let recipient = word.starts_with("every") && before(1) == "to";
    let relieved = matches!(word, "nobody" | "no")
        && (matches!(after, "has" | "needs")
            || words.get(at + 2).is_some_and(|two| matches!(&*two.text, "has" | "needs")));
    let described = kind == AbsoluteKind::Behaviour && document.channel == Channel::Manual;
    let limited = word == "guaranteed" && strategy::is_limited(words);
    !limited && !words[at].quoted && !denied && !rule && !imperative && !described && !recipient && !relieved
}

/// Whether the phrase is part of a longer compound: "never-ending".
fn is_joined(words: &[Word<'_>], hit: &std::ops::Range<usize>) -> bool {
    words[hit.start].joined || words.get(hit.end).is_some_and(|next| next.joined)
}

const CAUSAL_LEAP_WORDS: &str = include_str!("../words/causal_leap.txt");

/// The skeptic asks what else it could have been. The missing figure is the business of evidence.
pub(super) static CAUSAL_LEAP_CHECK: Check =
    Check { name: "causal leaps", lens: Lens::Skeptic, yields_to: &[], run: find_causal_leaps };

/// Proof by assertion: a leap in any context.
static PROOF: LazyLock<Lexicon<()>> = LazyLock::new(|| {
    Lexicon::from_phrases(&[
        "proves that?",
        "proof that",
        "which means that? everyone|every|all",
        "the reason is simple",
    ])
});
static CAUSES: LazyLock<Lexicon<()>> = LazyLock::new(|| Lexicon::from_section(CAUSAL_LEAP_WORDS, "causes"));
/// A change that was observed.
static OBSERVED: WordList = WordList::new(CAUSAL_LEAP_WORDS, "observed");
/// Signs that the cause was tested, or is held with care.
static TESTED: LazyLock<Lexicon<()>> = LazyLock::new(|| Lexicon::from_section(CAUSAL_LEAP_WORDS, "tested"));
/// "After we switched, sales rose": before and after, nothing else.
const AFTERWARDS: &[&str] = &["after", "since", "once"];

fn find_causal_leaps(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, sentence) in document.sentences.iter().enumerate() {
        let before =
            index.checked_sub(1).map(|at| &document.sentences[at]).filter(|one| one.block == sentence.block);
        let next = document.sentences.get(index + 1).filter(|one| one.block == sentence.block);
        let near = [before, Some(sentence), next];
        let careful =
            near.iter().flatten().any(|one| one.cites || TESTED.first(document.words_of(one)).is_some());
        if let Some(at) = leap(document, sentence, before).filter(|_| !careful) {
            let words = document.words_of(sentence);
            let span = words[at.start].start..words[at.end - 1].end;
            let said = document.one_line(&span);
            findings.push(Finding::new(
                document.with_context(sentence, &span, Margin { before: 3, after: 5 }),
                Severity::Major,
                format!("“{said}” makes a cause of what was only seen to happen."),
                "Say how the cause was tested, what else could explain it, or tell it as a sequence.",
            ));
        }
    }
    findings
}

/// The words of a sentence that leap, if any do.
fn leap(
    document: &Document<'_>,
    sentence: &Sentence,
    before: Option<&Sentence>,
) -> Option<std::ops::Range<usize>> {
    let words = document.words_of(sentence);
    if let Some(hit) = PROOF.first(words).filter(|hit| !words[hit.words.start].quoted) {
        return Some(hit.words);
    }
    let here = observed(words);
    let earlier = before.is_some_and(|one| observed(document.words_of(one)).is_some());
    let mut causes =
        CAUSES.all(words).into_iter().map(|hit| hit.words).filter(|hit| !words[hit.start].quoted);
    let cause = causes.find(|hit| match &*words[hit.start].text {
        "so" => is_conjunction(document, words, hit.start) && here.is_some(),
        "this" | "that" | "that's" | "therefore" | "as" => here.is_some() || earlier,
        _ => here.is_some(),
    });
    cause.or_else(|| {
        let change = here.filter(|_| {
            AFTERWARDS.contains(&&*words[0].text)
                && words.iter().any(|word| {
                    matches!(&*word.text, "we" | "they" | "switching" | "adopting" | "moving" | "using")
                })
        })?;
        Some(change..change + 1)
    })
}

fn observed(words: &[Word<'_>]) -> Option<usize> {
    words.iter().position(|word| OBSERVED.contains(&word.text) && !word.quoted)
}

/// ", so sales rose", not "so fast" nor "so that".
fn is_conjunction(document: &Document<'_>, words: &[Word<'_>], at: usize) -> bool {
    let broken = document.prose[..words[at].start].trim_end().ends_with([',', ';', '—', '–']);
    (broken || at == 0) && words.get(at + 1).is_some_and(|next| next.text != "that")
}

const SURVIVORSHIP_WORDS: &str = include_str!("../words/survivorship.txt");

/// The skeptic asks about those who left.
pub(super) static SURVIVORSHIP_CHECK: Check =
    Check { name: "survivorship", lens: Lens::Skeptic, yields_to: &[], run: find_survivorship };

static SURVIVORS: LazyLock<Lexicon<()>> =
    LazyLock::new(|| Lexicon::from_section(SURVIVORSHIP_WORDS, "survivors"));

fn find_survivorship(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for sentence in document.sentences.iter().filter(|sentence| !sentence.cites) {
        let words = document.words_of(sentence);
        for hit in SURVIVORS.all(words).into_iter().filter(|hit| !words[hit.words.start].quoted) {
            let before = hit.words.start.checked_sub(1).map_or("", |at| &*words[at].text);
            if matches!(before, "not" | "ask" | "tell" | "told" | "email" | "notify" | "for" | "thank" | "to")
            {
                continue;
            }
            let span = words[hit.words.start].start..words[hit.words.end - 1].end;
            let issue = format!("“{}” hears only those who stayed.", document.one_line(&span));
            findings.push(Finding::new(
                span,
                Severity::Major,
                issue,
                "Say how many were asked, how many answered, and what those who left say.",
            ));
        }
    }
    findings
}

const COUNTER_POSITION_WORDS: &str = include_str!("../words/no_counter_position.txt");

/// The skeptic asks for the other side.
pub(super) static COUNTER_POSITION_CHECK: Check = Check {
    name: "counter-position",
    lens: Lens::Skeptic,
    yields_to: &[],
    run: find_missing_counter_position,
};

/// A shorter text need not argue both sides.
const MIN_ARGUMENT_WORDS: usize = 100;
/// So many signs of persuasion make it an argument.
const SIGNS: usize = 3;
/// So many points of absolutes, survivors and leaps, with nothing against them, leave nothing to repair by edits.
const ONE_SIDED_POINTS: u32 = 18;

static PERSUASION: LazyLock<Lexicon<()>> =
    LazyLock::new(|| Lexicon::from_section(COUNTER_POSITION_WORDS, "persuasion"));
static OTHER_SIDE: LazyLock<Lexicon<()>> =
    LazyLock::new(|| Lexicon::from_section(COUNTER_POSITION_WORDS, "other side"));

fn find_missing_counter_position(document: &Document<'_>, criteria: &Criteria<'_>) -> Vec<Finding> {
    if document.word_count() < MIN_ARGUMENT_WORDS || document.channel == Channel::Manual {
        return Vec::new();
    }
    let (mut signs, mut other_side) = (0, false);
    for sentence in &document.sentences {
        let words = document.words_of(sentence);
        signs += PERSUASION.all(words).into_iter().filter(|hit| !words[hit.words.start].quoted).count();
        other_side |=
            OTHER_SIDE.first(words).is_some() || words.first().is_some_and(|word| word.text == "but");
        other_side |= document.prose[sentence.span.clone()].contains(", but ");
    }
    if signs < SIGNS || other_side {
        return Vec::new();
    }
    let one_sided = [&skeptic::ABSOLUTE_CHECK, &skeptic::SURVIVORSHIP_CHECK, &skeptic::CAUSAL_LEAP_CHECK];
    let points: u32 = one_sided
        .iter()
        .flat_map(|check| (check.run)(document, criteria))
        .map(|finding| finding.points())
        .sum();
    let place = opening_span(document);
    if points >= ONE_SIDED_POINTS && points as usize * 30 >= document.word_count() {
        let issue = "The argument is absolutes and success stories from end to end, and nothing in it could turn out wrong.";
        return vec![Finding::beyond_edit(
            place,
            issue,
            "Work out what speaks against it, and for whom it is not, then write it again.",
        )];
    }
    let issue = "The text argues and never says what speaks against it, or for whom it is not.";
    vec![Finding::new(
        place,
        Severity::Major,
        issue,
        "Add the strongest objection and your answer, or when not to use it.",
    )]
}

#[cfg(test)]
mod tests {
    use super::super::harness::{findings, findings_in, quotes};
    use super::*;

    #[test]
    fn absolutes_are_found() {
        let text = "It always works for everyone, with zero risk, and results are guaranteed.";
        assert_eq!(quotes(&ABSOLUTE_CHECK, text), ["always", "everyone", "zero risk", "guaranteed"]);
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
            assert!(findings(&ABSOLUTE_CHECK, text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_manual_may_say_what_a_system_never_does() {
        assert!(findings_in(&ABSOLUTE_CHECK, "README.md", "A record is never changed.", "").is_empty());
        assert_eq!(findings_in(&ABSOLUTE_CHECK, "post.md", "A record is never changed.", "").len(), 1);
    }
}

#[cfg(test)]
mod causal_leap_tests {
    use super::super::harness::findings;
    use super::*;

    #[test]
    fn before_and_after_told_as_cause() {
        for text in [
            "Sales rose in May because we moved the button.",
            "Support tickets fell. This is why the new form works.",
            "We switched in June, so complaints dropped.",
            "After we adopted it, revenue grew.",
            "This proves that the method works.",
            "The redesign led to a jump, and sign-ups doubled.",
        ] {
            assert_eq!(findings(&CAUSAL_LEAP_CHECK, text).len(), 1, "{text}");
        }
    }

    #[test]
    fn tested_hedged_sourced_or_no_observation() {
        for text in [
            "The cache is empty, so the query runs again.",
            "Sales rose because we moved the button; a controlled experiment in two shops agrees.",
            "Sales rose, perhaps because we moved the button.",
            "Sales rose because we moved the button ([test](t.md)).",
            "Errors rose after the deploy. Rolling back, we reproduced it.",
            "Use it because it is small.",
            "It is so fast that errors dropped.",
        ] {
            assert!(findings(&CAUSAL_LEAP_CHECK, text).is_empty(), "{text}");
        }
    }
}

#[cfg(test)]
mod survivorship_tests {
    use super::super::harness::quotes;
    use super::*;

    #[test]
    fn those_who_stayed_speak_for_all() {
        for text in [
            "All our customers love it.",
            "Every team that switched ships more.",
            "Everyone who tried it stayed.",
            "All three reported fewer bugs.",
            "Our users love the new form.",
            "Every one of our customers renewed.",
        ] {
            assert_eq!(quotes(&SURVIVORSHIP_CHECK, text).len(), 1, "{text}");
        }
    }

    #[test]
    fn plain_groups_are_not() {
        for text in [
            "We wrote to all our customers on Monday.",
            "All three files are read.",
            "Every team has a lead.",
            "In our survey of 40 former users, all three reported fewer bugs.",
        ] {
            assert!(quotes(&SURVIVORSHIP_CHECK, text).is_empty(), "{text}");
        }
    }
}

#[cfg(test)]
mod no_counter_position_tests {
    use super::super::harness::{findings, findings_in};
    use super::*;
    use crate::executor::rubric::finding::Repair;

    fn pitch(end: &str) -> String {
        let body =
            "You should join us today. Imagine a week without meetings. We believe it is better than mail. ";
        format!("{}{end}", body.repeat(6))
    }

    #[test]
    fn a_pitch_with_one_side() {
        assert_eq!(
            findings(&COUNTER_POSITION_CHECK, &pitch("")).first().map(|f| f.severity),
            Some(Severity::Major)
        );
        assert!(findings(&COUNTER_POSITION_CHECK, &pitch("However, it is slow.")).is_empty());
        assert!(findings(&COUNTER_POSITION_CHECK, &pitch("It is small, but it is slow.")).is_empty());
    }

    #[test]
    fn a_pitch_of_nothing_but_certainty_is_beyond_an_edit() {
        let sure = "All our customers love it. It works for everyone. Success is guaranteed. ";
        assert_eq!(
            findings(&COUNTER_POSITION_CHECK, &pitch(&sure.repeat(5))).first().map(|f| f.repair),
            Some(Repair::Rethink)
        );
    }

    #[test]
    fn what_does_not_argue_needs_no_other_side() {
        let plain = "The disk filled at noon and the service answered with errors until we had moved the old files away. ";
        assert!(findings(&COUNTER_POSITION_CHECK, &plain.repeat(10)).is_empty());
        assert!(findings_in(&COUNTER_POSITION_CHECK, "README.md", &pitch(""), "").is_empty());
    }
}
