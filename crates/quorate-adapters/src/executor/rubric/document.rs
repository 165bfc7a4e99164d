//! The artifact as prose: blocks, sentences and words with their byte offsets in the source. `document/parse.rs` decides
//! what counts as prose; the checks interpret it.

mod parse;
mod sentences;
mod sources;

use std::ops::Range;

use quorate_diagnostics::text::one_line;

pub(super) use sentences::{Word, WordKind, split_words};
pub(super) use sources::Channel;

/// The longest quote, in characters.
const QUOTE_CAP: usize = 160;
/// Shorter fragments of a longer place make no quote.
const MIN_QUOTE_BYTES: usize = 12;
/// How many lines of a place are searched for a quote.
const MAX_QUOTE_LINES: usize = 8;

/// The Markdown element that a run of prose comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    Paragraph,
    Verse,
    /// A list item, or a paragraph in one.
    Item,
    Heading,
    Cell,
}

/// A run of prose that no sentence and no quote crosses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) kind: BlockKind,
    /// Byte range in the source.
    pub(super) span: Range<usize>,
    /// Indices into [`Document::sentences`].
    pub(super) sentences: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence {
    /// Byte range in the source, from its first to its last character.
    pub(super) span: Range<usize>,
    /// Index into [`Document::blocks`].
    pub(super) block: usize,
    /// Indices into [`Document::words`].
    pub(super) words: Range<usize>,
    /// Whether the sentence itself names or links a source.
    pub(super) cites: bool,
}

/// How many words to include before and after a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Margin {
    pub(super) before: usize,
    pub(super) after: usize,
}

#[derive(Debug)]
pub(super) struct Document<'t> {
    pub(super) text: &'t str,
    /// The text with everything but the author's prose blanked out, of the same length in bytes.
    pub(super) prose: String,
    pub(super) blocks: Vec<Block>,
    /// Of all blocks, in order.
    pub(super) sentences: Vec<Sentence>,
    /// Of all sentences, in order.
    pub(super) words: Vec<Word<'t>>,
    /// The words of each text outside of the prose: markup and its comments, footnotes, sections of sources.
    pub(super) non_prose: Vec<Vec<Word<'t>>>,
    /// The purpose of the text, as far as it can be detected.
    pub(super) channel: Channel,
    /// Whether the text offers the reader a link.
    pub(super) has_link: bool,
    /// Parts that are not read although they may hold the author's prose, each with what it is.
    pub(super) unread: Vec<(Range<usize>, &'static str)>,
    line_starts: Vec<usize>,
}

impl<'t> Document<'t> {
    /// Parses a text; `name` is its path, a hint for the channel.
    pub(super) fn parse(name: &str, text: &'t str) -> Self {
        let parsed = parse::parse(name, text);
        let mut document = Document {
            text,
            prose: parsed.prose,
            blocks: Vec::new(),
            sentences: Vec::new(),
            words: Vec::new(),
            non_prose: parsed
                .non_prose
                .iter()
                .map(|span| sentences::tokenize_all(text, span.clone()))
                .collect(),
            channel: Channel::Unstated,
            has_link: !parsed.links.is_empty(),
            unread: parsed.unread,
            line_starts: std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect(),
        };
        for (kind, span) in &parsed.blocks {
            let verse = *kind == BlockKind::Paragraph && is_stanza(&document.prose[span.clone()]);
            let kind = if verse { BlockKind::Verse } else { *kind };
            document.add_block(kind, span.clone(), &parsed.breaks);
        }
        sources::mark_citations(&mut document, &parsed.source_marks);
        document.channel = sources::detect_channel(name, &document, &parsed.front_matter);
        document
    }

    fn add_block(&mut self, kind: BlockKind, span: Range<usize>, breaks: &[usize]) {
        let first = self.sentences.len();
        let is_one_sentence = matches!(kind, BlockKind::Heading | BlockKind::Cell);
        let speech = sentences::quoted_spans(&self.prose[span.clone()], span.start);
        for sentence in sentences::split_sentences(&self.prose, span.clone(), breaks, is_one_sentence) {
            let start = self.words.len();
            sentences::tokenize(self.text, &self.prose, sentence.clone(), &speech, &mut self.words);
            if self.words.len() > start {
                let words = start..self.words.len();
                self.sentences.push(Sentence {
                    span: sentence,
                    block: self.blocks.len(),
                    words,
                    cites: false,
                });
            }
        }
        self.blocks.push(Block { kind, span, sentences: first..self.sentences.len() });
    }

