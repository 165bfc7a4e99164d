//! Locked traits (L): the matcher that finds in a text what no outcome may contain.
//!
//! A trait is searched for in the text as given and in folded forms, and a hit says how far the text had to be folded.
//! `locks/fold.rs` reads a text and writes its forms, `locks/character.rs` has what concerns single characters,
//! `locks/fold.rs` also decodes entities, and `locks/search.rs` searches the forms.
//!
//! A verbatim match counts anywhere, within longer words too, as a substring does. A short trait that only matches by
//! looks, or set apart, must be a whole word: `AI` is not in `all`, nor `modem` in `modern`.

mod character;
mod fold;
mod search;

use std::ops::Range;
use std::sync::Arc;

use regex_syntax::hir::{Hir, HirKind, Look};

use character::{is_blank, is_invisible, is_mark};
use search::Search;

pub use fold::{fold, look_of_name};

/// What to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// A text.
    Text(&'a str),
    /// A regular expression.
    Pattern(&'a str),
}

impl<'a> Wanted<'a> {
    fn as_str(self) -> &'a str {
        let (Wanted::Text(text) | Wanted::Pattern(text)) = self;
        text
    }
}

/// A trait that cannot be matched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("locked trait {at} cannot be matched: {why}")]
pub struct InvalidTrait {
    /// Its index.
    pub at: usize,
    /// What is wrong with it, in words.
    pub why: String,
}

/// Traits, ready to be looked for.
#[derive(Debug, Clone)]
pub struct Matcher(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    texts: Vec<Arc<str>>,
    search: Search,
}

impl Matcher {
    /// Makes traits ready.
    ///
    /// # Errors
    /// When a pattern does not compile, or is too large.
    pub fn new(wanted: &[Wanted<'_>]) -> Result<Matcher, InvalidTrait> {
        let search = Search::new(wanted).map_err(|(at, why)| InvalidTrait { at, why })?;
        let texts = wanted.iter().map(|wanted| Arc::from(wanted.as_str())).collect();
        Ok(Matcher(Arc::new(Compiled { texts, search })))
    }

    /// At most one hit for each trait, in trait order: of several the least folded layer, then the earliest place.
    pub fn check(&self, text: &str) -> Vec<Hit> {
        let mut best: Vec<Option<(Layer, usize, usize)>> = vec![None; self.0.texts.len()];
        self.find(text, |index, layer, span| {
            let hit = (layer, span.start, span.end);
            if best[index].is_none_or(|best| hit < best) {
                best[index] = Some(hit);
            }
        });
        let hits = best.into_iter().enumerate();
        hits.filter_map(|(index, hit)| hit.map(|(layer, start, end)| self.hit(index, layer, start..end)))
            .collect()
    }

    /// Every place where a trait is hit, with the least folded layer that hits it there; in trait order, then by place.
    pub fn find_all(&self, text: &str) -> Vec<Hit> {
        let mut all: Vec<(usize, Layer, usize, usize)> = Vec::new();
        self.find(text, |index, layer, span| all.push((index, layer, span.start, span.end)));
        // Of overlapping hits the least folded is reported, then the first.
        all.sort_unstable();
        let mut hits = Vec::new();
        for group in all.chunk_by(|one, other| one.0 == other.0) {
            let mut kept: std::collections::BTreeMap<usize, (usize, Layer)> =
                std::collections::BTreeMap::new();
            for (_, layer, start, end) in group {
                let before = kept.range(..*end).next_back();
                if before.is_none_or(|(_, (other, _))| other <= start) {
                    kept.insert(*start, (*end, *layer));
                }
            }
            hits.extend(
                kept.into_iter().map(|(start, (end, layer))| self.hit(group[0].0, layer, start..end)),
            );
        }
        hits
    }

    fn find(&self, text: &str, found: impl FnMut(usize, Layer, Range<usize>)) {
        if !self.0.texts.is_empty() {
            self.0.search.find(text, found);
        }
    }

    fn hit(&self, trait_index: usize, layer: Layer, span: Range<usize>) -> Hit {
        Hit { trait_index, trait_text: self.0.texts[trait_index].clone(), layer, span }
    }
}

/// A place in a text that a locked trait forbids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The index of the trait.
    pub trait_index: usize,
    /// The trait as its author wrote it.
    pub trait_text: Arc<str>,
    /// How the text had to be folded to match.
    pub layer: Layer,
    /// The bytes of the text as given that the hit covers, on character boundaries.
    pub span: Range<usize>,
}

/// What saw a hit, the least folded first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The text as given, but for case.
    AsGiven,
    /// A pattern, on the text as given.
    Regex,
    /// Characters folded: compatibility forms, accents, invisible characters, entities, runs of white space.
    Folded,
    /// A pattern, on folded text.
    RegexFolded,
    /// Also markup and line-end hyphens taken out.
    Unmarked,
    /// Also characters replaced by those that they look like.
    Skeleton,
    /// Also letters that were set apart put together.
    SetApart,
}

