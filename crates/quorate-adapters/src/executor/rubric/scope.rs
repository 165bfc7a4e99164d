//! Whether a text can be judged by rule at all: English prose of some length. A text that is not gets no answer, so that
//! its review ends without a verdict (C15). This file also lists the places of a text that were not read although they
//! may hold prose.
//!
//! English is recognized by its function words. Names, quotations, code and the cells of tables say nothing about a text's
//! language and are left out.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use quorate_diagnostics::invisible::{find_invisible, is_invisible};

use super::checks::Suppressions;
use super::document::{Block, BlockKind, Document, Sentence};
use super::phrases::words;

/// Fewer words of prose than this cannot be judged, nor repeated ones if fewer than the second number are distinct.
const MIN_WORDS: usize = 20;
const MIN_DISTINCT_WORDS: usize = 12;
/// Prose with less than one word in this many that only English has is not English.
const OWN_WORDS_ONE_IN: usize = 30;
/// Prose of another language has at least one in this many function words of that language.
const OTHER_WORDS_ONE_IN: usize = 12;
/// More lines than this are not listed.
const MAX_PLACES: usize = 10;

/// What the names of files of code or data end with.
const CODE_OR_DATA: &[&str] = &[
    "bat", "c", "conf", "cpp", "cs", "css", "csv", "go", "h", "ini", "java", "js", "json", "jsonl", "kt",
    "lock", "log", "php", "ps1", "py", "rb", "rs", "scss", "sh", "sql", "svg", "swift", "toml", "ts", "tsv",
    "tsx", "xml", "yaml", "yml",
];

/// Function words and common verbs that English has and other languages do not.
const ENGLISH: &str = "and are been but does from has how it's not our she that the their there they this what when which who \
    with you your about add added adds after again allow allows any because before change changed changes each fix fixed fixes \
    improve improved into just make makes move moved now only put remove removed rename renamed some stir them until use used \
    very where while without would drop bump";
/// Function words of other languages that English does not have, nor names: German, French, Spanish and Portuguese, Italian,
/// Dutch, Scandinavian languages, Polish, Turkish, Finnish.
const OTHER: &str = "auf auch aus bei das dem ein eine einem einen einer für haben ich ist nach nicht noch oder sich sind und über \
    werden wie wir wird zu zum zur aux avec cette dans des elle ils les leur mais nous pas pour que qui sont sur une vous \
    cuando esta este foi más muy não nuestro nuestros para pero por são sobre uma una unas unos anche che della delle dopo \
    gli nel nella questo sono tutti dat deze een het maar naar niet ook voor wij zijn att det efter för ikke inte jeg og och \
    på som är bir mutta nie ovat się untuk";

static ENGLISH_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| ENGLISH.split_whitespace().collect());
static OTHER_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| OTHER.split_whitespace().collect());

/// Why the rubric cannot judge a text, as the rest of a sentence; `None` if it can. `name` is the text's path.
pub(super) fn obstacle(name: &str, document: &Document<'_>) -> Option<String> {
    let extension = name.rsplit(['/', '\\']).next().and_then(|file| file.rsplit_once('.'));
    if extension.is_some_and(|(_, extension)| CODE_OR_DATA.contains(&&*extension.to_ascii_lowercase())) {
        return Some("it is a file of code or data".to_owned());
    }
    if document.spells_letters || hides_between_letters(document.text) {
        return Some("it has invisible characters or character references within words".to_owned());
    }
    let is_prose = |sentence: &&Sentence| document.kind_of(sentence) != BlockKind::Cell;
    let sentences: Vec<&Sentence> = document.sentences.iter().filter(is_prose).collect();
    let letters = sentences
        .iter()
        .flat_map(|sentence| document.prose_of(sentence).chars())
        .filter(|c| c.is_alphabetic());
    let (latin, foreign): (Vec<char>, Vec<char>) = letters.partition(|c| is_latin(*c));
    if foreign.len() > latin.len() {
        return Some("it is not in English".to_owned());
    }
    let prose = || sentences.iter().flat_map(|sentence| words(document.prose_of(sentence)));
    let count = prose().count();
    let distinct = prose().map(|(_, word)| word.to_lowercase()).collect::<HashSet<_>>().len();
    match count {
        0 => return Some("it has no prose of its own".to_owned()),
        1 => return Some("it has only 1 word of prose".to_owned()),
        2..MIN_WORDS => return Some(format!("it has only {count} words of prose")),
        _ if distinct < MIN_DISTINCT_WORDS => return Some(format!("it has only {distinct} different words")),
        _ => {}
    }
    let mut total = Counts::default();
    sentences.iter().for_each(|sentence| total.add(document.prose_of(sentence)));
    if !total.is_english() {
        let is_language = total.is_other_language() || total.in_sentences * 2 >= total.all.max(1);
        let why = if is_language { "it is not in English" } else { "it has only data and no sentences" };
        return Some(why.to_owned());
    }
    let other: usize = passages_in_other_languages(document).map(|(_, counts)| counts.all).sum();
    (other * 3 > total.all).then(|| "a third of it is not in English".to_owned())
}

/// Whether a text has a tag character, or an unexpected invisible character between two letters, which a reader does not
/// see and a rule would not find.
fn hides_between_letters(text: &str) -> bool {
    let mut unexpected = find_invisible(text).peekable();
    let (mut after_letter, mut hidden) = (false, false);
    for (at, c) in text.char_indices() {
        let found = unexpected.next_if(|(found, _)| *found == at).is_some();
        if is_invisible(c) {
            if found && ('\u{e0000}'..='\u{e007f}').contains(&c) {
                return true;
            }
            hidden |= found;
            continue;
        }
        let letter = c.is_ascii_alphabetic();
        if hidden && after_letter && letter {
            return true;
        }
        (after_letter, hidden) = (letter, false);
    }
    false
}

