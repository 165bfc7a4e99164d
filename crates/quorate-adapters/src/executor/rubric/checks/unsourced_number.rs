//! Numbers that claim something and come from nowhere: percentages, multiples, sums of money, counts of people.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use quorate_diagnostics::word_list::WordList;

use super::{Check, Criteria, missing_base};
use crate::executor::rubric::document::{BlockKind, Document, Margin, Sentence, Word, WordKind};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::lens::Lens;
use crate::executor::rubric::lexicon::Lexicon;

const WORDS: &str = include_str!("../words/unsourced_number.txt");

/// The evidence lens asks where a number is from.
pub(super) static CHECK: Check =
    Check { name: "unsourced numbers", lens: Lens::Evidence, yields_to: &[], run };

/// Units of people and things that a text counts to impress.
static COUNTED: WordList = WordList::new(WORDS, "counted");
static MAGNITUDES: WordList = WordList::new(WORDS, "magnitudes");
static TIMES: WordList = WordList::new(WORDS, "times");

/// How far up a list its lead-in is looked for.
const MAX_LIST_BLOCKS: usize = 60;

static MULTIPLES: LazyLock<Lexicon<()>> = LazyLock::new(|| {
    Lexicon::from_phrases(&[
        "two|three|four|five|ten times faster|more|cheaper|better|smaller|as",
        "twice as fast|many|much|good|productive|likely|cheap",
        "twofold|threefold|tenfold|hundredfold",
        "doubled|tripled|trebled|quadrupled",
        "dropped|fell|rose|grew|cut|reduced|shrank|halved by half",
        "cut|cuts|reduced|reduces *? *? *? *? in half",
        "in half the time",
    ])
});
/// A change, which makes a plain duration a claim.
static CHANGE: WordList = WordList::new(WORDS, "change");
/// The sentence sets a rule, aims at something or supposes it: it reports no fact.
static RULE_WORDS: WordList = WordList::new(WORDS, "rule words");
/// What makes a sum of money a claim and not a price.
static MONEY: WordList = WordList::new(WORDS, "money");

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

/// A number that claims something.
pub(super) struct Claim {
    /// The figure and its unit.
    pub(super) span: Range<usize>,
    severity: Severity,
}

/// The first number in a sentence that claims something.
pub(super) fn claim(document: &Document<'_>, sentence: &Sentence) -> Option<Claim> {
    let words = document.words_of(sentence);
    let sets = words.iter().any(|word| RULE_WORDS.contains(&word.text));
    if document.kind_of(sentence) == BlockKind::Cell || sets {
        return None;
    }
    // Once for a sentence, which may be as long as the text and have a number at every word.
    let has = |list: &WordList| words.iter().any(|word| list.contains(&word.text));
    let tells = SentenceCues { money: has(&MONEY), change: has(&CHANGE) };
    let mut unquoted = (0..words.len()).filter(|at| !words[*at].quoted);
    let figure = unquoted.find_map(|at| figure(document, words, at, tells));
    figure.or_else(|| {
        let hit = MULTIPLES.first(words).filter(|hit| !words[hit.words.start].quoted)?;
        Some(Claim {
            span: words[hit.words.start].start..words[hit.words.end - 1].end,
            severity: Severity::Major,
        })
    })
}

/// What the words of a sentence say about all of its numbers.
#[derive(Clone, Copy)]
struct SentenceCues {
    money: bool,
    change: bool,
}