impl Layer {
    /// All layers, the least folded first.
    pub const ALL: [Layer; 7] = [
        Layer::AsGiven,
        Layer::Regex,
        Layer::Folded,
        Layer::RegexFolded,
        Layer::Unmarked,
        Layer::Skeleton,
        Layer::SetApart,
    ];

    /// Its name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Layer::AsGiven => "as-given",
            Layer::Regex => "regex",
            Layer::Folded => "folded",
            Layer::RegexFolded => "regex-folded",
            Layer::Unmarked => "unmarked",
            Layer::Skeleton => "skeleton",
            Layer::SetApart => "set-apart",
        }
    }

    /// One sentence for people.
    pub const fn description(self) -> &'static str {
        match self {
            Layer::AsGiven => "The text says it as it stands, upper and lower case aside.",
            Layer::Regex => "The pattern fits the text as it stands.",
            Layer::Folded => {
                "The text says it once widths, accents, invisible characters, entities and runs of space are evened out."
            }
            Layer::RegexFolded => "The pattern fits the text once it is folded.",
            Layer::Unmarked => {
                "The text says it once Markdown marks, HTML tags and line-end hyphens are taken out."
            }
            Layer::Skeleton => "The text says it once characters are replaced by those that they look like.",
            Layer::SetApart => "The text says it once letters that were set apart are put together.",
        }
    }
}

/// How many characters are shown on either side of a hit.
const CONTEXT_CHARS: usize = 40;

/// How many characters of a hit itself are shown at most; of a longer one the two ends.
const MAX_HIT_CHARS: usize = 160;

/// A hit with up to 40 characters on either side, in one line: white space as one space, control, bidi and other
/// invisible characters left out, an ellipsis where something was cut. A span that is not in the text is cut to
/// what does.
pub fn excerpt(text: &str, span: &Range<usize>) -> String {
    let [before, hit, after] = excerpt_parts(text, span);
    format!("{before}{hit}{after}").trim().to_owned()
}

/// What [`excerpt`] shows before the hit, of the hit, and after it, for who marks the hit.
pub fn excerpt_parts(text: &str, span: &Range<usize>) -> [String; 3] {
    let start = text.floor_char_boundary(span.start);
    let end = text.ceil_char_boundary(span.end).max(start);
    let (before, hit, after) = (&text[..start], &text[start..end], &text[end..]);
    let from = before.char_indices().rev().take(CONTEXT_CHARS).last().map_or(start, |(at, _)| at);
    let to = after.char_indices().nth(CONTEXT_CHARS).map_or(after.len(), |(at, _)| at);
    let cut = |is_cut| if is_cut { "…" } else { "" };
    [
        format!("{}{}", cut(from > 0), printable(&before[from..])),
        shorten_hit(hit),
        format!("{}{}", printable(&after[..to]), cut(to < after.len())),
    ]
}

/// A hit, or of a long one its two ends.
fn shorten_hit(hit: &str) -> String {
    let head = hit.char_indices().nth(MAX_HIT_CHARS / 2).map(|(at, _)| at);
    let tail = hit.char_indices().rev().nth(MAX_HIT_CHARS / 2).map(|(at, _)| at);
    match (head, tail) {
        (Some(head), Some(tail)) if head < tail => {
            format!("{}…{}", printable(&hit[..head]), printable(&hit[tail..]))
        }
        _ => printable(hit),
    }
}

/// The displayable form: white space as one space, no invisible characters, no mark without a base.
fn printable(part: &str) -> String {
    let mut out = String::new();
    for c in part.chars() {
        let unseen = if is_mark(c) { out.is_empty() } else { is_invisible(c) };
        if is_blank(c) {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else if !unseen {
            out.push(c);
        }
    }
    out
}

/// What a trait matches, if that is not what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraitReach {
    /// No text.
    Never,
    /// Every text.
    Always,
}

/// Sentences with hardly a letter in common: a trait that matches all of them matches every outcome.
const SAMPLES: [&str; 3] = ["Oh yes.", "No, wait.", "Go on: 42 days."];

/// Whether a trait matches nothing or everything; `None` for every other trait, and for a pattern that cannot be compiled.
pub fn trait_reach(wanted: Wanted<'_>) -> Option<TraitReach> {
    let matcher = Matcher::new(&[wanted]).ok()?;
    let matches = |text: &str| !matcher.check(text).is_empty();
    let never = match wanted {
        Wanted::Pattern(pattern) => matches_nothing(&regex_syntax::parse(pattern).ok()?),
        Wanted::Text(text) => !matches(text),
    };
    if never {
        return Some(TraitReach::Never);
    }
    SAMPLES.into_iter().all(matches).then_some(TraitReach::Always)
}

