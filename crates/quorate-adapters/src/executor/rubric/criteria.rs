//! The criteria that the user sets: banned phrases and the goals document.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use quorate_diagnostics::text::WordList;
use regex::{Regex, RegexBuilder};

use super::document::{BlockKind, Document, Sentence, Word, WordKind, split_words};
use super::lexicon::Lexicon;

const BANNED_WORDS: &str = include_str!("words/banned.txt");

const DEFAULTS: &str = include_str!("words/banned_defaults.txt");

/// Words before a noun: after one of these "leverage" is not a verb.
static BEFORE_A_NOUN: WordList = WordList::new(BANNED_WORDS, "before a noun");

/// The default phrases, each with whether it is banned only as a verb, and with its fix.
static DEFAULT_LEXICON: LazyLock<Lexicon<(bool, &'static str)>> = LazyLock::new(|| {
    let phrases = DEFAULTS.lines().filter_map(|line| line.split_once(" = "));
    Lexicon::new(phrases.map(|(phrase, fix)| match phrase.strip_prefix("verb ") {
        Some(verb) => (verb, (true, fix)),
        None => (phrase, (false, fix)),
    }))
});

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
        // Words that both a phrase and a pattern have are one use; the longer one names more of them.
        uses.sort_by_key(|found| (found.span.start, Reverse(found.span.end)));
        let mut end = 0;
        uses.retain(|found| {
            let is_new = found.span.start >= end;
            end = end.max(found.span.end);
            is_new
        });
        uses
    }

    fn match_at(&self, words: &[Word<'_>], at: usize) -> Option<(Range<usize>, String)> {
        if let Some(hit) = self.phrases.match_at(words, at) {
            return Some((hit.words, custom_fix(hit.meaning)));
        }
        let hit = DEFAULT_LEXICON.match_at(words, at).filter(|_| self.defaults)?;
        let (as_verb, fix) = hit.meaning;
        let noun = *as_verb && at > 0 && BEFORE_A_NOUN.contains(&words[at - 1].text);
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

const GOAL_WORDS: &str = include_str!("words/goals.txt");

/// One line of a goals document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Goal {
    pub(super) text: String,
    stems: HashSet<String>,
}

/// A goals document, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Goals {
    /// What is aimed at.
    pub(super) goals: Vec<Goal>,
    /// What is explicitly not.
    pub(super) non_goals: Vec<Goal>,
    /// What would be a reason to stop.
    pub(super) kill_criteria: Vec<Goal>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Goals,
    NonGoals,
    KillCriteria,
    Other,
}

/// Words that say nothing about a subject.
static STOP_WORDS: WordList = WordList::new(GOAL_WORDS, "stop words");

impl Goals {
    /// Reads a document. Without a heading that says what is what, everything in it is a goal.
    pub(super) fn read(text: &str) -> Goals {
        let document = Document::parse("", text);
        let mut goals = Goals::default();
        let mut section = Section::Goals;
        for sentence in &document.sentences {
            let written = &document.text[sentence.span.clone()];
            if document.kind_of(sentence) == BlockKind::Heading {
                section = Section::of(written, section);
                continue;
            }
            let goal = Goal { text: written.to_owned(), stems: stems(&document, sentence) };
            if goal.stems.is_empty() {
                continue;
            }
            match section {
                Section::Goals => goals.goals.push(goal),
                Section::NonGoals => goals.non_goals.push(goal),
                Section::KillCriteria => goals.kill_criteria.push(goal),
                Section::Other => {}
            }
        }
        goals
    }

    /// Adds what another document says.
    pub(super) fn extend(&mut self, other: Goals) {
        self.goals.extend(other.goals);
        self.non_goals.extend(other.non_goals);
        self.kill_criteria.extend(other.kill_criteria);
    }

    /// Whether there is nothing to judge by.
    pub(super) fn is_empty(&self) -> bool {
        self.goals.is_empty() && self.non_goals.is_empty() && self.kill_criteria.is_empty()
    }
}

impl Section {
    fn of(heading: &str, before: Section) -> Section {
        let heading = heading.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| heading.contains(word));
        match () {
            () if says(&[
                "non-goal",
                "non goal",
                "nongoal",
                "anti-goal",
                "not goals",
                "out of scope",
                "not doing",
                "won't",
            ]) =>
            {
                Section::NonGoals
            }
            () if says(&["kill", "stop if", "stop when", "abort", "reasons to stop"]) => {
                Section::KillCriteria
            }
            () if says(&["goal", "objective", "priorit", "aim", "mission", "outcome", "what we want"]) => {
                Section::Goals
            }
            // A title changes nothing; a section on something else ends a list of goals.
            () if before == Section::Goals => Section::Goals,
            () => Section::Other,
        }
    }
}

impl Goal {
    /// Whether a set of stems is about this: two shared, or all where there is but one.
    pub(super) fn is_served_by(&self, stems: &HashSet<String>) -> bool {
        self.stems.intersection(stems).count() >= self.stems.len().min(2)
    }

    /// Whether a sentence is close to this: at least two shared stems, and most of them.
    pub(super) fn is_touched_by(&self, stems: &HashSet<String>) -> bool {
        let shared = self.stems.intersection(stems).count();
        shared >= 2 && shared * 2 > self.stems.len()
    }
}

/// The stems of the content words of a sentence.
pub(super) fn stems(document: &Document<'_>, sentence: &Sentence) -> HashSet<String> {
    let words = document.words_of(sentence).iter();
    let content = words.filter(|word| word.kind == WordKind::Letters && word.text.chars().count() > 3);
    content.filter(|word| !STOP_WORDS.contains(&word.text)).map(|word| stem(&word.text)).collect()
}

/// A crude stem: common endings off, as long as four letters stay.
fn stem(word: &str) -> String {
    const ENDINGS: &[&str] = &[
        "ations", "ation", "ments", "ment", "ings", "ing", "ers", "ies", "er", "ed", "es", "ly", "s", "e",
        "y",
    ];
    let cut =
        ENDINGS.iter().find_map(|ending| word.strip_suffix(ending).filter(|rest| rest.chars().count() >= 4));
    cut.unwrap_or(word).to_owned()
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
    fn what_two_of_them_match_is_one_use() {
        let extra = ["/seamless(ly)? \\w+/".to_owned(), "/less/".to_owned()];
        let banned = BannedPhrases::new(true, &extra).expect("usable");
        assert_eq!(
            uses(&banned, "A seamless start, less seamless later."),
            ["seamless start", "less", "seamless later"]
        );
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

#[cfg(test)]
mod goals_tests {
    use super::*;

    #[test]
    fn headings_sort_what_is_listed() {
        let text = "# Plan\n\n## Goals\n\n- Cheap audits\n\n## Non-goals\n\n- Hosting models\n\n## Kill criteria\n\n- Nobody replays runs\n\n## Team\n\n- Ada\n";
        let goals = Goals::read(text);
        assert_eq!((goals.goals.len(), goals.non_goals.len(), goals.kill_criteria.len()), (1, 1, 1));
        assert_eq!(goals.non_goals[0].text, "Hosting models");
    }

    #[test]
    fn a_bare_list_is_goals() {
        assert_eq!(Goals::read("- Cheap audits\n- Fewer surprises\n").goals.len(), 2);
        assert!(Goals::read("").is_empty());
    }

    #[test]
    fn forms_of_a_word_share_a_stem() {
        assert_eq!(stem("audits"), stem("audited"));
        assert_eq!(stem("customers"), stem("customer"));
        assert_eq!(stem("pricing"), stem("prices"));
    }
}
