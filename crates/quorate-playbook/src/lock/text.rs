//! A text as the matcher reads it: blocks, folded to Latin letters, cut into words with their separators.

use quorate_diagnostics::word_list::WordList;

use super::grammar::{Grammar, WORDS};
use super::words::{CONTRACTIONS, Separator, raw_words, separator_in};

/// A sentence does not end after these words.
static CONTINUING: WordList = WordList::new(WORDS, "continuing");

/// A word of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    /// Its number; 0 for what no list has.
    pub(super) id: u32,
    /// The separator before it.
    pub(super) separator: Separator,
    /// Its bytes in the block.
    pub(super) span: (usize, usize),
}

/// A paragraph, a heading or a list item; an item also has what its list is under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// The heading or the line with a colon that a list is under.
    pub(super) intro: Option<String>,
    pub(crate) body: String,
    /// Whether it is a heading.
    pub(super) is_heading: bool,
}

/// The longest line that is taken for what a list is under, in bytes.
const MAX_INTRO_BYTES: usize = 64;

/// A text in blocks. An empty line ends one only where a sentence may end.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut all: Vec<Block> = Vec::new();
    let mut intro: Option<String> = None;
    let mut open = false;
    for line in text.lines() {
        let mut shown = line.trim();
        while let Some(quoted) = shown.strip_prefix('>') {
            shown = quoted.trim_start();
        }
        if shown.is_empty() {
            open = open && all.last().is_some_and(|block| is_unfinished(&block.body));
            continue;
        }
        let item = list_item(shown);
        let heading = shown.trim_start_matches('#');
        if let Some(said) = item {
            let under = match all.last() {
                Some(last) if last.intro.is_none() && !is_list_item(last) => list_intro(&last.body),
                _ => None,
            };
            intro = under.or(intro);
            let intro = Some(intro.clone().unwrap_or_default());
            all.push(Block { intro, body: said.to_owned(), is_heading: false });
            open = true;
        } else if heading.len() < shown.len() {
            intro = None;
            all.push(Block {
                intro: None,
                body: format!("{}:", heading.trim().trim_end_matches(['#', ':'])),
                is_heading: true,
            });
            open = false;
        } else if open {
            if let Some(last) = all.last_mut() {
                last.body.push('\n');
                last.body.push_str(shown);
            }
        } else {
            intro = None;
            all.push(Block { intro: None, body: shown.to_owned(), is_heading: false });
            open = true;
        }
    }
    all
}

fn is_list_item(block: &Block) -> bool {
    block.intro.is_some()
}

