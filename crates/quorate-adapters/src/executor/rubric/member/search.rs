//! Compares a member's items with a subject, by the stems of words within a sentence. The items are those of its persona's
//! `boundaries` and of the lists in its body or its role's text below headings such as "Red lines", "Refuses",
//! "Watches for", "Values" and "Asks". The subject is the turns of a conversation or the lines of a text; its markup is
//! read as text, so that nothing is passed over because it looks like code or a quotation.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use quorate_diagnostics::text::one_line;
use quorate_protocol::{Json, Part, PartKind, gather};
use regex::Regex;

use super::Stance;
use crate::executor::rubric::checks::{self, Check, Criteria, Reading};
use crate::executor::rubric::document::{BlockKind, Document};
use crate::executor::rubric::phrases::{compiled, words};
use quorate_text::words::stem;

/// How many items are kept.
const MAX_ITEMS: usize = 200;
/// A longer phrase is cut, and so is a longer quote, in characters.
const MAX_PHRASE: usize = 100;
const MAX_QUOTE: usize = 160;
/// A sentence without an end is cut after so many words.
const MAX_SENTENCE: usize = 60;
/// How many words before a match a word reaches that denies it, or says that it is lacking.
const REACH: usize = 4;
const DENIES: [&str; 14] = [
    "not", "no", "never", "without", "don't", "doesn't", "won't", "cannot", "can't", "nor", "refuse",
    "avoid", "instead", "stop",
];
/// What follows one of these in an item is lacking: "tests" in "deploys without tests".
const LACKS: [&str; 5] = ["without", "no", "not", "lacking", "missing"];
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
/// These say nothing of a subject: they are left out when the phrases of a persona are compared with a text.
static FUNCTION_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let words = "a about above after again all also always am an and any anybody anyone anything are as ask asks at be because \
        been before behind being between both but by can could did do does done each either even ever every everyone everything \
        first for from get gets give given go goes good had has have he her here him his how i if in instead into is it its just \
        kind know less let like look looks made make makes many may me might more most much must my need needs no nobody non not \
        nothing now of off on one only or other others our out over own people person put rather really s same say says see she \
        should so some somebody someone something such take than that the their them then there these they thing things this \
        those through to too under until up us use used very want wants was way we well were what when where whether which while \
        who whom whose why will with within without would you your yours";
    words.split_whitespace().collect()
});

/// An item that was found, and where.
#[derive(Debug, Clone)]
pub(super) struct Match<'i> {
    pub(super) item: &'i Item,
    /// In the order of the subject, at least one.
    pub(super) places: Vec<Place>,
}

/// Where something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// `Turn 3 (user)`, `Line 9 of the proposal`.
    pub(super) name: String,
    /// Verbatim, on one line.
    pub(super) quote: String,
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

/// Every member refuses a text that tells its judges how to judge.
static INSTRUCTIONS: LazyLock<Item> = LazyLock::new(|| Item {
    phrase: checks::INSTRUCTIONS.to_owned(),
    stance: Stance::Refuses,
    patterns: Vec::new(),
    check: checks::named(checks::INSTRUCTIONS),
});

