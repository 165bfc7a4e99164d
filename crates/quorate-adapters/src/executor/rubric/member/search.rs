//! Compares a member's items with a subject, by the stems of words within a sentence. The items are those of its persona's
//! `boundaries` and of the lists in its body or its role's text below headings such as "Red lines", "Refuses",
//! "Watches for", "Values" and "Asks". The subject is the turns of a conversation or the lines of a text; its markup is
//! read as text, so that nothing is passed over because it looks like code or a quotation.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use quorate_diagnostics::text::{WordList, one_line};
use quorate_protocol::{Json, Part, PartKind, gather};

use super::Stance;
use crate::executor::rubric::checks::{self, Check, Criteria};
use crate::executor::rubric::document::{BlockKind, Document};
use crate::stem::stem;

/// How many words before a match a word reaches that denies it.
const DENIAL_REACH: usize = 4;
const DENIES: [&str; 14] = [
    "not", "no", "never", "without", "don't", "doesn't", "won't", "cannot", "can't", "nor", "refuse",
    "avoid", "instead", "stop",
];

/// Every member refuses a text that tells its judges how to judge.
static INSTRUCTIONS: LazyLock<Item> = LazyLock::new(|| Item {
    phrase: checks::INSTRUCTION_CHECK.name.to_owned(),
    stance: Stance::Refuses,
    patterns: Vec::new(),
    check: Some(&checks::INSTRUCTION_CHECK),
});

/// An item that was found, and where.
#[derive(Debug, Clone)]
pub(super) struct Match<'i> {
    pub(super) item: &'i Item,
    /// In the order of the subject, at least one.
    pub(super) places: Vec<Place>,
}

#[derive(Debug)]
pub(super) struct Search<'i> {
    /// The items that count against the subject, the heaviest first.
    pub(super) findings: Vec<Match<'i>>,
    /// The items that the subject speaks of, also where it denies them.
    pub(super) touched: Vec<Match<'i>>,
    /// The questions that it says nothing about.
    pub(super) open: Vec<&'i Item>,
}

impl<'i> Search<'i> {
    pub(super) fn run(items: &'i [Item], subject: &Subject, criteria: &Criteria<'_>) -> Search<'i> {
        let mut search = Search { findings: Vec::new(), touched: Vec::new(), open: Vec::new() };
        for item in items.iter().chain([&*INSTRUCTIONS]) {
            let (mut places, mut denied) = (Vec::new(), Vec::new());
            for passage in &subject.passages {
                if let Some(check) = item.check {
                    let found = (check.run)(&Document::parse("", &passage.text), criteria);
                    places.extend(found.into_iter().map(|found| subject.place(passage, found.span)));
                }
                for sentence in &passage.sentences {
                    let found = item.patterns.iter().find_map(|pattern| pattern.find(passage, sentence));
                    let Some(found) = found else { continue };
                    let list = if denies(passage, sentence, found.start) { &mut denied } else { &mut places };
                    list.push(subject.place(passage, passage.span(found)));
                }
            }
            if !places.is_empty() && item.stance != Stance::Asks {
                search.findings.push(Match { item, places: places.clone() });
            }
            places.append(&mut denied);
            match places.is_empty() {
                false => search.touched.push(Match { item, places }),
                true if item.stance == Stance::Asks => search.open.push(item),
                true => {}
            }
        }
        search.findings.sort_by_key(|finding| finding.item.stance);
        search
    }
}

/// Whether a sentence denies what is in it from a word on: "we do not sell data". "Not only" denies nothing.
fn denies(passage: &Passage, sentence: &Range<usize>, from: usize) -> bool {
    let first = from.saturating_sub(DENIAL_REACH).max(sentence.start);
    (first..from).any(|at| {
        let next = passage.words.get(at + 1).map_or("", |word| &word.text);
        DENIES.iter().any(|word| passage.words[at].text == *word) && !matches!(next, "only" | "just")
    })
}

/// How many items are kept.
const MAX_ITEMS: usize = 200;
/// A longer phrase is cut, in characters.
const MAX_PHRASE: usize = 100;
/// The stance of the items below a heading; the first match counts.
const HEADINGS: &[(&[&str], Stance)] = &[
    (&["red line"], Stance::RedLine),
    (&["refuse", "will not", "won't", "never", "says no"], Stance::Refuses),
    (&["redirect"], Stance::Redirects),
    (&["defer", "leaves to"], Stance::Defers),
    (&["ask", "question"], Stance::Asks),
    (
        &["watch", "look", "value", "care", "interest", "topic", "flag", "check", "concern", "focus"],
        Stance::Watches,
    ),
];
/// An item's explanation is behind one of these.
const EXPLAINS: [&str; 6] = [": ", " — ", " – ", " - ", "; ", " ("];

