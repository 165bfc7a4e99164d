//! The checks of the evidence lens: numbers without a source or a base, texts without evidence, authorities without a
//! name, and superlatives without a comparison.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use quorate_diagnostics::text::WordList;

use super::{Check, Criteria, evidence};
use crate::executor::rubric::document::{BlockKind, Document, Margin, Sentence, Word, WordKind};
use crate::executor::rubric::finding::{Finding, Lens, Severity};
use crate::executor::rubric::lexicon::Lexicon;

const CLAIM_WORDS: &str = include_str!("../words/unsourced_number.txt");

/// Units of people and things that a text counts to impress.
static COUNTED: WordList = WordList::new(CLAIM_WORDS, "counted");
static MAGNITUDES: WordList = WordList::new(CLAIM_WORDS, "magnitudes");
static TIMES: WordList = WordList::new(CLAIM_WORDS, "times");

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
static CHANGE: WordList = WordList::new(CLAIM_WORDS, "change");
/// The sentence sets a rule, aims at something or supposes it: it reports no fact.
static RULE_WORDS: WordList = WordList::new(CLAIM_WORDS, "rule words");
/// What makes a sum of money a claim and not a price.
static MONEY: WordList = WordList::new(CLAIM_WORDS, "money");

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

/// Cues in a sentence that apply to all of its numbers.
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

const MISSING_BASE_WORDS: &str = include_str!("../words/missing_base.txt");

/// The evidence lens asks what the base is. It counts little: a figure without a source is counted already.
pub(super) static MISSING_BASE_CHECK: Check =
    Check { name: "missing base", lens: Lens::Evidence, yields_to: &[], run: find_missing_bases };

static COMPARING: WordList = WordList::new(MISSING_BASE_WORDS, "comparing");
const PEOPLE: &[&str] =
    &["users", "customers", "people", "teams", "companies", "developers", "respondents", "clients"];

static BASES: LazyLock<Lexicon<()>> = LazyLock::new(|| Lexicon::from_section(MISSING_BASE_WORDS, "bases"));

