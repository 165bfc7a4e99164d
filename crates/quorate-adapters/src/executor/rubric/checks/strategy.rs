//! The checks of the strategist: promises that cannot be taken back, a missing call to action, and goals that are not met.
//! Goals are compared by words, not meanings, so these findings ask rather than judge.

use std::collections::HashSet;
use std::sync::LazyLock;

use quorate_diagnostics::text::{WordList, one_line, shortened};

use super::{Check, Criteria, opening_span};
use crate::executor::rubric::criteria::{Goal, stems};
use crate::executor::rubric::document::{BlockKind, Channel, Document, Sentence, Word, WordKind};
use crate::executor::rubric::finding::{Finding, Lens, Repair, Severity};
use crate::executor::rubric::lexicon::Lexicon;

const PROMISE_WORDS: &str = include_str!("../words/irreversible_promise.txt");

/// The strategist asks who has to keep it.
pub(super) static PROMISE_CHECK: Check =
    Check { name: "irreversible promises", lens: Lens::Strategy, yields_to: &[], run: find_promises };

#[derive(Clone, Copy, PartialEq, Eq)]
enum PromiseKind {
    Forever,
    /// Takes over a risk.
    Guarantee,
    Date,
}

static PROMISES: LazyLock<Lexicon<PromiseKind>> = LazyLock::new(|| {
    Lexicon::new([
        (
            "we|we'll|it|that|prices|price will? never charge|raise|increase|change|sell|share|cost|go|show|end|rise",
            PromiseKind::Forever,
        ),
        (
            "will never *? charge|raise|increase|change|sell|share|shut|remove|cost|go|show|end|pay|rise",
            PromiseKind::Forever,
        ),
        ("never *? pay|pays|raise|charged more|extra|again|prices|a", PromiseKind::Forever),
        ("free|yours|same|locked forever", PromiseKind::Forever),
        ("forever", PromiseKind::Forever),
        ("for life", PromiseKind::Forever),
        ("lifetime deal|access|price|pricing|plan|licence|license", PromiseKind::Forever),
        ("always be free", PromiseKind::Forever),
        ("we|we'll guarantee|promise", PromiseKind::Guarantee),
        ("guaranteed", PromiseKind::Guarantee),
        ("or your money back", PromiseKind::Guarantee),
        ("no matter what", PromiseKind::Guarantee),
        ("you have our word", PromiseKind::Guarantee),
        ("unconditional|unconditionally", PromiseKind::Guarantee),
    ])
});
/// What limits a guarantee: its end, or what it does not cover.
static LIMITED: LazyLock<Lexicon<()>> = LazyLock::new(|| Lexicon::from_section(PROMISE_WORDS, "limited"));
/// Conditions and ends that make a promise one that can be kept.
static BOUNDED: LazyLock<Lexicon<()>> = LazyLock::new(|| Lexicon::from_section(PROMISE_WORDS, "bounded"));
/// Verbs of delivery in a promise of a date.
static DELIVERY: WordList = WordList::new(PROMISE_WORDS, "delivery");
static HEDGES: WordList = WordList::new(PROMISE_WORDS, "hedges");
static MONTHS: WordList = WordList::new(PROMISE_WORDS, "months");
/// What "forever" is promised of.
static OFFER: WordList = WordList::new(PROMISE_WORDS, "offer");
/// So many lasting promises are what the text is about, one of them in its title or one more elsewhere.
const CORE_PROMISES: usize = 2;
/// If there is one in so many words.
const WORDS_PER_PROMISE: usize = 150;

