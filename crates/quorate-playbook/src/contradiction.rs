//! Contradictions (B14): a playbook whose text states the opposite of another one's.
//!
//! A text falls into sentences. A sentence is negative if it has an odd number of negations (`not`, `never`, `avoid`,
//! `stop`, `without`); auxiliary verbs, articles and `always` do not count. Two sentences are opposites if one is negative,
//! the other is not, and their remaining words are the same: without endings, in any order. So "Avoid answering in French"
//! is the opposite of "Always answer in French". Antonyms, other words for the same, and opposites in part ("… on Sundays")
//! are not recognised. English only.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use quorate_manifest::playbook::Status;
use quorate_text::words::stem;
use quorate_text::words::{Gap, Word, blocks, folded, words};

use crate::weave::Candidate;

/// Words that turn a sentence into its opposite.
const NEGATIONS: [&str; 15] = [
    "not", "never", "no", "none", "nor", "avoid", "avoids", "avoiding", "stop", "stops", "quit", "cease",
    "refrain", "without", "nowhere",
];

/// Words that do not change what a sentence demands.
const FILLERS: [&str; 36] = [
    "a", "again", "all", "always", "an", "any", "anymore", "are", "at", "be", "can", "could", "did", "do",
    "does", "ever", "from", "have", "is", "longer", "make", "may", "must", "need", "please", "shall",
    "should", "sure", "that", "the", "to", "will", "with", "would", "you", "times",
];

/// A playbook that states the opposite of an active one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    pub slug: String,
    /// Its sentence, if its text contains one.
    pub sentence: String,
    /// The active playbook.
    pub active: String,
    pub active_sentence: String,
}

impl Contradiction {
    pub fn help(&self) -> String {
        format!(
            "decide which of them is right: archive the other one, or let one supersede it (`supersedes: [{}]`)",
            self.active
        )
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Contradiction { slug, sentence, active, active_sentence } = self;
        write!(
            f,
            "`{slug}` states the opposite of `{active}`, which is active: “{sentence}” against “{active_sentence}”"
        )
    }
}

/// A sentence, reduced to what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Statement {
    stems: BTreeSet<String>,
    is_negative: bool,
    text: String,
}

/// The playbooks of one operator that state the opposite of an active one: each pair once, with the first sentences that
/// do. An expired playbook contradicts nothing, and neither do two of which one supersedes the other.
pub fn contradictions(candidates: &[Candidate], now_ms: i64) -> Vec<Contradiction> {
    let is_active = |one: &Candidate| one.status == Status::Active;
    let counts = |one: &&Candidate| one.status != Status::Archived && !one.is_expired(now_ms);
    let counted: Vec<&Candidate> = candidates.iter().filter(counts).collect();
    if counted.len() < 2 || !counted.iter().any(|one| is_active(one)) {
        return Vec::new();
    }
    let statements: Vec<Vec<Statement>> = counted.iter().map(|one| statements(&one.text)).collect();
    let mut by_stems: HashMap<&BTreeSet<String>, Vec<(usize, &Statement)>> = HashMap::new();
    for (at, all) in statements.iter().enumerate().filter(|(at, _)| is_active(counted[*at])) {
        all.iter().for_each(|one| by_stems.entry(&one.stems).or_default().push((at, one)));
    }
    let mut found: Vec<Contradiction> = Vec::new();
    let mut named: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (at, own) in statements.iter().enumerate().flat_map(|(at, all)| all.iter().map(move |own| (at, own)))
    {
        for (active, other) in by_stems.get(&own.stems).into_iter().flatten() {
            let (one, against) = (counted[at], counted[*active]);
            let supersedes = |by: &Candidate, other: &Candidate| by.supersedes.contains(&other.slug);
            if own.is_negative == other.is_negative
                || at == *active
                || supersedes(one, against)
                || supersedes(against, one)
                || !named.insert((at.min(*active), at.max(*active)))
            {
                continue;
            }
            found.push(Contradiction {
                slug: one.slug.clone(),
                sentence: own.text.clone(),
                active: against.slug.clone(),
                active_sentence: other.text.clone(),
            });
        }
    }
    found
}

