//! Contradictions (B14): a playbook whose text states the opposite of another one's.
//!
//! A text falls into sentences. A sentence is negative if it has an odd number of negations (`not`, `never`, `avoid`,
//! `stop`, `without`); auxiliary verbs, articles and `always` do not count. Two sentences are opposites if one is negative,
//! the other is not, and their remaining words are the same: without endings, in any order. So "Avoid answering in French"
//! is the opposite of "Always answer in French". Antonyms, other words for the same, and opposites in part ("… on Sundays")
//! are not recognised. English only.
//! Also which playbook supersedes which, if both are active since a person edited files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use quorate_manifest::playbook::Status;

use crate::gate::GOVERNANCE_PRIORITY;
use crate::lock::text::{Separator, blocks, expand_contraction, folded, raw_words, separator_in};
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
    /// Its sentence, as far as its text has it.
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
    let is_unexpired = |one: &&Candidate| one.overlay.expires_ms.is_none_or(|expires| expires > now_ms);
    let is_active = |one: &Candidate| one.status == Status::Active;
    let counted: Vec<&Candidate> =
        candidates.iter().filter(|one| one.status != Status::Archived).filter(is_unexpired).collect();
    if counted.len() < 2 || !counted.iter().any(|one| is_active(one)) {
        return Vec::new();
    }
    let statements: Vec<Vec<Statement>> = counted.iter().map(|one| statements(&one.overlay.text)).collect();
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
            let supersedes = |by: &Candidate, other: &Candidate| by.supersedes.contains(&other.overlay.id);
            if own.is_negative == other.is_negative
                || at == *active
                || supersedes(one, against)
                || supersedes(against, one)
                || !named.insert((at.min(*active), at.max(*active)))
            {
                continue;
            }
            found.push(Contradiction {
                slug: one.overlay.id.clone(),
                sentence: own.text.clone(),
                active: against.overlay.id.clone(),
                active_sentence: other.text.clone(),
            });
        }
    }
    found
}

/// The sentences of a text that say something.
fn statements(text: &str) -> Vec<Statement> {
    let mut all = Vec::new();
    for block in blocks(text) {
        let body = folded(&block.body);
        let (mut sentence, mut end) = (Vec::new(), 0);
        for (start, stop, word) in raw_words(&body) {
            let is_first = end == 0;
            if separator_in(&body[end..start], true, is_first) == Separator::Sentence {
                all.extend(statement(&body, &std::mem::take(&mut sentence)));
            }
            sentence.push((start, stop, word));
            end = stop;
        }
        all.extend(statement(&body, &sentence));
    }
    all
}

fn statement(body: &str, words: &[(usize, usize, String)]) -> Option<Statement> {
    let (start, end) = (words.first()?.0, words.last()?.1);
    let (mut negations, mut stems) = (0, BTreeSet::new());
    for word in words.iter().flat_map(|(_, _, word)| expand_contraction(word.clone())) {
        if NEGATIONS.contains(&&*word) {
            negations += 1;
        } else if !FILLERS.contains(&&*word) {
            stems.insert(stem(&word));
        }
    }
    let text = body[start..end].to_owned();
    (!stems.is_empty()).then_some(Statement { stems, is_negative: negations % 2 == 1, text })
}

/// A word without its ending, so that `answering`, `answers` and `answer` are one word.
fn stem(word: &str) -> String {
    let mut stem = match word.strip_suffix("ing") {
        Some(verb) if verb.len() > 1 => verb,
        _ => match word.strip_suffix('s') {
            Some(base) if base.len() > 2 && !base.ends_with('s') => base,
            _ => word,
        },
    };
    let mut last = stem.bytes().rev();
    if stem.len() < word.len() && stem.is_ascii() && last.next() == last.next() {
        stem = &stem[..stem.len() - 1];
    }
    match stem.strip_suffix('e') {
        Some(short) if short.len() > 1 => short.to_owned(),
        _ => stem.to_owned(),
    }
}

/// The `supersedes` lists of playbooks, by slug.
#[derive(Debug, Clone, Default)]
pub struct Supersessions<'p>(BTreeMap<&'p str, (u8, &'p [String])>);

/// Why a playbook does not take the place of another one that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoEffect {
    /// There is no such playbook.
    Unknown,
    /// The other one takes the place of this one, itself or over others.
    Mutual,
    /// A playbook that governance promoted is superseded only by another one that governance promoted.
    Governed,
}