fn find_missing_bases(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    // The check for sources also asks for the base of a figure without a source.
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

/// The evidence lens asks where a number is from.
pub(super) static UNSOURCED_NUMBER_CHECK: Check =
    Check { name: "unsourced numbers", lens: Lens::Evidence, yields_to: &[], run: find_unsourced_numbers };

fn find_unsourced_numbers(document: &Document<'_>, criteria: &Criteria<'_>) -> Vec<Finding> {
    let context = criteria.context.iter().flat_map(|given| &given.words);
    let known: HashSet<&str> =
        context.filter(|word| word.kind == WordKind::Number).map(|word| &*word.text).collect();
    let claims = document.sentences.iter().enumerate().filter_map(|(index, sentence)| {
        let claim = claim(document, sentence)?;
        let unsourced = !has_source(document, index) && !is_known(document, sentence, &known);
        unsourced.then(|| unsourced_number_finding(document, index, claim))
    });
    claims.collect()
}

fn unsourced_number_finding(document: &Document<'_>, index: usize, claim: Claim) -> Finding {
    let sentence = &document.sentences[index];
    let figure = document.one_line(&claim.span);
    let base = evidence::unstated_base(document, index)
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

const SUPERLATIVE_WORDS: &str = include_str!("../words/superlative.txt");

/// The evidence lens asks who compared.
pub(super) static SUPERLATIVE_CHECK: Check =
    Check { name: "superlatives", lens: Lens::Evidence, yields_to: &[], run: find_superlatives };

static SUPERLATIVES: LazyLock<Lexicon<Severity>> = LazyLock::new(|| {
    Lexicon::new([
        (
            "the|world's fastest|easiest|smartest|simplest|safest|cheapest|greatest|strongest|finest",
            Severity::Major,
        ),
        (
            "the|world's|our most powerful|advanced|secure|reliable|complete|comprehensive|accurate|innovative|popular|loved|trusted|intelligent|efficient|scalable|affordable|intuitive",
            Severity::Major,
        ),
        ("the best", Severity::Major),
        ("the only tool|platform|product|solution|service|app|system|company|way", Severity::Major),
        ("number one", Severity::Major),
        ("second to none", Severity::Major),
        ("unrivalled|unrivaled|unmatched|unparalleled|unbeatable|unsurpassed", Severity::Major),
        ("best in class", Severity::Major),
        ("world class|leading", Severity::Minor),
        ("industry|market leading|leader", Severity::Major),
        (
            "the|a leading provider|platform|tool|solution|company|vendor|supplier|choice|expert|experts",
            Severity::Major,
        ),
    ])
});

/// What follows "the best" where nothing is compared in the world.
static IDIOMS: WordList = WordList::new(SUPERLATIVE_WORDS, "idioms");

fn find_superlatives(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for (index, sentence) in document.sentences.iter().enumerate() {
        let words = document.words_of(sentence);
        let claims =
            SUPERLATIVES.all(words).into_iter().filter(|hit| is_superlative_claim(words, &hit.words));
        for hit in claims.filter(|_| !has_source(document, index)) {
            let span = words[hit.words.start].start..words[hit.words.end - 1].end;
            let issue = format!(
                "“{}” ranks it first and shows no comparison.",
                document.one_line(&span).to_lowercase()
            );
            let again = findings
                .last()
                .is_some_and(|last| last.issue == issue && sentence.span.contains(&last.span.start));
            if again {
                continue;
            }
            findings.push(Finding::new(
                span,
                *hit.meaning,
                issue,
                "Name what it was compared with and link the result, or say what it does.",
            ));
        }
    }
    findings
}

fn is_superlative_claim(words: &[Word<'_>], hit: &std::ops::Range<usize>) -> bool {
    let next = words.get(hit.end).map_or("", |word| &*word.text);
    let idiom = matches!(&*words[hit.end - 1].text, "best") && IDIOMS.contains(next);
    // "the fastest of the four" says what it was compared with.
    let compared = next == "of"
        && words
            .get(hit.end + 1)
            .is_some_and(|word| matches!(&*word.text, "the" | "our" | "these" | "those"));
    let denied = hit.start > 0 && matches!(&*words[hit.start - 1].text, "not" | "isn't" | "never" | "aren't");
    !words[hit.start].quoted && !idiom && !compared && !denied
}

const VAGUE_AUTHORITY_WORDS: &str = include_str!("../words/vague_authority.txt");

/// The evidence lens asks which study.
pub(super) static VAGUE_AUTHORITY_CHECK: Check =
    Check { name: "vague authority", lens: Lens::Evidence, yields_to: &[], run: find_vague_authorities };

static AUTHORITIES: LazyLock<Lexicon<()>> =
    LazyLock::new(|| Lexicon::from_section(VAGUE_AUTHORITY_WORDS, "authorities"));

fn find_vague_authorities(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, sentence) in document.sentences.iter().enumerate() {
        let words = document.words_of(sentence);
        let hits = AUTHORITIES.all(words).into_iter().filter(|hit| !words[hit.words.start].quoted);
        for hit in hits.filter(|_| !has_source(document, index)) {
            let span = words[hit.words.start].start..words[hit.words.end - 1].end;
            let issue = format!("“{}” names nobody who could be asked.", document.one_line(&span));
            findings.push(Finding::new(
                span,
                Severity::Major,
                issue,
                "Name and link the study or the person, or say it as your own view.",
            ));
        }
    }
    findings
}

/// The evidence lens asks for any source.
pub(super) static NO_EVIDENCE_CHECK: Check =
    Check { name: "evidence at all", lens: Lens::Evidence, yields_to: &[], run: find_missing_evidence };

/// From this many claims without a source on, the text is a finding.
const CLAIMS: usize = 5;
/// At most this many words for each claim.
const WORDS_PER_CLAIM: usize = 80;

fn find_missing_evidence(document: &Document<'_>, criteria: &Criteria<'_>) -> Vec<Finding> {
    let checks =
        [&evidence::UNSOURCED_NUMBER_CHECK, &evidence::SUPERLATIVE_CHECK, &evidence::VAGUE_AUTHORITY_CHECK];
    let unsourced: Vec<Finding> = checks.iter().flat_map(|check| (check.run)(document, criteria)).collect();
    let has_sourced_claim = document
        .sentences
        .iter()
        .enumerate()
        .any(|(at, sentence)| claim(document, sentence).is_some() && has_source(document, at));
    let enough = unsourced.len() >= CLAIMS && unsourced.len() * WORDS_PER_CLAIM >= document.word_count();
    let Some(first) =
        unsourced.iter().min_by_key(|finding| finding.span.start).filter(|_| enough && !has_sourced_claim)
    else {
        return Vec::new();
    };
    vec![Finding::beyond_edit(
        first.span.clone(),
        format!(
            "{} claims and no source for any of them: the text rests on nothing that can be looked up.",
            unsourced.len()
        ),
        "Find the evidence first, then write what it supports.",
    )]
}

#[cfg(test)]
mod tests {
    use super::super::harness::{findings, quotes};
    use super::*;

    #[test]
    fn figures_without_a_base() {
        assert_eq!(quotes(&MISSING_BASE_CHECK, "It is 40% faster ([run](r.md))."), ["40% faster"]);
        assert_eq!(
            quotes(&MISSING_BASE_CHECK, "According to our logs, 80% of users agree."),
            ["80% of users"]
        );
    }

    #[test]
    fn figures_with_a_base() {
        for text in [
            "It is 40% faster than 1.0",
            "It is 40% faster. Compared with May, that is",
            "Some 80% of the 412 users surveyed agree",
        ] {
            assert!(quotes(&MISSING_BASE_CHECK, &format!("{text} ([run](r.md)).")).is_empty(), "{text}");
        }
    }

    #[test]
    fn without_a_source_it_is_asked_together_with_the_source() {
        assert!(quotes(&MISSING_BASE_CHECK, "It is 40% faster.").is_empty());
        let found = findings(&super::UNSOURCED_NUMBER_CHECK, "It is 40% faster.");
        assert!(found[0].issue.contains("compared with what"), "{}", found[0].issue);
    }
}

#[cfg(test)]
mod unsourced_number_tests {
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
            assert_eq!(findings(&UNSOURCED_NUMBER_CHECK, text).len(), 1, "{text}");
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
            assert_eq!(findings(&UNSOURCED_NUMBER_CHECK, text), [], "{text}");
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
            assert_eq!(findings(&UNSOURCED_NUMBER_CHECK, text), [], "{text}");
        }
    }

    #[test]
    fn the_quote_has_the_figure_and_its_clause() {
        assert_eq!(
            quotes(
                &UNSOURCED_NUMBER_CHECK,
                "Since the spring release, build times have dropped by 40% for nearly all of them."
            ),
            ["times have dropped by 40% for nearly all"]
        );
    }
}

