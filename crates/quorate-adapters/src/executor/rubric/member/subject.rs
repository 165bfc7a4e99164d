//! What a member is shown, as sentences with their places: the turns of a conversation, or the lines of a text. Markup
//! is read as text: nothing is passed over because it looks like code or a quotation.

use std::ops::Range;

use quorate_protocol::gather::conversation;
use quorate_protocol::{Part, PartKind};

use crate::stem::stem;

/// The longest quote, in characters.
const MAX_QUOTE: usize = 160;
/// A sentence without an end is cut after so many words.
const MAX_SENTENCE: usize = 60;

#[derive(Debug)]
pub(super) struct Subject {
    /// In order.
    pub(super) passages: Vec<Passage>,
    /// What it is called: "the proposal".
    pub(super) name: &'static str,
}

#[derive(Debug)]
pub(super) struct Passage {
    pub(super) text: String,
    /// `Turn 3 (user)`; none in a text, whose places are its lines.
    turn: Option<String>,
    pub(super) words: Vec<Word>,
    /// As ranges of words.
    pub(super) sentences: Vec<Range<usize>>,
}

#[derive(Debug)]
pub(super) struct Word {
    start: usize,
    end: usize,
    /// In lower case.
    pub(super) text: String,
    pub(super) stem: String,
}

/// Where something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// `Turn 3 (user)`, `Line 9 of the proposal`.
    pub(super) name: String,
    /// Verbatim, on one line.
    pub(super) quote: String,
}

impl Subject {
    /// What must be judged; `None` where nothing is shown.
    pub(super) fn read(parts: &[Part]) -> Option<Subject> {
        let kinds = [
            (PartKind::Conversation, "the conversation"),
            (PartKind::Proposal, "the proposal"),
            (PartKind::Topic, "the topic"),
            (PartKind::Request, "the request"),
            (PartKind::Artifact, "the text"),
            (PartKind::Gathered, "what was gathered"),
            // A node may be shown its children's answers alone; they are not material.
            (PartKind::ChildrenOutputs, "the request"),
        ];
        let shown = |kind| parts.iter().filter(move |part| part.kind == kind);
        let name = kinds.iter().find(|(kind, _)| shown(*kind).next().is_some())?.1;
        let read = kinds.iter().filter(|(kind, _)| *kind != PartKind::ChildrenOutputs);
        let passages = read.flat_map(|(kind, _)| shown(*kind)).flat_map(passages).collect();
        Some(Subject { passages, name })
    }

    /// The place of some words of a passage.
    pub(super) fn place(&self, passage: &Passage, span: Range<usize>) -> Place {
        let before = &passage.text[..span.start];
        let name = passage
            .turn
            .clone()
            .unwrap_or_else(|| format!("Line {} of {}", before.matches('\n').count() + 1, self.name));
        Place { name, quote: passage.quote(span) }
    }
}

fn passages(part: &Part) -> Vec<Passage> {
    // What was cut from a file of JSON lines is text.
    let turns = [&*part.name, "cut.md"].iter().find_map(|name| {
        let messages = conversation::parse(name, &part.text).ok()?.messages;
        (part.kind == PartKind::Conversation && !messages.is_empty()).then_some(messages)
    });
    match turns {
        None => vec![Passage::read(part.text.to_string(), None)],
        Some(turns) => turns
            .into_iter()
            .enumerate()
            .map(|(at, turn)| Passage::read(turn.content, Some(format!("Turn {} ({})", at + 1, turn.role))))
            .collect(),
    }
}

impl Passage {
    pub(super) fn read(text: String, turn: Option<String>) -> Passage {
        let (words, sentences) = split(&text);
        Passage { text, turn, words, sentences }
    }

    /// The bytes of a range of words.
    pub(super) fn span(&self, words: Range<usize>) -> Range<usize> {
        self.words[words.start].start..self.words[words.end - 1].end
    }

    /// The sentence around a place, as much of it as is on the place's line and short enough.
    fn quote(&self, span: Range<usize>) -> String {
        let at = self.words.partition_point(|word| word.end <= span.start);
        let sentence = self.sentences.partition_point(|sentence| sentence.end <= at);
        let whole = self.sentences.get(sentence).map_or(span.clone(), |sentence| self.span(sentence.clone()));
        let breaks = ['\n', '\r'];
        let start = self.text[..span.start].rfind(breaks).map_or(0, |at| at + 1).max(whole.start);
        let line_end = self.text[span.start..].find(breaks).map_or(self.text.len(), |at| span.start + at);
        let end = line_end.min(whole.end.max(span.end));
        let line = &self.text[start.min(span.start)..end];
        let quote = if line.chars().count() > MAX_QUOTE { &self.text[span.start..end] } else { line };
        quote.chars().take(MAX_QUOTE).collect::<String>().trim().to_owned()
    }
}

/// The words of a text: letters and digits, with apostrophes within. And its sentences.
pub(super) fn split(text: &str) -> (Vec<Word>, Vec<Range<usize>>) {
    let (mut words, mut sentences): (Vec<Word>, Vec<Range<usize>>) = (Vec::new(), Vec::new());
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        let ended = if c.is_alphanumeric() {
            let inside = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’');
            while chars.next_if(|(_, c)| inside(*c)).is_some() {}
            let end = chars.peek().map_or(text.len(), |(at, _)| *at);
            let word = text[start..end].to_lowercase().replace('’', "'");
            words.push(Word { start, end, stem: stem(&word).to_owned(), text: word });
            false
        } else {
            ends_sentence(c, &text[start + c.len_utf8()..])
        };
        let from = sentences.last().map_or(0, |sentence| sentence.end);
        if words.len() > from && (ended || chars.peek().is_none() || words.len() - from >= MAX_SENTENCE) {
            sentences.push(from..words.len());
        }
    }
    (words, sentences)
}

fn ends_sentence(c: char, rest: &str) -> bool {
    match c {
        '.' | '!' | '?' | '…' => !rest.starts_with(char::is_alphanumeric),
        // A list item, a heading, a table row, or an empty line follows.
        '\n' => rest
            .trim_start_matches([' ', '\t', '\r'])
            .chars()
            .next()
            .is_none_or(|c| "\n-*#>|+".contains(c) || c.is_ascii_digit()),
        '|' => true,
        _ => false,
    }
}
