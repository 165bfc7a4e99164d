//! Material as plain words and sentences, whatever markup stands around them: nothing that is said to somebody is
//! passed over because it looks like code or a quotation.

use std::borrow::Cow;
use std::ops::Range;

use crate::executor::rubric::document::{Word, WordKind};

/// The longest quote, in characters.
const QUOTE: usize = 160;
/// A sentence without an end is cut after so many words.
const SENTENCE: usize = 60;

/// A text, its words and its sentences.
#[derive(Debug)]
pub(super) struct Text<'t> {
    pub(super) text: &'t str,
    /// Its words, folded, with their places.
    pub(super) words: Vec<Word<'t>>,
    /// The sentences, as ranges of words.
    pub(super) sentences: Vec<Range<usize>>,
}

impl<'t> Text<'t> {
    pub(super) fn read(text: &'t str) -> Self {
        let mut read = Text { text, words: Vec::new(), sentences: Vec::new() };
        let mut from = 0;
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            if c.is_alphanumeric() {
                let length = word(&text[at..]);
                read.words.push(folded(text, at..at + length));
                at += length;
            } else {
                if ends(text, at, c) && !read.numbers_an_item(at, c) {
                    read.sentence(&mut from);
                }
                at += c.len_utf8();
            }
            if read.words.len() - from >= SENTENCE {
                read.sentence(&mut from);
            }
        }
        read.sentence(&mut from);
        read
    }

    /// Whether a full stop belongs to the number of a list item.
    fn numbers_an_item(&self, at: usize, c: char) -> bool {
        let number =
            self.words.last().filter(|word| c == '.' && word.end == at && word.kind == WordKind::Number);
        number
            .is_some_and(|word| self.text[..word.start].trim_end_matches([' ', '\t']).ends_with(['\n', '\r']))
    }

    fn sentence(&mut self, from: &mut usize) {
        if self.words.len() > *from {
            self.sentences.push(*from..self.words.len());
            *from = self.words.len();
        }
    }

    /// The place of some words.
    pub(super) fn span(&self, words: &Range<usize>) -> Range<usize> {
        match (self.words.get(words.start), words.end.checked_sub(1).and_then(|last| self.words.get(last))) {
            (Some(first), Some(last)) => first.start..last.end.max(first.end),
            _ => 0..0,
        }
    }

    /// A quote for a place: verbatim, on one line, with as much of its sentence as is short enough.
    pub(super) fn quote(&self, span: &Range<usize>) -> &'t str {
        let at = self.words.partition_point(|word| word.end <= span.start).min(self.words.len().max(1) - 1);
        let sentence = self.sentences.partition_point(|sentence| sentence.end <= at);
        let Some(sentence) = self.sentences.get(sentence) else { return "" };
        let line = self.on_one_line(sentence, span.start);
        if self.text[line.clone()].chars().count() <= QUOTE {
            return self.text[line].trim();
        }
        self.around(span, &line)
    }

    /// The part of a sentence that is on the line of a place, with the marks before its first word and after its last.
    fn on_one_line(&self, sentence: &Range<usize>, at: usize) -> Range<usize> {
        let whole = self.span(sentence);
        let before = sentence.start.checked_sub(1).map_or(0, |word| self.words[word].end);
        let after = self.words.get(sentence.end).map_or(self.text.len(), |word| word.start);
        let parts = |c: char| c.is_whitespace() || c == '|';
        let start = self.text[before..whole.start].rfind(parts).map_or(before, |to| before + to + 1);
        let end = self.text[whole.end..after].find(parts).map_or(after, |to| whole.end + to);
        let at = at.clamp(start, end);
        let breaks = ['\n', '\r'];
        let from = self.text[start..at].rfind(breaks).map_or(start, |to| start + to + 1);
        let to = self.text[at..end].find(breaks).map_or(end, |to| at + to);
        from..to
    }

    /// The words around a place, as many as a quote takes, the place first.
    fn around(&self, span: &Range<usize>, line: &Range<usize>) -> &'t str {
        let first = self.words.partition_point(|word| word.end <= span.start);
        let mut from = first;
        let length = |range: Range<usize>| self.text[range].chars().count();
        let Some(start) = self.words.get(first).map(|word| word.start) else { return "" };
        while from > 0
            && self.words[from - 1].start >= line.start
            && length(self.words[from - 1].start..start) <= QUOTE / 3
        {
            from -= 1;
        }
        let start = self.words[from].start;
        let fits = |word: &&Word<'_>| word.end <= line.end && length(start..word.end) <= QUOTE;
        match self.words[from..].iter().take_while(fits).last() {
            Some(last) => &self.text[start..last.end],
            // A single word that is longer than a quote.
            None => self.text[start..line.end]
                .char_indices()
                .nth(QUOTE)
                .map_or("", |(to, _)| &self.text[start..start + to]),
        }
    }
}

