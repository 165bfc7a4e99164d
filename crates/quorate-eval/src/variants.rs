//! Variants of a text whose relation to it is known, so that a council can be measured without labels.
//!
//! A *neutral* variant says the same as the text: a judge that decides differently about it is unstable. A *defect* is a
//! sentence with a known fault in a paragraph of its own, and its *twin* is the same text with a harmless sentence at that
//! place: a judge that treats both alike has not seen the fault. The sentences are English and are listed in `defects.toml`.
//!
//! Which sentence is used and where it goes follows from the text's hash, so that a variant is the same on every machine.

use std::ops::Range;
use std::sync::LazyLock;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A kind of defect.
#[derive(Debug, Deserialize)]
pub struct Defect {
    /// Its name in reports.
    pub kind: String,
    /// A description of the fault, in a few words.
    pub says: String,
    pairs: Vec<Pair>,
}

/// A sentence with a defect and its twin.
#[derive(Debug, Deserialize)]
struct Pair {
    /// An earlier paragraph that both texts get.
    before: Option<String>,
    defect: String,
    twin: String,
}

/// The kinds of defects, in the order of reports.
pub fn defects() -> &'static [Defect] {
    #[derive(Deserialize)]
    struct Defects {
        defect: Vec<Defect>,
    }
    static DEFECTS: LazyLock<Vec<Defect>> = LazyLock::new(|| {
        let defects: Defects = toml::from_str(include_str!("defects.toml")).expect("a test reads the file");
        defects.defect
    });
    &DEFECTS
}

/// What a variant is to its text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// The text itself.
    Original,
    /// The same text once more.
    Again,
    /// Items or sections whose order does not matter, in another order.
    Reordered,
    /// A closing line that says nothing.
    Padded,
    /// Another name for the author or for the product.
    Renamed,
    /// A defect of this kind.
    Defect(String),
    /// The twin of this kind of defect.
    Twin(String),
}

impl Relation {
    /// Whether the verdict on the variant should be that on the text.
    pub fn is_neutral(&self) -> bool {
        matches!(self, Relation::Again | Relation::Reordered | Relation::Padded | Relation::Renamed)
    }

    /// The relation in a file's name: `original`, `defect-wrong_sum`.
    pub fn name(&self) -> String {
        match self {
            Relation::Original => "original".to_owned(),
            Relation::Again => "again".to_owned(),
            Relation::Reordered => "reordered".to_owned(),
            Relation::Padded => "padded".to_owned(),
            Relation::Renamed => "renamed".to_owned(),
            Relation::Defect(kind) => format!("defect-{kind}"),
            Relation::Twin(kind) => format!("twin-{kind}"),
        }
    }
}

/// A text that was made from another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    pub relation: Relation,
    pub text: String,
    /// The lines of the inserted paragraphs, from 1. Empty if the variant is neutral.
    pub lines: Vec<usize>,
}

/// The neutral variants of a text. A text without a list or sections has no reordered one, and a text without a name that
/// occurs twice no renamed one.
pub fn neutral(text: &str) -> Vec<Variant> {
    let made = [
        (Relation::Again, Some(text.to_owned())),
        (Relation::Reordered, reordered(text)),
        (Relation::Padded, Some(padded(text))),
        (Relation::Renamed, renamed(text)),
    ];
    let variant = |(relation, text): (Relation, Option<String>)| {
        Some(Variant { relation, text: text?, lines: Vec::new() })
    };
    made.into_iter().filter_map(variant).collect()
}

