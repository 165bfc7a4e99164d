//! The checks of the voice lens: banned phrases, pivots, long sentences, shouting, and register.
//!
//! Register goes by a word list and therefore reports little: a report or a manual that cheers, an outward text that reads
//! like a contract, a very long paragraph in an outward text.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use quorate_diagnostics::text::WordList;

use super::{Check, Criteria};
use crate::executor::rubric::document::{BlockKind, Channel, Document, Sentence, Word, WordKind};
use crate::executor::rubric::finding::{Finding, Lens, Severity};
use crate::executor::rubric::lexicon::Lexicon;

/// The voice lens asks for plain words.
pub(super) static BANNED_PHRASE_CHECK: Check = Check {
    name: "banned phrases",
    lens: Lens::Voice,
    yields_to: &[Lens::Evidence],
    run: find_banned_phrases,
};

/// How many further lines an issue names.
const MAX_NAMED_LINES: usize = 5;

fn find_banned_phrases(document: &Document<'_>, criteria: &Criteria<'_>) -> Vec<Finding> {
    let mut by_phrase: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let uses = criteria.banned.occurrences(document);
    for (index, found) in uses.iter().enumerate() {
        by_phrase.entry(fold_phrase(&document.text[found.span.clone()])).or_default().push(index);
    }
    let house: Vec<Vec<&str>> = criteria.context.iter().map(corpus_words).collect();
    let findings =
        by_phrase.into_iter().filter(|(phrase, _)| !is_in_context(phrase, &house)).map(|(_, indices)| {
            let first = &uses[indices[0]];
            let mut issue = format!("“{}” is a phrase that says little.", document.one_line(&first.span));
            let again: Vec<String> = indices
                .iter()
                .skip(1)
                .take(MAX_NAMED_LINES)
                .map(|at| document.line_of(uses[*at].span.start).to_string())
                .collect();
            if !again.is_empty() {
                issue.push_str(&format!(
                    " It stands {} times, again on line {}.",
                    indices.len(),
                    again.join(", ")
                ));
            }
            let extra = u32::try_from(indices.len() - 1).unwrap_or(u32::MAX).min(9);
            Finding {
                extra_points: extra,
                ..Finding::new(first.span.clone(), Severity::Minor, issue, first.fix.clone())
            }
        });
    let mut findings: Vec<Finding> = findings.collect();
    findings.sort_by_key(|finding| finding.span.start);
    findings
}

fn fold_phrase(phrase: &str) -> String {
    phrase.split(|c: char| c.is_whitespace() || c == '-').collect::<Vec<_>>().join(" ").to_lowercase()
}

fn corpus_words<'a>(corpus: &'a Document<'_>) -> Vec<&'a str> {
    corpus.words.iter().filter(|word| word.kind != WordKind::Code).map(|word| &*word.text).collect()
}

/// Whether the voice corpus in the member's context uses the phrase.
fn is_in_context(phrase: &str, corpus: &[Vec<&str>]) -> bool {
    let sought: Vec<&str> = phrase.split(' ').collect();
    corpus.iter().any(|corpus_words| corpus_words.windows(sought.len()).any(|window| window == sought))
}

/// The voice lens asks for the plain statement.
pub(super) static PIVOT_CHECK: Check =
    Check { name: "pivots", lens: Lens::Voice, yields_to: &[], run: find_pivots };

/// The longest distance of the two halves, in words.
const PIVOT_REACH: usize = 12;
const NOT: &[&str] = &["not", "isn't", "aren't", "wasn't", "doesn't", "don't"];
const MERELY: &[&str] = &["just", "merely", "simply", "only", "about"];
const TURNS: &[&str] = &["it's", "they're", "that's", "we're", "this"];

fn find_pivots(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, sentence) in document.sentences.iter().enumerate() {
        let words = document.words_of(sentence);
        // The second half may be a sentence of its own: "It isn't a tool. It's a movement."
        let next = document.sentences.get(index + 1).filter(|next| next.block == sentence.block);
        let next = next.map(|next| document.words_of(next)).unwrap_or_default();
        if let Some(span) = pivot(document, words, next) {
            let issue = "The sentence knocks down something that nobody said to lift up its point.";
            findings.push(Finding::new(span, Severity::Minor, issue, "Say the second half alone."));
        }
    }
    findings
}

