//! Banned phrases: the default list with the plain word for each, and those of the settings.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

use super::document::{Document, Word, split_words};
use super::lexicon::Lexicon;

/// How a phrase that also has an honest sense is told from one that has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    /// It is tired wherever it stands.
    Always,
    /// Only as a verb: not after an article, a possessive or an adjective of quantity.
    AsVerb,
}

use Condition::{Always, AsVerb};

/// The tired phrases of promotional and machine-smooth prose, each with what to write in its place.
const DEFAULTS: &[(&str, Condition, &str)] = &[
    ("game changer|changers|changing", Always, "Say what changes, and for whom."),
    (
        "revolutionary|revolutionise|revolutionize|revolutionises|revolutionizes|revolutionising|revolutionizing",
        Always,
        "Say what is new.",
    ),
    (
        "seamless|seamlessly|frictionless|effortless|effortlessly",
        Always,
        "Say which steps are no longer needed.",
    ),
    (
        "unlock|unlocks|unlocking your|the|new|value|potential|growth|insights|productivity|true|full|real",
        Always,
        "Say what the reader can do now.",
    ),
    ("leverage|leverages|leveraging|leveraged", AsVerb, "Write “use”."),
    ("utilize|utilizes|utilizing|utilise|utilises|utilising", Always, "Write “use”."),
    ("delve|delves|delving", Always, "Write “look at”."),
    (
        "in today's *? *? world|landscape|era|market|age|environment|economy",
        Always,
        "Cut it and start with the point.",
    ),
    ("fast paced|ever changing|ever evolving|rapidly evolving", Always, "Name the change that matters."),
    ("at the end of the day", Always, "Cut it."),
    ("when all is said and done", Always, "Cut it."),
    ("cutting|bleeding edge", Always, "Say what is new about it."),
    ("state of the art", Always, "Say what it is compared with."),
    ("next generation|gen", Always, "Say what this one does that the last did not."),
    ("take|takes|taking *? *? to the next level", Always, "Say what gets better, and by how much."),
    ("to the next level", Always, "Say what gets better, and by how much."),
    ("paradigm shift|shifting", Always, "Say what works differently."),
    (
        "disrupt|disrupts|disrupting|disruptive|disruption the? industry|market|innovation|technology|status|space",
        Always,
        "Say who works differently because of it.",
    ),
    ("synergy|synergies|synergistic", Always, "Say what works together."),
    ("empower|empowers|empowering|empowered", Always, "Say what they can do now."),
    (
        "supercharge|supercharges|supercharging|supercharged|turbocharge|turbocharges",
        Always,
        "Say what gets faster, and by how much.",
    ),
    ("skyrocket|skyrockets|skyrocketing|skyrocketed", Always, "Give the figure."),
    ("world class", Always, "Say what it is compared with."),
    ("best in class|breed", Always, "Say what it is compared with."),
    ("one stop shop", Always, "List what it does."),
    ("move|moves|moving|moved the needle", Always, "Say which figure moves."),
    ("low hanging fruit", Always, "Write “easy first steps”."),
    ("think|thinking outside the box", Always, "Say what is unusual."),
    ("deep dive|dives", Always, "Write “a close look”."),
    ("circle back", Always, "Write “come back to”."),
    ("going|moving forward", Always, "Write “from now on”, or cut it."),
    ("it goes without saying", Always, "Then cut it."),
    ("needless to say", Always, "Then cut it."),
    ("it's|it is important|worth to? note|noting|remember that?", Always, "Cut it and say the thing."),
    ("rest assured", Always, "Give the reason for it."),
    ("look no further", Always, "Cut it."),
    ("say goodbye to", Always, "Say what is no longer needed."),
    ("buckle up", Always, "Cut it."),
    (
        "thrilled|excited|delighted|proud to announce|share|introduce|unveil|launch",
        Always,
        "Announce it and cut the feeling.",
    ),
    ("super excited", Always, "Cut it."),
    ("embark|embarks|embarking on", Always, "Write “start”."),
    ("tapestry|treasure trove", Always, "Name the things."),
    ("testament to", Always, "Write “shows”."),
    ("harness|harnesses|harnessing the? power|potential", Always, "Write “use”."),
    ("the power of", Always, "Say what it does."),
    ("elevate|elevates|elevating your|the", Always, "Say what gets better."),
    (
        "transformative|groundbreaking|trailblazing|mind blowing|jaw dropping",
        Always,
        "Say what it does and let the reader judge.",
    ),
    ("like never before", Always, "Say what was not possible before."),
    ("the future of * is here", Always, "Say what is there today."),
    ("ai powered|driven", Always, "Say what the model does."),
    ("magical|magically", Always, "Say how it works."),
    ("blazing|blazingly|lightning fast", Always, "Give the time that it takes."),
    ("10x your|developer|developers|engineer|engineers|productivity", Always, "Say what takes less time."),
    ("no brainer", Always, "Give the reason."),
    ("secret sauce", Always, "Say what it is."),
    ("win win", Always, "Say what each side gets."),
    ("mission critical", Always, "Say what stops without it."),
    ("peace of mind", Always, "Say what can no longer go wrong."),
    ("limitless|unlimited possibilities|potential", Always, "Say what it can do."),
];

/// Words before a noun: after one of these "leverage" is no verb.
const BEFORE_A_NOUN: &[&str] = &[
    "the",
    "a",
    "more",
    "some",
    "our",
    "your",
    "their",
    "its",
    "of",
    "financial",
    "high",
    "no",
    "any",
    "as",
    "much",
];

