//! Promises that cannot be taken back: prices forever, guarantees, dates without a hedge.

use std::sync::LazyLock;

use quorate_diagnostics::word_list::WordList;

use super::{Check, Criteria};
use crate::executor::rubric::document::{BlockKind, Channel, Document, Sentence, Word, WordKind};
use crate::executor::rubric::finding::{Finding, Repair, Severity};
use crate::executor::rubric::lens::Lens;
use crate::executor::rubric::lexicon::Lexicon;

const WORDS: &str = include_str!("../words/irreversible_promise.txt");

/// The strategist asks who has to keep it.
pub(super) static CHECK: Check =
    Check { name: "irreversible promises", lens: Lens::Strategy, yields_to: &[], run };

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Forever,
    /// Takes over a risk.
    Guarantee,
    Date,
}

static PROMISES: LazyLock<Lexicon<Kind>> = LazyLock::new(|| {
    Lexicon::new([
        (
            "we|we'll|it|that|prices|price will? never charge|raise|increase|change|sell|share|cost|go|show|end|rise",
            Kind::Forever,
        ),
        (
            "will never *? charge|raise|increase|change|sell|share|shut|remove|cost|go|show|end|pay|rise",
            Kind::Forever,
        ),
        ("never *? pay|pays|raise|charged more|extra|again|prices|a", Kind::Forever),
        ("free|yours|same|locked forever", Kind::Forever),
        ("forever", Kind::Forever),
        ("for life", Kind::Forever),
        ("lifetime deal|access|price|pricing|plan|licence|license", Kind::Forever),
        ("always be free", Kind::Forever),
        ("we|we'll guarantee|promise", Kind::Guarantee),
        ("guaranteed", Kind::Guarantee),
        ("or your money back", Kind::Guarantee),
        ("no matter what", Kind::Guarantee),
        ("you have our word", Kind::Guarantee),
        ("unconditional|unconditionally", Kind::Guarantee),
    ])
});
/// What limits a guarantee: its end, or what it does not cover.
static LIMITED: LazyLock<Lexicon<()>> = LazyLock::new(|| Lexicon::from_section(WORDS, "limited"));
/// Conditions and ends that make a promise one that can be kept.
static BOUNDED: LazyLock<Lexicon<()>> = LazyLock::new(|| Lexicon::from_section(WORDS, "bounded"));
/// Verbs of delivery in a promise of a date.
static DELIVERY: WordList = WordList::new(WORDS, "delivery");
static HEDGES: WordList = WordList::new(WORDS, "hedges");
static MONTHS: WordList = WordList::new(WORDS, "months");
/// What "forever" is promised of.
static OFFER: WordList = WordList::new(WORDS, "offer");
/// So many lasting promises are what the text is about, one of them in its title or one more elsewhere.
const CORE_PROMISES: usize = 2;
/// If there is one in so many words.
const WORDS_PER_PROMISE: usize = 150;

/// Whether a sentence says how far its guarantee goes.
pub(super) fn is_limited(words: &[Word<'_>]) -> bool {
    LIMITED.first(words).is_some()
}

fn run(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
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
            lasting += usize::from(*hit.meaning == Kind::Forever && !bounded);
            findings.push(finding(document, span, *hit.meaning, bounded));
        } else if let Some(span) = date_promise(document, sentence, words) {
            findings.push(finding(document, span, Kind::Date, bounded));
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

fn finding(document: &Document<'_>, span: std::ops::Range<usize>, kind: Kind, bounded: bool) -> Finding {
    let said = document.one_line(&span);
    let (issue, fix) = match kind {
        Kind::Forever => (
            format!("“{said}” binds for ever."),
            "Promise for a time that you can vouch for, and say what would change it.",
        ),
        Kind::Guarantee => (
            format!("“{said}” takes on a risk without a limit."),
            "Say what is guaranteed, up to what, and what happens if it fails.",
        ),
        Kind::Date => (
            format!("“{said}” is a date that readers will hold you to."),
            "Say that it is planned, or what it depends on.",
        ),
    };
    let severity = if bounded || kind == Kind::Date { Severity::Minor } else { Severity::Major };
    Finding::new(span, severity, issue, fix)
}

/// `offers`: whether the sentence has a word of an offer.
fn is_promise(document: &Document<'_>, words: &[Word<'_>], at: usize, kind: Kind, offers: bool) -> bool {
    let before = |steps: usize| at.checked_sub(steps).map_or("", |index| &*words[index].text);
    let denied = [before(1), before(2)].iter().any(|word| {
        matches!(*word, "not" | "no" | "cannot" | "can't" | "don't" | "nothing" | "isn't" | "won't")
    });
    // "It runs forever" is no offer.
    let offer = &*words[at].text != "forever" || offers;
    // What a system guarantees or does forever is its specification.
    let bare = matches!(&*words[at].text, "forever" | "guaranteed" | "unconditional" | "unconditionally")
        || kind == Kind::Guarantee;
    let specified = bare && matches!(document.channel, Channel::Manual | Channel::Report);
    let limited = kind == Kind::Guarantee && is_limited(words);
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

#[cfg(test)]
mod tests {
    use super::super::harness::{findings, findings_in, quotes};
    use super::*;

    #[test]
    fn promises_are_found() {
        let text =
            "We will never raise prices. It is free forever. We guarantee results. It will ship on 3 June.";
        assert_eq!(quotes(&CHECK, text).len(), 4);
        assert_eq!(findings(&CHECK, "Free forever while you stay, until 2030.")[0].severity, Severity::Minor);
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
            assert!(findings(&CHECK, text).is_empty(), "{text}");
        }
        assert!(
            findings_in(&CHECK, "README.md", "The loop runs forever. Order is guaranteed.", "").is_empty()
        );
    }

    #[test]
    fn a_text_about_such_promises_is_beyond_an_edit() {
        let text = "# Free forever\n\nWe will never charge. It is yours for life.";
        assert!(findings(&CHECK, text).iter().any(|finding| finding.repair == Repair::Rethink));
        assert!(
            findings(&CHECK, "The beta is free forever.")
                .iter()
                .all(|finding| finding.repair == Repair::Edit)
        );
    }
}