/// The pivot in a sentence, from the words before its denial to its turn.
fn pivot(document: &Document<'_>, words: &[Word<'_>], next: &[Word<'_>]) -> Option<std::ops::Range<usize>> {
    let at = words.iter().position(|word| NOT.contains(&&*word.text) && !word.quoted)?;
    let after = words.get(at + 1)?;
    let from = words[at.saturating_sub(2)].start;
    let rest = &words[at + 1..(at + 1 + PIVOT_REACH).min(words.len())];
    let turn = rest.iter().skip(1).position(|word| is_turn(document, word)).map(|offset| offset + 1);
    if MERELY.contains(&&*after.text) {
        let but = rest.iter().position(|word| word.text == "but");
        // "not only … but also" is an enumeration, which manuals use a lot.
        let adds = but.is_some() && (after.text == "only" || document.channel == Channel::Manual);
        let within = turn.or(but).map(|offset| rest[offset].end);
        return within
            .filter(|_| !adds)
            .or_else(|| is_answered_by(words, next).then(|| words[words.len() - 1].end))
            .map(|end| from..end);
    }
    if let Some(offset) = turn {
        return Some(from..rest[offset].end);
    }
    let but = rest.iter().take(7).position(|word| word.text == "but").filter(|offset| *offset > 0)?;
    // "does not X, but it Y" is two clauses, not a pivot.
    let comma = document.prose[..rest[but].start].trim_end().ends_with(',');
    (words[at].text == "not" && !comma && rest.len() > but + 1).then(|| from..rest[but + 1].end)
}

fn is_turn(document: &Document<'_>, word: &Word<'_>) -> bool {
    let broken = document.prose[..word.start].trim_end().ends_with([',', '—', '–', ';', ':']);
    broken && matches!(&*word.text, "it's" | "they're" | "that's" | "we're")
}

/// "This isn't just a tool." answered by "It's …".
fn is_answered_by(words: &[Word<'_>], next: &[Word<'_>]) -> bool {
    words.len() <= PIVOT_REACH && next.first().is_some_and(|word| TURNS.contains(&&*word.text))
}

/// The voice lens asks for sentences that can be read aloud.
pub(super) static LONG_SENTENCE_CHECK: Check =
    Check { name: "sentence length", lens: Lens::Voice, yields_to: &[], run: find_long_sentences };

/// Words; a longer sentence is a finding.
const LONG_WORDS: usize = 35;
/// Words; a longer sentence is a severe finding.
const SEVERE_WORDS: usize = 50;

fn find_long_sentences(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let is_prose = |kind| matches!(kind, BlockKind::Paragraph | BlockKind::Item);
    let sentences = document.sentences.iter().filter(|sentence| is_prose(document.kind_of(sentence)));
    let long = sentences.filter(|sentence| sentence.words.len() > LONG_WORDS);
    long.map(|sentence| {
        let count = sentence.words.len();
        let severity = if count > SEVERE_WORDS { Severity::Major } else { Severity::Minor };
        let issue = format!("A sentence of {count} words.");
        Finding::new(sentence.span.clone(), severity, issue, "Split it where a new thought begins.")
    })
    .collect()
}

const SHOUTING_WORDS: &str = include_str!("../words/shouting.txt");

/// The voice lens asks for a level voice.
pub(super) static SHOUTING_CHECK: Check =
    Check { name: "shouting", lens: Lens::Voice, yields_to: &[], run: find_shouting };

/// Words that are shouted one by one; `MUST`, `NOT` and acronyms are terms.
static SHOUTED: WordList = WordList::new(SHOUTING_WORDS, "shouted");
/// In a row of capitals, one of these shows that it is speech and not a list of acronyms.
static SPEECH: WordList = WordList::new(SHOUTING_WORDS, "speech");

fn find_shouting(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut loud_before: Option<&Sentence> = None;
    for sentence in &document.sentences {
        let text = &document.prose[sentence.span.clone()];
        let words = document.words_of(sentence);
        let loud = text.trim_end_matches(['"', '”', ')', '*', '_']).ends_with('!');
        let run = text.find("!!").or_else(|| text.find("?!")).or_else(|| text.find("!?"));
        if let Some(at) = run.map(|at| sentence.span.start + at) {
            let from = words.iter().rev().find(|word| word.end <= at).map_or(at, |word| word.start);
            findings.push(shouting_finding(
                from..at + 2,
                "A run of exclamation marks.",
                "End the sentence with a full stop.",
            ));
        } else if loud && loud_before.is_some_and(|before| before.block == sentence.block) {
            findings.push(shouting_finding(
                sentence.span.clone(),
                "One exclamation after another.",
                "Keep one at most.",
            ));
        }
        loud_before = loud.then_some(sentence);
        if document.kind_of(sentence) != BlockKind::Heading {
            findings.extend(capitals(document, words));
        }
    }
    findings
}

fn shouting_finding(span: std::ops::Range<usize>, issue: &str, fix: &str) -> Finding {
    Finding::new(span, Severity::Minor, issue, fix)
}

fn capitals(document: &Document<'_>, words: &[Word<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let length = words[at..].iter().take_while(|word| is_capital(document, word)).count();
        let run = &words[at..at + length];
        let speech = length >= 3 && run.iter().any(|word| SPEECH.contains(&word.text));
        let single = run.iter().find(|word| SHOUTED.contains(&word.text) && word.text.len() > 2);
        let span = if speech {
            Some(run[0].start..run[length - 1].end)
        } else {
            single.map(|word| word.start..word.end)
        };
        if let Some(span) = span {
            let issue = format!("“{}” shouts.", document.one_line(&span));
            findings.push(shouting_finding(
                span,
                &issue,
                "Write it in small letters and let the words do it.",
            ));
        }
        at += length.max(1);
    }
    findings
}