#[derive(Debug)]
pub(super) struct Item {
    /// The item of its list, without its explanation.
    pub(super) phrase: String,
    pub(super) stance: Stance,
    /// What counts as the item: the phrases that it quotes, else its own words.
    pub(super) patterns: Vec<Pattern>,
    /// The check that the item is called after; its findings count in place of words.
    pub(super) check: Option<&'static Check>,
}

/// The items of a persona, or of a role's text without a persona, the heaviest first.
pub(super) fn read_items(role: &str, persona: Option<&Json>) -> Vec<Item> {
    let mut items = Vec::new();
    let mut add = |written: &str, stance| items.extend(Item::read(written, stance));
    let body = match persona {
        None => role,
        Some(persona) => {
            let list = |key: &str| {
                let list = persona.pointer(key).and_then(Json::as_array);
                list.into_iter().flatten().filter_map(|item| item.get("topic").unwrap_or(item).as_str())
            };
            list("/boundaries/refuses").for_each(|item| add(item, Stance::Refuses));
            list("/boundaries/redirects").for_each(|item| add(item, Stance::Redirects));
            list("/boundaries/defers").for_each(|item| add(item, Stance::Defers));
            list("/tags").for_each(|item| add(item, Stance::Watches));
            persona.get("body").and_then(Json::as_str).unwrap_or_default()
        }
    };
    let mut section = None;
    for block in &Document::parse("", body).blocks {
        let written = &body[block.span.clone()];
        match block.kind {
            BlockKind::Heading => {
                let line = written.to_lowercase();
                let fits = |(words, _): &&(&[&str], Stance)| words.iter().any(|word| line.contains(word));
                section = HEADINGS.iter().find(fits).map(|(_, stance)| *stance);
            }
            BlockKind::Item => section.into_iter().for_each(|stance| add(written, stance)),
            _ => {}
        }
    }
    items.truncate(MAX_ITEMS);
    items.sort_by_key(|item| item.stance);
    items
}

impl Item {
    /// An item; none where it has no word that says something of a subject.
    fn read(written: &str, stance: Stance) -> Option<Item> {
        let line = one_line(written);
        // An id becomes words.
        let line = if line.contains(' ') { line } else { line.replace(['-', '_'], " ") };
        let head = match stance {
            Stance::Asks => line.find('?').map_or(&*line, |end| &line[..=end]),
            _ => EXPLAINS.iter().filter_map(|mark| line.find(mark)).min().map_or(&*line, |end| &line[..end]),
        };
        let phrase: String =
            head.trim_matches(|c: char| "*_`.,;: ".contains(c)).chars().take(MAX_PHRASE).collect();
        let quoted: Vec<Pattern> =
            line.split(['"', '“', '”']).skip(1).step_by(2).filter_map(Pattern::phrase).collect();
        let check = checks::ALL.iter().copied().find(|check| check.name.eq_ignore_ascii_case(&phrase));
        let patterns = match check {
            Some(_) => Vec::new(),
            None if quoted.is_empty() => vec![Pattern::words(&phrase, stance)?],
            None => quoted,
        };
        Some(Item { phrase, stance, patterns, check })
    }
}

/// How many words before a match a word reaches that says it is lacking.
const WORD_REACH: usize = 4;
/// What follows one of these in an item is lacking: "tests" in "deploys without tests".
const LACKS: [&str; 5] = ["without", "no", "not", "lacking", "missing"];

static FUNCTION_WORDS: WordList = WordList::new(include_str!("../words/member.txt"), "function words");

/// What counts as an item. All words are stems.
#[derive(Debug)]
pub(super) enum Pattern {
    /// These words, one after the other.
    Phrase(Vec<String>),
    /// So many of these words in one sentence, in any order, and none of the lacking ones in the passage, unless the
    /// sentence says that they are lacking.
    Words { present: Vec<String>, needed: usize, lacking: Vec<String> },
}

impl Pattern {
    /// A phrase that an item quotes.
    pub(super) fn phrase(text: &str) -> Option<Pattern> {
        let stems: Vec<String> = split_passage(text).0.into_iter().map(|word| word.stem).collect();
        (!stems.is_empty()).then_some(Pattern::Phrase(stems))
    }

