//! The criteria that the user sets: banned phrases and the goals document.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

use super::document::{BlockKind, Document};
use super::phrases::{Phrases, compiled, words};
use quorate_text::words::stem;

/// The default phrases, each with its fix: lines of `phrase = fix`.
static DEFAULTS: LazyLock<(Phrases, Vec<&'static str>)> = LazyLock::new(|| {
    let lines = include_str!("banned_defaults.txt").lines().filter_map(|line| line.split_once(" = "));
    let (phrases, fixes): (Vec<&str>, Vec<&str>) = lines.unzip();
    (Phrases::new(&phrases), fixes)
});
/// After one of these “leverage” is a noun, which has an honest sense.
static BEFORE_A_NOUN: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"(?i)\b(?:the|a|more|some|our|your|their|its|of|financial|high|no|any|as|much)\s+\z")
});

#[derive(Debug)]
pub(super) struct BannedPhrases {
    defaults: bool,
    patterns: Vec<(String, Regex)>,
}

impl BannedPhrases {
    /// The default list where asked for, and phrases or `/patterns/` in addition.
    ///
    /// # Errors
    /// A pattern that does not compile, an empty phrase.
    pub(super) fn new(defaults: bool, extra: &[String]) -> Result<Self, String> {
        let compile = |written: &String| {
            let bare = written.trim();
            let bad = |why: &str| format!("the banned pattern `{written}` cannot be used: {why}");
            let pattern = match bare.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
                Some(pattern) => pattern.to_owned(),
                None => phrase_pattern(bare),
            };
            if pattern.is_empty() {
                return Err(bad("it is empty"));
            }
            let built = RegexBuilder::new(&pattern).case_insensitive(true).size_limit(1 << 20).build();
            let built =
                built.map_err(|error| bad(error.to_string().lines().last().unwrap_or_default().trim()))?;
            Ok((written.clone(), built))
        };
        Ok(BannedPhrases { defaults, patterns: extra.iter().map(compile).collect::<Result<_, String>>()? })
    }

    /// Every use in a text, in order, outside quoted speech, with what to write in its place.
    pub(super) fn occurrences(&self, document: &Document<'_>) -> Vec<(Range<usize>, String)> {
        let mut uses = Vec::new();
        let (defaults, fixes) = &*DEFAULTS;
        for sentence in document.sentences.iter().filter(|_| self.defaults) {
            let prose = document.prose_of(sentence);
            for hit in defaults.all(prose) {
                let verb = prose[hit.span.clone()].to_ascii_lowercase().starts_with("leverag");
                let near = prose.ceil_char_boundary(hit.span.start.saturating_sub(15));
                if verb && BEFORE_A_NOUN.is_match(&prose[near..hit.span.start]) {
                    continue;
                }
                let start = sentence.span.start;
                uses.push((start + hit.span.start..start + hit.span.end, fixes[hit.phrase].to_owned()));
            }
        }
        for (written, pattern) in &self.patterns {
            let whole = |at: usize| document.text.is_char_boundary(at);
            let hits = pattern.find_iter(&document.prose).filter(|hit| !hit.as_str().trim().is_empty());
            let hits = hits.filter(|hit| whole(hit.start()) && whole(hit.end()));
            let fix = format!("Say it without “{written}”, which this council bans.");
            uses.extend(hits.map(|hit| (hit.range(), fix.clone())));
        }
        // Words that both a phrase and a pattern have are one use; the longer one names more of them.
        uses.sort_by_key(|(span, _)| (span.start, Reverse(span.end)));
        let mut end = 0;
        uses.retain(|(span, _)| {
            let is_new = span.start >= end;
            end = end.max(span.end);
            is_new
        });
        uses
    }
}

/// A phrase as a pattern: its words, whatever spaces or hyphens stand between them.
fn phrase_pattern(phrase: &str) -> String {
    let parts: Vec<String> = phrase
        .split(|c: char| c.is_whitespace() || c == '-')
        .filter(|part| !part.is_empty())
        .map(regex::escape)
        .collect();
    let border = |c: Option<char>| if c.is_some_and(char::is_alphanumeric) { r"\b" } else { "" };
    let pattern = parts.join(r"(?:\s+|-)").replace(['\'', '’'], "['’]");
    match parts.is_empty() {
        true => regex::escape(phrase),
        false => format!("{}{pattern}{}", border(phrase.chars().next()), border(phrase.chars().next_back())),
    }
}

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

