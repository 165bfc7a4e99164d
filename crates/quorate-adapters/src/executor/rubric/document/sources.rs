//! Which sentences name a source: a link, a footnote, a citation in brackets, or words that say where from.
//! Also the kind of a text, from its front matter, else its file name, else its title.

use std::collections::HashSet;
use std::sync::LazyLock;

use quorate_diagnostics::text::WordList;

use super::{BlockKind, Document, Word, WordKind};
use crate::executor::rubric::lexicon::Lexicon;

const SOURCE_WORDS: &str = include_str!("../words/sources.txt");

static CUES: LazyLock<Lexicon<()>> = LazyLock::new(|| Lexicon::from_section(SOURCE_WORDS, "cues"));

/// Cues for a sample: after one of them, a number counts the people who were asked or observed.
static SAMPLED: LazyLock<Lexicon<()>> = LazyLock::new(|| {
    Lexicon::from_phrases(&[
        "we interviewed|surveyed|sampled|polled|recruited|enrolled|observed|asked",
        "sample|cohort|panel of",
    ])
});
static REPORTING: WordList = WordList::new(SOURCE_WORDS, "reporting");
/// A claim of the author does not count as a source.
static AUTHOR: WordList = WordList::new(SOURCE_WORDS, "author");
/// Words that look like names but name no person or body.
static CALENDAR: WordList = WordList::new(SOURCE_WORDS, "calendar");

/// Marks the sentences that cite, from the places of links and footnotes and from the words themselves.
pub(super) fn mark_citations(document: &mut Document<'_>, marks: &[usize]) {
    let mut cites = vec![false; document.sentences.len()];
    for at in marks {
        if let Some(index) = document.sentence_at(*at) {
            cites[index] = true;
        }
    }
    let samples = samples(document);
    for (index, sentence) in document.sentences.iter().enumerate() {
        let words = document.words_of(sentence);
        cites[index] |= CUES.first(words).is_some()
            || has_citation(&document.prose[sentence.span.clone()])
            || is_dated_report(document, words)
            || is_of_sample(words, &samples);
    }
    for (sentence, cites) in document.sentences.iter_mut().zip(cites) {
        sentence.cites = cites;
    }
}

/// "In March 2024 the Office for Statistics counted …": a named party other than the author, at a named time.
fn is_dated_report(document: &Document<'_>, words: &[Word<'_>]) -> bool {
    let is = |list: &WordList| words.iter().any(|word| list.contains(&word.text));
    let capital = |word: &Word<'_>| document.prose[word.start..].starts_with(char::is_uppercase);
    let named = |word: &Word<'_>| capital(word) && !word.quoted && !CALENDAR.contains(&word.text);
    let dated = words.iter().any(|word| is_year(&word.text));
    dated && is(&REPORTING) && !is(&AUTHOR) && words.iter().skip(1).any(named)
}

/// How many a study had: the numbers after "we interviewed" and the like.
fn samples<'d>(document: &'d Document<'_>) -> HashSet<&'d str> {
    let mut samples = HashSet::new();
    for sentence in &document.sentences {
        let words = document.words_of(sentence);
        if let Some(hit) = SAMPLED.first(words) {
            let number = words[hit.words.end..].iter().take(6).find(|word| word.kind == WordKind::Number);
            samples.extend(number.map(|word| &*word.text));
        }
    }
    samples
}

/// Finds "of the 48" after a sentence that 48 people were interviewed.
fn is_of_sample(words: &[Word<'_>], samples: &HashSet<&str>) -> bool {
    let of = |at: usize| {
        at.checked_sub(1)
            .is_some_and(|before| matches!(&*words[before].text, "of" | "the" | "those" | "these"))
    };
    (0..words.len()).any(|at| samples.contains(&*words[at].text) && of(at))
}

/// `[12]`, `(n = 40)`, or brackets with a name and a year: `(Okafor 2021)`.
fn has_citation(sentence: &str) -> bool {
    let mut rest = sentence;
    while let Some(open) = rest.find(['(', '[']) {
        let square = rest[open..].starts_with('[');
        rest = &rest[open + 1..];
        let Some(close) = rest.find([')', ']']) else { return false };
        let inner = &rest[..close];
        if square && !inner.is_empty() && inner.trim_start_matches('^').bytes().all(|b| b.is_ascii_digit()) {
            return true;
        }
        let compact: String = inner.chars().filter(|c| !c.is_whitespace()).take(3).collect();
        if compact.starts_with("n=")
            || compact.starts_with("N=")
            || has_year(inner) && inner.contains(char::is_uppercase)
        {
            return true;
        }
        rest = &rest[close..];
    }
    false
}

fn has_year(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(is_year)
}

fn is_year(token: &str) -> bool {
    token.len() == 4
        && (token.starts_with("19") || token.starts_with("20"))
        && token.bytes().all(|b| b.is_ascii_digit())
}

const CHANNEL_WORDS: &str = include_str!("../words/channel.txt");

/// The kinds of text that the checks tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// Goes out to people who are to be won: a post, an announcement, a newsletter.
    Outward,
    /// States what happened: an incident report, minutes.
    Report,
    /// Explains how something works: a README, a guide, a specification.
    Manual,
    Unstated,
}