    /// The text of a place on one line, for use within a sentence.
    pub(super) fn one_line(&self, span: &Range<usize>) -> String {
        one_line(&self.text[span.clone()])
    }

    /// The words of a sentence.
    pub(super) fn words_of(&self, sentence: &Sentence) -> &[Word<'t>] {
        &self.words[sentence.words.clone()]
    }

    /// The kind of a sentence's block.
    pub(super) fn kind_of(&self, sentence: &Sentence) -> BlockKind {
        self.blocks[sentence.block].kind
    }

    /// Whether a place is in verse.
    pub(super) fn is_verse(&self, at: usize) -> bool {
        self.sentence_at(at).is_some_and(|index| self.kind_of(&self.sentences[index]) == BlockKind::Verse)
    }

    /// The sentence that a place belongs to: the last one that starts at or before it.
    pub(super) fn sentence_at(&self, at: usize) -> Option<usize> {
        self.sentences.partition_point(|sentence| sentence.span.start <= at).checked_sub(1)
    }

    /// The number of words of prose, without inline code.
    pub(super) fn word_count(&self) -> usize {
        self.words.iter().filter(|word| word.kind != WordKind::Code && !word.quoted).count()
    }

    /// The line number of a place, from 1.
    pub(super) fn line_of(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at)
    }

    /// The text of a line, from 1, without its line end; empty past the last.
    pub(super) fn line(&self, number: usize) -> Range<usize> {
        let start = number.checked_sub(1).and_then(|index| self.line_starts.get(index)).copied();
        let Some(start) = start else { return self.text.len()..self.text.len() };
        let end = self.line_starts.get(number).map_or(self.text.len(), |next| next - 1);
        start..end
    }

    /// A place with surrounding words of its sentence, within its line.
    pub(super) fn with_context(
        &self,
        sentence: &Sentence,
        span: &Range<usize>,
        margin: Margin,
    ) -> Range<usize> {
        let words = self.words_of(sentence);
        let line = self.line(self.line_of(span.start));
        let first = words.partition_point(|word| word.start < span.start).saturating_sub(margin.before);
        let last = words.partition_point(|word| word.end <= span.end) + margin.after;
        let start = words[first.min(words.len() - 1)..]
            .iter()
            .map(|word| word.start)
            .find(|start| *start >= line.start);
        let end =
            words[..last.min(words.len())].iter().rev().map(|word| word.end).find(|end| *end <= line.end);
        start.unwrap_or(span.start).min(span.start)..end.unwrap_or(span.end).max(span.end)
    }

    /// A quote for a place: verbatim, on one line, short, and if possible unique on that line.
    pub(super) fn quote(&self, span: &Range<usize>) -> Range<usize> {
        let span = &self.longest_part(span);
        let line = self.line(self.line_of(span.start));
        let bounds = self.sentence_at(span.start).map_or(line.clone(), |index| {
            let sentence = &self.sentences[index].span;
            line.start.max(sentence.start)..line.end.min(sentence.end.max(span.end))
        });
        let mut quote = trimmed(self.text, span.start..span.end.min(line.end));
        if let Some((cut, _)) = self.text[quote.clone()].char_indices().nth(QUOTE_CAP) {
            quote = trimmed(self.text, quote.start..self.word_end_before(quote.start, quote.start + cut));
        }
        let same_line = &self.text[line.clone()];
        let occurs_again = |quote: &Range<usize>| {
            let text = &self.text[quote.clone()];
            text.is_empty() || same_line.match_indices(text).nth(1).is_some()
        };
        while occurs_again(&quote) {
            let wider = self.widened(&quote, &bounds);
            if wider == quote || self.text[wider.clone()].chars().count() > QUOTE_CAP {
                break;
            }
            quote = wider;
        }
        quote
    }

    /// For a place of several lines, the part on the first line, or on the longest if the first is too short.
    fn longest_part(&self, span: &Range<usize>) -> Range<usize> {
        let last = self.line_of(span.end.max(span.start + 1) - 1);
        let parts = (self.line_of(span.start)..=last).take(MAX_QUOTE_LINES).map(|number| {
            let line = self.line(number);
            trimmed(self.text, line.start.max(span.start)..line.end.min(span.end))
        });
        let mut longest = span.start..span.start;
        for part in parts {
            if part.len() >= MIN_QUOTE_BYTES && longest.is_empty() {
                return part;
            }
            longest = if part.len() > longest.len() { part } else { longest };
        }
        longest
    }

    /// A quote with one more word on each side, within bounds.
    fn widened(&self, quote: &Range<usize>, bounds: &Range<usize>) -> Range<usize> {
        let before = self.words.partition_point(|word| word.start < quote.start);
        let after = self.words.partition_point(|word| word.end <= quote.end);
        let left =
            before.checked_sub(1).map(|index| self.words[index].start).filter(|start| *start >= bounds.start);
        let right = self.words.get(after).map(|word| word.end).filter(|end| *end <= bounds.end);
        left.unwrap_or(quote.start)..right.unwrap_or(quote.end).max(quote.end)
    }

    /// The end of the last whole word before a place; the place itself if a single word reaches that far.
    fn word_end_before(&self, start: usize, at: usize) -> usize {
        let next = self.words.partition_point(|word| word.end <= at);
        next.checked_sub(1).map(|index| self.words[index].end).filter(|end| *end > start).unwrap_or(at)
    }
}

