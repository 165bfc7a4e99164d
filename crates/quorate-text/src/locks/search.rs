//! The search: the strings and patterns that are looked for in each form of a text, and the rules by which a place where the
//! letters of a trait stand is the trait.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::{Regex, RegexBuilder};

use super::character::{STROKE, is_mark, push_look};
use super::fold::{
    LineStarts, Mapped, Marks, Markup, Token, cased, folded, letters, line_start_len, read, skeleton,
};
use super::{Layer, Wanted};

/// The fewest letters of a trait that is seen within longer words where it only looks the same, and whose `m` may be an r
/// and an n. A shorter one would be seen everywhere: `fail` in `faiӏure`, `modem` in `modern`.
const MIN_LETTERS_WITHIN_WORDS: usize = 6;

/// The fewest letters of a trait that may have a figure in place of a letter, or its letters set apart by more than
/// dots: `FA1L` and `F-A-I-L`, but of `AI` only `A.I.`.
const MIN_LETTERS: usize = 4;

/// The fewest letters of a trait that is seen wherever blanks are between its letters: `ign orethe policy`.
const MIN_LETTERS_WITH_ANY_BLANKS: usize = 12;

/// Signs that part sentences and their parts, so that a trait does not continue after them.
const BREAKS: &[char] = &[',', ';', ':', '!', '?', '&', '=', '<', '>', '(', ')', '{', '}', '"'];

/// Everything that is looked for.
#[derive(Debug)]
pub(super) struct Search {
    sieve: Sieve,
    /// Finds traits by their index.
    given: Finder,
    /// Finds traits by their index.
    folded: Finder,
    phrases: Vec<Phrase>,
    /// Finds phrases by their index.
    skeleton: Finder,
    /// Finds phrases by their index.
    letters: Finder,
    patterns: Patterns,
}

impl Search {
    /// # Errors
    /// The index of a trait that cannot be searched for, and why.
    pub(super) fn new(wanted: &[Wanted<'_>]) -> Result<Search, (usize, String)> {
        let (mut given, mut plain, mut looks, mut bare) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut phrases, mut sieve) = (Vec::new(), Some(Vec::new()));
        let mut patterns = Vec::new();
        for (index, wanted) in wanted.iter().enumerate() {
            let text = match wanted {
                Wanted::Text(text) => *text,
                Wanted::Pattern(pattern) => {
                    patterns.push((index, compile(pattern).map_err(|why| (index, why))?));
                    continue;
                }
            };
            given.push((cased(text).text, index));
            for tokens in forms(text) {
                let form = folded(&tokens).text;
                let coarse = coarse(&tokens);
                sieve = sieve.filter(|_| form.is_ascii() && !coarse.is_empty()).map(|mut all| {
                    all.push((coarse, index));
                    all
                });
                if form.trim().is_empty() {
                    continue;
                }
                plain.push((form, index));
                let Some((phrase, skeleton, letters)) = Phrase::new(index, &tokens) else { continue };
                bare.push((letters, phrases.len()));
                looks.push((skeleton, phrases.len()));
                phrases.push(phrase);
            }
        }
        let finder = |strings| Finder::new(strings).map_err(|error| (0, error.to_string()));
        Ok(Search {
            sieve: Sieve(sieve.map(finder).transpose()?),
            given: finder(given)?,
            folded: finder(plain)?,
            phrases,
            skeleton: finder(looks)?,
            letters: finder(bare)?,
            patterns: Patterns(patterns),
        })
    }