fn is_capital(document: &Document<'_>, word: &Word<'_>) -> bool {
    let text = &document.text[word.start..word.end];
    word.kind == WordKind::Letters
        && !word.quoted
        && text.chars().count() > 1
        && text.chars().all(|c| c.is_uppercase() || c == '\'')
}

/// The voice lens asks whether the tone fits.
pub(super) static REGISTER_CHECK: Check =
    Check { name: "register", lens: Lens::Voice, yields_to: &[], run: find_wrong_register };

/// At most this many findings, since tone is a matter of taste.
const MAX_REGISTER_FINDINGS: usize = 3;
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

fn find_wrong_register(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
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
    findings.truncate(MAX_REGISTER_FINDINGS);
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
    use super::super::harness::findings;
    use super::*;
    use crate::executor::rubric::criteria::BannedPhrases;
    use crate::executor::rubric::criteria::Goals;

    #[test]
    fn repetitions_are_one_finding_that_counts_more() {
        let found =
            findings(&BANNED_PHRASE_CHECK, "A seamless start.\n\nA seamless end, truly game-changing.");
        assert_eq!(found.iter().map(Finding::points).collect::<Vec<_>>(), [2, 1]);
        assert!(found[0].issue.contains("again on line 3"), "{}", found[0].issue);
    }

    #[test]
    fn what_the_voice_corpus_says_is_ours() {
        let banned = BannedPhrases::new(true, &[]).expect("usable");
        let corpus = [Document::parse("voice.md", "We always called it a game-changer.")];
        let criteria = Criteria { banned: &banned, goals: &Goals::default(), context: &corpus };
        assert_eq!(
            (BANNED_PHRASE_CHECK.run)(&Document::parse("", "A game changer, and seamless."), &criteria).len(),
            1
        );
    }
}

#[cfg(test)]
mod pivot_tests {
    use super::super::harness::findings;
    use super::*;

    #[test]
    fn pivots_are_found() {
        for text in [
            "It’s not just a tool, it’s a way of life.",
            "This isn't merely an update. It's a new beginning.",
            "It is about not speed but trust.",
            "It's not about code — it's about people.",
        ] {
            assert_eq!(findings(&PIVOT_CHECK, text).len(), 1, "{text}");
        }
    }

    #[test]
    fn plain_denials_are_not() {
        for text in [
            "It does not read images, but it keeps their captions.",
            "The file is not only read but also checked.",
            "We do not know why. The log ends there.",
            "It is a function, not a service.",
            "Do not just restart it.",
        ] {
            assert!(findings(&PIVOT_CHECK, text).is_empty(), "{text}");
        }
    }
}

#[cfg(test)]
mod long_sentence_tests {
    use super::super::harness::findings;
    use super::*;

    #[test]
    fn length_sets_the_severity() {
        let sentence_of = |n: usize| {
            findings(&LONG_SENTENCE_CHECK, &format!("{}end.", "word ".repeat(n - 1)))
                .first()
                .map(|f| f.severity)
        };
        assert_eq!(
            (sentence_of(35), sentence_of(36), sentence_of(51)),
            (None, Some(Severity::Minor), Some(Severity::Major))
        );
    }

    #[test]
    fn headings_cells_and_separate_items_are_no_sentences() {
        let long = "word ".repeat(60);
        assert!(
            findings(&LONG_SENTENCE_CHECK, &format!("# {long}\n\n| a |\n|---|\n| {long} |\n")).is_empty()
        );
        assert!(findings(&LONG_SENTENCE_CHECK, &"- one two three four five\n".repeat(20)).is_empty());
    }
}

#[cfg(test)]
mod shouting_tests {
    use super::super::harness::quotes;
    use super::*;

    #[test]
    fn exclamations_and_capitals() {
        assert_eq!(
            quotes(&SHOUTING_CHECK, "It is here!! Get it FREE of charge. THIS IS THE ONE you want."),
            ["here!!", "FREE", "THIS IS THE ONE"]
        );
        assert_eq!(quotes(&SHOUTING_CHECK, "We did it! You can too! Try it."), ["You can too!"]);
    }

    #[test]
    fn terms_and_a_single_exclamation_are_calm() {
        assert!(
            quotes(
                &SHOUTING_CHECK,
                "It answers SHIP, REVISE or HOLD over HTTP and JSON; it MUST NOT fail. Welcome!"
            )
            .is_empty()
        );
    }
}

#[cfg(test)]
mod register_tests {
    use super::super::harness::findings_in;
    use super::*;

    fn count(name: &str, text: &str) -> usize {
        findings_in(&REGISTER_CHECK, name, text, "").len()
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