const CHANNEL_KEYS: &[&str] = &["channel", "type", "artifact_type", "kind", "category"];
static OUTWARD: WordList = WordList::new(CHANNEL_WORDS, "outward");
static REPORT: WordList = WordList::new(CHANNEL_WORDS, "report");
static MANUAL: WordList = WordList::new(CHANNEL_WORDS, "manual");

/// Decides on the channel.
pub(super) fn detect_channel(
    name: &str,
    document: &Document<'_>,
    front_matter: &[(String, String)],
) -> Channel {
    let stated = front_matter
        .iter()
        .filter(|(key, _)| CHANNEL_KEYS.contains(&key.as_str()))
        .map(|(_, value)| value.as_str());
    let file = name.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let title = document.blocks.first().filter(|block| block.kind == BlockKind::Heading);
    let title =
        title.map(|block| document.prose[block.span.clone()].to_ascii_lowercase()).unwrap_or_default();
    let by_words = stated
        .chain([file.as_str(), title.as_str()])
        .map(detect_in)
        .find(|channel| *channel != Channel::Unstated);
    by_words.unwrap_or(Channel::Unstated)
}

fn detect_in(text: &str) -> Channel {
    let has =
        |list: &WordList| text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| list.contains(word));
    match () {
        () if has(&REPORT) => Channel::Report,
        () if has(&MANUAL) => Channel::Manual,
        () if has(&OUTWARD) => Channel::Outward,
        () => Channel::Unstated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cites(text: &str) -> Vec<bool> {
        Document::parse("", text).sentences.iter().map(|s| s.cites).collect()
    }

    #[test]
    fn links_footnotes_brackets_and_words() {
        assert_eq!(cites("It rose 5% ([report](r.md)). It fell."), [true, false]);
        assert_eq!(cites("It rose 5%.[^1] It fell.\n\n[^1]: Where."), [true, false]);
        assert_eq!(
            cites("It rose (Okafor 2021). It fell [3]. Of some (n = 40). Plain (in brackets, 2021)."),
            [true, true, true, false]
        );
        assert_eq!(
            cites("According to the board, yes. Measured on one laptop. In our logs it did."),
            [true, true, true]
        );
    }

    #[test]
    fn a_dated_report_of_somebody_who_is_named() {
        assert_eq!(
            cites(
                "A 2023 survey by the Fraunhofer Institute found 41%. In March 2024 the Federal Office counted 9 \
                 million. In March 2024 our count found 9 million at Acme. A 2023 study found 41%."
            ),
            [true, true, false, false]
        );
    }

    #[test]
    fn what_is_said_of_the_studys_own_sample() {
        assert_eq!(
            cites(
                "We interviewed 48 nurses. They were tired. Of the 48, 65% slept badly. Of the 50 others 10% did. In our sample 5% left."
            ),
            [true, false, true, false, true]
        );
    }
}

#[cfg(test)]
mod channel_tests {
    use super::*;

    #[test]
    fn front_matter_wins_over_the_file_name_and_that_over_the_title() {
        let check = |name: &str, text: &str| Document::parse(name, text).channel;
        assert_eq!(check("a/README.md", "---\ntype: linkedin_post\n---\nHi."), Channel::Outward);
        assert_eq!(check("a/README.md", "# Launch\n\nHi."), Channel::Manual);
        assert_eq!(check("x.md", "# Incident report\n\nHi."), Channel::Report);
        assert_eq!(check("x.md", "Hi.\n\n```\ncode\n```\n"), Channel::Unstated);
        assert_eq!(check("x.md", "Hi."), Channel::Unstated);
    }
}