    /// Calls back with the trait, the layer and the place of every hit in a text.
    pub(super) fn find(&self, text: &str, mut found: impl FnMut(usize, Layer, Range<usize>)) {
        let mut hit = |index: usize, layer: Layer, span: Range<usize>| {
            // The marks on the last letter belong to it.
            let marks: usize = text[span.end..].chars().take_while(|c| is_mark(*c)).map(char::len_utf8).sum();
            found(index, layer, span.start..span.end + marks);
        };
        self.patterns.find(text, |index, span| hit(index, Layer::Regex, span));
        if self.patterns.is_empty() && self.sieve.excludes_plain(text) {
            return;
        }
        let given = cased(text);
        self.given.find(&given.text, |index, span| hit(index, Layer::AsGiven, given.source(span)));
        if !self.patterns.is_empty() && !text.is_ascii() {
            let composed = folded(&read(text, Marks::Kept));
            let on_hit = |index, span| hit(index, Layer::RegexFolded, composed.source(span));
            self.patterns.find(&composed.text, on_hit);
        }
        let tokens = read(text, Marks::Dropped);
        let markup = Markup::find(&tokens, LineStarts::Removed);
        let removed = markup.as_ref().map(|markup| markup.removed(&tokens));
        let is_possible =
            self.sieve.admits(&tokens) || removed.as_ref().is_some_and(|removed| self.sieve.admits(removed));
        if !is_possible && self.patterns.is_empty() {
            return;
        }
        self.find_in(&tokens, Layer::Folded, &mut hit);
        if let (Some(markup), Some(removed)) = (markup, removed) {
            self.find_in(&removed, Layer::Unmarked, &mut hit);
            self.find_in(&markup.spaced(&tokens), Layer::Unmarked, &mut hit);
        }
    }

    /// Searches one form of a text; `layer` is the automaton of traits that are searched unchanged.
    fn find_in(&self, tokens: &[Token], layer: Layer, hit: &mut impl FnMut(usize, Layer, Range<usize>)) {
        let plain = folded(tokens);
        self.folded.find(&plain.text, |index, span| hit(index, layer, plain.source(span)));
        self.patterns.find(&plain.text, |index, span| hit(index, Layer::RegexFolded, plain.source(span)));
        if self.phrases.is_empty() {
            return;
        }
        let look = skeleton(tokens);
        let has_strokes = look.text.contains(['1', STROKE]);
        for stroke in if has_strokes { &['i', 'l'][..] } else { &['i'] } {
            let reading = look.reading(*stroke);
            self.skeleton.find(&reading.text, |index, span| {
                let phrase = &self.phrases[index];
                let has_figure = look.text[span.clone()].contains(['0', '1']);
                if phrase.may_look_like(&reading, &span, has_figure) {
                    hit(phrase.trait_index, Layer::Skeleton, look.source(span));
                }
            });
            let bare = letters(&reading);
            self.letters.find(&bare.text, |index, span| {
                let (phrase, span) = (&self.phrases[index], bare.source(span));
                if phrase.may_be_set_apart(&reading, &span) {
                    hit(phrase.trait_index, Layer::SetApart, look.source(span));
                }
            });
        }
    }
}

/// A trait in its forms: as written, without its markup, and with space in place of it.
fn forms(text: &str) -> Vec<Vec<Token>> {
    let tokens = read(text, Marks::Dropped);
    let mut forms = vec![tokens];
    if let Some(markup) = Markup::find(&forms[0], LineStarts::Removed) {
        let [removed, spaced] = [markup.removed(&forms[0]), markup.spaced(&forms[0])];
        let is_blank = |token: &Token| token.c == ' ';
        let start = spaced.iter().take_while(|token| is_blank(token)).count();
        let end = spaced.iter().rposition(|token| !is_blank(token)).map_or(start, |last| last + 1);
        forms.extend([removed, spaced[start..end].to_vec()]);
    }
    forms.dedup();
    forms
}

/// Strings, and what each stands for.
#[derive(Debug)]
struct Finder {
    /// `None` without strings.
    automaton: Option<AhoCorasick>,
    values: Vec<usize>,
}

impl Finder {
    fn new(mut strings: Vec<(String, usize)>) -> Result<Finder, aho_corasick::BuildError> {
        strings.retain(|(string, _)| !string.is_empty());
        strings.sort_unstable();
        strings.dedup();
        let (strings, values): (Vec<String>, Vec<usize>) = strings.into_iter().unzip();
        let build = || AhoCorasick::builder().match_kind(MatchKind::Standard).build(&strings);
        let automaton = (!strings.is_empty()).then(build).transpose()?;
        Ok(Finder { automaton, values })
    }

    fn find(&self, text: &str, mut found: impl FnMut(usize, Range<usize>)) {
        for place in self.automaton.iter().flat_map(|automaton| automaton.find_overlapping_iter(text)) {
            found(self.values[place.pattern().as_usize()], place.range());
        }
    }