    /// The words of an item; none where none of them says something of a subject.
    pub(super) fn words(phrase: &str, stance: Stance) -> Option<Pattern> {
        let (words, _) = split_passage(phrase);
        let lack = words.iter().position(|word| LACKS.contains(&&*word.text));
        let lack = lack.filter(|_| stance != Stance::Asks).unwrap_or(words.len());
        let stems = |words: &[Word]| {
            let content = words.iter().filter(|word| !FUNCTION_WORDS.contains(&word.text));
            let mut stems: Vec<String> = content.map(|word| word.stem.clone()).collect();
            stems.sort();
            stems.dedup();
            stems
        };
        let (present, lacking) = (stems(&words[..lack]), stems(&words[lack..]));
        let needed = match present.len() {
            all if stance == Stance::Asks => all.div_ceil(2),
            all @ 0..=2 => all,
            more => more - 1,
        };
        (present.len() + lacking.len() > 0).then_some(Pattern::Words { present, needed, lacking })
    }

    /// The words of a sentence from the first to the last that counts.
    pub(super) fn find(&self, passage: &Passage, sentence: &Range<usize>) -> Option<Range<usize>> {
        let words = &passage.words[sentence.clone()];
        match self {
            Pattern::Phrase(stems) => {
                let mut windows = words.windows(stems.len());
                let same = |window: &[Word]| window.iter().zip(stems).all(|(word, stem)| word.stem == *stem);
                let start = sentence.start + windows.position(same)?;
                Some(start..start + stems.len())
            }
            Pattern::Words { present, needed, lacking } => {
                let at = |stem: &String| words.iter().position(|word| word.stem == *stem);
                let said_lacking = || {
                    words.iter().enumerate().find_map(|(at, word)| {
                        let from = at.saturating_sub(WORD_REACH);
                        let lacks = words[from..at].iter().position(|word| LACKS.contains(&&*word.text));
                        lacks.filter(|_| lacking.contains(&word.stem)).map(|lacks| [from + lacks, at])
                    })
                };
                let mut found: Vec<usize> = present.iter().filter_map(at).collect();
                if found.len() < *needed {
                    return None;
                }
                if !lacking.is_empty() {
                    let mentioned = || lacking.iter().any(|stem| passage.stems.contains(stem));
                    match said_lacking() {
                        Some(said) => found.extend(said),
                        None if found.is_empty() || mentioned() => return None,
                        None => {}
                    }
                }
                let (first, last) = (found.iter().min()?, found.iter().max()?);
                Some(sentence.start + first..sentence.start + last + 1)
            }
        }
    }
}

/// The longest quote, in characters.
const MAX_QUOTE: usize = 160;
/// A sentence without an end is cut after so many words.
const MAX_SENTENCE: usize = 60;

#[derive(Debug)]
pub(super) struct Subject {
    /// In order.
    pub(super) passages: Vec<Passage>,
    /// Its name in messages, such as "the proposal".
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
    /// Those of all words.
    stems: HashSet<String>,
    line_ends: Vec<usize>,
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
        let line = passage.line_ends.partition_point(|end| *end < span.start) + 1;
        let name = passage.turn.clone().unwrap_or_else(|| format!("Line {line} of {}", self.name));
        Place { name, quote: passage.quote(span) }
    }
}

fn passages(part: &Part) -> Vec<Passage> {
    // What was cut from a file of JSON lines is text.
    let turns = [&*part.name, "cut.md"].iter().find_map(|name| {
        let messages = gather::parse_conversation(name, &part.text).ok()?;
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
        let (words, sentences) = split_passage(&text);
        let stems = words.iter().map(|word| word.stem.clone()).collect();
        let line_ends = text.match_indices('\n').map(|(at, _)| at).collect();
        Passage { text, turn, words, sentences, stems, line_ends }
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
        // Only the sentence is searched: a text of one line may have many places.
        let (first, last) = (whole.start.min(span.start), whole.end.max(span.end));
        let breaks = ['\n', '\r'];
        let start = self.text[first..span.start].rfind(breaks).map_or(first, |at| first + at + 1);
        let end = self.text[span.start..last].find(breaks).map_or(last, |at| span.start + at);
        let line = &self.text[start..end];
        let quote = if line.chars().count() > MAX_QUOTE { &self.text[span.start..end] } else { line };
        quote.chars().take(MAX_QUOTE).collect::<String>().trim().to_owned()
    }
}

/// The words of a text: letters and digits, with apostrophes within. And its sentences.
pub(super) fn split_passage(text: &str) -> (Vec<Word>, Vec<Range<usize>>) {
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
