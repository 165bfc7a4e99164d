//! A goals document: what is aimed at, what is not, and what would be a reason to stop. Read by its headings; compared
//! with a text by shared content words.

use std::collections::HashSet;

use quorate_diagnostics::word_list::WordList;

use super::document::{BlockKind, Document, Sentence, WordKind};

const WORDS: &str = include_str!("words/goals.txt");

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
static STOP_WORDS: WordList = WordList::new(WORDS, "stop words");

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