    fn is_in(&self, bytes: &[u8]) -> bool {
        self.automaton.as_ref().is_some_and(|automaton| automaton.is_match(bytes))
    }
}

/// Tells in one pass that a text has no trait in any form. It looks for the letters of the traits and ignores all else: an
/// r too, so that it need not tell `rn` from `m`. `None` if a trait is not in ASCII letters, so that nothing can be told.
#[derive(Debug)]
struct Sieve(Option<Finder>);

/// What the sieve reads for each ASCII character; 0 for those that it ignores.
const COARSE: [u8; 128] = {
    let mut table = [0; 128];
    let mut at = 0_u8;
    while at < 128 {
        table[at as usize] = match at.to_ascii_lowercase() {
            b'r' => 0,
            b'm' => b'n',
            b'l' | b'1' => b'i',
            b'0' => b'o',
            other if other.is_ascii_alphanumeric() => other,
            _ => 0,
        };
        at += 1;
    }
    table
};

impl Sieve {
    /// Whether a text has no trait, so that no more has to be read of it. It tells nothing of a text with
    /// entities, tags, links, lists or controls.
    fn excludes_plain(&self, text: &str) -> bool {
        let Some(finder) = self.0.as_ref().filter(|_| text.is_ascii()) else { return false };
        let bytes = text.as_bytes();
        let c = |at: usize| match bytes.get(at).copied().unwrap_or(b'\n') {
            b'\t' => ' ',
            byte => char::from(byte),
        };
        let is_special = |(at, byte): (usize, &u8)| match byte {
            b'<' | b'&' | b']' | 0..=8 | 14..=31 | 127 => true,
            b'\n'..=b'\r' => line_start_len(|next| c(at + 1 + next), true) > 0,
            _ => false,
        };
        if bytes.iter().enumerate().any(is_special) {
            return false;
        }
        let mut letters = vec![0; bytes.len()];
        let mut len = 0;
        for byte in bytes {
            // Written always and kept rarely, which is faster than a branch.
            let letter = COARSE[usize::from(*byte & 0x7f)];
            letters[len] = letter;
            len += usize::from(letter != 0);
        }
        !finder.is_in(&letters[..len])
    }

    fn admits(&self, tokens: &[Token]) -> bool {
        self.0.as_ref().is_none_or(|finder| finder.is_in(coarse(tokens).as_bytes()))
    }
}

/// What the sieve reads of tokens.
fn coarse(tokens: &[Token]) -> String {
    let mut letters = String::with_capacity(tokens.len());
    let mut look = String::new();
    let push = |c: char, letters: &mut String| match COARSE.get(c as usize) {
        _ if c == STROKE => letters.push('i'),
        Some(0) => {}
        Some(letter) => letters.push(char::from(*letter)),
        None if c.is_alphanumeric() => letters.push(c),
        None => {}
    };
    for token in tokens {
        if token.c.is_ascii() {
            push(token.c, &mut letters);
        } else {
            look.clear();
            push_look(token.c, &mut look);
            look.chars().for_each(|c| push(c, &mut letters));
        }
    }
    letters
}

/// A form of a trait, as its skeleton is compared with that of a text.
#[derive(Debug)]
struct Phrase {
    trait_index: usize,
    /// The number of its letters and figures.
    letters: usize,
    has_figure: bool,
    /// What is between its words: the number of letters of the skeleton before it, and its text.
    gaps: Vec<(usize, String)>,
}

impl Phrase {
    /// A phrase with its skeleton, and the letters of that; `None` if it has no letters.
    fn new(trait_index: usize, tokens: &[Token]) -> Option<(Phrase, String, String)> {
        let look = skeleton(tokens);
        let reading = look.reading('i');
        let words = words(&reading.text, 0..reading.text.len());
        let phrase = Phrase {
            trait_index,
            letters: words.iter().map(|word| reading.characters(word.clone())).sum(),
            has_figure: look.text.contains(['0', '1']),
            gaps: gaps(&reading.text, &words).map(|(letters, gap)| (letters, gap.to_owned())).collect(),
        };
        let letters = letters(&reading).text;
        (phrase.letters > 0).then_some((phrase, reading.text, letters))
    }