fn trimmed(text: &str, span: Range<usize>) -> Range<usize> {
    if span.start >= span.end {
        return span.start..span.start;
    }
    let inner = &text[span.clone()];
    let start = span.start + (inner.len() - inner.trim_start().len());
    start..start + inner.trim().len()
}

/// The fewest lines of a stanza.
const MIN_STANZA_LINES: usize = 3;
/// The longest line of verse, in characters; prose wraps later.
const MAX_LINE_CHARS: usize = 60;

/// Whether a paragraph is a stanza. Short sentences one below the other, as in an advertisement, are not.
fn is_stanza(paragraph: &str) -> bool {
    let lines: Vec<&str> = paragraph.trim().lines().map(str::trim).collect();
    let short = lines.iter().all(|line| line.chars().count() <= MAX_LINE_CHARS);
    let ends =
        |line: &&&str| line.trim_end_matches(['"', '”', ')', '*', '_', '\\']).ends_with(['.', '!', '?', ':']);
    lines.len() >= MIN_STANZA_LINES && short && lines.iter().filter(ends).count() * 2 <= lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str) -> Vec<&str> {
        Document::parse("", text).sentences.iter().map(|s| &text[s.span.clone()]).collect()
    }

    #[test]
    fn only_the_authors_own_words_are_prose() {
        let text = "---\ntype: post\n---\n# Title\n\nOne [two](http://x.example/y) `three`.\n\n> quoted\n\n```sh\ncode\n```\n\
                    <!-- note -->\n\n| a | b |\n|---|---|\n| c | d |\n";
        let document = Document::parse("", text);
        let words: Vec<&str> =
            document.words.iter().filter(|w| w.kind != WordKind::Code).map(|w| &*w.text).collect();
        assert_eq!(words, ["title", "one", "two", "a", "b", "c", "d"]);
    }

    #[test]
    fn offsets_are_those_of_the_source() {
        let text = "\u{feff}A **bold** claim, “as they say”. Übrigens: 3.5 times.";
        for word in Document::parse("", text).words {
            assert_eq!(text[word.start..word.end].to_lowercase(), word.text.to_lowercase());
        }
    }

    #[test]
    fn list_items_are_blocks_of_their_own() {
        assert_eq!(
            sentences("Lead:\n\n- one\n- two\n  - three\n\n  more\n"),
            ["Lead:", "one", "two", "three", "more"]
        );
    }

    #[test]
    fn quotes_stay_on_their_line_and_grow_until_they_are_unique() {
        let text = "so fast and so good and\nso calm.";
        let document = Document::parse("", text);
        let quote = document.quote(&(12..14));
        assert_eq!(&text[quote], "and so good");
        // A fragment on the first line is not quoted if the next line has more.
        assert_eq!(&text[document.quote(&(20..text.len()))], "so calm.");
    }

    #[test]
    fn a_quote_is_cut_at_a_word() {
        let text = "word ".repeat(100);
        let document = Document::parse("", &text);
        let quote = document.quote(&(0..text.len()));
        assert!(quote.len() <= QUOTE_CAP && text[quote].ends_with("word"));
    }
}

#[cfg(test)]
mod verse_tests {
    use super::*;

    #[test]
    fn lines_that_are_broken_in_the_middle_of_a_sentence() {
        assert!(is_stanza(
            "Always the gulls come back to the wall,\nalways the salt in the gate,\nand never the boat."
        ));
        assert!(!is_stanza("Buy it today.\nIt is the best.\nIt is free forever!"));
        assert!(!is_stanza("Two lines,\nno more"));
        let wrapped = "This paragraph was wrapped by an editor at the end of the line, which is\nlate, as the next line\n\
                       and this one are not";
        assert!(!is_stanza(wrapped));
    }
}
