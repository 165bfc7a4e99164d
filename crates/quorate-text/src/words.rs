//! A text in blocks and words, as English is written: what the lexicon and other comparisons of texts read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use quorate_diagnostics::text::section;
use unicode_security::skeleton;

use crate::locks::fold;

/// The longest line that introduces a list, in bytes.
const MAX_INTRO_BYTES: usize = 64;

/// English words by what they do in a sentence.
pub(crate) const WORDS: &str = include_str!("lexicon/words.txt");

/// Contractions, without their apostrophe.
static CONTRACTIONS: LazyLock<HashMap<&str, &str>> =
    LazyLock::new(|| section(WORDS, "contractions").filter_map(|entry| entry.split_once(' ')).collect());

/// Paragraphs, headings and list items; an item with the line that introduces its list.
pub fn blocks(text: &str) -> Vec<(Option<String>, String)> {
    let mut all: Vec<(Option<String>, String)> = Vec::new();
    let (mut intro, mut is_open, mut in_list) = (None, false, false);
    for line in text.lines() {
        let shown = line.trim_start_matches([' ', '\t', '>']).trim_end();
        if shown.is_empty() {
            is_open = false;
        } else if let Some(item) = list_item(shown) {
            if !in_list {
                intro = all.last().and_then(|(_, body)| introduction(body));
            }
            all.push((intro.clone(), item.to_owned()));
            (is_open, in_list) = (true, true);
        } else if shown.starts_with('#') {
            all.push((None, format!("{}:", shown.trim_matches(['#', ' ', ':']))));
            (is_open, in_list) = (false, false);
        } else if let Some((_, body)) = all.last_mut().filter(|_| is_open) {
            body.push('\n');
            body.push_str(shown);
        } else {
            all.push((None, shown.to_owned()));
            (is_open, in_list) = (true, false);
        }
    }
    all
}

/// The content of a list item.
fn list_item(line: &str) -> Option<&str> {
    let rest = match line.trim_start_matches(|c: char| c.is_ascii_digit()) {
        rest if rest.len() < line.len() => rest.strip_prefix(['.', ')']),
        rest => rest.strip_prefix(['-', '*', '+', '•', '|']),
    };
    rest.filter(|rest| rest.starts_with([' ', '\t'])).map(str::trim)
}

/// The last sentence of a block, if it introduces what follows.
fn introduction(body: &str) -> Option<String> {
    let body = body.trim_end_matches(['*', '_', ' ']);
    let label = match body.strip_suffix(':') {
        Some(label) => label,
        None => body
            .strip_suffix('.')
            .filter(|body| body.split(' ').any(|word| matches!(word, "following" | "these")))?,
    };
    let start = label.rfind(['.', ';', '!', '?', '\n']).map_or(0, |at| at + 1);
    let label = label[start..].trim();
    (label.len() <= MAX_INTRO_BYTES && !label.is_empty()).then(|| label.to_owned())
}

/// A word, and the words of which it may be a form.
pub(crate) fn lemmas(word: &str, irregular: &HashMap<&str, &str>) -> Vec<String> {
    let mut all = vec![word.to_owned()];
    all.extend(irregular.get(word).map(|base| (*base).to_owned()));
    if word.len() < 4 || !word.is_ascii() {
        return all;
    }
    if let Some(stem) = word.strip_suffix("ies").or(word.strip_suffix("ied")) {
        all.push(format!("{stem}y"));
    }
    if let Some(stem) = word.strip_suffix('s').filter(|stem| !stem.ends_with('s')) {
        all.push(stem.to_owned());
        all.extend(stem.strip_suffix('e').map(str::to_owned));
    }
    if let Some(stem) = word.strip_suffix("ing").or(word.strip_suffix("ed")) {
        all.push(stem.to_owned());
        all.push(format!("{stem}e"));
        let mut last = stem.bytes().rev();
        if last.next() == last.next() && !stem.is_empty() {
            all.push(stem[..stem.len() - 1].to_owned());
        }
    }
    all
}

/// What stands between a word and the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    None,
    /// A comma, a dash, a bracket.
    Comma,
    /// A colon or an equals sign.
    Colon,
    /// The end of a sentence, or a semicolon.
    Sentence,
}

fn gap(between: &str) -> Gap {
    let mut found = Gap::None;
    let mut chars = between.chars().peekable();
    while let Some(c) = chars.next() {
        // `.5` and `a.b` end no sentence.
        let ends = chars.peek().is_some();
        match c {
            '.' | '!' | '?' | ';' | '…' | '。' | '！' | '？' if ends => return Gap::Sentence,
            ':' if ends => found = Gap::Colon,
            '=' => found = Gap::Colon,
            ',' | '(' | ')' | '–' | '—' | '/' | '|' if found == Gap::None => found = Gap::Comma,
            '-' if ends && between.len() > 2 && found == Gap::None => found = Gap::Comma,
            _ => {}
        }
    }
    found
}

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// It, without apostrophes.
    pub text: String,
    /// What stands before it.
    pub gap: Gap,
    /// Its bytes in the text. Both words of a contraction have those of the contraction.
    pub start: usize,
    pub end: usize,
}