    /// Whether a place in a skeleton that has the look of the phrase may be it.
    fn may_look_like(&self, text: &Mapped, span: &Range<usize>, has_figure: bool) -> bool {
        let words = words(&text.text, span.clone()).into_iter();
        self.letters >= MIN_LETTERS_WITHIN_WORDS
            || (is_whole_word(&text.text, span)
                && words.map(|word| text.characters(word)).sum::<usize>() == self.letters
                && (self.letters >= MIN_LETTERS || self.has_figure || !has_figure))
    }

    /// Whether a place in a skeleton that has the letters of the phrase in a row may be it.
    fn may_be_set_apart(&self, text: &Mapped, span: &Range<usize>) -> bool {
        let is_long = self.letters >= MIN_LETTERS_WITH_ANY_BLANKS;
        let words = words(&text.text, span.clone());
        let lengths: Vec<usize> = words.iter().map(|word| text.characters(word.clone())).collect();
        if !is_whole_word(&text.text, span)
            || (self.letters < MIN_LETTERS_WITHIN_WORDS && lengths.iter().sum::<usize>() != self.letters)
        {
            return false;
        }
        let own = |letters: usize| {
            let found = self.gaps.binary_search_by_key(&letters, |(letters, _)| *letters).ok()?;
            Some(self.gaps[found].1.as_str())
        };
        let is_part = |(at, (letters, gap)): (usize, (usize, &str))| {
            let own = own(letters);
            // A blank within a word is one only between single letters: `a lone wolf` is not `alone`.
            let may_part = is_long || own.is_some() || gap != " " || lengths[at..at + 2] == [1, 1];
            let is_break = gap.contains(BREAKS)
                || (gap.starts_with('.') && gap.ends_with(' ') && lengths[at] > 1)
                || (gap != "." && self.letters < MIN_LETTERS);
            own == Some(gap) || (may_part && !is_break)
        };
        let is_apart = is_long || words.len() > 1 || !self.gaps.is_empty();
        is_apart
            && gaps(&text.text, &words).enumerate().all(is_part)
            && (is_long || self.has_own_gaps(text, &words))
    }

    /// Whether something parts the words of the phrase, be it markup that was removed.
    fn has_own_gaps(&self, text: &Mapped, words: &[Range<usize>]) -> bool {
        let letters: Vec<usize> = words
            .iter()
            .flat_map(|word| text.text[word.clone()].char_indices().map(|(at, _)| word.start + at))
            .collect();
        let place = |letter: usize| text.source(letters[letter]..letters[letter] + 1);
        self.gaps.iter().all(|(before, _)| place(before - 1).end < place(*before).start)
    }
}

/// The runs of letters and figures within a part of a text.
fn words(text: &str, part: Range<usize>) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    for (at, c) in text[part.clone()].char_indices().filter(|(_, c)| c.is_alphanumeric()) {
        let (start, end) = (part.start + at, part.start + at + c.len_utf8());
        match words.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => words.push(start..end),
        }
    }
    words
}

/// What is between words, each with the number of letters before it.
fn gaps<'a>(text: &'a str, words: &'a [Range<usize>]) -> impl Iterator<Item = (usize, &'a str)> {
    words.windows(2).scan(0, |letters, pair| {
        *letters += text[pair[0].clone()].chars().count();
        Some((*letters, &text[pair[0].end..pair[1].start]))
    })
}

fn is_whole_word(text: &str, span: &Range<usize>) -> bool {
    !text[..span.start].ends_with(char::is_alphanumeric)
        && !text[span.end..].starts_with(char::is_alphanumeric)
}

/// How large a compiled pattern may get, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Patterns, with the traits that they are.
#[derive(Debug)]
struct Patterns(Vec<(usize, Regex)>);

impl Patterns {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Calls back with the first places of each pattern in a text. Empty matches do not count as places.
    fn find(&self, text: &str, mut found: impl FnMut(usize, Range<usize>)) {
        for (index, regex) in &self.0 {
            for place in regex.find_iter(text).filter(|place| !place.is_empty()).take(MAX_PLACES) {
                found(*index, place.range());
            }
        }
    }
}

/// The most places of a pattern in one form of a text: each match may read on to the text's end.
const MAX_PLACES: usize = 100;

fn compile(pattern: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(pattern).case_insensitive(true).size_limit(MAX_PATTERN_BYTES).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
        error => {
            error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        }
    })
}