impl<'p> Supersessions<'p> {
    /// The claims of playbooks, each with its slug, its priority and what it supersedes.
    pub fn new(all: impl IntoIterator<Item = (&'p str, u8, &'p [String])>) -> Self {
        Supersessions(all.into_iter().map(|(slug, priority, others)| (slug, (priority, others))).collect())
    }

    /// Whether a playbook takes the place of another one.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, by: &str, other: &str) -> Result<(), NoEffect> {
        let (Some((own, _)), Some((priority, _))) = (self.0.get(by), self.0.get(other)) else {
            return Err(NoEffect::Unknown);
        };
        if self.reaches(other, by) {
            return Err(NoEffect::Mutual);
        }
        match *priority >= GOVERNANCE_PRIORITY && *own < GOVERNANCE_PRIORITY {
            true => Err(NoEffect::Governed),
            false => Ok(()),
        }
    }

    /// Those whose place another one has taken, with the slug of that one.
    pub fn superseded(&self) -> BTreeMap<&'p str, &'p str> {
        let mut superseded = BTreeMap::new();
        for (by, (_, others)) in &self.0 {
            for other in others.iter().filter(|other| self.check(by, other).is_ok()) {
                if let Some((other, _)) = self.0.get_key_value(other.as_str()) {
                    superseded.entry(*other).or_insert(*by);
                }
            }
        }
        superseded
    }

    fn reaches(&self, from: &str, to: &str) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(slug) = open.pop() {
            if slug == to {
                return true;
            }
            if let Some((_, others)) = self.0.get(slug).filter(|_| seen.insert(slug)) {
                open.extend(others.iter().map(String::as_str));
            }
        }
        false
    }
}

impl fmt::Display for NoEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoEffect::Unknown => "there is no such playbook",
            NoEffect::Mutual => "each of them supersedes the other, so neither takes the other's place",
            NoEffect::Governed => "that has a priority which only governance promotes, and this one has not",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weave::{Origin, Overlay, Placement};

    fn candidate(slug: &str, status: Status, text: &str) -> Candidate {
        let overlay = Overlay {
            id: slug.to_owned(),
            origin: Origin::Playbook,
            text: text.to_owned(),
            placement: Placement::Appended,
            priority: 50,
            written_ms: None,
            expires_ms: None,
        };
        Candidate { overlay, status, supersedes: Vec::new(), violations: Vec::new() }
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
        expired[0].overlay.expires_ms = Some(5);
        assert_eq!((contradictions(&expired, 4).len(), contradictions(&expired, 5).len()), (1, 0));
    }
}

#[cfg(test)]
mod supersede_tests {
    use super::*;

    #[test]
    fn each_takes_the_place_of_what_it_names_and_no_two_of_each_other() {
        // B6
        let names = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let (b, c, none) = (names(&["b", "gone", "governed"]), names(&["c"]), names(&[]));
        let (x, y, z) = (names(&["y"]), names(&["z"]), names(&["x", "c"]));
        let claims = Supersessions::new([
            ("a", 50, b.as_slice()),
            ("b", 50, c.as_slice()),
            ("c", 50, none.as_slice()),
            ("governed", 75, none.as_slice()),
            ("x", 50, x.as_slice()),
            ("y", 50, y.as_slice()),
            ("z", 50, z.as_slice()),
        ]);
        assert_eq!(claims.superseded(), BTreeMap::from([("b", "a"), ("c", "b")]));
        assert_eq!(claims.check("a", "gone"), Err(NoEffect::Unknown));
        assert_eq!(claims.check("a", "governed"), Err(NoEffect::Governed));
        for (by, other) in [("x", "y"), ("y", "z"), ("z", "x")] {
            assert_eq!(claims.check(by, other), Err(NoEffect::Mutual), "{by} {other}");
        }
        assert_eq!(claims.check("z", "c"), Ok(()));
        let own = names(&["a"]);
        assert_eq!(Supersessions::new([("a", 50, own.as_slice())]).check("a", "a"), Err(NoEffect::Mutual));
    }
}