static DEFAULT_LEXICON: LazyLock<Lexicon<(Condition, &'static str)>> =
    LazyLock::new(|| Lexicon::new(DEFAULTS.iter().map(|(phrase, when, fix)| (*phrase, (*when, *fix)))));

/// A pattern of the settings that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadPattern {
    pub(super) pattern: String,
    pub(super) reason: String,
}

#[derive(Debug)]
pub(super) struct BannedPhrases {
    defaults: bool,
    phrases: Lexicon<String>,
    patterns: Vec<(String, Regex)>,
}

/// A banned phrase in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Occurrence {
    pub(super) span: Range<usize>,
    /// What to write in its place.
    pub(super) fix: String,
}

impl BannedPhrases {
    /// The default list where asked for, and phrases or `/patterns/` in addition.
    ///
    /// # Errors
    /// A pattern that does not compile, an empty phrase.
    pub(super) fn new(defaults: bool, extra: &[String]) -> Result<Self, BadPattern> {
        let mut phrases = Vec::new();
        let mut patterns = Vec::new();
        for written in extra {
            let bare = written.trim();
            let bad = |reason: String| BadPattern { pattern: written.clone(), reason };
            let between = bare.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
            match between {
                _ if bare.is_empty() || between.is_some_and(str::is_empty) => {
                    return Err(bad("it is empty".into()));
                }
                Some(pattern) => patterns.push((written.clone(), compile(pattern).map_err(bad)?)),
                None if is_words(bare) => phrases.push((split_words(bare).join(" "), written.clone())),
                None => patterns.push((written.clone(), compile(&regex::escape(bare)).map_err(bad)?)),
            }
        }
        let phrases = Lexicon::new(phrases.iter().map(|(words, written)| (words.as_str(), written.clone())));
        Ok(BannedPhrases { defaults, phrases, patterns })
    }

    /// Every use in a text, in order, outside quoted speech.
    pub(super) fn occurrences(&self, document: &Document<'_>) -> Vec<Occurrence> {
        let mut uses = Vec::new();
        for sentence in &document.sentences {
            let words = document.words_of(sentence);
            let mut at = 0;
            while at < words.len() {
                let found = if words[at].quoted { None } else { self.match_at(words, at) };
                at = found.as_ref().map_or(at + 1, |(hit, _)| hit.end);
                uses.extend(found.map(|(hit, fix)| Occurrence {
                    span: words[hit.start].start..words[hit.end - 1].end,
                    fix,
                }));
            }
        }
        for (written, pattern) in &self.patterns {
            let hits = pattern
                .find_iter(&document.prose)
                .filter(|hit| !hit.is_empty() && !hit.as_str().trim().is_empty());
            uses.extend(hits.map(|hit| Occurrence { span: hit.range(), fix: custom_fix(written) }));
        }
        uses.sort_by_key(|found| (found.span.start, found.span.end));
        uses
    }

    fn match_at(&self, words: &[Word<'_>], at: usize) -> Option<(Range<usize>, String)> {
        if let Some(hit) = self.phrases.match_at(words, at) {
            return Some((hit.words, custom_fix(hit.meaning)));
        }
        let hit = DEFAULT_LEXICON.match_at(words, at).filter(|_| self.defaults)?;
        let (when, fix) = hit.meaning;
        let noun = *when == AsVerb && at > 0 && BEFORE_A_NOUN.contains(&&*words[at - 1].text);
        (!noun).then(|| (hit.words, (*fix).to_owned()))
    }
}

fn custom_fix(written: &str) -> String {
    format!("Say it without “{written}”, which this council bans.")
}

fn is_words(phrase: &str) -> bool {
    phrase.chars().any(char::is_alphanumeric)
        && phrase.chars().all(|c| c.is_alphanumeric() || " -'’".contains(c))
}

fn compile(pattern: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(pattern).case_insensitive(true).size_limit(1 << 20).build();
    built.map_err(|error| error.to_string().lines().last().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(banned: &BannedPhrases, text: &str) -> Vec<String> {
        banned
            .occurrences(&Document::parse("", text))
            .into_iter()
            .map(|found| text[found.span].to_owned())
            .collect()
    }

    #[test]
    fn own_phrases_and_patterns_are_found_beside_the_defaults() {
        let extra = ["net-net".to_owned(), "/[a-z]+-first/".to_owned(), "—".to_owned()];
        let banned = BannedPhrases::new(true, &extra).expect("usable");
        assert_eq!(
            uses(&banned, "Net net, a mobile-first — seamless thing."),
            ["Net net", "mobile-first", "—", "seamless"]
        );
        let only_own = BannedPhrases::new(false, &extra).expect("usable");
        assert_eq!(uses(&only_own, "A seamless net-net."), ["net-net"]);
    }

    #[test]
    fn an_honest_sense_passes() {
        let banned = BannedPhrases::new(true, &[]).expect("usable");
        assert!(
            uses(
                &banned,
                "The lever gives more leverage. Unlock the mutex? `seamless`. They call it “seamless”."
            )
            .len()
                <= 1
        );
        assert_eq!(
            uses(&banned, "We leverage it in today’s fast-paced world."),
            ["leverage", "in today’s fast-paced world"]
        );
    }

    #[test]
    fn bad_patterns_are_named() {
        assert_eq!(
            BannedPhrases::new(true, &["/[/".to_owned()]).map_err(|bad| bad.pattern).err(),
            Some("/[/".to_owned())
        );
        assert!(BannedPhrases::new(true, &[" ".to_owned()]).is_err());
    }
}