fn figure(document: &Document<'_>, words: &[Word<'_>], at: usize, tells: SentenceCues) -> Option<Claim> {
    let word = &words[at];
    let next = words.get(at + 1).map_or("", |next| &*next.text);
    let claim = |from: usize, to: usize, severity| Some(Claim { span: from..to, severity });
    if MAGNITUDES.contains(&word.text) && next == "of" {
        let unit = words.get(at + 2).filter(|unit| COUNTED.contains(&unit.text))?;
        return claim(word.start, unit.end, Severity::Major);
    }
    if word.kind != WordKind::Number || is_date_or_version(&word.text) {
        return None;
    }
    let after = &document.prose[word.end..];
    if after.starts_with('%') || after.starts_with(" %") {
        return claim(word.start, word.end + after.find('%').unwrap_or(0) + 1, Severity::Major);
    }
    if matches!(next, "percent" | "percentage")
        || next == "per" && words.get(at + 2).is_some_and(|w| w.text == "cent")
    {
        return claim(word.start, words[at + 1].end, Severity::Major);
    }
    if is_multiple(&word.text) || after.starts_with('×') {
        return claim(
            word.start,
            word.end + if after.starts_with('×') { '×'.len_utf8() } else { 0 },
            Severity::Major,
        );
    }
    let magnitude = MAGNITUDES.contains(next);
    if let Some(sign) = document.prose[..word.start].chars().next_back().filter(|c| "$€£¥".contains(*c)) {
        let boast = magnitude || word.text.ends_with(['k', 'm', 'b']) || tells.money;
        let end = if magnitude { words[at + 1].end } else { word.end };
        return if boast { claim(word.start - sign.len_utf8(), end, Severity::Major) } else { None };
    }
    if let Some(unit) = unit_after(words, at, &COUNTED).filter(|_| magnitude || counts_many(&word.text)) {
        return claim(word.start, unit.end, Severity::Major);
    }
    unit_after(words, at, &TIMES)
        .filter(|_| tells.change)
        .and_then(|unit| claim(word.start, unit.end, Severity::Minor))
}

/// A unit within the two words after a number.
fn unit_after<'w, 't>(words: &'w [Word<'t>], at: usize, units: &WordList) -> Option<&'w Word<'t>> {
    words.iter().skip(at + 1).take(3).find(|word| units.contains(&word.text))
}

/// `2024`, `v1.2`, `14:02`, `2026-05-18`, `12/05/2024`, `1.2.3`.
fn is_date_or_version(number: &str) -> bool {
    let year = number.len() == 4 && (number.starts_with("19") || number.starts_with("20"));
    year || number.starts_with('v')
        || number.contains([':', '/'])
        || number.matches('-').count() > 1
        || number.matches('.').count() > 1
}

fn is_multiple(number: &str) -> bool {
    number
        .strip_suffix('x')
        .is_some_and(|n| !n.starts_with('0') && n.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

fn counts_many(number: &str) -> bool {
    number.bytes().filter(u8::is_ascii_digit).count() > 1
}

/// Whether a sentence or a neighbour of it names a source: before and after it in its block, the line that leads a
/// list in, and a `Source:` line below. A heading is sourced by what stands under it.
pub(super) fn has_source(document: &Document<'_>, index: usize) -> bool {
    let sentences = &document.sentences;
    let sentence = &sentences[index];
    let same_block = |other: &Sentence| other.block == sentence.block;
    let before = index.checked_sub(1).map(|at| &sentences[at]).filter(|other| same_block(other));
    let after = sentences.get(index + 1);
    let cites = |other: Option<&Sentence>| other.is_some_and(|other| other.cites);
    if sentence.cites || cites(before) || cites(after.filter(|other| same_block(other))) {
        return true;
    }
    let kind = document.kind_of(sentence);
    let starts_with_source =
        |other: &&Sentence| document.words_of(other).first().is_some_and(|w| w.text.starts_with("source"));
    if cites(after.filter(starts_with_source)) {
        return true;
    }
    match kind {
        BlockKind::Item => {
            let mut above = document.blocks[..sentence.block].iter().rev().take(MAX_LIST_BLOCKS);
            let lead = above.find(|block| block.kind != BlockKind::Item);
            lead.is_some_and(|block| sentences[block.sentences.clone()].last().is_some_and(|last| last.cites))
        }
        BlockKind::Heading => {
            let below = document.blocks.get(sentence.block + 1);
            below.is_some_and(|block| sentences[block.sentences.clone()].iter().any(|one| one.cites))
        }
        BlockKind::Paragraph | BlockKind::Verse | BlockKind::Cell => false,
    }
}

/// Whether every number of the sentence stands in a document that the member was given.
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