/// Whether a folded text is one word, and no sentence ends with it.
pub(super) fn is_single_word(folded: &str) -> bool {
    let word = folded.trim();
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// What a list item says, if a line is one.
fn list_item(line: &str) -> Option<&str> {
    if let Some(said) = line.strip_prefix(['-', '*', '+', '•', '|']) {
        return said.starts_with([' ', '\t']).then(|| said.trim());
    }
    let trimmed = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if trimmed.len() == line.len() || line.len() - trimmed.len() > 4 {
        return None;
    }
    trimmed.strip_prefix(['.', ')']).filter(|trimmed| trimmed.starts_with(' ')).map(str::trim)
}

/// The last sentence of a block, if a list may be under it.
fn list_intro(body: &str) -> Option<String> {
    let body = body.trim_end().trim_end_matches(['*', '_', ' ']);
    let label = body.strip_suffix(':')?;
    let start = label.rfind(['.', ';', '!', '?', '\n']).map_or(0, |at| at + 1);
    let label = label[start..].trim();
    (label.len() <= MAX_INTRO_BYTES && !label.is_empty()).then(|| label.to_owned())
}

/// Whether a block stops in the middle of a sentence, so that an empty line does not end it.
fn is_unfinished(body: &str) -> bool {
    let last = body.trim_end_matches(|c: char| c.is_whitespace() || "*_`".contains(c));
    !last.ends_with(['.', '!', '?', ':', ';', ')', '"', '>'])
        && last
            .rsplit(|c: char| !c.is_alphanumeric())
            .next()
            .is_some_and(|word| CONTINUING.contains(&word.to_ascii_lowercase()))
}

/// The words of a folded text.
pub(super) fn tokens(text: &str, grammar: &Grammar) -> Vec<Token> {
    let mut all = Vec::with_capacity(text.len() / 5);
    let (mut spelled, mut end) = (Vec::new(), 0);
    for (start, stop, word) in raw_words(text) {
        let separator = separator_in(
            &text[end..start],
            text.len() > stop || start > 0,
            all.is_empty() && spelled.is_empty(),
        );
        end = stop;
        let is_letter = word.chars().nth(1).is_none();
        if is_letter && (separator == Separator::None || spelled.is_empty()) {
            spelled.push((start, stop, word, separator));
            continue;
        }
        flush(&mut spelled, &mut all, grammar);
        push(&mut all, &word, separator, (start, stop), grammar);
    }
    flush(&mut spelled, &mut all, grammar);
    all
}

/// Letters set apart are read as the word that they spell, or as the words, from four on.
fn flush(spelled: &mut Vec<(usize, usize, String, Separator)>, all: &mut Vec<Token>, grammar: &Grammar) {
    if spelled.len() >= 4 {
        let span = (spelled[0].0, spelled[spelled.len() - 1].1);
        let word: String = spelled.iter().map(|letter| letter.2.as_str()).collect();
        if grammar.id_of(&word) == 0 && push_compound(all, &word, spelled[0].3, span, grammar) {
            spelled.clear();
            return;
        }
        push(all, &word, spelled[0].3, span, grammar);
    } else {
        for (start, stop, word, gap) in spelled.iter() {
            push(all, word, *gap, (*start, *stop), grammar);
        }
    }
    spelled.clear();
}

/// The minimum and maximum length of a word that is searched for joined words.
const COMPOUND_LENGTHS: std::ops::RangeInclusive<usize> = 8..=48;

fn push(all: &mut Vec<Token>, word: &str, gap: Separator, span: (usize, usize), grammar: &Grammar) {
    if let Some((_, long)) = CONTRACTIONS.iter().find(|(short, _)| *short == word) {
        all.push(Token { id: grammar.id_of(long[0]), separator: gap, span });
        all.push(Token { id: grammar.id_of(long[1]), separator: Separator::None, span });
        return;
    }
    let mut id = grammar.id_of(word);
    if id == 0 && word.bytes().any(|byte| byte.is_ascii_digit() || matches!(byte, b'@' | b'$')) {
        id = grammar.id_of(&word.chars().map(unleet).collect::<String>());
    }
    if id == 0 {
        id = LETTER_PAIRS
            .iter()
            .filter(|(pair, _)| word.contains(pair))
            .map(|(pair, letter)| grammar.id_of(&word.replace(pair, letter)))
            .find(|id| *id != 0)
            .unwrap_or(0);
    }
    if id == 0 && COMPOUND_LENGTHS.contains(&word.len()) && push_compound(all, word, gap, span, grammar) {
        return;
    }
    all.push(Token { id, separator: gap, span });
}

/// Pairs of letters that look like one.
const LETTER_PAIRS: [(&str, &str); 2] = [("rn", "m"), ("vv", "w")];

/// Reads a word as the known words that it is put together of, where it is.
fn push_compound(
    all: &mut Vec<Token>,
    word: &str,
    gap: Separator,
    span: (usize, usize),
    grammar: &Grammar,
) -> bool {
    if !word.is_ascii() || word.len() > *COMPOUND_LENGTHS.end() {
        return false;
    }
    let parts = split_compound(word, grammar);
    for (place, id) in parts.iter().enumerate() {
        all.push(Token { id: *id, separator: if place == 0 { gap } else { Separator::None }, span });
    }
    !parts.is_empty()
}

fn unleet(c: char) -> char {
    match c {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        _ => c,
    }
}

/// Known words that a word is put together of; nothing where it is not.
fn split_compound(word: &str, grammar: &Grammar) -> Vec<u32> {
    let mut from: Vec<Option<(usize, u32)>> = vec![None; word.len() + 1];
    for start in 0..word.len() {
        if start > 0 && from[start].is_none() {
            continue;
        }
        for end in start + 2..=word.len().min(start + 16) {
            if from[end].is_none() {
                let id = grammar.id_of(&word[start..end]);
                if id != 0 {
                    from[end] = Some((start, id));
                }
            }
        }
    }
    let (mut at, mut parts) = (word.len(), Vec::new());
    while at > 0 {
        let Some((start, id)) = from[at] else { return Vec::new() };
        parts.push(id);
        at = start;
    }
    parts.reverse();
    parts
}
