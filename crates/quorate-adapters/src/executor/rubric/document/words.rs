//! Words, normalized for comparison, with their place in the source.

use std::borrow::Cow;
use std::ops::Range;

use super::parse::CODE_FILL;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
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
    pub(crate) kind: Kind,
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
        let (kind, length) = token(&prose[at..span.end], c);
        let joined = out.last().is_some_and(|last| {
            last.end + 1 == at && last.end >= span.start && prose[last.end..].starts_with('-')
        });
        let next_quotation = speech.partition_point(|range| range.end <= at);
        let quoted = speech.get(next_quotation).is_some_and(|range| range.contains(&at));
        let folded = if kind == Kind::Code { Cow::Borrowed("`") } else { fold(&text[at..at + length]) };
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
pub(crate) fn split(phrase: &str) -> Vec<String> {
    let mut words = Vec::new();
    tokenize(phrase, phrase, 0..phrase.len(), &[], &mut words);
    words.into_iter().map(|word| word.text.into_owned()).collect()
}

fn token(rest: &str, first: char) -> (Kind, usize) {
    if first == CODE_FILL {
        return (Kind::Code, rest.find(|c| c != CODE_FILL).unwrap_or(rest.len()));
    }
    if is_ideograph(first) {
        return (Kind::Letters, first.len_utf8());
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
            return (if number { Kind::Number } else { Kind::Letters }, at);
        }
    }
    (if number { Kind::Number } else { Kind::Letters }, rest.len())
}

/// Scripts without spaces: every character counts as a word.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{2fa1f}')
}

fn fold(word: &str) -> Cow<'_, str> {
    if word.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase()) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(word.to_lowercase().replace('’', "'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folded_and_hyphens_part_them() {
        assert_eq!(
            split("Best-in-Class, don’t 1,200.5 14:02 v1.2 3x 中文"),
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
