//! Phrases to look for, compiled to regular expressions, and the lists of them in `lists.toml`.
//!
//! A phrase is written as its words with spaces. `a|b` stands for either word, a trailing `?` makes a word optional (not
//! the first), `*` stands for any one word, `*?` for one or none. Hyphens, case and the form of apostrophes do not matter.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

/// How far before or after a hit its context is looked at, in bytes.
const CONTEXT: usize = 48;

/// Some phrases, as one pattern with a group for each.
#[derive(Debug, serde::Deserialize)]
#[serde(from = "Vec<String>")]
pub(super) struct Phrases(Regex);

impl From<Vec<String>> for Phrases {
    fn from(phrases: Vec<String>) -> Self {
        Phrases::new(&phrases)
    }
}

/// A phrase that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hit {
    /// Bytes of the text that was searched.
    pub(super) span: Range<usize>,
    /// The place of the phrase among those compiled.
    pub(super) phrase: usize,
}

impl Phrases {
    /// Compiles phrases, of which an earlier one wins over a later one at the same place.
    pub(super) fn new<S: AsRef<str>>(phrases: &[S]) -> Phrases {
        let groups: Vec<String> =
            phrases.iter().map(|phrase| format!("({})", to_pattern(phrase.as_ref()))).collect();
        Phrases(compile(&format!(r"\b(?:{})\b", groups.join("|"))).unwrap_or_else(|_| compiled("$^")))
    }

    pub(super) fn into_regex(self) -> Regex {
        self.0
    }

    /// The places of phrases in a text, none overlapping another.
    pub(super) fn spans<'p>(&'p self, text: &'p str) -> impl Iterator<Item = Range<usize>> + 'p {
        self.0.find_iter(text).map(|found| found.range()).filter(|span| is_whole(text, span))
    }

    /// The same, each with its phrase.
    pub(super) fn all<'p>(&'p self, text: &'p str) -> impl Iterator<Item = Hit> + 'p {
        let whole = self.0.captures_iter(text).filter_map(|found| {
            let span = found.get(0)?.range();
            let phrase = (1..found.len()).find(|group| found.get(*group).is_some())? - 1;
            Some(Hit { span, phrase })
        });
        whole.filter(|hit| is_whole(text, &hit.span))
    }

    /// The first phrase in a text.
    pub(super) fn first(&self, text: &str) -> Option<Range<usize>> {
        self.spans(text).next()
    }

    /// Whether a text has one of the phrases.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.first(text).is_some()
    }

    /// Whether a phrase stands somewhere before a place in its clause.
    pub(super) fn is_leading(&self, text: &str, at: usize) -> bool {
        self.is_in(&text[text.ceil_char_boundary(at.saturating_sub(3 * CONTEXT))..at])
    }

    /// Whether a phrase stands right before a place, or with one word between.
    pub(super) fn is_before(&self, text: &str, at: usize) -> bool {
        let near = &text[text.ceil_char_boundary(at.saturating_sub(CONTEXT))..at];
        let between =
            |end: usize| words(&near[end..]).count() <= 1 && !near[end..].contains([',', ';', ':', '—']);
        self.spans(near).any(|span| between(span.end))
    }

    /// Whether a phrase stands right after a place.
    pub(super) fn is_after(&self, text: &str, at: usize) -> bool {
        let near = text[at..text.floor_char_boundary(at + CONTEXT)]
            .trim_start_matches(|c: char| c.is_whitespace() || c == '-');
        self.0.find(near).is_some_and(|found| found.start() == 0)
    }
}

/// Whether a hit is not a part of a longer compound, such as “never-ending”, nor a possessive.
pub(super) fn is_whole(text: &str, span: &Range<usize>) -> bool {
    let mut preceding = text[..span.start].chars().rev();
    let joined_before = preceding.next() == Some('-') && preceding.next().is_some_and(char::is_alphanumeric);
    let mut after = text[span.end..].chars();
    let joined_after =
        matches!(after.next(), Some('-' | '\'' | '’')) && after.next().is_some_and(char::is_alphanumeric);
    !joined_before && !joined_after
}

/// A pattern that ignores case. Borders of words are those of ASCII, which the engine finds at once.
pub(super) fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    let pattern = pattern.replace(r"\b", r"(?-u:\b)");
    RegexBuilder::new(&pattern).case_insensitive(true).size_limit(1 << 24).build()
}

fn to_pattern(phrase: &str) -> String {
    let mut pattern = String::new();
    for (at, written) in phrase.split_whitespace().enumerate() {
        let (word, optional) = written.strip_suffix('?').map_or((written, false), |word| (word, true));
        let any: Vec<String> = word
            .split('|')
            .map(|one| {
                if one == "*" {
                    r"[\w'’.,%]+".to_owned()
                } else {
                    regex::escape(one).replace('\'', "['’]")
                }
            })
            .collect();
        let separator = if at == 0 { "" } else { r"(?:\s+|-)" };
        let slot = format!("{separator}(?:{})", any.join("|"));
        pattern.push_str(&if optional { format!("(?:{slot})?") } else { slot });
    }
    pattern
}

/// The words of a text with their offsets: letters and digits, with apostrophes and the marks of numbers within.
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    WORD.find_iter(text).map(|word| (word.start(), word.as_str()))
}

static WORD: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"\p{N}+(?:[.,:/]\p{N}+)*[\p{Alphabetic}\p{M}\p{N}]*",
        r"|[\p{Alphabetic}\p{M}][\p{Alphabetic}\p{M}\p{N}]*(?:['’]\p{Alphabetic}+)*",
    ))
});

/// A pattern of the program; tests compile all of them.
pub(super) fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| panic!("{error}"))
}

/// A list of `lists.toml`.
///
/// # Panics
/// If there is no such list; the file is compiled in.
pub(super) fn list(name: &str) -> &'static Phrases {
    &LISTS[name]
}

static LISTS: LazyLock<HashMap<String, Phrases>> =
    LazyLock::new(|| toml::from_str(include_str!("lists.toml")).unwrap_or_default());

#[cfg(test)]
mod tests {
    use super::*;

    fn found(phrases: &[&str], text: &str) -> Vec<String> {
        Phrases::new(phrases).all(text).map(|hit| text[hit.span].to_owned()).collect()
    }

    #[test]
    fn alternatives_options_and_compounds() {
        let text = "All our users, all of our teams, all.";
        assert_eq!(
            found(&["all of? our users|teams", "all"], text),
            ["All our users", "all of our teams", "all"]
        );
        assert_eq!(found(&["it's * time"], "It’s about time"), ["It’s about time"]);
        assert_eq!(found(&["game changer"], "a game-changer"), ["game-changer"]);
        assert!(found(&["in the end"], "in the").is_empty());
        assert!(found(&["never", "everyone"], "A never-ending list is everyone’s.").is_empty());
    }

    #[test]
    fn the_lists_compile() {
        let usable = LISTS.values().filter(|phrases| phrases.0.as_str() != "$^").count();
        assert_eq!((usable, LISTS.len()), (20, 20));
    }

    #[test]
    fn context_is_what_stands_right_beside() {
        let not = Phrases::new(&["not"]);
        assert!(not.is_before("it is not always", 10) && not.is_before("it is not quite always", 16));
        assert!(!not.is_before("if not, it is always", 14) && !not.is_before("not that it is always", 15));
        assert!(not.is_after("it is not", 5) && !not.is_after("it is so not", 5));
    }
}