/// The text with a defect of a kind, and its twin; `None` if the text has no paragraph.
pub fn seeded(text: &str, defect: &Defect) -> Option<[Variant; 2]> {
    let paragraphs = paragraphs(text);
    let choice = choice(text, &defect.kind);
    let at = paragraphs.get(choice % paragraphs.len().max(1))?.end;
    let pair = &defect.pairs[choice / 7 % defect.pairs.len()];
    let variant = |relation, sentence: &str| {
        let first = at.min(paragraphs[0].end);
        let (mut made, mut lines) = (String::new(), Vec::new());
        made.push_str(&text[..first]);
        if let Some(before) = &pair.before {
            lines.push(insert(&mut made, before));
        }
        made.push_str(&text[first..at]);
        lines.push(insert(&mut made, sentence));
        made.push_str(&text[at..]);
        Variant { relation, text: made, lines }
    };
    Some([
        variant(Relation::Defect(defect.kind.clone()), &pair.defect),
        variant(Relation::Twin(defect.kind.clone()), &pair.twin),
    ])
}

/// Appends a paragraph to a text that ends with one; returns the paragraph's line.
fn insert(text: &mut String, sentence: &str) -> usize {
    text.push_str("\n\n");
    let line = text.matches('\n').count() + 1;
    text.push_str(sentence);
    line
}

/// A number that follows from a text and a word.
fn choice(text: &str, word: &str) -> usize {
    let hash = Sha256::new().chain_update(text).chain_update([0]).chain_update(word).finalize();
    usize::from(u16::from_be_bytes([hash[0], hash[1]]))
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS | Options::ENABLE_FOOTNOTES
}

/// The top-level blocks of a text with the tags that open them.
fn blocks(text: &str) -> Vec<(Tag<'_>, Range<usize>)> {
    let mut depth = 0;
    let mut blocks = Vec::new();
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    blocks.push((tag, range));
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    blocks
}

/// Where the text's paragraphs are, without their line ends.
fn paragraphs(text: &str) -> Vec<Range<usize>> {
    let is_paragraph = |(tag, _): &(Tag<'_>, Range<usize>)| matches!(tag, Tag::Paragraph);
    let trimmed =
        |(_, range): (Tag<'_>, Range<usize>)| range.start..range.start + text[range].trim_end().len();
    blocks(text).into_iter().filter(is_paragraph).map(trimmed).collect()
}

fn padded(text: &str) -> String {
    format!("{}\n\nThank you for reading.\n", text.trim_end())
}

/// Words by which one part of a text refers to another, so that their order matters.
const ORDER_WORDS: [&str; 28] = [
    "above",
    "below",
    "earlier",
    "later",
    "next",
    "previous",
    "following",
    "first",
    "second",
    "third",
    "then",
    "finally",
    "last",
    "former",
    "latter",
    "step",
    "also",
    "it",
    "this",
    "these",
    "they",
    "therefore",
    "however",
    "instead",
    "before",
    "after",
    "again",
    "too",
];

/// Two neighbours exchanged: items of the first bullet list, else sections of the second level.
fn reordered(text: &str) -> Option<String> {
    let is_free = |range: &Range<usize>| {
        let mut words = text[range.clone()].split(|character: char| !character.is_alphanumeric());
        let is_numbered =
            text[range.clone()].lines().next().is_some_and(|line| line.contains(char::is_numeric));
        !is_numbered && !words.any(|word| ORDER_WORDS.contains(&&*word.to_lowercase()))
    };
    let mut candidates = vec![items(text), sections(text)].into_iter();
    candidates.find_map(|parts| {
        let [one, other] = parts.windows(2).find(|pair| pair.iter().all(is_free))? else { return None };
        let (first, second) = (text[one.clone()].trim_end(), text[other.clone()].trim_end());
        let between = &text[one.start + first.len()..other.start];
        let after = &text[other.start + second.len()..];
        (first != second).then(|| [&text[..one.start], second, between, first, after].concat())
    })
}

/// The items of the first bullet list at the top level.
fn items(text: &str) -> Vec<Range<usize>> {
    let is_bullets = |(tag, _): &(Tag<'_>, Range<usize>)| matches!(tag, Tag::List(None));
    let Some((_, list)) = blocks(text).into_iter().find(is_bullets) else { return Vec::new() };
    let mut depth = 0;
    let mut items = Vec::new();
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::Item) => {
                depth += 1;
                if depth == 1 && list.contains(&range.start) {
                    items.push(range);
                }
            }
            Event::End(pulldown_cmark::TagEnd::Item) => depth -= 1,
            _ => {}
        }
    }
    items
}