/// Whether a folded line has a word, or words, that begin so.
pub(super) fn has(line: &str, beginning: &str) -> bool {
    line.match_indices(beginning).any(|(at, _)| line[..at].ends_with(' '))
}

/// Folded as a document's words are, joined by single spaces, with one before the first: what cues are looked up in.
pub(super) fn folded_line(text: &str) -> String {
    let words = Text::read(text).words;
    words.iter().fold(String::new(), |line, word| line + " " + &word.text)
}

/// How long the word at the start of a text is: letters and digits, with apostrophes and the marks of numbers within.
fn word(rest: &str) -> usize {
    let number = rest.starts_with(|c: char| c.is_ascii_digit());
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let goes_on = match c {
            '\'' | '’' => next.is_some_and(char::is_alphabetic),
            '.' | ',' => number && next.is_some_and(|next| next.is_ascii_digit()),
            _ => c.is_alphanumeric(),
        };
        if !goes_on {
            return at;
        }
    }
    rest.len()
}

fn folded(text: &str, span: Range<usize>) -> Word<'_> {
    let written = &text[span.clone()];
    let plain = written.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase());
    let folded =
        if plain { Cow::Borrowed(written) } else { Cow::Owned(written.to_lowercase().replace('’', "'")) };
    let number = written.starts_with(|c: char| c.is_ascii_digit());
    let kind = if number { WordKind::Number } else { WordKind::Letters };
    Word { start: span.start, end: span.end, text: folded, kind, joined: false, quoted: false }
}

/// Whether a character ends a sentence where it stands.
fn ends(text: &str, at: usize, c: char) -> bool {
    let after = &text[at + c.len_utf8()..];
    match c {
        '.' | '!' | '?' | '…' => {
            after.is_empty() || after.starts_with(|c: char| c.is_whitespace() || "\"'”’)*_".contains(c))
        }
        '\n' => {
            let line = after.trim_start_matches([' ', '\t', '\r']);
            let mark = line.chars().next();
            let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
            let listed = numbered.len() < line.len() && numbered.starts_with(['.', ')']);
            let before = text[..at].rsplit('\n').next().unwrap_or_default().trim_start();
            mark.is_none_or(|c| "\n-*#>|+".contains(c)) || listed || before.starts_with('#')
        }
        '|' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str) -> Vec<&str> {
        let read = Text::read(text);
        read.sentences.iter().map(|sentence| &text[read.span(sentence)]).collect()
    }

    #[test]
    fn lines_go_on_and_items_do_not() {
        assert_eq!(
            sentences(
                "# Title\nOne goes\non here. Two!\n\n- item 1.5\n- `code` <b>two</b>\n1. three\n> four | five"
            ),
            ["Title", "One goes\non here", "Two", "item 1.5", "code` <b>two</b", "1. three", "four", "five"]
        );
    }

    #[test]
    fn quotes_are_verbatim_and_on_one_line() {
        let text = "Fine. You’re right\nabout it! Next.";
        let read = Text::read(text);
        assert_eq!(read.quote(&(text.find("right").unwrap()..8)), "You’re right");
        assert_eq!(read.quote(&(text.find("about").unwrap()..8)), "about it!");
        let long = format!("{} here {}", "word ".repeat(100), "word ".repeat(50));
        let quote = Text::read(&long).quote(&(501..505)).to_owned();
        assert!(quote.contains("here") && long.contains(&quote) && quote.chars().count() <= QUOTE, "{quote}");
        let one = "x".repeat(1000);
        assert_eq!(Text::read(&one).quote(&(0..1000)).len(), QUOTE);
        assert_eq!(Text::read("").quote(&(0..0)), "");
        let marked = "- **(5 %)** of “it” fell by 80%. | next |";
        let read = Text::read(marked);
        assert_eq!(read.quote(&(read.words[0].start..read.words[0].end)), "**(5 %)** of “it” fell by 80%.");
    }
}
