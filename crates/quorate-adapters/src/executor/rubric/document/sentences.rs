//! Sentences and words: where sentences end, which words are quoted speech, and words normalized for comparison with their
//! place in the source.

use std::borrow::Cow;
use std::ops::Range;

use quorate_diagnostics::text::WordList;

use super::parse::CODE_FILL;

const SENTENCE_WORDS: &str = include_str!("../words/sentences.txt");

/// Abbreviations that are followed by more of the same sentence.
static NON_FINAL: WordList = WordList::new(SENTENCE_WORDS, "non final");
/// Abbreviations that may also end one: the next word decides by its capital.
static AMBIGUOUS: WordList = WordList::new(SENTENCE_WORDS, "ambiguous");

/// The sentences of a block; all of it where it is one by its nature, such as a heading.
pub(super) fn split_sentences(
    prose: &str,
    span: Range<usize>,
    breaks: &[usize],
    whole: bool,
) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = span.start;
    if !whole {
        let mut at = span.start;
        while let Some(end) = next_end(prose, at, span.end, breaks) {
            push_sentence(prose, start..end, &mut found);
            start = end;
            at = end;
        }
    }
    push_sentence(prose, start..span.end, &mut found);
    found
}

fn push_sentence(prose: &str, span: Range<usize>, found: &mut Vec<Range<usize>>) {
    let inner = &prose[span.clone()];
    let start = span.start + (inner.len() - inner.trim_start().len());
    let end = start + inner.trim().len();
    if start < end {
        found.push(start..end);
    }
}

/// The end of the sentence that continues at `from`, unless the block ends first.
fn next_end(prose: &str, from: usize, end: usize, breaks: &[usize]) -> Option<usize> {
    let first = breaks.partition_point(|at| *at <= from);
    let hard = breaks.get(first).copied().filter(|at| *at < end);
    // No farther than the break: what is behind it would be read again for every break before it.
    let reach = hard.unwrap_or(end);
    let mut at = from;
    while let Some(found) = prose[at.min(reach)..reach].find(['.', '!', '?', '…']).map(|offset| at + offset)
    {
        let run = prose[found..end].find(|c: char| !".!?…".contains(c)).map_or(end, |offset| found + offset);
        let close =
            prose[run..end].find(|c: char| !"\"'”’)]*_»".contains(c)).map_or(end, |offset| run + offset);
        if ends_sentence(prose, from..end, found, run, close) {
            return Some(close);
        }
        at = run;
    }
    hard
}

/// Whether the punctuation from `mark` to `run`, closed up to `close`, ends a sentence.
fn ends_sentence(prose: &str, span: Range<usize>, mark: usize, run: usize, close: usize) -> bool {
    let after = &prose[close..span.end];
    if !after.is_empty() && !after.starts_with(char::is_whitespace) {
        return false;
    }
    let next = after.trim_start().chars().next();
    if next.is_some_and(char::is_lowercase) {
        return false;
    }
    if run - mark > 1 || !prose[mark..].starts_with('.') {
        return true;
    }
    let before = &prose[span.start..mark];
    let word = before.rsplit(|c: char| c.is_whitespace() || "([\"“".contains(c)).next().unwrap_or_default();
    let folded = word.to_ascii_lowercase();
    let capital = next.is_none_or(|c| c.is_uppercase() || c == CODE_FILL);
    if AMBIGUOUS.contains(&folded) {
        return capital;
    }
    // "No." and "p." abbreviate before a number only.
    if matches!(folded.as_str(), "no" | "nos" | "p" | "sec" | "min" | "max" | "ch" | "mar") {
        return !next.is_some_and(|c| c.is_ascii_digit());
    }
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase) && word != "I";
    next.is_none() || !(initial || NON_FINAL.contains(&folded))
}

/// The spans between quotation marks in a block, which are quoted words.
pub(super) fn quoted_spans(block: &str, offset: usize) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut open: Option<(usize, char)> = None;
    let mut before = ' ';
    for (at, c) in block.char_indices() {
        let closes = match c {
            '"' => '"',
            '“' | '„' => '”',
            '«' => '»',
            _ => '\0',
        };
        match open {
            Some((start, mark)) if c == mark => {
                spans.push(offset + start..offset + at);
                open = None;
            }
            None if closes != '\0' && !before.is_alphanumeric() => open = Some((at, closes)),
            _ => {}
        }
        before = c;
    }
    spans
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordKind {
    Letters,
    /// Starts with a digit, or with a `v` and a digit.
    Number,
    /// Inline code or a URL.
    Code,
}

/// A word. `best-in-class` is three, the later two joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word<'t> {
    /// Its first byte in the source.
    pub(crate) start: usize,
    /// The byte after its last.
    pub(crate) end: usize,
    /// Lower case, with straight apostrophes.
    pub(crate) text: Cow<'t, str>,
    pub(crate) kind: WordKind,
    /// Whether a hyphen joins it to the word before.
    pub(crate) joined: bool,
    /// Whether it is between quotation marks.
    pub(crate) quoted: bool,
}