/// The passages of a text in another language: paragraphs, and lists as a whole.
fn passages_in_other_languages<'d>(
    document: &'d Document<'_>,
) -> impl Iterator<Item = (Range<usize>, Counts)> + use<'d> {
    let in_list = |one: &Block, next: &Block| one.kind == BlockKind::Item && next.kind == BlockKind::Item;
    let passages = document.blocks.chunk_by(in_list).filter(|blocks| blocks[0].kind != BlockKind::Cell);
    let counted = passages.map(|blocks| {
        let mut counts = Counts::default();
        let (first, last) = (&blocks[0], &blocks[blocks.len() - 1]);
        let sentences = &document.sentences[first.sentences.start..last.sentences.end];
        sentences.iter().for_each(|sentence| counts.add(document.prose_of(sentence)));
        (first.span.start..last.span.end, counts)
    });
    counted.filter(|(_, counts)| {
        let is_prose = counts.all >= MIN_WORDS && counts.in_sentences * 2 >= counts.all;
        counts.is_other_language() || is_prose && !counts.is_english()
    })
}

/// The number of words that say something about the language.
#[derive(Default)]
struct Counts {
    all: usize,
    english: usize,
    /// Function words of other languages, and words in other scripts.
    other: usize,
    /// The words in sentences that end with a full stop or the like.
    in_sentences: usize,
}

impl Counts {
    fn add(&mut self, sentence: &str) {
        let before = self.all;
        for (_, word) in words(sentence).filter(|(_, word)| !word.starts_with(|c: char| c.is_ascii_digit())) {
            let folded = word.to_lowercase().replace('’', "'");
            let english = ENGLISH_WORDS.contains(folded.as_str());
            let other = OTHER_WORDS.contains(folded.as_str()) || !word.chars().all(is_latin);
            // A name, or a noun of German.
            let mut chars = word.chars();
            let capital =
                chars.next().is_some_and(char::is_uppercase) && chars.next().is_none_or(char::is_lowercase);
            if english || other || !capital {
                self.all += 1;
                self.english += usize::from(english);
                self.other += usize::from(other);
            }
        }
        if sentence.ends_with(['.', '!', '?', '…', '。', '！', '？', '؟', '।']) {
            self.in_sentences += self.all - before;
        }
    }

    fn is_english(&self) -> bool {
        self.all > 0 && self.english * OWN_WORDS_ONE_IN >= self.all && !self.is_other_language()
    }

    fn is_other_language(&self) -> bool {
        self.other >= 2 && self.other > self.english && self.other * OTHER_WORDS_ONE_IN >= self.all
    }
}

fn is_latin(c: char) -> bool {
    c.is_ascii()
        || matches!(c, '\u{aa}'..='\u{24f}' | '\u{300}'..='\u{36f}' | '\u{1e00}'..='\u{1eff}' | '’' | 'ﬀ'..='ﬆ')
}

/// The lines that were not judged, one entry for each reason, in the order of the text.
pub(super) fn unread_places(document: &Document<'_>, suppressions: &Suppressions) -> Vec<String> {
    let other = passages_in_other_languages(document).map(|(span, _)| (span, "not in English".to_owned()));
    let unread = document.unread.iter().map(|(span, what)| (span.clone(), (*what).to_owned()));
    let mut parts: Vec<(Range<usize>, String)> = unread.chain(other).chain(suppressions.places()).collect();
    parts.sort_by_key(|(span, _)| span.start);
    let mut kinds: Vec<(String, Vec<(usize, usize)>)> = Vec::new();
    for (span, kind) in parts {
        let end = span.start + document.text[span.clone()].trim_end().len();
        let (first, last) = (document.line_of(span.start), document.line_of(end.max(span.start + 1) - 1));
        let at = kinds.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            kinds.push((kind, Vec::new()));
            kinds.len() - 1
        });
        // Lines that follow each other are one range.
        match kinds[at].1.last_mut().filter(|(_, end)| first <= *end + 1) {
            Some((_, end)) => *end = last.max(*end),
            None => kinds[at].1.push((first, last)),
        }
    }
    kinds.into_iter().map(|(kind, lines)| format!("{} ({kind})", describe_lines(&lines))).collect()
}

fn describe_lines(lines: &[(usize, usize)]) -> String {
    let range = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let listed = lines.iter().take(MAX_PLACES).map(range).collect::<Vec<_>>().join(", ");
    let noun = if matches!(lines, [(first, last)] if first == last) { "line" } else { "lines" };
    match lines.len().saturating_sub(MAX_PLACES) {
        0 => format!("{noun} {listed}"),
        more => format!("{noun} {listed} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C15: each character is looked at once.
    #[test]
    fn long_runs_of_invisible_characters_take_linear_time() {
        let run = "\u{e0101}\u{e0199}\u{200b}".repeat(50_000);
        for (text, hides) in [
            (format!("coun{run}cil"), true),
            (format!("council{run} of {run}them"), false),
            (format!("council\u{1f600}{run}of"), false),
            (format!("{run}\u{e0049}"), true),
        ] {
            assert_eq!(
                hides_between_letters(&text),
                hides,
                "{:?}",
                text.chars().take(12).collect::<String>()
            );
        }
    }

    #[test]
    fn lines_are_listed_by_reason() {
        let text = "One {a} word.\n\n".repeat(12);
        let document = Document::parse("x.mdx", &text);
        assert_eq!(
            unread_places(&document, &Suppressions::default()),
            ["lines 1, 3, 5, 7, 9, 11, 13, 15, 17, 19 and 2 more (code of MDX)"]
        );
    }
}
