//! A text as the matcher reads it: blocks, folded to Latin letters, and their words with what separates them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use quorate_diagnostics::text::WordList;
use quorate_manifest::assembly::{LockedTrait, MatchMode};
use quorate_protocol::locks::{self as protocol, fold};

use super::WORDS;

/// A sentence does not end after these words.
static CONTINUING: WordList = WordList::new(WORDS, "continuing");

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

/// The content of a list item; `None` if the line is not one.
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

/// The separator between a word and the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Separator {
    None,
    /// A comma, a dash, a bracket.
    Comma,
    /// A colon or an equals sign.
    Colon,
    /// The end of a sentence, or a semicolon.
    Sentence,
}

/// Text folded, with each letter that looks like a Latin one replaced by it.
pub(crate) fn folded(text: &str) -> String {
    let seen = replace_lookalikes(text);
    let folded = fold(&seen);
    match replace_lookalikes(&folded) {
        Cow::Borrowed(_) => folded,
        Cow::Owned(plain) => plain,
    }
}

/// The letters `a` to `z`, to be looked for in what resembles them.
static LETTERS: LazyLock<Option<protocol::Locks>> = LazyLock::new(|| {
    let letters: Vec<LockedTrait> = ('a'..='z').map(LockedTrait::plain).collect();
    protocol::Locks::compile(&letters, MatchMode::Substring).ok()
});

fn replace_lookalikes(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    // A character that folds to ASCII is that letter, even if it looks like another: a circled l is not an i.
    let is_foreign =
        |c: &char| !c.is_ascii() && c.is_alphanumeric() && !fold(c.encode_utf8(&mut [0; 4])).is_ascii();
    let foreign: BTreeSet<char> = text.chars().filter(is_foreign).collect();
    let mut looks: BTreeMap<char, char> = BTreeMap::new();
    if let (Some(letters), false) = (LETTERS.as_ref(), foreign.is_empty()) {
        let mut asked = String::new();
        let mut places = BTreeMap::new();
        for c in foreign {
            places.insert(asked.len(), c);
            asked.push(c);
            asked.push_str(" . ");
        }
        for hit in letters.find_all(&asked) {
            if let (Some(c), Some(letter)) = (places.get(&hit.span.start), ('a'..='z').nth(hit.trait_index)) {
                looks.entry(*c).or_insert(letter);
            }
        }
    }
    if looks.is_empty() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| looks.get(&c).copied().unwrap_or(c)).collect())
}

/// Contractions, and the words that they stand for.
pub(super) const CONTRACTIONS: [(&str, [&str; 2]); 19] = [
    ("dont", ["do", "not"]),
    ("youre", ["you", "are"]),
    ("doesnt", ["does", "not"]),
    ("didnt", ["did", "not"]),
    ("isnt", ["is", "not"]),
    ("arent", ["are", "not"]),
    ("wasnt", ["was", "not"]),
    ("werent", ["were", "not"]),
    ("wont", ["will", "not"]),
    ("wouldnt", ["would", "not"]),
    ("shouldnt", ["should", "not"]),
    ("couldnt", ["could", "not"]),
    ("cant", ["can", "not"]),
    ("cannot", ["can", "not"]),
    ("mustnt", ["must", "not"]),
    ("neednt", ["need", "not"]),
    ("hasnt", ["has", "not"]),
    ("havent", ["have", "not"]),
    ("hadnt", ["had", "not"]),
];

/// The words of an entry of a list, as they would be read in a text.
pub(super) fn words(entry: &str) -> Vec<String> {
    if is_plain(entry) {
        let words = entry.trim_end_matches('.').split_whitespace();
        return words.flat_map(|word| expand_contraction(word.to_owned())).collect();
    }
    let text = folded(entry);
    raw_words(&text).into_iter().flat_map(|(_, _, word)| expand_contraction(word)).collect()
}

/// Whether an entry is lower-case already, as most built-in ones are: folding thousands of them is slow.
pub(super) fn is_plain(entry: &str) -> bool {
    let words = entry.strip_suffix('.').unwrap_or(entry);
    !words.is_empty() && words.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b' ')
}

pub(crate) fn expand_contraction(word: String) -> Vec<String> {
    match CONTRACTIONS.iter().find(|(short, _)| *short == word) {
        Some((_, long)) => long.iter().map(|word| (*word).to_owned()).collect(),
        None => vec![word],
    }
}

/// Runs of letters and figures, without apostrophes: start, end, word.
pub(crate) fn raw_words(text: &str) -> Vec<(usize, usize, String)> {
    let mut all = Vec::new();
    let mut word = String::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let joins = |next: Option<&(usize, char)>| next.is_some_and(|(_, next)| next.is_alphanumeric());
        if c.is_alphanumeric() || (matches!(c, '@' | '$') && joins(chars.peek())) {
            if word.is_empty() {
                start = at;
            }
            word.push(c);
        } else if matches!(c, '\'' | '’' | '‘' | 'ʼ' | '`') && !word.is_empty() && joins(chars.peek()) {
        } else if !word.is_empty() {
            all.push((start, at, std::mem::take(&mut word)));
        }
    }
    if !word.is_empty() {
        all.push((start, text.len(), word));
    }
    all
}

/// What a stretch without words divides.
pub(crate) fn separator_in(between: &str, is_inside: bool, is_first: bool) -> Separator {
    if is_first || !is_inside {
        return Separator::None;
    }
    let mut found = Separator::None;
    let mut chars = between.chars().peekable();
    while let Some(c) = chars.next() {
        let ends = chars.peek().is_none_or(|next| !next.is_alphanumeric()) && chars.peek().is_some();
        match c {
            '.' | '!' | '?' | ';' | '…' | '。' | '！' | '？' if ends => return Separator::Sentence,
            ':' if ends => found = Separator::Colon,
            '=' => found = Separator::Colon,
            ',' | '(' | ')' | '–' | '—' | '/' | '|' if found == Separator::None => {
                found = Separator::Comma
            }
            '-' if ends && between.len() > 2 && found == Separator::None => found = Separator::Comma,
            _ => {}
        }
    }
    found
}