/// Appends the words of a span of the prose.
pub(super) fn tokenize<'t>(
    text: &'t str,
    prose: &str,
    span: Range<usize>,
    speech: &[Range<usize>],
    out: &mut Vec<Word<'t>>,
) {
    let mut at = span.start;
    while at < span.end {
        let Some(c) = prose[at..span.end].chars().next() else { break };
        if !c.is_alphanumeric() && c != CODE_FILL {
            at += c.len_utf8();
            continue;
        }
        let (kind, length) = make_token(&prose[at..span.end], c);
        let joined = out.last().is_some_and(|last| {
            last.end + 1 == at && last.end >= span.start && prose[last.end..].starts_with('-')
        });
        let next_quotation = speech.partition_point(|range| range.end <= at);
        let quoted = speech.get(next_quotation).is_some_and(|range| range.contains(&at));
        let folded =
            if kind == WordKind::Code { Cow::Borrowed("`") } else { fold_word(&text[at..at + length]) };
        out.push(Word { start: at, end: at + length, text: folded, kind, joined, quoted });
        at += length;
    }
}

/// The words of a span, including those in markup.
pub(super) fn tokenize_all<'t>(text: &'t str, span: Range<usize>) -> Vec<Word<'t>> {
    let mut words = Vec::new();
    tokenize(text, text, span, &[], &mut words);
    words
}

/// The normalized words of a phrase, split as by [`tokenize`].
pub(crate) fn split_words(phrase: &str) -> Vec<String> {
    let mut words = Vec::new();
    tokenize(phrase, phrase, 0..phrase.len(), &[], &mut words);
    words.into_iter().map(|word| word.text.into_owned()).collect()
}

fn make_token(rest: &str, first: char) -> (WordKind, usize) {
    if first == CODE_FILL {
        return (WordKind::Code, rest.find(|c| c != CODE_FILL).unwrap_or(rest.len()));
    }
    if is_ideograph(first) {
        return (WordKind::Letters, first.len_utf8());
    }
    let version = first == 'v' && rest[1..].starts_with(|c: char| c.is_ascii_digit());
    let number = first.is_ascii_digit() || version;
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let continues = match c {
            '\'' | '’' => next.is_some_and(char::is_alphabetic),
            '.' | ',' | ':' | '/' | '-' => number && next.is_some_and(|next| next.is_ascii_digit()),
            _ => c.is_alphanumeric() && !is_ideograph(c),
        };
        if !continues {
            return (if number { WordKind::Number } else { WordKind::Letters }, at);
        }
    }
    (if number { WordKind::Number } else { WordKind::Letters }, rest.len())
}

/// Scripts without spaces: every character counts as a word.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{2fa1f}')
}

fn fold_word(word: &str) -> Cow<'_, str> {
    if word.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase()) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(word.to_lowercase().replace('’', "'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[&str]) {
        let spans = split_sentences(text, 0..text.len(), &[], false);
        let got: Vec<&str> = spans.into_iter().map(|span| &text[span]).collect();
        assert_eq!(got, expect);
    }

    #[test]
    fn abbreviations_initials_and_decimals_do_not_end_a_sentence() {
        check(
            "Ask Dr. Jones, e.g. about J. R. Smith. It took 3.5 s. Fine.",
            &["Ask Dr. Jones, e.g. about J. R. Smith.", "It took 3.5 s.", "Fine."],
        );
        check(
            "Logs, traces, etc. were kept. At 5 p.m. We left.",
            &["Logs, traces, etc. were kept.", "At 5 p.m.", "We left."],
        );
        check("See No. 5. Say no. Then go.", &["See No. 5.", "Say no.", "Then go."]);
    }

    #[test]
    fn ellipses_runs_and_closing_marks() {
        check(
            "Well... maybe. Wait… What?! “Yes.” (No.) End",
            &["Well... maybe.", "Wait…", "What?!", "“Yes.”", "(No.)", "End"],
        );
    }

    #[test]
    fn code_can_start_a_sentence() {
        check("Run it. \u{1}\u{1}\u{1} prints.", &["Run it.", "\u{1}\u{1}\u{1} prints."]);
    }

    #[test]
    fn a_hard_break_ends_a_sentence() {
        let text = "one two\nthree four";
        assert_eq!(split_sentences(text, 0..text.len(), &[7], false), [0..7, 8..18]);
    }

    #[test]
    fn speech_is_paired_and_an_open_mark_is_nothing() {
        assert_eq!(quoted_spans("he said \"so it is\" once", 0), vec![8..17]);
        assert_eq!(quoted_spans("a 5\" pipe and \"nothing", 0), Vec::<Range<usize>>::new());
        assert_eq!(quoted_spans("“a” „b”", 10).len(), 2);
    }
}

#[cfg(test)]
mod words_tests {
    use super::*;

    #[test]
    fn words_are_folded_and_hyphens_part_them() {
        assert_eq!(
            split_words("Best-in-Class, don’t 1,200.5 14:02 v1.2 3x 中文"),
            ["best", "in", "class", "don't", "1,200.5", "14:02", "v1.2", "3x", "中", "文"]
        );
    }

    #[test]
    fn joined_words_are_distinguished() {
        let text = "never-ending never";
        let mut words = Vec::new();
        tokenize(text, text, 0..text.len(), &[], &mut words);
        assert_eq!(words.iter().map(|w| w.joined).collect::<Vec<_>>(), [false, true, false]);
    }
}