/// Whether a sentence says how far its guarantee goes.
pub(super) fn is_limited(words: &[Word<'_>]) -> bool {
    LIMITED.first(words).is_some()
}

fn find_promises(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut lasting = 0;
    for sentence in &document.sentences {
        let words = document.words_of(sentence);
        let offers = words.iter().any(|word| OFFER.contains(&word.text));
        let hit = PROMISES
            .all(words)
            .into_iter()
            .find(|hit| is_promise(document, words, hit.words.start, *hit.meaning, offers));
        let bounded = BOUNDED.first(words).is_some();
        if let Some(hit) = hit {
            let span = words[hit.words.start].start..words[hit.words.end - 1].end;
            lasting += usize::from(*hit.meaning == PromiseKind::Forever && !bounded);
            findings.push(promise_finding(document, span, *hit.meaning, bounded));
        } else if let Some(span) = date_promise(document, sentence, words) {
            findings.push(promise_finding(document, span, PromiseKind::Date, bounded));
        }
    }
    let headline =
        document.sentences.iter().find(|sentence| document.kind_of(sentence) == BlockKind::Heading);
    let in_headline =
        |finding: &Finding| headline.is_some_and(|title| title.span.contains(&finding.span.start));
    let dense = lasting * WORDS_PER_PROMISE >= document.word_count();
    let many = lasting > CORE_PROMISES || lasting == CORE_PROMISES && findings.iter().any(in_headline);
    let first =
        findings.iter_mut().find(|finding| finding.severity == Severity::Major).filter(|_| many && dense);
    if let Some(first) = first {
        first.severity = Severity::Critical;
        first.repair = Repair::Rethink;
        first.issue.push_str(" Such promises are the core of the text.");
    }
    findings
}

fn promise_finding(
    document: &Document<'_>,
    span: std::ops::Range<usize>,
    kind: PromiseKind,
    bounded: bool,
) -> Finding {
    let said = document.one_line(&span);
    let (issue, fix) = match kind {
        PromiseKind::Forever => (
            format!("“{said}” binds for ever."),
            "Promise for a time that you can vouch for, and say what would change it.",
        ),
        PromiseKind::Guarantee => (
            format!("“{said}” takes on a risk without a limit."),
            "Say what is guaranteed, up to what, and what happens if it fails.",
        ),
        PromiseKind::Date => (
            format!("“{said}” is a date that readers will hold you to."),
            "Say that it is planned, or what it depends on.",
        ),
    };
    let severity = if bounded || kind == PromiseKind::Date { Severity::Minor } else { Severity::Major };
    Finding::new(span, severity, issue, fix)
}

/// `offers`: whether the sentence has a word of an offer.
fn is_promise(
    document: &Document<'_>,
    words: &[Word<'_>],
    at: usize,
    kind: PromiseKind,
    offers: bool,
) -> bool {
    let before = |steps: usize| at.checked_sub(steps).map_or("", |index| &*words[index].text);
    let denied = [before(1), before(2)].iter().any(|word| {
        matches!(*word, "not" | "no" | "cannot" | "can't" | "don't" | "nothing" | "isn't" | "won't")
    });
    // "It runs forever" is not an offer.
    let offer = &*words[at].text != "forever" || offers;
    // A guarantee of a system is its specification.
    let bare = matches!(&*words[at].text, "forever" | "guaranteed" | "unconditional" | "unconditionally")
        || kind == PromiseKind::Guarantee;
    let specified = bare && matches!(document.channel, Channel::Manual | Channel::Report);
    let limited = kind == PromiseKind::Guarantee && is_limited(words);
    !words[at].quoted && !denied && !specified && !limited && offer
}

/// "It will ship on 3 June": a day without a hedge.
fn date_promise(
    document: &Document<'_>,
    sentence: &Sentence,
    words: &[Word<'_>],
) -> Option<std::ops::Range<usize>> {
    if document.kind_of(sentence) == BlockKind::Cell || words.iter().any(|word| HEDGES.contains(&word.text)) {
        return None;
    }
    let will =
        words.iter().position(|word| matches!(&*word.text, "will" | "we'll" | "it'll") && !word.quoted)?;
    let delivers = words[will..].iter().take(6).any(|word| DELIVERY.contains(&word.text));
    let is_day = |word: &Word<'_>| {
        MONTHS.contains(&word.text)
            || word.kind == WordKind::Number && word.text.starts_with("20") && word.text.len() == 4
    };
    let day = words[will..].iter().position(is_day)?;
    let preposition = words[will..will + day]
        .iter()
        .rev()
        .take(3)
        .any(|word| matches!(&*word.text, "on" | "by" | "in" | "before" | "from"));
    (delivers && preposition).then(|| words[will].start..words[will + day].end)
}

const CALL_TO_ACTION_WORDS: &str = include_str!("../words/call_to_action.txt");

/// The strategist asks what the reader is to do.
pub(super) static CALL_TO_ACTION_CHECK: Check =
    Check { name: "call to action", lens: Lens::Strategy, yields_to: &[], run: find_missing_call };

static IMPERATIVES: WordList = WordList::new(CALL_TO_ACTION_WORDS, "imperatives");
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

fn find_missing_call(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
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

/// The strategist asks what it is for. Without a goals document it asks nothing.
pub(super) static GOAL_CHECK: Check =
    Check { name: "goals", lens: Lens::Strategy, yields_to: &[], run: find_unmet_goals };

/// How much of a goal an issue quotes, in characters.
const MAX_GOAL_CHARS: usize = 80;

fn find_unmet_goals(document: &Document<'_>, criteria: &Criteria<'_>) -> Vec<Finding> {
    let goals = criteria.goals;
    if goals.is_empty() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut all = HashSet::new();
    for sentence in &document.sentences {
        let words = stems(document, sentence);
        let denies = document.words_of(sentence).iter().any(|word| {
            matches!(&*word.text, "not" | "no" | "never" | "without" | "don't" | "won't" | "doesn't")
        });
        let prose = document.kind_of(sentence) != BlockKind::Cell && !denies;
        let touched = |list: &[Goal]| {
            list.iter().find(|goal| prose && goal.is_touched_by(&words)).map(|goal| shorten(&goal.text))
        };
        if let Some(non_goal) = touched(&goals.non_goals) {
            let issue = format!("This comes close to a stated non-goal: “{non_goal}”.");
            findings.push(Finding::new(
                sentence.span.clone(),
                Severity::Major,
                issue,
                "Take it out, or change the goals document first.",
            ));
        }
        if let Some(reason) = touched(&goals.kill_criteria) {
            let issue = format!("This comes close to a stated reason to stop: “{reason}”.");
            findings.push(Finding::new(
                sentence.span.clone(),
                Severity::Major,
                issue,
                "Say whether it is met before this goes out.",
            ));
        }
        all.extend(words);
    }
    if !goals.goals.is_empty() && !goals.goals.iter().any(|goal| goal.is_served_by(&all)) {
        let first = shorten(&goals.goals[0].text);
        let issue = format!(
            "None of the {} stated goals shows in the text; the first is “{first}”.",
            goals.goals.len()
        );
        let fix = "Say which goal it serves, or ask whether it should go out at all.";
        findings.push(Finding {
            extra_points: 2,
            ..Finding::new(opening_span(document), Severity::Major, issue, fix)
        });
    }
    findings
}

fn shorten(goal: &str) -> String {
    shortened(&one_line(goal), MAX_GOAL_CHARS)
}

#[cfg(test)]
mod tests {
    use super::super::harness::{findings, findings_in, quotes};
    use super::*;

    #[test]
    fn promises_are_found() {
        let text =
            "We will never raise prices. It is free forever. We guarantee results. It will ship on 3 June.";
        assert_eq!(quotes(&PROMISE_CHECK, text).len(), 4);
        assert_eq!(
            findings(&PROMISE_CHECK, "Free forever while you stay, until 2030.")[0].severity,
            Severity::Minor
        );
    }

    #[test]
    fn plans_denials_and_specifications_are_not() {
        for text in [
            "We plan to ship on 3 June.",
            "There is no guarantee; nothing lasts forever.",
            "They say “free forever”.",
            "The loop runs forever.",
            "It costs nine euros.",
            "The frame is guaranteed for five years against breakage.",
            "We guarantee a reply within two days until the end of 2027.",
            "Guaranteed under normal use, except for the fabric.",
        ] {
            assert!(findings(&PROMISE_CHECK, text).is_empty(), "{text}");
        }
        assert!(
            findings_in(&PROMISE_CHECK, "README.md", "The loop runs forever. Order is guaranteed.", "")
                .is_empty()
        );
    }

    #[test]
    fn a_text_about_such_promises_is_beyond_an_edit() {
        let text = "# Free forever\n\nWe will never charge. It is yours for life.";
        assert!(findings(&PROMISE_CHECK, text).iter().any(|finding| finding.repair == Repair::Rethink));
        assert!(
            findings(&PROMISE_CHECK, "The beta is free forever.")
                .iter()
                .all(|finding| finding.repair == Repair::Edit)
        );
    }
}

#[cfg(test)]
mod call_to_action_tests {
    use super::super::harness::findings_in;
    use super::*;

    fn count(name: &str, text: &str) -> usize {
        findings_in(&CALL_TO_ACTION_CHECK, name, text, "").len()
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

#[cfg(test)]
mod goal_tests {
    use super::super::harness::findings_in;
    use super::*;

    const GOALS: &str = "# Goals\n\n- Make reviews of drafts cheap to audit\n\n# Non-goals\n\n- Hosting language models ourselves\n\n\
                         # Kill criteria\n\n- Auditors stop replaying reviews\n";

    fn issues(text: &str) -> Vec<String> {
        findings_in(&GOAL_CHECK, "", text, GOALS).into_iter().map(|finding| finding.issue).collect()
    }

    #[test]
    fn served_touched_and_neither() {
        assert!(issues("You can now audit every review of a draft.").is_empty());
        assert!(
            issues("The review can be audited. Soon we are hosting models ourselves.")
                .iter()
                .any(|i| i.contains("non-goal"))
        );
        assert!(
            issues("The review can be audited, but auditors are replaying fewer reviews.")
                .iter()
                .any(|i| i.contains("reason to stop"))
        );
        assert!(issues("A cookbook for rainy days.").iter().any(|i| i.contains("None of the 1")));
    }

    #[test]
    fn a_denied_non_goal_is_not_touched() {
        assert!(issues("Reviews can be audited. We are not hosting language models ourselves.").is_empty());
    }

    #[test]
    fn without_goals_nothing_is_asked() {
        assert!(findings_in(&GOAL_CHECK, "", "Anything.", "").is_empty());
    }
}