/// Words in headings, and the part of a goals document that they begin.
const SECTIONS: &[(Section, &[&str])] = &[
    (
        Section::NonGoals,
        &["non-goal", "non goal", "nongoal", "anti-goal", "not goals", "out of scope", "not doing", "won't"],
    ),
    (Section::KillCriteria, &["kill", "stop if", "stop when", "abort", "reasons to stop"]),
    (Section::Goals, &["goal", "objective", "priorit", "aim", "mission", "outcome", "what we want"]),
];

impl Goals {
    /// Reads a document. Without a heading that says what is what, everything in it is a goal.
    pub(super) fn read(text: &str) -> Goals {
        let document = Document::parse("", text);
        let mut goals = Goals::default();
        let mut section = Section::Goals;
        for sentence in &document.sentences {
            let written = &document.text[sentence.span.clone()];
            if document.kind_of(sentence) == BlockKind::Heading {
                let heading = written.to_lowercase();
                let named =
                    SECTIONS.iter().find(|(_, words)| words.iter().any(|word| heading.contains(word)));
                // A title changes nothing; a section on something else ends a list of goals.
                let other = if section == Section::Goals { Section::Goals } else { Section::Other };
                section = named.map_or(other, |(named, _)| *named);
                continue;
            }
            let goal = Goal { text: written.to_owned(), stems: stems(document.prose_of(sentence)) };
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

/// Words that say nothing about a subject.
const STOP_WORDS: &[&str] = &[
    "about", "after", "also", "been", "before", "being", "could", "does", "each", "even", "every", "from",
    "have", "into", "just", "less", "like", "made", "make", "many", "more", "most", "much", "must", "only",
    "other", "over", "same", "should", "some", "such", "than", "that", "their", "them", "then", "there",
    "these", "they", "this", "those", "through", "under", "until", "very", "want", "were", "what", "when",
    "where", "which", "while", "will", "with", "within", "without", "would", "your", "ours", "people",
    "thing", "things", "goal", "goals", "keep", "stay", "become",
];

/// The stems of the content words of a text.
pub(super) fn stems(prose: &str) -> HashSet<String> {
    let folded = words(prose).map(|(_, word)| word.to_lowercase().replace('’', "'"));
    let content = folded.filter(|word| word.chars().count() > 3 && !STOP_WORDS.contains(&word.as_str()));
    // “Readers” are those who “read”.
    let root = |word: String| {
        let stem = stem(&word);
        stem.strip_suffix("er").filter(|root| root.len() >= 4).unwrap_or(stem).to_owned()
    };
    content.map(root).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(defaults: bool, extra: &[&str], text: &str) -> Vec<String> {
        let extra: Vec<String> = extra.iter().map(|&phrase| phrase.to_owned()).collect();
        let banned = BannedPhrases::new(defaults, &extra).expect("usable");
        banned
            .occurrences(&Document::parse("", text))
            .into_iter()
            .map(|(span, _)| text[span].to_owned())
            .collect()
    }

    #[test]
    fn own_phrases_and_patterns_are_found_beside_the_defaults() {
        let extra = ["net-net", "/[a-z]+-first/", "—"];
        assert_eq!(
            uses(true, &extra, "Net net, a mobile-first — seamless thing."),
            ["Net net", "mobile-first", "—", "seamless"]
        );
        assert_eq!(uses(false, &extra, "A seamless net-net, not a netnet."), ["net-net"]);
        let overlapping = ["/seamless(ly)? \\w+/", "/less/"];
        assert_eq!(
            uses(true, &overlapping, "A seamless start, less seamless later."),
            ["seamless start", "less", "seamless later"]
        );
        assert_eq!(
            uses(
                true,
                &[],
                "The lever gives more leverage. We leverage it in today’s fast-paced world. “Seamless”."
            ),
            ["leverage", "in today’s fast-paced world"]
        );
    }

    #[test]
    fn bad_patterns_are_named() {
        let bad = |written: &str| BannedPhrases::new(true, &[written.to_owned()]).err();
        assert!(bad("/[/").is_some_and(|why| why.contains("`/[/`")));
        assert!(bad(" ").is_some() && bad("//").is_some());
    }

    #[test]
    fn headings_sort_what_is_listed() {
        let text = "# Plan\n\n## Goals\n\n- Cheap audits\n\n## Non-goals\n\n- Hosting models\n\n## Kill criteria\n\n- Nobody replays runs\n\n## Team\n\n- Ada\n";
        let goals = Goals::read(text);
        assert_eq!((goals.goals.len(), goals.non_goals.len(), goals.kill_criteria.len()), (1, 1, 1));
        assert_eq!(goals.non_goals[0].text, "Hosting models");
        assert_eq!(Goals::read("- Cheap audits\n- Fewer surprises\n").goals.len(), 2);
        assert!(Goals::read("").is_empty());
    }
}