/// The sentences of a text that say something.
fn statements(text: &str) -> Vec<Statement> {
    let mut all = Vec::new();
    for (_, body) in blocks(text) {
        let body = folded(&body);
        let words = words(&body);
        let sentences = words.chunk_by(|_, next| next.gap != Gap::Sentence);
        all.extend(sentences.filter_map(|sentence| statement(&body, sentence)));
    }
    all
}

fn statement(body: &str, words: &[Word]) -> Option<Statement> {
    let (start, end) = (words.first()?.start, words.last()?.end);
    let is_negation = |word: &&Word| NEGATIONS.contains(&&*word.text);
    let negations = words.iter().filter(is_negation).count();
    let content = words.iter().filter(|word| !is_negation(word) && !FILLERS.contains(&&*word.text));
    let stems: BTreeSet<String> = content.map(|word| stem(&word.text).to_owned()).collect();
    let text = body[start..end].to_owned();
    (!stems.is_empty()).then_some(Statement { stems, is_negative: negations % 2 == 1, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(slug: &str, status: Status, text: &str) -> Candidate {
        Candidate {
            slug: slug.to_owned(),
            text: text.to_owned(),
            block: None,
            priority: 50,
            written_ms: None,
            expires_ms: None,
            status,
            supersedes: Vec::new(),
            violations: Vec::new(),
        }
    }

    fn named(one: &str, active: &str) -> Option<(String, String)> {
        let all = [candidate("one", Status::Shadow, one), candidate("active", Status::Active, active)];
        let found = contradictions(&all, 0);
        assert!(found.len() < 2, "{found:?}");
        found.into_iter().next().map(|found| (found.sentence, found.active_sentence))
    }

    #[test]
    fn the_opposite_of_an_active_sentence_is_named() {
        // B14
        let active = "Always answer in French.";
        for opposite in [
            "Never answer in French.",
            "Do not answer in French.",
            "Don't answer in French!",
            "don’t ever answer in french",
            "Avoid answering in French.",
            "Stop answering in French.",
            "No longer answer in French.",
            "You must not answer in French.",
            "You should never, ever answer in **French**.",
            "Refrain from answering in French.",
            "Greet the visitor by name. Never answer in French; ask for the year.",
            "Rules:\n\n- Name the room.\n- Never answer in French\n",
            "In French, never answer.",
        ] {
            let (sentence, other) = named(opposite, active).unwrap_or_else(|| panic!("{opposite}"));
            assert!(sentence.contains("french"), "{sentence}");
            assert_eq!(other, "always answer in french");
            assert!(named(active, opposite).is_some(), "the other way round: {opposite}");
        }
        assert!(named("Answer with sources.", "Answer without sources.").is_some());
        assert!(named("Never answer without sources.", "Answer without sources.").is_some());
    }

    #[test]
    fn what_says_the_same_or_something_else_is_no_opposite() {
        // B14
        for (one, other) in [
            ("Please answer in French.", "Always answer in French."),
            ("Do not answer in French.", "Never answer in French."),
            ("Never avoid answering in French.", "Always answer in French."),
            ("Never answer in German.", "Always answer in French."),
            ("Never answer in French on Sundays.", "Always answer in French."),
            ("Never.", "Always."),
            ("", "Always answer in French."),
        ] {
            assert_eq!(named(one, other), None, "{one} / {other}");
        }
    }

    #[test]
    fn each_pair_is_named_once_and_only_where_both_may_be_in_a_prompt() {
        // B14
        let (always, never) = ("Always answer in French.", "Never answer in French. Never answer in French.");
        let both = [candidate("a", Status::Active, always), candidate("b", Status::Active, never)];
        assert_eq!(contradictions(&both, 0).len(), 1);
        let shadows = [candidate("a", Status::Shadow, always), candidate("b", Status::Shadow, never)];
        assert_eq!(contradictions(&shadows, 0), []);
        let archived = [candidate("a", Status::Active, always), candidate("b", Status::Archived, never)];
        assert_eq!(contradictions(&archived, 0), []);
        let mut replaced = both.clone();
        replaced[1].supersedes = vec!["a".to_owned()];
        assert_eq!(contradictions(&replaced, 0), []);
        let mut expired = both;
        expired[0].expires_ms = Some(5);
        assert_eq!((contradictions(&expired, 4).len(), contradictions(&expired, 5).len()), (1, 0));
    }
}