#[cfg(test)]
mod superlative_tests {
    use super::super::harness::quotes;
    use super::*;

    #[test]
    fn bare_superlatives_are_found() {
        let text =
            "It is the fastest tool, an industry-leading and unmatched one. The best editor on the market.";
        assert_eq!(
            quotes(&SUPERLATIVE_CHECK, text),
            ["the fastest", "industry-leading", "unmatched", "The best"]
        );
    }

    #[test]
    fn compared_sourced_denied_or_idiomatic_ones_are_not() {
        for text in [
            "It was the fastest of the four we ran.",
            "It is the fastest ([results](bench.md)).",
            "The best way to start is small, with the most recent release.",
            "It is not the fastest.",
            "They call it “the best tool”.",
        ] {
            assert!(quotes(&SUPERLATIVE_CHECK, text).is_empty(), "{text}");
        }
    }
}

#[cfg(test)]
mod vague_authority_tests {
    use super::super::harness::quotes;
    use super::*;

    #[test]
    fn nameless_authorities_are_found() {
        let text = "Studies show that it helps. Experts agree. It is well known. Clinically proven.";
        assert_eq!(quotes(&VAGUE_AUTHORITY_CHECK, text).len(), 4);
    }

    #[test]
    fn named_or_linked_ones_are_not() {
        assert!(
            quotes(&VAGUE_AUTHORITY_CHECK, "[Studies show](https://x.example/a) that it helps.").is_empty()
        );
        assert!(
            quotes(
                &VAGUE_AUTHORITY_CHECK,
                "According to Okafor, research shows a gain. The command shows data."
            )
            .is_empty()
        );
    }
}

#[cfg(test)]
mod no_evidence_tests {
    use super::super::harness::findings;
    use super::*;

    const BARE: &str = "It is the fastest tool. It is 40% cheaper. Studies show it works. Thousands of teams use it. It is unmatched.";

    #[test]
    fn many_claims_and_no_source() {
        assert_eq!(findings(&NO_EVIDENCE_CHECK, BARE).len(), 1);
    }

    #[test]
    fn one_sourced_claim_or_few_claims_are_another_matter() {
        assert!(
            findings(&NO_EVIDENCE_CHECK, &format!("{BARE}\n\nIt fell by 5% ([report](r.md)).")).is_empty()
        );
        assert!(findings(&NO_EVIDENCE_CHECK, "It is 40% cheaper. Studies show it works.").is_empty());
        assert!(
            findings(
                &NO_EVIDENCE_CHECK,
                &format!("{BARE}\n\n{}", "Then we sat down and talked about it. ".repeat(80))
            )
            .is_empty()
        );
    }
}