/// Whether a pattern matches no text; the empty match is none. Anchors are compared with what stands before and after them,
/// word boundaries are not.
fn matches_nothing(hir: &Hir) -> bool {
    hir.properties().maximum_len() == Some(0) || is_contradiction(hir)
}

fn is_contradiction(hir: &Hir) -> bool {
    if hir.properties().minimum_len().is_none() {
        return true;
    }
    let has_text = |hir: &Hir| hir.properties().minimum_len().is_some_and(|least| least > 0);
    match hir.kind() {
        HirKind::Concat(parts) => {
            let before_start = parts.iter().rposition(|part| *part.kind() == HirKind::Look(Look::Start));
            let after_end = parts.iter().position(|part| *part.kind() == HirKind::Look(Look::End));
            parts.iter().any(is_contradiction)
                || before_start.is_some_and(|at| parts[..at].iter().any(has_text))
                || after_end.is_some_and(|at| parts[at..].iter().any(has_text))
        }
        HirKind::Alternation(parts) => parts.iter().all(is_contradiction),
        HirKind::Capture(capture) => is_contradiction(&capture.sub),
        HirKind::Repetition(repetition) => repetition.min > 0 && is_contradiction(&repetition.sub),
        _ => false,
    }
}

#[cfg(test)]
mod excerpt_tests {
    use super::*;

    fn check(text: &str, hit: &str, want: &str) {
        let start = text.find(hit).expect("it is there");
        assert_eq!(excerpt(text, &(start..start + hit.len())), want);
    }

    #[test]
    fn a_hit_is_shown_in_one_line_with_a_little_around_it() {
        check("Show more\n\twarmth, please.", "warmth", "Show more warmth, please.");
        let long = "x".repeat(50);
        let cut = "x".repeat(40);
        check(&format!("{long}warmth{long}"), "warmth", &format!("…{cut}warmth{cut}…"));
        check("a\u{202e}b\u{1b}[31m wa\u{200b}rmth\u{0}", "wa\u{200b}rmth", "ab[31m warmth");
    }

    #[test]
    fn of_a_long_hit_the_ends_are_shown() {
        let text = format!("w{}h", "<b></b>".repeat(100));
        let shown = excerpt(&text, &(0..text.len()));
        assert!(
            shown.starts_with("w<b>") && shown.ends_with("</b>h") && shown.chars().count() < 170,
            "{shown}"
        );
    }

    #[test]
    fn a_hit_is_cut_where_something_is_left_out() {
        for (letters, shown) in [(100, 100), (160, 160), (161, 161), (162, 162), (400, 162)] {
            let hit = "x".repeat(letters);
            let short = shorten_hit(&hit);
            assert_eq!((short.contains('…'), short.chars().count()), (letters > 161, shown), "{letters}");
        }
    }

    #[test]
    fn a_span_beside_the_text_is_cut_to_it() {
        assert_eq!(excerpt("é", &(1..99)), "é");
        assert_eq!(excerpt("", &(5..9)), "");
    }
}

#[cfg(test)]
mod name_tests {
    use super::look_of_name;

    #[test]
    fn names_that_are_easily_confused_look_alike() {
        for alike in ["ada", "ADA", "\u{430}da", "a\u{200b}da", "\u{ff41}da", "\u{e1}da", "a_da"] {
            assert_eq!(look_of_name(alike), look_of_name("Ada"), "{alike}");
        }
        for other in ["adam", "bo", "", "eve", "-"] {
            assert_ne!(look_of_name(other), look_of_name("Ada"), "{other}");
        }
    }
}

#[cfg(test)]
mod reach_tests {
    use super::*;

    #[test]
    fn a_trait_that_matches_nothing_or_everything_is_told() {
        let pattern = |text| trait_reach(Wanted::Pattern(text));
        let plain = |text| trait_reach(Wanted::Text(text));
        for text in ["[^\\s\\S]", "$a", "a^", "(?:a^)b", "^", "$", "\\b", "a{0}", "", "x$y|^^$z"] {
            assert_eq!(pattern(text), Some(TraitReach::Never), "{text}");
        }
        for text in [".", ".*", "\\w+", "[a-z]", "(?s).+", "x|\\w", "[^x]"] {
            assert_eq!(pattern(text), Some(TraitReach::Always), "{text}");
        }
        for text in [
            "warmth",
            "warm(th|er)",
            "^never",
            "later$",
            "^all of it$",
            "a*",
            "x?y",
            "\\bno\\b",
            "(^|\\s)so",
            "a|b^",
        ] {
            assert_eq!(pattern(text), None, "{text}");
        }
        for text in ["warmth", "voice register", "AI", "don't", "C++", "谢谢"] {
            assert_eq!(plain(text), None, "{text}");
        }
        // A substring of every text with two words.
        for text in [" ", "."] {
            assert_eq!(plain(text), Some(TraitReach::Always), "{text:?}");
        }
    }
}