/// The sections of the second level, each with its heading.
fn sections(text: &str) -> Vec<Range<usize>> {
    let starts: Vec<(HeadingLevel, usize)> = blocks(text)
        .into_iter()
        .filter_map(|(tag, range)| match tag {
            Tag::Heading { level, .. } if level <= HeadingLevel::H2 => Some((level, range.start)),
            _ => None,
        })
        .collect();
    let ends = starts.iter().skip(1).map(|(_, start)| *start).chain([text.len()]);
    let second = starts.iter().zip(ends).filter(|((level, _), _)| *level == HeadingLevel::H2);
    second.map(|((_, start), end)| *start..end).collect()
}

/// The names that take the place of others.
const NEW_NAMES: [&str; 4] = ["Tavelin", "Orbrecht", "Misavo", "Kelluna"];

/// Another name for the name that the text mentions most often: mostly its product, company or author.
fn renamed(text: &str) -> Option<String> {
    let name = frequent_name(text)?;
    let free: Vec<&str> = NEW_NAMES.into_iter().filter(|new| !text.contains(new)).collect();
    let new = free.get(choice(text, "name") % free.len().max(1))?;
    let mut made = String::with_capacity(text.len());
    for (at, piece) in words(text) {
        made.push_str(if piece == name && !is_in_address(text, at) { new } else { piece });
    }
    (made != text).then_some(made)
}

/// The text in pieces, each a word or what stands between two words, with its offset.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |character: char| character.is_alphanumeric();
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &text[at..];
        let first = is_word(rest.chars().next()?);
        let end = rest.find(|character| is_word(character) != first).unwrap_or(rest.len());
        at += end;
        Some((at - end, &rest[..end]))
    })
}

/// Whether a word is part of an address or a file's name, which must keep working.
fn is_in_address(text: &str, at: usize) -> bool {
    let start =
        text[..at].rfind(|character: char| character.is_whitespace() || "()<>\"`".contains(character));
    let word =
        text[start.map_or(0, |start| start + 1)..].split(char::is_whitespace).next().unwrap_or_default();
    word.contains("://")
        || word.contains('@')
        || word.contains('/')
        || word.trim_end_matches('.').contains('.')
}

/// The capitalised word that occurs most often inside sentences, twice at least, and is written in lower case nowhere.
fn frequent_name(text: &str) -> Option<&str> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for paragraph in paragraphs(text) {
        let mut before = ".";
        for (at, piece) in words(&text[paragraph.clone()]) {
            if piece.starts_with(char::is_alphanumeric) {
                let is_capitalised = piece.len() > 3
                    && piece.starts_with(char::is_uppercase)
                    && piece.chars().skip(1).all(char::is_lowercase);
                let is_inside = before == " " || before == "\n";
                if is_capitalised && is_inside && !is_in_address(text, paragraph.start + at) {
                    match counts.iter_mut().find(|(name, _)| *name == piece) {
                        Some((_, count)) => *count += 1,
                        None => counts.push((piece, 1)),
                    }
                }
            }
            before = piece;
        }
    }
    let is_lower_elsewhere = |name: &str| {
        let lower = name.to_lowercase();
        paragraphs(text).into_iter().any(|paragraph| words(&text[paragraph]).any(|(_, word)| word == lower))
    };
    let names = counts
        .into_iter()
        .filter(|(name, count)| *count > 1 && !CALENDAR.contains(name) && !is_lower_elsewhere(name));
    // The first of the most frequent ones.
    names.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(name, _)| name)
}

/// Capitalised words that are not names.
const CALENDAR: [&str; 20] = [
    "January",
    "February",
    "March",
    "April",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "English",
    "Internet",
];