/// The words of a text in lower case: runs of letters and digits; contractions are two words.
pub fn words(text: &str) -> Vec<Word> {
    let is_quote = |c: char| matches!(c, '\'' | '’' | '‘' | 'ʼ' | '`');
    let (mut all, mut end) = (Vec::new(), 0);
    while let Some(skipped) = text[end..].find(char::is_alphanumeric) {
        let start = end + skipped;
        let gap = if all.is_empty() { Gap::None } else { gap(&text[end..start]) };
        let ends = |(at, c): (usize, char)| {
            let next = text[start + at + c.len_utf8()..].chars().next();
            !(c.is_alphanumeric() || is_quote(c) && next.is_some_and(char::is_alphanumeric))
        };
        let length = text[start..].char_indices().find(|one| ends(*one)).map(|(at, _)| at);
        end = length.map_or(text.len(), |length| start + length);
        let word = text[start..end].replace(is_quote, "");
        for (place, word) in expanded(&word).split(' ').enumerate() {
            let gap = if place == 0 { gap } else { Gap::None };
            all.push(Word { text: word.to_owned(), gap, start, end });
        }
    }
    all
}

/// A contraction without its apostrophe as two words; any other word unchanged.
pub(crate) fn expanded(word: &str) -> &str {
    CONTRACTIONS.get(word).copied().unwrap_or(word)
}

/// A text as the lexicon reads it: folded, with Latin letters in place of those that look like them.
pub fn folded(text: &str) -> String {
    latin(&fold(&latin(text))).into_owned()
}

/// A text with each letter of another script that looks like a Latin one replaced by it.
fn latin(text: &str) -> Cow<'_, str> {
    let replaced = |c: char| {
        let is_foreign = !c.is_ascii() && c.is_alphanumeric();
        is_foreign.then(|| skeleton(&c.to_string()).find(char::is_ascii_alphabetic)).flatten().unwrap_or(c)
    };
    if text.is_ascii() { Cow::Borrowed(text) } else { Cow::Owned(text.chars().map(replaced).collect()) }
}

/// The part of a normalized word that its inflections share, so that "agreeing" matches "agrees". A truncation: words with different stems never match, and
/// some different words have the same stem.
pub fn stem(word: &str) -> &str {
    let word = word.strip_suffix("'s").unwrap_or(word).trim_end_matches('\'');
    if !word.is_ascii() || word.len() <= 3 {
        return word;
    }
    let word = inflection(plural(word));
    let word = strip_ending(word, "ment", 5).unwrap_or(word);
    let word = strip_ending(word, "ly", 4).unwrap_or(word);
    let word = strip_ending(word, "ion", 4).filter(|rest| rest.ends_with(['t', 's'])).unwrap_or(word);
    ["e", "y", "i"].iter().find_map(|end| strip_ending(word, end, 3)).unwrap_or(word)
}

fn plural(word: &str) -> &str {
    if let Some(rest) = strip_ending(word, "ies", 3) {
        return rest;
    }
    if word.ends_with("sis") {
        return &word[..word.len() - 2];
    }
    match strip_ending(word, "s", 3) {
        Some(rest) if !rest.ends_with(['s', 'u']) => rest,
        _ => word,
    }
}

fn inflection(word: &str) -> &str {
    if word.ends_with("eed") {
        return strip_ending(word, "d", 5).unwrap_or(word);
    }
    let found = ["ing", "ed"].iter().find_map(|end| strip_ending(word, end, 3));
    found.filter(|rest| rest.contains(VOWELS)).map_or(word, undoubled)
}

const VOWELS: [char; 6] = ['a', 'e', 'i', 'o', 'u', 'y'];

/// Shortens `stopp` to `stop`, but keeps `sell`, `pass` and `buzz`.
fn undoubled(word: &str) -> &str {
    let bytes = word.as_bytes();
    match bytes {
        [.., a, b] if a == b && bytes.len() > 3 && !b"lszaeiou".contains(b) => &word[..word.len() - 1],
        _ => word,
    }
}

fn strip_ending<'w>(word: &'w str, end: &str, shortest: usize) -> Option<&'w str> {
    word.strip_suffix(end).filter(|rest| rest.len() >= shortest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflections_share_a_stem() {
        for family in [
            &["agree", "agrees", "agreed", "agreeing", "agreement"][..],
            &["encourage", "encouraging", "encouragement"],
            &["speculate", "speculation", "speculating"],
            &["policy", "policies"],
            &["tax", "taxes"],
            &["loss", "losses"],
            &["ship", "ships", "shipping", "shipped"],
            &["guarantee", "guaranteed", "guarantees"],
            &["diagnose", "diagnosis"],
            &["crisis", "crises"],
            &["deployment", "deploy", "deploys", "customer's deploys"],
            &["sell", "selling", "sells"],
        ] {
            let last = |text: &'static str| text.rsplit(' ').next().unwrap_or(text);
            let stems: Vec<&str> = family.iter().map(|word| stem(last(word))).collect();
            assert!(stems.windows(2).all(|pair| pair[0] == pair[1]), "{stems:?}");
        }
        assert_ne!(stem("speed"), stem("spend"));
        assert_eq!(stem("Übrigens"), "Übrigens");
    }
}
