//! Numbers that claim something, and the sources near them.

use std::ops::Range;
use std::sync::LazyLock;

use quorate_diagnostics::word_list::WordList;

use crate::executor::rubric::document::{BlockKind, Document, Sentence, Word, WordKind};
use crate::executor::rubric::finding::Severity;
use crate::executor::rubric::lexicon::Lexicon;

const WORDS: &str = include_str!("../words/unsourced_number.txt");

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

/// A number that claims something.
pub(super) struct Claim {
    /// The figure and its unit.
    pub(super) span: Range<usize>,
    pub(super) severity: Severity,
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
/// list in, and a `Source:` line below. A heading is sourced by what is under it.
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