impl<'i> Search<'i> {
    pub(super) fn run(items: &'i [Item], subject: &Subject, criteria: &Criteria<'_>) -> Search<'i> {
        let mut search = Search { findings: Vec::new(), touched: Vec::new(), open: Vec::new() };
        for item in items.iter().chain([&*INSTRUCTIONS]) {
            let (mut places, mut denied) = (Vec::new(), Vec::new());
            for passage in &subject.passages {
                if let Some(check) = item.check {
                    let document = Document::parse("", &passage.text);
                    let found = Reading::new(&document, criteria).findings_of(check);
                    places.extend(found.into_iter().map(|found| subject.place(passage, found.span)));
                }
                for sentence in &passage.sentences {
                    let words = &passage.words[sentence.clone()];
                    let found = item.patterns.iter().find_map(|pattern| pattern.find(passage, words));
                    let Some(found) = found else { continue };
                    let list = if denies(words, found.start) { &mut denied } else { &mut places };
                    list.push(subject.place(passage, words[found.start].start..words[found.end - 1].end));
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
fn denies(sentence: &[Word], from: usize) -> bool {
    (from.saturating_sub(REACH)..from).any(|at| {
        let next = sentence.get(at + 1).map_or("", |word| &word.text);
        DENIES.contains(&&*sentence[at].text) && !matches!(next, "only" | "just")
    })
}

#[derive(Debug)]
pub(super) struct Item {
    /// The item of its list, without its explanation.
    pub(super) phrase: String,
    pub(super) stance: Stance,
    /// What counts as the item: the phrases that it quotes, else its own words.
    patterns: Vec<Pattern>,
    /// The check that the item is called after; its findings count in place of words.
    check: Option<&'static Check>,
}

/// The items of a persona, or of a role's text without a persona, the heaviest first.
pub(super) fn read_items(role: &str, persona: Option<&Json>) -> Vec<Item> {
    let mut items = Vec::new();
    let mut add = |written: &str, stance| items.extend(Item::read(written, stance));
    let body = match persona {
        None => role,
        Some(persona) => {
            let lists = [
                ("/boundaries/refuses", Stance::Refuses),
                ("/boundaries/redirects", Stance::Redirects),
                ("/boundaries/defers", Stance::Defers),
                ("/tags", Stance::Watches),
            ];
            for (list, stance) in lists {
                let list = persona.pointer(list).and_then(Json::as_array).into_iter().flatten();
                let topics = list.filter_map(|item| item.get("topic").unwrap_or(item).as_str());
                topics.for_each(|topic| add(topic, stance));
            }
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
        let check = checks::named(&phrase);
        let patterns = match check {
            Some(_) => Vec::new(),
            None if quoted.is_empty() => vec![Pattern::words(&phrase, stance)?],
            None => quoted,
        };
        Some(Item { phrase, stance, patterns, check })
    }
}

/// What counts as an item. All words are stems.
#[derive(Debug)]
enum Pattern {
    /// These words, one after the other.
    Phrase(Vec<String>),
    /// So many of these words in one sentence, in any order, and none of the lacking ones in the passage, unless the
    /// sentence says that they are lacking.
    Words { present: HashSet<String>, needed: usize, lacking: HashSet<String> },
}

impl Pattern {
    /// A phrase that an item quotes.
    fn phrase(text: &str) -> Option<Pattern> {
        let stems: Vec<String> = split(text).into_iter().map(|word| word.stem).collect();
        (!stems.is_empty()).then_some(Pattern::Phrase(stems))
    }

    /// The words of an item; none where none of them says something of a subject.
    fn words(phrase: &str, stance: Stance) -> Option<Pattern> {
        let words = split(phrase);
        let lack = words.iter().position(|word| stance != Stance::Asks && LACKS.contains(&&*word.text));
        let lack = lack.unwrap_or(words.len());
        let stems = |words: &[Word]| {
            let content = words.iter().filter(|word| !FUNCTION_WORDS.contains(&*word.text));
            content.map(|word| word.stem.clone()).collect::<HashSet<String>>()
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
    fn find(&self, passage: &Passage, sentence: &[Word]) -> Option<Range<usize>> {
        let Pattern::Words { present, needed, lacking } = self else {
            let Pattern::Phrase(stems) = self else { return None };
            let same = |window: &[Word]| window.iter().zip(stems).all(|(word, stem)| word.stem == *stem);
            let start = sentence.windows(stems.len()).position(same)?;
            return Some(start..start + stems.len());
        };
        let mut counted: HashSet<&str> = HashSet::new();
        let first_uses = |(at, word): (usize, &'_ Word)| present.contains(&word.stem).then_some(at);
        let mut found: Vec<usize> = sentence.iter().enumerate().filter_map(first_uses).collect();
        found.retain(|at| counted.insert(&sentence[*at].stem));
        if found.len() < *needed {
            return None;
        }
        if !lacking.is_empty() {
            let lacks = |at: &usize| {
                let near = &sentence[at.saturating_sub(REACH)..*at];
                lacking.contains(&sentence[*at].stem) && near.iter().any(|word| LACKS.contains(&&*word.text))
            };
            match (0..sentence.len()).find(lacks) {
                Some(at) => found.push(at),
                None if found.is_empty() || lacking.iter().any(|stem| passage.stems.contains(stem)) => {
                    return None;
                }
                None => {}
            }
        }
        let (first, last) = (found.iter().min()?, found.iter().max()?);
        Some(*first..last + 1)
    }
}

#[derive(Debug)]
pub(super) struct Subject {
    /// In order.
    passages: Vec<Passage>,
    /// Its name in messages, such as "the proposal".
    pub(super) name: &'static str,
}

#[derive(Debug)]
struct Passage {
    text: String,
    /// `Turn 3 (user)`; none in a text, whose places are its lines.
    turn: Option<String>,
    words: Vec<Word>,
    /// As ranges of words.
    sentences: Vec<Range<usize>>,
    /// Those of all words.
    stems: HashSet<String>,
    line_ends: Vec<usize>,
}

#[derive(Debug)]
struct Word {
    start: usize,
    end: usize,
    /// In lower case.
    text: String,
    stem: String,
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

    /// The place of some bytes of a passage.
    fn place(&self, passage: &Passage, span: Range<usize>) -> Place {
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
    let Some(turns) = turns else { return vec![Passage::read(part.text.to_string(), None)] };
    let turns = turns.into_iter().enumerate();
    turns
        .map(|(at, turn)| Passage::read(turn.content, Some(format!("Turn {} ({})", at + 1, turn.role))))
        .collect()
}

/// What ends a sentence: punctuation, a cell, or a line after which a list item, a heading or an empty line follows.
static SENTENCE_END: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"[.!?…]+(?:[^\p{Alphabetic}\p{N}]|\z)|\||\n[ \t\r]*(?:[\n*#>|+0-9-]|\z)"));

impl Passage {
    fn read(text: String, turn: Option<String>) -> Passage {
        let words = split(&text);
        let ends = SENTENCE_END
            .find_iter(&text)
            .map(|end| words.partition_point(|word| word.start < end.start() + 1));
        let mut sentences: Vec<Range<usize>> = Vec::new();
        let mut from = 0;
        for end in ends.chain([words.len()]) {
            while from < end {
                let to = end.min(from + MAX_SENTENCE);
                sentences.push(from..to);
                from = to;
            }
        }
        let stems = words.iter().map(|word| word.stem.clone()).collect();
        let line_ends = text.match_indices('\n').map(|(at, _)| at).collect();
        Passage { text, turn, words, sentences, stems, line_ends }
    }

    /// The sentence around a place, as much of it as is on the place's line and short enough.
    fn quote(&self, span: Range<usize>) -> String {
        let at = self.words.partition_point(|word| word.end <= span.start);
        let sentence = self.sentences.partition_point(|sentence| sentence.end <= at);
        let whole = self.sentences.get(sentence).map(|words| &self.words[words.clone()]);
        let whole = whole.map_or(span.clone(), |words| words[0].start..words[words.len() - 1].end);
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

fn split(text: &str) -> Vec<Word> {
    let read = |(start, word): (usize, &str)| {
        let folded = word.to_lowercase().replace('’', "'");
        Word { start, end: start + word.len(), stem: stem(&folded).to_owned(), text: folded }
    };
    words(text).map(read).collect()
}
